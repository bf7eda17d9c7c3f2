r"""The half-sweep of a complete table: joint draws of all rows, by matrix products.

Row i holds a value x_j in every column j, and x_j ~ N(c . f_j, s2_i / b_j), where c = ``own[i]`` are
the row's coefficients, f_j = ``other[j]`` the factors of column j, s2_i the noise variance of the row
and b_j the relative precision of the column. The free coefficients have the prior N(mu_i, Lam^-1); the
others do not change. All rows have the same factors. Let F be the columns of ``other`` that belong to
the free coefficients, B = diag(b), and e the residual of x under the present coefficients. Then the
free ones have the distribution

    c | x ~ N(c + Q^-1 h, s2_i Q^-1),    Q = F^T B F + s2_i Lam,    h = F^T B e + s2_i Lam (mu_i - c).

One decomposition serves the Q of all rows: with W such that W^T Lam W = I and W^T F^T B F W = diag(l),
Q^-1 = W diag(1 / (l + s2_i)) W^T. With z ~ N(0, I), a fresh draw adds
W ((W^T h) / (l + s2_i) + sqrt(s2_i / (l + s2_i)) z) to c. With relaxation a (see `gaussian_rows.Prior`)
the first term, towards the mean, has the factor 1 - a, and the second, random one the factor
sqrt(1 - a^2).

One matrix product over the table gives F^T B x for all rows, and then F^T B e and e^T B e by the Gram
matrix of the factors. Such differences lose digits if the noise is small. Then e is computed first,
by one more product, in tiles that fit in the cache. The weighted squares of the residuals after a step
s are e^T B e - 2 s . F^T B e + s . (F^T B F) s.

Products over the table have its precision; sums of them, W and the solutions are in float64. Blocks
of rows depend only on the table's shape, and draws are addressed by row and component, as in the
other half-sweeps. So any number of threads gives the same bits, if each product runs on one thread.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

from fillrank.draws.normal import row_normals
from fillrank.draws.streams import Address
from fillrank.kernels.factors import gram
from fillrank.kernels.gaussian_rows import NO_SHIFTS, RowNoise
from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers

# A tile of the table: at most so many rows and columns. It has fewer rows if there would be too few
# blocks for the threads, but not so few that calls cost more than products.
_MOST_ROWS, _TILE_COLUMNS = 128, 1024
_BLOCKS, _FEWEST_ROWS, _FEWEST_CELLS = 4, 16, 2**14
# A difference of sums of squares below this share of them has lost too many digits. Above it, the
# error of float32 was at most 0.3% of a standard deviation, with factors correlated by 0.99.
_FEW_LEFT = 1e-2


class Dense(NamedTuple):
    """A complete table: ``values`` (rows, columns), and the sum of squares of each row.

    For the other side of the table the values are the transposed view of the same array.
    """

    values: np.ndarray
    squares: np.ndarray


class RowPrior(NamedTuple):
    """N(mean + shifts_i, precision^-1), for the coefficients of row i with the indices ``free``.

    ``relaxation`` and ``shifts`` are those of `gaussian_rows.Prior`, the first here for a joint draw of
    all coefficients.
    """

    free: np.ndarray
    mean: np.ndarray
    precision: np.ndarray
    relaxation: float = 0.0
    shifts: np.ndarray = NO_SHIFTS


class _Conditional(NamedTuple):
    """What the draws of all rows share: the prior, and W and l of the module's docstring.

    ``gram`` is F^T B F for all factors, including those of fixed coefficients. ``weighted`` are the
    factors times b_j, and ``weights`` are b_j; empty if all are 1.
    """

    prior: RowPrior
    gram: np.ndarray
    W: np.ndarray
    eigenvalues: np.ndarray
    weighted: np.ndarray
    weights: np.ndarray


class _Half(NamedTuple):
    """The data of a half-sweep; rows are drawn in ``own``, in place."""

    side: Dense
    own: np.ndarray
    other: np.ndarray
    given: _Conditional
    variances: np.ndarray
    address: Address


@njit(nogil=True, cache=True)
def _take_off_fit(own, gram, products, squares):
    """Turn the products of x with all factors, and its squares by row, into those of e."""
    c = own.astype(np.float64)
    fitted = np.dot(c, gram)
    for i in range(own.shape[0]):
        for k in range(own.shape[1]):
            squares[i] += c[i, k] * (fitted[i, k] - 2.0 * products[i, k])
            products[i, k] -= fitted[i, k]


@njit(nogil=True, cache=True)
def _draw(own, products, given, variances, address, start, squares):
    """Draw rows from number ``start`` on, and update the weighted squares of their residuals.

    ``products`` holds those of e with all factors.
    """
    free, a = given.prior.free, given.prior.relaxation
    n_rows, n_free = own.shape[0], free.size
    away = np.empty((n_rows, n_free))
    for i in range(n_rows):
        for p in range(n_free):
            away[i, p] = given.prior.mean[p] - own[i, free[p]]
            if given.prior.shifts.shape[0]:
                away[i, p] += given.prior.shifts[start + i, free[p]]
    h = np.dot(away, given.prior.precision)
    for i in range(n_rows):
        for p in range(n_free):
            h[i, p] = products[i, free[p]] + variances[i] * h[i, p]
    g, z = np.dot(h, given.W), row_normals(address, start, h.shape)
    for i in range(n_rows):
        for p in range(n_free):
            share = 1.0 / (given.eigenvalues[p] + variances[i])
            chance = math.sqrt((1.0 - a * a) * variances[i] * share)
            g[i, p] = (1.0 - a) * share * g[i, p] + chance * z[i, p]
    moves = np.dot(g, given.W.T)
    step = np.zeros(own.shape)
    for i in range(n_rows):
        for p in range(n_free):
            k = free[p]
            old = float(own[i, k])
            own[i, k] = old + moves[i, p]
            step[i, k] = own[i, k] - old
    fitted = np.dot(step, given.gram)
    for i in range(n_rows):
        for k in range(own.shape[1]):
            squares[i] += step[i, k] * (fitted[i, k] - 2.0 * products[i, k])


def _bounds(n: int, size: int) -> np.ndarray:
    """Where blocks of ``size`` start, and n."""
    return np.append(np.arange(0, n, size), n)


def _conditional(
    other: np.ndarray, prior: RowPrior, roots: np.ndarray, workers: Workers
) -> _Conditional:
    n, width = other.shape
    weights = roots**2
    G = gram(other, np.zeros(width), weights if roots.size else np.ones(n), workers)
    inverse = dtrtri(np.linalg.cholesky(prior.precision), lower=1)[0]
    inner = inverse @ G[prior.free][:, prior.free] @ inverse.T
    eigenvalues, E = np.linalg.eigh(0.5 * (inner + inner.T))
    W = np.ascontiguousarray(inverse.T @ E)
    weights = weights.astype(other.dtype)
    weighted = other * weights[:, np.newaxis] if roots.size else other
    return _Conditional(prior, G, W, np.maximum(eigenvalues, 0.0), weighted, weights)


def _tiles(half: _Half, rows: slice) -> Iterator[tuple[np.ndarray, slice]]:
    """(values, columns) of some rows, a tile at a time."""
    for first in range(0, half.other.shape[0], _TILE_COLUMNS):
        columns = slice(first, first + _TILE_COLUMNS)
        yield half.side.values[rows, columns], columns


def _squares(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """sum_j b_j x_ij^2 for each row i."""
    if weights.size:
        return np.einsum("ij,ij,j->i", x, x, weights)
    return np.einsum("ij,ij->i", x, x)


def _sums_by_difference(half: _Half, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(the products of e with all factors; the squares of e and of x), by row, from products of x."""
    own, given = half.own[rows], half.given
    products, squares = np.zeros(own.shape), half.side.squares[rows].copy()
    if given.weights.size:
        squares[:] = 0.0
    for x, columns in _tiles(half, rows):
        products += x @ given.weighted[columns]
        if given.weights.size:
            squares += _squares(x, given.weights[columns])
    of_values = squares.copy()
    _take_off_fit(own, given.gram, products, squares)
    return products, squares, of_values


def _sums_of_residuals(half: _Half, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """The products of e with all factors and its squares, by row, from e itself."""
    own, given = half.own[rows], half.given
    products, squares = np.zeros(own.shape), np.zeros(len(own))
    for x, columns in _tiles(half, rows):
        e = np.empty_like(x)  # in the memory order of the table, so that both are read sequentially
        np.matmul(own, half.other[columns].T, out=e)
        np.subtract(x, e, out=e)
        products += e @ given.weighted[columns]
        squares += _squares(e, given.weights[columns])
    return products, squares


def _draw_block(half: _Half, rows: slice, squares: np.ndarray) -> None:
    """Draw some rows, and set the weighted squares of their residuals after the draw."""
    products, before, of_values = _sums_by_difference(half, rows)
    if (before < _FEW_LEFT * of_values).any():
        products, before = _sums_of_residuals(half, rows)
    after = squares[rows]
    after[:] = before
    _draw(
        half.own[rows], products, half.given, half.variances[rows], half.address, rows.start, after
    )
    if (after <= _FEW_LEFT * before).any():
        after[:] = _sums_of_residuals(half, rows)[1]


def dense_rows(
    side: Dense,
    own: np.ndarray,
    other: np.ndarray,
    prior: RowPrior,
    noise: RowNoise,
    address: Address,
    workers: Workers,
) -> np.ndarray:
    """Draw the free coefficients of all rows, in place; sum_j b_j e_ij^2 afterwards for each row i."""
    m, n = side.values.shape
    bounds = _bounds(m, min(max(-(-m // _BLOCKS), _FEWEST_ROWS, _FEWEST_CELLS // n), _MOST_ROWS))
    squares = np.empty(m)
    given = _conditional(other, prior, noise.roots, workers)
    half = _Half(side, own, other, given, noise.variances, address)

    def work(start: int, stop: int) -> None:
        for b in range(start, stop):
            _draw_block(half, slice(bounds[b], bounds[b + 1]), squares)

    workers.for_rows(work, n * bounds)
    return squares
