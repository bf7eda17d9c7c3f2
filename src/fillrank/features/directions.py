"""The leading directions of centred terms."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fillrank.features.coding import Terms

# A direction with a smaller share of the largest singular value is rounding.
_SMALLEST = 1e-6
# Cells of a sparse matrix below which a dense copy is made, and operations (cells times the shorter
# side) below which all directions are computed: some seconds.
DENSE_CELLS = 10_000_000
EXACT_COST = 10_000_000_000
# Additional columns and steps of subspace iteration. The values are orthogonal after any step; more
# steps only find directions with a little more of the variance.
_SPARE, _STEPS = 20, 10


class Directions(NamedTuple):
    """The leading right singular vectors Q (q, p) of centred and weighted terms F_0.

    Attributes
    ----------
    vectors : ndarray (q, p)
    scale : float
        F_0 is multiplied by it, so that the mean squared norm of its rows is 1.
    share : float
        The share of the squared norm of F_0 in these directions.
    """

    vectors: np.ndarray
    scale: float
    share: float


class _Centred:
    """Terms minus their means; for a sparse matrix, the difference is not stored."""

    def __init__(self, matrix: Terms, means: np.ndarray | float = 0.0):
        self.shape: tuple[int, int] = matrix.shape
        self._matrix = matrix
        self._means = np.broadcast_to(means, matrix.shape[1])

    def times(self, block: np.ndarray) -> np.ndarray:
        """F_0 times a block of columns."""
        return self._matrix @ block - self._means @ block

    def transposed_times(self, block: np.ndarray) -> np.ndarray:
        """F_0^T times a block of columns."""
        return self._matrix.T @ block - np.outer(self._means, block.sum(axis=0))


def term_means(terms: Terms) -> np.ndarray:
    """The mean of each term over the lines where it is not missing."""
    if not isinstance(terms, np.ndarray):
        return np.asarray(terms.mean(axis=0)).ravel()
    return np.nanmean(terms, axis=0)


def project(terms: Terms, means: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """(terms - means) times directions; a missing term has its mean.

    Examples
    --------
    >>> project(np.array([[3.0, np.nan]]), np.array([1.0, 5.0]), np.array([[2.0], [7.0]]))
    array([[4.]])
    """
    if not isinstance(terms, np.ndarray):
        return terms @ directions - means @ directions
    return centre(terms, means) @ directions


def centre(terms: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Terms minus means, and 0 where a term is missing."""
    centred: np.ndarray = terms - means
    centred[np.isnan(centred)] = 0.0
    return centred


def leading_directions(
    terms: Terms, means: np.ndarray, weights: np.ndarray, n_max: int
) -> Directions:
    """The leading directions of F_0 = (terms - means) diag(weights), scaled.

    Parameters
    ----------
    terms : array or sparse array (m, q)
        NaN where missing.
    means, weights : ndarray (q,)
    n_max : int
        The largest number of directions. Those with a singular value below 1e-6 of the largest are
        left out.
    """
    if not isinstance(terms, np.ndarray) and float(np.prod(terms.shape)) <= DENSE_CELLS:
        terms = terms.toarray()
    if not isinstance(terms, np.ndarray):
        # Column by column, ||x - mean||^2 = ||x||^2 - m mean^2.
        squares = np.asarray(terms.power(2).sum(axis=0)).ravel() - terms.shape[0] * means**2
        total = float(squares @ weights**2)
        matrix = sp.csr_array(terms @ sp.diags_array(weights))
        vectors, s = _iterate(_Centred(matrix, means * weights), n_max)
    else:
        F_0 = centre(terms, means) * weights
        total = float(np.sum(F_0**2))
        vectors, s = _decompose(F_0, n_max)
    kept = s > _SMALLEST * s[0]
    scale = np.sqrt(terms.shape[0] / total)
    share = min(float(np.sum(s[kept] ** 2)) / total, 1.0)
    return Directions(_with_sign(vectors[:, kept]), float(scale), share)


def _decompose(F_0: np.ndarray, n_max: int) -> tuple[np.ndarray, np.ndarray]:
    """The leading right singular vectors and singular values of an array."""
    if F_0.size * float(min(F_0.shape)) > EXACT_COST:
        return _iterate(_Centred(F_0), n_max)
    _, s, Qt = np.linalg.svd(F_0, full_matrices=False)
    return Qt[:n_max].T, s[:n_max]


def _iterate(F_0: _Centred, n_max: int) -> tuple[np.ndarray, np.ndarray]:
    """The same for a large matrix, by subspace iteration from a fixed start.

    With F_0 V = P S T^T for orthonormal V, the columns of F_0 V T = P S are orthogonal.
    """
    m, q = F_0.shape
    width = min(n_max + _SPARE, m, q)
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((q, width))).Q
    for _ in range(_STEPS):
        U = np.linalg.qr(F_0.times(V)).Q
        V = np.linalg.qr(F_0.transposed_times(U)).Q
    _, s, Tt = np.linalg.svd(F_0.times(V), full_matrices=False)
    return V @ Tt[:n_max].T, s[:n_max]


def _with_sign(vectors: np.ndarray) -> np.ndarray:
    """Vectors whose largest element is positive; which sign is found depends on the library."""
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])
