"""Whole tables without holes: of the table that was fitted, and of new rows and columns."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from fillrank.errors import InputError, NotSupportedError, UnknownNameError
from fillrank.estimators.asking import Asking
from fillrank.estimators.checks import check_choice
from fillrank.estimators.fitted import Unknown
from fillrank.posterior.fold_in import fold_in, transposed
from fillrank.runtime.threads import one_blas_thread
from fillrank.table.entries import Entries
from fillrank.table.frames import is_data_frame, to_wide
from fillrank.table.observations import Observations
from fillrank.table.triplets import Triplets
from fillrank.table.units import standardise_new
from fillrank.validation import check_integer

# Of one row.
_NO_ENTRIES = Entries(np.zeros(2, np.int64), np.zeros(0, np.int64), np.zeros(0))
_NAMELESS = ("matrix", "sparse")
_STREAM = "Use fit(), and predict_missing(), which gives the missing cells in parts."
# New rows that are worked on at once: their draws stay below some 100 MB.
_ROWS_AT_ONCE = 4096


class Filling(Asking):
    """A method that fills tables."""

    folded_in_: list[str]  # of a model of new rows, of new columns or both: which are new
    _teachers: dict[str, Any]  # and the posterior that they were completed by

    def predict(self, rows: Any, columns: Any = None, *, unknown: Unknown = "error") -> np.ndarray:
        """Predictions, by names: posterior means, or the best matrix, or levels of ratings.

        Parameters
        ----------
        rows, columns : name or array of names
            The cells: as many rows as columns, or a single one of either. Tables without names of
            their own have 0, 1, 2, ...
            With ``columns=None``, ``rows`` is a table instead, with the columns of the one that was
            fitted, and the answer is the signal in all of its cells, observed or not.
        unknown : {"error", "prior"}
            What to do about names that are not known: raise an error, or predict what is known of any
            row or column before one of its entries is seen.

        Returns
        -------
        ndarray
            One number per pair; or a matrix of the shape of the table.
        """
        if columns is None:
            return self._signal(rows)
        i, j = self._positions(rows, columns, unknown)
        with self._workers() as workers:
            return self._ask(lambda posterior, i, j: posterior.predict(i, j, workers), i, j)

    def _signal(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if not (isinstance(X, Observations) or is_data_frame(X)) and np.ndim(X) == 0:
            raise InputError(
                "predict takes rows and columns; only rows came. Give both, or a whole table."
            )
        return self._complete(self._judge(X, reset=False))

    def transform(self, X: Any) -> Any:
        """Fill in the missing cells of a table with the columns of the one that was fitted.

        Each row is completed given the factors of the columns, as if it were new; what is observed
        stays as it is. `fold_in` has intervals for such rows, too.

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
        return self._out(observations, self._complete(observations))

    def fit_transform(self, X: Any, y: None = None) -> Any:
        """Fit, and fill in the missing cells of the same table."""
        observations = self._judge(X, reset=True)
        n_rows, n_columns = observations.shape
        self._check_room(n_rows * n_columns, _STREAM)  # before the fit, which may take long
        self._learn(observations)
        with one_blas_thread():  # more would make the bits depend on their number
            means = self.posterior_.block(np.arange(n_rows), np.arange(n_columns))
        return self._out(self.observations_, means)

    def _out(self, observations: Observations, matrix: np.ndarray) -> Any:
        """The filled table: of the kind that came in, or for the container that `set_output` named."""
        filled = _filled(observations, matrix)
        # In that container are features alone: no column of row names.
        is_set = _get_output_config("transform", self)["dense"] != "default"
        return matrix if is_set and filled.shape != matrix.shape else filled

    def _complete(self, observations: Observations) -> np.ndarray:
        """Predictions of all cells of new rows."""
        n_rows, n_columns = observations.shape
        self._check_room(n_rows * n_columns, "Give fewer rows at a time.")
        columns = self._known_columns(observations)
        entries = _placed(observations.by_row(), columns)
        matrix = np.empty((n_rows, n_columns))
        teacher = self._teacher("rows")
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            part = _rows_of(entries, block)
            with one_blas_thread():
                rows = teacher._fold_in(part, "rows")
                matrix[block] = rows.block(np.arange(rows.shape[0]), columns)
        return matrix

    def _known_columns(self, observations: Observations) -> np.ndarray:
        """Where the columns of another table stand in the one that was fitted."""
        known = self.observations_
        return _matched(observations, known, 1, known.column_positions, "columns")

    def _known_rows(self, observations: Observations) -> np.ndarray:
        """Where the rows of another table stand in the one that was fitted."""
        known = self.observations_
        return _matched(observations, known, 0, known.row_positions, "rows")

    def fold_in(self, table: Any, axis: Literal["rows", "columns"] = "rows") -> Self:
        """New rows, or new columns, without a new fit.

        Each is completed under every kept draw of what is known, so that its intervals are as wide as
        they should be. What is known does not change: a new row teaches the model nothing.

        Parameters
        ----------
        table : Observations, data frame, array or sparse matrix
            The new rows, with columns that are known: all of them, or some. Or the new columns, with
            rows that are known. A row without any entry is as uncertain as one is before anything is
            seen of it.
        axis : {"rows", "columns"}
            Which are new.

        Returns
        -------
        model
            Of the new rows in all known columns (or the new columns in all known rows). It can be
            asked whatever a fitted model can: `predict`, `predict_interval`, `recommend`, ... Further
            rows (or columns) that are folded into it are completed as by this model.

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
        check_is_fitted(self)
        check_choice("axis", axis, ("rows", "columns"))
        observations = Observations.of(table)
        known = self.observations_
        try:
            if axis == "rows":
                positions = self._known_columns(observations)
                entries = _placed(observations.by_row(), positions)
            else:
                positions = self._known_rows(observations)
                entries = _placed(observations.by_column(), positions)
        except UnknownNameError as error:
            side = "columns" if axis == "rows" else "rows"
            raise error.with_advice(
                f"New {axis} can have values only in {side} that the model was fitted on: leave others "
                "out."
            ) from error
        teacher = self._teacher(axis)
        with one_blas_thread():
            posterior = teacher._fold_in(entries, axis)
        row_index, column_index = observations.row_index, observations.column_index
        if axis == "rows":
            names = observations.row_labels, known.column_labels
            column_index = positions[column_index]
        else:
            names = known.row_labels, observations.column_labels
            row_index = positions[row_index]
        triplets = Triplets(row_index, column_index, observations.values)
        model = copy.copy(self)
        model.posterior_ = posterior
        model.observations_ = Observations.from_positions(triplets, *names, observations.origin)
        model.n_features_in_ = len(names[1])
        if axis == "columns":
            model.__dict__.pop("feature_names_in_", None)
        model.folded_in_ = sorted({*self._new_sides(), axis})
        model._teachers = getattr(self, "_teachers", {}) | {axis: teacher.posterior_}
        model._forget_run()
        return model

    def _teacher(self, axis: Literal["rows", "columns"]) -> Self:
        """The model that new rows (or columns) are completed by: the one that was fitted.

        What was folded in before has taught nothing, and may be too little to say what rows are like.
        """
        new, teachers = self._new_sides(), getattr(self, "_teachers", {})
        if axis not in new:
            return self
        if len(new) == 2 or axis not in teachers:  # as in a model from a file
            raise NotSupportedError(
                f"this model of new {' and '.join(new)} cannot take further {axis}: it does not know "
                f"the {axis} of the fit. Give them to the model that it came from."
            )
        teacher = copy.copy(self)
        teacher.posterior_ = teachers[axis]
        return teacher

    def _new_sides(self) -> list[str]:
        return getattr(self, "folded_in_", [])

    def _forget_fold_in(self) -> None:
        for name in ("folded_in_", "_teachers"):
            self.__dict__.pop(name, None)

    def _fold_in(self, entries: Entries, axis: Literal["rows", "columns"]) -> Any:
        """The posterior of new rows or columns; entries are at positions of the other side, at fit."""
        location, scale, _ = self.posterior_.units
        standard = entries._replace(values=standardise_new(entries.values, location, scale))
        with self._workers() as workers:
            if axis == "rows":
                return fold_in(self.posterior_, standard, workers)
            # Another seed: new columns of new rows share no chance with them.
            columns = fold_in(transposed(self.posterior_), standard, workers, seed=1)
            return transposed(columns)

    def _posterior_of(self, new_row: bool, new_column: bool) -> Any:
        model = copy.copy(self)
        with one_blas_thread():
            if new_row:
                model.posterior_ = self._teacher("rows")._fold_in(_NO_ENTRIES, "rows")
            if new_column:
                model.posterior_ = model._teacher("columns")._fold_in(_NO_ENTRIES, "columns")
        return model.posterior_

    def _forget_run(self) -> None:
        """Let go of what belongs to the rows and columns of the fit."""

    def sample_completions(self, n: int = 5, random_state: int = 0) -> list[Any]:
        """Completed tables, each with other values in the holes: multiple imputation.

        The values are draws of what would be observed there, noise included. Analyse each table as if
        it had been complete, and pool the results by Rubin's rules: what is not known about the holes
        is then part of the standard errors (docs/life_of_a_model.md has an example).

        Parameters
        ----------
        n : int
            At most as many as draws are kept.
        random_state : int
            Of the noise: the same number gives the same tables.

        Returns
        -------
        list of tables
            Of the kind of the table that was fitted. `predict_missing` with ``n_draws`` streams the
            same values.
        """
        self._check_entries("Save it with its entries, by save(path, with_data=True).")
        check_integer("n", n, 1)
        completions = self._completions(n, random_state)
        shape = self.observations_.shape
        self._check_room(n * math.prod(shape), "Use predict_missing(n_draws=...), in parts.")
        with one_blas_thread():
            return [
                _filled(
                    self.observations_,
                    np.array([completions.row(number, i) for i in range(shape[0])]),
                )
                for number in range(n)
            ]


def _matched(
    new: Observations,
    known: Observations,
    side: Literal[0, 1],
    find: Callable[[np.ndarray], np.ndarray],
    what: str,
) -> np.ndarray:
    """Positions of the columns (or rows) of a new table: by name, or by place if there are no names.

    A table without names must have as many as are known. Names are matched by place only if those
    that are known are mere numbers, as many, and not these.
    """
    n = known.shape[side]
    by_place = np.arange(n)
    if new.origin.layout in _NAMELESS:
        if new.shape[side] != n:
            raise InputError(
                f"an array without names must have all {n} {what}, in their order; got "
                f"{new.shape[side]}. Fill it up with NaN, or give a table with names."
            )
        return by_place
    try:
        return find((new.row_labels, new.column_labels)[side])
    except UnknownNameError:
        numbered = np.array_equal((known.row_labels, known.column_labels)[side], by_place)
        if known.origin.layout in _NAMELESS and numbered and new.shape[side] == n:
            return by_place
        raise


def _placed(entries: Entries, positions: np.ndarray) -> Entries:
    """Entries at the positions that their columns have at fit."""
    return entries._replace(indices=positions[entries.indices])


def _rows_of(entries: Entries, block: slice) -> Entries:
    """Some of the rows."""
    pointers = entries.pointers[block.start : block.stop + 1]
    part = slice(pointers[0], pointers[-1])
    return Entries(pointers - pointers[0], entries.indices[part], entries.values[part])


def _filled(observations: Observations, matrix: np.ndarray) -> Any:
    """The matrix with the observed values put in, as the kind of table that came in."""
    matrix[observations.row_index, observations.column_index] = observations.values
    return to_wide(observations, matrix)
