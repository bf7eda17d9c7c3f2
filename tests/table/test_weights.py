"""Weights of entries: in the order of the values through every conversion, and checked."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given

from fillrank import Observations
from fillrank.errors import InputError, UnknownNameError
from fillrank.table.entries import NO_WEIGHTS, compress, group_by_row, transpose
from fillrank.table.observations import fingerprint
from helpers.standard_units import standardised
from helpers.strategies import few, triplets

NAN = np.nan
X = np.array([[1.0, NAN, 3.0], [NAN, 5.0, 6.0]])
W = np.array([[1.0, NAN, 4.0], [-7.0, 0.5, 2.0]])  # arbitrary where X is missing
LONG = {
    "row": ["a", "a", "b", "b"],
    "column": ["x", "y", "x", "y"],
    "value": [1.0, 2.0, 3.0, None],
    "w": [1.0, 4.0, 0.5, None],
    "se": [1.0, 0.5, 2.0, None],
}


def weighted():
    return Observations.from_matrix(X, weights=W)


@few
@given(triplets())
def test_weights_are_sorted_with_their_values(entries):
    rows, columns, values, (m, n) = entries
    weights = np.arange(1.0, values.size + 1)
    grouped = group_by_row(rows, columns, values, (m, n), weights)
    again = group_by_row(rows, columns, weights, (m, n))
    np.testing.assert_array_equal(grouped.weights, again.values)
    flipped = transpose(grouped, n)
    np.testing.assert_array_equal(flipped.weights, transpose(again, n).values)
    sorted_at_once = compress(m, rows, columns, values, weights)
    np.testing.assert_array_equal(
        sorted_at_once.weights, compress(m, rows, columns, weights).values
    )


def test_entries_without_weights_have_an_empty_array():
    entries = Observations.from_matrix(X).by_row()
    assert entries.weights is NO_WEIGHTS
    assert entries.weights.dtype == np.float32
    assert transpose(entries, 3).weights.size == 0
    assert compress(1, np.zeros(1, int), np.zeros(1, int), np.ones(1)).weights.size == 0


def test_of_an_array():
    observations = weighted()
    assert observations.weights.tolist() == [1.0, 4.0, 0.5, 2.0]
    assert observations.weights.dtype == np.float64
    assert observations.by_row().weights.tolist() == [1.0, 4.0, 0.5, 2.0]
    assert observations.by_column().weights.tolist() == [1.0, 0.5, 4.0, 2.0]
    assert "with weights" in repr(observations)
    assert Observations.from_matrix(X).weights is None


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "dia"])
def test_of_a_sparse_matrix(kind):
    matrix = sp.coo_array(np.nan_to_num(X)).asformat(kind)
    for weights in (W, np.nan_to_num(W), sp.coo_array(np.nan_to_num(W)).asformat(kind)):
        if kind == "dia":  # it also stores zeros
            weights = np.ones(X.shape)
        found = Observations.from_matrix(matrix, weights=weights)
        assert (found.weights > 0).all()
        if kind != "dia":
            assert found.weights.tolist() == [1.0, 4.0, 0.5, 2.0]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_of_a_wide_table(make):
    names = ["x", "y", "z"]
    table = make(dict(zip(names, X.T, strict=True)))
    weights = make(dict(zip(names, W.T, strict=True)))
    if make is pl.DataFrame:
        table, weights = table.fill_nan(None), weights.fill_nan(None)
    for given_weights in (W, weights):
        assert Observations.of(table, given_weights).weights.tolist() == [1.0, 4.0, 0.5, 2.0]
    with pytest.raises(InputError, match=r"weights must be .* column labels of X, 'x', 'y', 'z'"):
        Observations.of(table, weights[["y", "x", "z"]])


def test_of_a_wide_table_with_row_labels():
    table = pd.DataFrame(X, index=["a", "b"])
    assert Observations.of(table, pd.DataFrame(W, index=["a", "b"])).weights is not None
    with pytest.raises(InputError, match=r"row labels of X, 'a', 'b'"):
        Observations.of(table, pd.DataFrame(W))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_of_a_long_table(make):
    table = make(LONG)
    assert Observations.from_table(table, weight="w").weights.tolist() == [1.0, 4.0, 0.5]
    named = {"row": "row", "column": "column", "value": "value"}
    found = Observations.from_table(table, **named, standard_error="se")
    assert found.weights.tolist() == [1.0, 4.0, 0.25]
    assert Observations.from_table(table).weights is None


def test_a_typical_standard_error_has_the_weight_1():
    errors = np.array([0.2, 0.1, 0.4, 9.0, 0.2])
    table = pd.DataFrame({"row": range(5), "column": 0, "value": [1, 2, 3, NAN, 5], "se": errors})
    found = Observations.from_table(table, standard_error="se").weights
    np.testing.assert_allclose(found, [1, 4, 0.25, 1])  # that of the missing value does not count


def test_duplicates():
    cells = ["a", "a", "b", "a"], ["x", "x", "x", "x"], [0.1, 0.4, 0.3, 0.7]
    weights = [1.0, 2.0, 3.0, 5.0]
    mean = Observations.from_triplets(*cells, duplicates="mean", weights=weights)
    np.testing.assert_allclose(mean.values, [(0.1 + 0.8 + 3.5) / 8, 0.3], rtol=1e-15)
    assert mean.values[1] == 0.3
    assert mean.weights.tolist() == [8.0, 3.0]
    first = Observations.from_triplets(*cells, duplicates="first", weights=weights)
    assert (first.values.tolist(), first.weights.tolist()) == ([0.1, 0.3], [1.0, 3.0])
    last = Observations.from_triplets(*cells, duplicates="last", weights=weights)
    assert (last.values.tolist(), last.weights.tolist()) == ([0.7, 0.3], [5.0, 3.0])


def test_splits_and_subsets_keep_the_weights():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(9, 7))
    observations = Observations.from_matrix(values, weights=np.exp(values))
    for part in (*observations.split(0.3, random_state=0), observations[[3, 1, 40]]):
        np.testing.assert_array_equal(part.weights, np.exp(part.values))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(observations)).weights, observations.weights
    )


def test_standard_units_keep_the_weights():
    observations = weighted()
    for dtype in ("float32", "float64"):
        standard = standardised(observations, dtype)
        assert standard.rows.weights.dtype == standard.columns.weights.dtype == dtype
        assert standard.rows.weights.tolist() == [1.0, 4.0, 0.5, 2.0]
        assert standard.columns.weights.tolist() == [1.0, 0.5, 4.0, 2.0]
    one_row = standardised(Observations.from_matrix(X[:1], weights=W[:1]))
    assert one_row.rows.weights.tolist() == one_row.columns.weights.tolist() == [1.0, 4.0]
    assert standardised(Observations.from_matrix(X)).rows.weights is NO_WEIGHTS


def test_the_fingerprint_depends_on_the_weights():
    plain, ones = (Observations.from_matrix(X, weights=w) for w in (None, np.ones(X.shape)))
    assert len({fingerprint(each) for each in (plain, ones, weighted())}) == 3
    # Checkpoints of earlier versions have it.
    assert fingerprint(plain).startswith("3ec8e2e1c7cd")


@pytest.mark.parametrize("wrong", [0.0, -1.0, NAN, np.inf, 1e-13, 1e13])
def test_weights_out_of_range(wrong):
    weights = np.where(W == 0.5, wrong, W)
    with pytest.raises(InputError) as caught:
        Observations.from_matrix(X, weights=weights)
    assert caught.value.place == "the weight of row 1, column 1"
    assert caught.value.allowed == "a number from 1e-12 to 1e+12"
    assert str(caught.value.value) == str(wrong)


@pytest.mark.parametrize("wrong", [0.0, -1.0, NAN, np.inf, 1e-9, 1e9])
def test_standard_errors_out_of_range(wrong):
    table = pd.DataFrame(LONG | {"se": [1.0, 2.0, wrong, NAN]})
    with pytest.raises(InputError, match=r"standard error of row 'b', column 'x' must be"):
        Observations.from_table(table, standard_error="se")


@pytest.mark.parametrize("weights", [np.ones((3, 2)), np.ones(3), 1.0, [[1.0] * 3] * 3])
def test_weights_of_another_shape(weights):
    with pytest.raises(InputError) as caught:
        Observations.from_matrix(X, weights=weights)
    assert str(caught.value.place) == "weights"
    assert str(caught.value.value) == str(np.shape(weights))


@pytest.mark.parametrize("weights", [[1.0], [[1.0, 2.0]], [1.0, 2.0, 3.0]])
def test_another_number_of_weights_than_values(weights):
    with pytest.raises(InputError, match=r"weights must be an array of shape \(2,\)"):
        Observations.from_triplets([0, 1], [0, 1], [1.0, 2.0], weights=weights)


def test_weights_that_are_not_numbers():
    with pytest.raises(InputError, match="weights must be real numbers"):
        Observations.from_matrix([[1.0]], weights=[["1"]])


def test_arguments_that_do_not_go_together():
    table, wide = pd.DataFrame(LONG), pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    with pytest.raises(InputError, match="standard_error must be left out if weight is given"):
        Observations.from_table(table, weight="w", standard_error="se")
    with pytest.raises(UnknownNameError, match="there is no column 'sd'"):
        Observations.from_table(table, standard_error="sd")
    with pytest.raises(InputError, match="only a long table has a column of weights"):
        Observations.from_table(wide, weight="x")
    with pytest.raises(InputError, match="this table is long"):
        Observations.of(table, np.ones((2, 2)))
    with pytest.raises(InputError, match="Observations have their own weights"):
        Observations.of(weighted(), W)
