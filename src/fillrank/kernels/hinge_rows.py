r"""The rows' side of the all-threshold hinge loss: features in [0, 1], thresholds, and the loss itself.

Row i holds levels y_j of 1..L. With scores x_j = psi_i . Lam_j and thresholds theta_ir its loss is

    sum_j sum_r max(0, ell - T_jr (theta_ir - x_j)),    T_jr = +1 if r >= y_j, else -1.

A row is worked in cache: the factors of its columns are gathered once into a tile, and its scores live
as long as the row. Its entries are taken in the order of their levels, so that at each threshold those
with T = +1 come first and those with T = -1 last. Rows do not touch each other.
"""

from typing import NamedTuple

import numpy as np

from fillrank.kernels.hinge_pieces import (
    add_crossings,
    finish_crossings,
    logistic,
    room_for_corners,
    slope_at_zero,
    solve,
)
from fillrank.kernels.max_margin import direction_of
from fillrank.kernels.ordinal import score_at
from fillrank.kernels.tiles import REASSOCIATE, add_multiple, longest_row
from fillrank.runtime.kernel_cache import njit


class Hinges(NamedTuple):
    """The weight C and the margin ell of the hinges."""

    C: float
    ell: float


class ThresholdPrior(NamedTuple):
    """theta_ir ~ N(rho_r, variance)."""

    rho: np.ndarray
    variance: float


@njit
def order_by_level(levels, order, ends):
    """Number a row's entries by ascending level; ``ends[r - 1]`` takes how many are at most at r."""
    p = 0
    for y in range(1, ends.size + 2):
        for t in range(levels.size):
            if levels[t] == y:
                order[p] = t
                p += 1
        if y <= ends.size:
            ends[y - 1] = p


@njit(fastmath=REASSOCIATE)
def _gather(indices, order, coefficients, other, tile, scores):
    """Copy the factors of a row's columns into ``tile``, in the given order, with the row's scores."""
    for p in range(indices.size):
        j = indices[order[p]]
        x = 0.0
        for k in range(coefficients.size):
            f = other[j, k]
            tile[k, p] = f
            x += coefficients[k] * f
        scores[p] = x


@njit
def _best_feature(x, f, ends, thresholds, hinges, target, corners):
    """The best psi_ik, where x are the scores of the row without feature k and f = Lam_jk."""
    slope, n = 0.0, 0
    for r in range(ends.size):
        e = ends[r]
        low, high = thresholds[r] - hinges.ell, thresholds[r] + hinges.ell
        slope += slope_at_zero(x[:e], f[:e], 1.0, low) + slope_at_zero(x[e:], f[e:], -1.0, high)
        n = add_crossings(x[:e], f[:e], 1.0, low, corners, n)
        n = add_crossings(x[e:], f[e:], -1.0, high, corners, n)
    finish_crossings(corners, n)
    return logistic(solve(target, hinges.C, slope, corners, n))


@njit(nogil=True, cache=True)
def fit_features(entries, scorer, hinges, targets, start, stop):
    """Minimise over the features psi_ik of the rows start to stop, one after the other, in place.

    The objective in one of them is the loss times C, minus the entropy of a Bernoulli(psi_ik), minus
    psi_ik ``targets[k]``. ``scorer`` holds psi, Lam and the thresholds.
    """
    psi, Lam, thresholds = scorer.left, scorer.right, scorer.thresholds
    n_features, n_thresholds = psi.shape[1], thresholds.shape[1]
    longest = longest_row(entries.pointers, start, stop)
    tile = np.empty((n_features, longest))
    scores = np.empty(longest)
    order = np.empty(longest, dtype=np.int64)
    ends = np.empty(n_thresholds, dtype=np.int64)
    # One more: what is not kept gets written there.
    corners = room_for_corners(n_thresholds * longest + 1)
    for i in range(start, stop):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        n = last - first
        order_by_level(entries.values[first:last], order, ends)
        _gather(entries.indices[first:last], order, psi[i], Lam, tile, scores)
        x = scores[:n]
        for k in range(n_features):
            f = tile[k, :n]
            add_multiple(x, -psi[i, k], f, n)
            psi[i, k] = _best_feature(x, f, ends, thresholds[i], hinges, targets[k], corners)
            add_multiple(x, psi[i, k], f, n)


@njit(nogil=True, cache=True)
def fit_thresholds(entries, scorer, hinges, prior, start, stop):
    """Minimise over the thresholds of the rows start to stop, in place.

    The objective in theta_ir is C times the loss plus (theta_ir - rho_r)^2 / (2 variance).
    """
    n_thresholds = scorer.thresholds.shape[1]
    longest = longest_row(entries.pointers, start, stop)
    scores = np.empty(longest)
    corners = room_for_corners(longest)
    weight = hinges.C * prior.variance
    for i in range(start, stop):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        n = last - first
        for t in range(n):
            scores[t] = score_at(scorer, i, entries.indices[first + t])
        for r in range(n_thresholds):
            slope = 0.0
            for t in range(n):
                # T = +1 wants the threshold above x + ell, T = -1 below x - ell.
                above = entries.values[first + t] <= r + 1
                slope -= above
                corners.places[t] = scores[t] + (hinges.ell if above else -hinges.ell)
                corners.rises[t] = 1.0
            scorer.thresholds[i, r] = solve(prior.rho[r], weight, slope, corners, n)


@njit(nogil=True, cache=True)
def hinge_losses(entries, scorer, ell, losses, start, stop):
    """The losses of the rows start to stop, without C."""
    for i in range(start, stop):
        loss = 0.0
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            x = score_at(scorer, i, entries.indices[t])
            for r in range(scorer.thresholds.shape[1]):
                T = direction_of(r, entries.values[t])
                loss += max(0.0, ell - T * (scorer.thresholds[i, r] - x))
        losses[i] = loss
