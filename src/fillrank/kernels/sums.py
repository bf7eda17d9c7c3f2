"""Sums over the rows of a factor block, in double precision and in a fixed order."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def sums_about(block, centre):
    """(sum_i b_ik - c_k, sum_i (b_ik - c_k)^2) for the first ``centre.size`` columns k."""
    first = np.zeros(centre.size)
    second = np.zeros(centre.size)
    for i in range(block.shape[0]):
        for k in range(centre.size):
            z = float(block[i, k]) - centre[k]
            first[k] += z
            second[k] += z * z
    return first, second
