"""Tables with categories as new rows and new entries of a fitted table."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank import Observations
from fillrank.errors import InputError, NotSupportedError
from fillrank.table.column_types import ColumnType

KNOWN = pd.DataFrame(
    {"x": [1.0, 2.0, np.nan, 4.0], "town": ["Bern", "Chur", "Genf", "Bern"], "y": [1.0, 2, 3, 4]}
)


def known():
    return Observations.of(KNOWN)


def test_other_levels_get_the_codes_of_the_fit():
    new = Observations.of(
        pd.DataFrame({"x": [1.0] * 4, "town": ["Genf", "Chur"] * 2, "y": [5.0] * 4})
    )
    assert new.values[new.columns == "town"].tolist() == [1.0, 0.0, 1.0, 0.0]
    again = Observations.of(new, like=known())
    assert again.values[again.columns == "town"].tolist() == [2.0, 1.0, 2.0, 1.0]
    assert again.column_types == known().column_types
    assert Observations.of(known(), like=known()).values.tolist() == known().values.tolist()


def test_unknown_levels_are_refused():
    new = Observations.of(
        pd.DataFrame({"x": [1.0] * 4, "town": ["Bern", "Rom"] * 2, "y": [5.0] * 4})
    )
    with pytest.raises(InputError, match=r"row 1, column 'town'.*one of its 3 values.*got 'Rom'"):
        Observations.of(new, like=known())


def test_numbers_in_place_of_categories_are_refused():
    new = Observations.of(pd.DataFrame({"x": [1.0, 2.0], "town": [1.0, 2.0]}))
    with pytest.raises(InputError, match="column 'town' must contain categories"):
        Observations.of(new, like=known())
    text = pd.DataFrame({"x": ["a", "b", "a"], "y": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match="column 'x' must contain numbers"):
        Observations.of(text, like=known())


def test_arrays_have_codes():
    new = Observations.from_matrix([[1.0, 2.0, 3.0]])
    assert Observations.of(new, like=known()) is new


def test_methods_for_numbers_refuse_other_values():
    solver = fr.SoftImpute(penalty=1.0)
    with pytest.raises(NotSupportedError, match=r"SoftImpute cannot use categories.*column 'town'"):
        solver.fit(KNOWN)
    limits = Observations.from_matrix([[1.0, 2.0], [3.0, np.nan]], upper=[[1, 2], [np.inf, np.nan]])
    with pytest.raises(NotSupportedError, match="SoftImpute cannot use limits"):
        solver.fit(limits)
    solver.fit(pd.DataFrame({"x": [1.0, np.nan, 3.0], "b": [True, False, True]}))


def test_new_rows_of_a_fitted_model_are_read_like_its_table():
    """The types of a fitted table decide, also for a single row, which alone would be labels."""
    model = fr.SoftImpute(penalty=1.0).fit(KNOWN[["x", "y"]])
    types = (ColumnType(), ColumnType("text", ("a", "b")))
    labelled = replace(model.observations_, column_types=types)
    new = pd.DataFrame({"x": [2.0], "y": ["b"]})
    assert Observations.of(new, like=labelled).values.tolist() == [2.0, 1.0]
    filled = model.transform(pd.DataFrame({"x": [2.0, np.nan], "y": [np.nan, 3.0]}))
    assert filled.notna().all(axis=None)
