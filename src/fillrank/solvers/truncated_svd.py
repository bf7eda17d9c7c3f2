"""Leading singular triplets of a matrix that is known by its products, from a warm start."""

from typing import Protocol

import numpy as np

from fillrank.solvers.fit import Factors

# Columns carried beyond those asked for: the subspace converges at the rate (s_{k+spare} / s_k)^2.
_SPARE = 8
_MOST_STEPS = 500


class Operator(Protocol):
    """A matrix as far as its products go."""

    shape: tuple[int, int]

    def times(self, block: np.ndarray) -> np.ndarray: ...

    def transposed_times(self, block: np.ndarray) -> np.ndarray: ...


def leading(
    matrix: Operator,
    k: int,
    start: np.ndarray,
    rng: np.random.Generator,
    *,
    above: float = 0.0,
    tolerance: float = 1e-10,
) -> Factors:
    """The k leading singular triplets, by block subspace iteration with Rayleigh-Ritz.

    Parameters
    ----------
    start : array (n, q)
        Right singular vectors to begin with, of a matrix nearby; may be empty. Random columns fill
        it up.
    above : float
        Only triplets with singular values above this need to be accurate: the others are going to be
        thresholded away, and in the bulk of the noise they would converge very slowly.
    tolerance : float
        The iteration ends when no residual ||W^T u_i - s_i v_i|| of those triplets is above this share
        of the largest singular value.
    """
    m, n = matrix.shape
    width = min(k + _SPARE, m, n)
    k = min(k, width)
    Q = np.hstack([start[:, :width], rng.standard_normal((n, max(0, width - start.shape[1])))])
    Q = np.linalg.qr(Q).Q
    for _ in range(_MOST_STEPS):
        U, s, T = np.linalg.svd(matrix.times(Q), full_matrices=False)
        V = Q @ T.T
        back = matrix.transposed_times(U)
        q = int(np.sum(s[:k] > above))
        breach = np.linalg.norm(back[:, :q] - V[:, :q] * s[:q], axis=0)
        if breach.max(initial=0.0) <= tolerance * s[0]:
            break
        Q = np.linalg.qr(back).Q
    return Factors(U[:, :k], s[:k], V[:, :k])
