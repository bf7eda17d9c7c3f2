r"""HASI: hierarchical adaptive SoftImpute (Todeschini, Caron and Chavent 2013).

All of this is in standard units, in which the noise is taken to be N(0, 1). The singular values of
Z have d_k ~ Exp(gamma_k) with gamma_k ~ Gamma(a, b). With gamma integrated out the most probable Z
minimises

    F(Z) = 1/2 ||P_Omega(X - Z)||^2 + (a + 1) sum_k log(1 + s_k(Z) / b),

a = penalty * beta and b = beta, so that the prior mean of gamma is the penalty, and the prior is
narrower for larger beta: beta = inf is SoftImpute. In the units of the table the variance of the
noise is then that of the values, v = Var(x), and with penalty and beta in those units

    v F(Z) = 1/2 ||P_Omega(X - Z)||^2 + (penalty * beta + v) sum_k log(1 + s_k(Z) / beta).

F is not convex. The result is a stationary point that depends on the start.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fillrank.kernels.products import product
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Completed, Factors, Fit, Limits, residuals, sum_of_squares
from fillrank.solvers.soft_impute import soft_impute
from fillrank.solvers.truncated_svd import leading

# Singular triplets computed beyond the rank, and how many more if all of them are above the
# threshold.
_MARGIN = 5
_GROWTH = 10
# Triplets below this share of the smallest one retained last time need not be accurate.
_SLACK = 0.9
# The norm of the remainder of the residual is a Ritz value, whose error is the square of this.
_NORM_TOLERANCE = 1e-4
# The accuracy of the singular triplets: at Z = 0, and elsewhere as a share of the present
# violation, down to rounding.
_FIRST_ACCURACY, _SMALLEST_ACCURACY = 1e-6, 1e-14
_SHARE_OF_VIOLATION = 0.02
# The relative rounding error of F. F has stalled when so many steps do not lower it by more.
_ROUNDING = 1e-14
_STALL_STEPS = 20


class Lomax(NamedTuple):
    """The prior of a singular value with its rate integrated out: p(s) = a b^a / (b + s)^(a + 1)."""

    a: float
    b: float

    @property
    def largest_weight(self) -> float:
        """omega_0, the weight of a singular value at zero."""
        return (self.a + 1.0) / self.b

    def weights(self, s: np.ndarray) -> np.ndarray:
        """omega_k = E[gamma_k | s_k] = (a + 1) / (b + s_k)."""
        return (self.a + 1.0) / (self.b + s)

    def value(self, s: np.ndarray) -> float:
        """-log p(s) + log p(0), summed: (a + 1) sum_k log(1 + s_k / b)."""
        return (self.a + 1.0) * float(np.log1p(s / self.b).sum())


class Remainder:
    """M = (I - U U^T) R (I - V V^T): the residual R without its part along the factors."""

    def __init__(self, residual: Data, factors: Factors, workers: Workers):
        self.shape = residual.shape
        self._residual = residual
        self._factors = factors
        self._workers = workers

    def times(self, block: np.ndarray) -> np.ndarray:
        """M B."""
        U, _, V = self._factors
        out = product(self._residual.rows, block - V @ (V.T @ block), self._workers)
        return out - U @ (U.T @ out)

    def transposed_times(self, block: np.ndarray) -> np.ndarray:
        """M^T B."""
        U, _, V = self._factors
        out = product(self._residual.columns, block - U @ (U.T @ block), self._workers)
        return out - V @ (V.T @ out)


def active_violation(
    residual: Data, factors: Factors, weights: np.ndarray, workers: Workers
) -> float:
    """The largest of ||R v_k - omega_k u_k|| / omega_k and ||R^T u_k - omega_k v_k|| / omega_k.

    Zero if F is stationary along the factors: then u_k^T R v_k = omega_k, and R mixes no two of
    them.
    """
    U, _, V = factors
    rows = product(residual.rows, V, workers) - U * weights
    columns = product(residual.columns, U, workers) - V * weights
    worst = np.maximum(np.linalg.norm(rows, axis=0), np.linalg.norm(columns, axis=0)) / weights
    return float(worst.max(initial=0.0))


def remainder_violation(
    residual: Data, factors: Factors, largest: float, workers: Workers
) -> float:
    """How far ||M||_2 is above the weight omega_0 of a singular value at zero, relative to omega_0."""
    if factors.s.size == min(residual.shape) or math.isinf(largest):
        return 0.0
    remainder = Remainder(residual, factors, workers)
    rng = np.random.default_rng(0)
    norm = leading(
        remainder, 1, np.zeros((residual.shape[1], 0)), rng, tolerance=_NORM_TOLERANCE
    ).s[0]
    return max(0.0, float(norm) / largest - 1.0)


class _Point(NamedTuple):
    """An iterate: Z, its residual, F(Z), the violation along the factors.

    ``block`` approximates the leading right singular vectors of W.
    """

    Z: Factors
    R: Data
    F: float
    active_violation: float
    block: np.ndarray


class _Problem(NamedTuple):
    """What does not change from step to step."""

    data: Data
    prior: Lomax
    max_rank: int
    workers: Workers

    def completed(self, point: _Point) -> Completed:
        """The data with missing cells filled in by the point's Z."""
        return Completed(point.R, point.Z, self.workers)

    def at(self, Z: Factors, block: np.ndarray) -> _Point:
        """The point of a Z."""
        R = residuals(self.data, Z, self.workers)
        F = 0.5 * sum_of_squares(R) + self.prior.value(Z.s)
        return _Point(Z, R, F, active_violation(R, Z, self.prior.weights(Z.s), self.workers), block)

    def step(self, point: _Point, filled: Completed) -> _Point:
        """The Z that minimises 1/2 ||W - Z||^2 + sum_k omega_k s_k(Z), for W the completed matrix.

        The weights omega_k ascend, because the s_k of the point descend. So s_k <- (y_k -
        omega_k)_+ with the singular values y_k of W is the global minimum.
        """
        most = min(*filled.shape, self.max_rank)
        q = min(point.Z.s.size, most)
        omega = self.prior.weights(np.append(point.Z.s[:q], np.zeros(most - q)))
        above, accuracy = self.prior.largest_weight, _FIRST_ACCURACY
        if q:
            y = point.Z.s[:q] + omega[:q]  # approximate singular values of W
            above = min(above, _SLACK * float(y[-1]))
            share = _SHARE_OF_VIOLATION * min(point.active_violation, 1.0)
            accuracy = max(share * float(omega[0] / y[0]), _SMALLEST_ACCURACY)
        k, block = min(q + _MARGIN, most), point.block
        while True:
            U, y, V = leading(
                filled, k, block, np.random.default_rng(0), above=above, tolerance=accuracy
            )
            n_above = int(np.sum(y > omega[: y.size]))
            if n_above == k < most:
                k = min(k + _GROWTH, most)
            elif n_above and y[n_above - 1] <= above:
                above = float(omega[n_above - 1])  # it is retained, so it has to be accurate
            else:
                return self.at(
                    Factors(U[:, :n_above], y[:n_above] - omega[:n_above], V[:, :n_above]), V
                )
            block = V

    def violation(self, point: _Point, tolerance: float) -> float:
        """The largest violation; that of the remainder is computed only if the others are small."""
        if point.active_violation > tolerance:
            return point.active_violation
        largest = self.prior.largest_weight
        return max(
            point.active_violation, remainder_violation(point.R, point.Z, largest, self.workers)
        )


def _majorise(problem: _Problem, start: Factors) -> Iterator[_Point]:
    """Steps of majorisation, with Nesterov's extrapolation of the filled-in values.

    If the extrapolation would increase F, it is dropped and restarted.
    """
    old = point = problem.at(start, start.V)
    t = 1.0
    while True:
        yield point
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        W = problem.completed(point)
        new = problem.step(point, W.beyond(problem.completed(old), (t - 1.0) / following))
        if new.F > (1.0 + _ROUNDING) * point.F:
            following = 1.0
            new = problem.step(point, W)
        old, point, t = point, new, following


def has_stalled(objectives: list[float]) -> bool:
    """Whether the last steps did not lower F by more than its rounding error."""
    if len(objectives) <= _STALL_STEPS:
        return False
    return objectives[-1 - _STALL_STEPS] - objectives[-1] <= _ROUNDING * objectives[-1]


def _solve(problem: _Problem, start: Factors, steps: int, tolerance: float) -> Fit:
    objectives: list[float] = []
    violations: list[float] = []
    for point in _majorise(problem, start):
        objectives.append(point.F)
        violations.append(point.active_violation)
        violation = problem.violation(point, tolerance)
        if violation <= tolerance:
            reason = "the conditions for a stationary point hold to the tolerance"
            break
        # F may have stalled while the violation still decreases.
        if has_stalled(objectives) and point.active_violation > 0.5 * violations[-1 - _STALL_STEPS]:
            reason = "the objective stands still"
            if point.Z.s.size == problem.max_rank:
                reason += "; a larger max_rank may lower it"
            break
        if len(objectives) > steps:
            reason = f"{steps} iterations were not enough; allow more, or a larger tolerance"
            break
    violation = problem.violation(point, math.inf)
    return Fit(point.Z, tuple(objectives), violation, violation <= tolerance, reason)


def hasi(
    data: Data,
    penalty: float,
    beta: float,
    limits: Limits,
    workers: Workers,
    start: Factors | None = None,
) -> Fit:
    """Minimise F by majorisation: fill in missing cells with Z, shrink the singular values, repeat.

    Parameters
    ----------
    penalty, beta : float
        The prior mean of the rates gamma_k, and how narrow their prior is.
    start : Factors, optional
        Otherwise SoftImpute with the same penalty, for half of the iterations. Z = 0 would be a bad
        start, because the weights are largest there.

    Returns
    -------
    Fit
        ``objectives`` are F, at the start and after each step; they never increase. ``violation``
        is the largest violation of the conditions for a stationary point, relative to the
        thresholds: R v_k = omega_k u_k and R^T u_k = omega_k v_k on the factors, and ||M||_2 <=
        omega_0 for the remainder M of the residual R.
    """
    steps = limits.max_iterations
    if start is None:
        half = limits._replace(max_iterations=max(1, steps // 2))
        start = soft_impute(data, penalty, half, workers).factors
        steps -= half.max_iterations
    prior = Lomax(a=penalty * beta, b=beta)
    problem = _Problem(data, prior, limits.max_rank, workers)
    return _solve(problem, start, steps, limits.tolerance)
