"""The half-sweep: a Gibbs draw of every row's coefficients, given the factors of the other side.

Row i holds values x_j in the columns j of Omega_i, and x_j ~ N(sum_k c_k f_jk, noise variance),
where c = ``own[i]`` are the row's coefficients and f_j = ``other[j]`` the factors of column j. A
free coefficient has the prior N(mean_k, 1/precision_k); the others do not change. The columns of a
table are the rows of its transpose, so this one kernel serves both sides.

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
from typing import NamedTuple

import numpy as np

from fillrank.draws.normal import normal_from_bits
from fillrank.draws.streams import row_bits, start_stream
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


class Prior(NamedTuple):
    """The free coefficients: their indices k, and their priors N(mean_k, 1/precision_k).

    With ``relaxation`` a in (-1, 1), a coefficient c with the full conditional N(mu, s2) becomes
    mu + a (c - mu) + sqrt(1 - a^2) s2^(1/2) z, which leaves that distribution invariant (Adler
    1981). With a = 0 this is an independent draw. With a < 0 it tends to the other side of mu, and
    averages of such draws have smaller errors.
    """

    free: np.ndarray
    mean: np.ndarray
    precision: np.ndarray
    relaxation: float = 0.0


def align_rows(factors: np.ndarray) -> np.ndarray:
    """A copy for `gaussian_rows`: lines padded to full vectors, aligned to cache lines.

    A line of zeros follows the last one, for the padding of a row's last vector.
    """
    n, K = factors.shape
    width = -(-K // LANES) * LANES
    memory = np.empty((n + 1) * width + _LINE // factors.itemsize, dtype=factors.dtype)
    first = -memory.ctypes.data % _LINE // factors.itemsize
    out = memory[first : first + (n + 1) * width].reshape(n + 1, width)
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


class _Moves(NamedTuple):
    """What the draws of all rows share, for the noise variance s2 and the relaxation a.

    shrink = s2 precision, pull = shrink mean, gain = 1 - a, variance = (1 - a^2) s2.
    """

    shrink: np.ndarray
    pull: np.ndarray
    gain: float
    variance: float


@njit
def _moves(prior, noise_variance):
    shrink = noise_variance * prior.precision
    a = prior.relaxation
    return _Moves(shrink, shrink * prior.mean, 1.0 - a, (1.0 - a * a) * noise_variance)


@njit
def _draw(c, s, old, z, moves, p):
    """Coefficient p given the others: mu = old + (s + pull - shrink old)/P and s2/P, P = c + shrink."""
    share = 1.0 / (c + moves.shrink[p])
    # s is available last in a pass, so what does not depend on it is computed before.
    known = (moves.pull[p] - moves.shrink[p] * old) * moves.gain * share
    known += old + math.sqrt(moves.variance * share) * z
    return s * (moves.gain * share) + known


@njit(nogil=True, cache=True)
def gaussian_rows(entries, own, other, prior, noise_variance, address, squares, start, stop):
    """Draw the free coefficients of the rows start to stop, in place.

    ``other`` must come from `align_rows`. With everything else fixed, coefficient k of a row is
    Gaussian with c = sum f_jk^2 and s = sum f_jk e_j (`_draw`). The second of a pair takes the step
    of the first into account through c_01, so the draws are the same as one after the other.
    ``squares[i]`` is set to the sum of the squared residuals after the draw.
    """
    padded = (longest_row(entries.pointers, start, stop) // LANES + 2) * LANES
    tile = np.empty(padded * other.shape[1], dtype=own.dtype)
    residual = np.zeros(padded, dtype=own.dtype)
    minus = np.zeros(other.shape[1], dtype=own.dtype)
    n_free = prior.free.size
    bits = np.empty(n_free, dtype=np.uint64)
    normals = np.empty(n_free)
    stream = start_stream(address.key, address.sweep, address.purpose)
    moves = _moves(prior, noise_variance)
    none = own.dtype.type(0)
    for i in range(start, stop):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        n = -(-(last - first) // LANES) * LANES
        stride = n | LANES  # an odd number of vectors: factors do not collide in the cache
        for k in range(own.shape[1]):
            minus[k] = -own[i, k]
        for t in range(last - first):
            residual[t] = entries.values[first + t]
        for t in range(last - first, n):
            residual[t] = none
        _gather(entries.indices, first, last, minus, other, tile, stride, residual)
        at_row = address.first_row + i
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
            own[i, k] = _draw(c_00, s_0, old, normals[p], moves, p)
            steps = (own.dtype.type(old - own[i, k]), none)
            if q > p:
                k = prior.free[q]
                old = float(own[i, k])
                s_1 += steps[0] * c_01
                own[i, k] = _draw(c_11, s_1, old, normals[q], moves, q)
                steps = (steps[0], own.dtype.type(old - own[i, k]))
            before = now
        squares[i] = _last_pass(tile, residual, n, before, steps)
