"""Leading singular triplets of a matrix that is known by its products, from a warm start."""

import math
from typing import NamedTuple, Protocol

import numpy as np

from fillrank.solvers.fit import Factors

# Additional columns: they find directions that a warm start lacks.
_SPARE = 8
# The basis grows to this many times its first width, and at least to this size, before a restart.
_MOST_BLOCKS = 3
_SMALLEST_BASIS = 60
# A block of this many columns costs hardly more than one column: the entries are read once in both
# cases.
_BLOCK = 4
# The norm has converged when it does not increase in this many steps.
_STEADY = 5
_MOST_STEPS = 500


class Operator(Protocol):
    """A matrix that is known by its products."""

    shape: tuple[int, int]

    def times(self, block: np.ndarray) -> np.ndarray: ...

    def transposed_times(self, block: np.ndarray) -> np.ndarray: ...


class _Basis(NamedTuple):
    """Orthonormal U (m, w) and V (n, w) with W V = U B: what is known about W.

    If w would be above m, U is the identity and B is (m, w).
    """

    U: np.ndarray
    B: np.ndarray
    V: np.ndarray


def _orthonormal(block: np.ndarray, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(Q, C, R) with block = basis C + Q R and Q orthonormal, also to the basis.

    Two passes are enough (Kahan): the second removes what rounding left after the first.
    """
    C = basis.T @ block
    Q, R = np.linalg.qr(block - basis @ C)
    rest = basis.T @ Q
    Q, S = np.linalg.qr(Q - basis @ rest)
    return Q, C + rest @ R, S @ R


def _extended(matrix: Operator, basis: _Basis, block: np.ndarray) -> _Basis:
    """The basis extended on the right by the directions of ``block``, up to n columns."""
    U, B, V = basis
    m, w = U.shape[0], V.shape[1]
    D = _orthonormal(block[:, : V.shape[0] - w], V)[0]
    Y = matrix.times(D)
    V = np.hstack([V, D])
    if U.shape[1] + D.shape[1] > m:
        # The left basis would exceed m columns: use the identity, so that B is W V.
        return _Basis(np.eye(m), np.hstack([U @ B, Y]), V)
    Q, C, R = _orthonormal(Y, U)
    B = np.block([[B, C], [np.zeros((D.shape[1], w)), R]])
    return _Basis(np.hstack([U, Q]), B, V)


def _first(matrix: Operator, start: np.ndarray, width: int, rng: np.random.Generator) -> _Basis:
    """The basis that spans the start and random columns."""
    n = matrix.shape[1]
    fill = rng.standard_normal((n, width - start.shape[1]))
    V = np.linalg.qr(np.hstack([start, fill])).Q
    U, B = np.linalg.qr(matrix.times(V))
    return _Basis(U, B, V)


class _Triplets(NamedTuple):
    """B = P diag(s) T^T: the singular triplets of W on the bases."""

    P: np.ndarray
    s: np.ndarray
    T: np.ndarray


def _triplets(basis: _Basis) -> _Triplets:
    P, s, Tt = np.linalg.svd(basis.B, full_matrices=False)
    return _Triplets(P, s, Tt.T)


def _rest(matrix: Operator, basis: _Basis, triplets: _Triplets, count: int) -> np.ndarray:
    """W^T u_i - s_i v_i for the first triplets: their errors, and new directions for the basis."""
    P, s, T = triplets
    return matrix.transposed_times(basis.U @ P[:, :count]) - (basis.V @ T[:, :count]) * s[:count]


def _cut(basis: _Basis, triplets: _Triplets, width: int) -> _Basis:
    """The basis of only the first triplets."""
    P, s, T = triplets
    return _Basis(basis.U @ P[:, :width], np.diag(s[:width]), basis.V @ T[:, :width])


def leading(
    matrix: Operator,
    k: int,
    start: np.ndarray,
    rng: np.random.Generator,
    *,
    above: float = 0.0,
    tolerance: float = 1e-10,
) -> Factors:
    """The k leading singular triplets, by block Golub-Kahan bidiagonalisation with thick restarts.

    With W V = U B on orthonormal bases and B = P diag(s) T^T, the triplets are (U p_i, s_i, V t_i),
    and W^T U p_i - s_i V t_i, which is orthogonal to V, both measures their error and extends V.
    The search space always contains the start. So S_lambda(W) on it gives a value of 1/2 ||W -
    Z||^2 + lambda ||Z||_* no larger than any Z whose rows are in the span of the start.

    Parameters
    ----------
    start : array (n, q)
        Right singular vectors of a similar matrix; may be empty. Random columns are added.
    above : float
        Only triplets with singular values above this need to be accurate. The others will be
        removed by a threshold, and within the noise they would converge very slowly.
    tolerance : float
        The iteration ends when no residual ||W^T u_i - s_i v_i|| of those triplets is above this
        share of the largest singular value, and the first of the others is certain not to belong to
        them.
    """
    m, n = matrix.shape
    width = min(k + _SPARE, m, n)
    k = min(k, width)
    most = max(_MOST_BLOCKS * width, _SMALLEST_BASIS)
    basis = _first(matrix, start[:, :width], width, rng)
    triplets = _triplets(basis)
    for _ in range(_MOST_STEPS):
        s = triplets.s
        q = int(np.sum(s[:k] > above))
        rest = _rest(matrix, basis, triplets, min(max(q + 1, _BLOCK), s.size))
        errors = np.linalg.norm(rest, axis=0)
        enough = tolerance * s[0]
        # The error of a singular value is of second order in that of its vectors.
        settled = q == k or errors[q] <= max(above - s[q], math.sqrt(tolerance) * s[0])
        if basis.V.shape[1] == n or (settled and errors[:q].max(initial=0.0) <= enough):
            break
        if basis.V.shape[1] + errors.size > most:
            basis = _cut(basis, triplets, width)
        basis = _extended(matrix, basis, rest[:, errors > enough])
        triplets = _triplets(basis)
    P, s, T = triplets
    return Factors(basis.U @ P[:, :k], s[:k], basis.V @ T[:, :k])


def spectral_norm(matrix: Operator, rng: np.random.Generator, tolerance: float = 1e-10) -> float:
    """||W||_2, from below, to about this relative tolerance.

    The iteration is that of ``leading`` from a random start, but ends when the largest singular
    value has risen by less than the tolerance in five steps. Its vector may be far from converged:
    near a solution of SoftImpute the residual has as many singular values close to the penalty as Z
    has, and the error is then a small share of their spread.
    """
    m, n = matrix.shape
    basis = _first(matrix, np.zeros((n, 0)), min(_BLOCK, m, n), rng)
    values: list[float] = []
    for _ in range(_MOST_STEPS):
        triplets = _triplets(basis)
        norm = float(triplets.s[0])
        values.append(norm)
        if len(values) > _STEADY and norm - values[-1 - _STEADY] <= tolerance * norm:
            break
        rest = _rest(matrix, basis, triplets, min(_BLOCK, triplets.s.size))
        if basis.V.shape[1] == n or not rest.any():
            break
        if basis.V.shape[1] + _BLOCK > _SMALLEST_BASIS:
            basis = _cut(basis, triplets, _SMALLEST_BASIS // 3)
        basis = _extended(matrix, basis, rest)
    return norm
