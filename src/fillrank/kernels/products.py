"""Products of the observed entries with factors, for the spectral methods.

The matrix is given by rows (``Entries``), the factors are blocks with one line per row or column.
The product with the transpose is the same function on the entries by column; or, if the residual is
not stored, it comes from the same pass (``residual_products``).
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fillrank.kernels.simd import prefetch
from fillrank.kernels.tiles import REASSOCIATE, longest_row
from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers
from fillrank.table.entries import Entries

# Sums over rows for every column are computed in shares of the rows, each in a separate block.
# Their number depends only on the table, so that the bits do not depend on the threads. All shares
# together take about as much memory as a block of the rows; more than the largest number would not
# be faster.
_FEWEST_SHARES, _MOST_SHARES = 4, 16
# How many entries ahead memory is prefetched, and the float32 numbers in a cache line.
_AHEAD, _CACHE_LINE = 8, 16


class Fitted(NamedTuple):
    """Two matrices Z = left diag(scale) right^T that differ only in the scales of their factors.

    ``left`` (m, K) and ``right`` (n, K) have one line per row and per column, ``scales`` is (2, K).
    """

    left: np.ndarray
    right: np.ndarray
    scales: np.ndarray


@njit(nogil=True, cache=True, fastmath=REASSOCIATE)
def _residual_rows(entries, left, right, out, start, stop):
    for i in range(start, stop):
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            j = entries.indices[t]
            e = entries.values[t]
            for k in range(left.shape[1]):
                e -= left[i, k] * right[j, k]
            out[t] = e


@njit(nogil=True, cache=True)
def _product_rows(entries, block, out, start, stop):
    for i in range(start, stop):
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            j = entries.indices[t]
            x = entries.values[t]
            for k in range(block.shape[1]):
                out[i, k] += x * block[j, k]


@njit
def _prefetch_line(indices, t, block):
    """Prefetch the line of ``block`` that a later entry needs, which processors cannot predict.

    With the block as the first argument numba would count references to it for every entry, which
    takes longer than the sums.
    """
    if t + _AHEAD < indices.size:
        j = indices[t + _AHEAD]
        for k in range(0, block.shape[1], _CACHE_LINE):
            prefetch(block, (j, k))


@njit(fastmath=REASSOCIATE)
def _row_residual(indices, values, first, second, other, out):
    """The residual of a row under the first of two fits, and the sums of its squares under both."""
    first_square = second_square = 0.0
    for t in range(indices.size):
        _prefetch_line(indices, t, other)
        j = indices[t]
        e = f = values[t]
        for k in range(first.size):
            e -= first[k] * other[j, k]
            f -= second[k] * other[j, k]
        out[t] = e
        first_square += float(e) * float(e)
        second_square += float(f) * float(f)
    return first_square, second_square


@njit
def _add_lines(indices, weights, block, out):
    """out += sum_t weights_t block[indices_t]."""
    for t in range(indices.size):
        _prefetch_line(indices, t, block)
        j, x = indices[t], weights[t]
        for k in range(out.size):
            out[k] += x * block[j, k]


@njit
def _add_to_lines(indices, weights, line, out):
    """out[indices_t] += weights_t line."""
    for t in range(indices.size):
        _prefetch_line(indices, t, out)
        j, x = indices[t], weights[t]
        for k in range(line.size):
            out[j, k] += x * line[k]


@njit(nogil=True, cache=True)
def _residual_products_rows(entries, fitted, block, out, back, squares, rows):
    """``residual_products`` for a range of rows; adds their share of E^T out to ``back``."""
    first, second = np.empty_like(fitted.scales[0]), np.empty_like(fitted.scales[1])
    e = np.empty(longest_row(entries.pointers, *rows), dtype=out.dtype)
    for i in range(*rows):
        a, b = entries.pointers[i], entries.pointers[i + 1]
        indices = entries.indices[a:b]
        for k in range(first.size):
            first[k] = fitted.scales[0, k] * fitted.left[i, k]
            second[k] = fitted.scales[1, k] * fitted.left[i, k]
        square = _row_residual(indices, entries.values[a:b], first, second, fitted.right, e)
        squares[i, 0], squares[i, 1] = square
        _add_lines(indices, e, block, out[i])
        _add_to_lines(indices, e, out[i], back)


@njit(nogil=True, cache=True, fastmath=REASSOCIATE)
def _effect_sums_rows(entries, own, other, sums, squares, start, stop):
    for i in range(start, stop):
        total = square = 0.0
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            e = entries.values[t] - other[entries.indices[t]]
            total += e
            square += (e - own[i]) * (e - own[i])
        sums[i], squares[i] = total, square


def residual(entries: Entries, left: np.ndarray, right: np.ndarray, workers: Workers) -> Entries:
    """P_Omega(X - L R^T), as entries."""
    out = np.empty_like(entries.values)
    workers.for_rows(
        lambda start, stop: _residual_rows(entries, left, right, out, start, stop), entries.pointers
    )
    return entries._replace(values=out)


def product(entries: Entries, block: np.ndarray, workers: Workers) -> np.ndarray:
    """P_Omega(X) B, for B with one line per column of X."""
    out = np.zeros((entries.pointers.size - 1, block.shape[1]), dtype=block.dtype)
    workers.for_rows(
        lambda start, stop: _product_rows(entries, block, out, start, stop), entries.pointers
    )
    return out


def share_bounds(pointers: np.ndarray, n_columns: int) -> np.ndarray:
    """The rows at which the shares of a table start, and the number of rows."""
    m = pointers.size - 1
    n_shares = min(max(m // n_columns, _FEWEST_SHARES), _MOST_SHARES)
    shares = np.linspace(0, pointers[-1], n_shares + 1)
    bounds = np.searchsorted(pointers, shares).clip(0, m)
    bounds[0], bounds[-1] = 0, m
    return bounds


def add_products(
    entries: Entries, fitted: Fitted, block: np.ndarray, out: np.ndarray, back: np.ndarray
) -> np.ndarray:
    """`residual_products` for rows that belong to one share.

    E B is added to ``out``, and E^T times the result to ``back``.

    Returns
    -------
    ndarray
        The sums of squares of both residuals, by row.
    """
    squares = np.empty((out.shape[0], 2))
    _residual_products_rows(entries, fitted, block, out, back, squares, (0, out.shape[0]))
    return squares


def residual_products(
    entries: Entries, fitted: Fitted, block: np.ndarray, out: np.ndarray, workers: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """Add E B to ``out``; return E^T times the result, and the squares of both residuals by row.

    E = P_Omega(X - Z) for the first of the two fits, and B has one line per column of X. One pass
    over the entries, a row at a time: the residual exists only while its row is processed. With
    more rows than columns, what is read by column fits in a cache.
    """
    bounds = share_bounds(entries.pointers, block.shape[0])
    back = np.zeros((bounds.size - 1, *block.shape), dtype=block.dtype)
    squares = np.empty((out.shape[0], 2))

    def work(start: int, stop: int) -> None:
        for share, rows in enumerate(pairwise(bounds[start : stop + 1].tolist()), start):
            _residual_products_rows(entries, fitted, block, out, back[share], squares, rows)

    workers.for_rows(work, entries.pointers[bounds])
    return back.sum(axis=0), squares


def effect_sums(
    entries: Entries, own: np.ndarray, other: np.ndarray, workers: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """For each row i: (sum_j x_ij - other_j, sum_j (x_ij - own_i - other_j)^2)."""
    sums, squares = np.empty(own.size), np.empty(own.size)
    workers.for_rows(
        lambda start, stop: _effect_sums_rows(entries, own, other, sums, squares, start, stop),
        entries.pointers,
    )
    return sums, squares
