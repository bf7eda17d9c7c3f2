"""Intervals of entries and types of columns: with their values through every conversion."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from fillrank import Observations
from fillrank.completions.alignment import at_known_positions, merged, with_known_side
from fillrank.errors import InputError
from fillrank.table.column_types import ColumnType
from fillrank.table.entries import NO_CELLS, compress, group_by_row, rows_of, some_rows, transpose
from fillrank.table.frames import Origin
from fillrank.table.observations import fingerprint
from fillrank.table.triplets import Triplets
from helpers.standard_units import standardised
from helpers.strategies import few, triplets

INTERVALS = np.array([[-np.inf, 0.5], [0.2, 0.4]])
TYPES = (ColumnType(), ColumnType("text", ("no", "yes")))


def table(duplicates="error", rows=(0, 0, 1, 1), columns=(1, 0, 1, 0), cells=(-1, 0, -1, 1)):
    """Column 0 has limits, column 1 codes; the triplets are not sorted."""
    given_triplets = Triplets(
        np.array(rows),
        np.array(columns),
        np.array([1.0, 0.5, 0.0, 0.3]),
        cells=np.array(cells, dtype=np.int32),
    )
    return Observations.from_positions(
        given_triplets,
        np.arange(2),
        np.array(["a", "b"], dtype=object),
        Origin("triplets"),
        duplicates,
        column_types=TYPES,
        intervals=INTERVALS,
    )


@few
@given(triplets())
def test_cells_are_sorted_with_their_values(entries):
    rows, columns, values, (m, n) = entries
    cells = np.arange(values.size, dtype=np.int32)
    grouped = group_by_row(rows, columns, values, (m, n), cells=cells)
    again = group_by_row(rows, columns, cells, (m, n))
    np.testing.assert_array_equal(grouped.cells, again.values)
    np.testing.assert_array_equal(transpose(grouped, n).cells, transpose(again, n).values)
    np.testing.assert_array_equal(rows_of(grouped, slice(0, m)).cells, grouped.cells)
    np.testing.assert_array_equal(some_rows(grouped, np.arange(m)).cells, grouped.cells)
    by_compress = compress(m, rows, columns, values, cells=cells)
    np.testing.assert_array_equal(by_compress.cells, compress(m, rows, columns, cells).values)
    assert {each.cells.dtype for each in (grouped, by_compress)} == {np.dtype(np.int32)}


def test_exact_entries_have_an_empty_array():
    exact = Observations.from_matrix([[1.0, np.nan], [2.0, 3.0]])
    assert exact.cells is exact.intervals is exact.column_types is None
    assert exact.by_row().cells is NO_CELLS
    assert exact.by_column().cells is NO_CELLS
    assert standardised(exact)[0].cells.size == 0


def test_of_observations():
    data = table()
    assert data.values.tolist() == [0.5, 1.0, 0.3, 0.0]
    assert data.cells.tolist() == [0, -1, 1, -1]
    assert data.by_row().cells.tolist() == [0, -1, 1, -1]
    assert data.by_column().cells.tolist() == [0, 1, -1, -1]
    assert data.cells.dtype == data.by_column().cells.dtype == np.int32
    assert [each.cells.tolist() for each in standardised(data)] == [[0, -1, 1, -1], [0, 1, -1, -1]]


def test_cells_that_are_all_exact_are_none():
    assert table(cells=(-1, -1, -1, -1)).cells is None
    assert table(cells=(-1, -1, -1, -1)).intervals is None


def test_selections_carry_them():
    data = replace(table(), notes=("A note.",))
    part = data[[2, 1]]
    assert part.cells.tolist() == [-1, 1]
    for each in (part, *data.split(0.5, random_state=0)):
        assert each.intervals is INTERVALS
        assert each.column_types == TYPES
        assert each.notes == ("A note.",)


def test_tables_with_categories_or_limits_have_no_rating_scale():
    X = np.tile([1.0, 2.0, 3.0], 20).reshape(20, 3)
    data = Observations.from_matrix(X)
    assert data.value_range() == (1.0, 3.0)
    assert replace(data, column_types=(ColumnType("integer"),) * 3).value_range() == (1.0, 3.0)
    coded = ColumnType("category", ("x", "y", "z", "w"))
    assert replace(data, column_types=(coded,) * 3).value_range() is None


def test_fingerprints_depend_on_them():
    data = table()
    others = [
        data,
        replace(data, cells=np.array([1, -1, 1, -1], np.int32)),
        replace(data, intervals=INTERVALS + 0.1),
        replace(data, cells=None, intervals=None),
        replace(data, column_types=None),
        replace(data, column_types=(ColumnType(), ColumnType("text", ("yes", "no")))),
    ]
    assert len({fingerprint(each) for each in others}) == len(others)
    assert fingerprint(replace(data, notes=("A note.",))) == fingerprint(data)


@pytest.mark.parametrize(("duplicates", "cells"), [("first", [0, -1]), ("last", [1, -1])])
def test_duplicates_are_chosen_with_their_intervals(duplicates, cells):
    data = table(duplicates, rows=(0, 0, 0, 0))
    assert data.cells.tolist() == cells
    assert data.values.tolist() == ([0.5, 1.0] if duplicates == "first" else [0.3, 0.0])


def test_there_is_no_mean_of_limits_or_codes():
    with pytest.raises(InputError, match=r"row 0, column 'a': only numbers have a mean.*a limit"):
        table("mean", rows=(0, 0, 1, 0))
    with pytest.raises(InputError, match=r"row 0, column 'b'.*is a category.*duplicates=.last."):
        table("mean", rows=(0, 0, 0, 1))


def test_a_mean_of_others_leaves_limits_and_codes():
    data = table("mean", rows=(0, 0, 1, 0), columns=(1, 0, 1, 0), cells=(-1, -1, -1, -1))
    assert data.values.tolist() == [0.4, 1.0, 0.0]
    more = Triplets(
        np.array([0, 0, 1]),
        np.array([0, 0, 0]),
        np.array([1.0, 2.0, 0.5]),
        cells=np.array([-1, -1, 0], np.int32),
    )
    labels = np.arange(2), np.arange(1)
    data = Observations.from_positions(
        more, *labels, Origin("triplets"), "mean", intervals=INTERVALS
    )
    assert data.values.tolist() == [1.5, 0.5]
    assert data.cells.tolist() == [-1, 0]


def test_tables_are_aligned_with_them():
    data = table()
    again = at_known_positions(data, data)
    assert again.cells.tolist() == data.cells.tolist()
    assert again.column_types == TYPES
    swapped = with_known_side(data, data, np.array([1, 0]), "rows")
    assert swapped.cells.tolist() == [-1, 0, -1, 1]
    assert swapped.column_types == TYPES
    assert swapped.intervals is INTERVALS


def test_new_entries_bring_their_own_intervals():
    old, both = table(), np.arange(2)
    more = replace(
        table()[[0, 1]], cells=np.array([0, -1], np.int32), intervals=np.array([[9.0, np.inf]])
    )
    found = merged(old, more, both, both)
    ends = [None if cell < 0 else found.intervals[cell].tolist() for cell in found.cells]
    assert ends == [[9.0, np.inf], None, [0.2, 0.4], None]
    exact = replace(old, cells=None, intervals=None)
    found = merged(exact, more, both, both)
    ends = [None if cell < 0 else found.intervals[cell].tolist() for cell in found.cells]
    assert ends == [[9.0, np.inf], None, None, None]
    assert merged(exact, exact, both, both).cells is None
