"""The search for a penalty and a beta on held-out entries, for methods whose penalty has a beta.

A full grid would need a fit for each penalty and beta, most of them far into overfitting, where
fits are slowest. Less shrinkage, by a smaller penalty or by a smaller beta, first lowers and then
raises the error on held-out entries. So the search goes from more to less shrinkage and stops where
the error rises, with rough fits, and only the best few are repeated to the full tolerance.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from fillrank.solvers.fit import RISES, Errors, Factors, Fit, Limits, PathPoint, path_point

# The limits of rough fits: they need only rank settings.
_ROUGH_TOLERANCE, _ROUGH_ITERATIONS = 1e-3, 30
# A beta, and all smaller ones, are not tried any more after this many penalties in a row at which it
# was worse than the next larger beta.
_FAILURES = 2
# The path ends at once where the error is this many times the smallest.
_CLEARLY_WORSE = 1.05
# So many of the best rough fits are repeated at most.
_REFITS = 3

Solve = Callable[[float, float, Factors | None], Fit]


class Found(NamedTuple):
    """The chosen point with its fit, and all points that were tried, in falling order of penalties."""

    point: PathPoint
    fit: Fit
    tried: list[PathPoint]


def rough_limits(limits: Limits) -> Limits:
    """Limits for fits that are only compared.

    Examples
    --------
    >>> rough_limits(Limits(max_rank=5, max_iterations=100, tolerance=1e-5))
    Limits(max_rank=5, max_iterations=30, tolerance=0.001)
    """
    return limits._replace(
        max_iterations=min(limits.max_iterations, _ROUGH_ITERATIONS),
        tolerance=max(limits.tolerance, _ROUGH_TOLERANCE),
    )


def walk_betas(
    penalties: np.ndarray, solve: Solve, betas: Callable[[Fit], list[float]], errors: Errors
) -> Iterator[tuple[PathPoint, Fit]]:
    """Solve for descending penalties, and at each for descending betas, while the error falls.

    ``solve(penalty, beta, start)`` solves one setting. At each penalty beta = inf is the first; its
    fit starts at that of the penalty before, and the fits of ``betas(first)`` start at it. They do
    not start at one another: objectives with a beta are not convex, and that way leads to larger
    minima.
    """
    start: Factors | None = None
    failures: dict[int, int] = {}
    most: int | None = None
    best, rises = math.inf, 0
    for penalty in map(float, penalties):
        first = solve(penalty, math.inf, start)
        start = first.factors
        point = path_point(penalty, math.inf, first, errors)
        yield point, first
        here = point.validation_error
        for number, beta in enumerate(betas(first)[:most]):
            fit = solve(penalty, beta, start)
            point = path_point(penalty, beta, fit, errors)
            yield point, fit
            if point.validation_error > here:
                failures[number] = failures.get(number, 0) + 1
                if failures[number] == _FAILURES:
                    most = number
                break
            failures[number] = 0
            here = point.validation_error
        rises = rises + 1 if here > best else 0
        if rises == RISES or here > _CLEARLY_WORSE * best:
            return
        best = min(best, here)


def refit_best(points: Iterable[tuple[PathPoint, Fit]], refit: Solve, errors: Errors) -> Found:
    """Repeat the best rough fits with ``refit``, and choose the best of those.

    It ends when no rough fit that is left has a smaller error, and after three of them.
    """
    tried: list[PathPoint] = []
    leaders: list[tuple[PathPoint, Fit]] = []
    for rough in points:
        tried.append(rough[0])
        leaders = sorted([*leaders, rough], key=lambda at: at[0].validation_error)[:_REFITS]
    best: tuple[PathPoint, Fit] | None = None
    for rough_point, start in leaders:
        if best is not None and rough_point.validation_error >= best[0].validation_error:
            break
        penalty, beta = rough_point.penalty, rough_point.beta
        fit = refit(penalty, beta, start.factors)
        point = path_point(penalty, beta, fit, errors)
        point = point._replace(n_iterations=rough_point.n_iterations + point.n_iterations)
        tried[tried.index(rough_point)] = point
        if best is None or point.validation_error < best[0].validation_error:
            best = point, fit
    assert best is not None
    return Found(*best, tried)
