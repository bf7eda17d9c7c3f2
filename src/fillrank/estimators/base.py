"""What all estimators share: input validation, and the methods of scikit-learn and of `Completion`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from fillrank.completion import Completion, load
from fillrank.completions.alignment import WITHOUT_LABELS, align
from fillrank.completions.missing_cells import CompletionLayout
from fillrank.completions.new_rows import Kinds
from fillrank.completions.summary import Summary
from fillrank.completions.unknown_labels import Unknown
from fillrank.errors import InputError, NotSupportedError, ReadError
from fillrank.estimators.indicator import (
    append_indicators,
    indicator_columns,
    indicator_names,
    missing_indicators,
)
from fillrank.features.new_rows import Axis
from fillrank.posterior.predictive import Kind, Statistic
from fillrank.posterior.protocol import Posterior
from fillrank.posterior.recommend import By
from fillrank.posterior.record import Record
from fillrank.runtime.memory import check_table_memory
from fillrank.runtime.threads import Workers, available_threads
from fillrank.table.frames import fill_in, is_data_frame
from fillrank.table.input import as_matrix
from fillrank.table.observations import Observations
from fillrank.table.other_values import refuse_other_values
from fillrank.table.weights import refuse_weights
from fillrank.validation import check_choice

# Settings that belong to the machine or to a table, and not to the model.
_NOT_STORED = {"add_indicator", "bounds", "checkpoint", "kinds", "missing_values"}


def _has_levels(estimator: Any) -> bool:
    """Whether a fit has columns of levels.

    Others have no probabilities: scikit-learn would take them for classifiers.
    """
    posterior = vars(estimator).get("posterior_")
    return posterior is not None and bool(posterior.level_columns.any())


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


class Estimator(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A method of matrix completion. Subclasses have settings and `_complete`.

    ``fit`` stores a `Completion` as ``completion_``, and its record as fitted attributes. Predictions
    and everything else after a fit are methods of the completion; those here delegate to it.
    """

    completion_: Completion
    observations_: Observations
    posterior_: Posterior
    n_threads: int | None
    progress: bool
    add_indicator: bool
    missing_values: Any
    # The client is not metadata of the samples, which scikit-learn would route.
    __metadata_request__fit: ClassVar[dict[str, str]] = {
        "client": UNUSED,
        "row_features": UNUSED,
        "column_features": UNUSED,
    }
    __metadata_request__predict: ClassVar[dict[str, str]] = {
        "row_features": UNUSED,
        "column_features": UNUSED,
    }
    _predicts_levels: ClassVar[bool] = False

    def fit(self, X: Any, y: None = None, *, client: Any = None) -> Self:
        """Fit the model to the observed entries.

        Parameters
        ----------
        X : Observations, data frame, array, masked array or sparse matrix
            In an array NaN is missing; in a sparse matrix what is not stored is missing. A data
            frame is wide, unless its columns are named like those of a long table.
        y : None
            Not used; present for scikit-learn.
        client : dask.distributed.Client, optional
            Not allowed: only `GASR` and `BPMF` can use a cluster.

        Returns
        -------
        self
        """
        if client is None:
            self._fit(self._observations(X, reset=True))
        else:
            self._fit_on_cluster(X, client)
        return self

    def _fit(self, observations: Observations) -> None:
        self._check_weights(observations)
        self._complete(observations)

    def _check_weights(self, observations: Observations) -> None:
        """Reject weights of entries, and values that are not numbers, unless the method uses them."""
        refuse_weights(observations, type(self).__name__)
        refuse_other_values(observations, type(self).__name__)

    def _complete(self, observations: Observations) -> None:
        """Fit, and store the result with `_store`."""
        raise NotImplementedError

    def _fit_on_cluster(self, X: Any, client: Any) -> None:
        raise NotSupportedError(
            f"{type(self).__name__} runs on one machine only; on a cluster use "
            "fr.GASR().fit(data, client=client), or fr.BPMF()."
        )

    def _store(self, observations: Observations, posterior: Posterior, record: Record) -> None:
        """Set ``completion_`` and the fitted attributes."""
        if "completion_" in vars(self):
            for name in self.completion_.record.fitted_attributes():
                delattr(self, name)
            self.__dict__.pop("levels_", None)
        settings = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in _NOT_STORED
        }
        names = vars(self).get("feature_names_in_")
        self.completion_ = Completion(
            type(self).__name__, settings, observations, posterior, record, names
        )
        self.observations_ = observations
        self.posterior_ = posterior
        if posterior.levels is not None:
            self.levels_ = posterior.levels
        for name, value in record.fitted_attributes().items():
            setattr(self, name, value)

    def _observations(self, X: Any, reset: bool, weights: Any = None) -> Observations:
        """The observed entries of X; its columns are noted or compared as scikit-learn does."""
        check_choice("add_indicator", self.add_indicator, (True, False))
        missing = None if _is_nan(self.missing_values) else self.missing_values
        like = None if reset else self.observations_
        if isinstance(X, Observations) or is_data_frame(X):
            observations = Observations.of(X, weights, like=like, missing_values=missing)
            if is_data_frame(X) and len(X.columns) == observations.shape[1]:
                self._check_columns(X, reset)
            elif reset:
                self.n_features_in_ = observations.shape[1]
                self.__dict__.pop("feature_names_in_", None)
            return observations
        X = as_matrix(X, self)
        self._check_columns(X, reset)
        return Observations.of(X, weights, like=like, missing_values=missing)

    def _check_columns(self, X: Any, reset: bool) -> None:
        try:
            validate_data(self, X, skip_check_array=True, reset=reset)
        except ValueError as error:
            raise InputError(str(error)) from error

    def _workers(self) -> Workers:
        return Workers(available_threads(self.n_threads))

    @property
    def _completion(self) -> Completion:
        """The completion, with the present settings of threads and progress; an error before a fit."""
        check_is_fitted(self)
        return self.completion_.with_settings(n_threads=self.n_threads, progress=self.progress)

    def _repr_html_inner(self) -> str:
        """The HTML of scikit-learn; after a fit, below the summary."""
        settings = super()._repr_html_inner()
        if "completion_" not in vars(self):
            return settings
        return self.completion_.summary()._repr_html_() + settings

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    # Methods after a fit

    def summary(self) -> Summary:
        """A short summary of the fit; see `Completion.summary`."""
        return self._completion.summary()

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
        """Predict cells by labels, or all cells of a table; see `Completion.predict`."""
        completion = self._completion
        is_known = isinstance(rows, Observations) or is_data_frame(rows)
        if columns is None and issparse(rows):
            # For a sparse matrix the checks of scikit-learn allow one prediction per row, or an error.
            raise InputError(
                "predict takes a dense table, because it has a prediction for every cell; got a sparse "
                "matrix",
                advice=[
                    "transform(X) fills in all of its cells and returns a dense array.",
                    "fold_in(X).predict(rows, columns) predicts the cells that you name.",
                ],
            )
        if columns is None and (is_known or np.ndim(rows) > 0):
            return completion.predict_rows(self._observations(rows, reset=False))
        return completion.predict(
            rows,
            columns,
            statistic=statistic,
            unknown=unknown,
            row_features=row_features,
            column_features=column_features,
        )

    @available_if(_has_levels)
    def predict_proba(self, rows: Any, column: Any) -> Any:
        """The probabilities of the levels of a column; see `Completion.predict_proba`."""
        return self._completion.predict_proba(rows, column)

    @available_if(_has_levels)
    def predict_set(self, rows: Any, column: Any, level: float = 0.9) -> list[list[Any]]:
        """Credible sets of the levels of a column; see `Completion.predict_set`."""
        return self._completion.predict_set(rows, column, level)

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
        """Credible intervals of cells by labels; see `Completion.predict_interval`."""
        return self._completion.predict_interval(
            rows,
            columns,
            level,
            kind,
            unknown=unknown,
            row_features=row_features,
            column_features=column_features,
        )

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
        """Log predictive densities of values of cells, by labels; see `Completion.log_density`."""
        return self._completion.log_density(
            rows,
            columns,
            values,
            unknown=unknown,
            row_features=row_features,
            column_features=column_features,
        )

    def predict_block(self, rows: Any, columns: Any) -> np.ndarray:
        """Predict all cells of some rows and columns; see `Completion.predict_block`."""
        return self._completion.predict_block(rows, columns)

    def predict_missing(
        self, level: float | None = None, n_draws: int = 0, random_state: int = 0
    ) -> Iterator[Any]:
        """Predict all missing cells, as a stream of tables; see `Completion.predict_missing`."""
        return self._completion.predict_missing(level, n_draws, random_state)

    def transform(self, X: Any) -> Any:
        """Fill in the missing cells of a table with the fitted columns; see `Completion.transform`."""
        completion = self._completion
        observations = self._observations(X, reset=False)
        return self._output(observations, completion.complete_rows(observations))

    def fit_transform(self, X: Any, y: None = None) -> Any:
        """Fit, and fill in the missing cells of the same table.

        Parameters
        ----------
        X : table
            As in `fit`.
        y : None
            Not used; present for scikit-learn.

        Returns
        -------
        table
            Of the same type.
        """
        return self._fit_and_fill(self._observations(X, reset=True), self._fit)

    def _fit_and_fill(self, observations: Observations, fit: Callable[[Observations], None]) -> Any:
        n_rows, n_columns = observations.shape
        remedy = "Use fit(), and predict_missing(), which gives the missing cells in parts."
        # Checked before the fit, which may take long.
        check_table_memory(n_rows * n_columns, remedy, self._predicts_levels, self.progress)
        fit(observations)
        return self._output(observations, self.completion_.predict_table())

    def _output(self, observations: Observations, matrix: np.ndarray) -> Any:
        """The filled table, of the given type, or in the container set by `set_output`."""
        filled = fill_in(observations, matrix)
        # The container has only features: no column of row labels.
        is_set = _get_output_config("transform", self)["dense"] != "default"
        if is_set and filled.shape != matrix.shape:
            filled = matrix
        if not self.add_indicator:
            return filled
        columns = align(self.observations_, observations, "columns")
        at = np.flatnonzero(np.isin(columns, indicator_columns(self.observations_)))
        names = indicator_names(observations.column_labels[at])
        return append_indicators(filled, missing_indicators(observations, at), names)

    def score(self, X: Any, y: None = None) -> float:
        """Minus the root mean squared error, for scikit-learn.

        `fillrank.score` has more measures.

        Parameters
        ----------
        X : table
            Held-out entries of known rows, which are found by their labels; see `Completion.score`. If
            no label is known, or in an array, which has no labels, the rows are new ones. A fifth of
            their entries is held out and predicted from the others, so that cross-validation over rows
            measures the error of `transform`.
        y : None
            Not used; present for scikit-learn.

        Returns
        -------
        float
        """
        completion = self._completion
        observations = self._observations(X, reset=False)
        if not isinstance(X, Observations) and self._are_new(observations):
            return completion.score_new_rows(observations)
        return completion.score(X)

    def _are_new(self, observations: Observations) -> bool:
        """Whether the rows of a table are not those of the fit."""
        if observations.origin.layout in WITHOUT_LABELS:
            return True
        known = self.observations_.row_positions(observations.row_labels, allow_unknown=True)
        return bool((known < 0).all())

    def fold_in(
        self,
        table: Any = None,
        axis: Axis = "rows",
        *,
        row_features: Any = None,
        column_features: Any = None,
        kinds: Kinds = "auto",
    ) -> Completion:
        """Complete new rows or columns without a new fit; see `Completion.fold_in`."""
        return self._completion.fold_in(
            table, axis, row_features=row_features, column_features=column_features, kinds=kinds
        )

    def update(self, more_entries: Any, axis: Axis = "rows") -> Completion:
        """Learn from new entries of known rows, without a new fit; see `Completion.update`."""
        return self._completion.update(more_entries, axis)

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
        """The n best columns for some rows, or for all; see `Completion.recommend`."""
        return self._completion.recommend(
            rows,
            n,
            by,
            quantile=quantile,
            leave_out=leave_out,
            only=only,
            random_state=random_state,
            row_features=row_features,
        )

    def sample_completions(
        self, n: int = 5, random_state: int = 0, *, layout: CompletionLayout = "list"
    ) -> Any:
        """Draw complete tables; see `Completion.sample_completions`."""
        return self._completion.sample_completions(n, random_state, layout=layout)

    def save(self, path: str | os.PathLike[str], *, with_data: bool = False) -> None:
        """Save to a file, which `fillrank.load` reads; see `Completion.save`."""
        self._completion.save(path, with_data=with_data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Completion:
        """Load a file of this method; `fillrank.load` takes all methods."""
        completion = load(path)
        if completion.method != cls.__name__:
            raise ReadError(
                f"{Path(path)} cannot be loaded: it is a model of {completion.method}, not of "
                f"{cls.__name__}. Use fillrank.load."
            )
        return completion

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The column labels as text; x0, x1, ... for those of an array; and those of indicators.

        Parameters
        ----------
        input_features : array of str, optional
            Names to use instead, as many as there are columns.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        labels = self.observations_.column_labels
        layout = self.observations_.origin.layout
        named = layout in ("long", "triplets") or all(isinstance(name, str) for name in labels)
        if input_features is not None or "feature_names_in_" in vars(self) or not named:
            names = super().get_feature_names_out(input_features)
        else:
            names = np.array([str(name) for name in labels], dtype=object)
        if not self.add_indicator:
            return names
        indicators = indicator_names(names[indicator_columns(self.observations_)])
        return np.concatenate([names, indicators])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
