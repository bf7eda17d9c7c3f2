r"""Ordered levels under the all-threshold hinge, as Gaussian pseudo-observations of the scores.

An entry of level y in 1..L, with score x and its row's thresholds theta_1, ..., theta_L-1, has the
pseudo-likelihood

.. math:: \prod_r e^{-C \max(0, \zeta_r)}, \qquad \zeta_r = \ell - T_r (\theta_r - x), \qquad
          T_r = +1 \text{ if } r \ge y \text{ else } -1 .

With c = C/2 each factor is a mixture of Gaussians (Polson and Scott, "Data augmentation for support
vector machines", Bayesian Analysis 6, 2011),

.. math:: e^{-2 c \max(0, \zeta)} =
          \int_0^\infty \frac{1}{\sqrt{2 \pi \lambda}} e^{-(\lambda + c \zeta)^2 / (2 \lambda)} d\lambda,

so that, with lambda among the unknowns,

.. math::

    1 / \lambda_r \mid \cdot &\sim \text{InverseGaussian}(1 / (c |\zeta_r|), 1), \\
    \theta_r \mid \cdot &\sim N(h / p, 1 / p), \quad p = s^{-2} + c^2 \sum_j 1/\lambda_{jr}, \quad
    h = s^{-2} \rho_r + c \sum_j T_{jr} + c^2 \sum_j (\ell T_{jr} + x_j) / \lambda_{jr},

where theta_r has the prior N(rho_r, s^2) and j runs over the entries of the row. Given both, the
factors of an entry are :math:`e^{-(w/2) (y - x)^2}`, up to a constant, with

.. math:: w = c^2 \sum_r 1/\lambda_r, \qquad
          w y = - c \sum_r T_r - c^2 \sum_r (\ell T_r - \theta_r) / \lambda_r .

For each row, lambda, then the thresholds, then w and y are computed in that order. So w and y
belong to the new thresholds, and are valid until lambda or the thresholds are drawn again.
"""

import math
from typing import NamedTuple

import numpy as np

from fillrank.draws.inverse_gaussian import inverse_gaussian
from fillrank.draws.normal import normal
from fillrank.draws.streams import AUGMENTATION, THRESHOLDS, seek, start_stream
from fillrank.kernels.ordinal import Scorer, direction_of, score_at
from fillrank.kernels.tiles import longest_row
from fillrank.runtime.kernel_cache import njit
from fillrank.table.entries import Entries


class Hinge(NamedTuple):
    """C and ell of the loss; rho (one per threshold) and s of the thresholds' prior."""

    C: float
    ell: float
    threshold_mean: np.ndarray
    threshold_sd: float


class Working(NamedTuple):
    """The levels as Gaussian observations of the scores: a weight w and a response y per entry."""

    weights: np.ndarray
    responses: np.ndarray


@njit
def reciprocal_lambda(stream: np.ndarray, c: float, zeta: float) -> float:
    """A draw of 1/lambda given zeta."""
    rate = c * abs(zeta)
    return inverse_gaussian(stream, 1.0 / rate if rate > 0.0 else math.inf, 1.0)


@njit
def _draw_reciprocals(
    stream: np.ndarray,
    i: int,
    levels: np.ndarray,
    x: np.ndarray,
    thresholds: np.ndarray,
    hinge: Hinge,
    reciprocals: np.ndarray,
) -> None:
    """1/lambda of every entry and threshold of row i."""
    c = 0.5 * hinge.C
    n_thresholds = thresholds.size
    for t in range(levels.size):
        for r in range(n_thresholds):
            zeta = hinge.ell - direction_of(r, levels[t]) * (thresholds[r] - x[t])
            seek(stream, i, t * n_thresholds + r)
            reciprocals[t, r] = reciprocal_lambda(stream, c, zeta)


@njit
def _draw_thresholds(
    stream: np.ndarray,
    i: int,
    levels: np.ndarray,
    x: np.ndarray,
    reciprocals: np.ndarray,
    hinge: Hinge,
    thresholds: np.ndarray,
) -> None:
    """The thresholds of row i, given lambda and the scores."""
    c = 0.5 * hinge.C
    prior_precision = 1.0 / hinge.threshold_sd**2
    for r in range(thresholds.size):
        p = prior_precision
        h = prior_precision * hinge.threshold_mean[r]
        for t in range(levels.size):
            T = direction_of(r, levels[t])
            scale = c * c * reciprocals[t, r]
            p += scale
            h += c * T + scale * (hinge.ell * T + x[t])
        seek(stream, i, r)
        thresholds[r] = h / p + normal(stream) / math.sqrt(p)


@njit
def _working(
    level: float, thresholds: np.ndarray, reciprocals: np.ndarray, hinge: Hinge
) -> tuple[float, float]:
    """(w, y) of an entry; without thresholds it says nothing, and both are 0."""
    c = 0.5 * hinge.C
    w, wy = 0.0, 0.0
    for r in range(thresholds.size):
        T = direction_of(r, level)
        scale = c * c * reciprocals[r]
        w += scale
        wy -= c * T + scale * (hinge.ell * T - thresholds[r])
    return w, wy / w if w > 0.0 else 0.0


@njit(nogil=True, cache=True)
def augment_rows(
    entries: Entries,
    scorer: Scorer,
    hinge: Hinge,
    key: np.uint64,
    sweep: int,
    working: Working,
    start: int,
    stop: int,
) -> None:
    """Draw lambda and then the thresholds of the rows start to stop, and fill in ``working``.

    ``entries`` hold numbers of levels; ``scorer.thresholds`` are replaced in place.
    """
    longest = longest_row(entries.pointers, start, stop)
    x = np.empty(longest)
    reciprocals = np.empty((longest, scorer.thresholds.shape[1]))
    for_lambda = start_stream(key, sweep, AUGMENTATION)
    for_thresholds = start_stream(key, sweep, THRESHOLDS)
    for i in range(start, stop):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        levels, thresholds = entries.values[first:last], scorer.thresholds[i]
        for t in range(last - first):
            x[t] = score_at(scorer, i, entries.indices[first + t])
        _draw_reciprocals(for_lambda, i, levels, x, thresholds, hinge, reciprocals)
        _draw_thresholds(for_thresholds, i, levels, x, reciprocals, hinge, thresholds)
        for t in range(last - first):
            w, y = _working(levels[t], thresholds, reciprocals[t], hinge)
            working.weights[first + t], working.responses[first + t] = w, y
