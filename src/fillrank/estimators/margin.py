"""What M3F and IPM3F share: levels, and a penalty chosen on held-out entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from fillrank.errors import FillrankWarning, InputError, Text
from fillrank.estimators.base import Estimator
from fillrank.estimators.checks import seed_from
from fillrank.kernels.ordinal import Scorer
from fillrank.posterior.levels import FitRows, LevelPosterior
from fillrank.posterior.metrics import mae
from fillrank.posterior.model_file import SMALLEST_MARGIN_PENALTY
from fillrank.posterior.record import Record
from fillrank.runtime.progress import make_progress
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.runtime.warnings import warn_user
from fillrank.samplers.model import Data
from fillrank.solvers.fit import RISES, Limits, PathPoint
from fillrank.solvers.m3f import penalty_path
from fillrank.table.levels import Levels, find_levels
from fillrank.table.observations import Observations
from fillrank.validation import check_integer, check_real

_VALIDATION_SHARE = 0.2
_SPARSE = "In a sparse matrix, what is not stored is missing, and not 0."


class Context(NamedTuple):
    """What all penalties share."""

    n_levels: int
    limits: Limits
    workers: Workers
    seed: int


class Solution(NamedTuple):
    """The scorers, the number of factors or features, and a start for the next penalty.

    ``rank`` may be a fraction, because features have probabilities.
    """

    scorers: list[Scorer]
    rank: float
    carry: Any
    n_iterations: int
    converged: bool


class MarginEstimator(Estimator):
    """A max-margin method for ratings on few ordered levels: it predicts one of the levels.

    Subclasses have `_solve`, `_fit_rows` and `_record`.
    """

    penalty: float | Literal["auto"]
    max_rank: int
    max_iterations: int
    tolerance: float
    levels: Literal["auto"] | Sequence[float]
    random_state: Any
    _predicts_levels = True
    # Whether the path goes from small penalties to large ones: each fit starts where the last ended.
    _upwards: ClassVar[bool] = False

    @property
    def _patience(self) -> float:
        """The number of successive rises of the error that end the path."""
        return RISES

    def _solve(self, data: Data, penalty: float, context: Context, carry: Any) -> Solution:
        """Solve for one penalty, from scratch if ``carry`` is None."""
        raise NotImplementedError

    def _try(self, data: Data, penalty: float, context: Context, carry: Any) -> Solution:
        """Solve well enough to compare penalties."""
        return self._solve(data, penalty, context, carry)

    def _fit_rows(self, penalty: float, solution: Solution) -> FitRows:
        """How new rows are fitted."""
        raise NotImplementedError

    def _record(self, penalty: float, path: list[PathPoint], solution: Solution) -> Record:
        """What the fit reports."""
        raise NotImplementedError

    def _warn(self, solution: Solution) -> None:
        """Warn if the fit has not converged."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Values are levels, as those of scikit-learn's OrdinalEncoder are.
        tags.input_tags.categorical = True
        return tags

    def _complete(self, observations: Observations) -> None:
        limits = self._limits()
        levels = self._find_levels(observations)
        seed = seed_from(self.random_state)
        path: list[PathPoint] = []
        with one_blas_thread(), self._workers() as workers:
            context = Context(levels.size, limits, workers, seed)
            penalty, carry = self._choose(observations, levels, context, path)
            solution = self._solve(_numbered(observations, levels), penalty, context, carry)
        fit_rows = self._fit_rows(penalty, solution)
        posterior = LevelPosterior(solution.scorers, levels.values, fit_rows)
        self._store(observations, posterior, self._record(penalty, path, solution))
        self._warn(solution)

    def _find_levels(self, observations: Observations) -> Levels:
        advice: list[Text] = [_SPARSE] if observations.origin.layout == "sparse" else []
        try:
            levels = find_levels(observations.stored_values, self.levels)
        except InputError as error:
            raise error.with_advice(*advice) from None
        if levels.size == 1:
            what = f"all values are {levels.values[0]:g}, and so are all predictions"
            warn_user(FillrankWarning(what, advice=advice))
        return levels

    def _limits(self) -> Limits:
        if self.n_threads is not None:
            check_integer("n_threads", self.n_threads, 1)
        return Limits(
            check_integer("max_rank", self.max_rank, 1),
            check_integer("max_iterations", self.max_iterations, 1),
            check_real("tolerance", self.tolerance, "above 0", lambda v: v > 0),
        )

    def _choose(
        self, observations: Observations, levels: Levels, context: Context, path: list[PathPoint]
    ) -> tuple[float, Any]:
        """The penalty, and where to start: as given, or the best on held-out entries.

        The penalties that were tried are added to ``path``.
        """
        if self.penalty != "auto":
            smallest = SMALLEST_MARGIN_PENALTY
            allowed = f'"auto" or at least {smallest:g}'
            return check_real("penalty", self.penalty, allowed, lambda v: v >= smallest), None
        rng = np.random.default_rng(context.seed)
        parts = observations.split(_VALIDATION_SHARE, rng)
        train = _numbered(parts[0], levels)
        penalties = penalty_path(train, levels.size, context.workers).tolist()
        if self._upwards:
            penalties.reverse()
        best, rises, carry, best_carry = np.inf, 0, None, None
        with make_progress(self.progress, "penalty") as tell:
            for number, penalty in enumerate(penalties, start=1):
                solution = self._try(train, penalty, context, carry)
                carry = solution.carry
                fit_rows = self._fit_rows(penalty, solution)
                posterior = LevelPosterior(solution.scorers, levels.values, fit_rows)
                training, error = (_error(posterior, part, context.workers) for part in parts)
                path.append(_point(penalty, solution, training, error))
                tell(number, len(penalties), f"error {error:.4f}")
                rises = rises + 1 if error > best else 0
                if error < best:
                    best, chosen, best_carry = error, penalty, carry
                if rises == self._patience:
                    break
        return chosen, best_carry


def _numbered(observations: Observations, levels: Levels) -> Data:
    return Data(levels.encode(observations.by_row()), levels.encode(observations.by_column()))


def _error(posterior: LevelPosterior, observed: Observations, workers: Workers) -> float:
    """The mean absolute error of the predictions, in the table's units."""
    predicted = posterior.predict(observed.row_index, observed.column_index, workers)
    return mae(observed.values, predicted)


def _point(penalty: float, solution: Solution, training: float, validation: float) -> PathPoint:
    rank, n_iterations = round(solution.rank), solution.n_iterations
    return PathPoint(penalty, np.inf, rank, training, validation, n_iterations, solution.converged)
