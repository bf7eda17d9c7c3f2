"""Which cells can be recommended: what users leave out, and the columns that they choose from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from fillrank.completions.alignment import at_known_positions
from fillrank.completions.fitted_table import FittedTable
from fillrank.errors import Setting, UnknownNameError
from fillrank.posterior.recommend import LeftOut, nothing_left_out, seen, union
from fillrank.table.frames import is_data_frame
from fillrank.table.labels import as_labels
from fillrank.table.observations import Observations
from fillrank.validation import check_choice

_NO_COLUMNS = np.zeros(0, dtype=np.int64)


class Candidates(NamedTuple):
    """Which cells can be recommended, by position.

    ``only`` are the columns to choose from, None for all. Cells of ``observed`` are left out, and
    further columns of known rows by position, and of new rows by label.
    """

    only: np.ndarray | None
    observed: Observations | None
    of_known: Mapping[int, np.ndarray]
    of_new: Mapping[Any, np.ndarray]

    def left_out(self, rows: np.ndarray) -> LeftOut:
        """The columns to leave out of rows at some positions."""
        if self.observed is None:
            return nothing_left_out(rows.size)
        observed = seen(self.observed.by_row(), rows)
        if not self.of_known:
            return observed
        return union(observed, _by_row(self.of_known.get(i, _NO_COLUMNS) for i in rows.tolist()))

    def left_out_of_new(self, labels: np.ndarray) -> LeftOut:
        """The columns to leave out of new rows, which have no observed cells."""
        return _by_row(self.of_new.get(label, _NO_COLUMNS) for label in labels.tolist())


def find_candidates(
    model: FittedTable, leave_out: Any, only: Any, new_rows: Iterable[Any] = ()
) -> Candidates:
    """Find what `Completion.recommend` takes as ``leave_out`` and ``only``, by position.

    ``new_rows`` are the labels that are expected beside those of the table.
    """
    data = model.observations
    columns = None if only is None else np.unique(data.column_positions(only))
    if leave_out is None:
        return Candidates(columns, None, {}, {})
    if _is_table(leave_out):
        others = at_known_positions(data, Observations.of(leave_out))
        return Candidates(columns, others, {}, {})
    model.check_entries(
        "Name the table whose cells to leave out, leave_out=table; or leave_out=None for none."
    )
    if isinstance(leave_out, str):
        check_choice("leave_out", leave_out, ("seen",))
        return Candidates(columns, data, {}, {})
    if isinstance(leave_out, Mapping):
        return Candidates(columns, data, *_further_columns(data, leave_out, {*new_rows}))
    every = np.arange(data.shape[1]) if columns is None else columns
    return Candidates(np.setdiff1d(every, data.column_positions(leave_out)), data, {}, {})


def _is_table(given: Any) -> bool:
    """Whether cells are given, and not labels of columns."""
    if isinstance(given, Observations) or is_data_frame(given):
        return True
    try:
        return np.ndim(given) > 1
    except ValueError:  # lists of different lengths, which a table refuses
        return True


def _further_columns(
    data: Observations, by_row: Mapping[Any, Any], new_rows: set[Any]
) -> tuple[dict[int, np.ndarray], dict[Any, np.ndarray]]:
    """The columns of known rows by position, and of new ones by label."""
    rows = as_labels([*by_row])
    positions = data.row_positions(rows, allow_unknown=True).tolist()
    columns = [data.column_positions(each) for each in by_row.values()]
    given = list(zip(rows.tolist(), positions, columns, strict=True))
    of_new = {label: each for label, i, each in given if i < 0}
    if wrong := [label for label in of_new if label not in new_rows]:
        try:
            data.row_positions(wrong)
        except UnknownNameError as error:
            raise error.at(Setting("leave_out")) from None
    return {i: each for _, i, each in given if i >= 0}, of_new


def _by_row(columns: Iterable[np.ndarray]) -> LeftOut:
    """Columns to leave out, row by row."""
    each = [*columns]
    pointers = np.cumsum([0, *(one.size for one in each)], dtype=np.int64)
    return LeftOut(pointers, np.concatenate([_NO_COLUMNS, *each]))
