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

from fillrank.draws.gamma import gamma
from fillrank.draws.normal import normal
from fillrank.runtime.kernel_cache import njit


@njit
def wishart_root(stream: np.ndarray, D: int, degrees: float) -> np.ndarray:
    """A, D x D and lower triangular: A A^T ~ Wishart(I, degrees).

    With any root L of W = L L^T, L A is a root of a draw from Wishart(W, degrees). Products with it and
    with its inverse replace those with Lam, and have twice the digits.
    """
    A = np.zeros((D, D))
    for i in range(D):
        for j in range(i):
            A[i, j] = normal(stream)
        A[i, i] = math.sqrt(gamma(stream, 0.5 * (degrees - i), 0.5))
    return A
