"""What the spectral solvers share: a solution in factors, and what is known about it."""

from typing import NamedTuple

import numpy as np

from fillrank.kernels.products import product, residual
from fillrank.runtime.workers import Workers
from fillrank.samplers.state import Data
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

    ``violation`` says how far the solution is from optimal, relative to the objective: a duality gap
    where the problem is convex, the worst breach of the fixed-point conditions elsewhere. With
    ``converged`` it is at most the tolerance that was asked for, or the rank limit keeps it open and
    Z is stationary; ``reason`` says why the solver stopped.
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
    """W = P_Omega(X - Z) + Z, the matrix with its holes filled by Z: sparse plus low rank."""

    def __init__(self, sparse: Data, factors: Factors, workers: Workers):
        self.sparse = sparse
        self.factors = factors
        self._workers = workers
        self.shape = sparse.shape

    def beyond(self, old: "Completed", weight: float) -> "Completed":
        """W at Y = Z + weight (Z - Z_old), this one being at Z: its residual is that mixture too."""
        if weight == 0.0:
            return self
        a, b = 1.0 + weight, -weight

        def mixed(x: Entries, y: Entries) -> Entries:
            return x._replace(values=a * x.values + b * y.values)

        (U, s, V), (U0, s0, V0) = self.factors, old.factors
        low_rank = Factors(np.hstack([U, U0]), np.hstack([a * s, b * s0]), np.hstack([V, V0]))
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
        # The kernels are compiled once for each memory order; of slices they would be slow, too.
        return product(entries, np.ascontiguousarray(block), self._workers)
