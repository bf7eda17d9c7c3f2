"""New rows of which no value is known are completed, also if there are no others."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import fillrank as fr
from fillrank.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
NAN = np.nan


def ratings():
    rng = np.random.default_rng(3)
    values = np.clip(np.rint(rng.normal(size=(30, 2)) @ rng.normal(size=(2, 6))), -2, 2)
    return np.where(rng.random(values.shape) < 0.2, NAN, values)


def fitted(method, table, **options):
    if method in (fr.GASR, fr.BPMF):
        options |= {"n_sweeps": 20}
    if method is not fr.HASI:
        options |= {"random_state": 0}
    return method(progress=False, **options).fit(table)


@pytest.mark.parametrize("method", [fr.GASR, fr.BPMF, fr.SoftImpute, fr.HASI, fr.M3F, fr.IPM3F])
def test_rows_without_values_are_as_among_others(method):
    table = ratings()
    model = fitted(method, table)
    alone, empty = model.transform(np.full((2, 6), NAN)), np.full((1, 6), NAN)
    among = model.transform(np.vstack([table[:1], empty]))
    np.testing.assert_array_equal(alone[0], among[1])
    assert np.isfinite(alone).all()
    predicted = model.fold_in(empty).predict(0, range(6))
    np.testing.assert_allclose(predicted, alone[0], atol=1e-12)


def test_other_containers():
    table = ratings()
    expected = fitted(fr.GASR, table).transform(np.full((1, 6), NAN))
    filled = fitted(fr.GASR, table).transform(sp.csr_matrix((1, 6)))
    np.testing.assert_array_equal(filled, expected)
    coded = fitted(fr.GASR, np.nan_to_num(table, nan=-9), missing_values=-9)
    np.testing.assert_array_equal(coded.transform(np.full((1, 6), -9.0)), expected)
    again = coded.transform(fr.Observations.of(np.full((1, 6), -9.0)))
    np.testing.assert_array_equal(again, expected)


def test_a_data_frame_of_several_kinds():
    table = pd.DataFrame(ratings(), columns=list("abcdef"))
    table["town"] = pd.Categorical(["Ayr", "Wick", "Perth"] * 10)
    model = fitted(fr.GASR, table)
    empty = table.iloc[:1].mask(np.ones((1, 7), bool)).set_axis(["new"])
    filled = model.transform(empty)
    assert filled.notna().all(axis=None)
    assert filled.dtypes.equals(table.dtypes)
    assert model.fold_in(empty).predict("new", "town")[0] == filled.loc["new", "town"]


def test_a_fit_needs_a_value():
    for table in (np.full((2, 3), NAN), pd.DataFrame(np.full((2, 3), NAN))):
        with pytest.raises(InputError, match="at least one value must be observed"):
            fr.GASR().fit(table)
        with pytest.raises(InputError, match="at least one value must be observed"):
            fr.read(table)
