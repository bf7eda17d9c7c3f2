r"""SoftImpute-ALS (Hastie, Mazumder, Lee and Zadeh 2015): SoftImpute by alternating ridge regressions.

    min over A (m, r), B (n, r):  1/2 ||P_Omega(X - A B^T)||_F^2 + lambda/2 (||A||_F^2 + ||B||_F^2)

has SoftImpute's minimum if r is at least the rank of its solution. The state is A = U D, B = V D
with orthonormal U, V. The ridge regression of the filled X* = P_Omega(X - Z) + Z on A gives

    B D = X*^T U D^2 (D^2 + lambda)^{-1},   X*^T U = V D^2 + P_Omega(X - Z)^T U,

and an SVD of it the next V, D^2 and rotation of U; then the same with the sides exchanged. Each
half step lowers the objective, which is f(Z) since A and B are balanced.
"""

from typing import NamedTuple

import numpy as np

from fillrank.kernels.products import product, residual
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.certificates import StoppingRule, objective, relative_change, zero_fit
from fillrank.solvers.fit import Factors, Fit, Limits, no_factors, residuals
from fillrank.table.entries import Entries

# D^2 of directions that a start lacks, in units of lambda. From Z = 0 the first step shrinks by
# half; from the solution of a similar problem it should remain near its start.
_COLD, _WARM = 1.0, 1e-2


class _Side(NamedTuple):
    """Z by its rows or columns: own (U or V), D^2, other; with P_Omega(X - Z) by the same side."""

    own: np.ndarray
    D2: np.ndarray
    other: np.ndarray
    residual: Entries


def _side(
    entries: Entries, own: np.ndarray, D2: np.ndarray, other: np.ndarray, workers: Workers
) -> _Side:
    return _Side(own, D2, other, residual(entries, own * D2, other, workers))


def _thin_svd(M: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(U, s, Q) with M = U diag(s) Q^T, for M with many rows: QR first."""
    Q, R = np.linalg.qr(M)
    P, s, Tt = np.linalg.svd(R)
    return Q @ P, s, Tt.T


def _filled_times(side: _Side, workers: Workers) -> np.ndarray:
    """X*^T U = V D^2 + P_Omega(X - Z)^T U, for the side of V."""
    M = product(side.residual, side.other, workers)
    M += side.own * side.D2
    return M


def _shrink(D2: np.ndarray, penalty: float) -> np.ndarray:
    """D^2 / (D^2 + lambda); 1 without a penalty, also where D = 0."""
    return D2 / (D2 + penalty) if penalty > 0.0 else np.ones_like(D2)


def _half_step(side: _Side, penalty: float, workers: Workers) -> Factors:
    """Own, D^2 and other after the ridge regression of this side, with the old D^2 in the shrinkage."""
    M = _filled_times(side, workers)
    M *= _shrink(side.D2, penalty)
    own, D2, Q = _thin_svd(M)
    return Factors(own, D2, side.other @ Q)


def _iteration(data: Data, columns: _Side, penalty: float, workers: Workers) -> _Side:
    """Both half steps: from one Z by its columns to the next."""
    V, D2, U = _half_step(columns, penalty, workers)
    U, D2, V = _half_step(_side(data.rows, U, D2, V, workers), penalty, workers)
    return _side(data.columns, V, D2, U, workers)


def _final(data: Data, columns: _Side, penalty: float, workers: Workers) -> Factors:
    """S_lambda(X* V) V^T: singular values below lambda become exact zeros, and f no larger."""
    V, D2, U, _ = columns
    P, s, Q = _thin_svd(_filled_times(_side(data.rows, U, D2, V, workers), workers))
    q = int(np.sum(s > penalty))
    return Factors(P[:, :q].copy(), s[:q] - penalty, V @ Q[:, :q])


def _first(data: Data, penalty: float, rank: int, start: Factors | None, workers: Workers) -> _Side:
    """The start extended to the rank: random directions in U, zeros in V, so that Z is the start.

    A direction with D = 0 would remain zero. The new ones start at a share of lambda, because a
    constant would depend on the data's unit.
    """
    U, s, V = no_factors(data) if start is None else start
    q = min(s.size, rank)
    U, s, V = U[:, :q], s[:q], V[:, :q]
    fill = np.random.default_rng(0).standard_normal((data.shape[0], rank - q))
    fill = np.linalg.qr(fill - U @ (U.T @ fill)).Q
    D2 = np.append(s, np.full(rank - q, (_WARM if q else _COLD) * penalty or 1.0))
    V = np.hstack([V, np.zeros((data.shape[1], rank - q))])
    return _side(data.columns, V, D2, np.hstack([U, fill]), workers)


def _objective(columns: _Side, penalty: float) -> float:
    """f(Z)."""
    e = columns.residual.values
    return float(0.5 * (e @ e) + penalty * columns.D2.sum())


def _factors(columns: _Side) -> Factors:
    return Factors(columns.other, columns.D2, columns.own)


def soft_impute_als(
    data: Data, penalty: float, limits: Limits, workers: Workers, start: Factors | None = None
) -> Fit:
    """Minimise f(Z) = 1/2 ||P_Omega(X - Z)||_F^2 + penalty ||Z||_* over Z of rank ``max_rank`` or less.

    Parameters
    ----------
    data : Data
        In float64.
    penalty : float
        lambda, 0 or more.
    limits : Limits
        ``tolerance`` bounds the duality gap as a share of f(Z). If ``max_rank`` prevents that, it
        bounds the relative change of Z in one iteration instead.
    start : Factors, optional
        For example the solution at a similar penalty; the default is Z = 0.
    """
    zero = zero_fit(data, penalty, workers)
    if zero is not None:
        return zero
    rule = StoppingRule(data, penalty, limits, workers)
    rank = min(limits.max_rank, *data.shape)
    new = _first(data, penalty, rank, start, workers)
    objectives: list[float] = []
    while True:
        old, new = new, _iteration(data, new, penalty, workers)
        objectives.append(_objective(new, penalty))
        if rule.is_due(len(objectives)):
            final = _final(data, new, penalty, workers)
            R = residuals(data, final, workers)
            at_limit = final.s.size == rank < min(data.shape)
            last = relative_change(_factors(old), _factors(new))
            stop = rule.check(final, R, len(objectives), last, at_limit)
            if stop is not None:
                # The final step belongs to the last iteration.
                objectives[-1] = objective(R, final, penalty)
                return Fit(final, tuple(objectives), *stop)
