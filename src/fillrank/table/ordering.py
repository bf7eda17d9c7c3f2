"""Entries in order, in time linear in their number: scipy's changes of format are counting sorts.

Two of them sort triplets by row and column: gather by column, then by row. Both keep what is stored
as it is, zeros and duplicates too, and in the order in which it came.
"""

import numpy as np
import scipy.sparse as sp

from fillrank.table.entries import Entries


def gather(
    index: np.ndarray, others: np.ndarray, values: np.ndarray, shape: tuple[int, int]
) -> Entries:
    """Gather triplets by ``index``; those of one row keep their order.

    Examples
    --------
    >>> gather(np.array([1, 0, 1]), np.array([5, 4, 3]), np.array([1.0, 2.0, 3.0]), (2, 6)).indices
    array([4, 5, 3], dtype=int32)
    """
    triplets = sp.coo_array((values, (index, others)), shape=shape)
    triplets.has_canonical_format = True  # else scipy would sort them, and add up duplicates
    return _entries(triplets.tocsr())


def turned(entries: Entries, n_columns: int) -> Entries:
    """The entries of the transpose; those of one of its rows are in the order of their columns.

    Examples
    --------
    >>> entries = Entries(np.array([0, 2, 3]), np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]))
    >>> turned(entries, 2).values
    array([1., 3., 2.])
    """
    pointers, indices, values = entries
    if pointers[-1] <= np.iinfo(np.int32).max:  # else scipy would widen the indices to match
        pointers = pointers.astype(np.int32)
    matrix = sp.csr_array((values, indices, pointers), shape=(pointers.size - 1, n_columns))
    return _entries(matrix.tocsc())


def _entries(matrix: sp.csr_array | sp.csc_array) -> Entries:
    indices = matrix.indices.astype(np.int32, copy=False)
    return Entries(matrix.indptr.astype(np.int64), indices, matrix.data)
