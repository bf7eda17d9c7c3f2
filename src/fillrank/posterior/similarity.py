r"""How similar rows are in their completed values, and how similar columns are.

With the signal Z = L R^T and its average row z, rows are compared by Z - 1 z^T: how each differs from
the average row. No m x n matrix is made: with the QR decomposition R = Q T, the short vectors
(L - mean of L) T^T have the same inner products and distances as the rows of Z - 1 z^T.
"""

import numpy as np

from fillrank.posterior.protocol import Posterior

# A row whose difference from the average is below this share of the largest one is rounding error.
_SMALLEST_LENGTH = 1e-6


def signal_factors(posterior: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """(left, right) of the mean signal, or of the mean score by which levels are predicted."""
    left, right = posterior.factors()
    return left.astype(np.float64), right.astype(np.float64)


def centred_rows(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Short vectors with the inner products and distances of the centred rows of left right^T."""
    _, T = np.linalg.qr(right)
    return (left - left.mean(axis=0)) @ T.T


class Similarity:
    """Cosine similarities between the centred rows of ``left right^T``."""

    def __init__(self, left: np.ndarray, right: np.ndarray):
        points = centred_rows(left, right)
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        is_distinct = lengths > _SMALLEST_LENGTH * lengths.max(initial=0.0)
        self._units = np.divide(points, lengths, out=np.zeros_like(points), where=is_distinct)

    def nearest(self, position: int, n: int) -> list[tuple[int, float]]:
        """The n most similar rows with their cosines, best first; none if the row is average."""
        if not self._units[position].any():
            return []
        cosines = self._units @ self._units[position]
        cosines[position] = -np.inf
        n = min(n, len(cosines) - 1)
        candidates = np.argpartition(-cosines, n - 1)[:n] if n else np.zeros(0, dtype=int)
        best = candidates[np.argsort(-cosines[candidates], kind="stable")]
        return [(int(i), float(min(cosines[i], 1.0))) for i in best]
