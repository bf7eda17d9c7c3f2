r"""Certificates: how far a Z is from the minimum of f(Z) = 1/2 ||P_Omega(X - Z)||_F^2 + lambda ||Z||_*.

The dual problem is to maximise <W, X> - 1/2 ||W||_F^2 over W on Omega with ||W||_2 <= lambda. At
the minimum W is the residual R = P_Omega(X - Z); at any other Z, R scaled into the ball bounds f
from below.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.fit import (
    Completed,
    Factors,
    Fit,
    Limits,
    no_factors,
    residuals,
    sum_of_squares,
)
from fillrank.solvers.truncated_svd import leading, spectral_norm

_NORM_TOLERANCE, _ROUGH_TOLERANCE = 1e-12, 0.05
# An evaluation of the gap costs as much as some iterations. The first is after 5 iterations, the
# next ones after 20% more each time: so neither evaluations nor needless iterations take much of
# the time.
_FIRST_CHECK, _CHECK_GROWTH = 5, 1.2


def sparse_norm(matrix: Data, workers: Workers, tolerance: float = _NORM_TOLERANCE) -> float:
    """The largest singular value of a sparse matrix.

    The start is random on purpose. At a stationary point the singular vectors of Z are singular
    vectors of R. From there the iteration would end at lambda and miss a larger singular value.
    """
    operator = Completed(matrix, no_factors(matrix), workers)
    return spectral_norm(operator, np.random.default_rng(0), tolerance)


def largest_penalty(data: Data, workers: Workers) -> float:
    """||P_Omega(X)||_2: from this penalty on, Z = 0 is optimal."""
    return sparse_norm(data, workers)


def objective(residual: Data, factors: Factors, penalty: float) -> float:
    """f(Z), given P_Omega(X - Z)."""
    return float(0.5 * sum_of_squares(residual) + penalty * factors.s.sum())


def duality_gap(data: Data, factors: Factors, penalty: float, workers: Workers) -> float:
    """f(Z) less a lower bound of the minimum, as a share of f(Z).

    With R = P_Omega(X - Z) and W = R min(1, lambda / ||R||_2), the gap is
    f(Z) - (<W, X> - 1/2 ||W||_F^2) >= 0, and 0 only at the minimum.
    """
    R = residuals(data, factors, workers)
    return _gap(data, R, factors, penalty, sparse_norm(R, workers))


def _gap(data: Data, residual: Data, factors: Factors, penalty: float, norm: float) -> float:
    """The relative gap, given R and its norm; it rises with the norm."""
    value = objective(residual, factors, penalty)
    c = 1.0 if norm <= penalty else penalty / norm
    overlap = float(residual.rows.values @ data.rows.values)
    bound = c * overlap - 0.5 * c**2 * sum_of_squares(residual)
    # Without a penalty f can be 0, and is then known to rounding of f(0) at best.
    scale = max(value, np.finfo(float).eps * 0.5 * sum_of_squares(data))
    return float((value - bound) / scale) if scale > 0.0 else 0.0


def change(old: Factors, new: Factors) -> float:
    """||Z_new - Z_old||_F.

    With C = U_new^T U_old, Z_new - Z_old is U_new (S_new V_new^T - C S_old V_old^T) less
    (U_old - U_new C) S_old V_old^T, which are orthogonal. A difference of large squares would not
    resolve changes below 1e-8.
    """
    C = new.U.T @ old.U
    inside = new.V * new.s - (old.V * old.s) @ C.T
    outside = (old.U - new.U @ C) * old.s
    return math.hypot(float(np.linalg.norm(inside)), float(np.linalg.norm(outside)))


def relative_change(old: Factors, new: Factors) -> float:
    """||Z_new - Z_old||_F as a share of ||Z_old||_F."""
    size = float(np.linalg.norm(old.s))
    difference = change(old, new)
    return difference / size if size > 0.0 else math.inf if difference > 0.0 else 0.0


class Stop(NamedTuple):
    """Why a solver stops: the relative gap, whether Z is a solution, and the reason as text."""

    gap: float
    converged: bool
    reason: str


class StoppingRule(NamedTuple):
    """Decides when a solver stops: at a small gap, at the limit of iterations, or at that of the rank.

    With a rank limit below the solution's rank the gap does not close. Z is then stationary if an
    iteration does not change it: ||Z_new - Z_old||_F <= tolerance ||Z_old||_F. Near a solution the
    gap, too, is of first order in that change, since ||R||_2 <= lambda + ||Z_new - Z_old||_2 after
    a step of SoftImpute.
    """

    data: Data
    penalty: float
    limits: Limits
    workers: Workers

    def is_due(self, iteration: int) -> bool:
        """Whether to check after this iteration."""
        return is_due(iteration, self.limits)

    def check(
        self,
        factors: Factors,
        residual: Data,
        iteration: int,
        last_change: float,
        at_rank_limit: bool,
    ) -> Stop | None:
        """None to continue. ``last_change`` is ``relative_change``, used only at the rank limit."""
        gap_at = partial(_gap, self.data, residual, factors, self.penalty)
        at = Progress(iteration, last_change, at_rank_limit)
        return judge(gap_at, Slope(residual, factors.V), at, self.limits, self.workers)


class Progress(NamedTuple):
    """Where a solver is: iterations, the last ``relative_change``, and whether the rank was cut."""

    iteration: int
    last_change: float
    at_rank_limit: bool


class Slope(NamedTuple):
    """Minus the gradient of the loss, and vectors in whose span its norm is probably attained."""

    sparse: Data
    right: np.ndarray


def with_advice(stop: Stop, at_rank_limit: bool) -> Stop:
    """The same, and if the rank limit may be why a solver has not converged, its reason says so."""
    if stop.converged or not at_rank_limit:
        return stop
    return stop._replace(reason=stop.reason + " with the largest rank; raise max_rank")


def is_due(iteration: int, limits: Limits) -> bool:
    """Whether to judge after this iteration."""
    check = _FIRST_CHECK
    while check < iteration:
        check = math.ceil(_CHECK_GROWTH * check)
    return iteration in (check, limits.max_iterations)


def judge(
    gap_at: Callable[[float], float],
    slope: Slope,
    at: Progress,
    limits: Limits,
    workers: Workers,
) -> Stop | None:
    """Whether to stop; None to continue.

    ``gap_at(norm)`` is the relative gap if the slope has this spectral norm; it rises with the norm.
    """
    _, most, tolerance = limits
    stationary = at.at_rank_limit and at.last_change <= tolerance
    stop = stationary or at.iteration >= most
    if not stop and gap_at(_rough_norm(slope, workers)) > tolerance:
        return None
    gap = gap_at(sparse_norm(slope.sparse, workers))
    if gap <= tolerance:
        return Stop(gap, True, _closed(tolerance, at.iteration))
    if stationary:
        return Stop(gap, True, _stationary(gap, at.iteration, limits))
    reason = f"the limit of {_iterations(most)} was reached at a relative gap of {gap:.2g}"
    return Stop(gap, False, reason) if stop else None


def _rough_norm(slope: Slope, workers: Workers) -> float:
    """A cheap lower bound of the norm, ||R V||_2; the gap that it gives is often large enough."""
    R = Completed(slope.sparse, no_factors(slope.sparse), workers)
    s = leading(R, 1, slope.right, np.random.default_rng(0), tolerance=_ROUGH_TOLERANCE).s
    return float(s[0])


def _iterations(count: int) -> str:
    return f"{count} iteration" + "s" * (count != 1)


def _closed(tolerance: float, iteration: int) -> str:
    return (
        f"the duality gap is below {tolerance:.3g} of the objective after {_iterations(iteration)}"
    )


def _stationary(gap: float, iteration: int, limits: Limits) -> str:
    return (
        f"at the rank limit of {limits.max_rank} Z changes by less than {limits.tolerance:.3g} of its "
        f"size after {_iterations(iteration)}; a relative gap of {gap:.2g} is left to higher ranks"
    )


def zero_fit(data: Data, penalty: float, workers: Workers) -> Fit | None:
    """The fit Z = 0 if it is optimal, otherwise None."""
    # A rough norm is a lower bound, and usually decides.
    if sparse_norm(data, workers, _ROUGH_TOLERANCE) > penalty:
        return None
    largest = largest_penalty(data, workers)
    if largest > penalty:
        return None
    reason = f"Z = 0 is optimal: the penalty is at least {largest:.6g}"
    return Fit(no_factors(data), (0.5 * sum_of_squares(data),), 0.0, True, reason)
