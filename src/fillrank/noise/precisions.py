r"""Noise that differs by row, by column and by entry: draws of precisions and degrees of freedom.

.. math::

    x_{ij} &\sim N(z_{ij}, \; \sigma^2 / (a_i b_j l_{ij} w_{ij})), \qquad w_{ij} \text{ given} \\
    a_i &\sim \text{Gamma}(\nu_r / 2, \text{rate } \nu_r / 2), \qquad
    b_j \sim \text{Gamma}(\nu_c / 2, \text{rate } \nu_c / 2), \qquad
    l_{ij} \sim \text{Gamma}(\nu / 2, \text{rate } \nu / 2) \\
    \sigma &\sim \text{half-Cauchy}(0, S), \qquad \nu_r, \nu_c, \nu \sim
    \text{uniform on a logarithmic grid}

Each of a, b and l is optional. With l the noise of an entry is Student-t; l is drawn in the turn of
its row (`fillrank.kernels.gaussian_rows`), and only its sums come here.

The grid of the degrees of freedom starts at 4: with fewer, a row with two or three entries could take
them for exact, and the factors would interpolate them. S is 2 standard deviations of the data.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from fillrank.draws.gamma import gamma
from fillrank.draws.slice import slice_step
from fillrank.draws.streams import Address, seek, start_stream, uniform
from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers

# S, in standard deviations of the data: in a table of few entries that unit itself is uncertain.
PRIOR_SCALE = 2.0
# The cost of a draw, in entries of a half-sweep.
_COST = 4
_ALONE = Workers(1)
# The degrees of freedom that are possible.
DEGREES = np.geomspace(4.0, 2000.0, 48)
_HALF = 0.5 * DEGREES
# The logarithm of the density of one precision has this term, which does not depend on the precision.
_NORMALISER = _HALF * np.log(_HALF) - gammaln(_HALF)


@njit
def draw_variance(stream: np.ndarray, variance: float, n: int, square: float) -> float:
    """A step to a new variance v, given n normal variables of mean 0 with this sum of squares.

    sqrt(v) ~ half-Cauchy(0, S), which is v | xi ~ InverseGamma(1/2, 1/xi) and
    xi ~ InverseGamma(1/2, 1/S^2) (Wand, Ormerod, Padoan and Fruehwirth, Bayesian Analysis 6, 2011).
    So 1/xi | v ~ Gamma(1, rate 1/S^2 + 1/v) and v | xi ~ InverseGamma((n + 1)/2, 1/xi + square/2).
    """
    inverse_xi = gamma(stream, 1.0, 1.0 / PRIOR_SCALE**2 + 1.0 / variance)
    return (inverse_xi + 0.5 * square) / gamma(stream, 0.5 * (n + 1), 1.0)


@njit(cache=True)
def draw_noise_variance(address: Address, variance: float, n: int, square: float) -> float:
    """sigma^2 given n residuals with this sum of squares, each times its relative precision."""
    stream = start_stream(address.key, address.sweep, address.purpose)
    return draw_variance(stream, variance, n, square)


class _Sums(NamedTuple):
    """The number of entries of each row, and the weighted sum of their squared residuals."""

    counts: np.ndarray
    squares: np.ndarray


@njit(nogil=True, cache=True)
def _draw_precisions(
    address: Address,
    sums: _Sums,
    variance: float,
    degrees: float,
    out: np.ndarray,
    start: int,
    stop: int,
) -> None:
    stream = start_stream(address.key, address.sweep, address.purpose)
    for i in range(start, stop):
        seek(stream, i, 0)
        shape = 0.5 * (degrees + sums.counts[i])
        out[i] = gamma(stream, shape, 0.5 * (degrees + sums.squares[i] / variance))


def draw_precisions(
    address: Address,
    counts: np.ndarray,
    squares: np.ndarray,
    variance: float,
    degrees: float,
    workers: Workers = _ALONE,
) -> np.ndarray:
    """a_i ~ Gamma((nu + n_i)/2, rate (nu + q_i / sigma^2)/2).

    Row i has n_i entries, and q_i is the sum of their squared residuals, each times the precision of
    its column and its weight.
    """
    out = np.empty(counts.size)
    work = partial(_draw_precisions, address, _Sums(counts, squares), variance, degrees, out)
    workers.for_rows(work, _COST * np.arange(counts.size + 1))
    return out


@njit(cache=True)
def _uniform_at(address: Address, quantity: int) -> float:
    stream = start_stream(address.key, address.sweep, address.purpose)
    seek(stream, quantity, 0)
    return uniform(stream)


def draw_degrees(address: Address, quantity: int, n: int, total: float, log_total: float) -> float:
    """nu given n precisions with this sum and this sum of logarithms: one of `DEGREES`.

    ``quantity`` is the row of the random numbers at the address, here and below.
    """
    log_density = n * _NORMALISER + _HALF * (log_total - total)
    cumulative = np.cumsum(np.exp(log_density - log_density.max()))
    level = _uniform_at(address, quantity) * cumulative[-1]
    return float(DEGREES[min(np.searchsorted(cumulative, level), DEGREES.size - 1)])


def draw_common_scale(
    address: Address,
    quantity: int,
    precisions: np.ndarray,
    degrees: float,
    relative_variance: float,
    resolved: float = 0.0,
) -> float:
    """A factor c for sigma^2 and all precisions of a side, which does not change the noise of any cell.

    sigma^2 alone moves in steps of sqrt(2/N) of itself for N entries. In t = log c the density is
    proportional to exp(t (n nu + 1)/2 - e^t sum_i a_i nu/2) / (1 + e^t s) for n precisions, with
    ``relative_variance`` s = sigma^2 / S^2. A factor exp(-``resolved``) of the density, with a term that
    is inversely proportional to sigma^2, becomes exp(-``resolved`` e^-t).
    """
    power, rate = 0.5 * (precisions.size * degrees + 1.0), 0.5 * degrees * float(precisions.sum())

    def log_density(t: float) -> float:
        c = math.exp(min(max(t, -700.0), 700.0))
        return power * t - rate * c - math.log1p(c * relative_variance) - resolved / c

    width = 2.0 / math.sqrt(power)
    return math.exp(slice_step(0.0, log_density, width, address, quantity))
