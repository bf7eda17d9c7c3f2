"""What the tests of the draws share: arrays of draws, and the verdict on them.

Every test of a distribution ends in one p-value and fails if that is below ``ALARM``. The keys are
fixed, so that a test that passes continues passing; ALARM = 1e-4 is the rate of false alarms for
which it was chosen: how often correct code meets a failure when a key or a case is first written
down. With 250 p-values in this folder, new keys for all of them would raise a false alarm once in
forty times. For the Kolmogorov-Smirnov test it means that sqrt(n) D = 2.23 is caught.
"""

import zlib

import numpy as np
from numba import njit
from scipy import stats

from fillrank.draws.gamma import gamma
from fillrank.draws.inverse_gaussian import inverse_gaussian
from fillrank.draws.normal import normal, normal_from_bits
from fillrank.draws.streams import chain_key, next_bits, row_bits, start_stream, uniform
from fillrank.draws.truncated_normal import truncated_normal

ALARM = 1e-4
N = 100_000


def new_stream(*case):
    """A stream of its own for each case."""
    return start_stream(chain_key(zlib.crc32(repr(case).encode()), 0), 0, 0)


def filler(draw):
    """``fill(stream, out, *parameters)`` fills ``out`` with draws."""

    @njit
    def fill(stream, out, *parameters):
        for i in range(out.size):
            out[i] = draw(stream, *parameters)

    return fill


def sample(fill, *parameters, n=N):
    """``n`` draws, from a stream that belongs to the parameters."""
    out = np.empty(n)
    fill(new_stream(*parameters), out, *(float(p) for p in parameters))
    return out


fill_bits = filler(next_bits)
fill_uniform = filler(uniform)
fill_normal = filler(normal)
fill_gamma = filler(gamma)
fill_inverse_gaussian = filler(inverse_gaussian)
fill_truncated_normal = filler(truncated_normal)


@njit
def fill_normal_rows(stream, out):
    """Normal draws as the kernels make them: a row of bits at a time, 16 components to a row."""
    bits = np.empty(16, dtype=np.uint64)
    for row in range(out.size // 16):
        row_bits(stream, row, bits)
        for component in range(16):
            out[16 * row + component] = normal_from_bits(bits[component], stream, row, component)


def ks(draws, cdf):
    """The p-value of the draws under a continuous distribution."""
    return stats.ks_1samp(draws, cdf).pvalue


def chi2(counts, probabilities):
    """The p-value of counts in cells; both tails, as a fit that is too good is an error too."""
    expected = counts.sum() * probabilities
    statistic = np.sum((counts - expected) ** 2 / expected)
    law = stats.chi2(counts.size - 1)
    return 2.0 * min(law.sf(statistic), law.cdf(statistic))


def binomial(count, n, probability):
    """The p-value of a count, both tails."""
    law = stats.binom(n, probability)
    return min(1.0, 2.0 * min(law.cdf(count), law.sf(count - 1)))


def z_test(draws, mean, variance):
    """The p-value of the average of draws whose mean and variance are known."""
    z = (np.mean(draws) - mean) / np.sqrt(variance / draws.size)
    return 2.0 * stats.norm.sf(abs(z))
