"""Losses of values of which only an interval of the latent number is known: ordered levels.

For y ~ N(z, 1) in (low, high], with P = Phi(high - z) - Phi(low - z), the loss is -log P. With
A = phi(low - z) / P and B = phi(high - z) / P, its derivative is B - A by z, A by low and -B by high.
"""

import math

import numpy as np

from fillrank.kernels.interval_values import log_probability
from fillrank.runtime.kernel_cache import njit

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@njit(forceinline=True)
def _density_ratio(at, log_p):
    """phi(at) / P."""
    return math.exp(-0.5 * at * at - _LOG_SQRT_2PI - log_p)


@njit(nogil=True, cache=True)
def interval_losses(signals, cells, ends, values, slopes, start, stop):
    """``values`` and ``slopes`` become the losses of the entries start to stop, and their derivatives.

    ``cells`` are the numbers of their intervals, and ``ends`` (2, k) is where these begin and end.
    """
    for t in range(start, stop):
        low, high = ends[0, cells[t]] - signals[t], ends[1, cells[t]] - signals[t]
        log_p = log_probability(low, high)
        values[t] = -log_p
        slopes[t] = _density_ratio(high, log_p) - _density_ratio(low, log_p)


@njit(nogil=True, cache=True)
def end_derivatives(signals, cells, ends):
    """Sums (k, 5) over the entries of each interval of what Newton's method for the ends needs.

    These are A, B, A (A - low + z), B (B + high - z) and A B.
    """
    sums = np.zeros((ends.shape[1], 5))
    for t in range(signals.size):
        cell = cells[t]
        low, high = ends[0, cell] - signals[t], ends[1, cell] - signals[t]
        log_p = log_probability(low, high)
        A, B = _density_ratio(low, log_p), _density_ratio(high, log_p)
        sums[cell, 0] += A
        sums[cell, 1] += B
        if A > 0.0:  # otherwise low may be minus infinity
            sums[cell, 2] += A * (A - low)
        if B > 0.0:
            sums[cell, 3] += B * (B + high)
        sums[cell, 4] += A * B
    return sums
