"""What the max-margin solvers share: the fit, and how to leave the saddles of M3F.

U = V = 0 is stationary for every penalty, and so is each solution without some of its components. A
descent that starts from a solution at a larger penalty would stop there.
"""

from typing import NamedTuple

import numpy as np

from fillrank.kernels.ordinal import Scorer, slopes
from fillrank.kernels.products import product
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Factors
from fillrank.solvers.truncated_svd import leading


class MarginFit(NamedTuple):
    """A solution, the objective after each iteration, and how far from stationary it is.

    ``violation`` is relative; with ``converged`` it is below the tolerance.
    """

    scorer: Scorer
    objectives: tuple[float, ...]
    violation: float
    converged: bool
    reason: str


# A component that changes no score by more than this share of the margin counts as zero.
_SMALLEST_SCORE = 1e-2
# A singular value of G must exceed lambda by this share of lambda to start a new component. The
# vectors need not be accurate: they only start a descent, and errors of the values are of second
# order in theirs.
_NOTICEABLE, _ROUGH_TOLERANCE = 1e-2, 0.1


class _Remainder:
    """G without its part along the components of X: (I - P P^T) G (I - Q Q^T)."""

    def __init__(self, G: Data, factors: Factors, workers: Workers):
        self._G, self._factors, self._workers = G, factors, workers
        self.shape = G.shape

    def times(self, block: np.ndarray) -> np.ndarray:
        P, _, Q = self._factors
        return _project_out(P, product(self._G.rows, _project_out(Q, block), self._workers))

    def transposed_times(self, block: np.ndarray) -> np.ndarray:
        P, _, Q = self._factors
        return _project_out(Q, product(self._G.columns, _project_out(P, block), self._workers))


def _project_out(basis: np.ndarray, block: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(block - basis @ (basis.T @ block))


def components(U: np.ndarray, V: np.ndarray) -> Factors:
    """The singular components of U V^T, without those that change no score noticeably."""
    (P, R), (Q, S) = np.linalg.qr(U), np.linalg.qr(V)
    A, s, Bt = np.linalg.svd(R @ S.T)
    P, Q = P @ A[:, : s.size], Q @ Bt[: s.size].T
    alive = s * np.abs(P).max(axis=0) * np.abs(Q).max(axis=0) > _SMALLEST_SCORE
    return Factors(P[:, alive], s[alive], Q[:, alive])


def with_new_components(
    data: Data, penalty: float, workers: Workers, scorer: Scorer
) -> Scorer | None:
    """A scorer with a smaller J, its zero components replaced; None if J cannot be lowered so.

    The loss of an entry is a sum of L - 1 hinges, each of curvature 1 at most. So components p_k
    q_k^T of G with singular values lambda + delta_k, added with weights delta_k / (L - 1), lower J
    by sum_k delta_k^2 / (2 (L - 1)) or more.
    """
    alive = components(scorer.left, scorer.right)
    rank, n_hinges = scorer.left.shape[1], scorer.thresholds.shape[1]
    n_free = min(rank, *data.shape) - alive.s.size
    if n_free == 0:
        return None
    by_row = slopes(data.rows, scorer, workers)
    order = np.argsort(by_row.indices, kind="stable")
    G = Data(by_row, data.columns._replace(values=by_row.values[order]))
    least = (1.0 + _NOTICEABLE) * penalty
    remainder, none = _Remainder(G, alive, workers), np.zeros((data.shape[1], 0))
    p, s, q = leading(remainder, n_free, none, np.random.default_rng(0), tolerance=_ROUGH_TOLERANCE)
    new = s > least
    if not new.any():
        return None
    weights = np.sqrt(np.append(alive.s, (s[new] - penalty) / n_hinges))
    U, V = np.zeros_like(scorer.left), np.zeros_like(scorer.right)
    U[:, : weights.size] = np.hstack([alive.U, p[:, new]]) * weights
    V[:, : weights.size] = np.hstack([alive.V, q[:, new]]) * weights
    return scorer._replace(left=U, right=V)
