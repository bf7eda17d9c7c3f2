r"""Thresholds between ordered levels that differ by row: a draw of those of every row.

Level c of an entry in row i is the interval (theta_{i,c-1}, theta_{i,c}] of its latent number
y ~ N(z, s^2). A threshold has the prior N(theta_c, v_c), and those of a row are ascending. With y
integrated out,

.. math:: \log p(\theta_{ic} \mid z) = -\frac{(\theta_{ic} - \theta_c)^2}{2 v_c}
          + \sum_{x = c} \log P(\theta_{i,c-1} < y \le \theta_{ic})
          + \sum_{x = c+1} \log P(\theta_{ic} < y \le \theta_{i,c+1}) ,

where the sums are over the entries of the row. The thresholds of a row are drawn one after the other, by
slice steps.
"""

import math
from typing import NamedTuple

import numpy as np

from fillrank.draws.streams import seek, start_stream, uniform
from fillrank.kernels.interval_values import log_probability, precision_of, signal_of
from fillrank.kernels.tiles import longest_row
from fillrank.runtime.kernel_cache import njit

# The width of a slice in standard deviations, and the shortest one, relative to the threshold.
_WIDTH, _SHORTEST = 6.0, 1e-12
# Smaller differences of tails have lost digits; products of probabilities stay above the second number.
_SMALLEST, _SMALL_PRODUCT = 1e-12, 1e-250
_ROOT = math.sqrt(0.5)
# The information of an entry about a threshold next to it, relative to its precision.
_INFORMATION = 0.3


class ThresholdPrior(NamedTuple):
    """The means theta_c and variances v_c (L - 1,) of the thresholds of a row."""

    means: np.ndarray
    variances: np.ndarray


class RowValues(NamedTuple):
    """The entries of a row by level: signals z, inverse standard deviations p, and where levels start.

    ``tails`` and ``signs`` are for the two levels next to a threshold: see `_prepare`.
    """

    signals: np.ndarray
    precisions: np.ndarray
    starts: np.ndarray
    tails: np.ndarray
    signs: np.ndarray


@njit
def empty_values(longest, n_levels):
    """Room for the entries of a row."""
    return RowValues(
        np.empty(longest),
        np.empty(longest),
        np.empty(n_levels + 1, dtype=np.int64),
        np.empty(longest),
        np.empty(longest),
    )


@njit(inline="always")
def _tail(x):
    """P(Y > x) of a standard normal variable."""
    return 0.5 * math.erfc(_ROOT * x)


@njit
def _prepare(values, c, low, high):
    """Compute what does not change with the threshold between the levels c and c + 1.

    The probability of a level is a difference of tails, on the side of z where these are small: of
    P(Y > x) with the sign 1, of P(Y > -x) with the sign -1. That of its other end is stored.
    """
    between = values.starts[c + 1]
    for t in range(values.starts[c], values.starts[c + 2]):
        end = low if t < between else high
        x = values.precisions[t] * (end - values.signals[t])
        sign = 1.0 if x > 0.0 else -1.0
        values.signs[t] = sign
        values.tails[t] = _tail(sign * x)


@njit
def _log_density(at, prior, c, low, high, values):
    """log p(theta_c = at) of a row, without a constant."""
    deviation = at - prior.means[c]
    total = -0.5 * deviation * deviation / prior.variances[c]
    product = 1.0
    for t in range(values.starts[c], values.starts[c + 2]):
        z, p = values.signals[t], values.precisions[t]
        probability = abs(_tail(values.signs[t] * p * (at - z)) - values.tails[t])
        if probability > _SMALLEST:
            product *= probability
        elif t < values.starts[c + 1]:
            total += log_probability(p * (low - z), p * (at - z))
        else:
            total += log_probability(p * (at - z), p * (high - z))
        if product < _SMALL_PRODUCT:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@njit
def _slice_step(stream, x, prior, c, low, high, values):
    """A slice step of the threshold c of a row, between those next to it (Neal 2003)."""
    _prepare(values, c, low, high)
    information = 1.0 / prior.variances[c]
    for t in range(values.starts[c], values.starts[c + 2]):
        information += _INFORMATION * values.precisions[t] * values.precisions[t]
    width = _WIDTH / math.sqrt(information)
    level = _log_density(x, prior, c, low, high, values) + math.log(uniform(stream))
    # An interval of this width around x is not extended: the step is valid, and the width suffices.
    left = x - width * uniform(stream)
    right = min(left + width, high)
    left = max(left, low)
    while right - left > _SHORTEST * (1.0 + abs(x)):
        new = left + (right - left) * uniform(stream)
        if low < new < high and _log_density(new, prior, c, low, high, values) > level:
            return new
        if new < x:
            left = new
        else:
            right = new
    return x


@njit
def draw_thresholds_of_row(ends, values, prior, stream, row):
    """Draw the thresholds of a row in place: ``ends`` (L + 1,) without the first and the last."""
    for c in range(prior.means.size):
        seek(stream, row, c)
        ends[c + 1] = _slice_step(stream, ends[c + 1], prior, c, ends[c], ends[c + 2], values)


@njit
def sort_by_level(levels, signals, precisions, values):
    """Fill ``values`` with the entries of a row, level by level."""
    starts = values.starts
    starts[:] = 0
    for t in range(levels.size):
        starts[levels[t] + 1] += 1
    for c in range(1, starts.size):
        starts[c] += starts[c - 1]
    # Each level is filled from its end, so that its end becomes its start.
    for t in range(levels.size - 1, -1, -1):
        c = levels[t] + 1
        starts[c] -= 1
        values.signals[starts[c]] = signals[t]
        values.precisions[starts[c]] = precisions[t]
    for c in range(starts.size - 1):
        starts[c] = starts[c + 1]
    starts[starts.size - 1] = levels.size


@njit(nogil=True, cache=True)
def draw_thresholds_of_rows(entries, own, other, noise, prior, address, ends, start, stop):
    """Draw the thresholds (rows, L + 1) of the rows start to stop, in place.

    ``entries`` have the numbers 0, ..., L - 1 of levels as their intervals; ``noise`` is a `RowNoise`.
    """
    longest = longest_row(entries.pointers, start, stop)
    values = empty_values(longest, prior.means.size + 1)
    signals, precisions = np.empty(longest), np.empty(longest)
    stream = start_stream(address.key, address.sweep, address.purpose)
    for i in range(start, stop):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        for t in range(first, last):
            signals[t - first] = signal_of(own, other, i, entries.indices[t])
            precisions[t - first] = precision_of(entries, noise, i, t)
        sort_by_level(entries.cells[first:last], signals, precisions, values)
        draw_thresholds_of_row(ends[i], values, prior, stream, address.first_row + i)
