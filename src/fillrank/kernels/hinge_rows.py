r"""The rows' side of the all-threshold hinge loss: features in [0, 1], thresholds, and the loss itself.

Row i holds levels y_j of 1..L. With scores x_j = psi_i . Lam_j and thresholds theta_ir its loss is

    sum_j sum_r max(0, ell - T_jr (theta_ir - x_j)),    T_jr = +1 if r >= y_j, else -1.

A row is processed in cache: the factors of its columns are gathered once into a tile, together with
its scores. Its entries are sorted by level, so that at each threshold those with T = +1 come first
and those with T = -1 last. Rows are independent of each other.

**Exact minima along one coordinate.** A sum of hinges is convex and piecewise linear in a
coordinate u: its slope S(u) rises at corners. Add a convex term whose derivative is link(u) -
target. The minimum of the sum, with a weight on the hinges, satisfies

    link(u) = target - weight S(u).

The link is the logit if the term is the entropy of a probability, the identity if it is a
quadratic. The search is for v = link(u), with corners in the unit of v. It uses selection, in time
linear in the number of corners. Between two corners the minimum has a closed form; otherwise it is
a corner.
"""

import math
from typing import NamedTuple

import numpy as np

from fillrank.kernels.ordinal import direction_of, score_at
from fillrank.kernels.tiles import REASSOCIATE, add_multiple, longest_row
from fillrank.runtime.kernel_cache import njit


class Corners(NamedTuple):
    """Where the slope of a piecewise linear function rises, in any order, and by how much."""

    positions: np.ndarray
    rises: np.ndarray


@njit
def empty_corners(size):
    """Uninitialised arrays for so many corners."""
    return Corners(np.empty(size), np.empty(size))


@njit
def logistic(v):
    """1 / (1 + e^-v), the inverse of the logit."""
    if v < 0.0:
        e = math.exp(v)
        return e / (1.0 + e)
    return 1.0 / (1.0 + math.exp(-v))


@njit
def _swap(corners, a, b):
    positions, rises = corners
    positions[a], positions[b] = positions[b], positions[a]
    rises[a], rises[b] = rises[b], rises[a]


@njit
def _partition(corners, low, high, pivot):
    """Order the corners low to high into those below, at and above the pivot.

    Returns where those at and those above it start, and the sums of the rises below and at it.
    """
    below, at = 0.0, 0.0
    a, t, b = low, low, high
    while t < b:
        if corners.positions[t] < pivot:
            below += corners.rises[t]
            _swap(corners, a, t)
            a += 1
            t += 1
        elif corners.positions[t] > pivot:
            b -= 1
            _swap(corners, t, b)
        else:
            at += corners.rises[t]
            t += 1
    return a, b, below, at


@njit
def solve(target, weight, slope, corners, n):
    """v = target - weight S(v), where S is ``slope`` before the first of the n corners.

    S never decreases, so there is one v at which the sides are equal or, at a corner, cross. The
    corners are reordered.
    """
    low, high = 0, n
    while low < high:
        v = corners.positions[(low + high) // 2]
        a, b, below, at = _partition(corners, low, high, v)
        if v > target - weight * (slope + below):
            high = a
        elif v < target - weight * (slope + below + at):
            low = b
            slope += below + at
        else:
            return v
    return target - weight * slope


@njit(fastmath=REASSOCIATE)
def slope_at_zero(x, f, T, corner):
    """The slope, at u = 0, of sum_t max(0, T (x_t + u f_t - corner))."""
    slope = 0.0
    for t in range(x.size):
        slope += f[t] if T * (corner - x[t]) < 0.0 else 0.0
    return T * slope


@njit
def add_crossings(x, f, T, corner, corners, n):
    """Append the hinges T (x_t + u f_t - corner) that change sign for u in [0, 1]; their new number.

    A corner is first stored as the terms of its quotient: only the few corners that remain need a
    division. There is no branch, because processors could not predict it.
    """
    for t in range(x.size):
        g, h = T * (corner - x[t]), T * f[t]
        corners.positions[n] = g
        corners.rises[n] = h
        n += (g < 0.0) != (g - h < 0.0)
    return n


@njit(error_model="numpy")
def finish_crossings(corners, n):
    """Turn the terms of the quotients u = g / h into logits of u, and slopes into rises."""
    for c in range(n):
        g, h = corners.positions[c], corners.rises[c]
        corners.positions[c] = math.log(abs(g / (h - g)))
        corners.rises[c] = abs(h)


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

    The objective in one of them is the loss times C, minus the entropy of a Bernoulli(psi_ik),
    minus psi_ik ``targets[k]``. ``scorer`` holds psi, Lam and the thresholds.
    """
    psi, Lam, thresholds = scorer.left, scorer.right, scorer.thresholds
    n_features, n_thresholds = psi.shape[1], thresholds.shape[1]
    longest = longest_row(entries.pointers, start, stop)
    tile = np.empty((n_features, longest))
    scores = np.empty(longest)
    order = np.empty(longest, dtype=np.int64)
    ends = np.empty(n_thresholds, dtype=np.int64)
    # One more, to which corners are written that do not remain.
    corners = empty_corners(n_thresholds * longest + 1)
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
    corners = empty_corners(longest)
    weight = hinges.C * prior.variance
    for i in range(start, stop):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        n = last - first
        for t in range(n):
            scores[t] = score_at(scorer, i, entries.indices[first + t])
        for r in range(n_thresholds):
            slope = 0.0
            for t in range(n):
                # With T = +1 the threshold should be above x + ell, with T = -1 below x - ell.
                above = entries.values[first + t] <= r + 1
                slope -= above
                corners.positions[t] = scores[t] + (hinges.ell if above else -hinges.ell)
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
