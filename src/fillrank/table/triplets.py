"""Triplets (row, column, value): from labels, arrays and sparse matrices to sorted, unique entries."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from fillrank.errors import InputError, Setting, Text
from fillrank.runtime.memory import check_memory
from fillrank.table.entries import (
    NO_CELLS,
    NO_WEIGHTS,
    Entries,
    compact_floats,
    group_by_row,
    transpose,
)
from fillrank.table.intervals import number_intervals
from fillrank.table.labels import SHOWN, factorize, format_label
from fillrank.table.weights import check_weights, weights_from_errors
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
    """Positions and values of entries; their weights, and their cells as in `Entries`, if any."""

    row_index: np.ndarray
    column_index: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None = None
    cells: np.ndarray | None = None


def encode_triplets(
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray | None = None,
    upper: np.ndarray | None = None,
) -> tuple[Triplets, np.ndarray, np.ndarray]:
    """Replace labels by positions; return triplets, row labels and column labels."""
    if values.ndim != 1:
        raise InputError(f"values must be one-dimensional; got shape {values.shape}.")
    if not len(rows) == len(columns) == len(values):
        raise InputError(
            "rows, columns and values must have the same length; "
            f"got {len(rows)}, {len(columns)} and {len(values)}."
        )
    for name, given in (("weights", weights), ("upper", upper)):
        if given is not None and given.shape != values.shape:
            raise InputError(
                place=Setting(name),
                allowed=f"an array of shape {values.shape}, one for each value",
                value=given.shape,
            )
    _check_size(_BYTES_TO_ENCODE + _BYTES_TO_SORT, len(values))
    row_index, row_labels = factorize(rows, "row")
    column_index, column_labels = factorize(columns, "column")
    return Triplets(row_index, column_index, values, weights), row_labels, column_labels


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


def dense_matrix(X: Any, name: str = "X") -> np.ndarray:
    """Convert to an array with NaN where X is masked; ``name`` is for messages."""
    if isinstance(X, np.ndarray) and X.dtype != np.float64:
        check_memory(8 * X.size, f"a matrix of shape {X.shape} in float64", _SIZE_ADVICE)
    matrix = as_real(np.ma.getdata(X) if isinstance(X, np.ma.MaskedArray) else X, name)
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


def numbers_of_cells(
    numbers: Any, name: str, triplets: Triplets, shape: tuple[int, int]
) -> np.ndarray:
    """Find the numbers of entries in an array, or a sparse matrix, of the shape of their matrix.

    ``name`` is that of the argument.
    """
    given = np.shape(numbers)
    if given != shape:
        raise InputError(
            place=Setting(name),
            allowed=f"an array of the shape of the table, {shape}",
            value=given,
        )
    rows, columns = triplets.row_index, triplets.column_index
    if not sp.issparse(numbers):
        of_cells: np.ndarray = dense_matrix(numbers, name)[rows, columns]
        return of_cells
    stored = stored_triplets(numbers)
    matrix = sp.csr_matrix((stored.values, (stored.row_index, stored.column_index)), shape)
    return np.asarray(matrix[rows, columns]).ravel()


def with_intervals(
    triplets: Triplets, upper: np.ndarray, row_labels: np.ndarray, column_labels: np.ndarray
) -> tuple[Triplets, np.ndarray | None]:
    """Triplets with cells, and the intervals, from the lower ends of values and the upper ones."""
    cell = _cell_namer(triplets, row_labels, column_labels)
    values, cells, intervals = number_intervals(triplets.values, upper, cell)
    return triplets._replace(values=values, cells=cells), intervals


def errors_to_weights(
    triplets: Triplets, row_labels: np.ndarray, column_labels: np.ndarray
) -> Triplets:
    """Replace standard errors, which the triplets have in place of weights, by weights."""
    triplets = _without_missing(triplets)
    assert triplets.weights is not None
    cell = _cell_namer(triplets, row_labels, column_labels)
    return triplets._replace(weights=weights_from_errors(triplets.weights, cell))


def group_by_column(
    triplets: Triplets,
    row_labels: np.ndarray,
    column_labels: np.ndarray,
    may_be_empty: bool = False,
) -> Entries:
    """Drop missing values, check the others, and group them by column.

    This is the first half of a sort. The caller can free the triplets before `sort_by_row` does the
    second half. Without any value an error is raised, unless the table ``may_be_empty``.
    """
    _check_size(_BYTES_TO_SORT, len(triplets.values))
    triplets = _without_missing(triplets, may_be_empty)
    cell = _cell_namer(triplets, row_labels, column_labels)
    _check_finite(triplets.values, cell)
    rows, columns, values, weights, cells = triplets
    if weights is None:
        weights = NO_WEIGHTS
    if cells is None:
        cells = NO_CELLS
    check_weights(weights, cell)
    shape = len(column_labels), len(row_labels)
    return group_by_row(columns, rows, compact_floats(values), shape, weights, cells)


def _check_size(bytes_per_entry: int, n_entries: int) -> None:
    check_memory(
        bytes_per_entry * n_entries,
        f"a table of {n_entries:,} entries",
        "Use fewer of them, or save them as Parquet; long tables in Parquet are read in batches.",
    )


def sort_by_row(
    by_column: Entries,
    row_labels: np.ndarray,
    column_labels: np.ndarray,
    duplicates: Duplicates,
    is_coded: np.ndarray | None = None,
) -> Entries:
    """Sort entries that are grouped by column by row and column; merge or refuse duplicates.

    ``is_coded`` marks columns whose values are codes, which have no mean.
    """
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
    if duplicates == "mean":
        _check_have_means(entries, starts, row_labels, column_labels, is_coded)
    return _merge(entries, starts, duplicates)


def _check_have_means(
    entries: Entries,
    starts: np.ndarray,
    row_labels: np.ndarray,
    column_labels: np.ndarray,
    is_coded: np.ndarray | None,
) -> None:
    """Raise InputError if duplicates are not all exact numbers."""
    counts = np.diff(starts, append=entries.indices.size)
    has_limits = np.zeros(entries.indices.size, dtype=bool)
    if entries.cells.size:
        has_limits = entries.cells >= 0
    is_code = np.zeros_like(has_limits) if is_coded is None else is_coded[entries.indices]
    wrong = np.flatnonzero((has_limits | is_code) & np.repeat(counts > 1, counts))
    if not wrong.size:
        return
    first = int(wrong[0])
    row = np.searchsorted(entries.pointers, first, side="right") - 1
    cell = format_label(row_labels[row]), format_label(column_labels[entries.indices[first]])
    what = "a category" if is_code[first] else "a limit or an interval"
    raise InputError(
        "only numbers have a mean, and one of several values of this cell is " + what,
        place=f"row {cell[0]}, column {cell[1]}",
        advice=(
            "Choose one of them with ",
            Setting("duplicates", "last"),
            " or ",
            Setting("duplicates", "first"),
            ".",
        ),
    )


def _without_missing(triplets: Triplets, may_be_empty: bool = False) -> Triplets:
    missing = np.isnan(triplets.values)
    if missing.all() and not may_be_empty:
        raise InputError("at least one value must be observed; all are missing.")
    if not missing.any():
        return triplets
    rows, columns, values, weights, cells = triplets
    kept = ~missing
    weights = None if weights is None else weights[kept]
    cells = None if cells is None else cells[kept]
    return Triplets(rows[kept], columns[kept], values[kept], weights, cells)


def _cell_namer(
    triplets: Triplets, row_labels: np.ndarray, column_labels: np.ndarray
) -> Callable[[int], str]:
    """A function that returns the row and column of an entry as text, from its position."""

    def cell(position: int) -> str:
        row = format_label(row_labels[triplets.row_index[position]])
        column = format_label(column_labels[triplets.column_index[position]])
        return f"row {row}, column {column}"

    return cell


def _check_finite(values: np.ndarray, cell: Callable[[int], str]) -> None:
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        codes = [f"{value:g}" for value in np.unique(values[infinite])]
        raise InputError(
            f"values must be finite; got {len(infinite)} infinite, the first in {cell(infinite[0])}",
            advice=(
                "If they are missing, replace them by NaN, or set ",
                Setting("missing_values", codes),
                ".",
            ),
        )


def _mark_first(entries: Entries) -> np.ndarray:
    """Mark the first entry of each (row, column) pair."""
    is_first = np.ones(entries.indices.size, dtype=bool)
    np.not_equal(entries.indices[1:], entries.indices[:-1], out=is_first[1:])
    row_starts = entries.pointers[:-1]
    is_first[row_starts[row_starts < is_first.size]] = True
    return is_first


def _merge(entries: Entries, starts: np.ndarray, duplicates: Duplicates) -> Entries:
    pointers, indices, values, weights, cells = entries
    stops = np.append(starts[1:], indices.size)
    chosen = stops - 1 if duplicates == "last" else starts
    cells = cells[chosen] if cells.size else cells
    if duplicates == "mean" and weights.size:
        values, weights = _weighted_means(values, weights, starts, stops)
    elif duplicates == "mean":
        values = np.add.reduceat(values.astype(np.float64), starts) / (stops - starts)
    else:
        values = values[chosen]
        weights = weights[chosen] if weights.size else weights
    pointers = np.searchsorted(starts, pointers)
    return Entries(pointers, indices[starts], compact_floats(values), weights, cells)


def _weighted_means(
    values: np.ndarray, weights: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The weighted means of groups, and the sums of their weights: the precisions of the means."""
    counts = stops - starts
    totals = np.add.reduceat(weights, starts)
    firsts = values[starts].astype(np.float64)
    # Differences from the first value, so that the mean of one value is exactly this value.
    differences = (values - np.repeat(firsts, counts)) * (weights / np.repeat(totals, counts))
    return firsts + np.add.reduceat(differences, starts), totals


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
