"""A path of penalties, from the largest that leaves anything down: what each brings on held-out entries.

Each solution is the start of the next, so that a whole path costs little more than its last point.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from fillrank.kernels.products import residual
from fillrank.runtime.workers import Workers
from fillrank.samplers.state import Data
from fillrank.solvers.fit import Factors, Fit
from fillrank.table.entries import Entries

# The grid: from 10^-0.1 to 10^-3 of the largest penalty (the grid of HASI's authors).
_DECADES = (-0.1, -3.0)
_POINTS = 20
# The path ends early when the validation error has risen this many times in a row.
RISES = 3

Solve = Callable[[float, Factors | None], Iterator[tuple[float, Fit]]]


class PathPoint(NamedTuple):
    """One point of a path: its setting, and what came of it."""

    penalty: float
    beta: float
    rank: int
    training_error: float
    validation_error: float
    n_iterations: int
    converged: bool


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


def walk(
    train: Data, held_out: Entries, penalties: np.ndarray, solve: Solve, workers: Workers
) -> Iterator[tuple[PathPoint, Fit]]:
    """Go down the penalties until the validation error keeps rising.

    ``solve(penalty, start)`` yields (beta, fit) once per penalty, or once for each beta; the first
    fit of a penalty is the start of the next penalty.
    """
    start: Factors | None = None
    best, rises = math.inf, 0
    for penalty in penalties:
        here = math.inf
        for number, (beta, fit) in enumerate(solve(float(penalty), start)):
            if number == 0:
                start = fit.factors
            error = root_mean_square(held_out, fit.factors, workers)
            here = min(here, error)
            yield (
                PathPoint(
                    float(penalty),
                    beta,
                    fit.factors.s.size,
                    root_mean_square(train.rows, fit.factors, workers),
                    error,
                    len(fit.objectives),
                    fit.converged,
                ),
                fit,
            )
        rises = rises + 1 if here > best else 0
        best = min(best, here)
        if rises == RISES:
            return
