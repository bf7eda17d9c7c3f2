"""The best columns of every row, by a quantile over draws of the signal, without the whole matrix.

Under draw t the signal of cell (i, j) is v_t = left[i, t] . right[j, t], and the cell's score is the
q-quantile of v_1, ..., v_N: with h = q (N + 1), but at most N, and c = ceil(h),

    v_(c) - (c - h) (v_(c) - v_(c - 1)),    v_(0) = v_(1) <= ... <= v_(N).

The score is at most v_(c). So a cell is out as soon as c of its draws lose against the worst of the n
that its row has by then, and most cells are out after c draws. With N = 1 the score is the signal.

Of equal scores the one in the smaller column is better. As cells are compared by score and column
alone, the answer does not depend on the order in which columns come, nor on how rows are shared out.
"""

import math
from typing import NamedTuple

import numpy as np

from fillrank.kernels.tiles import REASSOCIATE
from fillrank.runtime.kernel_cache import njit

# Rows that take their turns on a column while its factors are in cache.
_ROWS_AT_ONCE = 8


class Columns(NamedTuple):
    """Some columns: the number of the first, their positions, their factors (columns, N, K).

    Numbers count columns in the order in which they come; positions are those in the table.
    """

    first: int
    positions: np.ndarray
    factors: np.ndarray


class Place(NamedTuple):
    """Where a quantile stands among N sorted draws: c, and how far h falls short of it."""

    upper: int
    short: float


class Heaps(NamedTuple):
    """The n best of each row so far (rows, n), as heaps: the parent of k is (k - 1) // 2, and worse."""

    scores: np.ndarray
    columns: np.ndarray


def place_of(quantile: float, n_draws: int) -> Place:
    """Where the quantile, above 0, stands."""
    h = min(quantile * (n_draws + 1), float(n_draws))
    upper = math.ceil(h)
    return Place(upper, upper - h)


@njit
def _beats(score, column, other_score, other_column):
    """Whether a cell is better than another of its row."""
    return score > other_score or (score == other_score and column < other_column)


@njit
def _replace_worst(scores, columns, score, column):
    """Put a cell in the place of the root, and let it sink until its children are better."""
    k = 0
    while 2 * k + 1 < scores.size:
        child = 2 * k + 1
        right = child + 1
        if right < scores.size and _beats(
            scores[child], columns[child], scores[right], columns[right]
        ):
            child = right
        if _beats(scores[child], columns[child], score, column):
            break
        scores[k], columns[k] = scores[child], columns[child]
        k = child
    scores[k], columns[k] = score, column


@njit(fastmath=REASSOCIATE)
def _signal(left, right, i, c, t):
    """left[i, t] . right[c, t]; whole arrays and places, since a slice costs more than the product."""
    total = left.dtype.type(0)
    for k in range(left.shape[2]):
        total += left[i, t, k] * right[c, t, k]
    return total


@njit(inline="always")
def _has_chance(left, right, i, c, upper, bar, ties_lose, values):
    """Take the draws of a cell, until ``upper`` of them lose against the bar."""
    for t in range(upper):  # apart from the comparisons, so that the products can overlap
        values[t] = _signal(left, right, i, c, t)
    lost = 0
    for t in range(upper):
        lost += values[t] < bar or (ties_lose and values[t] == bar)
    for t in range(upper, values.size):
        if lost == upper:
            return False
        values[t] = _signal(left, right, i, c, t)
        lost += values[t] < bar or (ties_lose and values[t] == bar)
    return lost < upper


@njit
def _quantile(values, place):
    """The quantile of the values, which are sorted for it."""
    if values.size > 1:
        values.sort()
    v = values[place.upper - 1]
    return v - place.short * (v - values[max(place.upper - 2, 0)])


@njit
def _mark(left_out, row, first, marks):
    """Mark those of the next columns that are left out in a row."""
    marks[:] = False
    for t in range(left_out.pointers[row], left_out.pointers[row + 1]):
        c = left_out.indices[t] - first
        if 0 <= c < marks.size:
            marks[c] = True


@njit(nogil=True, cache=True)
def keep_best(left, columns, left_out, place, heaps, start, stop):
    """Let the rows start to stop keep what is best of their heaps and of some columns.

    ``left`` (rows, N, K) are the rows' factors. ``left_out`` has columns by their number in the order
    in which they come.
    """
    right = columns.factors
    values = np.empty(left.shape[1])
    marks = np.empty((_ROWS_AT_ONCE, columns.positions.size), dtype=np.bool_)
    for above in range(start, stop, _ROWS_AT_ONCE):
        below = min(above + _ROWS_AT_ONCE, stop)
        for i in range(above, below):
            _mark(left_out, i, columns.first, marks[i - above])
        for c in range(columns.positions.size):
            j = columns.positions[c]
            for i in range(above, below):
                if marks[i - above, c]:
                    continue
                bar, ties_lose = heaps.scores[i, 0], j > heaps.columns[i, 0]
                if _has_chance(left, right, i, c, place.upper, bar, ties_lose, values):
                    score = _quantile(values, place)
                    if _beats(score, j, bar, heaps.columns[i, 0]):
                        _replace_worst(heaps.scores[i], heaps.columns[i], score, j)
