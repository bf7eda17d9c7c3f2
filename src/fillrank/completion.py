"""A completed table: the result of a fit, by row and column labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from fillrank.errors import InputError, NotSupportedError, Setting, Text, UnknownNameError
from fillrank.posterior.diagnostics import Diagnostics, diagnose_run
from fillrank.posterior.imputation import Imputations
from fillrank.posterior.low_rank import Axis, Kind
from fillrank.posterior.metrics import rmse
from fillrank.posterior.model_file import ModelParts, read_model, write_model
from fillrank.posterior.protocol import Posterior
from fillrank.posterior.recommend import By, LeftOut, Top, TopQuery, nothing_left_out, seen
from fillrank.posterior.record import Record, not_sampled
from fillrank.posterior.to_arviz import to_arviz
from fillrank.run.recorder import Traces
from fillrank.runtime.memory import check_memory, check_table_memory
from fillrank.runtime.threads import Workers, available_threads, one_blas_thread
from fillrank.solvers.fit import PathPoint
from fillrank.table.entries import Entries
from fillrank.table.frames import fill_in, is_data_frame, to_long
from fillrank.table.input import as_observations
from fillrank.table.observations import Observations
from fillrank.table.triplets import Triplets
from fillrank.table.weights import refuse_weights
from fillrank.validation import as_generator, as_real, check_choice, check_integer, check_real

# What to do about labels that are not known.
Unknown = Literal["error", "prior"]
PREDICT_UNKNOWN: Text = (
    "With ",
    Setting("unknown", "prior"),
    " they are predicted as rows and columns without entries.",
)
# A query of the posterior for cells by position: rows, columns and what else comes by cell.
_Query = Callable[..., Any]

# The entries of one row without entries.
_NO_ENTRIES = Entries(np.zeros(2, np.int64), np.zeros(0, np.int64), np.zeros(0))
_WITHOUT_LABELS = ("matrix", "sparse")
# New rows that are folded in together: their draws take about 100 MB at most.
_ROWS_AT_ONCE = 4096
# Cells in a block of predictions.
_CELLS_AT_ONCE = 2**18
_BYTES_PER_RECOMMENDATION = 100


@dataclass(frozen=True, eq=False, repr=False)
class Completion:
    """A completed table: the labels, the posterior and the record of the fit.

    A fit stores it as ``completion_``; `fillrank.load` and `fold_in` return one. It is immutable:
    methods that change something return a new one. Fitted attributes, such as ``rank_`` or
    ``noise_variance_``, have the same names as those of the estimator.

    Parameters
    ----------
    method : str
        The name of the estimator.
    settings : mapping
        The parameters of the estimator.
    observations : Observations
        The table that was fitted. If it was not stored, it has the labels and no entries.
    posterior : Posterior
    record : Record
    feature_names : ndarray of str, optional
        The column names of the data frame that was fitted, as in scikit-learn.
    folded_in : tuple of {"rows", "columns"}
        Which rows or columns were folded in after the fit.
    sources : mapping of {"rows", "columns"} to Posterior
        The posteriors with which they were folded in.

    Examples
    --------
    >>> import fillrank as fr
    >>> data, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> completion = fr.GASR(n_sweeps=200, random_state=0).fit(data).completion_
    >>> completion
    <Completion by GASR: 60 rows x 40 columns, rank 2>
    """

    method: str
    settings: Mapping[str, Any]
    observations: Observations
    posterior: Posterior
    record: Record
    feature_names: np.ndarray | None = None
    folded_in: tuple[Axis, ...] = ()
    sources: Mapping[Axis, Posterior] = field(default_factory=dict)

    def __repr__(self) -> str:
        n_rows, n_columns = self.observations.shape
        size = f"{n_rows:,} rows x {n_columns:,} columns"
        return f"<Completion by {self.method}: {size}, rank {self.record.rank}>"

    def with_settings(self, **changes: Any) -> Completion:
        """The same with other settings, such as ``n_threads``."""
        return replace(self, settings={**self.settings, **changes})

    # Fitted attributes, under the names that the estimators have

    @property
    def completion_(self) -> Completion:
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

    # Predictions

    def predict(self, rows: Any, columns: Any = None, *, unknown: Unknown = "error") -> np.ndarray:
        """Predict cells by labels: posterior means, the solution of a solver, or levels of ratings.

        Parameters
        ----------
        rows, columns : label or array of labels
            The cells: equal numbers of rows and columns, or a single one of either. Tables without
            labels have 0, 1, 2, ... With ``columns=None``, ``rows`` is a table instead, with the
            columns of the one that was fitted; the result is the signal in all of its cells, observed
            or not.
        unknown : {"error", "prior"}
            What to do about labels that are not known: raise an error, or predict a row or column
            without any entries.

        Returns
        -------
        ndarray
            One number per pair; or a matrix of the shape of the table.
        """
        if columns is None:
            if not (isinstance(rows, Observations) or is_data_frame(rows)) and np.ndim(rows) == 0:
                raise InputError(
                    "predict needs rows and columns, or a table; got rows without columns."
                )
            return self.predict_rows(as_observations(rows))
        i, j = self._positions(rows, columns, unknown)
        with self.workers() as workers:
            return self._query(lambda posterior, i, j: posterior.predict(i, j, workers), i, j)

    def predict_mean(self, rows: Any, columns: Any) -> np.ndarray:
        """Means over the draws of what each predicts, by labels; for methods that sample."""
        i, j = self._positions(rows, columns, "error")
        if self.record.n_sweeps is None:
            raise NotSupportedError(
                f"this fit of {self.method} has no draws, so it has no means over draws. GASR, BPMF and "
                'IPM3F(inference="gibbs") have them.'
            )
        with self.workers() as workers:
            return self.posterior.average_prediction(i, j, workers)

    def predict_interval(
        self,
        rows: Any,
        columns: Any,
        level: float = 0.9,
        kind: Kind = "observation",
        *,
        unknown: Unknown = "error",
    ) -> tuple[np.ndarray, np.ndarray]:
        """Credible intervals: the value of a cell is in its interval with the given probability.

        Parameters
        ----------
        rows, columns : label or array of labels
            As in `predict`.
        level : float
            Above 0 and below 1.
        kind : {"observation", "signal"}
            What the interval is for: a value as it would be observed, with noise, or the value without
            noise. The interval of an observation contains that of the signal.
        unknown : {"error", "prior"}
            As in `predict`.

        Returns
        -------
        low, high : ndarray
        """
        self.check_draws("intervals")
        _check_level(level)
        check_choice("kind", kind, ("signal", "observation"))
        i, j = self._positions(rows, columns, unknown)
        with self.workers() as workers:
            low, high = self._query(
                lambda posterior, i, j: posterior.interval(i, j, level, kind, workers), i, j
            )
        return low, high

    def log_density(
        self, rows: Any, columns: Any, values: Any, *, unknown: Unknown = "error"
    ) -> np.ndarray:
        """Logarithms of the predictive density at values of cells, by labels.

        The larger, the less the model is surprised by the value. The density is that of a new
        observation, with noise: a mixture of normal distributions, one for each draw.

        Parameters
        ----------
        rows, columns : label or array of labels
            As in `predict`.
        values : float or array of float
            One for each cell, in the units of the data.
        unknown : {"error", "prior"}
            As in `predict`.

        Returns
        -------
        ndarray
            One number per cell.

        Examples
        --------
        >>> import fillrank as fr
        >>> data, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
        >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(data)
        >>> near, far = model.log_density(7, 5, truth[7, 5]), model.log_density(7, 5, 100.0)
        >>> bool(near[0] > far[0])
        True
        """
        self.check_draws("predictive density")
        i, j = self._positions(rows, columns, unknown)
        values = as_real(values, "values")
        if values.size not in (1, i.size):
            raise InputError(f"values must be one, or one for each cell; got {values.size}.")
        at = np.broadcast_to(values.ravel(), i.shape)
        with self.workers() as workers:
            return self._query(
                lambda posterior, i, j, at: posterior.log_density(i, j, at, workers), i, j, at
            )

    def predict_block(self, rows: Any, columns: Any) -> np.ndarray:
        """Predict all cells of some rows and columns, by labels: a matrix."""
        i = self.observations.row_positions(rows)
        j = self.observations.column_positions(columns)
        self.check_table_memory(i.size * j.size, "Request fewer rows at a time.")
        with one_blas_thread():
            return self.posterior.block(i, j)

    def predict_missing(
        self, level: float | None = None, n_draws: int = 0, random_state: int = 0
    ) -> Iterator[Any]:
        """Predict all missing cells, as a stream of long tables; the matrix is never in memory.

        A table has at most 262,144 cells, or those of one row if that is more, and takes about 100 MB
        while it is made.

        Parameters
        ----------
        level : float, optional
            If given, each table also has the interval of this level for a new observation.
        n_draws : int
            Each table also has this number of draws of new observations: the same values as those of
            `sample_completions`.
        random_state : int
            The seed of the noise of the draws.

        Yields
        ------
        table
            Of the type of the table that was fitted, with the columns row, column, value,
            ``lower`` and ``upper`` if there is a level, and ``draw_1``, ``draw_2``, ... if there are
            draws.
        """
        self.check_entries("Save it with its entries, by save(path, with_data=True).")
        if level is not None:
            self.check_draws("intervals")
            _check_level(level)
        imputations = self._imputations(n_draws, random_state) if n_draws else None
        return self._missing(level, imputations)

    def _missing(self, level: float | None, imputations: Imputations | None) -> Iterator[Any]:
        data, posterior = self.observations, self.posterior
        n_rows, n_columns = data.shape
        at_once = max(1, _CELLS_AT_ONCE // n_columns)
        with self.workers() as workers:
            for start in range(0, n_rows, at_once):
                i, j = data.missing_positions(start, min(start + at_once, n_rows))
                if i.size == 0:
                    continue
                fields = {"value": posterior.predict(i, j, workers)}
                if level is not None:
                    low, high = posterior.interval(i, j, level, "observation", workers)
                    fields |= {"lower": low, "upper": high}
                if imputations is not None:
                    with one_blas_thread():
                        for number in range(imputations.n):
                            fields[f"draw_{number + 1}"] = imputations.at(number, i, j)
                yield to_long(data, data.row_labels[i], data.column_labels[j], fields)

    def score(self, X: Any) -> float:
        """Minus the root mean squared error of the predictions of observed entries, by labels.

        Parameters
        ----------
        X : Observations or table
            Entries whose rows and columns are known. An array is not allowed, because its rows have no
            labels.
        """
        test = as_observations(X)
        if not isinstance(X, Observations) and test.origin.layout in _WITHOUT_LABELS:
            raise InputError(
                "score needs entries with labels, got an array. Use fr.Observations.of(X); to "
                "cross-validate, give that as X, and cv=fr.EntryKFold()."
            )
        i, j = (
            self.observations.row_positions(test.row_labels)[test.row_index],
            self.observations.column_positions(test.column_labels)[test.column_index],
        )
        with self.workers() as workers:
            return -rmse(test.values, self.posterior.predict(i, j, workers))

    # Complete tables

    def transform(self, X: Any) -> Any:
        """Fill in the missing cells of a table with the columns of the one that was fitted.

        Each row is completed given the factors of the columns, as if it were new; observed values do
        not change. `fold_in` also has intervals for such rows.

        Parameters
        ----------
        X : table
            Of any type that `fit` takes.

        Returns
        -------
        table
            Of the same type.
        """
        observations = as_observations(X)
        return fill_in(observations, self.predict_rows(observations))

    def predict_rows(self, observations: Observations) -> np.ndarray:
        """Predict all cells of new rows."""
        n_rows, n_columns = observations.shape
        self.check_table_memory(n_rows * n_columns, "Give fewer rows at a time.")
        self._check_weights(observations)
        columns = self._align(observations, "columns")
        entries = _reindex(observations.by_row(), columns)
        matrix = np.empty((n_rows, n_columns))
        source = self._source("rows")
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            with one_blas_thread():
                rows = self._fold_in(source, _rows_of(entries, block), "rows")
                matrix[block] = rows.block(np.arange(rows.shape[0]), columns)
        return matrix

    def predict_table(self) -> np.ndarray:
        """Predict all cells of the table that was fitted."""
        n_rows, n_columns = self.observations.shape
        with one_blas_thread():  # the result must not depend on the number of threads
            return self.posterior.block(np.arange(n_rows), np.arange(n_columns))

    def sample_completions(self, n: int = 5, random_state: int = 0) -> list[Any]:
        """Draw complete tables, for multiple imputation.

        The missing cells have draws of new observations, with noise. Analyse each table as if it were
        complete, and pool the results by Rubin's rules: the uncertainty about the missing values is
        then part of the standard errors (docs/life_of_a_model.md has an example).

        Parameters
        ----------
        n : int
            At most the number of stored draws.
        random_state : int
            The seed of the noise: the same number gives the same tables.

        Returns
        -------
        list of tables
            Of the type of the table that was fitted. `predict_missing` with ``n_draws`` streams the
            same values.
        """
        self.check_entries("Save it with its entries, by save(path, with_data=True).")
        check_integer("n", n, 1)
        imputations = self._imputations(n, random_state)
        n_rows, n_columns = self.observations.shape
        self.check_table_memory(
            n * n_rows * n_columns, "Use predict_missing(n_draws=...), in parts."
        )
        with one_blas_thread():
            return [
                fill_in(
                    self.observations,
                    np.array([imputations.row(number, i) for i in range(n_rows)]),
                )
                for number in range(n)
            ]

    def _imputations(self, n: int, random_state: int) -> Imputations:
        self.check_draws("draws")
        n = check_integer("the number of draws", n, 1, self.posterior.n_draws)
        return self.posterior.imputations(n, check_integer("random_state", random_state, 0))

    # New rows and columns

    def fold_in(self, table: Any, axis: Axis = "rows") -> Completion:
        """Complete new rows, or new columns, without a new fit.

        Each is completed under every stored draw of the fit, so that its intervals include the
        uncertainty of the fit. The fit does not change.

        Parameters
        ----------
        table : Observations, data frame, array or sparse matrix
            The new rows, with all or some of the known columns; or the new columns, with known rows. A
            row without any entries is predicted from the prior.
        axis : {"rows", "columns"}
            Whether rows or columns are new.

        Returns
        -------
        Completion
            Of the new rows in all known columns (or the new columns in all known rows). It can fold in
            further rows (or columns), with the same result as this one.

        Examples
        --------
        >>> import fillrank as fr
        >>> data, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
        >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(data)
        >>> new = fr.Observations.from_triplets(["Zoe"] * 3, [0, 1, 2], truth[7, :3])
        >>> zoe = model.fold_in(new)
        >>> low, high = zoe.predict_interval("Zoe", 5)
        >>> bool(low[0] < truth[7, 5] < high[0])
        True
        """
        check_choice("axis", axis, ("rows", "columns"))
        new = Observations.of(table)
        self._check_weights(new)
        known_axis: Axis = "columns" if axis == "rows" else "rows"
        try:
            positions = self._align(new, known_axis)
        except UnknownNameError as error:
            raise error.with_advice(
                f"New {axis} can have values only in {known_axis} that the model was fitted on: leave "
                "others out."
            ) from error
        source = self._source(axis)
        by_new = new.by_row() if axis == "rows" else new.by_column()
        with one_blas_thread():
            posterior = self._fold_in(source, _reindex(by_new, positions), axis)
        return replace(
            self,
            posterior=posterior,
            observations=self._observations_of(new, positions, axis),
            # The noise of rows and columns is that of the table that was fitted.
            record=replace(self.record, traces=None, row_noise=None, column_noise=None),
            feature_names=self.feature_names if axis == "rows" else None,
            folded_in=tuple(sorted({*self.folded_in, axis})),
            sources={**self.sources, axis: source},
        )

    def _observations_of(
        self, new: Observations, positions: np.ndarray, axis: Axis
    ) -> Observations:
        """The new rows (or columns) as a table with all known columns (or rows)."""
        if axis == "rows":
            labels = new.row_labels, self.observations.column_labels
            cells = new.row_index, positions[new.column_index]
        else:
            labels = self.observations.row_labels, new.column_labels
            cells = positions[new.row_index], new.column_index
        triplets = Triplets(*cells, new.values, new.weights)
        return Observations.from_positions(triplets, *labels, new.origin)

    def _check_weights(self, new: Observations) -> None:
        """Reject weights of new entries, unless the method uses them."""
        if self.posterior.levels is not None or not self.posterior.has_draws:
            refuse_weights(new, self.method)

    def _fold_in(self, source: Posterior, entries: Entries, axis: Axis) -> Posterior:
        with self.workers() as workers:
            return source.fold_in(entries, axis, workers)

    def _source(self, axis: Axis) -> Posterior:
        """The posterior by which new rows (or columns) are completed: that of the fit.

        Rows that were folded in did not change it, and may be too few to estimate a prior from.
        """
        if axis not in self.folded_in:
            return self.posterior
        if len(self.folded_in) == 2 or axis not in self.sources:  # as after loading a file
            raise NotSupportedError(
                f"this model of new {' and '.join(self.folded_in)} cannot take further {axis}: it does "
                f"not know the {axis} of the fit. Give them to the model that it came from."
            )
        return self.sources[axis]

    def _without_entries(self, new_row: bool, new_column: bool) -> Posterior:
        """The posterior of a row, a column or both without entries."""
        posterior = self.posterior
        with one_blas_thread():
            if new_row:
                posterior = self._fold_in(self._source("rows"), _NO_ENTRIES, "rows")
            if new_column:
                source = self._source("columns") if "columns" in self.folded_in else posterior
                posterior = self._fold_in(source, _NO_ENTRIES, "columns")
        return posterior

    # Recommendations

    def recommend(
        self,
        rows: Any = None,
        n: int = 10,
        by: By = "mean",
        *,
        quantile: float = 0.1,
        leave_out: Any = "seen",
        random_state: Any = None,
    ) -> Any:
        """The n best columns for some rows, or for all rows, without observed cells.

        Parameters
        ----------
        rows : label, array of labels, or None
            None means all.
        n : int
            The number of columns for each row; fewer if a row does not have as many.
        by : {"mean", "cautious", "curious"}
            The order of the columns. "mean": by the expected value. "cautious": by a low quantile of
            the posterior. "curious": by a random draw of the posterior (Thompson sampling), so that
            uncertain columns are sometimes recommended. Methods without draws have only "mean".
        quantile : float
            For "cautious": above 0 and below 0.5.
        leave_out : "seen", table or None
            Cells that are not recommended: those observed at fit, those observed in another table with
            the same labels, or none.
        random_state : int, Generator or None
            For "curious".

        Returns
        -------
        table
            Long, of the type that was fitted: row, column, value; by row in the order requested, best
            first. The value is the mean, quantile or draw that the order is by.

        Examples
        --------
        >>> import fillrank as fr
        >>> data, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
        >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(data)
        >>> len(model.recommend(7, n=3)), len(model.recommend(n=3))
        (3, 180)
        """
        check_integer("n", n, 1)
        check_choice("by", by, ("mean", "cautious", "curious"))
        check_real("quantile", quantile, "above 0 and below 0.5", lambda v: 0 < v < 0.5)
        data = self.observations
        i = np.arange(data.shape[0]) if rows is None else data.row_positions(rows)
        n = min(n, data.shape[1])
        check_memory(
            _BYTES_PER_RECOMMENDATION * i.size * n,
            f"a result of {i.size * n:,} lines",
            "Request fewer rows at a time, or a smaller n.",
        )
        left_out = self._left_out(leave_out, i)
        rng = as_generator(random_state) if by == "curious" else None
        top = self.best_columns(TopQuery(i, left_out, n, by, quantile, rng))
        there = top.columns >= 0
        labels = data.row_labels[np.repeat(i, there.sum(axis=1))]
        return to_long(
            data, labels, data.column_labels[top.columns[there]], {"value": top.scores[there]}
        )

    def best_columns(self, query: TopQuery) -> Top:
        """The best columns of some rows, by position."""
        if query.by != "mean":
            needs = (Setting("by", query.by), " needs them, ", Setting("by", "mean"), " does not.")
            self.check_draws("draws to recommend by", needs)
        with one_blas_thread(), self.workers() as workers:
            return self.posterior.top(query, workers)

    def _left_out(self, leave_out: Any, rows: np.ndarray) -> LeftOut:
        if leave_out is None:
            return nothing_left_out(rows.size)
        data = self.observations
        if isinstance(leave_out, str):
            check_choice("leave_out", leave_out, ("seen",))
            self.check_entries(
                "Name the table whose cells to leave out, leave_out=table; or leave_out=None for none."
            )
            return seen(data.by_row(), rows)
        table = Observations.of(leave_out)
        triplets = Triplets(
            self._align(table, "rows")[table.row_index],
            self._align(table, "columns")[table.column_index],
            table.values,
        )
        known = Observations.from_positions(
            triplets, data.row_labels, data.column_labels, data.origin
        )
        return seen(known.by_row(), rows)

    # The run

    def diagnostics(self) -> Diagnostics:
        """R-hat and effective sample sizes of identified quantities, and whether they suffice."""
        traces, record = self.check_run("diagnostics"), self.record
        ended = record.stop_reason if record.interrupted or record.reached_limit else ""
        # The Monte Carlo error of scores is not a criterion for levels.
        return diagnose_run(traces, record.rank, ended, judges_error=self.posterior.has_draws)

    def to_arviz(self) -> Any:
        """The run as ArviZ' data structure, an xarray DataTree; needs ``pip install "fillrank[arviz]"``.

        Returns
        -------
        DataTree
            Group ``posterior`` has what `history_` traces of the draws, after the burn-in, and
            ``prediction``: the signal in 200 random cells; group ``spectrum`` has the singular values of
            the stored draws. Hyperparameters that are estimated or given are in group
            ``constant_data``, or in ``sample_stats`` if they were estimated again while draws were
            stored. All in the units of the data.
        """
        self.check_draws("draws to export")
        traces = self.check_run("draws to export")
        return to_arviz(
            traces,
            self.record.history,
            not_sampled(self.method, self.settings),
            self.observations,
            self.posterior.units,
            self.method,
        )

    # Files

    def save(self, path: str | os.PathLike[str], *, with_data: bool = False) -> None:
        """Save to a file of numbers and labels, without code.

        The file is in the safetensors format. A loaded model gives exactly the same predictions.

        Parameters
        ----------
        path : path
            An existing file is replaced when the new one is complete.
        with_data : bool
            Whether to store the entries that were fitted. `predict_missing` and `sample_completions`
            need them to know which cells are missing, and `recommend` to leave out observed cells. The
            row and column labels are always stored.
        """
        if with_data:
            self.check_entries("Save it without, or fit it again.")
        parts = ModelParts(
            self.method,
            self.settings,
            self.observations,
            self.posterior,
            self.record,
            self.feature_names,
            self.folded_in,
        )
        write_model(path, parts, with_data)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Completion:
        """The same as `fillrank.load`."""
        return load(path)

    # Checks, and labels to positions

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
        if len(self.observations) == 0:
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

    def check_table_memory(self, n_cells: int, remedy: str) -> None:
        """Report the memory of a large table; raise an error if it does not fit."""
        is_level = self.posterior.levels is not None
        check_table_memory(n_cells, remedy, is_level, self.settings.get("progress", True))

    def workers(self) -> Workers:
        """The threads to compute with."""
        return Workers(available_threads(self.settings.get("n_threads")))

    def _query(
        self, query: _Query, i: np.ndarray, j: np.ndarray, *by_cell: np.ndarray
    ) -> np.ndarray:
        """Query cells by position, each from the posterior that has it; cells are the last axis.

        The position -1 means a row, or a column, without entries. The query also gets the elements of
        ``by_cell`` for its cells.
        """
        unknown = (i < 0) + 2 * (j < 0)
        if not unknown.any():
            return np.asarray(query(self.posterior, i, j, *by_cell))
        parts = {}
        for code in np.unique(unknown):
            cells = np.flatnonzero(unknown == code)
            posterior = self._without_entries(bool(code & 1), bool(code & 2))
            known = i[cells].clip(0), j[cells].clip(0)
            parts[code] = cells, query(posterior, *known, *(each[cells] for each in by_cell))
        first = np.asarray(next(iter(parts.values()))[1])
        result = np.empty((*first.shape[:-1], i.size), first.dtype)
        for cells, part in parts.values():
            result[..., cells] = part
        return result

    def _positions(
        self, rows: Any, columns: Any, unknown: Unknown
    ) -> tuple[np.ndarray, np.ndarray]:
        """The positions of cells by labels: as many rows as columns, or one of either.

        With ``unknown="prior"``, labels that are not known have the position -1.
        """
        check_choice("unknown", unknown, ("error", "prior"))
        allow = unknown == "prior"
        try:
            with self.workers() as workers:
                i, j = workers.both(
                    lambda: self.observations.row_positions(rows, allow),
                    lambda: self.observations.column_positions(columns, allow),
                    np.size(rows),
                )
        except UnknownNameError:
            self.check_known(rows, columns)
            raise
        if i.size != j.size and 1 not in (i.size, j.size):
            raise InputError(
                f"rows and columns must have the same length, or one of them length 1; "
                f"got {i.size} rows and {j.size} columns."
            )
        i, j = np.broadcast_arrays(i, j)
        return np.ascontiguousarray(i), np.ascontiguousarray(j)

    def check_known(self, rows: Any, columns: Any) -> None:
        """Raise UnknownNameError if a row or a column is not known; it lists all of them.

        Parameters
        ----------
        rows, columns : label or array of labels
        """
        data, errors = self.observations, {}
        for axis, find, labels in (
            ("rows", data.row_positions, rows),
            ("columns", data.column_positions, columns),
        ):
            try:
                find(labels)
            except UnknownNameError as error:
                errors[axis] = error
        if not errors:
            return
        unknown = UnknownNameError(" ".join(str(error) for error in errors.values()))
        # Max-margin methods learn thresholds from columns, and cannot predict unknown ones.
        if "columns" in errors and self.posterior.levels is not None:
            raise unknown
        raise unknown.with_advice(PREDICT_UNKNOWN)

    def _align(self, new: Observations, axis: Axis) -> np.ndarray:
        """The positions that the rows (or columns) of another table have in the one that was fitted.

        By label, or by position if there are no labels; then their numbers must be equal. Labels are
        matched by position only if the known labels are default numbers, of the same number and not
        equal.
        """
        known, side = self.observations, 0 if axis == "rows" else 1
        n = known.shape[side]
        by_position = np.arange(n)
        if new.origin.layout in _WITHOUT_LABELS:
            if new.shape[side] != n:
                raise InputError(
                    f"an array without labels must have all {n} {axis}, in their order; got "
                    f"{new.shape[side]}. Pad it with NaN, or give a table with labels."
                )
            return by_position
        find = known.row_positions if axis == "rows" else known.column_positions
        try:
            return find((new.row_labels, new.column_labels)[side])
        except UnknownNameError:
            numbered = np.array_equal((known.row_labels, known.column_labels)[side], by_position)
            if known.origin.layout in _WITHOUT_LABELS and numbered and new.shape[side] == n:
                return by_position
            raise


def load(path: str | os.PathLike[str]) -> Completion:
    """Load what `save` has written.

    Parameters
    ----------
    path : path
        The file contains no code, and inconsistent content raises an error. So it is safe to load files
        from others; you can trust their predictions only as much as their authors.

    Returns
    -------
    Completion

    Raises
    ------
    ReadError
        The file does not exist, is not a model, is damaged, or was made by a newer version.

    Examples
    --------
    >>> import fillrank as fr, os, tempfile
    >>> data, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> model = fr.SoftImpute(penalty=1.0).fit(data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.fillrank"))
    ...     loaded = fr.load(os.path.join(folder, "model.fillrank"))
    >>> bool(loaded.predict(0, 5) == model.predict(0, 5))
    True
    """
    return Completion(*read_model(path))


def _reindex(entries: Entries, positions: np.ndarray) -> Entries:
    """Entries at the positions that their columns have at fit."""
    return entries._replace(indices=positions[entries.indices])


def _rows_of(entries: Entries, block: slice) -> Entries:
    """The entries of some of the rows."""
    pointers = entries.pointers[block.start : block.stop + 1]
    part = slice(pointers[0], pointers[-1])
    weights = entries.weights[part]  # empty if there are none
    return Entries(pointers - pointers[0], entries.indices[part], entries.values[part], weights)


def _check_level(level: Any) -> None:
    check_real("level", level, "above 0 and below 1", lambda v: 0 < v < 1)
