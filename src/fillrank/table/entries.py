"""Entries in compressed form: what the kernels see of a table."""

from typing import NamedTuple

import numpy as np


class Entries(NamedTuple):
    """The observed entries of a matrix, gathered by row (or, of its transpose, by column).

    Row i holds ``values[pointers[i]:pointers[i + 1]]`` in the columns
    ``indices[pointers[i]:pointers[i + 1]]``, in ascending order.
    """

    pointers: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    @property
    def n_entries(self) -> int:
        """How many entries there are."""
        return self.values.size

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        return self.values.dtype


def compress(
    n_rows: int, row_index: np.ndarray, column_index: np.ndarray, values: np.ndarray
) -> Entries:
    """Gather triplets by row; within a row the columns ascend."""
    order = np.lexsort((column_index, row_index))
    pointers = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(row_index, minlength=n_rows), out=pointers[1:])
    return Entries(pointers, column_index[order].astype(np.int32), values[order])
