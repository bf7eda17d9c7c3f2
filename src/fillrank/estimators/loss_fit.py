"""SoftImpute with another loss than squares: from a table to its solution and what the fit reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import logit, ndtri

from fillrank.errors import InputError, Setting
from fillrank.estimators.spectral import (
    best_on_path,
    check_penalty,
    effect_options,
    hold_out,
    signal_of,
)
from fillrank.posterior.kinds import KindPosterior
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.posterior.protocol import Posterior
from fillrank.posterior.record import LossName, Record
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Factors, Fit, Limits, PathPoint, penalty_grid, walk
from fillrank.solvers.loss_effects import loss_effects, offsets_of
from fillrank.solvers.losses import Absolute, Huber, Logistic, Loss, Ordered
from fillrank.solvers.soft_impute_absolute import largest_absolute_penalty, soft_impute_absolute
from fillrank.solvers.soft_impute_losses import (
    LossData,
    LossFit,
    largest_loss_penalty,
    signals,
    soft_impute_loss,
)
from fillrank.table.entries import Entries
from fillrank.table.latent import FAR, MOST_LEVELS, code_ratings, code_two_levels
from fillrank.table.observations import Observations
from fillrank.table.units import Units, location_and_scale

# The standard deviation of normal values whose median absolute deviation is 1.
_NORMAL_DEVIATION = 1.4826
# Added to the frequencies of levels.
_PSEUDOCOUNT = 0.5
# The noise by which new rows are folded in: a t distribution that is close to that of Laplace, and the
# mean of its absolute value.
_T_DEGREES, _T_MEAN = 3.0, 2.0 * math.sqrt(3.0) / math.pi
# Iterations of the primal-dual method for one of `max_iterations`: they are slower to converge. On the
# path, where solutions are only compared, there is one.
_ITERATIONS_OF_ABSOLUTE = 10


class LossSettings(NamedTuple):
    """The settings of a fit, checked except for the penalty."""

    likelihood: LossName
    penalty: float | Literal["auto"]
    effects: Any
    value_range: tuple[float, float] | None
    limits: Limits
    seed: int
    progress: bool
    workers: Workers


class _Coding(NamedTuple):
    """How values become numbers for a loss: standard units, or the number of their level."""

    location: float
    scale: float
    levels: np.ndarray

    @property
    def has_levels(self) -> bool:
        """Whether values are levels."""
        return self.levels.size > 0

    def encode(self, entries: Entries) -> Entries:
        """The entries as numbers."""
        if self.has_levels:
            numbers = np.searchsorted(self.levels, entries.values).astype(np.float64)
        else:
            numbers = (entries.values - self.location) / self.scale
        return entries._replace(values=numbers)


class _Problem(NamedTuple):
    """Entries as numbers, the loss with its first parameters, and the effects of rows and columns."""

    data: LossData
    loss: Loss
    effects: tuple[np.ndarray, np.ndarray]


class _Solver(NamedTuple):
    """What the fits of a table share."""

    settings: LossSettings
    coding: _Coding

    def problem(self, observations: Observations) -> _Problem:
        """The problem of some entries, with their effects."""
        rows, columns = map(self.coding.encode, (observations.by_row(), observations.by_column()))
        data, effects = Data(rows, columns), self.settings.effects
        options, workers = effect_options(effects), self.settings.workers
        loss, intercept = self._first_loss(rows.values, effects is not None)
        found, loss = loss_effects(data, loss, intercept, options, workers)
        offsets = offsets_of(rows, found)
        if self.coding.has_levels:
            return _Problem(LossData.of(data, offsets), loss, found)
        table = LossData.of(data, np.zeros_like(offsets))
        table = table._replace(data=table.sparse(rows.values - offsets))
        return _Problem(table, Absolute(), found)

    def _first_loss(self, x: np.ndarray, centred: bool) -> tuple[Loss, float]:
        """The loss at the start, and the intercept."""
        if not self.coding.has_levels:
            return Huber(), 0.0
        counts = np.bincount(x.astype(np.int64), minlength=self.coding.levels.size) + _PSEUDOCOUNT
        shares = np.cumsum(counts)[:-1] / counts.sum()
        if self.settings.likelihood == "ordered":
            return Ordered(ndtri(shares)), 0.0
        return Logistic(), float(logit(1.0 - shares[0])) if centred else 0.0

    def largest_penalty(self, problem: _Problem) -> float:
        """From this penalty on, Z = 0 is optimal."""
        workers = self.settings.workers
        if self.coding.has_levels:
            return largest_loss_penalty(problem.data, problem.loss, workers)
        return largest_absolute_penalty(problem.data.data, workers)

    def solve(
        self, problem: _Problem, penalty: float, limits: Limits, start: Factors | None
    ) -> LossFit:
        """The solution for a penalty."""
        data, loss, workers = problem.data, problem.loss, self.settings.workers
        if self.coding.has_levels:
            return soft_impute_loss(data, loss, penalty, limits, workers, start)
        return LossFit(soft_impute_absolute(data, penalty, limits, workers, start), loss)

    def mean_loss(
        self, observations: Observations, effects: tuple[np.ndarray, np.ndarray], fit: LossFit
    ) -> float:
        """The mean loss of entries, which may be held out."""
        entries, workers = self.coding.encode(observations.by_row()), self.settings.workers
        z = signals(entries, offsets_of(entries, effects), fit.fit.factors, workers)
        return float(fit.loss.evaluate(entries.values, z, workers).values.mean())

    def choose(self, observations: Observations) -> tuple[float, Factors | None, list[PathPoint]]:
        """The penalty, factors to start from, and what was tried: as given, or on held-out entries."""
        if self.settings.penalty != "auto":
            return check_penalty(self.settings.penalty), None, []
        train, held_out = hold_out(observations, self.settings.seed)
        problem = self.problem(train)
        latest: list[LossFit] = []

        def solve(penalty: float, start: Factors | None) -> Iterator[tuple[float, Fit]]:
            # The parameters of the loss start where they ended for the last penalty, as the factors do.
            begin = problem._replace(loss=latest[-1].loss) if latest else problem
            latest[:] = [self.solve(begin, penalty, self.settings.limits, start)]
            yield math.inf, latest[-1].fit

        def errors(_: Fit) -> tuple[float, float]:
            training, validation = (
                self.mean_loss(part, problem.effects, latest[-1]) for part in (train, held_out)
            )
            return training, validation

        penalties = penalty_grid(self.largest_penalty(problem))
        points = walk(penalties, solve, errors)
        best, fit, tried = best_on_path(points, penalties, self.settings.progress)
        scale = self.coding.scale
        path = [
            point._replace(
                training_error=scale * point.training_error,
                validation_error=scale * point.validation_error,
            )
            for point in tried
        ]
        return best.penalty, fit.factors, path


def fit_loss(observations: Observations, settings: LossSettings) -> tuple[Posterior, Record]:
    """The solution of a table, and what the fit reports.

    Losses of levels have no unit, and neither has the penalty of absolute errors, which are
    proportional to the unit of Z.
    """
    coding = _coding(observations, settings)
    solver = _Solver(settings, coding)
    penalty, start, path = solver.choose(observations)
    problem = solver.problem(observations)
    limits = settings.limits
    if not coding.has_levels:
        most = _ITERATIONS_OF_ABSOLUTE * limits.max_iterations
        limits = limits._replace(max_iterations=most)
    solution = solver.solve(problem, penalty, limits, start)
    fit = solution.fit
    if coding.has_levels:
        posterior: Posterior = _posterior_of_levels(observations, solver, problem, solution)
        noise = 1.0 if settings.likelihood == "ordered" else math.pi**2 / 3.0
    else:
        error = solver.mean_loss(observations, problem.effects, solution)
        noise = 2.0 * error**2  # the variance of a Laplace distribution with this mean error
        units = Units.equal(
            coding.location, coding.scale, observations.shape[1], settings.value_range
        )
        best = signal_of(fit.factors, problem.effects, (error / _T_MEAN) ** 2)
        best = best._replace(noise=best.noise._replace(degrees=_T_DEGREES))
        posterior = LowRankPosterior([best], units, best, has_draws=False)
    scale = coding.scale
    record = Record(
        rank=int(fit.factors.s.size),
        history={"objective": np.array(fit.objectives) * scale},
        stop_reason=fit.reason,
        noise_variance=noise * scale**2,
        singular_values=scale * fit.factors.s,
        penalty=penalty,
        path=path,
        violation=fit.violation,
        converged=fit.converged,
        loss=settings.likelihood,
    )
    return posterior, record


def _posterior_of_levels(
    observations: Observations, solver: _Solver, problem: _Problem, solution: LossFit
) -> KindPosterior:
    """The solution as a posterior of ordered levels, or of two values."""
    (fit, loss), n = solution, observations.shape[1]
    is_ordered = solver.settings.likelihood == "ordered"
    coding = code_ratings(observations)
    if not is_ordered:
        coding = code_two_levels(observations, solver.coding.levels, logit)
    coding = coding._replace(limits=np.clip(loss.ends, -FAR, FAR))
    best = signal_of(fit.factors, problem.effects, 1.0)._replace(limits=coding.limits)
    law: Literal["gaussian", "logistic"] = "gaussian" if is_ordered else "logistic"
    units = Units.equal(0.0, 1.0, n, None)
    return KindPosterior(LowRankPosterior([best], units, best, has_draws=False, law=law), coding)


def _coding(observations: Observations, settings: LossSettings) -> _Coding:
    """The coding of a table; an error if the likelihood is not for its values."""
    values = observations.values.astype(np.float64)
    if settings.likelihood == "laplace":
        return _Coding(*_robust_unit(values, settings.effects is not None), np.zeros(0))
    levels = np.unique(values)
    most, what = (2, "two values") if settings.likelihood == "logistic" else (MOST_LEVELS, "levels")
    if not 2 <= levels.size <= most:
        allowed = "exactly 2 different values" if most == 2 else f"2 to {most} different values"
        raise InputError(
            f"a table of {what} has {allowed}; got {levels.size}",
            place=Setting("likelihood", settings.likelihood),
            advice=("Use ", Setting("likelihood", "gaussian"), " for other values."),
        )
    return _Coding(0.0, 1.0, levels)


def _robust_unit(values: np.ndarray, centred: bool) -> tuple[float, float]:
    """The median and a multiple of the median absolute deviation, which outliers hardly change."""
    location = float(np.median(values)) if centred else 0.0
    scale = _NORMAL_DEVIATION * float(np.median(np.abs(values - location)))
    return location, scale or location_and_scale(values, centred)[1]
