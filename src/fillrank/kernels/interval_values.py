"""Values of which only an interval is known: their draws for joint half-sweeps, and signals of entries.

The half-sweep that draws coefficients one by one draws these values itself
(`fillrank.kernels.gaussian_rows`); joint half-sweeps take them from here.
"""

import math

import numpy as np

from fillrank.draws.normal_quantile import normal_in_interval
from fillrank.draws.streams import row_bits, start_stream
from fillrank.kernels.gaussian_rows import interval_ends
from fillrank.kernels.tiles import REASSOCIATE, longest_row
from fillrank.runtime.kernel_cache import njit

# Probabilities below this are computed by an expansion: their logarithms would lose digits.
_SMALLEST = 1e-290


@njit(fastmath=REASSOCIATE, forceinline=True)
def signal_of(own, other, i, j):
    """The product of a row's coefficients and a column's factors."""
    total = 0.0
    for k in range(own.shape[1]):
        total += own[i, k] * other[j, k]
    return total


@njit
def precision_of(entries, noise, i, t):
    """The inverse of the standard deviation of the noise of entry t, in row i."""
    root = noise.roots[entries.indices[t]] if noise.roots.size else 1.0
    weight = entries.weights[t] if entries.weights.size else 1.0
    return root * math.sqrt(weight / noise.variances[i])


@njit(nogil=True, cache=True)
def draw_values(entries, own, other, noise, address, out, start, stop):
    """``out`` becomes the values of the rows start to stop, those in intervals drawn given the signal.

    ``noise`` is a `RowNoise`; the draws have the addresses of those in `gaussian_rows`.
    """
    stream = start_stream(address.key, address.sweep, noise.purpose)
    all_bits = np.empty(longest_row(entries.pointers, start, stop), dtype=np.uint64)
    for i in range(start, stop):
        first, last, row = entries.pointers[i], entries.pointers[i + 1], address.first_row + i
        bits = all_bits[: last - first]
        row_bits(stream, row, bits)
        for t in range(first, last):
            cell = entries.cells[t]
            if cell < 0:
                out[t] = entries.values[t]
                continue
            sd = 1.0 / precision_of(entries, noise, i, t)
            z = signal_of(own, other, i, entries.indices[t])
            low, high = interval_ends(noise, i, entries.indices[t], cell)
            low, high = (low - z) / sd, (high - z) / sd
            out[t] = z + sd * normal_in_interval(bits[t - first], low, high, stream, row, t - first)


@njit(nogil=True, cache=True)
def entry_signals(entries, own, other, noise, signals, precisions, start, stop):
    """The signal of every entry of the rows start to stop, and the inverse of its noise's sd."""
    for i in range(start, stop):
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            signals[t] = signal_of(own, other, i, entries.indices[t])
            precisions[t] = precision_of(entries, noise, i, t)


@njit
def log_probability(low, high):
    """log(Phi(high) - Phi(low)), also in the tails."""
    if low > 0.0:
        low, high = -high, -low
    # Now low <= 0, and either end is in the lower half or they are on both sides of 0.
    above = 0.5 * math.erfc(high / math.sqrt(2.0))
    below = 0.5 * math.erfc(-low / math.sqrt(2.0))
    if high > 0.0:
        return math.log1p(-(above + below))
    probability = 0.5 * math.erfc(-high / math.sqrt(2.0)) - below
    if probability > _SMALLEST:
        return math.log(probability)
    # The density falls exponentially from the nearer end: Mills' ratio, to a share of 1 / high^2.
    share = max(-math.expm1(high * (high - low)), 1e-300)
    return -0.5 * high * high - 0.5 * math.log(2.0 * math.pi) + math.log(share / -high)


@njit(nogil=True, cache=True)
def log_likelihood(signals, precisions, ends, first, last):
    """Sum of log P(low < y <= high) over the entries first to last, for y ~ N(signal, 1/precision^2)."""
    total = 0.0
    low, high = ends
    for t in range(first, last):
        z, p = signals[t], precisions[t]
        total += log_probability(p * (low - z), p * (high - z))
    return total
