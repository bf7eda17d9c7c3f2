r"""The coefficients of a row of which some values are known by intervals only.

For standard normal coefficients w, values y_t ~ N(g_t . w, 1 / a) and intervals (low_t, high_t], the
density of w without the values is

.. math:: p(w) \propto \exp(-|w|^2 / 2)
          \prod_t [\Phi(\sqrt a (high_t - g_t \cdot w)) - \Phi(\sqrt a (low_t - g_t \cdot w))] .

Alternating draws of w and of the values move slowly in it if the intervals are wide relative to the
noise. Here are the parts of a step that does not: a normal approximation of p by expectation propagation
(Minka 2001), in which an interval is replaced by a value b_t with a precision t_t; and a step of
elliptical slice sampling around it (Murray, Adams and MacKay 2010; Fagan, Bhandari and Cunningham 2016),
which leaves p invariant whatever the approximation is.
"""

import math

import numpy as np

from fillrank.draws.normal import normal
from fillrank.draws.streams import uniform
from fillrank.kernels.interval_values import log_probability
from fillrank.runtime.kernel_cache import njit

# Intervals that are shorter than this, in standard deviations, have a constant density.
_SHORT = 1e-4
# Variances of a truncated normal variable are above this, and reductions of the variance that are below
# the second number tell nothing.
_LEAST, _NOTHING = 1e-12, 1e-10
# The share of the new value and precision of an interval in an update: all of it may oscillate.
_DAMPING = 0.7
# Points that are tried in a slice, of which the last are at the start within rounding.
_MOST_POINTS = 60


@njit
def truncated_moments(low, high):
    """The mean and the variance of a standard normal variable between low and high."""
    if low + high > 0.0:
        mean, variance = truncated_moments(-high, -low)
        return -mean, variance
    width = high - low
    if width < _SHORT:
        return 0.5 * (low + high), max(width * width / 12.0, _LEAST)
    if high < -30.0:  # an exponential distribution below the upper end
        return max(high + 1.0 / high, low), max(1.0 / (high * high), _LEAST)
    at_low, at_high = math.exp(-0.5 * low * low), math.exp(-0.5 * high * high)
    scale = math.exp(-log_probability(low, high)) / math.sqrt(2.0 * math.pi)
    mean = (at_low - at_high) * scale
    variance = 1.0 + (low * at_low - high * at_high) * scale - mean * mean
    return min(max(mean, low), high), min(max(variance, _LEAST), 1.0)


@njit
def update_sites(tile, n, ends, precision, system, sites, x):
    """One sweep of expectation propagation: new b_t and t_t, in ``sites`` (2, n), of all intervals.

    ``tile`` (k + 1, n) holds g_t, and ``ends`` (2, n) the intervals, NaN for known values. ``system``
    (k + 1, k) is the Cholesky factor of the precision of w and, below it, its inverse times its
    product with the mean, for the present sites. ``x`` (k,) is overwritten.
    """
    k = x.size
    for t in range(n):
        if math.isnan(ends[0, t]):
            continue
        mean, variance = 0.0, 0.0
        for a in range(k):
            value = tile[a, t]
            for b in range(a):
                value -= system[a, b] * x[b]
            x[a] = value / system[a, a]
            mean += x[a] * system[k, a]
            variance += x[a] * x[a]
        rest = 1.0 / max(variance, 1e-300) - sites[1, t]
        if not rest > 0.0:
            continue
        # The signal without this interval, and the value with its noise.
        centre = (mean / variance - sites[1, t] * sites[0, t]) / rest
        total = 1.0 / rest + 1.0 / precision
        sd = math.sqrt(total)
        shift, spread = truncated_moments((ends[0, t] - centre) / sd, (ends[1, t] - centre) / sd)
        known = 1.0 - spread
        if known < _NOTHING:
            known, shift = _NOTHING, 0.0
        new_precision = known / (total - known / rest)
        new_value = centre + shift * sd / known
        old = sites[1, t]
        sites[1, t] = _DAMPING * new_precision + (1.0 - _DAMPING) * old
        product = _DAMPING * new_precision * new_value + (1.0 - _DAMPING) * old * sites[0, t]
        sites[0, t] = product / sites[1, t]


@njit
def _log_ratio(tile, n, ends, precision, signals, norms):
    """The logarithm of p, relative to its normal approximation, at a point with these signals.

    ``norms`` are the squared norms of the coefficients, and of them in units of the approximation.
    """
    root, y = math.sqrt(precision), tile.shape[0] - 1
    total = 0.5 * (norms[1] - norms[0])
    for t in range(n):
        if math.isnan(ends[0, t]):
            residual = tile[y, t] - signals[t]
            total -= 0.5 * precision * residual * residual
        else:
            low, high = root * (ends[0, t] - signals[t]), root * (ends[1, t] - signals[t])
            total += log_probability(low, high)
    return total


@njit
def _signals(tile, n, w, out):
    """The products g_t . w."""
    for t in range(n):
        out[t] = 0.0
    for a in range(w.size):
        for t in range(n):
            out[t] += tile[a, t] * w[a]


@njit
def slice_coefficients(tile, n, ends, precision, system, w, stream):
    """A step of elliptical slice sampling of w, in place.

    ``system`` is that of the normal approximation, as in `update_sites`.
    """
    k = w.size
    centre, point, other = np.empty(k), np.empty(k), np.empty(k)
    # In units of the approximation, R^T (w - centre), the step starts at `start` and turns to `end`.
    start, end = np.zeros(k), np.empty(k)
    for a in range(k):
        end[a] = normal(stream)
        other[a] = end[a]
        centre[a] = system[k, a]
    for a in range(k - 1, -1, -1):
        other[a] /= system[a, a]
        centre[a] /= system[a, a]
        for b in range(a):
            other[b] -= system[a, b] * other[a]
            centre[b] -= system[a, b] * centre[a]
    for a in range(k):
        point[a] = w[a] - centre[a]
        for b in range(a + 1):
            start[b] += system[a, b] * point[a]
    of_centre, of_point, of_other = np.empty(n), np.empty(n), np.empty(n)
    _signals(tile, n, centre, of_centre)
    _signals(tile, n, point, of_point)
    _signals(tile, n, other, of_other)
    signals, norms = of_centre + of_point, np.empty(2)
    norms[0], norms[1] = w @ w, start @ start
    level = _log_ratio(tile, n, ends, precision, signals, norms) + math.log(uniform(stream))
    angle = 2.0 * math.pi * uniform(stream)
    low, high = angle - 2.0 * math.pi, angle
    for _ in range(_MOST_POINTS):
        c, s = math.cos(angle), math.sin(angle)
        norms[0], norms[1] = 0.0, 0.0
        for a in range(k):
            norms[0] += (centre[a] + c * point[a] + s * other[a]) ** 2
            norms[1] += (c * start[a] + s * end[a]) ** 2
        for t in range(n):
            signals[t] = of_centre[t] + c * of_point[t] + s * of_other[t]
        if _log_ratio(tile, n, ends, precision, signals, norms) > level:
            for a in range(k):
                w[a] = centre[a] + c * point[a] + s * other[a]
            return
        if angle < 0.0:
            low = angle
        else:
            high = angle
        angle = low + (high - low) * uniform(stream)
