"""QR decompositions of tall blocks, and the singular values of a product of factors.

A block is worked in fixed parts of some thousand rows, which stay in a cache: the decomposition of the
parts' triangles, one below the other, has the triangle of the whole (Demmel, Grigori, Hoemmen and Langou
2012). That is several times faster than all at once, as stable, needs no second copy of the block, and
the bits do not depend on the threads. Gram matrices would be cheaper still, but their squares lose small
values.
"""

import numpy as np

from fillrank.runtime.workers import Workers

# Rows of a part: enough that its triangle is small beside it.
_PART, _PART_PER_COLUMN = 2048, 4
_ALONE = Workers(1)


def _bounds(block: np.ndarray) -> np.ndarray:
    """Where the parts of a block begin and end."""
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
    turns = np.linalg.qr(triangles.reshape(-1, k)).Q.reshape(-1, k, k).astype(block.dtype)

    def turn(start: int, stop: int) -> None:
        for p in range(start, stop):
            part = block[bounds[p] : bounds[p + 1]]
            part[:] = part @ turns[p]

    workers.for_rows(turn, bounds)


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
