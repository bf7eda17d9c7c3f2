"""Wishart draws by Bartlett's decomposition.

The density of Wishart(W, degrees) over the positive definite D x D matrices Lam is

    p(Lam) = |Lam|^((degrees - D - 1)/2) exp(-tr(W^-1 Lam) / 2) / constant,    degrees > D - 1,

and E Lam = degrees W. With W = L L^T, M. S. Bartlett, "On the theory of statistical regression",
Proceedings of the Royal Society of Edinburgh 53 (1933) 260-283: Lam = (L A)(L A)^T, where A is lower
triangular, all of it independent,

    A_ii^2 ~ chi^2 with degrees - i degrees of freedom (i = 0, ..., D - 1),    A_ij ~ N(0, 1) for j < i.
"""

import math

import numpy as np
from numba import njit

from fillrank.draws.gamma import gamma
from fillrank.draws.normal import normal


@njit
def _bartlett(stream, D, degrees):
    """A, lower triangular: A A^T ~ Wishart(I, degrees)."""
    A = np.zeros((D, D))
    for i in range(D):
        for j in range(i):
            A[i, j] = normal(stream)
        A[i, i] = math.sqrt(gamma(stream, 0.5 * (degrees - i), 0.5))
    return A


@njit
def wishart_factor(stream, factor, degrees):
    """T = L A, lower triangular: T T^T ~ Wishart(L L^T, degrees), where L is the ``factor``.

    Products with T, T^T and their inverses serve wherever Lam would, and keep twice the digits.
    """
    D = factor.shape[0]
    A = _bartlett(stream, D, degrees)
    T = np.zeros((D, D))
    for i in range(D):
        for k in range(i + 1):
            for j in range(k + 1):
                T[i, j] += factor[i, k] * A[k, j]
    return T
