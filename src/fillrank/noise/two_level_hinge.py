r"""Two levels with the hinge loss: the potential of a max-margin classifier.

A level x of -1 or 1 has the potential :math:`e^{-C \max(0, \zeta)}` with
:math:`\zeta = \ell - x (z - \theta)`, for the threshold theta. It is a mixture of Gaussians
(`fillrank.noise.hinge`): with c = C/2,

.. math:: 1 / \lambda \sim \text{InverseGaussian}(1 / (c |\zeta|), 1), \qquad w = c^2 / \lambda, \qquad
          y = \theta + x (\ell + \lambda / c) .

The potential is not a likelihood: those of the two levels do not add up to 1. Predictions normalise
them,

.. math:: P(x) = \frac{e^{-C \max(0, \ell - x t)}}{e^{-C \max(0, \ell - t)} + e^{-C \max(0, \ell + t)}},
          \qquad t = z - \theta,

which is 1 / (1 + exp(-2 C x t)) up to the margin, |t| <= ell, and
1 / (1 + exp(-C (|t| + ell) x sign t)) beyond it. P(1) increases in t from 0 to 1, so it is a
distribution function, and a draw of a level is that of z + e with noise e of this distribution.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from fillrank.kernels.entry_laws import register_levels
from fillrank.noise.hinge import reciprocal_lambda
from fillrank.noise.law import Law
from fillrank.runtime.kernel_cache import njit

# C and ell. A level far on the wrong side counts as much as with the logistic link, whose loss has the
# slope 1 there; the margin only fixes the unit of the signal.
PENALTY, MARGIN = 1.0, 1.0
# The largest 1/lambda, as for Laplace noise: see there.
LARGEST_RECIPROCAL = 1e6


class TwoLevelHinge(NamedTuple):
    """The law in kernels, with C and ell."""

    C: float = PENALTY
    ell: float = MARGIN
    is_mixture: bool = False
    of_levels: bool = True


@njit
def hinge_working(law, margin, stream):  # type: ignore[no-untyped-def]
    """(w, x (y - z)), given x (z - theta)."""
    c = 0.5 * law.C
    zeta = law.ell - margin
    reciprocal = min(reciprocal_lambda(stream, c, zeta), LARGEST_RECIPROCAL)
    return c * c * reciprocal, zeta + 1.0 / (c * reciprocal)


register_levels(TwoLevelHinge, hinge_working)


def _log_odds(t: np.ndarray) -> np.ndarray:
    size = np.abs(t)
    return np.sign(t) * PENALTY * (size + np.minimum(size, MARGIN))


def _cumulative(t: np.ndarray) -> np.ndarray:
    return np.asarray(expit(_log_odds(t)))


def _quantile(p: np.ndarray) -> np.ndarray:
    odds = np.asarray(logit(p)) / PENALTY
    size = np.abs(odds)
    return np.sign(odds) * np.maximum(0.5 * size, size - MARGIN)


def _variance() -> float:
    """The variance of the noise, by the midpoint rule on its quantiles."""
    n = 2**16
    return float(np.mean(_quantile((np.arange(n) + 0.5) / n) ** 2))


HINGE = Law(TwoLevelHinge(), _variance(), 1.0 / PENALTY**2, _cumulative, _quantile)
