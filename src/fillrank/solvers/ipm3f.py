r"""iPM3F (Xu, Zhu and Zhang, NIPS 2012): max-margin factorisation that learns its number of features.

Row i has binary features Z_i with the truncated stick-breaking prior of the Indian buffet process,
column j a Gaussian factor V_j, and each row has thresholds that divide the scores Z_i . V_j into
levels:

.. math::

    \nu_k \sim \text{Beta}(\alpha, 1), \quad \pi_k = \prod_{l \le k} \nu_l, \quad
    Z_{ik} \sim \text{Bernoulli}(\pi_k), \quad V_j \sim N(0, \sigma^2 I), \quad
    \theta_{ir} \sim N(\rho_r, \varsigma^2).

Maximum entropy discrimination with q = prod Beta(nu_k; g_k) prod Bernoulli(Z_ik; psi_ik)
prod N(V_j; Lam_j, sigma^2 I) and theta at a point minimises KL(q || prior) plus hinges of the
expected scores psi_i . Lam_j. Up to constants that is

.. math::

    \frac{\|\Lambda\|^2}{2 \sigma^2} &+ \sum_k \text{KL}(\text{Beta}(g_k) \| \text{Beta}(\alpha, 1))
    + \sum_{ik} [\psi_{ik} \log \psi_{ik} + (1 - \psi_{ik}) \log (1 - \psi_{ik})
    - \psi_{ik} e_k - (1 - \psi_{ik}) L_k] \\
    &+ \sum_{ir} \frac{(\theta_{ir} - \rho_r)^2}{2 \varsigma^2}
    + C \sum_{ij \in \Omega} \sum_r \max(0, \ell - T^r_{ij} (\theta_{ir} - \psi_i \cdot \Lambda_j)),

T^r_ij = +1 if r >= y_ij, else -1. With Psi the digamma function, e_k = E log pi_k =
sum_{l<=k} (Psi(g_l1) - Psi(g_l1 + g_l2)), and L_k is a lower bound of E log(1 - pi_k): by Jensen's
inequality with weights q_ky over the first stick y <= k that breaks,

.. math::

    t_y = E \log (1 - \nu_y) \textstyle\prod_{l < y} \nu_l, \qquad
    L_k = \max_q \sum_{y \le k} q_{ky} (t_y - \log q_{ky}) = \log \sum_{y \le k} e^{t_y}.

The four blocks Lam, psi, g and theta are minimised in turn; no step increases the objective.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma, xlogy

from fillrank.kernels.hinge_columns import fit_columns
from fillrank.kernels.hinge_rows import (
    Hinges,
    ThresholdPrior,
    fit_features,
    fit_thresholds,
    hinge_losses,
)
from fillrank.kernels.ordinal import Scorer
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Limits
from fillrank.solvers.margin import MarginFit
from fillrank.table.entries import Entries

# Converged after so many consecutive iterations that lower the objective by less than the
# tolerance.
CALM = 10
# g and q are updated in turn until g changes by less than this share, or so many times. They
# converge slowly, but the next iteration continues from there.
_SMALLEST_STICK_MOVE = 1e-6
_MOST_STICK_ROUNDS = 100
# Updates of features and thresholds of a new row: a fixed number, so that rows do not depend on
# each other.
_NEW_ROW_ROUNDS = 20


class Hyper(NamedTuple):
    """Settings: weight C and margin ell of the hinges, alpha, sigma, sd of thresholds."""

    C: float
    ell: float
    alpha: float
    sigma: float
    threshold_sd: float


class State(NamedTuple):
    """psi (m, K), Lam (n, K), theta (m, L - 1), g (K, 2), and the duals of the entries by column."""

    psi: np.ndarray
    Lam: np.ndarray
    thresholds: np.ndarray
    g: np.ndarray
    duals: np.ndarray


class Sticks(NamedTuple):
    """Functions of g in the objective: e_k, L_k, and the weights q_ky (K, K) that maximise L_k."""

    e: np.ndarray
    L: np.ndarray
    q: np.ndarray


def usual_hyper(C: float) -> Hyper:
    """The authors' settings, with a C chosen by the data."""
    ell = 9.0
    return Hyper(C, ell, alpha=3.0, sigma=1.0, threshold_sd=1.5 * ell)


def threshold_means(n_levels: int, ell: float) -> np.ndarray:
    """rho_r, evenly spaced at 2 ell about 0."""
    end = (n_levels - 2) * ell
    return np.linspace(-end, end, n_levels - 1)


def first_state(
    data: Data, n_levels: int, n_features: int, hyper: Hyper, rng: np.random.Generator
) -> State:
    """Random features and factors; thresholds and sticks at their priors."""
    m, n = data.shape
    return State(
        psi=rng.random((m, n_features)),
        Lam=rng.standard_normal((n, n_features)),
        thresholds=np.tile(threshold_means(n_levels, hyper.ell), (m, 1)),
        g=np.tile([hyper.alpha, 1.0], (n_features, 1)),
        duals=np.zeros(data.n_entries),
    )


def scorer_of(state: State) -> Scorer:
    """What predicts levels from a state."""
    return Scorer(state.psi, state.Lam, state.thresholds)


def effective_features(psi: np.ndarray) -> float:
    """The expected number of features that some row has: K - sum_k prod_i (1 - psi_ik)."""
    return float(psi.shape[1] - np.prod(1.0 - psi, axis=0).sum())


def sticks_of(g: np.ndarray) -> Sticks:
    """e, L and the best q for the Beta(g_k1, g_k2) of the sticks."""
    log_nu = digamma(g[:, 0]) - digamma(g.sum(axis=1))
    log_rest = digamma(g[:, 1]) - digamma(g.sum(axis=1))
    e = np.cumsum(log_nu)
    t = log_rest + e - log_nu
    L = np.logaddexp.accumulate(t)
    # Above the diagonal t_y - L_k may overflow, so exp takes only the lower triangle.
    q = np.exp(np.tril(t - L[:, None]))
    return Sticks(e, L, np.tril(q))


def _hinges(hyper: Hyper) -> Hinges:
    return Hinges(hyper.C, hyper.ell)


def _stick_divergence(g: np.ndarray, alpha: float) -> float:
    """sum_k KL(Beta(g_k1, g_k2) || Beta(alpha, 1))."""
    a, b = g.T
    return float(
        np.sum(
            betaln(alpha, 1.0)
            - betaln(a, b)
            + (a - alpha) * digamma(a)
            + (b - 1.0) * digamma(b)
            + (alpha + 1.0 - a - b) * digamma(a + b)
        )
    )


def objective(state: State, data: Data, hyper: Hyper, workers: Workers) -> float:
    """The objective of the module's docstring."""
    psi, rows = state.psi, data.rows
    sticks = sticks_of(state.g)
    rho = threshold_means(state.thresholds.shape[1] + 1, hyper.ell)
    losses = np.empty(psi.shape[0])
    scorer = scorer_of(state)
    workers.for_rows(
        lambda a, b: hinge_losses(rows, scorer, hyper.ell, losses, a, b), rows.pointers
    )
    features = xlogy(psi, psi) + xlogy(1.0 - psi, 1.0 - psi)
    features -= psi * sticks.e + (1.0 - psi) * sticks.L
    return float(
        np.sum(state.Lam**2) / (2.0 * hyper.sigma**2)
        + _stick_divergence(state.g, hyper.alpha)
        + features.sum()
        + np.sum((state.thresholds - rho) ** 2) / (2.0 * hyper.threshold_sd**2)
        + hyper.C * losses.sum()
    )


def update_factors(state: State, data: Data, hyper: Hyper, workers: Workers) -> State:
    """Lam_j of each column: a linear support vector machine, to the accuracy of its kernel."""
    state = state._replace(Lam=state.Lam.copy(), duals=state.duals.copy())
    scorer, hinges, variance = scorer_of(state), _hinges(hyper), hyper.sigma**2

    def fit(start: int, stop: int) -> None:
        fit_columns(data.columns, scorer, hinges, variance, state.duals, start, stop)

    workers.for_rows(fit, data.columns.pointers)
    return state


def update_features(state: State, rows: Entries, hyper: Hyper, workers: Workers) -> State:
    """psi_ik of each row, one k at a time, each exactly."""
    state = state._replace(psi=state.psi.copy())
    scorer, hinges = scorer_of(state), _hinges(hyper)
    sticks = sticks_of(state.g)
    targets = sticks.e - sticks.L
    workers.for_rows(lambda a, b: fit_features(rows, scorer, hinges, targets, a, b), rows.pointers)
    return state


def update_sticks(state: State, hyper: Hyper) -> State:
    """g and q in turn, each exact given the other: counts of features, and of where sticks broke."""
    n1 = state.psi.sum(axis=0)
    n0 = state.psi.shape[0] - n1
    from_k = np.cumsum(n1[::-1])[::-1]
    g = state.g
    for _ in range(_MOST_STICK_ROUNDS):
        old, broken = g, n0 @ sticks_of(g).q
        beyond_k = np.cumsum(broken[::-1])[::-1] - broken
        g = np.stack([hyper.alpha + from_k + beyond_k, 1.0 + broken], axis=1)
        if np.max(np.abs(g / old - 1.0)) < _SMALLEST_STICK_MOVE:
            break
    return state._replace(g=g)


def update_thresholds(state: State, rows: Entries, hyper: Hyper, workers: Workers) -> State:
    """theta_ir of each row, exactly."""
    state = state._replace(thresholds=state.thresholds.copy())
    scorer, hinges = scorer_of(state), _hinges(hyper)
    rho = threshold_means(state.thresholds.shape[1] + 1, hyper.ell)
    prior = ThresholdPrior(rho, hyper.threshold_sd**2)
    workers.for_rows(lambda a, b: fit_thresholds(rows, scorer, hinges, prior, a, b), rows.pointers)
    return state


def iteration(state: State, data: Data, hyper: Hyper, workers: Workers) -> State:
    """All four blocks, in the authors' order."""
    state = update_factors(state, data, hyper, workers)
    state = update_features(state, data.rows, hyper, workers)
    state = update_sticks(state, hyper)
    return update_thresholds(state, data.rows, hyper, workers)


def _check_convergence(objectives: list[float], limits: Limits) -> tuple[float, bool, str] | None:
    """(violation, converged, reason) if the solver stops. The first objective is that of the start."""
    decreases = -np.diff(objectives) / np.abs(objectives[:-1])
    violation = float(decreases[-CALM:].max())
    if decreases.size >= CALM and violation < limits.tolerance:
        reason = f"{CALM} iterations in a row lowered the objective by a share below the tolerance"
        return violation, True, reason
    if decreases.size >= limits.max_iterations:
        return violation, False, "max_iterations was reached before the objective settled"
    return None


def ipm3f(
    data: Data, hyper: Hyper, limits: Limits, workers: Workers, start: State
) -> tuple[MarginFit, State]:
    """Minimise the objective from a start; a local minimum over each block.

    Parameters
    ----------
    data : Data
        With numbers of levels, 1 to L, as values.
    limits : Limits
        The fit has converged when ``CALM`` consecutive iterations have each lowered the objective
        by a share below ``tolerance``. The number of features is that of the start.
    start : State
        From ``first_state``, or the solution at a similar C.

    Returns
    -------
    fit : MarginFit
        ``violation`` is the largest relative decrease of the objective in the last ``CALM``
        iterations.
    state : State
    """
    state = start
    objectives = [objective(state, data, hyper, workers)]
    stop = None
    while stop is None:
        state = iteration(state, data, hyper, workers)
        objectives.append(objective(state, data, hyper, workers))
        stop = _check_convergence(objectives, limits)
    return MarginFit(scorer_of(state), tuple(objectives[1:]), *stop), state


def fit_rows(entries: Entries, state: State, hyper: Hyper, workers: Workers) -> Scorer:
    """A scorer for new rows, whose entries are in the columns of a solution: Lam and g are fixed.

    A row without entries has the most probable features and thresholds under the prior.
    """
    m = entries.pointers.size - 1
    sticks = sticks_of(state.g)
    rho = threshold_means(state.thresholds.shape[1] + 1, hyper.ell)
    new = state._replace(
        psi=np.tile(1.0 / (1.0 + np.exp(sticks.L - sticks.e)), (m, 1)),
        thresholds=np.tile(rho, (m, 1)),
    )
    for _ in range(_NEW_ROW_ROUNDS):
        new = update_features(new, entries, hyper, workers)
        new = update_thresholds(new, entries, hyper, workers)
    return scorer_of(new)
