r"""Ordered levels by scores and thresholds: predictions, and the loss of the max-margin methods.

The score of cell (i, j) is x_ij = left_i . right_j; row i has thresholds theta_i1, ..., theta_i,L-1,
and the predicted level is 1 + #{r : x_ij >= theta_ir}. That is defined in any order of the thresholds.

**The all-threshold loss.** An entry of level y and score x = u_i . v_j costs

    sum_r h(T^r (theta_ir - x)),   T^r = +1 if r >= y, else -1,   r = 1, ..., L - 1:

the score should lie below the thresholds from y on by a margin of 1, and above the others. The smooth
hinge is h(z) = 1/2 - z, (1 - z)^2 / 2 or 0, for z <= 0, 0 < z < 1 and z >= 1. With
G_ij = sum_r T^r h'(.) on Omega, the loss has the gradients -G V in U, -G^T U in V and
sum_j T^r h'(.) in theta_ir.

Each side takes one pass, O(|Omega| (K + L)). Both passes read the other side's factors anyway, so it is
cheaper to compute G twice than to carry it from the rows to the columns.
"""

from typing import NamedTuple

import numpy as np

from fillrank.kernels.tiles import REASSOCIATE
from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers
from fillrank.table.entries import Entries


class Scorer(NamedTuple):
    """What predicts levels: factors (m, K) and (n, K), thresholds (m, L - 1)."""

    left: np.ndarray
    right: np.ndarray
    thresholds: np.ndarray

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.left.nbytes + self.right.nbytes + self.thresholds.nbytes

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The scores of the cells (rows_p, columns_p)."""
        return np.einsum("pk,pk->p", self.left[rows], self.right[columns])


@njit(nogil=True)
def score_at(scorer, i, j):
    """The score of one cell."""
    x = 0.0
    for k in range(scorer.left.shape[1]):
        x += scorer.left[i, k] * scorer.right[j, k]
    return x


@njit(nogil=True)
def level_of(x, thresholds):
    """1 + the number of thresholds that a score reaches."""
    level = 1
    for r in range(thresholds.size):
        if x >= thresholds[r]:
            level += 1
    return level


@njit(nogil=True, cache=True)
def add_margins(scorer, rows, columns, out):
    """Add x_ij - theta_ir to out[p, r], for the cells (i, j) = (rows_p, columns_p)."""
    for p in range(rows.size):
        x = score_at(scorer, rows[p], columns[p])
        for r in range(out.shape[1]):
            out[p, r] += x - scorer.thresholds[rows[p], r]


@njit(nogil=True, cache=True)
def add_levels(scorer, values, rows, columns, out):
    """Add the values of the predicted levels of the cells (rows_p, columns_p)."""
    for p in range(rows.size):
        x = score_at(scorer, rows[p], columns[p])
        out[p] += values[level_of(x, scorer.thresholds[rows[p]]) - 1]


class RowGradients(NamedTuple):
    """The loss of every row (m,), and its gradients in U (m, K) and in the thresholds (m, L - 1)."""

    losses: np.ndarray
    left: np.ndarray
    thresholds: np.ndarray


@njit
def smooth_hinge(z):
    """(h(z), h'(z)), without branches: with h' = z - 1 cut to [-1, 0], h = h'^2 / 2 + max(-z, 0)."""
    slope = min(max(z - 1.0, -1.0), 0.0)
    return 0.5 * slope * slope + max(-z, 0.0), slope


@njit
def direction_of(r, level):
    """T^r, for r counted from 0: +1 if the score should be below threshold r, else -1."""
    return 1.0 if r + 1 >= level else -1.0


@njit(fastmath=REASSOCIATE)
def dot(a, b):
    """a . b."""
    x = 0.0
    for k in range(a.size):
        x += a[k] * b[k]
    return x


@njit
def _subtract_multiple(out, g, factor):
    for k in range(out.size):
        out[k] -= g * factor[k]


@njit(nogil=True, cache=True)
def _row_gradients(entries, scorer, out, start, stop):
    """The losses of rows, and the gradients in their factors and thresholds, onto zeros."""
    for i in range(start, stop):
        thresholds, d_thresholds = scorer.thresholds[i], out.thresholds[i]
        loss = 0.0
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            factor = scorer.right[entries.indices[t]]
            x = dot(scorer.left[i], factor)
            G = 0.0
            for r in range(thresholds.size):
                T = direction_of(r, entries.values[t])
                h, slope = smooth_hinge(T * (thresholds[r] - x))
                loss += h
                d_thresholds[r] += T * slope
                G += T * slope
            _subtract_multiple(out.left[i], G, factor)
        out.losses[i] = loss


@njit
def _slope_of(level, x, thresholds):
    """G_ij of one entry."""
    G = 0.0
    for r in range(thresholds.size):
        T = direction_of(r, level)
        G += T * smooth_hinge(T * (thresholds[r] - x))[1]
    return G


@njit(nogil=True, cache=True)
def _column_gradients(columns, scorer, d_right, start, stop):
    """The gradients in the factors of columns, onto zeros."""
    for j in range(start, stop):
        for t in range(columns.pointers[j], columns.pointers[j + 1]):
            i = columns.indices[t]
            x = dot(scorer.right[j], scorer.left[i])
            G = _slope_of(columns.values[t], x, scorer.thresholds[i])
            _subtract_multiple(d_right[j], G, scorer.left[i])


@njit(nogil=True, cache=True)
def _slopes(entries, scorer, out, start, stop):
    for i in range(start, stop):
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            x = dot(scorer.left[i], scorer.right[entries.indices[t]])
            out[t] = _slope_of(entries.values[t], x, scorer.thresholds[i])


def row_gradients(entries: Entries, scorer: Scorer, workers: Workers) -> RowGradients:
    """The loss of every row, and its gradient; ``entries`` hold numbers of levels, 1 to L."""
    out = RowGradients(
        np.empty(entries.pointers.size - 1),
        np.zeros_like(scorer.left),
        np.zeros_like(scorer.thresholds),
    )
    workers.for_rows(
        lambda start, stop: _row_gradients(entries, scorer, out, start, stop), entries.pointers
    )
    return out


def column_gradient(columns: Entries, scorer: Scorer, workers: Workers) -> np.ndarray:
    """The gradient of the loss in ``right``; ``columns`` hold the entries gathered by column."""
    d_right = np.zeros_like(scorer.right)
    workers.for_rows(
        lambda start, stop: _column_gradients(columns, scorer, d_right, start, stop),
        columns.pointers,
    )
    return d_right


def slopes(entries: Entries, scorer: Scorer, workers: Workers) -> Entries:
    """G, minus the gradient of the loss in the scores, as entries."""
    out = np.empty(entries.values.size)
    workers.for_rows(
        lambda start, stop: _slopes(entries, scorer, out, start, stop), entries.pointers
    )
    return entries._replace(values=out)
