r"""Where rows and columns are on a map: similar ones near each other.

With the signal Z = L R^T and its average row z, the map of the rows has the two leading left singular
vectors of Z - 1 z^T, times their singular values, over the root of the number of columns. So the
distance of two points is the root mean square difference of the two rows, as far as two dimensions can
show it. No m x n matrix is made: with R^T R = A A^T, the product of the centred L and A has the same
left singular vectors and singular values, and they are found from its small Gram matrix.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.posterior.ordinal import OrdinalPosterior
from fillrank.runtime.threads import one_blas_thread

Side = Literal["rows", "columns"]
# Scorers whose average stands for that of all kept ones.
_MOST_SCORERS = 8
# Directions in which the outermost point is named.
_DIRECTIONS = 12


class Places(NamedTuple):
    """Points (n, 2), the names of what they stand for, and the share of all differences they show."""

    points: np.ndarray
    names: np.ndarray
    share: float
    side: Side

    @property
    def empty(self) -> bool:
        """Whether there is nothing to see: all are alike, or there are fewer than three."""
        return len(self.points) < 3 or not np.ptp(self.points) > 0


def places(model: Any, side: Side) -> Places:
    """Places of all rows, or of all columns."""
    if side not in ("rows", "columns"):
        raise InputError(f"side must be 'rows' or 'columns', got {side!r} instead.")
    data = model.observations_
    left, right, names = *_factors(model.posterior_), data.row_labels
    if side == "columns":
        left, right, names = right, left, data.column_labels
    points, share = _leading(left - left.mean(axis=0), right)
    scale = model.posterior_.units.scale / np.sqrt(len(right))
    return Places(scale * points, names, share, side)


def _factors(posterior: Any) -> tuple[np.ndarray, np.ndarray]:
    """(left, right) of the signal, or of the scores by which levels are predicted."""
    if not isinstance(posterior, OrdinalPosterior):
        left, right, _ = posterior.mean
        return left.astype(np.float64), right.astype(np.float64)
    n = len(posterior.scorers)
    chosen = sorted({n * t // _MOST_SCORERS for t in range(_MOST_SCORERS)})
    scorers = [posterior.scorers[t] for t in chosen]
    left = np.hstack([scorer.left for scorer in scorers]).astype(np.float64)
    return left / len(scorers), np.hstack([scorer.right for scorer in scorers]).astype(np.float64)


def _leading(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, float]:
    """The two leading columns of U S, for left right^T = U S V^T, and their share of sum S^2."""
    points = np.zeros((len(left), 2))
    if left.shape[1] == 0:
        return points, 1.0
    with one_blas_thread():  # these products are too small to share
        w, V = np.linalg.eigh(right.T @ right)
        product = left @ (V * np.sqrt(np.maximum(w, 0.0)))
        squares, turn = np.linalg.eigh(product.T @ product)
        squares = np.maximum(squares[::-1], 0.0)
        k = min(2, squares.size)
        found = product @ turn[:, ::-1][:, :k]
    # The sign of a singular vector is nobody's choice: the outermost point is on the positive side.
    outermost = found[np.abs(found).argmax(axis=0), np.arange(k)]
    points[:, :k] = found * np.where(outermost < 0, -1.0, 1.0)
    total = float(squares.sum())
    return points, float(squares[:k].sum()) / total if total > 0 else 1.0


def outermost(points: np.ndarray) -> np.ndarray:
    """Positions of the points that are farthest out, each once."""
    angles = 2 * np.pi * np.arange(_DIRECTIONS) / _DIRECTIONS
    directions = np.array([np.cos(angles), np.sin(angles)])
    return np.unique((points @ directions).argmax(axis=0))


def thinned(points: np.ndarray, most: int) -> np.ndarray:
    """Positions of at most so many points: the outermost, and others chosen at random."""
    if len(points) <= most:
        return np.arange(len(points))
    far = outermost(points)
    others = np.setdiff1d(np.arange(len(points)), far)
    some = np.random.default_rng(0).choice(others, most - far.size, replace=False)
    return np.sort(np.concatenate([far, some]))
