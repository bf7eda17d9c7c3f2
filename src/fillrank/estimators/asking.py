"""Answers about cells: predictions, intervals, and all that is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fillrank.errors import InputError
from fillrank.estimators.fitted import Fitted, Unknown
from fillrank.posterior.completions import Completions
from fillrank.posterior.metrics import rmse
from fillrank.posterior.posterior import Kind
from fillrank.runtime.threads import one_blas_thread
from fillrank.table.frames import to_long
from fillrank.table.observations import Observations
from fillrank.validation import check_integer, check_real

# Asks a posterior about cells by their positions.
Question = Callable[[Any, np.ndarray, np.ndarray], Any]
# A block of predictions is kept below this number of cells.
_CELLS_AT_ONCE = 2**18


class Asking(Fitted):
    """A method that answers about cells."""

    def predict_interval(
        self,
        rows: Any,
        columns: Any,
        level: float = 0.9,
        kind: Kind = "observation",
        *,
        unknown: Unknown = "error",
    ) -> tuple[np.ndarray, np.ndarray]:
        """Credible intervals: a cell's value is in its interval with the given probability.

        Parameters
        ----------
        rows, columns : name or array of names
            As in `predict`.
        level : float
            Above 0 and below 1.
        kind : {"observation", "signal"}
            What is in the interval: a value as it would be observed, noise included, or the value
            without noise. The interval of an observation contains that of the signal.
        unknown : {"error", "prior"}
            As in `predict`.

        Returns
        -------
        low, high : ndarray
        """
        self._check_draws("intervals")
        _check_level(level)
        if kind not in ("signal", "observation"):
            raise InputError(f"kind must be 'signal' or 'observation', got {kind!r} instead.")
        i, j = self._positions(rows, columns, unknown)
        with self._workers() as workers:
            low, high = self._ask(
                lambda posterior, i, j: posterior.interval(i, j, level, kind, workers), i, j
            )
        return low, high

    def _ask(self, question: Question, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Answers about cells, each from the posterior that knows it; the last axis is the cells'.

        The position -1 is that of any row, or column, without entries.
        """
        unknown = (i < 0) + 2 * (j < 0)
        if not unknown.any():
            return np.asarray(question(self.posterior_, i, j))
        parts = {}
        for code in np.unique(unknown):
            cells = np.flatnonzero(unknown == code)
            posterior = self._posterior_of(bool(code & 1), bool(code & 2))
            parts[code] = cells, question(posterior, i[cells].clip(0), j[cells].clip(0))
        first = np.asarray(next(iter(parts.values()))[1])
        answers = np.empty((*first.shape[:-1], i.size), first.dtype)
        for cells, answer in parts.values():
            answers[..., cells] = answer
        return answers

    def _posterior_of(self, new_row: bool, new_column: bool) -> Any:
        """The posterior of the cells that were fitted; or of a row, a column or both without entries."""
        raise NotImplementedError

    def predict_block(self, rows: Any, columns: Any) -> np.ndarray:
        """Predictions of all cells of some rows and columns, by names: a matrix."""
        check_is_fitted(self)
        i = self.observations_.row_positions(rows)
        j = self.observations_.column_positions(columns)
        self._check_room(i.size * j.size, "Ask for fewer rows at a time.")
        with one_blas_thread():
            return self.posterior_.block(i, j)

    def predict_missing(
        self, level: float | None = None, n_draws: int = 0, random_state: int = 0
    ) -> Iterator[Any]:
        """All missing cells, as a stream of long tables that never holds the whole matrix.

        A table has at most 262,144 cells, or those of one row if that is more, and takes some 100 MB
        while it is made.

        Parameters
        ----------
        level : float, optional
            With it, each table also has the interval of this level for a new observation.
        n_draws : int
            With it, each table also has so many draws of what would be observed there: the same
            values as those of `sample_completions`.
        random_state : int
            Of the draws' noise.

        Yields
        ------
        table
            Of the kind of the table that was fitted, with the columns row, column, value,
            ``lower`` and ``upper`` if there is a level, and ``draw_1``, ``draw_2``, ... if there are
            draws.
        """
        self._check_entries("Save it with its entries, by save(path, with_data=True).")
        if level is not None:
            self._check_draws("intervals")
            _check_level(level)
        completions = self._completions(n_draws, random_state) if n_draws else None
        return self._missing(level, completions)

    def _completions(self, n: int, random_state: int) -> Completions:
        self._check_draws("draws")
        most = len(self.posterior_.draws)
        n = check_integer("the number of draws", n, 1, most)
        return Completions(self.posterior_, n, check_integer("random_state", random_state, 0))

    def _missing(self, level: float | None, completions: Completions | None) -> Iterator[Any]:
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
                if completions is not None:
                    with one_blas_thread():
                        for number in range(completions.n):
                            fields[f"draw_{number + 1}"] = completions.at(number, i, j)
                yield to_long(data, data.row_labels[i], data.column_labels[j], fields)

    def score(self, X: Any, y: None = None) -> float:
        """Minus the root mean squared error of the predictions of X's observed entries, by name.

        What scikit-learn's model selection maximises; `fillrank.score` has more measures.

        Parameters
        ----------
        X : Observations or table
            Entries whose rows and columns are known. An array is refused: its rows have no names, and
            those of a part of it would be taken for the first.
        y : None
            Not used; there for scikit-learn.
        """
        check_is_fitted(self)
        test = self._judge(X, reset=False)
        if not isinstance(X, Observations) and test.origin.layout in ("matrix", "sparse"):
            raise InputError(
                "score needs entries with names, got an array. Use fr.Observations.of(X); to cross-"
                "validate, give that as X, and cv=fr.EntryKFold()."
            )
        i, j = (
            self.observations_.row_positions(test.row_labels)[test.row_index],
            self.observations_.column_positions(test.column_labels)[test.column_index],
        )
        with self._workers() as workers:
            return -rmse(test.values, self.posterior_.predict(i, j, workers))


def _check_level(level: Any) -> None:
    check_real("level", level, "above 0 and below 1", lambda v: 0 < v < 1)
