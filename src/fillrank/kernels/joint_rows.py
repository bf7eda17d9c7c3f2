"""The half-sweep with joint draws: all the coefficients of a row together, by Cholesky.

Row i holds values y_t in the columns of Omega_i, and y_t ~ N(c . f_t, 1/w_t), where c = ``own[i]``
are the row's K coefficients, f_t the factors of the column of entry t and w_t the weight of the
entry. The prior of c is N(mu_i, Lam^-1), so that

    c | y ~ N(P^-1 h, P^-1),    P = Lam + sum_t w_t f_t f_t^T,    h = Lam mu_i + sum_t w_t y_t f_t.

With P = L L^T, L lower triangular, and eps ~ N(0, I), the draw is c = L^-T (L^-1 h + eps). No
matrix is inverted: h is stored below P as one more row, and the factorisation of P replaces it by
L^-1 h.

The cost is O(n_i K^2 + K^3) a row. Both terms are products of vectors, three by three, so that each
number loaded is used three times. For the sums, a chunk of the row's columns is gathered into a
tile, component by component, scaled by sqrt(w_t), with y as one more component. To get full blocks
of three, K is padded with coefficients that no entry depends on, and y with zeros.

With factors in float32 the tile's products are in float32, and are added in float64. If P is so
close to singular that these digits do not suffice, the row is repeated with a float64 tile. As in
the other half-sweep, draws are addressed by row and component: any partition of the rows gives the
same bits.
"""

import math
from typing import NamedTuple

import numpy as np

from fillrank.draws.normal import normal_from_bits
from fillrank.draws.streams import row_bits, start_stream
from fillrank.kernels.gaussian_rows import NO_SHIFTS
from fillrank.kernels.tiles import REASSOCIATE
from fillrank.runtime.kernel_cache import njit

# Entries gathered at a time: the tile fits in the cache, and float32 sums are short.
_CHUNK = 256
# Padding of a tile's rows: with a power of two as their distance they would share few sets of the
# cache.
_SPARE = 16
# Sums are padded with zeros to a multiple of this, so that vectors have no remainder.
_LANES = 8
# Vectors that are multiplied by as many others in one pass: more would not fit in the registers.
_BLOCK = 3
# Smallest pivots of the factorisation, as shares of P's diagonal. Below the first, float32 sums are
# not accurate enough: above it their errors were at most 0.1% of a variance and 0.3% of a standard
# deviation in the mean, over priors from 1e-6 to 1e3 and heavy-tailed weights. The second is for
# float64 sums.
_COARSE, _NOISE = 1e-2, 1e-15


class JointPrior(NamedTuple):
    """A Gaussian prior of a row's coefficients: mean mu (K,) and precision Lam (K, K), in float64.

    With ``shifts`` (rows, K), the mean of row i is mu + shifts_i; they are empty if all are 0.
    """

    mean: np.ndarray
    precision: np.ndarray
    shifts: np.ndarray = NO_SHIFTS


class _Subset(NamedTuple):
    """Some of the entries of a table: those of a row, or a chunk of them."""

    indices: np.ndarray
    values: np.ndarray
    weights: np.ndarray


@njit
def _subset(entries, first, last):
    """The entries first to last."""
    return _Subset(
        entries.indices[first:last], entries.values[first:last], entries.weights[first:last]
    )


@njit
def _prior_system(prior, padded):
    """P and, below it, h of the prior: Lam and Lam mu, padded with ones on the diagonal."""
    K = prior.mean.size
    system = np.zeros((padded + _BLOCK, padded + _BLOCK))
    for a in range(K):
        for b in range(K):
            system[a, b] = prior.precision[a, b]
            system[padded, a] += prior.precision[a, b] * prior.mean[b]
    for a in range(K, padded):
        system[a, a] = 1.0
    return system


@njit
def _copy(source, target):
    """target = source. Numba's own assignment of arrays takes seconds to compile."""
    for a in range(source.shape[0]):
        for b in range(source.shape[1]):
            target[a, b] = source[a, b]


@njit
def _start_row(prior_system, prior, i, system):
    """P and h of the prior of row i."""
    _copy(prior_system, system)
    if prior.shifts.shape[0]:
        for a in range(prior.mean.size):
            for b in range(prior.mean.size):
                system[-_BLOCK, a] += prior.precision[a, b] * prior.shifts[i, b]


@njit
def _gather(row, other, tile):
    """Copy n entries into ``tile``: sqrt(w) f by component, and sqrt(w) y. Returns n, padded."""
    n, K, y = row.indices.size, other.shape[1], tile.shape[0] - _BLOCK
    for t in range(n):
        factors = other[row.indices[t]]
        root = tile.dtype.type(math.sqrt(row.weights[t]))
        for k in range(K):
            tile[k, t] = root * factors[k]
        tile[y, t] = root * row.values[t]
    padded = -(-n // _LANES) * _LANES
    for k in range(y + 1):
        for t in range(n, padded):
            tile[k, t] = 0.0
    return padded


@njit(fastmath=REASSOCIATE)
def _nine_products(a0, a1, a2, b0, b1, b2, n):
    """The products of three vectors with three others, over their first n numbers."""
    zero = a0.dtype.type(0)
    s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = zero
    for t in range(n):
        s00 += a0[t] * b0[t]
        s01 += a0[t] * b1[t]
        s02 += a0[t] * b2[t]
        s10 += a1[t] * b0[t]
        s11 += a1[t] * b1[t]
        s12 += a1[t] * b2[t]
        s20 += a2[t] * b0[t]
        s21 += a2[t] * b1[t]
        s22 += a2[t] * b2[t]
    return (s00, s01, s02), (s10, s11, s12), (s20, s21, s22)


@njit
def _block_products(rows, b, a, n):
    """The products of the rows b, b + 1, b + 2 with a, a + 1, a + 2, over their first n numbers."""
    return _nine_products(rows[b], rows[b + 1], rows[b + 2], rows[a], rows[a + 1], rows[a + 2], n)


@njit
def _add_entries(system, row, other, tile):
    """Add a row's entries to the lower triangle of P and to h, a chunk at a time."""
    padded = system.shape[0] - _BLOCK
    for first in range(0, row.indices.size, _CHUNK):
        n = _gather(_subset(row, first, first + _CHUNK), other, tile)
        for a in range(0, padded, _BLOCK):
            for b in range(a, padded + 1, _BLOCK):
                products = _block_products(tile, b, a, n)
                for p in range(_BLOCK):
                    for q in range(_BLOCK):
                        system[b + p, a + q] += products[p][q]


@njit
def _finish_column(system, a, k, least):
    """Column k of L, with 1 / L_kk, where the columns before its block a are taken into account.

    False if the pivot was below ``least``, which then replaces it.
    """
    last = system.shape[0] - _BLOCK
    for p in range(a, k):
        multiple = system[k, p]
        for r in range(k, last + 1):
            system[r, k] -= multiple * system[r, p]
    is_accurate = not system[k, k] < least
    inverse = 1.0 / math.sqrt(system[k, k] if is_accurate else least)
    system[k, k] = inverse
    for r in range(k + 1, last + 1):
        system[r, k] *= inverse
    return is_accurate


@njit
def _factorise(system, smallest):
    """P and h become L, with 1 / L_kk on its diagonal, and L^-1 h.

    False if a pivot was below the share ``smallest`` of P_kk, which then replaces it.
    """
    is_accurate = True
    padded = system.shape[0] - _BLOCK
    for a in range(0, padded, _BLOCK):
        diagonal = (system[a, a], system[a + 1, a + 1], system[a + 2, a + 2])
        for b in range(a, padded + 1, _BLOCK):
            products = _block_products(system, b, a, a)
            for p in range(_BLOCK):
                for q in range(_BLOCK):
                    system[b + p, a + q] -= products[p][q]
        for q in range(_BLOCK):
            is_accurate &= _finish_column(system, a, a + q, smallest * diagonal[q])
    return is_accurate


@njit
def _draw(system, bits, stream, i, c):
    """c = L^-T (L^-1 h + eps)."""
    for k in range(c.size):
        c[k] = system[-_BLOCK, k] + normal_from_bits(bits[k], stream, i, k)
    for k in range(c.size - 1, -1, -1):
        c[k] *= system[k, k]
        for p in range(k):
            c[p] -= system[k, p] * c[k]


@njit(fastmath=REASSOCIATE)
def _square(row, coefficients, other):
    """sum_t w_t (y_t - c . f_t)^2."""
    total = 0.0
    for t in range(row.indices.size):
        j = row.indices[t]
        e = coefficients.dtype.type(row.values[t])
        for k in range(coefficients.size):
            e -= coefficients[k] * other[j, k]
        total += row.weights[t] * float(e) * float(e)
    return total


@njit(nogil=True, cache=True)
def joint_rows(entries, weights, own, other, prior, address, squares, start, stop):
    """Draw the coefficients of the rows start to stop, in place, each row's from the joint posterior.

    ``weights`` holds w_t, one for each entry; ``squares[i]`` is set to sum_t w_t (y_t - c . f_t)^2
    after the draw.
    """
    K, all_entries = own.shape[1], _Subset(entries.indices, entries.values, weights)
    prior_system = _prior_system(prior, -(-K // _BLOCK) * _BLOCK)
    system = np.empty_like(prior_system)
    tile = np.zeros((system.shape[0], _CHUNK + _SPARE), dtype=own.dtype)
    fine_tile = np.zeros((system.shape[0], _CHUNK + _SPARE))
    is_fine = tile.itemsize == fine_tile.itemsize
    bits, c = np.empty(K, dtype=np.uint64), np.empty(K)
    stream = start_stream(address.key, address.sweep, address.purpose)
    for i in range(start, stop):
        row = _subset(all_entries, entries.pointers[i], entries.pointers[i + 1])
        _start_row(prior_system, prior, i, system)
        _add_entries(system, row, other, tile)
        if not _factorise(system, _NOISE if is_fine else _COARSE) and not is_fine:
            _start_row(prior_system, prior, i, system)
            _add_entries(system, row, other, fine_tile)
            _factorise(system, _NOISE)
        row_bits(stream, i, bits)
        _draw(system, bits, stream, i, c)
        for k in range(K):
            own[i, k] = c[k]
        squares[i] = _square(row, own[i], other)
