"""What the spectral estimators share: effects, a penalty chosen on held-out entries, a certificate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from fillrank.errors import InputError, NotSupportedError
from fillrank.estimators.base import MatrixCompleter
from fillrank.estimators.checks import EFFECTS, check_choice, check_value_range, seed_from
from fillrank.estimators.convergence import warn_unconverged
from fillrank.posterior.posterior import Posterior, Units
from fillrank.posterior.validation import check_posterior
from fillrank.runtime.progress import make_progress
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.samplers.gasr import Options
from fillrank.samplers.model import Data, Draw
from fillrank.solvers.certificates import largest_penalty
from fillrank.solvers.fit import (
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
from fillrank.table.units import location_and_scale
from fillrank.validation import check_integer, check_real

_VALIDATION_SHARE = 0.2
_USUAL_MAX_RANK = 50


class Problem(NamedTuple):
    """Entries in standard units less their effects, and how to come back."""

    data: Data
    row_effects: np.ndarray
    column_effects: np.ndarray


class Setting(NamedTuple):
    """What a solver is asked for, in standard units; ``beta`` is inf where there is none."""

    penalty: float
    beta: float


class Frame(NamedTuple):
    """What stays the same from one setting to the next."""

    limits: Limits
    workers: Workers


class SpectralCompleter(MatrixCompleter):
    """What SoftImpute, SoftImputeALS, HASI and RelaxedSpectral have in common.

    They find the one matrix that is best by a criterion: there are no draws, so no intervals.
    Subclasses give `_solve`.

    Parameters
    ----------
    penalty : float or "auto"
        How much singular values are shrunk, in the units of the table. "auto" chooses it on a fifth
        of the entries, along a path of 20, and fits again on all of them.
    max_rank : int or "auto"
        The most factors; 50 by default.
    max_iterations : int
        For each fit.
    tolerance : float
        A fit ends when its certificate is below this.
    effects : {"both", "rows", "columns", "mean", None}
        What is taken off beforehand: shrunken means of rows, of columns, of both, the overall mean,
        or nothing.
    n_threads : int or None
        None uses all processors.
    value_range : "auto", (low, high) or None
        Predictions are kept within this range. "auto" finds it if the values are ratings.
    random_state : int, RandomState or None
        Decides which entries are held out to choose the penalty.
    progress : bool
        Show a bar over the path in a terminal, or a line every ten seconds elsewhere.

    Attributes
    ----------
    penalty_ : float
    path_ : list of PathPoint
        What was tried: penalty, beta, rank, training_error, validation_error, n_iterations,
        converged. Empty if the penalty was given.
    rank_ : int
    singular_values_ : ndarray
    noise_variance_ : float
        The mean squared residual.
    history_ : dict
        ``objective`` after each iteration.
    violation_ : float
        The certificate: the duality gap over the objective where the problem is convex, the worst
        breach of the fixed-point conditions elsewhere.
    stop_reason_ : str
        Why the fit ended.
    converged_ : bool
        Whether the certificate is below the tolerance, or only ``max_rank`` keeps it above.
    """

    _kept: ClassVar[dict[str, Any]] = MatrixCompleter._kept | {
        "posterior_": Posterior,
        "penalty_": float,
        "beta_": float,
        "path_": list[PathPoint],
        "rank_": int,
        "singular_values_": np.ndarray,
        "noise_variance_": float,
        "history_": dict[str, np.ndarray],
        "violation_": float,
        "stop_reason_": str,
        "converged_": bool,
    }

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

    def _solve(self, data: Data, setting: Setting, frame: Frame, start: Factors | None) -> Fit:
        """Solve for one setting, in standard units."""
        raise NotImplementedError

    def _candidates(
        self, data: Data, penalty: float, frame: Frame, start: Factors | None
    ) -> Iterator[tuple[float, Fit]]:
        """Yield (beta, fit) for every setting that shares a penalty."""
        yield math.inf, self._solve(data, Setting(penalty, math.inf), frame, start)

    def _given_beta(self) -> float | None:
        return math.inf

    def _fit(self, observations: Observations) -> None:
        check_choice("effects", self.effects, EFFECTS)
        limits = self._limits(observations)
        value_range = check_value_range(self.value_range, observations)
        location, scale = location_and_scale(observations.values, self.effects is not None)
        self._units = Units(location, scale, value_range)
        with one_blas_thread(), self._workers() as workers:
            frame = Frame(limits, workers)
            setting, start = self._choose(observations, frame)
            whole = self._problem(observations)
            fit = self._solve(whole.data, setting, frame, start)
            noise = root_mean_square(whole.data.rows, fit.factors, workers) ** 2
        self.observations_ = observations
        self._keep(fit, setting, whole, noise)

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

    def _standard(self, observations: Observations) -> Data:
        location, scale, _ = self._units

        def convert(entries: Entries) -> Entries:
            return entries._replace(values=(entries.values - location) / scale)

        return Data(convert(observations.by_row()), convert(observations.by_column()))

    def _problem(self, observations: Observations) -> Problem:
        data = self._standard(observations)
        options = Options(
            row_effects=self.effects in ("rows", "both"),
            column_effects=self.effects in ("columns", "both"),
            centres=False,
        )
        effects, _ = start_effects(data, options)
        return Problem(subtract_effects(data, effects), *effects)

    def _choose(self, observations: Observations, frame: Frame) -> tuple[Setting, Factors | None]:
        """The setting to use, and factors to begin with: as given, or chosen on held-out entries."""
        self.path_: list[PathPoint] = []
        if self.penalty != "auto":
            penalty = check_real("penalty", self.penalty, "at least 0", lambda v: v >= 0)
            return Setting(penalty / self._units.scale, self._given_beta() or math.inf), None
        if len(observations) < 2:
            raise InputError(
                "choosing the penalty takes at least 2 entries, one of them to hold out; got 1. "
                "Give a penalty."
            )
        rng = np.random.default_rng(seed_from(self.random_state))
        train, held_out = observations.split(_VALIDATION_SHARE, rng)
        problem = self._problem(train)
        effects = problem.row_effects, problem.column_effects
        test = subtract_effects(self._standard(held_out), effects).rows
        return self._best_on_path(problem.data, test, frame)

    def _best_on_path(
        self, train: Data, test: Entries, frame: Frame
    ) -> tuple[Setting, Factors | None]:
        """Walk down the penalties and keep the point with the smallest error on ``test``."""
        penalties = penalty_grid(largest_penalty(train, frame.workers))
        best: tuple[PathPoint, Fit] | None = None

        def solve(penalty: float, start: Factors | None) -> Iterator[tuple[float, Fit]]:
            return self._candidates(train, penalty, frame, start)

        with make_progress(self.progress, "penalty") as tell:
            for point, fit in walk(train, test, penalties, solve, frame.workers):
                self.path_.append(_in_units(point, self._units.scale))
                if best is None or point.validation_error < best[0].validation_error:
                    best = point, fit
                done = int(np.sum(penalties >= point.penalty))
                tell(done, len(penalties), f"rank {point.rank}")
        assert best is not None
        return Setting(best[0].penalty, best[0].beta), best[1].factors

    def _keep(self, fit: Fit, setting: Setting, problem: Problem, noise: float) -> None:
        """Turn a fit into fitted attributes, in the data's units."""
        U, s, V = fit.factors
        scale = self._units.scale
        left = np.column_stack([U * s, problem.row_effects, np.ones(len(U))])
        right = np.column_stack([V, np.ones(len(V)), problem.column_effects])
        best = Draw(left, right, noise)
        self.posterior_ = Posterior([best], self._units, best)
        self.penalty_ = setting.penalty * scale
        self.rank_ = int(s.size)
        self.singular_values_ = scale * s
        self.noise_variance_ = noise * scale**2
        self.history_ = {"objective": np.array(fit.objectives) * scale**2}
        self.violation_ = fit.violation
        self.stop_reason_ = fit.reason
        self.converged_ = fit.converged
        warn_unconverged(self)

    def _check_draws(self, what: str) -> None:
        # A single best matrix says nothing about how sure it is.
        raise NotSupportedError(
            f"{type(self).__name__} has no posterior, so no {what}. GASR and BPMF have."
        )

    def _check_loaded(self) -> None:
        super()._check_loaded()
        check_posterior(self.posterior_, self.observations_.shape)


def _in_units(point: PathPoint, scale: float) -> PathPoint:
    """A point of the path in the data's units."""
    return point._replace(
        penalty=point.penalty * scale,
        beta=point.beta * scale,
        training_error=point.training_error * scale,
        validation_error=point.validation_error * scale,
    )
