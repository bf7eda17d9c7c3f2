"""Products of the observed entries with factors: what the spectral methods are made of.

The matrix is seen by rows (``Entries``), the factors are blocks with one line per row or column. The
product with the transpose is the same function on the entries gathered by column.
"""

import numpy as np
from numba import njit

from fillrank.data.entries import Entries
from fillrank.kernels.gaussian_rows import REASSOCIATE
from fillrank.kernels.workers import Workers


@njit(nogil=True, cache=True, fastmath=REASSOCIATE)
def _residual_rows(entries, left, right, out, start, stop):
    for i in range(start, stop):
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            j = entries.indices[t]
            e = entries.values[t]
            for k in range(left.shape[1]):
                e -= left[i, k] * right[j, k]
            out[t] = e


@njit(nogil=True, cache=True)
def _product_rows(entries, block, out, start, stop):
    for i in range(start, stop):
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            j = entries.indices[t]
            x = entries.values[t]
            for k in range(block.shape[1]):
                out[i, k] += x * block[j, k]


def residual(entries: Entries, left: np.ndarray, right: np.ndarray, workers: Workers) -> Entries:
    """P_Omega(X - L R^T), as entries."""
    out = np.empty_like(entries.values)
    workers.for_rows(
        lambda start, stop: _residual_rows(entries, left, right, out, start, stop), entries.pointers
    )
    return entries._replace(values=out)


def product(entries: Entries, block: np.ndarray, workers: Workers) -> np.ndarray:
    """P_Omega(X) B, for B with one line per column of X."""
    out = np.zeros((entries.pointers.size - 1, block.shape[1]), dtype=block.dtype)
    workers.for_rows(
        lambda start, stop: _product_rows(entries, block, out, start, stop), entries.pointers
    )
    return out
