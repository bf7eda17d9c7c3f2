r"""Fast maximum-margin matrix factorisation (Rennie and Srebro 2005), for ratings on L ordered levels.

    J(U, V, theta) = lambda/2 (||U||_F^2 + ||V||_F^2)
                     + sum over Omega, r < L of h(T^r_ij (theta_ir - u_i . v_j)),

with the smooth hinge h and T^r_ij = +1 if r >= y_ij, else -1 (``kernels/ordinal.py``). The
thresholds theta_i1, ..., theta_i,L-1 of row i have no penalty; h is flat beyond the margin, so they
are finite even in a row that has only one level.

At the best U and V the penalty is lambda ||X||_* of the scores X = U V^T, and the problem is convex
in (X, theta). With X = P diag(s) Q^T and G, minus the gradient of the loss in X, a stationary J is
at its global minimum if the part of G that is orthogonal to P and Q has no singular value above
lambda. Otherwise it is a saddle. L-BFGS (scipy's) stops there if components of U and V have become
zero, as at a larger penalty; new components from that part of G lower J further.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds

from fillrank.kernels.ordinal import Scorer, column_gradient, row_gradients, slopes
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Limits
from fillrank.solvers.margin import MarginFit, with_new_components
from fillrank.table.entries import Entries

_FIRST_SD = 0.1
# A new row is a small convex problem, which is solved accurately.
_NEW_ROW = Limits(max_rank=1, max_iterations=500, tolerance=1e-6)


# The path of penalties: shares of the largest penalty, in powers of ten, and the number of
# penalties. The steps are an eighth of a decade, as in the papers of M3F and iPM3F.
_DECADES, _POINTS = (-0.25, -2.25), 17
# Accuracy of the thresholds at scores of 0, which the largest penalty needs.
_THRESHOLDS = Limits(max_rank=1, max_iterations=200, tolerance=1e-4)


def _first_thresholds(n_rows: int, n_levels: int) -> np.ndarray:
    """r - L/2: ordered, one margin apart, about 0."""
    return np.tile(np.arange(1, n_levels) - 0.5 * n_levels, (n_rows, 1))


def first_scorer(
    shape: tuple[int, int], n_levels: int, rank: int, rng: np.random.Generator
) -> Scorer:
    """The start without a similar solution: small random factors, thresholds one margin apart."""
    U, V = (_FIRST_SD * rng.standard_normal((size, rank)) for size in shape)
    return Scorer(U, V, _first_thresholds(shape[0], n_levels))


class _Problem(Protocol):
    """A smooth function of one vector, which contains the free parameters of a scorer."""

    def scorer(self, x: np.ndarray) -> Scorer: ...

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]: ...


class _Factorisation(NamedTuple):
    """J of U, V and theta together."""

    data: Data
    penalty: float
    workers: Workers
    shapes: tuple[tuple[int, int], ...]

    def scorer(self, x: np.ndarray) -> Scorer:
        return Scorer(*_split(x, self.shapes))

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        scorer = self.scorer(x)
        U, V, _ = scorer
        rows = row_gradients(self.data.rows, scorer, self.workers)
        d_right = column_gradient(self.data.columns, scorer, self.workers)
        value = rows.losses.sum() + 0.5 * self.penalty * (np.vdot(U, U) + np.vdot(V, V))
        return float(value), _joined(
            rows.left + self.penalty * U, d_right + self.penalty * V, rows.thresholds
        )


class _Rows(NamedTuple):
    """J of U and theta, with V fixed: convex, and a sum over rows."""

    entries: Entries
    right: np.ndarray
    penalty: float
    workers: Workers
    shapes: tuple[tuple[int, int], ...]

    def scorer(self, x: np.ndarray) -> Scorer:
        U, thresholds = _split(x, self.shapes)
        return Scorer(U, self.right, thresholds)

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        scorer = self.scorer(x)
        U = scorer.left
        rows = row_gradients(self.entries, scorer, self.workers)
        value = rows.losses.sum() + 0.5 * self.penalty * np.vdot(U, U)
        return float(value), _joined(rows.left + self.penalty * U, rows.thresholds)


def _joined(*blocks: np.ndarray) -> np.ndarray:
    return np.concatenate([block.ravel() for block in blocks])


def _split(x: np.ndarray, shapes: tuple[tuple[int, int], ...]) -> list[np.ndarray]:
    ends = np.cumsum([a * b for a, b in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(x, ends), shapes, strict=True)]


def _steepest(entries: Entries, n_levels: int) -> float:
    """The norm of the gradient in theta if all entries of a row shifted its thresholds the same way.

    The unit of ``violation``: it grows with the data as gradients do, and does not depend on the
    start.
    """
    n = np.diff(entries.pointers).astype(np.float64)
    return float(np.sqrt((n_levels - 1) * (n @ n))) or 1.0


class _Descent:
    """One run of L-BFGS. It stores the norm of the last gradient, which scipy does not report."""

    def __init__(self, problem: _Problem, unit: float, tolerance: float):
        self.problem, self.unit, self.tolerance = problem, unit, tolerance
        self.objectives: list[float] = []
        self.violation = np.inf

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.problem.value_and_gradient(x)
        self.violation = float(np.linalg.norm(gradient)) / self.unit
        return value, gradient

    def after_iteration(self, intermediate_result: Any) -> None:
        # The line search ends at its last evaluation, so the last gradient belongs to this iterate.
        self.objectives.append(float(intermediate_result.fun))
        if self.violation <= self.tolerance:
            raise StopIteration


class _Found(NamedTuple):
    """Where a descent ended, and the objective after each iteration."""

    x: np.ndarray
    objectives: list[float]
    violation: float


def _minimise(problem: _Problem, x: np.ndarray, unit: float, limits: Limits) -> _Found:
    descent = _Descent(problem, unit, limits.tolerance)
    end = minimize(
        descent.value_and_gradient,
        x,
        jac=True,
        method="L-BFGS-B",
        callback=descent.after_iteration,
        options={
            "maxiter": limits.max_iterations,
            "maxfun": np.iinfo(np.int32).max,
            "ftol": 0.0,
            "gtol": 0.0,
        },
    )
    # A start that is exactly stationary ends before the first iteration.
    objectives = descent.objectives or [float(end.fun)]
    return _Found(end.x, objectives, float(np.linalg.norm(end.jac)) / unit)


def _reason(found: _Found, saddle: bool, limits: Limits) -> str:
    n = len(found.objectives)
    iterations = f"{n} iteration" + "s" * (n != 1)
    if found.violation <= limits.tolerance and not saddle:
        return f"the relative gradient is below {limits.tolerance:.3g} after {iterations}"
    if n < limits.max_iterations:
        return (
            f"rounding leaves nothing to gain after {iterations}, at a relative gradient of "
            f"{found.violation:.2g}"
        )
    help_wanted = "where further components would help"
    where = help_wanted if saddle else f"at a relative gradient of {found.violation:.2g}"
    return f"the limit of {iterations} was reached {where}"


def _is_empty(entries: Entries) -> np.ndarray:
    return np.diff(entries.pointers) == 0


def _tidied(scorer: Scorer, empty: np.ndarray) -> Scorer:
    """Thresholds in order; rows without entries take the mean of the others, if there are any.

    The order of two thresholds is not determined if a row has no level between them. Exchanging
    theta_r > theta_r+1 changes no prediction, and only the losses of the level between them, whose
    margins both grow.
    """
    thresholds = np.sort(scorer.thresholds, axis=1)
    if not empty.all():
        thresholds[empty] = thresholds[~empty].mean(axis=0)
    return scorer._replace(thresholds=thresholds)


def m3f(
    data: Data, n_levels: int, penalty: float, limits: Limits, workers: Workers, start: Scorer
) -> MarginFit:
    """Minimise J over factors of the start's rank, and thresholds.

    Parameters
    ----------
    data : Data
        Numbers of levels, 1 to ``n_levels``.
    penalty : float
        lambda, above 0.
    limits : Limits
        ``tolerance`` bounds the norm of J's gradient, relative to the norm that the gradient in
        theta has if all entries of a row shift its thresholds the same way, sqrt((L - 1) sum_i
        n_i^2). The rank is that of the start. If the rank is not a constraint, a converged fit is
        not a saddle.
    start : Scorer
        ``first_scorer``, or the solution at a similar penalty.

    Returns
    -------
    MarginFit
        Its thresholds ascend in each row. Rows and columns without entries have factors 0, such
        rows the mean thresholds of the others.
    """
    no_rows, no_columns = _is_empty(data.rows), _is_empty(data.columns)
    # Where only the penalty depends on a factor, the minimum is 0, and L-BFGS does not change a 0.
    U = np.where(no_rows[:, None], 0.0, start.left)
    V = np.where(no_columns[:, None], 0.0, start.right)
    shapes = (U.shape, V.shape, start.thresholds.shape)
    problem = _Factorisation(data, penalty, workers, shapes)
    unit = _steepest(data.rows, n_levels)
    found, grown = _descend(problem, Scorer(U, V, start.thresholds), unit, limits)
    converged = found.violation <= limits.tolerance and grown is None
    scorer = _tidied(problem.scorer(found.x), no_rows)
    reason = _reason(found, grown is not None, limits)
    return MarginFit(scorer, tuple(found.objectives), found.violation, converged, reason)


def _descend(
    problem: _Factorisation, start: Scorer, unit: float, limits: Limits
) -> tuple[_Found, Scorer | None]:
    """Descend from saddle to saddle: (result, where to continue if the iterations end at a saddle)."""
    objectives: list[float] = []
    grown: Scorer | None = start
    while grown is not None and len(objectives) < limits.max_iterations:
        left = limits._replace(max_iterations=limits.max_iterations - len(objectives))
        found = _minimise(problem, _joined(*grown), unit, left)
        objectives += found.objectives
        stationary = found.violation <= limits.tolerance
        grown = None
        if stationary:
            grown = with_new_components(
                problem.data, problem.penalty, problem.workers, problem.scorer(found.x)
            )
    return found._replace(objectives=objectives), grown


def best_thresholds(
    entries: Entries, n_levels: int, limits: Limits, workers: Workers
) -> np.ndarray:
    """The thresholds that minimise J where all scores are 0."""
    n_columns = int(entries.indices.max(initial=0)) + 1
    return _together(entries, np.zeros((n_columns, 1)), n_levels, 1.0, limits, workers).thresholds


def _together(
    entries: Entries,
    right: np.ndarray,
    n_levels: int,
    penalty: float,
    limits: Limits,
    workers: Workers,
) -> Scorer:
    """Factors and thresholds of all rows, given V, by one descent."""
    n_rows = entries.pointers.size - 1
    U, thresholds = np.zeros((n_rows, right.shape[1])), _first_thresholds(n_rows, n_levels)
    shapes = (U.shape, thresholds.shape)
    problem = _Rows(entries, right, penalty, workers, shapes)
    unit = _steepest(entries, n_levels)
    found = _minimise(problem, _joined(U, thresholds), unit, limits)
    return _tidied(problem.scorer(found.x), _is_empty(entries))


def fit_rows(entries: Entries, fitted: Scorer, penalty: float, workers: Workers) -> Scorer:
    """Factors and thresholds of new rows, given V: the minimum of their terms of J.

    Each row is solved separately, because it must not depend on the other new rows. Rows without
    entries have the factor 0 and the mean thresholds of the fitted rows.
    """
    V, n_levels = fitted.right, fitted.thresholds.shape[1] + 1
    n_rows = entries.pointers.size - 1
    U = np.zeros((n_rows, V.shape[1]))
    thresholds = np.tile(fitted.thresholds.mean(axis=0), (n_rows, 1))
    for i in np.flatnonzero(~_is_empty(entries)):
        part = slice(entries.pointers[i], entries.pointers[i + 1])
        values = entries.values[part]
        row = Entries(np.array([0, values.size]), entries.indices[part], values)
        alone = _together(row, V, n_levels, penalty, _NEW_ROW, workers)
        U[i], thresholds[i] = alone.left[0], alone.thresholds[0]
    return Scorer(U, V, thresholds)


def largest_penalty(data: Data, n_levels: int, workers: Workers) -> float:
    """||G||_2 at scores of 0 and the best thresholds, which are optimal from this penalty on."""
    m, n = data.shape
    thresholds = best_thresholds(data.rows, n_levels, _THRESHOLDS, workers)
    G = slopes(data.rows, Scorer(np.zeros((m, 1)), np.zeros((n, 1)), thresholds), workers)
    size = float(np.linalg.norm(G.values))
    if min(m, n) < 2 or size < 1e-9:  # svds supports neither
        return size or 1.0
    matrix = csr_matrix((G.values, G.indices, G.pointers), shape=(m, n))
    # A fixed start gives the same bits every time; G may map a vector of ones to zero.
    first = np.random.default_rng(0).standard_normal(min(m, n))
    return float(svds(matrix, k=1, v0=first, return_singular_vectors=False)[0])


def penalty_path(data: Data, n_levels: int, workers: Workers) -> np.ndarray:
    """Penalties to try, in descending order."""
    return largest_penalty(data, n_levels, workers) * np.logspace(*_DECADES, _POINTS)
