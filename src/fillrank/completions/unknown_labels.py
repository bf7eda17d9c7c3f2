"""Cells by labels, of which some rows or columns may not be known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from fillrank.completions.fitted_table import FittedTable
from fillrank.completions.new_rows import (
    UnknownFeatures,
    check_features,
    source_of,
    without_entries,
)
from fillrank.errors import InputError, Setting, Text, UnknownNameError
from fillrank.features.new_rows import SIDES, Axis, code_given, side_of
from fillrank.table.labels import as_labels, factorize
from fillrank.validation import check_choice

# What to do about labels that are not known.
Unknown = Literal["error", "prior"]
_PREDICT_UNKNOWN: Text = (
    "With ",
    Setting("unknown", "prior"),
    " they are predicted as rows and columns without entries.",
)
# A query of the posterior for cells by position: rows, columns and what else comes by cell.
_Query = Callable[..., Any]


class Cells(NamedTuple):
    """Cells by position.

    The position -1 - k means a row, or a column, without entries and with the k-th line of ``features``.
    """

    rows: np.ndarray
    columns: np.ndarray
    features: UnknownFeatures


def find_cells(
    model: FittedTable,
    rows: Any,
    columns: Any,
    unknown: Unknown = "error",
    row_features: Any = None,
    column_features: Any = None,
) -> Cells:
    """The cells with some labels: as many rows as columns, or one of either.

    With ``unknown="prior"``, labels that are not known have negative positions: -1, or -1, -2, ... if
    they have features.
    """
    check_choice("unknown", unknown, ("error", "prior"))
    _check_for_unknown(model, unknown, row_features, column_features)
    i, j = _positions(model, rows, columns, unknown == "prior")
    i, of_rows = number_unknown(model, i, rows, row_features, "rows")
    j, of_columns = number_unknown(model, j, columns, column_features, "columns")
    if i.size != j.size and 1 not in (i.size, j.size):
        raise InputError(
            f"rows and columns must have the same length, or one of them length 1; "
            f"got {i.size} rows and {j.size} columns."
        )
    i, j = np.broadcast_arrays(i, j)
    features = UnknownFeatures(of_rows, of_columns)
    return Cells(np.ascontiguousarray(i), np.ascontiguousarray(j), features)


def query_cells(
    model: FittedTable, cells: Cells, query: _Query, *by_cell: np.ndarray
) -> np.ndarray:
    """Query cells, each from the posterior that has it; they are the last axis of the result.

    The query gets a posterior, rows, columns, and the elements of ``by_cell`` for its cells.
    """
    i, j, features = cells
    unknown = (i < 0) + 2 * (j < 0)
    if not unknown.any():
        return np.asarray(query(model.posterior, i, j, *by_cell))
    parts = {}
    for code in np.unique(unknown):
        mine = np.flatnonzero(unknown == code)
        posterior = without_entries(model, bool(code & 1), bool(code & 2), features)
        at = (np.where(each < 0, -1 - each, each) for each in (i[mine], j[mine]))
        parts[code] = mine, query(posterior, *at, *(each[mine] for each in by_cell))
    first = np.asarray(next(iter(parts.values()))[1])
    result = np.empty((*first.shape[:-1], i.size), first.dtype)
    for mine, part in parts.values():
        result[..., mine] = part
    return result


def number_unknown(
    model: FittedTable, positions: np.ndarray, labels: Any, features: Any, axis: Axis
) -> tuple[np.ndarray, np.ndarray | None]:
    """Positions with a number for each unknown label, and the features of these labels."""
    is_unknown = positions < 0
    if not is_unknown.any() or not any(side_of(model.posterior.blocks, axis)):
        return positions, None
    numbers, distinct = factorize(as_labels(labels)[is_unknown], SIDES[axis])
    given = code_given(side_of(source_of(model, axis).blocks, axis), features, distinct, axis)
    if given is None:
        return positions, None
    positions = positions.copy()
    positions[is_unknown] = -1 - numbers
    return positions, given


def check_known(model: FittedTable, rows: Any, columns: Any) -> None:
    """Raise UnknownNameError if a row or a column is not known; it lists all of them."""
    data, errors = model.observations, {}
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
    if "columns" in errors and model.posterior.levels is not None:
        raise unknown
    raise unknown.with_advice(_PREDICT_UNKNOWN)


def _check_for_unknown(
    model: FittedTable, unknown: Unknown, row_features: Any, column_features: Any
) -> None:
    """Raise an error if features of unknown labels are given, and cannot be used."""
    axes: tuple[tuple[Axis, Any], ...] = (("rows", row_features), ("columns", column_features))
    for axis, features in axes:
        if features is None:
            continue
        if unknown == "error":
            raise InputError(
                f"{SIDES[axis]}_features are for {axis} that are not known",
                advice=("Set ", Setting("unknown", "prior"), ", or leave them out."),
            )
        check_features(model, source_of(model, axis), axis)


def _positions(
    model: FittedTable, rows: Any, columns: Any, allow: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The positions of rows and of columns by labels, -1 for unknown ones if that is allowed."""
    try:
        with model.workers() as workers:
            return workers.both(
                lambda: model.observations.row_positions(rows, allow),
                lambda: model.observations.column_positions(columns, allow),
                np.size(rows),
            )
    except UnknownNameError:
        check_known(model, rows, columns)
        raise
