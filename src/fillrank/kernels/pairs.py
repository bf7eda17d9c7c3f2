"""Predictions of single cells from factors, and quantiles of what a new observation would be."""

import math

from fillrank.kernels.tiles import REASSOCIATE
from fillrank.runtime.kernel_cache import njit


@njit(fastmath=REASSOCIATE)
def _pair_value(left, right, i, j):
    total = left.dtype.type(0)
    for k in range(left.shape[1]):
        total += left[i, k] * right[j, k]
    return total


@njit(nogil=True, cache=True)
def pair_values(left, right, rows, columns, out):
    """out_p = sum_k left[rows_p, k] right[columns_p, k]."""
    for p in range(rows.size):
        out[p] = _pair_value(left, right, rows[p], columns[p])


@njit(nogil=True, cache=True)
def restored_pair_values(left, right, rows, columns, units, out):
    """The same as location + scale * value, between low and high: in one pass.

    Without fast mathematics, so that it has the bits of an array that is scaled afterwards.
    """
    location, scale, low, high = units
    for p in range(rows.size):
        value = location + scale * _pair_value(left, right, rows[p], columns[p])
        out[p] = min(max(value, low), high)


@njit
def _mixture(values, sds, x):
    """(cdf, density) at x of the equal mixture of N(values_s, sds_s^2)."""
    cdf = 0.0
    density = 0.0
    for s in range(values.size):
        t = (x - values[s]) / sds[s]
        cdf += 0.5 * math.erfc(-t / math.sqrt(2.0))
        density += math.exp(-0.5 * t * t) / (sds[s] * math.sqrt(2.0 * math.pi))
    return cdf / values.size, density / values.size


@njit(nogil=True, cache=True)
def mixture_quantiles(values, sds, probability, start, out):
    """The quantile of the mixture of N(values[s, p], sds_s^2) over s, for every p.

    Newton's method from ``start``, kept in a bracket: bisection where a step would leave it.
    """
    widest = sds.max()
    for p in range(out.size):
        column = values[:, p].copy()
        low, high = column.min() - 40.0 * widest, column.max() + 40.0 * widest
        x = min(max(start[p], low), high)
        for _ in range(100):
            cdf, density = _mixture(column, sds, x)
            if cdf < probability:
                low = x
            else:
                high = x
            new = x - (cdf - probability) / density if density > 0.0 else low
            if not (low < new < high):
                new = 0.5 * (low + high)
            step = abs(new - x)
            x = new
            if step <= 1e-7 * widest:
                break
        out[p] = x
