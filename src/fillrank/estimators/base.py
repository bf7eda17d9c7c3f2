"""The face that all methods share: tables in, answers by the users' own names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fillrank.data.checks import check_real
from fillrank.data.entries import Entries
from fillrank.data.matrices import dense_matrix
from fillrank.data.observations import Observations
from fillrank.data.tables import is_table, to_long, to_wide
from fillrank.errors import InputError
from fillrank.estimators.checks import warn_of_units
from fillrank.kernels.workers import Workers
from fillrank.posterior.fold_in import complete_rows
from fillrank.posterior.posterior import Kind

# A block of predictions is kept below this number of cells.
_CELLS_AT_ONCE = 2**18


class MatrixCompleter(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What a fitted method can be asked. Subclasses set ``posterior_`` in `_fit`."""

    posterior_: Any  # a Posterior or an OrdinalPosterior
    n_threads: int | None

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn from the observed entries.

        Parameters
        ----------
        X : Observations, data frame, array, masked array or sparse matrix
            In an array NaN is missing; in a sparse matrix what is not stored is missing. A data
            frame is wide, unless its columns are named like a long table's.
        y : None
            Not used; there for scikit-learn.
        """
        observations = self._judge(X, reset=True)
        warn_of_units(observations)
        self._fit(observations)
        return self

    def _fit(self, observations: Observations) -> None:
        raise NotImplementedError

    def _judge(self, X: Any, reset: bool) -> Observations:
        """Take the input, and note or compare its columns as scikit-learn has it."""
        if isinstance(X, Observations) or is_table(X):
            observations = Observations.of(X)
            if is_table(X) and len(X.columns) == observations.shape[1]:
                validate_data(self, X, skip_check_array=True, reset=reset)
            elif reset:
                self.n_features_in_ = observations.shape[1]
            return observations
        if isinstance(X, str | os.PathLike):
            raise InputError(f"X must be a table, got a path, {str(X)!r}; fr.read(path) reads it.")
        if isinstance(X, np.ma.MaskedArray):  # scikit-learn would drop the mask
            X = dense_matrix(X)
        return Observations.of(
            validate_data(
                self, X, accept_sparse=True, dtype=np.float64, ensure_all_finite=False, reset=reset
            )
        )

    def _columns_of(self, observations: Observations) -> np.ndarray:
        """Where the columns of another table stand in the one that was fitted.

        By name; or by position, if one of the two has no names and they are as many.
        """
        nameless = {"matrix", "sparse"} & {
            observations.origin.layout,
            self.observations_.origin.layout,
        }
        if nameless and observations.shape[1] == self.n_features_in_:
            return np.arange(self.n_features_in_)
        return self.observations_.column_positions(observations.column_labels)

    def _workers(self) -> Workers:
        return Workers(available_threads(self.n_threads))

    def _positions(self, rows: Any, columns: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        i = self.observations_.row_positions(rows)
        j = self.observations_.column_positions(columns)
        if i.size != j.size and 1 not in (i.size, j.size):
            raise InputError(
                f"rows and columns must be as many, or one of them single; "
                f"got {i.size} rows and {j.size} columns."
            )
        i, j = np.broadcast_arrays(i, j)
        return np.ascontiguousarray(i), np.ascontiguousarray(j)

    def predict(self, rows: Any, columns: Any = None) -> np.ndarray:
        """Predictions, by names: posterior means, or the best matrix, or levels of ratings.

        Parameters
        ----------
        rows, columns : name or array of names
            The cells: as many rows as columns, or a single one of either. Tables without names of
            their own have 0, 1, 2, ...
            With ``columns=None``, ``rows`` is a table instead, with the columns of the one that was
            fitted, and the answer is the signal in all of its cells, observed or not.

        Returns
        -------
        ndarray
            One number per pair; or a matrix of the shape of the table.
        """
        if columns is None:
            return self._signal(rows)
        i, j = self._positions(rows, columns)
        with self._workers() as workers:
            return self.posterior_.predict(i, j, workers)

    def predict_interval(
        self, rows: Any, columns: Any, level: float = 0.9, kind: Kind = "signal"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals that hold a cell with the given probability.

        Parameters
        ----------
        rows, columns : name or array of names
            As in `predict`.
        level : float
            Above 0 and below 1.
        kind : {"signal", "observation"}
            What is in the interval: the noise-free value, or a new noisy observation of it.

        Returns
        -------
        low, high : ndarray
        """
        self._check_intervals()
        _check_level(level)
        if kind not in ("signal", "observation"):
            raise InputError(f"kind must be 'signal' or 'observation', got {kind!r} instead.")
        i, j = self._positions(rows, columns)
        with self._workers() as workers:
            return self.posterior_.interval(i, j, level, kind, workers)

    def predict_block(self, rows: Any, columns: Any) -> np.ndarray:
        """Predictions of all cells of some rows and columns, by names: a matrix."""
        check_is_fitted(self)
        i = self.observations_.row_positions(rows)
        with one_blas_thread():
            return self.posterior_.block(i, self.observations_.column_positions(columns))

    def predict_missing(self, level: float | None = None) -> Iterator[Any]:
        """All missing cells, as a stream of long tables that never holds the whole matrix.

        Parameters
        ----------
        level : float, optional
            With it, each table also has the interval of this level for a new observation.

        Yields
        ------
        table
            Of the kind of the table that was fitted, with the columns row, column, value, and
            ``lower`` and ``upper`` if there is a level.
        """
        check_is_fitted(self)
        if level is not None:
            self._check_intervals()
            _check_level(level)
        return self._missing(level)

    def _check_intervals(self) -> None:
        """Refuse, if the method has no posterior."""

    def _missing(self, level: float | None) -> Iterator[Any]:
        data = self.observations_
        n_rows, n_columns = data.shape
        at_once = max(1, _CELLS_AT_ONCE // n_columns)
        with self._workers() as workers:
            for start in range(0, n_rows, at_once):
                i, j = data.missing_positions(start, min(start + at_once, n_rows))
                if i.size == 0:
                    continue
                fields = {"value": self.posterior_.predict(i, j, workers)}
                if level is not None:
                    low, high = self.posterior_.interval(i, j, level, "observation", workers)
                    fields |= {"lower": low, "upper": high}
                yield to_long(data, data.row_labels[i], data.column_labels[j], fields)

    def transform(self, X: Any) -> Any:
        """Fill in the missing cells of a table with the columns of the one that was fitted.

        Each row is completed given the factors of the columns, as if it were new; what is observed
        stays as it is.

        Parameters
        ----------
        X : table
            Of any kind that `fit` takes.

        Returns
        -------
        table
            Of the kind that came in.
        """
        check_is_fitted(self)
        observations = self._judge(X, reset=False)
        return _filled(observations, self._complete(observations))

    def fit_transform(self, X: Any, y: None = None) -> Any:
        """Fit, and fill in the missing cells of the same table."""
        self.fit(X)
        n_rows, n_columns = self.observations_.shape
        with one_blas_thread():  # more would make the bits depend on their number
            means = self.posterior_.block(np.arange(n_rows), np.arange(n_columns))
        return _filled(self.observations_, means)

    def _signal(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if not (isinstance(X, Observations) or is_table(X)) and np.ndim(X) == 0:
            raise InputError(
                "predict takes rows and columns; only rows came. Give both, or a whole table."
            )
        return self._complete(self._judge(X, reset=False))

    def _complete(self, observations: Observations) -> np.ndarray:
        columns = self._columns_of(observations)
        with one_blas_thread():
            return self._complete_rows(observations.by_row(), columns)

    def _complete_rows(self, entries: Entries, columns: np.ndarray) -> np.ndarray:
        """Predictions of new rows in all of the given columns (positions at fit)."""
        return complete_rows(self.posterior_, entries, columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def one_blas_thread() -> Any:
    """Linear algebra on one thread, for as long as the context lasts.

    Blocks of 30 columns or so are faster that way, and many times so on a busy machine.
    """
    return threadpool_limits(1, user_api="blas")


def available_threads(n_threads: int | None) -> int:
    """The number of threads to use: what was asked for, or all that this process may run on."""
    if n_threads is not None:
        return n_threads
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_level(level: Any) -> None:
    check_real("level", level, "above 0 and below 1", lambda v: 0 < v < 1)


def _filled(observations: Observations, matrix: np.ndarray) -> Any:
    """The matrix with the observed values put in, as the kind of table that came in."""
    matrix[observations.row_index, observations.column_index] = observations.values
    return to_wide(observations, matrix)
