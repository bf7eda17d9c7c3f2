"""Which rows are alike, by their completed values; and which columns.

With the mean of the posterior as left right^T, two rows are compared by the cosine of
(left_i - mean) right^T: what parts each from the average row. An orthonormal basis of right makes that
a product of short vectors: with right = Q R, they are the rows of (left - mean) R^T.
"""

from typing import Any

import numpy as np

from fillrank.posterior.ordinal import OrdinalPosterior

# So many scorers of a max-margin method stand for all of them.
_MOST_SCORERS = 8


class Likeness:
    """Unit vectors of all rows (or columns)."""

    def __init__(self, left: np.ndarray, right: np.ndarray):
        _, R = np.linalg.qr(right.astype(np.float64))
        points = (left - left.mean(axis=0, dtype=np.float64)) @ R.T
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        # What stands out by rounding alone has no direction.
        stands_out = lengths > 1e-6 * lengths.max(initial=0.0)
        self._units = np.divide(points, lengths, out=np.zeros_like(points), where=stands_out)

    def nearest(self, position: int, n: int) -> list[tuple[int, float]]:
        """The n most alike, best first, with their cosines; none if there is nothing to compare."""
        cosines = self._units @ self._units[position]
        if not self._units[position].any():
            return []
        cosines[position] = -np.inf
        n = min(n, len(cosines) - 1)
        some = np.argpartition(-cosines, n - 1)[:n] if n else np.zeros(0, dtype=int)
        best = some[np.argsort(-cosines[some], kind="stable")]
        return [(int(i), float(min(cosines[i], 1.0))) for i in best]


def factors(posterior: Any) -> tuple[np.ndarray, np.ndarray]:
    """A left and a right factor whose product is the mean signal, up to its scale."""
    if not isinstance(posterior, OrdinalPosterior):
        return posterior.mean.left, posterior.mean.right
    step = -(-len(posterior.scorers) // _MOST_SCORERS)
    some = posterior.scorers[::step]
    return (
        np.hstack([scorer.left for scorer in some]),
        np.hstack([scorer.right for scorer in some]),
    )
