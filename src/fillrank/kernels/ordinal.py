"""Scores and thresholds: how the max-margin methods predict one of L ordered levels.

The score of cell (i, j) is x_ij = left_i . right_j; row i has thresholds theta_i1, ..., theta_i,L-1,
and the predicted level is 1 + #{r : x_ij >= theta_ir}. That is defined in any order of the thresholds.
"""

from typing import NamedTuple

import numpy as np

from fillrank.runtime.kernel_cache import njit


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
