r"""Two levels with the logistic link.

The level is the upper one, x = 1, if z + e is above the threshold theta, and x = -1 otherwise, where the
noise e has the logistic distribution: P(x) = 1 / (1 + exp(-x (z - theta))). With a Polya-Gamma variable

.. math:: \omega \mid z \sim PG(1, z - \theta), \qquad w = \omega, \qquad y = \theta + x / (2 \omega)

(`fillrank.draws.polya_gamma`).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from fillrank.draws.polya_gamma import polya_gamma
from fillrank.kernels.entry_laws import register_levels
from fillrank.noise.law import Law
from fillrank.runtime.kernel_cache import njit


class Logistic(NamedTuple):
    """The law in kernels."""

    is_mixture: bool = False
    of_levels: bool = True


@njit
def logistic_working(_law, margin, stream):  # type: ignore[no-untyped-def]
    """(w, x (y - z)), given x (z - theta)."""
    omega = polya_gamma(stream, margin)
    return omega, 0.5 / omega - margin


register_levels(Logistic, logistic_working)


def _cumulative(t: np.ndarray) -> np.ndarray:
    return np.asarray(expit(t))


def _quantile(p: np.ndarray) -> np.ndarray:
    return np.asarray(logit(p))


LOGISTIC = Law(Logistic(), math.pi**2 / 3.0, 4.0, _cumulative, _quantile)
