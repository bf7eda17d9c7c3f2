"""What the spectral solvers share: factors, fits, completed matrices, and paths of penalties.

A path goes from the largest useful penalty downwards and measures the error on held-out entries.
Each solution is the start of the next, so that a path costs little more than its last point.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from fillrank.kernels.products import product, residual
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.table.entries import Entries


class Factors(NamedTuple):
    """Z = U diag(s) V^T with orthonormal columns in U (m, q) and V (n, q), s descending, positive."""

    U: np.ndarray
    s: np.ndarray
    V: np.ndarray


class Limits(NamedTuple):
    """When a solver stops: rank, iterations, and how small its certificate has to be."""

    max_rank: int
    max_iterations: int
    tolerance: float


class Fit(NamedTuple):
    """A solution with its history and its certificate.

    ``violation`` measures how far the solution is from optimal, relative to the objective: the
    duality gap if the problem is convex, otherwise the largest violation of the conditions for a
    stationary point. With ``converged`` it is at most the tolerance, or the rank limit prevents
    that and Z is stationary; ``reason`` is why the solver stopped.
    """

    factors: Factors
    objectives: tuple[float, ...]
    violation: float
    converged: bool
    reason: str


def no_factors(data: Data) -> Factors:
    """Z = 0."""
    m, n = data.shape
    return Factors(np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0)))


def extrapolate(new: Factors, old: Factors, weight: float) -> Factors:
    """Z + weight (Z - Z_old) as a product of three matrices, without orthonormal columns."""
    (U, s, V), (U0, s0, V0) = new, old
    scales = np.hstack([(1.0 + weight) * s, -weight * s0])
    return Factors(np.hstack([U, U0]), scales, np.hstack([V, V0]))


def residuals(data: Data, factors: Factors, workers: Workers) -> Data:
    """P_Omega(X - Z), by row and by column."""
    left = np.ascontiguousarray(factors.U * factors.s)
    right = np.ascontiguousarray(factors.V)
    return Data(
        residual(data.rows, left, right, workers),
        residual(data.columns, right, left, workers),
    )


def sum_of_squares(data: Data) -> float:
    """The sum of the squared entries."""
    values = data.rows.values
    return float(values @ values)


class Completed:
    """W = P_Omega(X - Z) + Z, the matrix with missing cells filled in by Z: sparse plus low rank."""

    def __init__(self, sparse: Data, factors: Factors, workers: Workers):
        self.sparse = sparse
        self.factors = factors
        self._workers = workers
        self.shape = sparse.shape

    def beyond(self, old: "Completed", weight: float) -> "Completed":
        """W at Y = Z + weight (Z - Z_old): its residual is the same combination of both residuals."""
        if weight == 0.0:
            return self
        a, b = 1.0 + weight, -weight

        def mixed(x: Entries, y: Entries) -> Entries:
            return x._replace(values=a * x.values + b * y.values)

        low_rank = extrapolate(self.factors, old.factors, weight)
        return Completed(Data(*map(mixed, self.sparse, old.sparse)), low_rank, self._workers)

    def times(self, block: np.ndarray) -> np.ndarray:
        """W B."""
        U, s, V = self.factors
        return self._sparse_times(self.sparse.rows, block) + (U * s) @ (V.T @ block)

    def transposed_times(self, block: np.ndarray) -> np.ndarray:
        """W^T B."""
        U, s, V = self.factors
        return self._sparse_times(self.sparse.columns, block) + (V * s) @ (U.T @ block)

    def _sparse_times(self, entries: Entries, block: np.ndarray) -> np.ndarray:
        # Kernels are compiled for each memory order, and would be slow on slices.
        return product(entries, np.ascontiguousarray(block), self._workers)


# The grid: from 10^-0.1 to 10^-3 of the largest penalty (the grid of HASI's authors).
_DECADES = (-0.1, -3.0)
_POINTS = 20
# The path ends early when the validation error has risen this many times in a row.
RISES = 3

Solve = Callable[[float, Factors | None], Iterator[tuple[float, Fit]]]
# The errors of a fit on the training and on the held-out entries.
Errors = Callable[[Fit], tuple[float, float]]


class PathPoint(NamedTuple):
    """One point of a path: its settings and results."""

    penalty: float
    beta: float
    rank: int
    training_error: float
    validation_error: float
    n_iterations: int
    converged: bool


def path_point(penalty: float, beta: float, fit: Fit, errors: Errors) -> PathPoint:
    """The point of a fit."""
    rank, n_iterations = fit.factors.s.size, len(fit.objectives)
    return PathPoint(penalty, beta, rank, *errors(fit), n_iterations, fit.converged)


def penalty_grid(largest: float) -> np.ndarray:
    """Penalties in falling order.

    Examples
    --------
    >>> grid = penalty_grid(100.0)
    >>> len(grid), round(float(grid[-1]), 6)
    (20, 0.1)
    """
    return largest * np.logspace(*_DECADES, _POINTS)


def root_mean_square(entries: Entries, factors: Factors, workers: Workers) -> float:
    """The error of Z on the entries."""
    e = residual(entries, factors.U * factors.s, factors.V, workers).values
    return math.sqrt(float(e @ e) / e.size)


def walk(penalties: np.ndarray, solve: Solve, errors: Errors) -> Iterator[tuple[PathPoint, Fit]]:
    """Solve for descending penalties until the validation error rises repeatedly.

    ``solve(penalty, start)`` yields (beta, fit): one for each penalty, or one for each beta. The
    first fit of a penalty is the start for the next penalty.
    """
    start: Factors | None = None
    best, rises = math.inf, 0
    for penalty in penalties:
        here = math.inf
        for number, (beta, fit) in enumerate(solve(float(penalty), start)):
            if number == 0:
                start = fit.factors
            point = path_point(float(penalty), beta, fit, errors)
            here = min(here, point.validation_error)
            yield point, fit
        rises = rises + 1 if here > best else 0
        best = min(best, here)
        if rises == RISES:
            return
