r"""Laplace noise: the most probable signal is a median, and outlying values count little.

The density of the noise e of scale s is :math:`e^{-|e| / s} / (2 s)`, and its variance 2 s^2. It is
normal with a random variance (D. F. Andrews and C. L. Mallows, "Scale mixtures of normal
distributions", JRSS B 36, 1974),

.. math:: e \mid l \sim N(0, s^2 / l), \qquad 1 / l \sim \text{Exponential(mean 2)}, \qquad
          l \mid e \sim \text{InverseGaussian}(s / |e|, 1) .

Given l, all other conditionals are those of Gaussian noise with the weights l. The prior of l does not
depend on s, so s is drawn as with Gaussian noise, too.
"""

import math
from typing import NamedTuple

import numpy as np

from fillrank.draws.inverse_gaussian import inverse_gaussian
from fillrank.kernels.entry_laws import register_numbers
from fillrank.noise.law import Law
from fillrank.runtime.kernel_cache import njit

# The largest weight. A residual of 0 has weights without a mean, and sums in single precision would lose
# all other entries of the row. An entry of this weight is fitted to a thousandth of the noise.
LARGEST_WEIGHT = 1e6


class Laplace(NamedTuple):
    """The law in kernels."""

    is_mixture: bool = True
    of_levels: bool = False


@njit
def laplace_weight(_law, _degrees, square, stream):  # type: ignore[no-untyped-def]
    """l, given e^2."""
    mean = 1.0 / math.sqrt(square) if square > 0.0 else math.inf
    return min(inverse_gaussian(stream, mean, 1.0), LARGEST_WEIGHT)


@njit
def _distribution(_law, t):  # type: ignore[no-untyped-def]
    density = 0.5 * math.exp(-abs(t))
    return (density if t < 0.0 else 1.0 - density), density


register_numbers(Laplace, laplace_weight, _distribution)


def _cumulative(t: np.ndarray) -> np.ndarray:
    tail = 0.5 * np.exp(-np.abs(t))
    return np.where(t < 0.0, tail, 1.0 - tail)


def _quantile(p: np.ndarray) -> np.ndarray:
    size = -np.log(2.0 * np.minimum(p, 1.0 - p))
    return np.where(p < 0.5, -size, size)


def _log_density(t: np.ndarray) -> np.ndarray:
    return -np.abs(t) - math.log(2.0)


LAPLACE = Law(Laplace(), 2.0, 1.0, _cumulative, _quantile, _log_density)
