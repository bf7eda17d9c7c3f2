"""What Figure 1 measures of a chain: norms and inner products of factors, and the paper's rank rule."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln


class Shape(NamedTuple):
    """The mean norm of some vectors, and the mean size of their inner products with each other."""

    norm: float
    inner: float


def shape_of(vectors: np.ndarray) -> Shape:
    """The shape of the columns of a matrix.

    Examples
    --------
    >>> shape_of(np.array([[1.0, 0.6], [0.0, 0.8]]))
    Shape(norm=1.0, inner=0.6)
    """
    gram = vectors.astype(np.float64).T @ vectors
    between = np.abs(gram[np.triu_indices(len(gram), 1)])
    return Shape(float(np.sqrt(np.diag(gram)).mean()), float(between.mean()))


def shape_in_ball(n: int) -> Shape:
    """What `shape_of` expects of vectors that are uniform in the unit ball of R^n, without any data.

    E ||u|| = n/(n + 1). A direction has E |t_1| = Gamma(n/2) / (sqrt(pi) Gamma((n + 1)/2), and
    E |u . v| = E ||u|| E ||v|| E |t_1|.
    """
    norm = n / (n + 1)
    along = np.exp(gammaln(n / 2) - gammaln((n + 1) / 2)) / np.sqrt(np.pi)
    return Shape(norm, float(norm**2 * along))


def rank_by_ratio(d: np.ndarray) -> int:
    """The paper's rank: cut the sorted d where one is the largest multiple of the one before it.

    Examples
    --------
    >>> rank_by_ratio(np.array([0.1, 40.0, 0.2, 50.0, 0.3]))
    2
    """
    ascending = np.sort(d)
    w = 1 + int(np.argmax(ascending[1:] / ascending[:-1]))
    return d.size - w
