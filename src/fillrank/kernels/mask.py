"""Products with the 0/1 matrix of which cells are observed, from the entries by row."""

from functools import partial

import numpy as np

from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers


@njit(nogil=True, cache=True)
def mask_rows(pointers, indices, block, out, start, stop):
    """out_i = sum of the lines of ``block`` of the columns that row i has, for rows start to stop."""
    for i in range(start, stop):
        for k in range(block.shape[1]):
            out[i, k] = 0
        for t in range(pointers[i], pointers[i + 1]):
            j = indices[t]
            for k in range(block.shape[1]):
                out[i, k] += block[j, k]


def mask_product(
    pointers: np.ndarray, indices: np.ndarray, block: np.ndarray, workers: Workers
) -> np.ndarray:
    """O block for the mask O, in the precision of the block; the same bits on any number of threads.

    Examples
    --------
    >>> pointers, indices = np.array([0, 2, 3]), np.array([0, 2, 1], np.int32)
    >>> mask_product(pointers, indices, np.array([[1.0], [2.0], [3.0]]), Workers(1))
    array([[4.],
           [2.]])
    """
    out = np.empty((pointers.size - 1, block.shape[1]), dtype=block.dtype)
    workers.for_rows(partial(mask_rows, pointers, indices, block, out), pointers)
    return out
