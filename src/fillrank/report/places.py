r"""Where rows and columns are on a map: similar ones near each other.

With the signal Z = L R^T and its average row z, the map of the rows has the two leading left singular
vectors of Z - 1 z^T, times their singular values, over the root of the number of columns. So the
distance of two points is the root mean square difference of the two rows, as far as two dimensions can
show it. No m x n matrix is made: short vectors with the same inner products have the same left singular
vectors and singular values (posterior/similarity.py), which are found from their small Gram matrix.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.posterior.similarity import centred_rows, signal_factors
from fillrank.runtime.threads import one_blas_thread

Side = Literal["rows", "columns"]
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
    left, right, names = *signal_factors(model.posterior_), data.row_labels
    if side == "columns":
        left, right, names = right, left, data.column_labels
    points, share = _leading(left, right)
    scale = model.posterior_.units.scale / np.sqrt(len(right))
    return Places(scale * points, names, share, side)


def _leading(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, float]:
    """The two leading columns of U S, for left right^T = U S V^T with centred rows, and their share."""
    points = np.zeros((len(left), 2))
    if left.shape[1] == 0:
        return points, 1.0
    with one_blas_thread():  # these products are too small to share
        product = centred_rows(left, right)
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
