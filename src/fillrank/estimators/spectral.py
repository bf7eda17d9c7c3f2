"""What the spectral estimators share: effects, a penalty chosen on held-out entries, a certificate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.estimators.base import Estimator
from fillrank.estimators.checks import EFFECTS, check_value_range, seed_from, warn_of_units
from fillrank.estimators.convergence import warn_unconverged
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.posterior.record import Record
from fillrank.runtime.progress import make_progress
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.samplers.gasr import Options
from fillrank.samplers.model import Data, Draw, Noise
from fillrank.solvers.certificates import largest_penalty
from fillrank.solvers.fit import (
    Errors,
    Factors,
    Fit,
    Limits,
    PathPoint,
    penalty_grid,
    root_mean_square,
    walk,
)
from fillrank.solvers.starts import start_effects, subtract_effects
from fillrank.table.entries import Entries
from fillrank.table.observations import Observations
from fillrank.table.units import Units, location_and_scale
from fillrank.validation import check_choice, check_integer, check_real

_VALIDATION_SHARE = 0.2
_USUAL_MAX_RANK = 50
# Where beta is searched, as shares of the largest singular value.
_BETA_SHARES = (1.0, 0.1, 0.01, 0.001)


class Problem(NamedTuple):
    """Entries in standard units minus their effects, and the inverse transformation."""

    data: Data
    row_effects: np.ndarray
    column_effects: np.ndarray


class Setting(NamedTuple):
    """The settings of a solver, in standard units; ``beta`` is inf if the method has none."""

    penalty: float
    beta: float


class Context(NamedTuple):
    """What all settings share."""

    limits: Limits
    workers: Workers
    units: Units


class SpectralEstimator(Estimator):
    """What SoftImpute, SoftImputeALS, HASI and RelaxedSpectral have in common.

    They find the matrix that minimises an objective: there are no draws, so no intervals. Subclasses
    implement `_solve`.

    Parameters
    ----------
    penalty : float or "auto"
        How much singular values are shrunk, in the units of the table. "auto" chooses it from a path of
        20 on a held-out fifth of the entries, and fits again on all of them.
    max_rank : int or "auto"
        The largest number of factors; 50 by default.
    max_iterations : int
        For each fit.
    tolerance : float
        A fit ends when its certificate is below this.
    effects : {"both", "rows", "columns", "mean", None}
        What is subtracted first: shrunken means of rows, of columns, of both, the overall mean, or
        nothing.
    n_threads : int or None
        None uses all processors.
    value_range : "auto", (low, high) or None
        Predictions are clipped to this range. "auto" finds it if the values are ratings.
    random_state : int, RandomState or None
        Determines which entries are held out to choose the penalty.
    progress : bool
        Show a bar over the path in a terminal, or a line every ten seconds elsewhere.
    add_indicator : bool
        Whether `transform` appends a column for each column that had missing values at fit: 1 where a
        value was missing, and 0 elsewhere, as scikit-learn's imputers do.
    missing_values : number, text or list of them
        What stands for a missing value in tables, in addition to NaN, such as -999.

    Attributes
    ----------
    completion_ : Completion
        The result of the fit, to which the methods delegate.
    observations_ : Observations
        The entries that were fitted.
    penalty_ : float
        The penalty of the fit.
    path_ : list of PathPoint
        The settings that were tried: penalty, beta, rank, training_error, validation_error,
        n_iterations, converged. Empty if the penalty was given.
    rank_ : int
        The number of singular values above 0.
    singular_values_ : ndarray
        Of the low-rank part, descending.
    noise_variance_ : float
        The mean squared residual.
    history_ : dict
        ``objective`` after each iteration.
    violation_ : float
        The certificate: the duality gap relative to the objective if the problem is convex, otherwise
        the largest violation of the fixed-point conditions.
    converged_ : bool
        Whether the certificate is below the tolerance, or is above it only because of ``max_rank``.
    stop_reason_ : str
        Why the fit ended.
    """

    # Only methods that shrink large singular values less have this parameter.
    beta: float | Literal["auto"] | None = None

    def __init__(
        self,
        *,
        penalty: float | Literal["auto"] = "auto",
        max_rank: int | Literal["auto"] = "auto",
        max_iterations: int = 100,
        tolerance: float = 1e-5,
        effects: Literal["both", "rows", "columns", "mean"] | None = "both",
        n_threads: int | None = None,
        value_range: Any = "auto",
        random_state: Any = None,
        progress: bool = True,
        add_indicator: bool = False,
        missing_values: Any = np.nan,
    ):
        self.penalty = penalty
        self.max_rank = max_rank
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.effects = effects
        self.n_threads = n_threads
        self.value_range = value_range
        self.random_state = random_state
        self.progress = progress
        self.add_indicator = add_indicator
        self.missing_values = missing_values

    def _solve(self, data: Data, setting: Setting, context: Context, start: Factors | None) -> Fit:
        """Solve for one setting, in standard units."""
        raise NotImplementedError

    def _given_beta(self, scale: float) -> float | None:
        """The beta of a given penalty, in standard units; None if it is chosen with the penalty."""
        if self.beta is None:
            return math.inf
        if self.beta == "auto":
            if self.penalty != "auto":
                raise InputError('with a penalty given, beta must be given too; got beta="auto".')
            return None
        return check_real("beta", self.beta, "above 0", lambda v: v > 0) / scale

    def _betas(self, first: Fit, scale: float) -> list[float]:
        """The values of beta to try in addition to infinity, for which ``first`` is the solution."""
        given = self._given_beta(scale)
        if given is None:
            return _candidate_betas(first)
        return [given] if math.isfinite(given) else []

    def _candidates(
        self, data: Data, penalty: float, context: Context, start: Factors | None
    ) -> Iterator[tuple[float, Fit]]:
        """Yield (beta, fit) for every setting that shares a penalty.

        SoftImpute is the first, which is beta = inf and the start of the others.
        """
        first = self._solve(data, Setting(penalty, math.inf), context, start)
        yield math.inf, first
        for beta in self._betas(first, context.units.shared_scale):
            yield beta, self._solve(data, Setting(penalty, beta), context, first.factors)

    def _complete(self, observations: Observations) -> None:
        check_choice("effects", self.effects, EFFECTS)
        warn_of_units(observations)
        limits = self._limits(observations)
        value_range = check_value_range(self.value_range, observations)
        location, scale = location_and_scale(observations.values, self.effects is not None)
        units = Units.equal(location, scale, observations.shape[1], value_range)
        path: list[PathPoint] = []
        with one_blas_thread(), self._workers() as workers:
            context = Context(limits, workers, units)
            setting, start = self._choose(observations, context, path)
            problem = self._problem(observations, units)
            fit = self._solve(problem.data, setting, context, start)
            noise = root_mean_square(problem.data.rows, fit.factors, workers) ** 2
        posterior = _posterior(fit, problem, noise, units)
        self._store(observations, posterior, self._record(fit, setting, noise, scale, path))
        warn_unconverged(self)

    def _limits(self, observations: Observations) -> Limits:
        if self.max_rank == "auto":
            max_rank = _USUAL_MAX_RANK
        else:
            max_rank = check_integer("max_rank", self.max_rank, 1)
        return Limits(
            min(max_rank, *observations.shape),
            check_integer("max_iterations", self.max_iterations, 1),
            check_real("tolerance", self.tolerance, "above 0", lambda v: v > 0),
        )

    def _problem(self, observations: Observations, units: Units) -> Problem:
        data = _standardised(observations, units)
        effects, _ = start_effects(data, effect_options(self.effects))
        return Problem(subtract_effects(data, effects), *effects)

    def _choose(
        self, observations: Observations, context: Context, path: list[PathPoint]
    ) -> tuple[Setting, Factors | None]:
        """The setting, and factors to start from: as given, or chosen on held-out entries.

        The settings that were tried are added to ``path``.
        """
        scale = context.units.shared_scale
        if self.penalty != "auto":
            penalty = check_penalty(self.penalty)
            return Setting(penalty / scale, self._given_beta(scale) or math.inf), None
        train, held_out = hold_out(observations, seed_from(self.random_state))
        problem = self._problem(train, context.units)
        effects = problem.row_effects, problem.column_effects
        test = subtract_effects(_standardised(held_out, context.units), effects).rows
        return self._best_on_path(problem.data, test, context, path)

    def _best_on_path(
        self, train: Data, test: Entries, context: Context, path: list[PathPoint]
    ) -> tuple[Setting, Factors | None]:
        """Try descending penalties, and choose the point with the smallest error on ``test``."""
        penalties = penalty_grid(largest_penalty(train, context.workers))

        def errors(fit: Fit) -> tuple[float, float]:
            training, held_out = (
                root_mean_square(entries, fit.factors, context.workers)
                for entries in (train.rows, test)
            )
            return training, held_out

        best, fit, tried = self._search(train, penalties, context, errors)
        path.extend(_in_units(point, context.units.shared_scale) for point in tried)
        return Setting(best.penalty, best.beta), fit.factors

    def _search(
        self, train: Data, penalties: np.ndarray, context: Context, errors: Errors
    ) -> tuple[PathPoint, Fit, list[PathPoint]]:
        """The best point, its fit, and all points that were tried."""

        def solve(penalty: float, start: Factors | None) -> Iterator[tuple[float, Fit]]:
            return self._candidates(train, penalty, context, start)

        return best_on_path(walk(penalties, solve, errors), penalties, self.progress)

    def _record(
        self, fit: Fit, setting: Setting, noise: float, scale: float, path: list[PathPoint]
    ) -> Record:
        s = fit.factors.s
        return Record(
            rank=int(s.size),
            history={"objective": np.array(fit.objectives) * scale**2},
            stop_reason=fit.reason,
            noise_variance=noise * scale**2,
            singular_values=scale * s,
            penalty=setting.penalty * scale,
            beta=None if self.beta is None else setting.beta * scale,
            path=path,
            violation=fit.violation,
            converged=fit.converged,
        )


def check_penalty(penalty: Any) -> float:
    """A given penalty as a number."""
    return check_real("penalty", penalty, "at least 0", lambda v: v >= 0)


def hold_out(observations: Observations, seed: int) -> tuple[Observations, Observations]:
    """The entries to fit for each penalty, and those to compare penalties on."""
    if len(observations) < 2:
        raise InputError(
            "choosing the penalty takes at least 2 entries, one of them to hold out; got 1. "
            "Give a penalty."
        )
    return observations.split(_VALIDATION_SHARE, np.random.default_rng(seed))


def effect_options(effects: str | None) -> Options:
    """Which effects are subtracted."""
    return Options(
        row_effects=effects in ("rows", "both"),
        column_effects=effects in ("columns", "both"),
        centres=False,
    )


def with_progress(
    points: Iterator[tuple[PathPoint, Fit]], penalties: np.ndarray, progress: bool
) -> Iterator[tuple[PathPoint, Fit]]:
    """The same points, with a bar over the penalties."""
    with make_progress(progress, "penalty") as tell:
        for point, fit in points:
            yield point, fit
            done = int(np.sum(penalties >= point.penalty))
            tell(done, len(penalties), f"rank {point.rank}")


def best_on_path(
    points: Iterator[tuple[PathPoint, Fit]], penalties: np.ndarray, progress: bool
) -> tuple[PathPoint, Fit, list[PathPoint]]:
    """The point with the smallest validation error, its fit, and all points that were tried."""
    best: tuple[PathPoint, Fit] | None = None
    tried = []
    for point, fit in with_progress(points, penalties, progress):
        tried.append(point)
        if best is None or point.validation_error < best[0].validation_error:
            best = point, fit
    assert best is not None
    return *best, tried


def _candidate_betas(first: Fit) -> list[float]:
    """The values of beta to try: shares of the largest singular value of the SoftImpute solution."""
    s = first.factors.s
    return [share * float(s[0]) for share in _BETA_SHARES] if s.size else []


def _standardised(observations: Observations, units: Units) -> Data:
    location, scale = units.location[0], units.scale[0]

    def convert(entries: Entries) -> Entries:
        return entries._replace(values=(entries.values - location) / scale)

    return Data(convert(observations.by_row()), convert(observations.by_column()))


def _posterior(fit: Fit, problem: Problem, noise: float, units: Units) -> LowRankPosterior:
    """The solution: factors, then the effects."""
    best = signal_of(fit.factors, (problem.row_effects, problem.column_effects), noise)
    return LowRankPosterior([best], units, best, has_draws=False)


def signal_of(factors: Factors, effects: tuple[np.ndarray, np.ndarray], noise: float) -> Draw:
    """The signal of a solution, with the variance of its noise."""
    U, s, V = factors
    left = np.column_stack([U * s, effects[0], np.ones(len(U))])
    right = np.column_stack([V, np.ones(len(V)), effects[1]])
    return Draw(left, right, Noise.equal(noise, (len(U), len(V))))


def _in_units(point: PathPoint, scale: float) -> PathPoint:
    """A point of the path in the units of the data."""
    return point._replace(
        penalty=point.penalty * scale,
        beta=point.beta * scale,
        training_error=point.training_error * scale,
        validation_error=point.validation_error * scale,
    )
