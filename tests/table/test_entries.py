"""The order of entries, against one sort of all cells."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from fillrank.errors import InputError
from fillrank.table.entries import Entries, compact_floats, compress, group_by_row, transpose
from fillrank.table.frames import Origin
from fillrank.table.observations import Observations
from fillrank.table.triplets import Triplets
from helpers.strategies import few, triplets
from reference.triplets_twin import in_order


@few
@given(triplets(), st.sampled_from(["error", "mean", "last", "first"]))
def test_entries_are_sorted_as_by_one_sort(entries, duplicates):
    rows, columns, values, (m, n) = entries
    given_data = Triplets(rows, columns, values), np.arange(m), np.arange(n), Origin("sparse")
    expected = in_order(rows, columns, values, duplicates)
    if expected is None:
        with pytest.raises(InputError, match="can have one value"):
            Observations.from_positions(*given_data, duplicates)
        return
    got = Observations.from_positions(*given_data, duplicates)
    assert got.shape == (m, n)
    for name in ("row_index", "column_index", "values"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
    assert got.values.dtype == np.float64
    assert got.row_index.dtype == got.column_index.dtype == np.int32
    assert got.pointers.dtype == np.int64
    assert got.stored_values.dtype == compact_floats(expected.values).dtype


@pytest.mark.parametrize("is_refused", [True, False])
def test_tables_with_and_without_duplicates_are_tested(is_refused):
    find(
        triplets(),
        lambda e: (in_order(*e[:3], "error") is None) == is_refused,
        settings=settings(few, phases=[Phase.generate]),
    )


def test_one_entry():
    got = Observations.from_triplets(["a"], ["x"], [0.1])
    assert (got.pointers.tolist(), got.column_index.tolist()) == ([0, 1], [0])
    assert got.values.tolist() == [0.1]


def test_duplicates_are_listed_by_row_with_values_in_input_order():
    rows = [2, 0, 2, 2, 0, 1, 2, 2]
    columns = [1, 1, 1, 0, 1, 1, 1, 1]
    with pytest.raises(InputError) as caught:
        Observations.from_triplets(rows, columns, [9.5, 0.1, 8, 7, 0.2, 6, 5, 4])
    assert str(caught.value) == (
        "each (row, column) pair can have one value; 2 have more:\n"
        "  row 2, column 1: 9.5, 8, 5, ...\n"
        "  row 0, column 1: 0.1, 0.2\n"
        'Choose the value to use with duplicates="mean", duplicates="last" or duplicates="first".'
    )


def test_rows_that_are_empty_at_either_end_hide_no_duplicate():
    matrix = sp.coo_array(([1.0, 2.0], ([2, 2], [1, 1])), shape=(5, 2))
    with pytest.raises(InputError, match="row 2, column 1: 1, 2"):
        Observations.from_matrix(matrix)
    # The same column in two rows, with empty ones between, is no duplicate.
    apart = sp.coo_array(([1.0, 2.0], ([1, 4], [1, 1])), shape=(5, 2))
    assert Observations.from_matrix(apart).row_index.tolist() == [1, 4]


@few
@given(triplets())
def test_grouping_and_transposition(entries):
    rows, columns, values, (m, n) = entries
    gathered = group_by_row(rows, columns, values, (m, n))
    order = np.argsort(rows, kind="stable")
    np.testing.assert_array_equal(gathered.indices, columns[order])
    np.testing.assert_array_equal(gathered.values, values[order])
    cells = np.unique(rows * n + columns)
    entries = compress(m, cells // n, cells % n, np.arange(cells.size, dtype=np.float32))
    expected = compress(n, cells % n, cells // n, entries.values)
    for got, part in zip(transpose(entries, n), expected, strict=True):
        np.testing.assert_array_equal(got, part)
        assert got.dtype == part.dtype
    again = transpose(transpose(entries, n), m)
    for got, part in zip(again, entries, strict=True):
        np.testing.assert_array_equal(got, part)


def test_read_only_arrays_can_be_sorted():
    parts = [np.array([1, 0]), np.array([0, 1]), np.array([0.1, 0.2])]
    for part in parts:
        part.flags.writeable = False
    assert Observations.from_triplets(*parts).values.tolist() == [0.1, 0.2]
    entries = Entries(np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32), parts[2])
    assert transpose(entries, 2).values.tolist() == [0.2, 0.1]


@pytest.mark.parametrize(
    ("values", "exact"),
    [
        ([1, 2.5, -4.75], True),
        ([2**24, -(2**24)], True),
        ([2**24 + 1], False),
        ([0.1], False),
        ([0.0, -0.0], True),
        ([1e300], False),
        ([1e-300], False),
        ([float(np.float32(0.1))], True),
    ],
)
def test_values_are_float32_only_if_exact(values, exact):
    values = np.array(values, dtype=np.float64)
    with np.errstate(all="raise"):
        narrow = compact_floats(values)
    assert narrow.dtype == (np.float32 if exact else np.float64)
    np.testing.assert_array_equal(narrow.astype(np.float64), values)
    np.testing.assert_array_equal(np.signbit(narrow), np.signbit(values))


def test_one_float64_value_among_a_million_is_noticed():
    values = np.ones(2**20 + 5)
    values[-1] = 0.1
    observations = Observations.from_matrix(values[np.newaxis])
    assert observations.stored_values.dtype == np.float64
    assert observations.values[-1] == 0.1


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_both_precisions_have_the_same_interface(kind):
    values = np.array([[1.0, np.nan, 3.0], [0.5, 2.0, np.nan]]) * (1 if kind == np.float32 else 0.1)
    observations = Observations.from_matrix(values)
    assert observations.stored_values.dtype == kind
    assert observations.values.dtype == np.float64
    for entries in (observations.by_row(), observations.by_column()):
        assert entries.values.dtype == np.float64
    part = observations[[0, 3]]
    assert part.values.tolist() == [values[0, 0], values[1, 1]]
    assert part.row_index.tolist() == [0, 1]
    assert part.pointers.tolist() == [0, 1, 2]
