r"""Polya-Gamma draws, by Devroye's method.

The Polya-Gamma distribution PG(1, z) has the density of

    omega = (1 / (2 pi^2)) sum_{k >= 1} E_k / ((k - 1/2)^2 + z^2 / (4 pi^2)),    E_k ~ Exp(1),

and 1 / (1 + e^-z) is a mixture of Gaussians in z with omega as their precision (N. G. Polson, J. G.
Scott and J. Windle, "Bayesian inference for logistic models using Polya-Gamma latent variables", JASA
108 (2013) 1339-1349). With c = |z| / 2 it is X / 4, where X has a density proportional to

    e^(-c^2 x / 2) sum_{n >= 0} (-1)^n a_n(x),

and the a_n decrease in n for every x, if they are taken in one of two forms below t = 0.64 and in the
other above it. So their partial sums are bounds, from above and from below in turn, and a draw whose
proposal has the density of a_0 is accepted or rejected after a few terms, exactly (L. Devroye, "On exact
simulation algorithms for some distributions related to Jacobi theta functions", Statistics and
Probability Letters 79 (2009) 2251-2259). The proposal is exponential above t and inverse Gaussian below.
"""

import math

import numpy as np

from fillrank.draws.inverse_gaussian import inverse_gaussian
from fillrank.draws.streams import uniform
from fillrank.runtime.kernel_cache import njit

# t, where the two forms of the terms meet.
_MIDDLE = 0.64
# From this c on, the second term of the inverse Gaussian distribution function at t is nothing.
_FAR = 30.0


@njit
def _normal_below(x: float) -> float:
    """Phi(x)."""
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


@njit
def _share_above(c: float) -> float:
    """The probability that the proposal is above t: p / (p + q) of its two parts.

    q / p is computed, which is inf for large c, where p and q themselves would both be 0.
    """
    rate = math.pi**2 / 8.0 + 0.5 * c * c
    root = math.sqrt(1.0 / _MIDDLE)
    below = _normal_below(root * (_MIDDLE * c - 1.0))
    if c < _FAR:
        below += math.exp(2.0 * c) * _normal_below(-root * (_MIDDLE * c + 1.0))
    return 1.0 / (1.0 + 4.0 / math.pi * rate * math.exp(rate * _MIDDLE - c) * below)


@njit
def _inverse_gaussian_below(stream: np.ndarray, c: float) -> float:
    """A draw of IG(1 / c, 1) below t."""
    if c * _MIDDLE > 1.0:  # most draws are below t
        while True:
            x = inverse_gaussian(stream, 1.0 / c, 1.0)
            if x < _MIDDLE:
                return x
    while True:
        # 1 / x is a chi-square variable above 1 / t, by Devroye's rejection from exponentials.
        one = -math.log(uniform(stream))
        two = -math.log(uniform(stream))
        if one * one > 2.0 * two / _MIDDLE:
            continue
        x = _MIDDLE / (1.0 + _MIDDLE * one) ** 2
        if uniform(stream) < math.exp(-0.5 * c * c * x):
            return x


@njit
def _term(n: int, x: float) -> float:
    """a_n(x)."""
    h = n + 0.5
    if x > _MIDDLE:
        return math.pi * h * math.exp(-0.5 * (math.pi * h) ** 2 * x)
    return math.pi * h * (2.0 / (math.pi * x)) ** 1.5 * math.exp(-2.0 * h * h / x)


@njit
def _is_accepted(stream: np.ndarray, x: float) -> bool:
    """Whether a proposal is a draw: a uniform share of a_0(x) is compared with the partial sums."""
    total = _term(0, x)
    level = uniform(stream) * total
    n = 0
    while True:
        n += 1
        total -= _term(n, x)
        if level <= total:
            return True
        n += 1
        total += _term(n, x)
        if level > total:
            return False


@njit
def polya_gamma(stream: np.ndarray, z: float) -> float:
    """A draw from PG(1, z), whose mean is tanh(z / 2) / (2 z)."""
    c = 0.5 * abs(z)
    rate = math.pi**2 / 8.0 + 0.5 * c * c
    share = _share_above(c)
    while True:
        if uniform(stream) < share:
            x = _MIDDLE - math.log(uniform(stream)) / rate
        else:
            x = _inverse_gaussian_below(stream, c)
        if _is_accepted(stream, x):
            return 0.25 * x
