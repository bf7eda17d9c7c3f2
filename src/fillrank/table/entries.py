"""Observed entries in compressed sparse row form, as kernels use them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

_BLOCK = 2**20
# Of entries without weights. Kernels need an array of one type in both cases, so it is not None.
NO_WEIGHTS = np.zeros(0, dtype=np.float32)
NO_CELLS = np.zeros(0, dtype=np.int32)  # of entries that are all exact


class Entries(NamedTuple):
    """The observed entries of a matrix, grouped by row (or, for its transpose, by column).

    Row i has ``values[pointers[i]:pointers[i + 1]]`` in the columns
    ``indices[pointers[i]:pointers[i + 1]]``, in ascending order. ``weights`` is empty if the entries
    have none; otherwise it has one for each value, in the same order, and for kernels in the same type.
    ``cells`` is empty if all values are exact; otherwise it has -1 for an exact value, and the number of
    the interval that contains the value for any other.
    """

    pointers: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    weights: np.ndarray = NO_WEIGHTS
    cells: np.ndarray = NO_CELLS

    @property
    def n_entries(self) -> int:
        """The number of entries."""
        return self.values.size

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        return self.values.dtype


def compress(
    n_rows: int,
    row_index: np.ndarray,
    column_index: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray = NO_WEIGHTS,
    cells: np.ndarray = NO_CELLS,
) -> Entries:
    """Group triplets by row; within a row, sort by column."""
    order = np.lexsort((column_index, row_index))
    pointers = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(row_index, minlength=n_rows), out=pointers[1:])
    weights = weights[order] if weights.size else NO_WEIGHTS
    cells = cells[order] if cells.size else NO_CELLS
    return Entries(pointers, column_index[order].astype(np.int32), values[order], weights, cells)


# scipy's format conversions are counting sorts, linear in the number of entries. Grouping by column
# and then by row sorts triplets by row and column. Both conversions keep zeros and duplicates, and the
# order in which they were given, so weights and cells are sorted by a conversion of the same kind.


def group_by_row(
    row_index: np.ndarray,
    column_index: np.ndarray,
    values: np.ndarray,
    shape: tuple[int, int],
    weights: np.ndarray = NO_WEIGHTS,
    cells: np.ndarray = NO_CELLS,
) -> Entries:
    """Group triplets by row; within a row they keep their order.

    Examples
    --------
    >>> rows, columns, values = np.array([1, 0, 1]), np.array([5, 4, 3]), np.array([1.0, 2.0, 3.0])
    >>> group_by_row(rows, columns, values, (2, 6)).indices
    array([4, 5, 3], dtype=int32)
    """
    triplets = sp.coo_array((values, (row_index, column_index)), shape=shape)
    triplets.has_canonical_format = True  # otherwise scipy sorts and sums duplicates
    entries = _from_scipy(triplets.tocsr())
    more = {
        name: group_by_row(row_index, column_index, each, shape).values
        for name, each in (("weights", weights), ("cells", cells))
        if each.size
    }
    return entries._replace(**more)


def transpose(entries: Entries, n_columns: int) -> Entries:
    """The entries of the transpose; within a row they are in the order of their columns.

    Examples
    --------
    >>> entries = Entries(np.array([0, 2, 3]), np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]))
    >>> transpose(entries, 2).values
    array([1., 3., 2.])
    """
    pointers, indices, values, weights, cells = entries
    if pointers[-1] <= np.iinfo(np.int32).max:  # otherwise scipy widens the indices to match
        pointers = pointers.astype(np.int32)
    matrix = sp.csr_array((values, indices, pointers), shape=(pointers.size - 1, n_columns))
    flipped = _from_scipy(matrix.tocsc())
    more = {
        name: transpose(Entries(entries.pointers, indices, each), n_columns).values
        for name, each in (("weights", weights), ("cells", cells))
        if each.size
    }
    return flipped._replace(**more)


def rows_of(entries: Entries, block: slice) -> Entries:
    """The entries of the rows in a slice."""
    pointers = entries.pointers[block.start : block.stop + 1]
    part = slice(pointers[0], pointers[-1])
    weights, cells = entries.weights[part], entries.cells[part]  # empty if there are none
    return Entries(
        pointers - pointers[0], entries.indices[part], entries.values[part], weights, cells
    )


def some_rows(entries: Entries, rows: np.ndarray) -> Entries:
    """The entries of some of the rows, at any positions."""
    pointers, places = places_in_rows(entries.pointers, rows)
    weights = entries.weights[places] if entries.weights.size else entries.weights
    cells = entries.cells[places] if entries.cells.size else entries.cells
    return Entries(pointers, entries.indices[places], entries.values[places], weights, cells)


def places_in_rows(pointers: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(pointers, places) of the entries of some rows, which can be in any order and repeat.

    Examples
    --------
    >>> places_in_rows(np.array([0, 2, 3]), np.array([1, 0]))
    (array([0, 1, 3]), array([2, 0, 1]))
    """
    first = pointers[rows]
    sizes = pointers[rows + 1] - first
    own = np.append(0, np.cumsum(sizes))
    return own, np.arange(own[-1]) + np.repeat(first - own[:-1], sizes)


def _from_scipy(matrix: sp.csr_array | sp.csc_array) -> Entries:
    indices = matrix.indices.astype(np.int32, copy=False)
    return Entries(matrix.indptr.astype(np.int64), indices, matrix.data)


def iter_blocks(length: int, size: int = _BLOCK) -> Iterator[slice]:
    """Slices that cover ``length`` elements in order, so that temporary arrays stay small.

    Examples
    --------
    >>> list(iter_blocks(5, size=2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def compact_floats(values: np.ndarray) -> np.ndarray:
    """Convert to float32 if every value is exact in it; otherwise return ``values``.

    Ratings, half stars and integers up to 2^24 are exact. There must be no NaN, which is not equal to
    itself.

    Examples
    --------
    >>> compact_floats(np.array([4.5, 3.0])).dtype, compact_floats(np.array([0.1, 3.0])).dtype
    (dtype('float32'), dtype('float64'))
    """
    if values.dtype == np.float32:
        return values
    compact = np.empty(values.shape, dtype=np.float32)
    for block in iter_blocks(values.size):
        with np.errstate(over="ignore", under="ignore"):
            compact[block] = values[block]
        if not np.array_equal(compact[block], values[block]):
            return values
    return compact
