"""The half-sweep: a Gibbs draw of every row's coefficients, given the factors of the other side.

Row i holds values x_j in the columns j of Omega_i, and x_j ~ N(sum_k c_k f_jk, noise variance), where
c = ``own[i]`` are the row's coefficients and f_j = ``other[j]`` the factors of column j. A free
coefficient has the prior N(mean_k, 1/precision_k); the others stay as they are. The columns of a
table are the rows of its transpose, so this one kernel serves both sides.

A row is worked in cache: its columns' factors are gathered once into a tile, component by component,
and the residual lives only as long as the row. Cost O(n_i K) a row, nothing stored per entry. Rows do
not touch each other and every draw is addressed by row and component, so that any partition of the
rows gives the same bits.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from fillrank.draws.normal import normal_from_bits
from fillrank.draws.streams import row_bits, start_stream

# Sums may be taken in any order, so that they can be vectorised; NaN and infinity keep their meaning.
REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}


class Prior(NamedTuple):
    """Independent Gaussian priors of the free coefficients: index k, mean and precision."""

    free: np.ndarray
    mean: np.ndarray
    precision: np.ndarray


class Address(NamedTuple):
    """Where in the random streams a half-sweep draws."""

    key: np.uint64
    sweep: int
    purpose: int


@njit
def longest_row(pointers, start, stop):
    """The largest number of entries in one of the rows."""
    longest = 0
    for i in range(start, stop):
        longest = max(longest, pointers[i + 1] - pointers[i])
    return longest


@njit(fastmath=REASSOCIATE)
def gather(indices, values, coefficients, other, tile, residual):
    """Copy the factors of a row's columns into ``tile`` (by component), with the row's residual."""
    for t in range(indices.size):
        j = indices[t]
        e = values[t]
        for k in range(coefficients.size):
            f = other[j, k]
            tile[k, t] = f
            e -= coefficients[k] * f
        residual[t] = e


@njit(fastmath=REASSOCIATE)
def square_and_product(factor, residual, n):
    """(sum f^2, sum f e) over the first n entries."""
    c = factor.dtype.type(0)
    s = factor.dtype.type(0)
    for t in range(n):
        c += factor[t] * factor[t]
        s += factor[t] * residual[t]
    return c, s


@njit(fastmath=REASSOCIATE)
def add_multiple(residual, step, factor, n):
    """residual += step * factor over the first n entries."""
    for t in range(n):
        residual[t] += step * factor[t]


@njit(nogil=True, cache=True)
def gaussian_rows(entries, own, other, prior, noise_variance, address, squares, start, stop):
    """Draw the free coefficients of the rows start to stop, in place.

    With everything else fixed, coefficient k of a row has precision P/s2 and mean
    (s + c old + s2 prior precision * prior mean) / P, where c = sum f_jk^2, s = sum f_jk e_j,
    P = c + s2 * prior precision and s2 is the noise variance. ``squares[i]`` takes the sum of the
    squared residuals after the draw.
    """
    width = own.shape[1]
    longest = longest_row(entries.pointers, start, stop)
    tile = np.empty((width, longest), dtype=own.dtype)
    residual = np.empty(longest, dtype=own.dtype)
    bits = np.empty(prior.free.size, dtype=np.uint64)
    stream = start_stream(address.key, address.sweep, address.purpose)
    for i in range(start, stop):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        n = last - first
        gather(
            entries.indices[first:last], entries.values[first:last], own[i], other, tile, residual
        )
        row_bits(stream, i, bits)
        for p in range(prior.free.size):
            k = prior.free[p]
            c, s = square_and_product(tile[k], residual, n)
            old = float(own[i, k])
            shrink = noise_variance * prior.precision[p]
            P = c + shrink
            new = (s + c * old + shrink * prior.mean[p]) / P
            new += math.sqrt(noise_variance / P) * normal_from_bits(bits[p], stream, i, p)
            own[i, k] = new
            add_multiple(residual, own.dtype.type(old - own[i, k]), tile[k], n)
        squares[i] = square_and_product(residual, residual, n)[0]
