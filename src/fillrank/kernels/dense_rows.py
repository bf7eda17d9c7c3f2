r"""The half-sweep of a complete table: joint draws of all rows, by matrix products.

Row i holds a value x_j in every column j, and x_j ~ N(c . f_j, s2), where c = ``own[i]`` are the
row's coefficients, f_j = ``other[j]`` the factors of column j and s2 is the noise variance. The
free coefficients have the prior N(mu, Lam^-1); the others do not change. All rows have the same
factors. Let F be the columns of ``other`` that belong to the free coefficients, and e the residual
of x under the present coefficients. Then the free ones have the distribution

    c | x ~ N(c + Q^-1 (F^T e + s2 Lam (mu - c)), s2 Q^-1),    Q = F^T F + s2 Lam,

with one Q for all rows. With Q = L L^T and z ~ N(0, I), a fresh draw adds Q^-1 h + sqrt(s2) L^-T z
to c, where h is the vector that Q^-1 multiplies. With relaxation a (see `gaussian_rows.Prior`) the
first term, towards the mean, has the factor 1 - a, and the second, random one the factor sqrt(1 -
a^2).

One matrix product over the table gives F^T x for all rows, and then F^T e and ||e||^2 by the Gram
matrix of the factors. Such differences lose digits if the noise is small. Then e is computed first,
by one more product, in tiles that fit in the cache. The squared residuals after a step s are
||e||^2 - 2 s . F^T e + s . (F^T F) s.

Products over the table have its precision; sums of them, Q and its solutions are in float64. Blocks
of rows depend only on the table's shape, and draws are addressed by row and component, as in the
other half-sweeps. So any number of threads gives the same bits, if each product runs on one thread.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

from fillrank.draws.normal import normal_from_bits
from fillrank.draws.streams import Address, row_bits, start_stream
from fillrank.kernels.factors import gram
from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers

# A tile of the table: at most so many rows and columns. It has fewer rows if there would be too few
# blocks for the threads, but not so few that calls cost more than products.
_MOST_ROWS, _TILE_COLUMNS = 128, 1024
_BLOCKS, _FEWEST_ROWS, _FEWEST_CELLS = 4, 16, 2**14
# Added to Q's diagonal, as a share of it, because identical factors would make Q singular.
_LEAST_PIVOT = 1e-12
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
    """N(mean, precision^-1), for the coefficients of a row with the indices ``free``.

    ``relaxation`` is that of `gaussian_rows.Prior`, here for a joint draw of all coefficients.
    """

    free: np.ndarray
    mean: np.ndarray
    precision: np.ndarray
    relaxation: float = 0.0


class _Conditional(NamedTuple):
    """What the draws of all rows share: mu, s2 Lam, (1 - a) Q^-1 and sqrt((1 - a^2) s2) L^-1.

    ``gram`` is the Gram matrix of all factors, including those of fixed coefficients.
    """

    free: np.ndarray
    gram: np.ndarray
    mean: np.ndarray
    shrink: np.ndarray
    towards: np.ndarray
    chance: np.ndarray


class _Half(NamedTuple):
    """The data of a half-sweep; rows are drawn in ``own``, in place."""

    side: Dense
    own: np.ndarray
    other: np.ndarray
    given: _Conditional
    address: Address


@njit(nogil=True, cache=True)
def _take_off_fit(own, gram, products):
    """Turn the products of x with all factors into those of e; returns ||e||^2 - ||x||^2."""
    c = own.astype(np.float64)
    fitted = np.dot(c, gram)
    change = 0.0
    for i in range(own.shape[0]):
        for k in range(own.shape[1]):
            change += c[i, k] * (fitted[i, k] - 2.0 * products[i, k])
            products[i, k] -= fitted[i, k]
    return change


@njit
def _normals(address, start, shape):
    """Standard normals for the free coefficients of rows from number ``start`` on."""
    stream = start_stream(address.key, address.sweep, address.purpose)
    bits = np.empty(shape[1], dtype=np.uint64)
    z = np.empty(shape)
    for i in range(shape[0]):
        row_bits(stream, start + i, bits)
        for p in range(shape[1]):
            z[i, p] = normal_from_bits(bits[p], stream, start + i, p)
    return z


@njit(nogil=True, cache=True)
def _draw(own, products, given, address, start):
    """Draw rows from number ``start`` on; returns the change of their sum of squares.

    ``products`` holds those of e with all factors.
    """
    n_rows, n_free = own.shape[0], given.free.size
    away = np.empty((n_rows, n_free))
    for i in range(n_rows):
        for p in range(n_free):
            away[i, p] = given.mean[p] - own[i, given.free[p]]
    h = np.dot(away, given.shrink)
    for i in range(n_rows):
        for p in range(n_free):
            h[i, p] += products[i, given.free[p]]
    towards = np.dot(h, given.towards)
    chance = np.dot(_normals(address, start, h.shape), given.chance)
    step = np.zeros(own.shape)
    for i in range(n_rows):
        for p in range(n_free):
            k = given.free[p]
            old = float(own[i, k])
            own[i, k] = old + towards[i, p] + chance[i, p]
            step[i, k] = own[i, k] - old
    change, fitted = 0.0, np.dot(step, given.gram)
    for i in range(n_rows):
        for k in range(own.shape[1]):
            change += step[i, k] * (fitted[i, k] - 2.0 * products[i, k])
    return change


def _bounds(n: int, size: int) -> np.ndarray:
    """Where blocks of ``size`` start, and n."""
    return np.append(np.arange(0, n, size), n)


def _conditional(
    other: np.ndarray, prior: RowPrior, noise_variance: float, workers: Workers
) -> _Conditional:
    n, width = other.shape
    G = gram(other, np.zeros(width), np.ones(n), workers)
    shrink = noise_variance * prior.precision
    Q = G[prior.free][:, prior.free] + shrink
    Q.flat[:: len(Q) + 1] *= 1.0 + _LEAST_PIVOT  # the diagonal
    root = np.ascontiguousarray(dtrtri(np.linalg.cholesky(Q), lower=1)[0])
    a = prior.relaxation
    towards, chance = (1.0 - a) * (root.T @ root), math.sqrt((1.0 - a * a) * noise_variance) * root
    return _Conditional(prior.free, G, prior.mean, shrink, towards, chance)


def _tiles(half: _Half, rows: slice) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(values, factors of their columns) of some rows, a tile at a time."""
    for first in range(0, half.other.shape[0], _TILE_COLUMNS):
        columns = slice(first, first + _TILE_COLUMNS)
        yield half.side.values[rows, columns], half.other[columns]


def _sums_by_difference(half: _Half, rows: slice) -> tuple[np.ndarray, float]:
    """(the products of e with all factors, by row; the sum of all e^2), from the products of x."""
    own = half.own[rows]
    products = np.zeros(own.shape)
    for x, factors in _tiles(half, rows):
        products += x @ factors
    return products, half.side.squares[rows].sum() + _take_off_fit(own, half.given.gram, products)


def _sums_of_residuals(half: _Half, rows: slice) -> tuple[np.ndarray, float]:
    """The same, from e itself."""
    own = half.own[rows]
    products, square = np.zeros(own.shape), 0.0
    for x, factors in _tiles(half, rows):
        e = np.empty_like(x)  # in the memory order of the table, so that both are read sequentially
        np.matmul(own, factors.T, out=e)
        np.subtract(x, e, out=e)
        products += e @ factors
        flat = e.ravel(order="K")
        square += float(flat @ flat)
    return products, square


def _draw_block(half: _Half, rows: slice) -> float:
    """Draw some rows; returns the sum of their squared residuals after the draw."""
    products, before = _sums_by_difference(half, rows)
    if before < _FEW_LEFT * half.side.squares[rows].sum():
        products, before = _sums_of_residuals(half, rows)
    after = before + _draw(half.own[rows], products, half.given, half.address, rows.start)
    return after if after > _FEW_LEFT * before else _sums_of_residuals(half, rows)[1]


def dense_rows(
    side: Dense,
    own: np.ndarray,
    other: np.ndarray,
    prior: RowPrior,
    noise_variance: float,
    address: Address,
    workers: Workers,
) -> float:
    """Draw the free coefficients of all rows, in place; the sum of squared residuals afterwards."""
    m, n = side.values.shape
    bounds = _bounds(m, min(max(-(-m // _BLOCKS), _FEWEST_ROWS, _FEWEST_CELLS // n), _MOST_ROWS))
    squares = np.empty(bounds.size - 1)
    half = _Half(side, own, other, _conditional(other, prior, noise_variance, workers), address)

    def work(start: int, stop: int) -> None:
        for b in range(start, stop):
            squares[b] = _draw_block(half, slice(bounds[b], bounds[b + 1]))

    workers.for_rows(work, n * bounds)
    return float(squares.sum())
