"""What a fit has stored, and what that supports: the basis of `Completion`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from fillrank.errors import NotSupportedError, Text
from fillrank.features.new_rows import Axis
from fillrank.posterior.diagnostics import Diagnostics, diagnose_run
from fillrank.posterior.protocol import Posterior
from fillrank.posterior.record import Record
from fillrank.run.recorder import Traces
from fillrank.runtime.memory import check_table_memory
from fillrank.runtime.threads import Workers, available_threads
from fillrank.solvers.fit import PathPoint
from fillrank.table.column_types import are_numbers
from fillrank.table.observations import Observations


@dataclass(frozen=True, eq=False, repr=False)
class FittedTable:
    """The fields of a `Completion`, its fitted attributes, and checks of what it supports.

    The functions in this folder take it, and return one of the same class.
    """

    method: str
    settings: Mapping[str, Any]
    observations: Observations
    posterior: Posterior
    record: Record
    feature_names: np.ndarray | None = None
    folded_in: tuple[Axis, ...] = ()
    sources: Mapping[Axis, Posterior] = field(default_factory=dict)

    def with_settings(self, **changes: Any) -> Self:
        """The same with other settings, such as ``n_threads``."""
        return replace(self, settings={**self.settings, **changes})

    @property
    def is_mixed(self) -> bool:
        """Whether columns have other values than numbers, or numbers that cannot be compared."""
        if not are_numbers(self.observations.column_types):
            return True
        return self.record.has_own_units and set(self.posterior.column_kinds) != {"number"}

    # Fitted attributes, under the names that the estimators have

    @property
    def completion_(self) -> Self:
        """The object itself: functions take a fitted estimator or its completion."""
        return self

    @property
    def observations_(self) -> Observations:
        """The table that was fitted."""
        return self.observations

    @property
    def posterior_(self) -> Posterior:
        """The posterior, by position."""
        return self.posterior

    @property
    def rank_(self) -> int:
        """The number of factors."""
        return self.record.rank

    @property
    def history_(self) -> Mapping[str, np.ndarray]:
        """What was traced over the sweeps or iterations."""
        return self.record.history

    @property
    def stop_reason_(self) -> str:
        """Why the fit ended."""
        return self.record.stop_reason

    @property
    def rank_probabilities_(self) -> Mapping[int, float]:
        """The share of draws with each rank: singular values above the detection level.

        The model has no parameter for the rank, so this is not the posterior of one.
        """
        return self._required(self.record.rank_probabilities, "rank_probabilities_")

    @property
    def noise_variance_(self) -> float:
        """The variance of the noise, averaged over all cells.

        In standard units if columns have their own units.
        """
        return self._required(self.record.noise_variance, "noise_variance_")

    @property
    def row_noise_(self) -> np.ndarray:
        """The noise standard deviation of each row in an average column: posterior means.

        In standard units if columns have their own units. For Student-t noise, the scale.
        """
        return self._required(self.record.row_noise, "row_noise_")

    @property
    def column_noise_(self) -> np.ndarray:
        """The noise standard deviation of each column in an average row, in the unit of the column.

        Posterior means. For Student-t noise, the scale.
        """
        return self._required(self.record.column_noise, "column_noise_")

    @property
    def singular_values_(self) -> np.ndarray:
        """The singular values of the low-rank part, descending."""
        return self._required(self.record.singular_values, "singular_values_")

    @property
    def n_sweeps_(self) -> int:
        """The sweeps of the sampler."""
        return self._required(self.record.n_sweeps, "n_sweeps_")

    @property
    def interrupted_(self) -> bool:
        """Whether Ctrl-C ended the run."""
        return self._required(self.record.interrupted, "interrupted_")

    @property
    def traces_(self) -> Traces:
        """The traces of the run, in standard units."""
        return self._required(self.record.traces, "traces_")

    @property
    def penalty_(self) -> float:
        """The penalty of a solver."""
        return self._required(self.record.penalty, "penalty_")

    @property
    def beta_(self) -> float:
        """The second setting of HASI and RelaxedSpectral."""
        return self._required(self.record.beta, "beta_")

    @property
    def path_(self) -> list[PathPoint]:
        """The settings of a solver that were tried."""
        return self._required(self.record.path, "path_")

    @property
    def likelihood_(self) -> str:
        """The likelihood, if it is not Gaussian."""
        return self._required(self.record.likelihood, "likelihood_")

    @property
    def violation_(self) -> float:
        """The certificate of a solver."""
        return self._required(self.record.violation, "violation_")

    @property
    def levels_(self) -> np.ndarray:
        """The ordered levels that are predicted."""
        return self._required(self.posterior.levels, "levels_")

    def _required(self, value: Any, name: str) -> Any:
        if value is None:
            raise AttributeError(f"{self.method} has no {name}.")
        return value

    # Checks, and threads

    def check_draws(self, purpose: str, advice: Text = ()) -> None:
        """Raise NotSupportedError if there are no draws of the posterior."""
        if self.posterior.has_draws:
            return
        reason = "has no posterior"
        if self.posterior.levels is not None:
            reason = "predicts by margins, which do not say how probable a level is"
        raise NotSupportedError(
            f"{self.method} {reason}, so it has no {purpose}. GASR and BPMF have them.",
            advice=advice,
        )

    def check_entries(self, remedy: str) -> None:
        """Raise an error if the entries that were fitted are not stored."""
        # Rows that were folded in by their features alone have no entries.
        if len(self.observations) == 0 and not self.sources:
            raise NotSupportedError(
                "this model was saved, or came from a cluster, without the entries that it was fitted "
                f"on, so it does not know which cells were observed. {remedy}"
            )

    def check_run(self, purpose: str) -> Traces:
        """The traces of the run; an error if there is none."""
        if self.folded_in:
            raise NotSupportedError(
                f"a model of new rows or columns has no {purpose}; use the one that it came from."
            )
        if self.record.traces is None:
            raise NotSupportedError(
                f"this fit of {self.method} has no chains, so it has no {purpose}. GASR, BPMF and "
                'IPM3F(inference="gibbs") have them.'
            )
        return self.record.traces

    def diagnostics(self) -> Diagnostics:
        """R-hat and effective sample sizes of identified quantities, and whether they suffice.

        Returns
        -------
        Diagnostics
            `print` shows it as text, a notebook as a table. ``converged`` is the verdict, ``reason``
            says what is wrong, and ``worst`` has the R-hat and the effective sample size of the worst
            5% of 200 cells.

        Examples
        --------
        >>> import fillrank as fr
        >>> data, _ = fr.synthetic(60, 40, rank=2, noise=0.5, missing=0.3, random_state=0)
        >>> found = fr.GASR(n_sweeps=300, random_state=0, progress=False).fit(data).diagnostics()
        >>> found.converged, bool(found.worst.rhat < 1.1)
        (True, True)
        """
        traces, record = self.check_run("diagnostics"), self.record
        ended = record.stop_reason if record.interrupted or record.reached_limit else ""
        # The Monte Carlo error of scores is not a criterion for levels.
        return diagnose_run(traces, record.rank, ended, judges_error=self.posterior.has_draws)

    def check_table_memory(self, n_cells: int, remedy: str) -> None:
        """Report the memory of a large table; raise an error if it does not fit."""
        is_level = self.posterior.levels is not None
        check_table_memory(n_cells, remedy, is_level, self.settings.get("progress", True))

    def round_whole(self, matrix: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Round the predictions of columns that have whole numbers only, in place.

        That is for wide tables, and unless the setting ``round`` is false; arrays stay as they are.
        """
        whole = np.flatnonzero(self.rounded_columns()[columns])
        matrix[:, whole] = np.rint(matrix[:, whole])
        return matrix

    @property
    def rounds(self) -> bool:
        """Whether predictions are rounded as the observed values are: in wide tables, if it is set."""
        data = self.observations
        is_set = bool(self.settings.get("round", False))
        return is_set and data.origin.layout == "wide" and len(data) > 0

    def rounded_columns(self) -> np.ndarray:
        """Whether the predictions of each column are rounded to whole numbers."""
        data = self.observations
        return data.whole_columns() if self.rounds else np.zeros(data.shape[1], dtype=bool)

    def workers(self) -> Workers:
        """The threads to compute with."""
        return Workers(available_threads(self.settings.get("n_threads")))
