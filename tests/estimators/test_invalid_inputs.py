"""Every method rejects inputs that are not matrices of real numbers, and says what is allowed."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import fillrank as fr
from fillrank.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
CELLS = np.random.default_rng(0).normal(size=(8, 5))
STRANGE = {
    "complex": (CELLS.astype(complex), "real numbers.* [Cc]omplex"),
    "sparse complex": (sp.csr_array(CELLS.astype(complex)), "real numbers.* [Cc]omplex"),
    "3-D": (np.ones((2, 3, 5)), "two dimensions.* 3"),
    "1-D": (np.ones(5), "two dimensions.* (1|instead)"),
    "no rows": (np.ones((0, 5)), r"row.*\b0"),
    "no columns": (np.ones((5, 0)), r"row.*\b0"),
    "sparse without rows": (sp.csr_array((0, 5)), r"row.*\b0"),
    "data frame without rows": (pd.DataFrame(np.ones((0, 5))), "rows and columns"),
    "text": (np.array([["1", "2"]]), "real numbers.* <U1"),
    "dates": (np.array([["2020-01-01"]], dtype="datetime64[D]"), "real numbers.* datetime64"),
    "ragged": ([[1, 2], [3]], "real numbers"),
    "dict": ({"a": [1, 2]}, "real numbers"),
    "None": (None, "real numbers"),
}


def quick(**settings):
    return fr.GASR(n_sweeps=20, random_state=0, progress=False, n_threads=1, **settings)


@pytest.fixture(scope="module")
def model():
    return quick().fit(CELLS)


@pytest.mark.parametrize("name", STRANGE)
def test_inputs_that_are_not_tables(name, model):
    table, words = STRANGE[name]
    for door in (
        fr.Observations.of,
        quick().fit,
        quick().fit_transform,
        model.transform,
        model.fold_in,
        fr.SoftImpute(progress=False).fit,
    ):
        by_features = table is None and door == model.fold_in
        expected = "or row_features; got neither" if by_features else words
        with pytest.raises(InputError, match=expected) as refusal:
            door(table)
        assert len(str(refusal.value)) < 400


def test_another_number_of_columns(model):
    with pytest.raises(InputError, match="X has 4 features, but GASR is expecting 5"):
        model.transform(CELLS[:, :4])


@pytest.mark.parametrize("bounds", [(0, 1), [0, 1], 5])
def test_bounds_are_by_column(bounds):
    with pytest.raises(InputError, match=r"bounds must be a mapping of column to \(low, high\)"):
        fr.GASR(bounds=bounds, progress=False).fit(np.arange(20.0).reshape(5, 4))
