"""The loops of the published sampler: truncated normal draws, one thread, the paper's letters.

All entries of u_k together are limited by the ball's radius, so the interval of a row depends on
the other rows: the rows are drawn one after another. With residuals a sweep takes O(N r); the sums
as printed take O(N r^2). The order of the draws is arbitrary: row by row, and component by
component within a row.
"""

import math

import numpy as np

from fillrank.draws.streams import seek, start_stream, uniform
from fillrank.draws.truncated_normal import truncated_normal
from fillrank.kernels.tiles import (
    REASSOCIATE,
    add_multiple,
    gather,
    longest_row,
    square_and_product,
)
from fillrank.runtime.kernel_cache import njit

# A likelihood that varies less than this over the interval is treated as constant.
_FLAT = 1e-12


@njit
def _draw_within(stream, precision, mean_times_precision, variance, radius):
    """N(mean, variance / precision) on [-radius, radius]; uniform where there is no precision."""
    if precision * radius * radius <= _FLAT * variance:
        return truncated_normal(stream, 0.0, math.inf, -radius, radius)
    mean = mean_times_precision / precision
    return truncated_normal(stream, mean, math.sqrt(variance / precision), -radius, radius)


@njit(nogil=True, cache=True)
def ball_rows(entries, own, other, d, noise_variance, address, squares):
    """Draw u_ki for every row i and component k < d.size, in place, each within its ball.

    C = d_k^2 sum_j v_kj^2 and -D = d_k sum_j e_j v_kj + u_ki C, over the columns j of row i;
    u_ki ~ N(-D/C, sigma^2/C) on [-rho, rho], rho^2 = 1 - (||u_k||^2 - u_ki^2).
    """
    r = d.size
    longest = longest_row(entries.pointers, 0, own.shape[0])
    tile = np.empty((own.shape[1], longest), dtype=own.dtype)
    residual = np.empty(longest, dtype=own.dtype)
    scaled = np.empty(own.shape[1], dtype=own.dtype)
    stream = start_stream(address.key, address.sweep, address.purpose)
    square = np.zeros(r)
    for i in range(own.shape[0]):
        for k in range(r):
            square[k] += float(own[i, k]) ** 2
    for i in range(own.shape[0]):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        n = last - first
        scaled[:] = own[i]
        for k in range(r):
            scaled[k] *= d[k]
        gather(
            entries.indices[first:last], entries.values[first:last], scaled, other, tile, residual
        )
        for k in range(r):
            v2, ve = square_and_product(tile[k], residual, n)
            old = float(own[i, k])
            C = d[k] * d[k] * v2
            rest = min(max(square[k] - old * old, 0.0), 1.0)
            seek(stream, i, k)
            new = _draw_within(
                stream, C, d[k] * ve + old * C, noise_variance, math.sqrt(1.0 - rest)
            )
            own[i, k] = new
            square[k] = rest + float(own[i, k]) ** 2
            add_multiple(residual, own.dtype.type(d[k] * (old - own[i, k])), tile[k], n)
        squares[i] = square_and_product(residual, residual, n)[0]


@njit(fastmath=REASSOCIATE, forceinline=True)
def _component_sums(entries, left, right, residual, k):
    """(sum (u_i v_j)^2, sum e_ij u_i v_j) over all entries."""
    A = 0.0
    g = 0.0
    for i in range(left.shape[0]):
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            w = left[i, k] * right[entries.indices[t], k]
            A += w * w
            g += residual[t] * w
    return A, g


@njit(nogil=True, cache=True)
def published_scales(entries, left, right, d, gamma, noise_variance, address, residual):
    """Draw every d_k ~ N(-B/A, sigma^2/A) on [0, inf), in place, with the residual kept up to date.

    A = sum (u_ki v_kj)^2 and -B = sum e_ij u_ki v_kj + d_k A - sigma^2 gamma_k over all entries.
    """
    stream = start_stream(address.key, address.sweep, address.purpose)
    for k in range(d.size):
        A, g = _component_sums(entries, left, right, residual, k)
        seek(stream, 0, k)
        if A == 0.0:  # the limit of the distribution below
            new = -math.log(uniform(stream)) / gamma[k]
        else:
            mean = (g + d[k] * A - noise_variance * gamma[k]) / A
            new = truncated_normal(stream, mean, math.sqrt(noise_variance / A), 0.0, math.inf)
        step = d[k] - new
        for i in range(left.shape[0]):
            for t in range(entries.pointers[i], entries.pointers[i + 1]):
                residual[t] += step * left[i, k] * right[entries.indices[t], k]
        d[k] = new
