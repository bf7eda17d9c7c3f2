r"""The relaxed problems P2 and P3 of Song and Zhu (2016): unit balls, no orthonormality.

    minimise  1/2 ||P_Omega(X - sum_k d_k alpha_k beta_k^T)||_F^2 + sum_k gamma_k d_k
    over      d_k >= 0,  ||alpha_k|| <= 1,  ||beta_k|| <= 1

P2 has one gamma for all components, P3 one for each. With gamma_k ~ Gamma(a, b) integrated out the
penalty is (a + 1) sum_k log(1 + d_k / b), HASI's on d instead of on singular values.

Blocks are minimised in turn: z_k = d_k alpha_k with beta_k fixed, whose penalty is gamma_k ||z_k||,
then d_k beta_k with alpha_k fixed. Each has a closed form except for one scalar root. A component
with d_k = 0 would remain zero. So it starts again from the leading singular vectors of the residual
whenever their singular value is above gamma_k. Theorem: docs/theorem.md.
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
from fillrank.solvers.hasi import (
    Lomax,
    Remainder,
    active_violation,
    has_stalled,
    remainder_violation,
)
from fillrank.solvers.soft_impute import soft_impute
from fillrank.solvers.truncated_svd import leading

# Singular values of Z below this share of the largest are rounding.
_RANK_TOLERANCE = 1e-13
# The most components that start at a time, and the accuracy of their first directions.
_SEEDS = 10
_SEED_TOLERANCE = 0.05
# The certificate costs about a sweep. It is computed before the first sweep, then at growing
# intervals.
_FIRST_CHECK, _CHECK_GROWTH = 5, 1.2


class Components(NamedTuple):
    """Z = sum_k d_k alpha_k beta_k^T; a component with d_k = 0 has zeros for vectors.

    ``alpha`` is (r, m) and ``beta`` (r, n), so that a vector is contiguous.
    """

    d: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray


class Penalty(Protocol):
    """The penalty of the components."""

    def weights(self, d: np.ndarray) -> np.ndarray:
        """gamma_k, the derivative of the penalty in d_k."""

    def value(self, d: np.ndarray) -> float:
        """The penalty."""


class Fixed(NamedTuple):
    """sum_k gamma_k d_k with the smallest gamma for the largest d: no other order is smaller."""

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
    """The first ``n_components`` factors as components; further components are empty."""
    components = Components(
        np.zeros(n_components),
        np.zeros((n_components, factors.U.shape[0])),
        np.zeros((n_components, factors.V.shape[0])),
    )
    q = min(n_components, factors.s.size)
    components.d[:q], components.alpha[:q], components.beta[:q] = (
        factors.s[:q],
        factors.U.T[:q],
        factors.V.T[:q],
    )
    return components


def factors_of(components: Components) -> Factors:
    """The singular value decomposition of sum_k d_k alpha_k beta_k^T."""
    full = components.d > 0.0
    Q, T = np.linalg.qr((components.alpha[full] * components.d[full, np.newaxis]).T)
    P, S = np.linalg.qr(components.beta[full].T)
    U, s, Vt = np.linalg.svd(T @ S.T)
    q = int(np.sum(s > _RANK_TOLERANCE * s.max(initial=0.0)))
    return Factors(Q @ U[:, :q], s[:q], P @ Vt[:q].T)


def _unit(z: np.ndarray) -> tuple[float, np.ndarray]:
    """(||z||, z / ||z||), with zeros for the zero vector."""
    norm = float(np.linalg.norm(z))
    return norm, z / norm if norm > 0.0 else z


def sweep(residual: Data, components: Components, gamma: np.ndarray, workers: Workers) -> None:
    """Minimise over (d_k, alpha_k), then (d_k, beta_k), for k = 1, ..., r; all in place.

    With R = E + d_k alpha_k beta_k^T the first problem is (1/2) sum_i c_i z_i^2 - h^T z + gamma_k
    ||z||, c_i = sum_{j in Omega_i} beta_kj^2 and h_i = sum_{j in Omega_i} R_ij beta_kj. The second
    is the same for the transpose.

    A pass over one side of the residual first applies the two changes since the last pass on that
    side: column 0 of ``left`` and ``right`` holds the last change of an alpha, column 1 of a beta.
    """
    m, n = residual.shape
    left, right = np.zeros((m, 2)), np.zeros((n, 2))
    by_row, by_column = Shift(left, right), Shift(right, left)
    d, alpha, beta = components
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
    """What does not change from sweep to sweep.

    ``price`` is the gamma of P2, None for other problems. With ``orthonormalise`` the components
    are replaced after each sweep by the singular value decomposition of Z, which never increases a
    penalty that is concave in d (docs/theorem.md). P2 gains nothing from it. The other problems
    converge much faster with it, because sweeps rotate components slowly.
    """

    data: Data
    penalty: Penalty
    price: float | None
    orthonormalise: bool
    workers: Workers


def _seed(problem: Problem, residual: Data, components: Components, factors: Factors) -> None:
    """Start empty components in the directions that lower the objective most; in place.

    These are singular vectors of the residual without its part along Z's factors. Before
    convergence, those of the residual itself may repeat the factors.
    """
    empty = np.flatnonzero(components.d == 0.0)
    gamma = problem.penalty.weights(components.d)
    empty = empty[np.argsort(gamma[empty], kind="stable")][:_SEEDS]
    if empty.size == 0 or factors.s.size == min(residual.shape):
        return
    remainder = Remainder(residual, factors, problem.workers)
    nothing, rng = np.zeros((residual.shape[1], 0)), np.random.default_rng(0)
    U, s, V = leading(remainder, empty.size, nothing, rng, tolerance=_SEED_TOLERANCE)
    for j in np.flatnonzero(s > gamma[empty[: s.size]]):
        components.alpha[empty[j]], components.beta[empty[j]] = U[:, j], V[:, j]


def _violation(
    problem: Problem, residual: Data, components: Components, factors: Factors, objective: float
) -> float:
    """The certificate.

    For P2, its objective less a lower bound of P1's minimum, as a share of the objective. Otherwise
    the largest violation of R beta_k = gamma_k alpha_k, of R^T alpha_k = gamma_k beta_k and, for
    the remainder M of R, of ||M||_2 <= the gamma of an empty component; all relative to the gammas.
    """
    data, penalty, price, _, workers = problem
    if price is not None:
        P1 = 0.5 * sum_of_squares(residual) + price * float(factors.s.sum())
        gap = P1 * duality_gap(data, factors, price, workers)
        return (objective - P1 + gap) / objective if objective > 0.0 else 0.0
    gamma, full = penalty.weights(components.d), components.d > 0.0
    vectors = Factors(components.alpha[full].T, components.d[full], components.beta[full].T)
    active = active_violation(residual, vectors, gamma[full], workers)
    # gamma of a new component: P3 has only its own, the marginal form one for every dimension.
    new = (
        penalty.largest_weight if isinstance(penalty, Lomax) else gamma[~full].min(initial=math.inf)
    )
    return max(active, remainder_violation(residual, factors, float(new), workers))


def descend(problem: Problem, components: Components, limits: Limits) -> tuple[Components, Fit]:
    """Sweep until the certificate is small enough: (components, fit). Overwrites ``components``."""
    data, penalty, _, orthonormalise, workers = problem
    residual = residuals(data, factors_of(components), workers)
    objectives = [0.5 * sum_of_squares(residual) + penalty.value(components.d)]
    check, last = 0, math.inf
    while True:
        done = len(objectives) - 1
        if done >= check or done >= limits.max_iterations:
            check = max(_FIRST_CHECK, math.ceil(_CHECK_GROWTH * done))
            factors = factors_of(components)
            residual = residuals(
                data, factors, workers
            )  # without the rounding errors of many shifts
            violation = _violation(problem, residual, components, factors, objectives[-1])
            converged = violation <= limits.tolerance
            # F may have stalled while the violation still decreases.
            stalled = has_stalled(objectives) and violation > 0.5 * last
            if converged or stalled or done >= limits.max_iterations:
                reason = _reason(converged, stalled, components, done)
                return components, Fit(factors, tuple(objectives), violation, converged, reason)
            last = violation
            _seed(problem, residual, components, factors)
        sweep(residual, components, penalty.weights(components.d), workers)
        if orthonormalise:
            components = components_of(factors_of(components), components.d.size)
        objectives.append(0.5 * sum_of_squares(residual) + penalty.value(components.d))


def _reason(converged: bool, stalled: bool, components: Components, sweeps: int) -> str:
    if converged:
        return f"the certificate holds to the tolerance after {sweeps} sweeps"
    if not stalled:
        return f"{sweeps} sweeps were not enough; allow more, or a larger tolerance"
    more = "; a larger max_rank may lower it" if (components.d > 0.0).all() else ""
    return f"the objective stands still after {sweeps} sweeps" + more


def relaxed_spectral(
    data: Data,
    gamma: np.ndarray | float,
    limits: Limits,
    workers: Workers,
    start: Factors | None = None,
) -> Fit:
    """Solve P2 (a number for gamma) or P3 (a vector, one gamma for each component).

    The gammas of P3 are assigned in ascending order to the components in descending order of d;
    ``max_rank`` selects the smallest ones. P3 is not convex: the stationary point depends on the
    start.

    Returns
    -------
    Fit
        ``factors`` are the singular value decomposition of Z, ``objectives`` those of the relaxed
        problem, with sum_k gamma_k d_k, at the start and after each sweep. ``violation`` is the
        relative duality gap for P2, and for P3 the largest violation of the conditions for a
        stationary point, relative to gamma.
    """
    price = float(gamma) if np.ndim(gamma) == 0 else None
    most = min(limits.max_rank, *data.shape)
    prices = np.full(most, price) if price is not None else np.sort(gamma)[: limits.max_rank]
    components = components_of(no_factors(data) if start is None else start, prices.size)
    return descend(Problem(data, Fixed(prices), price, price is None, workers), components, limits)[
        1
    ]


def relaxed_marginal(
    data: Data, a: float, b: float, limits: Limits, workers: Workers, start: Factors | None = None
) -> Fit:
    """Minimise with gamma_k ~ Gamma(a, b) integrated out: a sweep with gamma_k = (a + 1) / (b + d_k).

    log(1 + d_k / b) is concave, and its tangent at d_k majorises it, so that the objective never
    increases. The default start is that of HASI: SoftImpute at the penalty a / b.
    """
    if start is None:
        half = limits._replace(max_iterations=max(1, limits.max_iterations // 2))
        start = soft_impute(data, a / b, half, workers).factors
        limits = limits._replace(max_iterations=limits.max_iterations - half.max_iterations)
    components = components_of(start, min(limits.max_rank, *data.shape))
    return descend(Problem(data, Lomax(a, b), None, True, workers), components, limits)[1]
