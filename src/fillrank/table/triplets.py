"""Triplets (row, column, value) in order: sorted, each pair once."""

from typing import Literal, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.runtime.memory import check_room
from fillrank.table.entries import Entries
from fillrank.table.labels import SHOWN, factorize, written
from fillrank.table.narrow import narrowed
from fillrank.table.ordering import gather, turned

Duplicates = Literal["error", "mean", "last", "first"]
# Memory to sort an entry, and to find its labels among the others before that; measured.
BYTES_TO_SORT, _BYTES_TO_ENCODE = 32, 64
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
    _check_memory(_BYTES_TO_ENCODE + BYTES_TO_SORT, len(values))
    row_index, row_labels = factorize(rows, "row")
    column_index, column_labels = factorize(columns, "column")
    return Triplets(row_index, column_index, values), row_labels, column_labels


def gather_columns(
    triplets: Triplets, row_labels: np.ndarray, column_labels: np.ndarray
) -> Entries:
    """Drop missing values, judge the others, and gather them by column.

    This is the first half of a sort, after which the triplets need not be there any more: whoever
    has many of them lets them go before `put_in_order` does the second.
    """
    _check_memory(BYTES_TO_SORT, len(triplets.values))
    triplets = _without_missing(triplets)
    _check_finite(triplets, row_labels, column_labels)
    rows, columns, values = triplets
    return gather(columns, rows, narrowed(values), (len(column_labels), len(row_labels)))


def _check_memory(n_bytes_each: int, n_entries: int) -> None:
    check_room(
        n_bytes_each * n_entries,
        f"a table of {n_entries:,} entries",
        "Use fewer of them; or save them as a long table in Parquet, which is read in batches.",
    )


def put_in_order(
    by_column: Entries, row_labels: np.ndarray, column_labels: np.ndarray, duplicates: Duplicates
) -> Entries:
    """Gather by row what was gathered by column: then columns ascend; keep each pair once."""
    if duplicates not in DUPLICATES:
        raise InputError(
            f"duplicates must be one of {', '.join(map(repr, DUPLICATES))}, "
            f"got {duplicates!r} instead."
        )
    entries = turned(by_column, len(row_labels))
    is_first = _changes(entries)
    if is_first.all():
        return entries
    starts = np.flatnonzero(is_first)
    if duplicates == "error":
        raise InputError(_duplicates_message(entries, starts, row_labels, column_labels))
    return _merge(entries, starts, duplicates)


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


def _changes(entries: Entries) -> np.ndarray:
    """Mark the first entry of each (row, column) pair."""
    is_first = np.ones(entries.indices.size, dtype=bool)
    np.not_equal(entries.indices[1:], entries.indices[:-1], out=is_first[1:])
    begins = entries.pointers[:-1]
    is_first[begins[begins < is_first.size]] = True
    return is_first


def _merge(entries: Entries, starts: np.ndarray, duplicates: Duplicates) -> Entries:
    pointers, indices, values = entries
    stops = np.append(starts[1:], indices.size)
    if duplicates == "mean":
        values = np.add.reduceat(values.astype(np.float64), starts) / (stops - starts)
    else:
        values = values[starts if duplicates == "first" else stops - 1]
    return Entries(np.searchsorted(starts, pointers), indices[starts], narrowed(values))


def _duplicates_message(
    entries: Entries, starts: np.ndarray, row_labels: np.ndarray, column_labels: np.ndarray
) -> str:
    counts = np.diff(starts, append=entries.indices.size)
    repeated = np.flatnonzero(counts > 1)
    shown = []
    for start, count in zip(starts[repeated[:SHOWN]], counts[repeated[:SHOWN]], strict=True):
        row = written(row_labels[np.searchsorted(entries.pointers, start, side="right") - 1])
        column = written(column_labels[entries.indices[start]])
        values = entries.values[start : start + min(count, SHOWN)]
        listed = ", ".join(f"{value:g}" for value in values)
        more = ", ..." if count > SHOWN else ""
        shown.append(f"  row {row}, column {column}: {listed}{more}")
    return (
        f"each (row, column) pair may have one value; {len(repeated)} have more:\n"
        + "\n".join(shown)
        + '\nSay which one to use by duplicates="mean", "last" or "first".'
    )
