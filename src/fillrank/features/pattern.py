r"""The pattern of missing values as features: which cells of a row are observed.

What people choose to rate, or a laboratory to measure, says much about the values. With the mask O of
the entries that are fitted and n_i of them in row i, the features of the rows are

.. math:: F_0 = \mathrm{diag}(n_i^{-1/2}) O - 1 \mu^T

with column means mu over the rows with entries; a row without entries has zeros. F_0 is used by its
leading singular directions: the values are F = F_0 Q, with Q (n, p) from subspace iteration. Any Q is a
valid choice, so that a few iterations suffice. With the decomposition F_0 Q = P S R^T, the columns of
F R = P S are orthogonal, and Q R takes the place of Q. The features of columns are those of the rows of
the transposed table.

A block has some hundred numbers for each row, as many as a row of a large table has entries. So there is
one such array of each side at a time. Large ones are decomposed in parts: S and R are those of the
triangle of F_0 Q (`fillrank.kernels.factors`), so that P is not needed.
"""

from typing import NamedTuple

import numpy as np

from fillrank.features.blocks import MISSINGNESS, Block, Blocks, PatternCode
from fillrank.kernels.factors import multiplied, orthonormalise, triangle
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data, Product, RemoteData
from fillrank.table.entries import Entries, iter_blocks

# The largest number of directions; how many rows and columns, and how many entries there are for each at
# least; and the fewest rows. Smaller tables cannot show what their patterns say (docs/defaults.md).
_MOST, _LINES_EACH, _ENTRIES_EACH, _FEWEST = 200, 4, 200, 20
# Subspace iterations, additional directions in them, and the smallest singular value that is used, as a
# share of the square root of the number of rows.
_ITERATIONS, _SPARE, _SMALLEST = 4, 16, 1e-4
# The most rows or columns of arrays that are decomposed at once, which takes nine times their memory;
# and how many are subtracted at a time.
_AT_ONCE, _ROWS = 2**15, 1024


class Mask(NamedTuple):
    """The 0/1 mask O of a table: its counts by row and by column, and products with O and O^T.

    ``workers`` are the threads for decompositions.
    """

    row_counts: np.ndarray
    column_counts: np.ndarray
    times: Product
    transposed_times: Product
    workers: Workers

    def transpose(self) -> "Mask":
        """The mask of the transposed table."""
        return Mask(
            self.column_counts, self.row_counts, self.transposed_times, self.times, self.workers
        )


def mask_of(data: Data | RemoteData, workers: Workers) -> Mask:
    """The mask of entries, which may be on other machines."""
    return Mask(*data.counts, *data.mask_products(workers), workers)


class _Pattern(NamedTuple):
    """F_0 by its products: ``scale`` is n_i^(-1/2), 0 without entries; ``there`` is 1 or 0."""

    mask: Mask
    scale: np.ndarray
    there: np.ndarray
    means: np.ndarray

    def times(self, block: np.ndarray) -> np.ndarray:
        products = self.mask.times(block)
        products *= self.scale
        return _subtract(products, self.there, self.means.T @ block)

    def transposed_times(self, block: np.ndarray) -> np.ndarray:
        """F_0^T block, which is overwritten."""
        block *= self.there
        sums = block.sum(axis=0)
        block *= self.scale
        return _subtract(self.mask.transposed_times(block), self.means, sums)


def _subtract(block: np.ndarray, column: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The block minus column times row, in place."""
    for rows in iter_blocks(len(block), _ROWS):
        block[rows] -= column[rows] * row
    return block


def n_directions(shape: tuple[int, int], n_entries: int) -> int:
    """How many directions of the pattern are used for the rows of a table."""
    if shape[0] < _FEWEST:
        return 0
    return min(_MOST, min(shape) // _LINES_EACH, n_entries // _ENTRIES_EACH)


def pattern_blocks(mask: Mask) -> Blocks:
    """The blocks of rows and of columns: one each, or none if all rows (or columns) have one pattern."""
    return Blocks(pattern_block(mask), pattern_block(mask.transpose()))


def pattern_block(mask: Mask) -> tuple[Block, ...]:
    """The block of the rows, if rows differ in their pattern.

    In a large table it is in single precision, that of products with the mask.
    """
    row_counts = mask.row_counts
    shape = row_counts.size, mask.column_counts.size
    k = n_directions(shape, int(row_counts.sum()))
    if k == 0:
        return ()
    pattern = _pattern(mask)
    Q = _leading(pattern, shape, min(k + _SPARE, *shape))
    F = pattern.times(Q)
    is_large = max(shape) > _AT_ONCE
    if is_large:
        _, s, R = np.linalg.svd(triangle(F, workers=mask.workers))
    else:
        P, s, R = np.linalg.svd(F.astype(np.float64), full_matrices=False)
    k = min(k, int((s > _SMALLEST * np.sqrt(row_counts.size)).sum()))
    if k == 0:
        return ()
    if is_large:
        values, directions = (multiplied(each, R[:k].T, mask.workers) for each in (F, Q))
    else:
        values, directions = P[:, :k] * s[:k], Q @ R[:k].T
    code = PatternCode(pattern.means[:, 0].astype(np.float64), directions)
    return (Block(MISSINGNESS, values, code, ()),)


def _pattern(mask: Mask) -> _Pattern:
    there = (mask.row_counts > 0).astype(np.float32)[:, np.newaxis]
    scale = there / np.sqrt(np.maximum(mask.row_counts, 1)).astype(np.float32)[:, np.newaxis]
    means = mask.transposed_times(scale) / max(1.0, float(there.sum()))
    return _Pattern(mask, scale, there, means)


def _leading(pattern: _Pattern, shape: tuple[int, int], width: int) -> np.ndarray:
    """Q (n, width): nearly the span of the leading right singular vectors."""
    workers = pattern.mask.workers
    block = np.random.default_rng(0).standard_normal((shape[0], width), dtype=np.float32)
    # One variable for both sides, so that none has two arrays.
    for _ in range(_ITERATIONS):
        block = _orthonormal(pattern.transposed_times(block), workers)
        block = _orthonormal(pattern.times(block), workers)
    return _orthonormal(pattern.transposed_times(block), workers)


def _orthonormal(block: np.ndarray, workers: Workers) -> np.ndarray:
    """Q of block = Q R, which may be in the memory of the block."""
    if len(block) <= _AT_ONCE:
        return np.asarray(np.linalg.qr(block).Q)
    orthonormalise(block, workers)
    return block


def code_pattern(code: PatternCode, entries: Entries) -> np.ndarray:
    """The values (n_new, p) of new rows, by the pattern of their entries."""
    n_rows = entries.pointers.size - 1
    out = np.zeros((n_rows, code.directions.shape[1]))
    offset = code.means @ code.directions
    for i in range(n_rows):
        columns = entries.indices[entries.pointers[i] : entries.pointers[i + 1]]
        # Columns that no row of the fit has are not part of its patterns.
        columns = columns[code.means[columns] > 0]
        if columns.size:
            out[i] = code.directions[columns].sum(axis=0) / np.sqrt(columns.size) - offset
    return out
