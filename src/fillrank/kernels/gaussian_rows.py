"""The half-sweep: a Gibbs draw of every row's coefficients, given the factors of the other side.

Row i holds values x_j in the columns j of Omega_i, and x_j ~ N(sum_k c_k f_jk, s2_i / (b_j w_ij)),
where c = ``own[i]`` are the row's coefficients, f_j = ``other[j]`` the factors of column j, s2_i the
noise variance of the row, b_j the relative precision of the column and w_ij the weight of the entry
(`RowNoise`). A free coefficient has the prior N(mean_k + shift_ik, 1/precision_k); the others do not
change. The columns of a table are the rows of its transpose, so this one kernel serves both sides.

Precisions of columns are included in values and factors, both multiplied by sqrt(b_j) as they are
loaded. Weights of entries scale the tile: then the sums below are weighted without a change.

Of some entries only an interval is known. The value of such an entry is drawn at the beginning of the
row's turn, from its distribution truncated to the interval, and not stored: "the values, then the
coefficients" is one block of the Gibbs sampler. In the same way, the weights and working responses of
other laws of the noise are drawn (`fillrank.kernels.entry_laws`).

A row is processed in cache: the factors of its columns are gathered once into a tile, component by
component, and the residual exists only while the row is processed. The cost is O(n_i K) a row, and
nothing is stored per entry. Rows are independent and every draw is addressed by row and component,
so that any partition of the rows gives the same bits.

For speed, blocks of eight by eight factors, stored by column and needed by component, are
transposed in registers; memory is prefetched; a tile is padded with zeros to full vectors; and
components are drawn in pairs, so that one pass over the tile applies the step of the last pair and
computes all sums of the next.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from fillrank.draws.normal import normal_from_bits
from fillrank.draws.normal_quantile import normal_in_interval
from fillrank.draws.streams import row_bits, seek, start_stream
from fillrank.kernels.entry_laws import NORMAL, draw_weight, draw_working
from fillrank.kernels.simd import (
    LANES,
    add,
    load,
    multiply_add,
    number,
    prefetch,
    spread,
    spread_from,
    store,
    total,
    transpose,
)
from fillrank.kernels.tiles import longest_row
from fillrank.runtime.kernel_cache import njit

# How many entries ahead factors are prefetched, and the bytes of a cache line.
_AHEAD = 32
_LINE = 64
# Rows that have all the same prior.
NO_SHIFTS = np.zeros((0, 0), np.float32)
# No intervals.
NO_LIMITS = np.zeros((2, 0))
# Thresholds that do not differ by row.
NO_THRESHOLDS = np.zeros((0, 0))


class Prior(NamedTuple):
    """The free coefficients: their indices k, and their priors N(mean_k + shift_ik, 1/precision_k).

    ``shifts`` (rows, K) has a column for each coefficient, free or not; it is empty if all are 0.

    With ``relaxation`` a in (-1, 1), a coefficient c with the full conditional N(mu, s2) becomes
    mu + a (c - mu) + sqrt(1 - a^2) s2^(1/2) z, which leaves that distribution invariant (Adler
    1981). With a = 0 this is an independent draw. With a < 0 it tends to the other side of mu, and
    averages of such draws have smaller errors.
    """

    free: np.ndarray
    mean: np.ndarray
    precision: np.ndarray
    relaxation: float = 0.0
    shifts: np.ndarray = NO_SHIFTS


class RowNoise(NamedTuple):
    """The noise in a half-sweep: x_j ~ N(c . f_j, s2_i / (b_j w_ij)) in row i and column j.

    ``variances`` (rows,) are s2_i. ``roots`` (columns,) are sqrt(b_j); empty if all are 1. With finite
    ``degrees`` nu the noise is Student-t: w_ij has the additional factor l_ij ~ Gamma(nu/2, rate nu/2),
    which is drawn at the beginning of the row's turn, with the ``purpose`` in its address, and not
    stored. ``limits`` (2, k) are the lower and upper ends of the intervals in which values are known to
    be; these values are drawn in the same way. If they differ by row of the table, ``thresholds``
    (rows of the table, L + 1) has the ends of the L intervals instead. In the half-sweep of the columns
    the rows of the table are the other side: ``of_other``.
    Kernels are compiled for the ``law``; with one of levels,
    variances and precisions are 1.
    """

    variances: np.ndarray
    roots: np.ndarray
    degrees: float
    purpose: int
    limits: np.ndarray = NO_LIMITS
    law: Any = NORMAL
    thresholds: np.ndarray = NO_THRESHOLDS
    of_other: bool = False


class RowSums(NamedTuple):
    """Sums over the entries of each row after the draw: weighted squares of residuals, l and log l."""

    squares: np.ndarray
    weights: np.ndarray
    log_weights: np.ndarray


def align_rows(factors: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """A copy for `gaussian_rows`: lines times their root, padded to full vectors, aligned in memory.

    A line of zeros follows the last one, for the padding of a row's last vector.
    """
    n, K = factors.shape
    width = -(-K // LANES) * LANES
    memory = np.empty((n + 1) * width + _LINE // factors.itemsize, dtype=factors.dtype)
    first = -memory.ctypes.data % _LINE // factors.itemsize
    out = memory[first : first + (n + 1) * width].reshape(n + 1, width)
    if roots.size:
        np.multiply(factors, roots[:, np.newaxis].astype(factors.dtype), out=out[:n, :K])
    else:
        out[:n, :K] = factors
    out[:n, K:] = out[n] = 0
    return out


@njit
def _store_factor(tile, at, factor, minus, k, e):
    """Store a factor of eight columns; e - c_k f_k."""
    store(tile, at, factor)
    return multiply_add(spread_from(minus, k), factor, e)


@njit
def _gather_block(other, j, minus, tile, at, stride, e):
    """Transpose the factors of eight columns j into the tile; e - c . f."""
    nothing = spread(other.dtype.type(0))
    for k in range(0, other.shape[1], LANES):
        f = transpose(
            (
                load(other, (j[0], k)),
                load(other, (j[1], k)),
                load(other, (j[2], k)),
                load(other, (j[3], k)),
                load(other, (j[4], k)),
                load(other, (j[5], k)),
                load(other, (j[6], k)),
                load(other, (j[7], k)),
            )
        )
        # Two independent chains of additions, which do not wait for e.
        one, two = nothing, nothing
        one = _store_factor(tile, at, f[0], minus, k, one)
        two = _store_factor(tile, at + stride, f[1], minus, k + 1, two)
        one = _store_factor(tile, at + 2 * stride, f[2], minus, k + 2, one)
        two = _store_factor(tile, at + 3 * stride, f[3], minus, k + 3, two)
        one = _store_factor(tile, at + 4 * stride, f[4], minus, k + 4, one)
        two = _store_factor(tile, at + 5 * stride, f[5], minus, k + 5, two)
        one = _store_factor(tile, at + 6 * stride, f[6], minus, k + 6, one)
        two = _store_factor(tile, at + 7 * stride, f[7], minus, k + 7, two)
        e = add(e, add(one, two))
        at += LANES * stride
    return e


@njit
def _eight_columns(indices, t):
    """The columns of entry t and of the next seven."""
    return (
        number(indices, t),
        number(indices, t + 1),
        number(indices, t + 2),
        number(indices, t + 3),
        number(indices, t + 4),
        number(indices, t + 5),
        number(indices, t + 6),
        number(indices, t + 7),
    )


@njit
def _prefetch_factors(other, j):
    """Prefetch the factors of eight columns."""
    for k in range(0, other.shape[1], _LINE // other.itemsize):
        prefetch(other, (j[0], k))
        prefetch(other, (j[1], k))
        prefetch(other, (j[2], k))
        prefetch(other, (j[3], k))
        prefetch(other, (j[4], k))
        prefetch(other, (j[5], k))
        prefetch(other, (j[6], k))
        prefetch(other, (j[7], k))


@njit
def _gather(indices, first, last, minus, other, tile, stride, residual):
    """Fill the tile with the factors of the columns of a row, whose entries are first to last.

    residual += minus . f, for ``minus`` = -c. Factor k of the columns is tile[k * stride:], padded
    with zeros to a full vector. Prefetching goes beyond the end of a row, because the next row
    follows.
    """
    last_whole = last - (last - first) % LANES
    for t in range(first, last_whole, LANES):
        if t + _AHEAD + LANES <= indices.size:
            _prefetch_factors(other, _eight_columns(indices, t + _AHEAD))
        at, j = t - first, _eight_columns(indices, t)
        store(residual, at, _gather_block(other, j, minus, tile, at, stride, load(residual, at)))
    if last_whole < last:
        rest = np.full(LANES, other.shape[0] - 1, dtype=np.int32)  # the line of zeros
        for t in range(last_whole, last):
            rest[t - last_whole] = indices[t]
        at, j = last_whole - first, _eight_columns(rest, 0)
        store(residual, at, _gather_block(other, j, minus, tile, at, stride, load(residual, at)))


@njit
def _pass(tile, residual, n, before, steps, now):
    """Apply the last pair's steps; then (s_0, s_1, c_00, c_01, c_11) of the pair ``now``.

    s_k = sum f_k e with the new residual e, and c_kl = sum f_k f_l. A pair is given by the
    positions at which its factors start.
    """
    nothing = spread(residual.dtype.type(0))
    s_0, s_1, c_00, c_01, c_11 = nothing, nothing, nothing, nothing, nothing
    step_0, step_1 = spread(steps[0]), spread(steps[1])
    for t in range(0, n, LANES):
        e = multiply_add(step_0, load(tile, before[0] + t), load(residual, t))
        e = multiply_add(step_1, load(tile, before[1] + t), e)
        store(residual, t, e)
        f_0, f_1 = load(tile, now[0] + t), load(tile, now[1] + t)
        s_0 = multiply_add(f_0, e, s_0)
        s_1 = multiply_add(f_1, e, s_1)
        c_00 = multiply_add(f_0, f_0, c_00)
        c_01 = multiply_add(f_0, f_1, c_01)
        c_11 = multiply_add(f_1, f_1, c_11)
    return total(s_0), total(s_1), total(c_00), total(c_01), total(c_11)


@njit
def _last_pass(tile, residual, n, before, steps):
    """Apply the last pair's steps; then sum e^2."""
    square = spread(residual.dtype.type(0))
    step_0, step_1 = spread(steps[0]), spread(steps[1])
    for t in range(0, n, LANES):
        e = multiply_add(step_0, load(tile, before[0] + t), load(residual, t))
        e = multiply_add(step_1, load(tile, before[1] + t), e)
        square = multiply_add(e, e, square)
    return total(square)


@njit
def _prior_mean(prior, i, p):
    """The prior mean of the free coefficient p of row i."""
    if prior.shifts.shape[0] == 0:
        return prior.mean[p]
    return prior.mean[p] + prior.shifts[i, prior.free[p]]


@njit
def _draw(c, s, old, z, prior, i, p, noise_variance):
    """Coefficient p of row i given the others, with the noise variance s2 and P = c + s2 precision.

    Its full conditional is N(old + (s + s2 precision (mean - old))/P, s2/P), see `Prior` for the
    relaxation.
    """
    a = prior.relaxation
    shrink = noise_variance * prior.precision[p]
    share = 1.0 / (c + shrink)
    # s is available last in a pass, so what does not depend on it is computed before.
    known = shrink * (_prior_mean(prior, i, p) - old) * (1.0 - a) * share
    known += old + math.sqrt((1.0 - a * a) * noise_variance * share) * z
    return s * ((1.0 - a) * share) + known


@njit
def _load_values(entries, first, last, roots, residual):
    """residual = sqrt(b_j) x_j; 0 where an interval is known."""
    if entries.cells.size:
        for t in range(first, last):
            root = roots[entries.indices[t]] if roots.size else roots.dtype.type(1)
            is_exact = entries.cells[t] < 0
            residual[t - first] = entries.values[t] * root if is_exact else roots.dtype.type(0)
    elif roots.size:
        for t in range(first, last):
            residual[t - first] = entries.values[t] * roots[entries.indices[t]]
    else:
        for t in range(first, last):
            residual[t - first] = entries.values[t]


@njit(inline="always")
def interval_ends(noise, i, j, cell):
    """The ends of the interval with this number, in row i and column j of a half-sweep."""
    if noise.thresholds.size:
        row = j if noise.of_other else i
        return noise.thresholds[row, cell], noise.thresholds[row, cell + 1]
    return noise.limits[0, cell], noise.limits[1, cell]


@njit
def _draw_values(entries, first, last, noise, i, bits, stream, row, residual):
    """Draw the values of which an interval is known; the residual is their -z sqrt(b_j) before.

    ``bits`` are random, 64 for each entry.
    """
    row_bits(stream, row, bits)
    row_sd = math.sqrt(noise.variances[i])
    for t in range(first, last):
        cell = entries.cells[t]
        if cell < 0:
            continue
        sd = row_sd
        if entries.weights.size:
            sd /= math.sqrt(entries.weights[t])
        root = noise.roots[entries.indices[t]] if noise.roots.size else 1.0
        minus_z = float(residual[t - first])
        low, high = interval_ends(noise, i, entries.indices[t], cell)
        low, high = (root * low + minus_z) / sd, (root * high + minus_z) / sd
        at = t - first
        residual[at] = sd * normal_in_interval(bits[at], low, high, stream, row, at)


@njit
def _draw_weights(entries, first, residual, weights, noise, variance, stream, row):
    """Multiply ``weights`` by l_t, which the law draws given w_t e_t^2 / s2.

    Returns the sums of l and of log l.
    """
    total = log_total = 0.0
    for t in range(weights.size):
        seek(stream, row, entries.indices[first + t])
        square = weights[t] * float(residual[t]) * float(residual[t]) / variance
        draw = draw_weight(noise.law, noise.degrees, square, stream)
        weights[t] *= draw
        total += draw
        log_total += math.log(draw)
    return total, log_total


@njit
def level_of(low, high):
    """(x, threshold) of an interval of two: x is 1 above the threshold, and -1 below."""
    return (1.0, low) if high > -low else (-1.0, high)


@njit
def _draw_levels(entries, first, noise, stream, row, residual, weights):
    """Draw working responses and ``weights`` of levels; the residual is their -z before."""
    for t in range(weights.size):
        cell = entries.cells[first + t]
        x, threshold = level_of(noise.limits[0, cell], noise.limits[1, cell])
        seek(stream, row, entries.indices[first + t])
        margin = x * (-float(residual[t]) - threshold)
        weights[t], above = draw_working(noise.law, margin, stream)
        residual[t] = x * above


@njit
def _weigh(tile, stride, residual, weights):
    """Multiply the tile and the residual by the roots of the weights."""
    for t in range(weights.size):
        weights[t] = math.sqrt(weights[t])
        residual[t] *= weights[t]
    for at in range(0, tile.size - stride + 1, stride):
        for t in range(weights.size):
            tile[at + t] *= weights[t]


@njit(nogil=True, cache=True)
def gaussian_rows(entries, own, other, prior, noise, address, sums, start, stop):
    """Draw the free coefficients of the rows start to stop, in place.

    ``other`` must come from `align_rows`. With everything else fixed, coefficient k of a row is
    Gaussian with c = sum f_jk^2 and s = sum f_jk e_j (`_draw`). The second of a pair takes the step
    of the first into account through c_01, so the draws are the same as one after the other.
    ``sums`` (`RowSums`) are set for these rows.
    """
    longest = longest_row(entries.pointers, start, stop)
    padded = (longest // LANES + 2) * LANES
    tile = np.empty(padded * other.shape[1], dtype=own.dtype)
    residual = np.zeros(padded, dtype=own.dtype)
    roots = noise.roots.astype(own.dtype)
    law, is_student = noise.law, noise.degrees < np.inf
    draws_weights = is_student or law.is_mixture
    is_weighted = draws_weights or law.of_levels or entries.weights.size > 0
    all_weights = np.ones(longest if is_weighted else 0, dtype=own.dtype)
    all_bits = np.empty(longest if entries.cells.size else 0, dtype=np.uint64)
    minus = np.zeros(other.shape[1], dtype=own.dtype)
    n_free = prior.free.size
    bits = np.empty(n_free, dtype=np.uint64)
    normals = np.empty(n_free)
    stream = start_stream(address.key, address.sweep, address.purpose)
    entry_stream = start_stream(address.key, address.sweep, noise.purpose)
    none = own.dtype.type(0)
    for i in range(start, stop):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        n = -(-(last - first) // LANES) * LANES
        stride = n | LANES  # an odd number of vectors: factors do not collide in the cache
        for k in range(own.shape[1]):
            minus[k] = -own[i, k]
        _load_values(entries, first, last, roots, residual)
        for t in range(last - first, n):
            residual[t] = none
        _gather(entries.indices, first, last, minus, other, tile, stride, residual)
        at_row = address.first_row + i
        if entries.cells.size and not law.of_levels:
            value_bits = all_bits[: last - first]
            _draw_values(entries, first, last, noise, i, value_bits, entry_stream, at_row, residual)
        if is_weighted:
            weights = all_weights[: last - first]
            for t in range(weights.size):
                weights[t] = entries.weights[first + t] if entries.weights.size else 1.0
            if law.of_levels:
                _draw_levels(entries, first, noise, entry_stream, at_row, residual, weights)
            elif draws_weights:
                total_weight, log_total = _draw_weights(
                    entries,
                    first,
                    residual,
                    weights,
                    noise,
                    noise.variances[i],
                    entry_stream,
                    at_row,
                )
                if is_student:
                    sums.weights[i], sums.log_weights[i] = total_weight, log_total
            _weigh(tile[: stride * other.shape[1]], stride, residual, weights)
        row_bits(stream, at_row, bits)
        for p in range(n_free):
            normals[p] = normal_from_bits(bits[p], stream, at_row, p)
        before, steps = (0, 0), (none, none)
        for p in range(0, n_free, 2):
            q = min(p + 1, n_free - 1)  # if their number is odd, the last one is paired with itself
            now = (prior.free[p] * stride, prior.free[q] * stride)
            s_0, s_1, c_00, c_01, c_11 = _pass(tile, residual, n, before, steps, now)
            k = prior.free[p]
            old = float(own[i, k])
            own[i, k] = _draw(c_00, s_0, old, normals[p], prior, i, p, noise.variances[i])
            steps = (own.dtype.type(old - own[i, k]), none)
            if q > p:
                k = prior.free[q]
                old = float(own[i, k])
                s_1 += steps[0] * c_01
                own[i, k] = _draw(c_11, s_1, old, normals[q], prior, i, q, noise.variances[i])
                steps = (steps[0], own.dtype.type(old - own[i, k]))
            before = now
        sums.squares[i] = _last_pass(tile, residual, n, before, steps)
