r"""Dual coordinate descent for the columns of iPM3F, each a linear support vector machine.

Column j holds levels y_i of 1..L in its rows i. Its factor w = Lam_j minimises

    P(w) = ||w||^2 / (2 variance) + sum_i phi_i(w . psi_i),
    phi_i(x) = C sum_r max(0, ell - T_ir (theta_ir - x)),    T_ir = +1 if r >= y_i, else -1.

All hinges of an entry have the same score, so that an entry needs one dual variable b_i for all of
them:

    max over b:  D(b) = -sum_i phi_i*(b_i) - variance/2 ||sum_i b_i psi_i||^2,
    w = -variance sum_i b_i psi_i,    -C (y_i - 1) <= b_i <= C (L - y_i),

where at the optimum b_i is a subgradient of phi_i at the score x_i. Along b_i the score is
x = x_rest - h b_i with h = variance ||psi_i||^2, and b_i has to be in the subgradient there: phi_i
has L - 1 corners, which are tried from the left.
"""

from typing import NamedTuple

import numpy as np

from fillrank.kernels.ordinal import dot
from fillrank.kernels.tiles import REASSOCIATE, longest_row
from fillrank.runtime.kernel_cache import njit

# The most passes over a column, and the change of a score, as a share of ell, below which they end.
# More passes do not pay, because the features change in the next step anyway.
MOST_PASSES = 10
SMALLEST_MOVE = 1e-3


@njit
def _put_corners(level, thresholds, ell, out):
    """The positions where the slope of phi_i rises by C, ascending: theta_r - T_r ell."""
    for r in range(thresholds.size):
        position = thresholds[r] - ell if level <= r + 1 else thresholds[r] + ell
        p = r
        while p > 0 and out[p - 1] > position:
            out[p] = out[p - 1]
            p -= 1
        out[p] = position


@njit
def _best_dual(rest, h, lowest, C, corners):
    """b in the subgradient of phi_i at rest - h b, which is ``lowest`` left of the first corner."""
    b = lowest
    for position in corners:
        at_corner = (rest - position) / h
        if at_corner <= b:
            return b
        if at_corner <= b + C:
            return at_corner
        b += C
    return b


@njit(fastmath=REASSOCIATE)
def _add(a, step, b):
    for k in range(a.size):
        a[k] += step * b[k]


class Column(NamedTuple):
    """The data of one column: its levels, psi_i, h_i and corners of phi_i, entry by entry."""

    levels: np.ndarray
    psi: np.ndarray
    h: np.ndarray
    corners: np.ndarray


@njit
def _fill(column, indices, scorer, ell, variance):
    for t in range(indices.size):
        psi = scorer.left[indices[t]]
        column.psi[t] = psi
        column.h[t] = variance * dot(psi, psi)
        _put_corners(column.levels[t], scorer.thresholds[indices[t]], ell, column.corners[t])


@njit
def _primal(w, column, C, variance):
    """P(w), up to a constant: max(0, c - x) is max(0, x - c) - x + c."""
    value = 0.5 * dot(w, w) / variance
    for t in range(column.levels.size):
        x = dot(w, column.psi[t])
        phi = (1.0 - column.levels[t]) * x
        for position in column.corners[t]:
            phi += max(0.0, x - position)
        value += C * phi
    return value


@njit
def _one_pass(w, duals, column, C, variance):
    """Improve each dual in turn; returns the largest change that one of them made to its score."""
    largest = 0.0
    for t in range(duals.size):
        h, old = column.h[t], duals[t]
        if h == 0.0:
            continue
        rest = dot(w, column.psi[t]) + h * old
        duals[t] = _best_dual(rest, h, C * (1.0 - column.levels[t]), C, column.corners[t])
        _add(w, variance * (old - duals[t]), column.psi[t])
        largest = max(largest, h * abs(duals[t] - old))
    return largest


@njit(nogil=True, cache=True)
def fit_columns(entries, scorer, hinges, variance, duals, start, stop):
    """Minimise over the factors Lam_j = ``scorer.right[j]`` of the columns start to stop, in place.

    ``entries`` are those of the transpose, ``duals`` are theirs: any are valid, good ones save
    passes. A column takes passes until none changes a score by more than ``SMALLEST_MOVE`` ell, or
    ``MOST_PASSES``. If its objective is then higher than before, Lam_j does not change.
    """
    n_features, n_thresholds = scorer.left.shape[1], scorer.thresholds.shape[1]
    longest = longest_row(entries.pointers, start, stop)
    tile = np.empty((longest, n_features))
    h = np.empty(longest)
    corners = np.empty((longest, n_thresholds))
    w = np.empty(n_features)
    for j in range(start, stop):
        first, last = entries.pointers[j], entries.pointers[j + 1]
        n = last - first
        column = Column(entries.values[first:last], tile[:n], h[:n], corners[:n])
        _fill(column, entries.indices[first:last], scorer, hinges.ell, variance)
        own = duals[first:last]
        w[:] = 0.0
        for t in range(n):
            _add(w, -variance * own[t], column.psi[t])
        for _ in range(MOST_PASSES):
            if _one_pass(w, own, column, hinges.C, variance) <= SMALLEST_MOVE * hinges.ell:
                break
        old = scorer.right[j]
        if _primal(w, column, hinges.C, variance) < _primal(old, column, hinges.C, variance):
            old[:] = w
