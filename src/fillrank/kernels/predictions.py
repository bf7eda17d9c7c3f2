"""Predictions from draws of the signal: single cells, quantiles, and the best columns of every row.

**The best columns** are found by a quantile over draws, without the complete matrix. Under draw t
the signal of cell (i, j) is v_t = left[i, t] . right[j, t], and the score of the cell is the
q-quantile of v_1, ..., v_N: with h = q (N + 1), but at most N, and c = ceil(h),

    v_(c) - (c - h) (v_(c) - v_(c - 1)),    v_(0) = v_(1) <= ... <= v_(N).

The score is at most v_(c). So a cell is excluded as soon as c of its draws are below the worst of
the n best scores found so far in its row; most cells are excluded after c draws. With N = 1 the
score is the signal.

Of equal scores the one in the smaller column is better. Cells are compared by score and column
alone, so the result depends neither on the order of the columns nor on how rows are distributed
over threads.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from fillrank.kernels.entry_laws import NORMAL, distribution
from fillrank.kernels.student_t import NEARLY_NORMAL, t_constants, t_distribution
from fillrank.kernels.tiles import REASSOCIATE
from fillrank.runtime.kernel_cache import njit

# The largest width of a bracket of a quantile of t distributions, in units of their scale.
_LARGEST_WIDTH = 1e140


class Student(NamedTuple):
    """Degrees of freedom of every draw, the densities at 0, and whether all are infinite.

    With another ``law`` than that, the noise has its distribution.
    """

    degrees: np.ndarray
    constants: np.ndarray
    is_normal: bool
    law: Any = NORMAL


def student(degrees: np.ndarray, law: Any = NORMAL) -> Student:
    """The t distributions with these degrees of freedom, or the distribution of a law."""
    degrees = np.where(degrees >= NEARLY_NORMAL, np.inf, degrees)
    is_normal = bool((degrees == np.inf).all()) and not law.is_mixture
    return Student(degrees, t_constants(degrees), is_normal, law)


@njit(fastmath=REASSOCIATE)
def _pair_value(left, right, i, j):
    total = left.dtype.type(0)
    for k in range(left.shape[1]):
        total += left[i, k] * right[j, k]
    return total


@njit(nogil=True, cache=True)
def pair_values(left, right, rows, columns, out):
    """out_p = sum_k left[rows_p, k] right[columns_p, k]."""
    for p in range(rows.size):
        out[p] = _pair_value(left, right, rows[p], columns[p])


@njit(nogil=True, cache=True)
def restored_pair_values(left, right, rows, columns, units, out):
    """The same as location_j + scale_j * value, between low and high: in one pass.

    Without fast mathematics, so that it has the bits of an array that is scaled afterwards.
    """
    location, scale, low, high = units
    for p in range(rows.size):
        j = columns[p]
        value = location[j] + scale[j] * _pair_value(left, right, rows[p], j)
        out[p] = min(max(value, low), high)


@njit
def _normal_mixture(values, sds, x):
    """(distribution function, density) at x of the equal mixture of N(values_s, sds_s^2)."""
    cdf = 0.0
    density = 0.0
    for s in range(values.size):
        t = (x - values[s]) / sds[s]
        cdf += 0.5 * math.erfc(-t / math.sqrt(2.0))
        density += math.exp(-0.5 * t * t) / (sds[s] * math.sqrt(2.0 * math.pi))
    return cdf / values.size, density / values.size


@njit
def _t_mixture(values, sds, student, x):
    """The same for t distributions, of which some may have infinite degrees of freedom."""
    cdf = 0.0
    density = 0.0
    for s in range(values.size):
        t = (x - values[s]) / sds[s]
        if student.degrees[s] == math.inf:
            cdf += 0.5 * math.erfc(-t / math.sqrt(2.0))
            density += student.constants[s] * math.exp(-0.5 * t * t) / sds[s]
        else:
            below, here = t_distribution(t, student.degrees[s], student.constants[s])
            cdf += below
            density += here / sds[s]
    return cdf / values.size, density / values.size


@njit
def _law_mixture(values, scales, law, x):
    """The same for the distribution of a law."""
    cdf = 0.0
    density = 0.0
    for s in range(values.size):
        below, here = distribution(law, (x - values[s]) / scales[s])
        cdf += below
        density += here / scales[s]
    return cdf / values.size, density / values.size


@njit
def _mixture(values, sds, student, x):
    if student.is_normal:
        return _normal_mixture(values, sds, x)
    if student.law.is_mixture:
        return _law_mixture(values, sds, student.law, x)
    return _t_mixture(values, sds, student, x)


@njit
def _far_end(values, sds, student, probability, sign):
    """A number beyond the quantile: below it for sign -1, above it for sign 1."""
    widest = sds.max()
    end = values.min() if sign < 0.0 else values.max()
    width = 40.0 * widest
    if student.is_normal:
        return end + sign * width
    while width < _LARGEST_WIDTH * widest:
        cdf, _ = _mixture(values, sds, student, end + sign * width)
        if sign * (cdf - probability) > 0.0:
            break
        width *= 8.0
    return end + sign * width


@njit(nogil=True, cache=True)
def mixture_quantiles(values, sds, student, probability, start, out):
    """The quantile of the mixture over s of values[s, p] + sds[s, p] T_s, for every p.

    T_s has the t distribution of ``student.degrees[s]``, which is normal if they are infinite, or that
    of another law. Newton's method from ``start`` within a bracket; bisection if a step would leave the
    bracket.
    """
    for p in range(out.size):
        column, scales = values[:, p].copy(), sds[:, p].copy()
        widest = scales.max()
        low = _far_end(column, scales, student, probability, -1.0)
        high = _far_end(column, scales, student, probability, 1.0)
        x = min(max(start[p], low), high)
        for _ in range(100):
            cdf, density = _mixture(column, scales, student, x)
            if cdf < probability:
                low = x
            else:
                high = x
            new = x - (cdf - probability) / density if density > 0.0 else low
            if not (low < new < high):
                new = 0.5 * (low + high)
            step = abs(new - x)
            x = new
            if step <= 1e-7 * widest:
                break
        out[p] = x


# Rows that are processed for a column while its factors are in cache.
_ROWS_AT_ONCE = 8


class Columns(NamedTuple):
    """Some columns: the number of the first, their positions, their factors (columns, N, K).

    Numbers count columns in the order in which they come; positions are those in the table.
    """

    first: int
    positions: np.ndarray
    factors: np.ndarray


class QuantilePosition(NamedTuple):
    """The position of a quantile among N sorted draws: c, and c - h."""

    upper: int
    short: float


class Heaps(NamedTuple):
    """The n best of each row so far (rows, n), as heaps: the parent of k is (k - 1) // 2, and worse."""

    scores: np.ndarray
    columns: np.ndarray


def quantile_position(quantile: float, n_draws: int) -> QuantilePosition:
    """The position of a quantile above 0."""
    h = min(quantile * (n_draws + 1), float(n_draws))
    upper = math.ceil(h)
    return QuantilePosition(upper, upper - h)


@njit
def _beats(score, column, other_score, other_column):
    """Whether a cell is better than another of its row."""
    return score > other_score or (score == other_score and column < other_column)


@njit
def _replace_worst(scores, columns, score, column):
    """Replace the root of a heap by a cell, and move it down until its children are better."""
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
    """left[i, t] . right[c, t]; by indices, because a slice costs more than the product."""
    total = left.dtype.type(0)
    for k in range(left.shape[2]):
        total += left[i, t, k] * right[c, t, k]
    return total


@njit(inline="always")
def _has_chance(left, right, i, c, upper, bar, ties_lose, values):
    """Compute the draws of a cell, until ``upper`` of them are below the bar."""
    for t in range(upper):  # separate from the comparisons, so that the products can overlap
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
def _quantile(values, position):
    """The quantile of the values; sorts them."""
    if values.size > 1:
        values.sort()
    v = values[position.upper - 1]
    return v - position.short * (v - values[max(position.upper - 2, 0)])


@njit
def _mark(left_out, row, first, marks):
    """Mark those of the next columns that are left out in a row."""
    marks[:] = False
    for t in range(left_out.pointers[row], left_out.pointers[row + 1]):
        c = left_out.indices[t] - first
        if 0 <= c < marks.size:
            marks[c] = True


@njit(nogil=True, cache=True)
def update_best(left, columns, left_out, position, heaps, start, stop):
    """Update the heaps of the rows start to stop by some columns.

    ``left`` (rows, N, K) are the rows' factors. ``left_out`` has columns by their number in the
    order in which they come.
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
                if _has_chance(left, right, i, c, position.upper, bar, ties_lose, values):
                    score = _quantile(values, position)
                    if _beats(score, j, bar, heaps.columns[i, 0]):
                        _replace_worst(heaps.scores[i], heaps.columns[i], score, j)
