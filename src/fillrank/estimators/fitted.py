"""What all methods hold once they are fitted, and how they understand tables and names."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from fillrank.errors import InputError, NotSupportedError, Setting, Text, UnknownNameError
from fillrank.estimators.checks import check_choice, warn_of_units
from fillrank.runtime.memory import check_memory, format_bytes
from fillrank.runtime.progress import report_progress
from fillrank.runtime.threads import Workers, available_threads
from fillrank.table.frames import is_data_frame
from fillrank.table.observations import Observations
from fillrank.table.triplets import dense_matrix

# What is done about names that the model does not know.
Unknown = Literal["error", "prior"]
PREDICT_UNKNOWN: Text = (
    "With ",
    Setting("unknown", "prior"),
    " they are predicted as rows and columns without entries.",
)
# Above this it is worth a word.
_MUCH = 2**30
_ALLOWED = (
    "X must be a data frame, or a matrix of real numbers: of two dimensions, with at least one row and "
    "one column."
)


class Fitted(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A method with ``posterior_`` and ``observations_``, which subclasses set in `_fit`."""

    posterior_: Any  # a Posterior or an OrdinalPosterior
    observations_: Observations
    n_threads: int | None
    progress: bool
    # A cluster is no property of the samples, which scikit-learn would pass on.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"client": UNUSED}
    # Whether columns can be predicted that were not there at the fit.
    _takes_new_columns = True
    # What a table of all cells costs while it is made: the numbers themselves, and copies on the way.
    _bytes_a_cell = 24

    def fit(self, X: Any, y: None = None, *, client: Any = None) -> Self:
        """Learn from the observed entries.

        Parameters
        ----------
        X : Observations, data frame, array, masked array or sparse matrix
            In an array NaN is missing; in a sparse matrix what is not stored is missing. A data
            frame is wide, unless its columns are named like a long table's. With a client also a
            Dask data frame in long form, or the path or glob of Parquet files with such tables, which
            workers read.
        y : None
            Not used; there for scikit-learn.
        client : dask.distributed.Client, optional
            A cluster whose workers hold the entries and draw the factors, with `GASR`. The same seed
            gives the same numbers as on one machine, but for a table without holes, which has a way
            of its own there. A table that workers have read is not in the model: it knows the names.
        """
        if client is None:
            self._learn(self._judge(X, reset=True))
        else:
            self._fit_on_cluster(X, client)
        return self

    def _fit_on_cluster(self, X: Any, client: Any) -> None:
        raise NotSupportedError(
            f"{type(self).__name__} works on one machine; on a cluster there is "
            "fr.GASR().fit(data, client=client)."
        )

    def _learn(self, observations: Observations) -> None:
        self._forget_fold_in()
        warn_of_units(observations)
        self._fit(observations)

    def _forget_fold_in(self) -> None:
        """Let go of what a model of new rows or columns has: a fit makes it one of its own."""

    def _fit(self, observations: Observations) -> None:
        raise NotImplementedError

    def _judge(self, X: Any, reset: bool) -> Observations:
        """Take the input, and note or compare its columns as scikit-learn has it."""
        if isinstance(X, Observations) or is_data_frame(X):
            observations = Observations.of(X)
            if is_data_frame(X) and len(X.columns) == observations.shape[1]:
                _note_columns(self, X, reset)
            elif reset:
                self.n_features_in_ = observations.shape[1]
            return observations
        if isinstance(X, str | os.PathLike):
            raise InputError(f"X must be a table, got a path, {str(X)!r}; fr.read(path) reads it.")
        if isinstance(X, np.ma.MaskedArray):  # scikit-learn would drop the mask
            X = dense_matrix(X)
        X = _real_matrix(self, X)
        _note_columns(self, X, reset)
        return Observations.of(X)

    def _workers(self) -> Workers:
        return Workers(available_threads(self.n_threads))

    def _positions(
        self, rows: Any, columns: Any, unknown: Unknown
    ) -> tuple[np.ndarray, np.ndarray]:
        """The positions of cells by their names: as many rows as columns, or one of either.

        With ``unknown="prior"``, names that are not known have the position -1.
        """
        check_is_fitted(self)
        check_choice("unknown", unknown, ("error", "prior"))
        allow = unknown == "prior"
        try:
            with self._workers() as workers:
                i, j = workers.both(
                    lambda: self.observations_.row_positions(rows, allow),
                    lambda: self.observations_.column_positions(columns, allow),
                    np.size(rows),
                )
        except UnknownNameError:
            self.check_known(rows, columns)
            raise
        if i.size != j.size and 1 not in (i.size, j.size):
            raise InputError(
                f"rows and columns must be as many, or one of them single; "
                f"got {i.size} rows and {j.size} columns."
            )
        i, j = np.broadcast_arrays(i, j)
        return np.ascontiguousarray(i), np.ascontiguousarray(j)

    def check_known(self, rows: Any, columns: Any) -> None:
        """Raise UnknownNameError if the model does not know a row or a column; it lists all of them.

        Parameters
        ----------
        rows, columns : label or array of labels
        """
        check_is_fitted(self)
        data, errors = self.observations_, {}
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
        if "columns" in errors and not self._takes_new_columns:
            raise unknown
        raise unknown.with_advice(PREDICT_UNKNOWN)

    def _check_draws(self, what: str) -> None:
        """Refuse, if the method has no draws of its posterior."""
        raise NotImplementedError

    def _check_entries(self, remedy: str) -> None:
        """Refuse, if the model has come from a file without its entries, or from a cluster."""
        check_is_fitted(self)
        if len(self.observations_) == 0:
            raise NotSupportedError(
                "this model was saved, or came from a cluster, without the entries that it was fitted "
                f"on, so it does not know which cells were observed. {remedy}"
            )

    def _check_room(self, n_cells: int, instead: str) -> None:
        """Say what a table of so many cells takes, if that is much, and refuse what cannot fit."""
        n_bytes = self._bytes_a_cell * n_cells
        check_memory(n_bytes, f"a table of {n_cells:,} cells", instead)
        report_progress(
            f"a table of {n_cells:,} cells takes {format_bytes(n_bytes)} while it is made.",
            self.progress and n_bytes >= _MUCH,
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns, as text; x0, x1, ... for those of an array.

        Parameters
        ----------
        input_features : array of str, optional
            Names to take instead, as many as there are columns.
        """
        check_is_fitted(self)
        labels = self.observations_.column_labels
        layout = self.observations_.origin.layout
        named = layout in ("long", "triplets") or all(isinstance(name, str) for name in labels)
        if input_features is not None or hasattr(self, "feature_names_in_") or not named:
            return super().get_feature_names_out(input_features)
        return np.array([str(name) for name in labels], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def _real_matrix(model: Any, X: Any) -> Any:
    """An array or a sparse matrix as scikit-learn takes it; all else is refused."""
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "MmSUV":  # some of which it would convert
        raise InputError(f"{_ALLOWED} Got dtype {dtype}.")
    try:
        return check_array(
            X, accept_sparse=True, dtype=np.float64, ensure_all_finite=False, estimator=model
        )
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, TypeError) and dtype is not None:
            raise  # an array of objects: scikit-learn asks for a TypeError
        first, *more = str(error).splitlines()
        # Between these, it shows the whole array.
        words = [first, *(line for line in more if line.startswith("Reshape"))]
        raise InputError(f"{_ALLOWED} {' '.join(words)}") from error


def _note_columns(model: Any, X: Any, reset: bool) -> None:
    """Note the number and names of the columns, or compare them, as scikit-learn does."""
    try:
        validate_data(model, X, skip_check_array=True, reset=reset)
    except ValueError as error:
        raise InputError(str(error)) from error
