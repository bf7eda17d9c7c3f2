"""A completed table: the result of a fit, by row and column labels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fillrank.completions import (
    entry_checks,
    missing_cells,
    new_entries,
    new_rows,
    recommendations,
    unknown_labels,
)
from fillrank.completions import (
    predictive_check as predictive_checks,
)
from fillrank.completions.alignment import WITHOUT_LABELS, align
from fillrank.completions.fitted_table import FittedTable
from fillrank.completions.missing_cells import CompletionLayout
from fillrank.completions.new_rows import GivenFeatures, Kinds
from fillrank.completions.recommendations import Choice, Order
from fillrank.completions.summary import Summary, summarize
from fillrank.completions.unknown_labels import Cells, Unknown, find_cells, query_cells
from fillrank.completions.user_values import decode, encode_values
from fillrank.errors import InputError, NotSupportedError, Setting
from fillrank.features.new_rows import SIDES, Axis, has_terms, side_of, takes_features
from fillrank.posterior.feature_effects import feature_effects, variance_shares
from fillrank.posterior.kind_predictions import credible_sets
from fillrank.posterior.loo import Loo
from fillrank.posterior.metrics import rmse
from fillrank.posterior.model_file import ModelParts, read_model, write_model
from fillrank.posterior.predictive import STATISTICS, Kind, Statistic
from fillrank.posterior.recommend import By, Top, TopQuery
from fillrank.posterior.record import not_sampled
from fillrank.posterior.to_arviz import to_arviz
from fillrank.runtime.threads import one_blas_thread
from fillrank.table.column_types import coded_columns
from fillrank.table.frames import fill_in, is_data_frame, to_frame, to_long, with_row_labels
from fillrank.table.input import as_observations
from fillrank.table.labels import as_labels
from fillrank.table.notes import describe_size
from fillrank.table.observations import Observations
from fillrank.validation import as_real, check_choice, check_integer, check_real

# The share of the entries of new rows that a score is for.
_HELD_OUT = 0.2


class Completion(FittedTable):
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

    def __repr__(self) -> str:
        size = describe_size(self.observations.shape)
        return f"<Completion by {self.method}: {size}, rank {self.record.rank}>"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def summary(self) -> Summary:
        """A short summary: table, rank, noise, expected error, convergence, notes, what to do.

        Returns
        -------
        Summary
            `print` shows it as text, a notebook as a table; ``lines`` has titles and texts. The expected
            error is the one that the model itself expects; `fillrank.score` measures it.

        Examples
        --------
        >>> import fillrank as fr
        >>> data, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
        >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(data)
        >>> [title for title, _ in model.summary().lines][:5]
        ['Method', 'Table', 'Columns', 'Rank', 'Noise level']
        """
        return summarize(self)

    # Predictions

    def predict(
        self,
        rows: Any,
        columns: Any = None,
        *,
        statistic: Statistic = "auto",
        unknown: Unknown = "error",
        row_features: Any = None,
        column_features: Any = None,
    ) -> np.ndarray:
        """Predict cells by labels: posterior means, the solution of a solver, or levels.

        Parameters
        ----------
        rows, columns : label or array of labels
            The cells: equal numbers of rows and columns, or a single one of either. Tables without
            labels have 0, 1, 2, ... With ``columns=None``, ``rows`` is a table instead, with the
            columns of the one that was fitted; the result is the signal in all of its cells, observed
            or not.
        statistic : {"auto", "mean", "median", "mode"}
            Which number of the predictive distribution is returned, for columns that are not plain
            numbers. "auto": the mean of positive numbers and counts, the median of ordered levels, and
            the most probable value of two or more categories. "mode" is the most probable level.
        unknown : {"error", "prior"}
            What to do about labels that are not known: raise an error, or predict a row or column
            without any entries.
        row_features, column_features : data frame or array, optional
            With ``unknown="prior"``: the features of labels that are not known, for a model that was
            fitted with such features. A data frame is matched by label. An array has a line for each
            unknown label, in order of first appearance.

        Returns
        -------
        ndarray
            One number per pair, or one of the values of a column of text or categories; or a matrix of
            the shape of the table, with codes of such values.

        Examples
        --------
        >>> import fillrank as fr, numpy as np, pandas as pd
        >>> x = np.linspace(-2, 2, 40)
        >>> table = pd.DataFrame({"x": x, "y": 3 * x, "z": 2 - x})
        >>> table.loc[5, "y"] = None
        >>> model = fr.GASR(n_sweeps=100, random_state=0, progress=False).fit(table)
        >>> model.predict(5, "y").round()  # 3 * x[5] is -4.46
        array([-4.])
        >>> model.predict([5, 6, 7], "y").shape
        (3,)
        """
        if columns is None:
            if not (isinstance(rows, Observations) or is_data_frame(rows)) and np.ndim(rows) == 0:
                raise InputError(
                    "predict needs rows and columns, or a table; got rows without columns."
                )
            return self.predict_rows(as_observations(rows, self.observations))
        check_choice("statistic", statistic, STATISTICS)
        cells = find_cells(self, rows, columns, unknown, row_features, column_features)
        return decode(self.observations, cells.columns, self.predict_cells(cells, statistic))

    def predict_cells(self, cells: Cells, statistic: Statistic = "auto") -> np.ndarray:
        """Predictions of cells by position: numbers, and codes of levels that are text."""
        with self.workers() as workers:
            return query_cells(
                self, cells, lambda posterior, i, j: posterior.predict(i, j, workers, statistic)
            )

    def predict_proba(self, rows: Any, column: Any) -> Any:
        """The probabilities of the levels of a column: ordered levels, two values or a category.

        Parameters
        ----------
        rows : label or array of labels
        column : label
            A column whose values are levels: see ``kinds`` in `GASR`.

        Returns
        -------
        table
            Of the type that was fitted: a line for each row, whose label is the index in pandas, and a
            column for each level.

        Examples
        --------
        >>> import fillrank as fr, numpy as np, pandas as pd
        >>> score = np.linspace(-2, 2, 60)
        >>> table = pd.DataFrame({"x": score, "y": score**3, "answer": np.where(score > 0, "yes", "no")})
        >>> table.loc[5, "answer"] = None
        >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(table)
        >>> probabilities = model.predict_proba(5, "answer")
        >>> list(probabilities.columns), bool(probabilities["no"][5] > 0.8)
        (['no', 'yes'], True)
        """
        levels, probabilities = self._level_probabilities(rows, column)
        names = [str(level) for level in levels]
        fields = {name: probabilities[:, k] for k, name in enumerate(names)}
        return with_row_labels(to_frame(self.observations, fields), as_labels(rows))

    def predict_set(self, rows: Any, column: Any, level: float = 0.9) -> list[list[Any]]:
        """Credible sets: the most probable levels of a column, which together have the probability.

        Parameters
        ----------
        rows : label or array of labels
        column : label
            A column whose values are levels.
        level : float
            Above 0 and below 1.

        Returns
        -------
        list of list
            For each row the levels of its set, most probable first. As levels are few, sets usually
            contain the value with more than the given probability.

        Examples
        --------
        >>> import fillrank as fr, numpy as np, pandas as pd
        >>> score = np.linspace(-2, 2, 60)
        >>> table = pd.DataFrame({"x": score, "y": score**3, "answer": np.where(score > 0, "yes", "no")})
        >>> table.loc[5, "answer"] = None
        >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(table)
        >>> model.predict_set(5, "answer", level=0.8)
        [['no']]
        """
        _check_level(level)
        levels, probabilities = self._level_probabilities(rows, column)
        return [[levels[k] for k in line] for line in credible_sets(probabilities, level)]

    def _level_probabilities(self, rows: Any, column: Any) -> tuple[list[Any], np.ndarray]:
        """The levels of a column, as users have them, and their probabilities in some rows."""
        if not self.posterior.level_columns.any():
            self.check_draws("probabilities")
        i = self.observations.row_positions(rows)
        j = self.observations.column_positions(column)
        if j.size != 1:
            raise InputError(f"column must be one label; got {j.size}.")
        position = int(j[0])
        with self.workers() as workers:
            probabilities = self.posterior.signal.probabilities(i, position, workers)
        values = self.posterior.level_values(position)
        at = np.full(values.size, position)
        return decode(self.observations, at, values).tolist(), probabilities

    def predict_mean(self, rows: Any, columns: Any) -> np.ndarray:
        """Means over the draws of what each predicts, by labels; for methods that sample.

        Parameters
        ----------
        rows, columns : label or array of labels
            As in `predict`.

        Returns
        -------
        ndarray
            One number per pair.

        Examples
        --------
        >>> import fillrank as fr, numpy as np
        >>> stars = np.clip(np.rint(np.add.outer(np.arange(20) % 3, [1.0, 2.0, 2.0, 3.0, 1.0])), 1, 5)
        >>> method = fr.IPM3F(inference="gibbs", penalty=1.0, n_sweeps=50, random_state=0)
        >>> mean = method.fit(stars).predict_mean(3, 2)
        >>> bool(1 <= mean[0] <= 5)
        True
        """
        i, j, _ = find_cells(self, rows, columns)
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
        row_features: Any = None,
        column_features: Any = None,
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
        row_features, column_features : data frame or array, optional
            As in `predict`.

        Returns
        -------
        low, high : ndarray
            Of ordered levels, the lowest and the highest level; NaN, or None, for categories, which have
            no order: see `predict_set`.

        Examples
        --------
        >>> import fillrank as fr, numpy as np, pandas as pd
        >>> x = np.linspace(-2, 2, 40)
        >>> table = pd.DataFrame({"x": x, "y": 3 * x, "z": 2 - x})
        >>> table.loc[5, "y"] = None
        >>> model = fr.GASR(n_sweeps=100, random_state=0, progress=False).fit(table)
        >>> low, high = model.predict_interval(5, "y", level=0.9)
        >>> bool(low[0] < 3 * x[5] < high[0])
        True
        >>> for_signal = model.predict_interval(5, "y", level=0.9, kind="signal")
        >>> bool(low[0] <= for_signal[0][0] and for_signal[1][0] <= high[0])
        True
        """
        self.check_draws("intervals")
        _check_level(level)
        check_choice("kind", kind, ("signal", "observation"))
        cells = find_cells(self, rows, columns, unknown, row_features, column_features)
        low, high = self.predict_cell_intervals(cells, level, kind)
        data, at = self.observations, cells.columns
        return decode(data, at, low), decode(data, at, high)

    def predict_cell_intervals(
        self, cells: Cells, level: float, kind: Kind = "observation"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals of cells by position: numbers, and codes of levels that are text."""
        with self.workers() as workers:
            low, high = query_cells(
                self,
                cells,
                lambda posterior, i, j: posterior.signal.interval(i, j, level, kind, workers),
            )
        return low, high

    def log_density(
        self,
        rows: Any,
        columns: Any,
        values: Any,
        *,
        unknown: Unknown = "error",
        row_features: Any = None,
        column_features: Any = None,
    ) -> np.ndarray:
        """Logarithms of the predictive density at values of cells, by labels.

        The larger, the less the model is surprised by the value. The density is that of a new
        observation, with noise: a mixture of normal distributions, one for each draw.

        Parameters
        ----------
        rows, columns : label or array of labels
            As in `predict`.
        values : float or array of float
            One for each cell, in the units of the data. In a column of levels, the level: the result is
            the logarithm of its probability.
        unknown : {"error", "prior"}
            As in `predict`.
        row_features, column_features : data frame or array, optional
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
        cells = find_cells(self, rows, columns, unknown, row_features, column_features)
        n_cells = cells.rows.size
        if np.size(values) not in (1, n_cells):
            raise InputError(f"values must be one, or one for each cell; got {np.size(values)}.")
        if coded_columns(self.observations.column_types) is not None:
            at = encode_values(self.observations, cells.columns, values)
        else:
            at = np.broadcast_to(as_real(values, "values").ravel(), n_cells)
        return self.cell_log_density(cells, at)

    def cell_log_density(self, cells: Cells, values: np.ndarray) -> np.ndarray:
        """Logarithms of the predictive density of cells by position, at numbers or codes of levels."""
        with self.workers() as workers:
            return query_cells(
                self,
                cells,
                lambda posterior, i, j, at: posterior.signal.log_density(i, j, at, workers),
                values,
            )

    def predict_block(self, rows: Any, columns: Any) -> np.ndarray:
        """Predict all cells of some rows and columns, by labels: a matrix.

        Parameters
        ----------
        rows, columns : label or array of labels

        Returns
        -------
        ndarray of shape (number of rows, number of columns)
            Codes in columns of levels that are text.

        Examples
        --------
        >>> import fillrank as fr
        >>> data, _ = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
        >>> fr.SoftImpute(penalty=1.0).fit(data).predict_block([0, 1, 2], [5, 7]).shape
        (3, 2)
        """
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
            draws. Where dates have no times, those of a wide table are whole days, and an interval has
            all days of which it has a part.

        Examples
        --------
        >>> import fillrank as fr, numpy as np, pandas as pd
        >>> x = np.linspace(-2, 2, 40)
        >>> table = pd.DataFrame({"x": x, "y": 3 * x, "z": 2 - x})
        >>> table.loc[5, "y"] = None
        >>> model = fr.GASR(n_sweeps=100, random_state=0, progress=False).fit(table)
        >>> for part in model.predict_missing(level=0.9):
        ...     print(part.columns.tolist(), len(part))
        ['row', 'column', 'value', 'lower', 'upper'] 1
        """
        self.check_entries("Save it with its entries, by save(path, with_data=True).")
        if level is not None:
            self.check_draws("intervals")
            _check_level(level)
        imputations = None
        if n_draws:
            imputations = missing_cells.imputations_of(self, n_draws, random_state)
        return missing_cells.predict_missing(self, level, imputations)

    def score(self, X: Any) -> float:
        """Minus the root mean squared error of the predictions of observed entries, by labels.

        Parameters
        ----------
        X : Observations or table
            Entries whose rows and columns are known. An array is not allowed, because its rows have no
            labels.

        Returns
        -------
        float

        Examples
        --------
        >>> import fillrank as fr
        >>> data, _ = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
        >>> train, test = data.split(test_fraction=0.2, random_state=0)
        >>> bool(fr.SoftImpute(penalty=1.0).fit(train).score(test) > -1)
        True
        """
        test = as_observations(X, self.observations)
        if not isinstance(X, Observations) and test.origin.layout in WITHOUT_LABELS:
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

    def score_new_rows(self, observations: Observations) -> float:
        """Minus the root mean squared error of a fifth of the entries of new rows, given the others."""
        given, held_out = observations.split(_HELD_OUT, random_state=0)
        predicted = new_rows.predict_rows(self, given)
        found = predicted[held_out.row_index, held_out.column_index]
        return -rmse(held_out.values, found)

    # Complete tables

    def transform(self, X: Any) -> Any:
        """Fill in the missing cells of a table with the columns of the one that was fitted.

        Each row is completed given the factors of the columns, as if it were new; observed values do
        not change. `fold_in` also has intervals for such rows, and takes their features.

        Parameters
        ----------
        X : table
            Of any type that `fit` takes.

        Returns
        -------
        table
            Of the same type.

        Examples
        --------
        >>> import fillrank as fr, numpy as np, pandas as pd
        >>> x = np.linspace(-2, 2, 40)
        >>> table = pd.DataFrame({"x": x, "y": 3 * x, "z": 2 - x})
        >>> table.loc[5, "y"] = None
        >>> model = fr.GASR(n_sweeps=100, random_state=0, progress=False).fit(table)
        >>> new = pd.DataFrame({"x": [1.0], "y": [np.nan], "z": [1.0]})
        >>> filled = model.transform(new)
        >>> filled.round()
             x    y    z
        0  1.0  3.0  1.0
        """
        observations = as_observations(X, self.observations)
        return fill_in(observations, self.complete_rows(observations))

    def predict_rows(self, observations: Observations) -> np.ndarray:
        """Predict all cells of new rows."""
        return new_rows.predict_rows(self, observations)

    def complete_rows(self, observations: Observations) -> np.ndarray:
        """The same as numbers to fill in: whole ones for columns of whole numbers."""
        columns = align(self.observations, observations, "columns")
        return self.round_whole(self.predict_rows(observations), columns)

    def predict_table(self) -> np.ndarray:
        """Predict all cells of the table that was fitted."""
        n_rows, n_columns = self.observations.shape
        with one_blas_thread():  # the result must not depend on the number of threads
            matrix = self.posterior.block(np.arange(n_rows), np.arange(n_columns))
        matrix = self.round_whole(matrix, np.arange(n_columns))
        at, values = self.predict_intervals_of_fit()
        data = self.observations
        matrix[data.row_index[at], data.column_index[at]] = values
        return matrix

    def predict_intervals_of_fit(self) -> tuple[np.ndarray, np.ndarray]:
        """Entries of which only an interval is known: their positions, and their expected values."""
        data = self.observations
        if data.cells is None or data.intervals is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        at = np.flatnonzero(data.cells >= 0)
        ends = data.intervals[data.cells[at]]
        with self.workers() as workers:
            signal = self.posterior.signal
            values = signal.within(data.row_index[at], data.column_index[at], ends, workers)
        return at, values

    def sample_completions(
        self, n: int = 5, random_state: int = 0, *, layout: CompletionLayout = "list"
    ) -> Any:
        """Draw complete tables, for multiple imputation.

        The missing cells have draws of new observations, with noise. Analyse each table as if it were
        complete, and pool the results by Rubin's rules, with `fillrank.pool` or `fillrank.pool_fits`:
        the uncertainty about the missing values is then part of the standard errors.

        Parameters
        ----------
        n : int
            At most the number of stored draws.
        random_state : int
            The seed of the noise: the same number gives the same tables.
        layout : {"list", "mids"}
            A list of tables; or one data frame of all tables, one below the other, as ``as.mids`` of R's
            package mice reads it. Its column ``.imp`` is 0 for the original table with its missing
            values, and 1, 2, ... for the completed tables; ``.id`` has the row labels.

        Returns
        -------
        list of tables, or data frame
            Of the type of the table that was fitted. `predict_missing` with ``n_draws`` streams the
            same values.

        Examples
        --------
        >>> import fillrank as fr, numpy as np, pandas as pd
        >>> x = np.linspace(-2, 2, 40)
        >>> table = pd.DataFrame({"x": x, "y": 3 * x, "z": 2 - x})
        >>> table.loc[5, "y"] = None
        >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(table)
        >>> len(model.sample_completions(3))
        3
        >>> stacked = model.sample_completions(3, layout="mids")
        >>> stacked.columns.tolist(), len(stacked)
        (['.imp', '.id', 'x', 'y', 'z'], 160)
        """
        self.check_entries("Save it with its entries, by save(path, with_data=True).")
        return missing_cells.sample_completions(self, n, random_state, layout)

    def sample_matrices(self, n: int, random_state: int) -> Iterator[np.ndarray]:
        """The same as matrices of numbers and codes, one by one, without the observed values."""
        return missing_cells.sample_matrices(self, n, random_state)

    # New rows and columns

    def fold_in(
        self,
        table: Any = None,
        axis: Axis = "rows",
        *,
        row_features: Any = None,
        column_features: Any = None,
        kinds: Kinds = "auto",
    ) -> Completion:
        """Complete new rows, or new columns, without a new fit.

        Each is completed under every stored draw of the fit, so that its intervals include the
        uncertainty of the fit. The fit does not change.

        Parameters
        ----------
        table : Observations, data frame, array or sparse matrix, optional
            The new rows, with all or some of the known columns; or the new columns, with known rows. A
            row without any entries is predicted from the prior. Without a table, the new rows are those
            of ``row_features``, and have no entries.
        axis : {"rows", "columns"}
            Whether rows or columns are new.
        row_features, column_features : data frame, array or sparse matrix, optional
            The features of the new rows (or columns), with the fields of the fit, for a model that was
            fitted with such features. A data frame is matched by label, and its lines with other labels
            are ignored; an array has a line for each new row. Rows without features are predicted as if
            these could be any of those at the fit.
        kinds : "auto" or mapping of column label to kind
            The kinds of new columns of a table of mixed kinds, as in `GASR`. Their units and levels, and
            the thresholds between these, are those of their own values, of which at least two must
            differ.

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

        Rows of which only features are known:

        >>> import numpy as np, pandas as pd
        >>> ages = np.linspace(20, 80, 60)
        >>> data = fr.Observations.from_matrix(np.outer(ages, np.linspace(1, 2, 12)))
        >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(data, row_features=ages[:, np.newaxis])
        >>> people = pd.DataFrame({"feature 0": [30.0, 70.0]}, index=["Ana", "Ben"])
        >>> new = model.fold_in(row_features=people)
        >>> bool(new.predict("Ana", 3)[0] < new.predict("Ben", 3)[0])
        True
        """
        check_choice("axis", axis, ("rows", "columns"))
        features = GivenFeatures(row_features, column_features)
        return new_rows.fold_in(self, table, axis, features, kinds)

    # New entries of known rows and columns

    def update(self, more_entries: Any, axis: Axis = "rows") -> Completion:
        """Learn from new entries of known rows and columns, without a new fit.

        The rows that have new entries are drawn again under every stored draw of the fit, each given
        all of its entries, old and new, as `fold_in` would draw them. So their predictions and intervals
        know what the new entries say about these rows.

        All else does not change: other rows, the factors and the noise of the columns, and what the fit
        has learnt about the table as a whole. So new entries teach nothing about their columns: a column
        that had few entries stays as uncertain as it was. After many new entries, fit again.

        Parameters
        ----------
        more_entries : Observations, data frame, array or sparse matrix
            The new entries, with labels of known rows and columns; an array has all of them, and NaN in
            all other cells. The value of a cell that was observed before replaces the old one.
        axis : {"rows", "columns"}
            Which side learns: the rows with new entries, or the columns.

        Returns
        -------
        Completion
            Of the same rows and columns, with all entries.

        Examples
        --------
        >>> import fillrank as fr
        >>> data, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
        >>> few = data[[k for k in range(len(data)) if data.row_index[k] != 7 or k % 5 == 0]]
        >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(few)
        >>> more = fr.Observations.from_triplets([7] * 20, range(20), truth[7, :20])
        >>> updated = model.update(more)
        >>> before, after = (m.predict(7, range(20, 40)) - truth[7, 20:] for m in (model, updated))
        >>> bool((after**2).mean() < (before**2).mean())
        True
        """
        check_choice("axis", axis, ("rows", "columns"))
        return new_entries.update(self, more_entries, axis)

    # Features

    def feature_effects(self, side: Axis = "rows", level: float = 0.9) -> Any:
        """What the given features of rows (or columns) change in the predictions.

        Parameters
        ----------
        side : {"rows", "columns"}
            Of which the features are.
        level : float
            Of the intervals: above 0 and below 1.

        Returns
        -------
        table
            Of the type that was fitted, with a line for each term of the features, strongest first:
            ``name``; ``effect``, the change of the prediction of an average cell for a row with one more
            standard deviation of a number, or with that level of a category instead of an average row;
            ``lower`` and ``upper``, the interval of the effect; ``strength``, the root mean square of
            the change over the columns. A feature can raise the values of some columns and lower those
            of others; then its effect is small and its strength large. All are posterior means, in the
            units of the data, or in standard units if columns have their own.

        Notes
        -----
        The other features are held constant, and so is the pattern of missing values if it is a feature.
        An effect is what the feature predicts, not what it causes.

        Examples
        --------
        >>> import fillrank as fr, numpy as np, pandas as pd
        >>> people = pd.DataFrame({"age": np.linspace(20, 80, 60), "size": np.tile([1.6, 1.9], 30)})
        >>> data = np.outer(people["age"], np.linspace(1, 2, 12))
        >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(data, row_features=people)
        >>> effects = model.feature_effects()
        >>> effects["name"].tolist()
        ['age', 'size']
        >>> bool(effects["lower"][0] > 0)
        True
        """
        check_choice("side", side, ("rows", "columns"))
        _check_level(level)
        self.check_draws("effects of features")
        if not takes_features(side_of(self.posterior.blocks, side)):
            raise NotSupportedError(
                f"this model was fitted without features of {side}, so they have no effects",
                advice=("Fit it with ", Setting(f"{SIDES[side]}_features", ...), "."),
            )
        if not has_terms(side_of(self.posterior.blocks, side)):
            raise NotSupportedError(
                f"the only features of {side} are times, which have no effects of single terms. "
                "explained_variance shows their share."
            )
        effects = feature_effects(self.posterior.signal.low_rank, side, level)
        return to_frame(self.observations, effects._asdict())

    def explained_variance(self, side: Axis = "rows") -> dict[str, float]:
        """The shares of the differences between rows (or columns) that features explain.

        Parameters
        ----------
        side : {"rows", "columns"}

        Returns
        -------
        dict of name to share
            Of the variance of the signal between rows, over all cells: for each table of features by its
            name ("features" if it has none), "times" for dates, "missingness" for the pattern of missing
            values, and "rest" for what no feature explains.
            Posterior means; they sum to 1.

        Examples
        --------
        >>> import fillrank as fr, numpy as np
        >>> ages = np.linspace(20, 80, 60)
        >>> data = np.outer(ages, np.linspace(1, 2, 12))
        >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(data, row_features=ages[:, np.newaxis])
        >>> model.explained_variance()["features"] > 0.9
        True
        """
        check_choice("side", side, ("rows", "columns"))
        self.check_draws("features")
        return variance_shares(self.posterior.signal.low_rank).get(side, {"rest": 1.0})

    # Recommendations

    def recommend(
        self,
        rows: Any = None,
        n: int = 10,
        by: By = "mean",
        *,
        quantile: float = 0.1,
        leave_out: Any = "seen",
        only: Any = None,
        random_state: Any = None,
        row_features: Any = None,
    ) -> Any:
        """The n best columns for some rows, or for all rows, without observed cells.

        Parameters
        ----------
        rows : label, array of labels, or None
            None means all; with ``row_features``, all of their labels.
        n : int
            The number of columns for each row; fewer if a row does not have as many.
        by : {"mean", "cautious", "curious"}
            The order of the columns. "mean": by the expected value. "cautious": by a low quantile of
            the posterior. "curious": by a random draw of the posterior (Thompson sampling), so that
            uncertain columns are sometimes recommended. Methods without draws have only "mean".
        quantile : float
            For "cautious": above 0 and below 0.5.
        leave_out : "seen", column labels, dict, table or None
            Cells that are not recommended. "seen": those observed at fit. A list of column labels, or a
            dict of such lists by row label: these too, in addition to those observed. A table with the
            same labels: the cells observed there, instead of those observed at fit. None: none.
        only : label or array of labels, optional
            The columns to choose from; by default all.
        random_state : int, Generator or None
            For "curious".
        row_features : data frame or array, optional
            The features of rows that are not known, as in `predict`: they get what suits their features.

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
        >>> chosen = model.recommend(7, leave_out=[0, 1], only=range(10))["column"]
        >>> set(chosen) <= set(range(2, 10))
        True
        """
        check_integer("n", n, 1)
        check_choice("by", by, ("mean", "cautious", "curious"))
        check_real("quantile", quantile, "above 0 and below 0.5", lambda v: 0 < v < 0.5)
        order, choice = Order(n, by, quantile), Choice(leave_out, only)
        if row_features is None:
            return recommendations.recommend(self, rows, order, choice, random_state)
        return recommendations.recommend_new(self, rows, order, choice, random_state, row_features)

    def best_columns(self, query: TopQuery) -> Top:
        """The best columns of some rows, by position."""
        return recommendations.best_columns(self, query)

    # The run and the model

    def predictive_check(
        self, by: Axis = "columns", n_draws: int | None = None, random_state: int = 0
    ) -> Any:
        """Compare the observed entries with data that the model replicates in the same cells.

        Parameters
        ----------
        by : {"columns", "rows"}
            Statistics are computed for each column, or for each row. Those of rows are of numbers only,
            in standard units if columns have their own units.
        n_draws : int, optional
            The number of replicated tables; by default, one for each stored draw.
        random_state : int
            The seed of their noise.

        Returns
        -------
        table
            Of the type that was fitted, with a line for each column (or row) and each statistic that has
            a meaning for it: its label; ``statistic``; ``observed``; ``replicated`` and ``sd``, the mean
            and the standard deviation over the replicated tables; and ``p_value``, the share of
            replicated tables with a larger statistic (equal ones count half). The statistics are "mean",
            "sd", "min" and "max" of numbers; "lowest" and "highest", the shares of values at the lowest
            or highest observed one, if that occurs twice or more, as levels and zeros do; and "usual",
            the share of the most frequent value of a category.

        Notes
        -----
        A p-value near 0 or 1 shows a property of the data that the model does not reproduce. As the
        draws are given the same data, p-values are nearer to 0.5 than uniform ones. Values of which only
        a limit is known are left out.

        Examples
        --------
        >>> import fillrank as fr
        >>> data, _ = fr.synthetic(60, 10, rank=2, noise=0.5, missing=0.3, random_state=0)
        >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(data)
        >>> checked = model.predictive_check()
        >>> list(checked.columns)
        ['column', 'statistic', 'observed', 'replicated', 'sd', 'p_value']
        >>> len(checked)  # four statistics of ten columns
        40
        """
        check_choice("by", by, ("columns", "rows"))
        self.check_entries("Save it with its entries, by save(path, with_data=True).")
        return predictive_checks.predictive_check(self, by, n_draws, random_state)

    def loo(self, n_entries: int | None = None, random_state: int = 0) -> Loo:
        """Leave-one-out cross-validation of the entries, by Pareto-smoothed importance sampling.

        It estimates how well each entry would be predicted from all others, without a new fit.

        Parameters
        ----------
        n_entries : int, optional
            Take so many entries at random; by default all.
        random_state : int
            Which they are.

        Returns
        -------
        Loo
            ``elpd``, the expected log predictive density by entry; ``pareto_k``; ``p_loo``; their sums
            by `print`; and ``entries``, a table by row and column, those with the largest k first.

        Notes
        -----
        The estimate of an entry is reliable if its Pareto k is at most ``good_k``, which depends on the
        number of draws: 0.53 for the 128 draws of a model. If k is above 0.7, the entry changes the
        posterior so much that no number of draws would do: hold such entries out instead, as `score` and
        `EntryKFold` do. Values of which only a limit is known are left out.

        Examples
        --------
        >>> import fillrank as fr
        >>> data, _ = fr.synthetic(60, 40, rank=2, noise=0.5, missing=0.5, random_state=0)
        >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(data)
        >>> found = model.loo()
        >>> found.elpd.size == len(data), found.n_bad < 0.2 * len(data)
        (True, True)
        """
        self.check_draws("leave-one-out densities")
        self.check_entries("Save it with its entries, by save(path, with_data=True).")
        if n_entries is not None:
            check_integer("n_entries", n_entries, 1)
        seed = check_integer("random_state", random_state, 0)
        return entry_checks.leave_one_out_of(self, n_entries, seed)

    def prediction_diagnostics(self, rows: Any, columns: Any) -> Any:
        """Monte Carlo errors of the predictions of cells.

        Parameters
        ----------
        rows, columns : label or array of labels
            As in `predict`.

        Returns
        -------
        table
            Long, of the type that was fitted: row, column; ``sd``, the posterior standard deviation of
            the signal; ``mcse``, the Monte Carlo standard error of its mean; ``ess``, the effective
            sample size; and ``r_hat``. Those of columns that are not plain numbers are of the latent
            number, in standard units (of a category, of its most frequent level).

        Notes
        -----
        They are those of the stored draws, at most 128. Predictions are means over all draws of the run,
        which can be four times as many, so that their Monte Carlo error is at most about this one.

        Examples
        --------
        >>> import fillrank as fr
        >>> data, _ = fr.synthetic(60, 40, rank=2, noise=0.5, missing=0.5, random_state=0)
        >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(data)
        >>> model.prediction_diagnostics([0, 1], 5).columns.tolist()
        ['row', 'column', 'sd', 'mcse', 'ess', 'r_hat']
        """
        self.check_draws("Monte Carlo errors")
        cells = find_cells(self, rows, columns)
        fields = entry_checks.prediction_diagnostics(self, cells.rows, cells.columns)
        data = self.observations
        return to_long(data, data.row_labels[cells.rows], data.column_labels[cells.columns], fields)

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
        data, signal = self.observations, self.posterior.signal.low_rank
        labels = data.column_labels[self.posterior.latent_columns]
        data = replace(data, column_labels=labels)
        return to_arviz(
            traces,
            self.record.history,
            not_sampled(self.method, self.settings),
            data,
            signal.units,
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

        Examples
        --------
        >>> import fillrank as fr, os, tempfile
        >>> data, _ = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
        >>> model = fr.SoftImpute(penalty=1.0).fit(data)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "model.fillrank"), with_data=True)
        ...     os.listdir(folder)
        ['model.fillrank']
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
        write_model(path, parts, with_data and len(self.observations) > 0)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Completion:
        """The same as `fillrank.load`."""
        return load(path)

    def check_known(self, rows: Any, columns: Any) -> None:
        """Raise UnknownNameError if a row or a column is not known; it lists all of them.

        Parameters
        ----------
        rows, columns : label or array of labels
        """
        unknown_labels.check_known(self, rows, columns)


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


def _check_level(level: Any) -> None:
    check_real("level", level, "above 0 and below 1", lambda v: 0 < v < 1)
