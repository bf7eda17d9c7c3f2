"""What is observed in an array, a masked array or a sparse matrix."""

from typing import Any

import numpy as np

from fillrank.data.checks import as_real
from fillrank.data.triplets import Triplets
from fillrank.errors import InputError


def check_shape(shape: tuple[int, ...]) -> None:
    """Refuse what is no matrix, or has no cells."""
    if len(shape) != 2:
        raise InputError(f"a matrix must have two dimensions; got {len(shape)} (shape {shape}).")
    if 0 in shape:
        raise InputError(f"a matrix must have rows and columns; got shape {shape}.")


def dense_matrix(X: Any) -> np.ndarray:
    """Give an array with NaN where X is masked."""
    matrix = as_real(np.ma.getdata(X) if isinstance(X, np.ma.MaskedArray) else X, "X")
    mask = np.ma.getmask(X)
    return matrix if mask is np.ma.nomask else np.where(mask, np.nan, matrix)


def observed_cells(matrix: np.ndarray) -> Triplets:
    """Give the cells of an array that are not NaN."""
    check_shape(matrix.shape)
    row_index, column_index = np.nonzero(~np.isnan(matrix))
    return Triplets(row_index, column_index, matrix[row_index, column_index])


def stored_triplets(X: Any) -> Triplets:
    """Give what a sparse matrix stores, zeros and duplicates included."""
    check_shape(X.shape)
    if X.format == "dia":
        return _stored_on_diagonals(X)
    X = X.tocoo()
    return Triplets(X.row, X.col, as_real(X.data, "X"))


def _stored_on_diagonals(X: Any) -> Triplets:
    """scipy's own conversion drops the zeros of diagonals, here as stored as any other value."""
    columns = np.broadcast_to(np.arange(X.data.shape[1]), X.data.shape)
    rows = columns - X.offsets[:, np.newaxis]
    inside = (rows >= 0) & (rows < X.shape[0]) & (columns < X.shape[1])
    return Triplets(rows[inside], columns[inside], as_real(X.data, "X")[inside])
