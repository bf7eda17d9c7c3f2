"""What is observed in an array, a masked array or a sparse matrix."""

from typing import Any

import numpy as np

from fillrank.errors import InputError
from fillrank.runtime.memory import check_room
from fillrank.table.triplets import BYTES_TO_SORT, Triplets
from fillrank.validation import as_real

# Positions are held in 32 bits.
_MOST_LINES = 2**31 - 1
# A file that names more rows and columns must have entries in many of them: that costs a forger disk.
_MANY_LINES = 10_000_000
_LINES_PER_ENTRY = 20
_BYTES_PER_CELL = 26  # of an observed cell: its position and its value, before they are sorted
_USE_LESS = "Use a part of its rows; or make room, by ending other programs or on a larger machine."
_BYTES_PER_LINE = 24  # of a row or column without any entry


def check_shape(shape: tuple[int, ...]) -> None:
    """Refuse what is no matrix, has no cells, or more rows or columns than can be counted here."""
    if len(shape) != 2:
        raise InputError(f"a matrix must have two dimensions; got {len(shape)} (shape {shape}).")
    if 0 in shape:
        raise InputError(f"a matrix must have rows and columns; got shape {shape}.")
    if max(shape) > _MOST_LINES:
        raise InputError(
            f"a matrix may have up to {_MOST_LINES:,} rows and as many columns; got shape {shape}."
        )


def check_stored_shape(shape: tuple[int, int], n_entries: int) -> None:
    """Refuse the shape of a sparse matrix in a file if its entries do not bear it out.

    Every row and column takes memory, be it empty, so a few bytes could ask for all there is.
    """
    check_shape(shape)
    n_lines = sum(shape)
    if n_lines > max(_MANY_LINES, _LINES_PER_ENTRY * n_entries):
        raise InputError(
            f"the file says that the matrix is {shape[0]:,} x {shape[1]:,}, and has {n_entries:,} "
            f"entries; with so few there may be {max(_MANY_LINES, _LINES_PER_ENTRY * n_entries):,} rows "
            "and columns together. If the shape is right, make the sparse matrix yourself, by scipy, "
            "and give that to Observations.from_matrix."
        )


def dense_matrix(X: Any) -> np.ndarray:
    """Give an array with NaN where X is masked."""
    if isinstance(X, np.ndarray) and X.dtype != np.float64:
        check_room(8 * X.size, f"a matrix of shape {X.shape} in float64", _USE_LESS)
    matrix = as_real(np.ma.getdata(X) if isinstance(X, np.ma.MaskedArray) else X, "X")
    mask = np.ma.getmask(X)
    return matrix if mask is np.ma.nomask else np.where(mask, np.nan, matrix)


def observed_cells(matrix: np.ndarray) -> Triplets:
    """Give the cells of an array that are not NaN."""
    check_shape(matrix.shape)
    observed = ~np.isnan(matrix)
    n_entries = int(np.count_nonzero(observed))
    check_room(
        (_BYTES_PER_CELL + BYTES_TO_SORT) * n_entries,
        f"the entries of a matrix of shape {matrix.shape}, {n_entries:,} of them,",
        _USE_LESS,
    )
    row_index, column_index = np.nonzero(observed)
    return Triplets(row_index, column_index, matrix[row_index, column_index])


def stored_triplets(X: Any) -> Triplets:
    """Give what a sparse matrix stores, zeros and duplicates included."""
    check_shape(X.shape)
    check_room(
        _BYTES_PER_LINE * sum(X.shape),
        f"the names and positions of {X.shape[0]:,} rows and {X.shape[1]:,} columns",
        "Leave out those that are empty.",
    )
    if X.format == "dia":
        return _stored_on_diagonals(X)
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X)
    X = X.tocoo()
    for what, index, size in zip(("row", "column"), (X.row, X.col), X.shape, strict=True):
        if index.size and not 0 <= index.min() <= index.max() < size:
            raise InputError(
                f"the sparse matrix is damaged: each {what} must be from 0 to {size - 1}; they are from "
                f"{index.min()} to {index.max()}."
            )
    return Triplets(X.row, X.col, as_real(X.data, "X"))


def _check_compressed(X: Any) -> None:
    """Refuse pointers and indices that lead out of a matrix: scipy's loops follow them anywhere."""
    height, width = X.blocksize if X.format == "bsr" else (1, 1)
    n_major, n_minor = X.shape if X.format != "csc" else X.shape[::-1]
    pointers, indices = X.indptr, X.indices
    sound = (
        pointers.size == n_major // height + 1
        and pointers[0] == 0
        and (pointers[1:] >= pointers[:-1]).all()  # differences of unsigned numbers would wrap
        and pointers[-1] <= min(len(indices), len(X.data))
    )
    if not sound:
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
    """scipy's own conversion drops the zeros of diagonals, here as stored as any other value."""
    columns = np.broadcast_to(np.arange(X.data.shape[1]), X.data.shape)
    rows = columns - X.offsets[:, np.newaxis]
    inside = (rows >= 0) & (rows < X.shape[0]) & (columns < X.shape[1])
    return Triplets(rows[inside], columns[inside], as_real(X.data, "X")[inside])
