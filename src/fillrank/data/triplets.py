"""Triplets (row, column, value) in order: sorted, each pair once."""

from typing import Literal, NamedTuple

import numpy as np

from fillrank.data.names import SHOWN, factorize, written
from fillrank.errors import InputError

Duplicates = Literal["error", "mean", "last", "first"]
DUPLICATES = ("error", "mean", "last", "first")


class Triplets(NamedTuple):
    """Positions and values of entries."""

    row_index: np.ndarray
    column_index: np.ndarray
    values: np.ndarray


def number_names(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray
) -> tuple[Triplets, np.ndarray, np.ndarray]:
    """Turn names into positions; return triplets, row labels and column labels."""
    if values.ndim != 1:
        raise InputError(f"values must be one-dimensional; got shape {values.shape}.")
    if not len(rows) == len(columns) == len(values):
        raise InputError(
            "rows, columns and values must be of one length; "
            f"got {len(rows)}, {len(columns)} and {len(values)}."
        )
    row_index, row_labels = factorize(rows, "row")
    column_index, column_labels = factorize(columns, "column")
    return Triplets(row_index, column_index, values), row_labels, column_labels


def put_in_order(
    triplets: Triplets, row_labels: np.ndarray, column_labels: np.ndarray, duplicates: Duplicates
) -> Triplets:
    """Drop missing values, judge the others, sort by row and column, keep each pair once."""
    if duplicates not in DUPLICATES:
        raise InputError(
            f"duplicates must be one of {', '.join(map(repr, DUPLICATES))}, "
            f"got {duplicates!r} instead."
        )
    triplets = _without_missing(triplets)
    _check_finite(triplets, row_labels, column_labels)
    triplets, is_first = _sort(triplets, len(column_labels))
    if not is_first.all():
        if duplicates == "error":
            raise InputError(_duplicates_message(triplets, is_first, row_labels, column_labels))
        triplets = _merge(triplets, is_first, duplicates)
    rows, columns, values = triplets
    return Triplets(rows.astype(np.int32), columns.astype(np.int32), values)


def _without_missing(triplets: Triplets) -> Triplets:
    missing = np.isnan(triplets.values)
    if missing.all():
        raise InputError("at least one value must be observed; here all are missing.")
    return Triplets(*(part[~missing] for part in triplets)) if missing.any() else triplets


def _check_finite(triplets: Triplets, row_labels: np.ndarray, column_labels: np.ndarray) -> None:
    infinite = np.flatnonzero(np.isinf(triplets.values))
    if len(infinite):
        first = infinite[0]
        row = written(row_labels[triplets.row_index[first]])
        column = written(column_labels[triplets.column_index[first]])
        raise InputError(
            f"values must be finite; got {len(infinite)} infinite, the first in row {row}, column "
            f"{column}. Replace them by NaN if they are missing."
        )


def _sort(triplets: Triplets, n_columns: int) -> tuple[Triplets, np.ndarray]:
    """Sort; and mark the first entry of each (row, column) pair."""
    rows, columns, values = triplets
    cells = rows.astype(np.int64) * n_columns + columns
    if (cells[1:] > cells[:-1]).all():
        return Triplets(rows, columns, values.copy()), np.ones(len(cells), dtype=bool)
    order = np.argsort(cells)
    is_first = _changes(cells[order])
    if not is_first.all():
        # Only duplicates need the slower sort that keeps their order.
        order = np.argsort(cells, kind="stable")
    return Triplets(rows[order], columns[order], values[order]), is_first


def _changes(cells: np.ndarray) -> np.ndarray:
    return np.concatenate(([True], cells[1:] != cells[:-1]))


def _merge(triplets: Triplets, is_first: np.ndarray, duplicates: Duplicates) -> Triplets:
    starts = np.flatnonzero(is_first)
    stops = np.append(starts[1:], len(is_first))
    if duplicates == "mean":
        values = np.add.reduceat(triplets.values, starts) / (stops - starts)
    else:
        values = triplets.values[starts if duplicates == "first" else stops - 1]
    return Triplets(triplets.row_index[starts], triplets.column_index[starts], values)


def _duplicates_message(
    triplets: Triplets, is_first: np.ndarray, row_labels: np.ndarray, column_labels: np.ndarray
) -> str:
    group = np.cumsum(is_first) - 1
    starts = np.flatnonzero(is_first)
    repeated = np.flatnonzero(np.bincount(group) > 1)
    shown = []
    for start in starts[repeated[:SHOWN]]:
        row = written(row_labels[triplets.row_index[start]])
        column = written(column_labels[triplets.column_index[start]])
        values = triplets.values[group == group[start]]
        listed = ", ".join(f"{value:g}" for value in values[:SHOWN])
        more = ", ..." if len(values) > SHOWN else ""
        shown.append(f"  row {row}, column {column}: {listed}{more}")
    return (
        f"each (row, column) pair may have one value; {len(repeated)} have more:\n"
        + "\n".join(shown)
        + '\nSay which one to use by duplicates="mean", "last" or "first".'
    )
