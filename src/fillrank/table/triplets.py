"""Triplets (row, column, value): from labels, arrays and sparse matrices to sorted, unique entries."""

from typing import Any, Literal, NamedTuple

import numpy as np

from fillrank.errors import InputError, Setting, Text
from fillrank.runtime.memory import check_memory
from fillrank.table.entries import Entries, compact_floats, group_by_row, transpose
from fillrank.table.labels import SHOWN, factorize, format_label
from fillrank.validation import as_real

Duplicates = Literal["error", "mean", "last", "first"]
DUPLICATES = ("error", "mean", "last", "first")
DUPLICATES_ADVICE: Text = (
    "Choose the value to use with ",
    Setting("duplicates", "mean"),
    ", ",
    Setting("duplicates", "last"),
    " or ",
    Setting("duplicates", "first"),
    ".",
)

# Memory to sort an entry, to encode its labels before that, and for the position and the value of an
# observed cell; measured.
_BYTES_TO_SORT, _BYTES_TO_ENCODE, _BYTES_PER_CELL = 32, 64, 26
_SIZE_ADVICE = "Use some of its rows, or a machine with more memory."
# Positions are 32-bit integers.
_MAX_SIDE = 2**31 - 1
# A file that declares more rows and columns than this must have entries in many of them. Otherwise a
# small forged file could claim all memory.
_MANY_LABELS = 10_000_000
_LABELS_PER_ENTRY = 20
_BYTES_PER_LABEL = 24  # of a row or column without entries


class Triplets(NamedTuple):
    """Positions and values of entries."""

    row_index: np.ndarray
    column_index: np.ndarray
    values: np.ndarray


def encode_triplets(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray
) -> tuple[Triplets, np.ndarray, np.ndarray]:
    """Replace labels by positions; return triplets, row labels and column labels."""
    if values.ndim != 1:
        raise InputError(f"values must be one-dimensional; got shape {values.shape}.")
    if not len(rows) == len(columns) == len(values):
        raise InputError(
            "rows, columns and values must have the same length; "
            f"got {len(rows)}, {len(columns)} and {len(values)}."
        )
    _check_size(_BYTES_TO_ENCODE + _BYTES_TO_SORT, len(values))
    row_index, row_labels = factorize(rows, "row")
    column_index, column_labels = factorize(columns, "column")
    return Triplets(row_index, column_index, values), row_labels, column_labels


def check_shape(shape: tuple[int, ...]) -> None:
    """Raise InputError if a shape is not that of a matrix, or is empty or too large."""
    if len(shape) != 2:
        raise InputError(f"a matrix must have two dimensions; got {len(shape)} (shape {shape}).")
    if 0 in shape:
        raise InputError(f"a matrix must have rows and columns; got shape {shape}.")
    if max(shape) > _MAX_SIDE:
        raise InputError(
            f"a matrix can have up to {_MAX_SIDE:,} rows and as many columns; got shape {shape}."
        )


def check_declared_shape(shape: tuple[int, int], n_entries: int) -> None:
    """Raise InputError if a file declares a shape that is far too large for its entries.

    Every row and column takes memory, also an empty one, so a few bytes could claim all of it.
    """
    check_shape(shape)
    limit = max(_MANY_LABELS, _LABELS_PER_ENTRY * n_entries)
    if sum(shape) > limit:
        raise InputError(
            f"the file declares a matrix of {shape[0]:,} x {shape[1]:,} with {n_entries:,} entries; "
            f"with so few entries, rows and columns together can be at most {limit:,}. If the shape is "
            "correct, load the sparse matrix with scipy and pass it to Observations.from_matrix."
        )


def dense_matrix(X: Any) -> np.ndarray:
    """Convert to an array with NaN where X is masked."""
    if isinstance(X, np.ndarray) and X.dtype != np.float64:
        check_memory(8 * X.size, f"a matrix of shape {X.shape} in float64", _SIZE_ADVICE)
    matrix = as_real(np.ma.getdata(X) if isinstance(X, np.ma.MaskedArray) else X, "X")
    mask = np.ma.getmask(X)
    return matrix if mask is np.ma.nomask else np.where(mask, np.nan, matrix)


def observed_cells(matrix: np.ndarray) -> Triplets:
    """The cells of an array that are not NaN."""
    check_shape(matrix.shape)
    observed = ~np.isnan(matrix)
    n_entries = int(np.count_nonzero(observed))
    check_memory(
        (_BYTES_PER_CELL + _BYTES_TO_SORT) * n_entries,
        f"the {n_entries:,} entries of a matrix of shape {matrix.shape}",
        _SIZE_ADVICE,
    )
    row_index, column_index = np.nonzero(observed)
    return Triplets(row_index, column_index, matrix[row_index, column_index])


def stored_triplets(X: Any) -> Triplets:
    """All elements that a sparse matrix stores, including zeros and duplicates."""
    check_shape(X.shape)
    check_memory(
        _BYTES_PER_LABEL * sum(X.shape),
        f"the labels and positions of {X.shape[0]:,} rows and {X.shape[1]:,} columns",
        "Remove empty rows and columns.",
    )
    if X.format == "dia":
        return _stored_on_diagonals(X)
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X)
    X = X.tocoo()
    for axis, index, size in zip(("row", "column"), (X.row, X.col), X.shape, strict=True):
        if index.size and not 0 <= index.min() <= index.max() < size:
            raise InputError(
                f"the sparse matrix is damaged: each {axis} must be from 0 to {size - 1}; they are from "
                f"{index.min()} to {index.max()}."
            )
    return Triplets(X.row, X.col, as_real(X.data, "X"))


def _check_compressed(X: Any) -> None:
    """Raise InputError if pointers or indices are out of bounds, which scipy does not check."""
    height, width = X.blocksize if X.format == "bsr" else (1, 1)
    n_major, n_minor = X.shape if X.format != "csc" else X.shape[::-1]
    pointers, indices = X.indptr, X.indices
    is_valid = (
        pointers.size == n_major // height + 1
        and pointers[0] == 0
        and (pointers[1:] >= pointers[:-1]).all()  # differences of unsigned numbers would wrap
        and pointers[-1] <= min(len(indices), len(X.data))
    )
    if not is_valid:
        raise InputError(
            "the sparse matrix is damaged: its indptr must ascend from 0 to the number of its entries."
        )
    n_minor //= width
    if indices.size and not 0 <= indices.min() <= indices.max() < n_minor:
        raise InputError(
            f"the sparse matrix is damaged: its indices must be from 0 to {n_minor - 1}; they are from "
            f"{indices.min()} to {indices.max()}."
        )


def _stored_on_diagonals(X: Any) -> Triplets:
    """The elements of a "dia" matrix; scipy's conversion would drop stored zeros."""
    columns = np.broadcast_to(np.arange(X.data.shape[1]), X.data.shape)
    rows = columns - X.offsets[:, np.newaxis]
    inside = (rows >= 0) & (rows < X.shape[0]) & (columns < X.shape[1])
    return Triplets(rows[inside], columns[inside], as_real(X.data, "X")[inside])


def group_by_column(
    triplets: Triplets, row_labels: np.ndarray, column_labels: np.ndarray
) -> Entries:
    """Drop missing values, check the others, and group them by column.

    This is the first half of a sort. The caller can free the triplets before `sort_by_row` does the
    second half.
    """
    _check_size(_BYTES_TO_SORT, len(triplets.values))
    triplets = _without_missing(triplets)
    _check_finite(triplets, row_labels, column_labels)
    rows, columns, values = triplets
    return group_by_row(
        columns, rows, compact_floats(values), (len(column_labels), len(row_labels))
    )


def _check_size(bytes_per_entry: int, n_entries: int) -> None:
    check_memory(
        bytes_per_entry * n_entries,
        f"a table of {n_entries:,} entries",
        "Use fewer of them, or save them as Parquet; long tables in Parquet are read in batches.",
    )


def sort_by_row(
    by_column: Entries, row_labels: np.ndarray, column_labels: np.ndarray, duplicates: Duplicates
) -> Entries:
    """Sort entries that are grouped by column by row and column; merge or refuse duplicates."""
    if duplicates not in DUPLICATES:
        allowed = f"one of {', '.join(map(repr, DUPLICATES))}"
        raise InputError(place=Setting("duplicates"), allowed=allowed, value=duplicates)
    entries = transpose(by_column, len(row_labels))
    is_first = _mark_first(entries)
    if is_first.all():
        return entries
    starts = np.flatnonzero(is_first)
    if duplicates == "error":
        raise InputError(
            _duplicates_message(entries, starts, row_labels, column_labels),
            advice=DUPLICATES_ADVICE,
            kind="duplicates",
        )
    return _merge(entries, starts, duplicates)


def _without_missing(triplets: Triplets) -> Triplets:
    missing = np.isnan(triplets.values)
    if missing.all():
        raise InputError("at least one value must be observed; all are missing.")
    return Triplets(*(part[~missing] for part in triplets)) if missing.any() else triplets


def _check_finite(triplets: Triplets, row_labels: np.ndarray, column_labels: np.ndarray) -> None:
    infinite = np.flatnonzero(np.isinf(triplets.values))
    if len(infinite):
        first = infinite[0]
        row = format_label(row_labels[triplets.row_index[first]])
        column = format_label(column_labels[triplets.column_index[first]])
        raise InputError(
            f"values must be finite; got {len(infinite)} infinite, the first in row {row}, column "
            f"{column}. Replace them by NaN if they are missing."
        )


def _mark_first(entries: Entries) -> np.ndarray:
    """Mark the first entry of each (row, column) pair."""
    is_first = np.ones(entries.indices.size, dtype=bool)
    np.not_equal(entries.indices[1:], entries.indices[:-1], out=is_first[1:])
    row_starts = entries.pointers[:-1]
    is_first[row_starts[row_starts < is_first.size]] = True
    return is_first


def _merge(entries: Entries, starts: np.ndarray, duplicates: Duplicates) -> Entries:
    pointers, indices, values = entries
    stops = np.append(starts[1:], indices.size)
    if duplicates == "mean":
        values = np.add.reduceat(values.astype(np.float64), starts) / (stops - starts)
    else:
        values = values[starts if duplicates == "first" else stops - 1]
    return Entries(np.searchsorted(starts, pointers), indices[starts], compact_floats(values))


def _duplicates_message(
    entries: Entries, starts: np.ndarray, row_labels: np.ndarray, column_labels: np.ndarray
) -> str:
    counts = np.diff(starts, append=entries.indices.size)
    repeated = np.flatnonzero(counts > 1)
    shown = []
    for start, count in zip(starts[repeated[:SHOWN]], counts[repeated[:SHOWN]], strict=True):
        row = format_label(row_labels[np.searchsorted(entries.pointers, start, side="right") - 1])
        column = format_label(column_labels[entries.indices[start]])
        values = ", ".join(f"{v:g}" for v in entries.values[start : start + min(count, SHOWN)])
        more = ", ..." if count > SHOWN else ""
        shown.append(f"  row {row}, column {column}: {values}{more}")
    heading = f"each (row, column) pair can have one value; {len(repeated)} have more:"
    return "\n".join([heading, *shown])
