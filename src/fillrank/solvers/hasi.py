r"""HASI: hierarchical adaptive SoftImpute (Todeschini, Caron and Chavent 2013).

All of this is in standard units, in which the noise is taken to be N(0, 1). The singular values of Z
have d_k ~ Exp(gamma_k) with gamma_k ~ Gamma(a, b). With gamma integrated out the most probable Z
minimises

    F(Z) = 1/2 ||P_Omega(X - Z)||^2 + (a + 1) sum_k log(1 + s_k(Z) / b),

a = penalty * beta and b = beta, so that the prior mean of gamma is the penalty and beta says how firmly
it is held: beta = inf is SoftImpute. In the units of the table the variance of the noise is then that of
the values, v = Var(x), and with penalty and beta in those units

    v F(Z) = 1/2 ||P_Omega(X - Z)||^2 + (penalty * beta + v) sum_k log(1 + s_k(Z) / beta).

F is not convex. What is found is a stationary point, and which one depends on the start.
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

# Singular triplets asked for beyond the rank, and how many more when all of them are kept.
_MARGIN = 5
_GROWTH = 10
# Triplets this far below the smallest one that was kept last time need not be accurate.
_SLACK = 0.9
# The norm of what is left of the residual is read off a Ritz value, whose error is the square of this.
_NORM_TOLERANCE = 1e-4
# The accuracy of the singular triplets: at Z = 0, and elsewhere as a share of the breach that they are
# to mend, down to rounding.
_FIRST_ACCURACY, _SMALLEST_ACCURACY = 1e-6, 1e-14
_SHARE_OF_BREACH = 0.02
# F is known to this share of itself, and stands still when so many steps bring it no further down.
_ROUNDING = 1e-14
_STANDSTILL_STEPS = 20


class Lomax(NamedTuple):
    """The law of a singular value with its rate integrated out: p(s) = a b^a / (b + s)^(a + 1)."""

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
    """M = (I - U U^T) R (I - V V^T): what the factors leave of the residual R."""

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


def active_breach(residual: Data, factors: Factors, weights: np.ndarray, workers: Workers) -> float:
    """The largest of ||R v_k - omega_k u_k|| / omega_k and ||R^T u_k - omega_k v_k|| / omega_k.

    Zero where F is stationary along the factors: then u_k^T R v_k = omega_k, and R mixes no two of them.
    """
    U, _, V = factors
    rows = product(residual.rows, V, workers) - U * weights
    columns = product(residual.columns, U, workers) - V * weights
    worst = np.maximum(np.linalg.norm(rows, axis=0), np.linalg.norm(columns, axis=0)) / weights
    return float(worst.max(initial=0.0))


def remainder_breach(residual: Data, factors: Factors, largest: float, workers: Workers) -> float:
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
    """A place on the way.

    Z, its residual, F(Z), the breach on the factors, and a block near the leading right vectors of W.
    """

    Z: Factors
    R: Data
    F: float
    breach: float
    block: np.ndarray


class _Problem(NamedTuple):
    """What stays the same on the way."""

    data: Data
    law: Lomax
    max_rank: int
    workers: Workers

    def completed(self, point: _Point) -> Completed:
        """The data with their holes filled by the point's Z."""
        return Completed(point.R, point.Z, self.workers)

    def at(self, Z: Factors, block: np.ndarray) -> _Point:
        """The point of a Z."""
        R = residuals(self.data, Z, self.workers)
        F = 0.5 * sum_of_squares(R) + self.law.value(Z.s)
        return _Point(Z, R, F, active_breach(R, Z, self.law.weights(Z.s), self.workers), block)

    def step(self, point: _Point, filled: Completed) -> _Point:
        """The Z that minimises 1/2 ||W - Z||^2 + sum_k omega_k s_k(Z), for W the completed matrix.

        The weights omega_k rise, because they come from the s_k of the point in falling order: so
        s_k <- (y_k - omega_k)_+ with the singular values y_k of W is the global minimum.
        """
        most = min(*filled.shape, self.max_rank)
        q = min(point.Z.s.size, most)
        omega = self.law.weights(np.append(point.Z.s[:q], np.zeros(most - q)))
        above, accuracy = self.law.largest_weight, _FIRST_ACCURACY
        if q:
            y = point.Z.s[:q] + omega[:q]  # what W will have, about
            above = min(above, _SLACK * float(y[-1]))
            share = _SHARE_OF_BREACH * min(point.breach, 1.0)
            accuracy = max(share * float(omega[0] / y[0]), _SMALLEST_ACCURACY)
        k, block = min(q + _MARGIN, most), point.block
        while True:
            U, y, V = leading(
                filled, k, block, np.random.default_rng(0), above=above, tolerance=accuracy
            )
            kept = int(np.sum(y > omega[: y.size]))
            if kept == k < most:
                k = min(k + _GROWTH, most)
            elif kept and y[kept - 1] <= above:
                above = float(omega[kept - 1])  # it matters after all: be accurate down to there
            else:
                return self.at(Factors(U[:, :kept], y[:kept] - omega[:kept], V[:, :kept]), V)
            block = V

    def violation(self, point: _Point, tolerance: float) -> float:
        """The worst breach; that of the remainder is looked at if the others are tolerable."""
        if point.breach > tolerance:
            return point.breach
        largest = self.law.largest_weight
        return max(point.breach, remainder_breach(point.R, point.Z, largest, self.workers))


def _majorise(problem: _Problem, start: Factors) -> Iterator[_Point]:
    """Steps of majorisation, with Nesterov's extrapolation of what fills the holes.

    Where the extrapolation would let F rise it is dropped, and begins again from nothing.
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


def no_lower(objectives: list[float]) -> bool:
    """Whether the last steps brought F no further down, as far as floating point can tell."""
    if len(objectives) <= _STANDSTILL_STEPS:
        return False
    return objectives[-1 - _STANDSTILL_STEPS] - objectives[-1] <= _ROUNDING * objectives[-1]


def _solve(problem: _Problem, start: Factors, steps: int, tolerance: float) -> Fit:
    objectives: list[float] = []
    breaches: list[float] = []
    for point in _majorise(problem, start):
        objectives.append(point.F)
        breaches.append(point.breach)
        violation = problem.violation(point, tolerance)
        if violation <= tolerance:
            reason = "the conditions for a stationary point hold to the tolerance"
            break
        # Where F can fall no further the conditions may still come closer.
        if no_lower(objectives) and point.breach > 0.5 * breaches[-1 - _STANDSTILL_STEPS]:
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
    """Minimise F by majorisation: fill the holes with Z, shrink the singular values, repeat.

    Parameters
    ----------
    penalty, beta : float
        The prior mean of the rates gamma_k, and how firmly they are held to it.
    start : Factors, optional
        Where to begin; otherwise SoftImpute with the same penalty, for half of the iterations. Z = 0
        would be a bad place, for there the weights are at their largest.

    Returns
    -------
    Fit
        ``objectives`` are F, at the start and after each step; they never rise. ``violation`` is the
        worst breach of the conditions for a stationary point, relative to the thresholds:
        R v_k = omega_k u_k and R^T u_k = omega_k v_k on the factors, and ||M||_2 <= omega_0 for what
        they leave of the residual R.
    """
    steps = limits.max_iterations
    if start is None:
        half = limits._replace(max_iterations=max(1, steps // 2))
        start = soft_impute(data, penalty, half, workers).factors
        steps -= half.max_iterations
    law = Lomax(a=penalty * beta, b=beta)
    problem = _Problem(data, law, limits.max_rank, workers)
    return _solve(problem, start, steps, limits.tolerance)
