"""What M3F and IPM3F share: levels, a penalty chosen on held-out entries, predictions of levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from fillrank.errors import NotSupportedError, ReadError
from fillrank.estimators.base import MatrixCompleter
from fillrank.estimators.checks import seed_from
from fillrank.kernels.ordinal import Scorer
from fillrank.posterior.metrics import mae
from fillrank.posterior.ordinal import OrdinalPosterior
from fillrank.posterior.validation import check_ordinal
from fillrank.runtime.progress import make_progress
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.samplers.model import Data
from fillrank.solvers.fit import RISES, Limits, PathPoint
from fillrank.solvers.m3f import penalty_path
from fillrank.table.entries import Entries
from fillrank.table.levels import Levels, find_levels
from fillrank.table.observations import Observations
from fillrank.validation import check_integer, check_real

_VALIDATION_SHARE = 0.2
# Below this the losses of a table of any size overwhelm double precision.
_SMALLEST_PENALTY = 1e-4


class Frame(NamedTuple):
    """What stays the same from one penalty to the next."""

    n_levels: int
    limits: Limits
    workers: Workers
    seed: int


class Solution(NamedTuple):
    """What predicts, how many factors or features that takes, and where the next penalty may begin.

    ``rank`` need not be whole: features may be there with a probability.
    """

    scorers: list[Scorer]
    rank: float
    carry: Any
    n_iterations: int
    converged: bool


class OrdinalCompleter(MatrixCompleter):
    """A max-margin method for ratings on few ordered levels: it predicts one of the levels.

    Subclasses give `_solve` and `_new_rows`, and keep what is their own in `_keep`.
    """

    _kept: ClassVar[dict[str, Any]] = MatrixCompleter._kept | {
        "posterior_": OrdinalPosterior,
        "levels_": np.ndarray,
        "penalty_": float,
        "path_": list[PathPoint],
        "rank_": int,
        "history_": dict[str, np.ndarray],
        "stop_reason_": str,
        "converged_": bool,
    }
    _needed: ClassVar[set[str]] = MatrixCompleter._needed | {"levels_", "penalty_"}
    penalty: float | Literal["auto"]
    max_rank: int
    max_iterations: int
    tolerance: float
    levels: Literal["auto"] | Sequence[float]
    random_state: Any
    progress: bool
    _takes_new_columns = False
    _bytes_a_cell = 40  # levels are asked for cell by cell
    # Whether the path goes from small penalties to large ones: each fit begins where the last ended.
    _upwards = False

    @property
    def _patience(self) -> float:
        """The number of rises of the error in a row that end the path."""
        return RISES

    def _solve(self, data: Data, penalty: float, frame: Frame, carry: Any) -> Solution:
        """Solve for one penalty, from scratch if ``carry`` is None."""
        raise NotImplementedError

    def _try(self, data: Data, penalty: float, frame: Frame, carry: Any) -> Solution:
        """Solve well enough to compare penalties."""
        return self._solve(data, penalty, frame, carry)

    def _new_rows(self, entries: Entries, workers: Workers) -> list[Scorer]:
        """Scorers of rows that were not there at fit, given their numbers of levels."""
        raise NotImplementedError

    def _keep(self, solution: Solution) -> None:
        """Keep what the subclass has beyond the common attributes, and warn if there is cause."""
        raise NotImplementedError

    def _fit(self, observations: Observations) -> None:
        limits = self._limits()
        levels = find_levels(observations.stored_values, self.levels)
        seed = seed_from(self.random_state)
        with one_blas_thread(), self._workers() as workers:
            frame = Frame(levels.size, limits, workers, seed)
            penalty, carry = self._choose(observations, levels, frame)
            solution = self._solve(_numbered(observations, levels), penalty, frame, carry)
        self.observations_ = observations
        self.levels_ = levels.values
        self.penalty_ = penalty
        self.rank_ = round(solution.rank)
        self.posterior_ = OrdinalPosterior(solution.scorers, levels.values)
        self._keep(solution)

    def _limits(self) -> Limits:
        if self.n_threads is not None:
            check_integer("n_threads", self.n_threads, 1)
        return Limits(
            check_integer("max_rank", self.max_rank, 1),
            check_integer("max_iterations", self.max_iterations, 1),
            check_real("tolerance", self.tolerance, "above 0", lambda v: v > 0),
        )

    def _choose(
        self, observations: Observations, levels: Levels, frame: Frame
    ) -> tuple[float, Any]:
        """The penalty, and where to begin: as given, or the best on held-out entries."""
        if self.penalty != "auto":
            allowed = f'"auto" or at least {_SMALLEST_PENALTY:g}'
            penalty = check_real("penalty", self.penalty, allowed, lambda v: v >= _SMALLEST_PENALTY)
            self.path_: list[PathPoint] = []
            return penalty, None
        path = []
        rng = np.random.default_rng(frame.seed)
        parts = observations.split(_VALIDATION_SHARE, rng)
        train = _numbered(parts[0], levels)
        penalties = penalty_path(train, levels.size, frame.workers).tolist()
        if self._upwards:
            penalties.reverse()
        best, rises, carry, best_carry = np.inf, 0, None, None
        with make_progress(self.progress, "penalty") as tell:
            for number, penalty in enumerate(penalties, start=1):
                solution = self._try(train, penalty, frame, carry)
                carry = solution.carry
                posterior = OrdinalPosterior(solution.scorers, levels.values)
                training, error = (_error(posterior, part, frame.workers) for part in parts)
                path.append(_point(penalty, solution, training, error))
                tell(number, len(penalties), f"error {error:.4f}")
                rises = rises + 1 if error > best else 0
                if error < best:
                    best, chosen, best_carry = error, penalty, carry
                if rises == self._patience:
                    break
        self.path_ = path
        return chosen, best_carry

    def _check_draws(self, what: str) -> None:
        raise NotSupportedError(
            f"{type(self).__name__} predicts by margins, which say nothing about how likely a level "
            f"is, so it has no {what}. GASR and BPMF have."
        )

    def _fold_in(self, entries: Entries, axis: Literal["rows", "columns"]) -> OrdinalPosterior:
        if axis == "columns":
            raise NotSupportedError(
                f"{type(self).__name__} learns the thresholds of every row from all of its columns: new "
                "columns need a new fit. The other methods can fold them in."
            )
        levels = Levels(self.levels_)
        with self._workers() as workers:
            scorers = self._new_rows(levels.encode(entries), workers)
        return OrdinalPosterior(scorers, levels.values)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        check_ordinal(self.posterior_, self.observations_.shape)
        if not np.array_equal(self.levels_, self.posterior_.levels):
            raise ReadError("its levels are not those of its predictions.")
        if not _SMALLEST_PENALTY <= self.penalty_ < np.inf:
            raise ReadError(f"its penalty must be at least {_SMALLEST_PENALTY:g} and finite.")


def _numbered(observations: Observations, levels: Levels) -> Data:
    return Data(levels.encode(observations.by_row()), levels.encode(observations.by_column()))


def _error(posterior: OrdinalPosterior, observed: Observations, workers: Workers) -> float:
    """The mean absolute error of the predictions, in the table's units."""
    predicted = posterior.predict(observed.row_index, observed.column_index, workers)
    return mae(observed.values, predicted)


def _point(penalty: float, solution: Solution, training: float, validation: float) -> PathPoint:
    rank, n_iterations = round(solution.rank), solution.n_iterations
    return PathPoint(penalty, np.inf, rank, training, validation, n_iterations, solution.converged)
