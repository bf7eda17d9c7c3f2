"""Operations on factors, a line per row: scaled copies, sums, products, QR, singular values.

Sums are taken over fixed blocks of rows, then over the blocks in order: the same bits on any number
of threads, and on any machines that hold complete blocks.

QR decompositions, too, are computed in fixed parts of some thousand rows, which fit in a cache.
Stack the triangles of the parts; the triangle of that stack is the triangle of the complete block
(Demmel, Grigori, Hoemmen and Langou 2012). This is several times faster than one decomposition,
equally stable, and needs no second copy of the block. Gram matrices would be cheaper still, but
squaring loses small values.
"""

from functools import partial

import numpy as np

from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers

BLOCK = 1024  # rows
# Products with a matrix: rows at a time, which fit in a cache, and the largest number of partial
# sums.
_ROWS, _PARTS = 256, 64


@njit(nogil=True, cache=True)
def _scale_blocks(factors, scale, out, start, stop):
    for i in range(start * BLOCK, min(stop * BLOCK, factors.shape[0])):
        for k in range(factors.shape[1]):
            out[i, k] = factors[i, k] * scale[k]


@njit(nogil=True, cache=True)
def _sum_blocks(factors, centre, sums, start, stop):
    for b in range(start, stop):
        first, second = sums[b, 0], sums[b, 1]
        for i in range(b * BLOCK, min((b + 1) * BLOCK, factors.shape[0])):
            for k in range(centre.size):
                z = float(factors[i, k]) - centre[k]
                first[k] += z
                second[k] += z * z


@njit(nogil=True)
def _add_matrix(total, matrix):
    """total += matrix. In one statement numba compiles the message of an error as well, for 2.5 s."""
    for i in range(total.shape[0]):
        for j in range(total.shape[1]):
            total[i, j] += matrix[i, j]


@njit(nogil=True, cache=True)
def _gram_parts(factors, centre, roots, bounds, sums, start, stop):
    part = np.empty((_ROWS, factors.shape[1]))
    for p in range(start, stop):
        for first in range(bounds[p], bounds[p + 1], _ROWS):
            n = min(_ROWS, bounds[p + 1] - first)
            for i in range(n):
                for k in range(centre.size):
                    part[i, k] = roots[first + i] * (float(factors[first + i, k]) - centre[k])
            _add_matrix(sums[p], np.dot(part[:n].T, part[:n]))


@njit(nogil=True, cache=True)
def _multiply_parts(factors, matrix, out, start, stop):
    for p in range(start, stop):
        first, last = p * _ROWS, min((p + 1) * _ROWS, factors.shape[0])
        np.dot(factors[first:last], matrix, out[first:last])


def _block_pointers(factors: np.ndarray) -> np.ndarray:
    """The cumulative cost of blocks, in entries of a half-sweep: four rows count as one entry.

    So a few thousand rows, which take no longer than waking a thread, run on one thread.
    """
    return BLOCK // 4 * np.arange(-(-len(factors) // BLOCK) + 1)


def scaled(factors: np.ndarray, scale: np.ndarray, workers: Workers) -> np.ndarray:
    """A copy whose first columns are multiplied by ``scale``; the others are unchanged."""
    scales = np.ones(factors.shape[1], dtype=factors.dtype)
    scales[: scale.size] = scale
    out = np.empty_like(factors)
    workers.for_rows(
        lambda start, stop: _scale_blocks(factors, scales, out, start, stop),
        _block_pointers(factors),
    )
    return out


def sums_about(
    factors: np.ndarray, centre: np.ndarray, workers: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """(sum_i f_ik - c_k, sum_i (f_ik - c_k)^2) for the first ``centre.size`` columns k."""
    pointers = _block_pointers(factors)
    sums = np.zeros((pointers.size - 1, 2, centre.size))
    workers.for_rows(lambda start, stop: _sum_blocks(factors, centre, sums, start, stop), pointers)
    first, second = sums.sum(axis=0)
    return first, second


def _matrix_pointers(bounds: np.ndarray, width: int) -> np.ndarray:
    """The cumulative cost of rows in a product, in entries of a half-sweep.

    At rank 30 a row takes as long as some entries, and counts as one: see `_block_pointers`.
    """
    return bounds * width**2 // 900


def gram(
    factors: np.ndarray, centre: np.ndarray, weights: np.ndarray, workers: Workers
) -> np.ndarray:
    """sum_i w_i (f_i - c)(f_i - c)^T in float64, over the rows f_i.

    Examples
    --------
    >>> factors = np.array([[1.0, 0.0], [3.0, 2.0]])
    >>> gram(factors, np.zeros(2), np.array([1.0, 2.0]), Workers(1))
    array([[19., 12.],
           [12.,  8.]])
    """
    n, width = factors.shape
    bounds = np.linspace(0, n, min(_PARTS, -(-n // _ROWS)) + 1).astype(np.int64)
    sums = np.zeros((bounds.size - 1, width, width))
    work = partial(_gram_parts, factors, centre, np.sqrt(weights), bounds, sums)
    workers.for_rows(work, _matrix_pointers(bounds, width))
    return np.asarray(sums.sum(axis=0))


@njit(nogil=True, cache=True)
def _cross_parts(features, factors, bounds, sums, start, stop):
    for p in range(start, stop):
        for first in range(bounds[p], bounds[p + 1], _ROWS):
            last = min(first + _ROWS, bounds[p + 1])
            _add_matrix(sums[p], np.dot(features[first:last].T, factors[first:last]))


def cross_products(features: np.ndarray, factors: np.ndarray, workers: Workers) -> np.ndarray:
    """sum_i F_i f_i^T in float64, over the rows F_i of features and f_i of factors.

    Examples
    --------
    >>> features = np.array([[1.0, 0.0], [3.0, 2.0]])
    >>> cross_products(features, np.array([[1.0], [2.0]]), Workers(1))
    array([[7.],
           [4.]])
    """
    (n, p), width = features.shape, factors.shape[1]
    bounds = np.linspace(0, n, min(_PARTS, -(-n // _ROWS)) + 1).astype(np.int64)
    sums = np.zeros((bounds.size - 1, p, width))
    work = partial(_cross_parts, features, factors, bounds, sums)
    workers.for_rows(work, bounds * p * width // 900)
    return np.asarray(sums.sum(axis=0))


def multiplied(factors: np.ndarray, matrix: np.ndarray, workers: Workers) -> np.ndarray:
    """The product of factors and a small matrix, in the factors' precision."""
    matrix = np.ascontiguousarray(matrix, dtype=factors.dtype)
    out = np.empty((len(factors), matrix.shape[1]), dtype=factors.dtype)
    bounds = _ROWS * np.arange(-(-len(factors) // _ROWS) + 1)
    work = partial(_multiply_parts, factors, matrix, out)
    workers.for_rows(work, _matrix_pointers(bounds, factors.shape[1]))
    return out


# Rows of a part: enough that its triangle is small in comparison.
_PART, _PART_PER_COLUMN = 2048, 4
_ALONE = Workers(1)


def _bounds(block: np.ndarray) -> np.ndarray:
    """Where the parts of a block start and end."""
    m, k = block.shape
    n_parts = max(1, m // max(_PART, _PART_PER_COLUMN * k))
    return np.linspace(0, m, n_parts + 1).astype(np.int64)


def _r(block: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.qr(block, mode="r"))


def triangle(
    block: np.ndarray, centre: np.ndarray | float = 0.0, workers: Workers = _ALONE
) -> np.ndarray:
    """R of block - centre = Q R, in float64.

    Examples
    --------
    >>> np.abs(triangle(np.array([[3.0], [4.0]])))
    array([[5.]])
    """
    bounds = _bounds(block)
    parts: list[np.ndarray] = [block[:0]] * (bounds.size - 1)

    def work(start: int, stop: int) -> None:
        for p in range(start, stop):
            part = block[bounds[p] : bounds[p + 1]].astype(np.float64) - centre
            parts[p] = _r(part)

    workers.for_rows(work, bounds)
    return _r(np.concatenate(parts))


def orthonormalise(block: np.ndarray, workers: Workers) -> None:
    """Q of block = Q R, in place; the block must not have more columns than rows."""
    bounds, k = _bounds(block), block.shape[1]
    triangles = np.empty((bounds.size - 1, k, k))

    def decompose(start: int, stop: int) -> None:
        for p in range(start, stop):
            part = block[bounds[p] : bounds[p + 1]]
            part[:], triangles[p] = np.linalg.qr(part.astype(np.float64))

    workers.for_rows(decompose, bounds)
    rotations = np.linalg.qr(triangles.reshape(-1, k)).Q.reshape(-1, k, k).astype(block.dtype)

    def rotate(start: int, stop: int) -> None:
        for p in range(start, stop):
            part = block[bounds[p] : bounds[p + 1]]
            part[:] = part @ rotations[p]

    workers.for_rows(rotate, bounds)


def singular_values(
    left: np.ndarray,
    right: np.ndarray,
    left_centre: np.ndarray | float = 0.0,
    right_centre: np.ndarray | float = 0.0,
) -> np.ndarray:
    """The singular values of (left - left_centre) (right - right_centre)^T, descending.

    With QR decompositions of both sides, P R and Q T, they are those of R T^T, which is r x r.

    Examples
    --------
    >>> singular_values(np.array([[3.0], [4.0]]), np.array([[2.0]]))
    array([10.])
    """
    R, T = triangle(left, left_centre), triangle(right, right_centre)
    values = np.zeros(left.shape[1])
    found = np.linalg.svd(R @ T.T, compute_uv=False)
    values[: found.size] = found
    return values
