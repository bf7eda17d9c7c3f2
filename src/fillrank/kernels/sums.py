"""Passes over a block of factors, a line per row: scaled copies, and sums in a fixed order.

Sums are taken by blocks of rows, and over the blocks in their order: the same bits on any number of
threads, and on any machines that hold whole blocks.
"""

import numpy as np
from numba import njit

from fillrank.kernels.workers import Workers

BLOCK = 1024  # rows


@njit(nogil=True, cache=True)
def _scale_blocks(factors, scale, out, start, stop):
    for i in range(start * BLOCK, min(stop * BLOCK, factors.shape[0])):
        for k in range(factors.shape[1]):
            out[i, k] = factors[i, k] * scale[k]


@njit(nogil=True, cache=True)
def _sum_blocks(factors, centre, sums, start, stop):
    for b in range(start, stop):
        first, second = sums[b, 0], sums[b, 1]
        for i in range(b * BLOCK, min((b + 1) * BLOCK, factors.shape[0])):
            for k in range(centre.size):
                z = float(factors[i, k]) - centre[k]
                first[k] += z
                second[k] += z * z


def _block_pointers(factors: np.ndarray) -> np.ndarray:
    """What the blocks up to each cost, in entries of a half-sweep: four rows to one, generously.

    So that some thousand rows, which take no longer than to wake a thread, stay on one.
    """
    return BLOCK // 4 * np.arange(-(-len(factors) // BLOCK) + 1)


def scaled(factors: np.ndarray, scale: np.ndarray, workers: Workers) -> np.ndarray:
    """A copy whose first columns are multiplied by ``scale``; the others stay."""
    whole = np.ones(factors.shape[1], dtype=factors.dtype)
    whole[: scale.size] = scale
    out = np.empty_like(factors)
    workers.for_rows(
        lambda start, stop: _scale_blocks(factors, whole, out, start, stop),
        _block_pointers(factors),
    )
    return out


def sums_about(
    factors: np.ndarray, centre: np.ndarray, workers: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """(sum_i f_ik - c_k, sum_i (f_ik - c_k)^2) for the first ``centre.size`` columns k."""
    pointers = _block_pointers(factors)
    sums = np.zeros((pointers.size - 1, 2, centre.size))
    workers.for_rows(lambda start, stop: _sum_blocks(factors, centre, sums, start, stop), pointers)
    first, second = sums.sum(axis=0)
    return first, second
