r"""New rows of a fitted table: their posterior, given their own entries, under every stored draw.

Given a draw, with factors f_j of the columns and noise variance s2, a new row is a Gaussian regression:

    x_j ~ N(c . f_j, s2),    c ~ N(mean, L L^T),

where the prior is the distribution of the draw's own rows (`empirical_law`). With c = mean + L w,
g_j = L^T f_j / s and y_j = (x_j - mean . f_j) / s,

    w | x ~ N(P^-1 h, P^-1),    P = I + sum_j g_j g_j^T,    h = sum_j g_j y_j.

A row without entries has the prior. The draws of the columns do not change, whereas a new fit would
learn about the columns from the new rows. That costs little if there are few new rows, and enough
fitted rows to determine the factors. A factor that the fit missed is missing in new rows, too: in
tables of 20 rows, where this was frequent, the coverage of 90% intervals was 82% for missing cells, and
75% for those of new rows.

The result of a row depends only on its own entries; its draws depend also on its position among the new
rows.
"""

import math
from typing import NamedTuple

import numpy as np

from fillrank.draws import streams
from fillrank.draws.normal import normal_from_bits
from fillrank.draws.streams import Address, chain_key, row_bits, start_stream
from fillrank.kernels.tiles import REASSOCIATE, longest_row
from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import SMALLEST_NOISE, Draw
from fillrank.table.entries import Entries

# A chain that no run has: the draws of new rows are independent of those of the fit with the same seed.
_NO_CHAIN = 2**32 - 1
# Standard deviations below this share of the mean are rounding errors of a constant. Those below the
# second number, in standard units, count as 0, because their squares would underflow in float32.
_CONSTANT, _NOTHING = 1e-12, 1e-15


class _Regression(NamedTuple):
    """The regression of a new row under a draw.

    ``mean`` (k,) and ``L`` (k, k) are its prior, ``factors`` (n, k) holds g_j, ``offsets`` (n,) holds
    mean . f_j, ``noise_sd`` is s. ``turn`` (K, k) transforms c to the basis that all draws share.
    """

    mean: np.ndarray
    L: np.ndarray
    factors: np.ndarray
    offsets: np.ndarray
    noise_sd: float
    turn: np.ndarray


@njit(fastmath=REASSOCIATE)
def _product(rows, a, b, n):
    """The product of the rows a and b of a matrix, over their first n numbers."""
    total = 0.0
    for t in range(n):
        total += rows[a, t] * rows[b, t]
    return total


@njit
def _gather(entries, i, regression, tile):
    """Copy the g_j of a row's columns into ``tile``, component by component, and y_j below them."""
    first, k = entries.pointers[i], regression.mean.size
    n = entries.pointers[i + 1] - first
    for t in range(n):
        j = entries.indices[first + t]
        for a in range(k):
            tile[a, t] = regression.factors[j, a]
        tile[k, t] = (entries.values[first + t] - regression.offsets[j]) / regression.noise_sd
    return n


@njit
def _factorise(tile, n, system):
    """``system`` (k + 1, k) becomes the Cholesky factor of P and, below it, its inverse times h."""
    k = system.shape[1]
    for a in range(k + 1):
        for b in range(min(a + 1, k)):
            value = _product(tile, a, b, n) - _product(system, a, b, b)
            if a == b:
                # Without rounding no pivot of I + a Gram matrix is below 1.
                system[a, a] = math.sqrt(max(1.0, 1.0 + value))
            else:
                system[a, b] = value / system[b, b]


@njit
def _solve_transposed(system, v):
    """v becomes R^-T v, for the lower triangular R in the first rows of ``system``."""
    for a in range(v.size - 1, -1, -1):
        v[a] /= system[a, a]
        for b in range(a):
            v[b] -= system[a, b] * v[a]


@njit(fastmath=REASSOCIATE)
def _add_product(matrix, v, out):
    """out += matrix v."""
    for a in range(out.size):
        total = 0.0
        for b in range(v.size):
            total += matrix[a, b] * v[b]
        out[a] += total


@njit(nogil=True, cache=True)
def _regress_rows(entries, regression, address, means, draws, start, stop):
    """Draw c of the rows start to stop into ``draws``, and add ``turn`` E[c | x] to ``means``."""
    mean, L, turn = regression.mean, regression.L, regression.turn
    k = mean.size
    tile = np.empty((k + 1, longest_row(entries.pointers, start, stop)))
    system = np.empty((k + 1, k))
    bits = np.empty(k, dtype=np.uint64)
    w, noise, c = np.empty(k), np.empty(k), np.empty(k)
    stream = start_stream(address.key, address.sweep, address.purpose)
    for i in range(start, stop):
        _factorise(tile, _gather(entries, i, regression, tile), system)
        row_bits(stream, i, bits)
        for a in range(k):
            w[a] = system[k, a]
            noise[a] = normal_from_bits(bits[a], stream, i, a)
            c[a] = mean[a]
        _solve_transposed(system, w)
        _solve_transposed(system, noise)
        _add_product(L, w, c)
        _add_product(turn, c, means[i])
        _add_product(L, noise, c)
        for a in range(k):
            draws[i, a] = c[a]


def empirical_law(left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(mean, L) of one more row, given the m rows of ``left``; its covariance is L L^T.

    Variances are those of the rows times (m + 1) / (m - 3), as in the predictive t distribution after m
    Gaussian numbers. Correlations are shrunk towards 0, as if there were as many additional
    uncorrelated rows as columns: otherwise new rows would be in the span of the old ones, if these are
    few. A constant column remains constant.
    """
    m, k = left.shape
    mean = left.mean(axis=0, dtype=np.float64)
    centred = left - mean.astype(left.dtype)
    products = (centred.T @ centred).astype(np.float64)
    sd = np.sqrt(np.diag(products) / m)
    sd[sd <= np.maximum(_CONSTANT * np.abs(mean), _NOTHING)] = 0.0
    scale = np.divide(1.0, sd, out=np.zeros(k), where=sd > 0)
    correlation = scale[:, None] * products * scale / (m + k)
    np.fill_diagonal(correlation, 1.0)
    sd *= math.sqrt((m + 1) / max(m - 3, 1))
    return mean, sd[:, None] * np.linalg.cholesky(correlation)


def _regression(draw: Draw, basis: np.ndarray) -> _Regression:
    """The regression of a new row under a draw; ``basis`` (n, K) is orthonormal."""
    mean, L = empirical_law(draw.left)
    right, dtype = draw.right, draw.right.dtype
    noise_sd = math.sqrt(max(draw.noise_variance, SMALLEST_NOISE))
    factors = right @ (L / noise_sd).astype(dtype)
    return _Regression(mean, L, factors, right @ mean, noise_sd, basis.T @ right)


def fold_in_rows(
    draws: list[Draw], mean: Draw, entries: Entries, workers: Workers, seed: int = 0
) -> tuple[list[Draw], Draw]:
    """The posterior of new rows in the columns that were fitted: its draws and its mean.

    Parameters
    ----------
    draws : list of Draw
        The draws of the fit.
    mean : Draw
        The mean of the fit.
    entries : Entries
        Of the new rows, in standard units; the indices are positions of columns at fit.
    workers : Workers
        The result does not depend on their number.
    seed : int
        For the draws; the mean does not depend on it.

    Returns
    -------
    draws : list of Draw
        Of the new rows, one under each draw of the fit. If there is one draw only, as from a solver,
        it is the mean below.
    mean : Draw
        The mean of the expected rows, which has less Monte Carlo error than the average of the draws.

    Notes
    -----
    The mean is projected on the space of columns of the mean of the fit, so that it has as few
    factors and does not depend on which rows are folded in together. The part that is lost was below
    the Monte Carlo error of an average of 128 draws.
    """
    n_rows = entries.pointers.size - 1
    basis = np.linalg.qr(mean.right).Q
    means = np.zeros((n_rows, basis.shape[1]))
    key = chain_key(seed, _NO_CHAIN)
    folded = []
    for t, draw in enumerate(draws):
        regression = _regression(draw, basis)
        address = Address(key, t, streams.ROWS)
        left = np.empty((n_rows, draw.left.shape[1]), draw.left.dtype)
        _regress(entries, regression, address, means, left, workers)
        folded.append(draw._replace(left=left))
    left = (means / len(draws)).astype(basis.dtype)
    expected = Draw(left, basis, mean.noise_variance)
    return (folded if len(folded) > 1 else [expected]), expected


def _regress(
    entries: Entries,
    regression: _Regression,
    address: Address,
    means: np.ndarray,
    draws: np.ndarray,
    workers: Workers,
) -> None:
    """`_regress_rows` for all rows."""

    def work(start: int, stop: int) -> None:
        _regress_rows(entries, regression, address, means, draws, start, stop)

    workers.for_rows(work, entries.pointers)
