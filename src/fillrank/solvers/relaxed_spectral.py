r"""The relaxed problems P2 and P3 of Song and Zhu (2016), as they stand: unit balls, no orthonormality.

    minimise  1/2 ||P_Omega(X - sum_k d_k alpha_k beta_k^T)||_F^2 + sum_k gamma_k d_k
    over      d_k >= 0,  ||alpha_k|| <= 1,  ||beta_k|| <= 1

P2 has one gamma for all components, P3 one for each. With gamma_k ~ Gamma(a, b) integrated out the
penalty is (a + 1) sum_k log(1 + d_k / b), HASI's on d instead of on singular values.

Blocks are minimised in turn: z_k = d_k alpha_k with beta_k fixed, whose penalty is gamma_k ||z_k||, then
d_k beta_k with alpha_k fixed. Each has a closed form but for one scalar root. A component that has come
to d_k = 0 stays there, so it gets the leading singular vectors of the residual as a new start whenever
their singular value is above gamma_k. Theorem: docs/theorem.md.
"""

import math
from typing import NamedTuple, Protocol

import numpy as np

from fillrank.kernels.component_descent import Shift, shifted_sums, shrunken_factor
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.certificates import duality_gap
from fillrank.solvers.fit import (
    Factors,
    Fit,
    Limits,
    no_factors,
    residuals,
    sum_of_squares,
)
from fillrank.solvers.hasi import Lomax, Remainder, active_breach, no_lower, remainder_breach
from fillrank.solvers.soft_impute import soft_impute
from fillrank.solvers.truncated_svd import leading

# Singular values of Z below this share of the largest are rounding.
_RANK_TOLERANCE = 1e-13
# Most components that begin at a time, and how roughly their directions are known then.
_SEEDS = 10
_SEED_TOLERANCE = 0.05
# The certificate costs about a sweep: it is looked at before the first, then at growing distances.
_FIRST_CHECK, _CHECK_GROWTH = 5, 1.2


class Components(NamedTuple):
    """Z = sum_k d_k alpha_k beta_k^T; a component with d_k = 0 has zeros for vectors.

    ``alpha`` is (r, m) and ``beta`` (r, n), so that a vector is contiguous.
    """

    d: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray


class Penalty(Protocol):
    """What a component costs."""

    def weights(self, d: np.ndarray) -> np.ndarray:
        """gamma_k, the price of a little more of d_k."""

    def value(self, d: np.ndarray) -> float:
        """The penalty."""


class Fixed(NamedTuple):
    """sum_k gamma_k d_k with the smallest gamma for the largest d: no other order costs less."""

    gamma: np.ndarray

    def weights(self, d: np.ndarray) -> np.ndarray:
        """The gammas, in ascending order against descending d."""
        out = np.empty_like(d)
        out[np.argsort(-d, kind="stable")] = np.sort(self.gamma)
        return out

    def value(self, d: np.ndarray) -> float:
        """sum_k gamma_k d_k."""
        return float(self.weights(d) @ d)


def components_of(factors: Factors, n_components: int) -> Components:
    """Factors as components, the first that there is room for; the others are empty."""
    parts = Components(
        np.zeros(n_components),
        np.zeros((n_components, factors.U.shape[0])),
        np.zeros((n_components, factors.V.shape[0])),
    )
    q = min(n_components, factors.s.size)
    parts.d[:q], parts.alpha[:q], parts.beta[:q] = factors.s[:q], factors.U.T[:q], factors.V.T[:q]
    return parts


def factors_of(parts: Components) -> Factors:
    """The singular value decomposition of sum_k d_k alpha_k beta_k^T."""
    full = parts.d > 0.0
    Q, T = np.linalg.qr((parts.alpha[full] * parts.d[full, np.newaxis]).T)
    P, S = np.linalg.qr(parts.beta[full].T)
    U, s, Vt = np.linalg.svd(T @ S.T)
    q = int(np.sum(s > _RANK_TOLERANCE * s.max(initial=0.0)))
    return Factors(Q @ U[:, :q], s[:q], P @ Vt[:q].T)


def _unit(z: np.ndarray) -> tuple[float, np.ndarray]:
    """(||z||, z / ||z||), with zeros for the zero vector."""
    norm = float(np.linalg.norm(z))
    return norm, z / norm if norm > 0.0 else z


def sweep(residual: Data, parts: Components, gamma: np.ndarray, workers: Workers) -> None:
    """Minimise over (d_k, alpha_k), then (d_k, beta_k), for k = 1, ..., r; all in place.

    With R = E + d_k alpha_k beta_k^T the first problem is (1/2) sum_i c_i z_i^2 - h^T z + gamma_k ||z||,
    c_i = sum_{j in Omega_i} beta_kj^2 and h_i = sum_{j in Omega_i} R_ij beta_kj. The second is the same
    for the transpose.

    A pass over one side of the residual first makes up for the two changes since the last one on that
    side: column 0 of ``left`` and ``right`` holds the last change of an alpha, column 1 of a beta.
    """
    m, n = residual.shape
    left, right = np.zeros((m, 2)), np.zeros((n, 2))
    by_row, by_column = Shift(left, right), Shift(right, left)
    d, alpha, beta = parts
    for k in range(d.size):
        if d[k] == 0.0 and not beta[k].any():
            continue
        c, h = shifted_sums(residual.rows, by_row, beta[k], workers)
        old = d[k] * alpha[k]
        z = shrunken_factor(c, h + c * old, gamma[k])
        left[:, 0], right[:, 0] = z - old, beta[k]
        d[k], alpha[k] = _unit(z)

        c, h = shifted_sums(residual.columns, by_column, alpha[k], workers)
        old = d[k] * beta[k]
        z = shrunken_factor(c, h + c * old, gamma[k])
        left[:, 1], right[:, 1] = alpha[k], z - old
        d[k], beta[k] = _unit(z)
    # The rows lack the last two changes, the columns the last one.
    shifted_sums(residual.rows, by_row, np.zeros(n), workers)
    left[:, 0] = 0.0
    shifted_sums(residual.columns, by_column, np.zeros(m), workers)


class Problem(NamedTuple):
    """What stays the same from sweep to sweep.

    ``price`` is the gamma of P2, None elsewhere. With ``orthonormalise`` the components are replaced
    after each sweep by the singular value decomposition of Z, which costs no penalty more that is
    concave in d (docs/theorem.md). P2 gains nothing by it. For the others it is far quicker than to
    leave it to the sweeps, which turn components into one another slowly.
    """

    data: Data
    penalty: Penalty
    price: float | None
    orthonormalise: bool
    workers: Workers


def _seed(problem: Problem, residual: Data, parts: Components, factors: Factors) -> None:
    """Give empty components the directions that bring most, where that pays; in place.

    They are singular vectors of what Z's factors leave of the residual. Those of the residual itself
    may be the factors once more, as long as these have not settled.
    """
    empty = np.flatnonzero(parts.d == 0.0)
    gamma = problem.penalty.weights(parts.d)
    empty = empty[np.argsort(gamma[empty], kind="stable")][:_SEEDS]
    if empty.size == 0 or factors.s.size == min(residual.shape):
        return
    remainder = Remainder(residual, factors, problem.workers)
    nothing, rng = np.zeros((residual.shape[1], 0)), np.random.default_rng(0)
    U, s, V = leading(remainder, empty.size, nothing, rng, tolerance=_SEED_TOLERANCE)
    for j in np.flatnonzero(s > gamma[empty[: s.size]]):
        parts.alpha[empty[j]], parts.beta[empty[j]] = U[:, j], V[:, j]


def _violation(
    problem: Problem, residual: Data, parts: Components, factors: Factors, objective: float
) -> float:
    """The certificate.

    For P2 its objective less a lower bound of P1's minimum, as a share of the objective. Elsewhere the
    worst breach of R beta_k = gamma_k alpha_k, R^T alpha_k = gamma_k beta_k and, for what the factors
    leave of R, of ||M||_2 <= the gamma of an empty component; all relative to the gammas.
    """
    data, penalty, price, _, workers = problem
    if price is not None:
        P1 = 0.5 * sum_of_squares(residual) + price * float(factors.s.sum())
        gap = P1 * duality_gap(data, factors, price, workers)
        return (objective - P1 + gap) / objective if objective > 0.0 else 0.0
    gamma, full = penalty.weights(parts.d), parts.d > 0.0
    vectors = Factors(parts.alpha[full].T, parts.d[full], parts.beta[full].T)
    breach = active_breach(residual, vectors, gamma[full], workers)
    # gamma of a new component; P3 has none beyond its own, the marginal form one for every dimension.
    new = (
        penalty.largest_weight if isinstance(penalty, Lomax) else gamma[~full].min(initial=math.inf)
    )
    return max(breach, remainder_breach(residual, factors, float(new), workers))


def descend(problem: Problem, parts: Components, limits: Limits) -> tuple[Components, Fit]:
    """Sweep until the certificate holds: the components reached, and the fit. Overwrites ``parts``."""
    data, penalty, _, orthonormalise, workers = problem
    residual = residuals(data, factors_of(parts), workers)
    objectives = [0.5 * sum_of_squares(residual) + penalty.value(parts.d)]
    check, last = 0, math.inf
    while True:
        done = len(objectives) - 1
        if done >= check or done >= limits.max_iterations:
            check = max(_FIRST_CHECK, math.ceil(_CHECK_GROWTH * done))
            factors = factors_of(parts)
            residual = residuals(data, factors, workers)  # without the rounding of many shifts
            violation = _violation(problem, residual, parts, factors, objectives[-1])
            converged = violation <= limits.tolerance
            # Where F can fall no further the conditions may still come closer.
            still = no_lower(objectives) and violation > 0.5 * last
            if converged or still or done >= limits.max_iterations:
                reason = _reason(converged, still, parts, done)
                return parts, Fit(factors, tuple(objectives), violation, converged, reason)
            last = violation
            _seed(problem, residual, parts, factors)
        sweep(residual, parts, penalty.weights(parts.d), workers)
        if orthonormalise:
            parts = components_of(factors_of(parts), parts.d.size)
        objectives.append(0.5 * sum_of_squares(residual) + penalty.value(parts.d))


def _reason(converged: bool, still: bool, parts: Components, sweeps: int) -> str:
    if converged:
        return f"the certificate holds to the tolerance after {sweeps} sweeps"
    if not still:
        return f"{sweeps} sweeps were not enough; allow more, or a larger tolerance"
    more = "; a larger max_rank may lower it" if (parts.d > 0.0).all() else ""
    return f"the objective stands still after {sweeps} sweeps" + more


def relaxed_spectral(
    data: Data,
    gamma: np.ndarray | float,
    limits: Limits,
    workers: Workers,
    start: Factors | None = None,
) -> Fit:
    """Solve P2 (a number for gamma) or P3 (a vector, one gamma for each component).

    The gammas of P3 go to the components in ascending order against descending d; ``max_rank`` leaves
    the smallest ones. P3 is not convex: which stationary point is found depends on the start.

    Returns
    -------
    Fit
        ``factors`` are the singular value decomposition of Z, ``objectives`` those of the relaxed
        problem, with sum_k gamma_k d_k, at the start and after each sweep. ``violation`` is the
        relative duality gap for P2, and for P3 the worst breach of the conditions for a stationary
        point, relative to gamma.
    """
    price = float(gamma) if np.ndim(gamma) == 0 else None
    most = min(limits.max_rank, *data.shape)
    prices = np.full(most, price) if price is not None else np.sort(gamma)[: limits.max_rank]
    parts = components_of(no_factors(data) if start is None else start, prices.size)
    return descend(Problem(data, Fixed(prices), price, price is None, workers), parts, limits)[1]


def relaxed_marginal(
    data: Data, a: float, b: float, limits: Limits, workers: Workers, start: Factors | None = None
) -> Fit:
    """Minimise with gamma_k ~ Gamma(a, b) integrated out: a sweep with gamma_k = (a + 1) / (b + d_k).

    log(1 + d_k / b) is concave, and its tangent at d_k majorises it, so that the objective never rises.
    Without a start it begins as HASI does, with SoftImpute at the penalty a / b.
    """
    if start is None:
        half = limits._replace(max_iterations=max(1, limits.max_iterations // 2))
        start = soft_impute(data, a / b, half, workers).factors
        limits = limits._replace(max_iterations=limits.max_iterations - half.max_iterations)
    parts = components_of(start, min(limits.max_rank, *data.shape))
    return descend(Problem(data, Lomax(a, b), None, True, workers), parts, limits)[1]
