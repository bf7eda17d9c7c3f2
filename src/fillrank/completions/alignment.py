"""Tables with the labels of another one: which rows and columns are the same, and their entries."""

from dataclasses import replace

import numpy as np

from fillrank.errors import InputError, UnknownNameError
from fillrank.features.new_rows import Axis
from fillrank.table.observations import Observations
from fillrank.table.triplets import Triplets

# Layouts whose rows and columns have positions only.
WITHOUT_LABELS = ("matrix", "sparse")


def align(known: Observations, new: Observations, axis: Axis) -> np.ndarray:
    """The positions that the rows (or columns) of another table have in a known one.

    By label, or by position if there are no labels; then their numbers must be equal. Labels are
    matched by position only if the known labels are default numbers, of the same number and not
    equal.
    """
    side = 0 if axis == "rows" else 1
    n = known.shape[side]
    by_position = np.arange(n)
    if new.origin.layout in WITHOUT_LABELS:
        if new.shape[side] != n:
            raise InputError(
                f"an array without labels must have all {n} {axis}, in their order; got "
                f"{new.shape[side]}. Pad it with NaN, or give a table with labels."
            )
        return by_position
    find = known.row_positions if axis == "rows" else known.column_positions
    try:
        return find((new.row_labels, new.column_labels)[side])
    except UnknownNameError:
        numbered = np.array_equal((known.row_labels, known.column_labels)[side], by_position)
        if known.origin.layout in WITHOUT_LABELS and numbered and new.shape[side] == n:
            return by_position
        raise


def at_known_positions(known: Observations, table: Observations) -> Observations:
    """The values of a table in the rows and columns of a known one."""
    triplets = Triplets(
        align(known, table, "rows")[table.row_index],
        align(known, table, "columns")[table.column_index],
        table.values,
        cells=table.cells,
    )
    return Observations.from_positions(
        triplets,
        known.row_labels,
        known.column_labels,
        known.origin,
        column_types=known.column_types,
        intervals=table.intervals,
    )


def with_known_side(
    known: Observations, new: Observations, positions: np.ndarray, axis: Axis
) -> Observations:
    """New rows (or columns) as a table with all known columns (or rows), which are at ``positions``."""
    if axis == "rows":
        labels, types = (new.row_labels, known.column_labels), known.column_types
        places = new.row_index, positions[new.column_index]
    else:
        labels, types = (known.row_labels, new.column_labels), new.column_types
        places = positions[new.row_index], new.column_index
    if new.n_entries == 0:
        return Observations.without_entries(*labels, new.origin, types)
    triplets = Triplets(*places, new.values, new.weights, new.cells)
    return Observations.from_positions(
        triplets, *labels, new.origin, column_types=types, intervals=new.intervals
    )


def merged(
    old: Observations, more: Observations, rows: np.ndarray, columns: np.ndarray
) -> Observations:
    """A table with more entries, which replace old ones of the same cells.

    ``rows`` and ``columns`` are the positions that those of ``more`` have in the old table.
    """
    weights = None
    if old.weights is not None or more.weights is not None:
        parts = (
            np.ones(len(each)) if each.weights is None else each.weights for each in (old, more)
        )
        weights = np.concatenate([*parts])
    cells, intervals = _merged_intervals(old, more)
    triplets = Triplets(
        np.concatenate([old.row_index, rows[more.row_index]]),
        np.concatenate([old.column_index, columns[more.column_index]]),
        np.concatenate([old.values, more.values]),
        weights,
        cells,
    )
    together = Observations.from_positions(
        triplets,
        old.row_labels,
        old.column_labels,
        old.origin,
        duplicates="last",
        column_types=old.column_types,
        intervals=intervals,
    )
    return replace(together, scale_before_averaging=old.scale_before_averaging, notes=old.notes)


def _merged_intervals(
    old: Observations, more: Observations
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The cells of the entries of two tables, one after the other, and all of their intervals."""
    if old.cells is None and more.cells is None:
        return None, None
    cells, intervals, n_intervals = [], [], 0
    for each in (old, more):
        if each.cells is None or each.intervals is None:
            cells.append(np.full(len(each), -1, np.int32))
            continue
        cells.append(np.where(each.cells < 0, each.cells, each.cells + n_intervals))
        intervals.append(each.intervals)
        n_intervals += len(each.intervals)
    return np.concatenate(cells).astype(np.int32), np.concatenate(intervals)
