"""Values as users have them: levels of text and categories for codes, and codes for levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from fillrank.errors import InputError
from fillrank.table.column_types import ColumnType, are_numbers, coded_columns
from fillrank.table.labels import as_text, format_label
from fillrank.table.observations import Observations
from fillrank.table.restore import day_to_date

_SHOWN = 5


def decode(observations: Observations, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values of some columns as users have them.

    Parameters
    ----------
    observations : Observations
    columns : ndarray
        The position of the column of each value.
    values : ndarray
        Numbers, or codes of levels.

    Returns
    -------
    ndarray
        Numbers if the columns have no other values, otherwise objects, None if there is no value.
    """
    types = observations.column_types
    used = np.unique(columns[columns >= 0]).tolist()
    others = [j for j in used if types is not None and not are_numbers([types[j]])]
    if types is None or not others:
        return values
    out = values.astype(object)
    for j in others:
        mine = columns == j
        out[mine] = [_decoded(types[j], number) for number in values[mine].tolist()]
    return out


def _decoded(column: ColumnType, number: float) -> Any:
    if np.isnan(number):
        return None
    if column.values == "datetime":
        return day_to_date(number)
    return column.levels[min(max(round(number), 0), len(column.levels) - 1)]


def encode_values(observations: Observations, columns: np.ndarray, values: Any) -> np.ndarray:
    """Numbers, or codes of levels, for values as users have them; one for each column."""
    is_coded = coded_columns(observations.column_types)
    if is_coded is None or observations.column_types is None or not is_coded[columns].any():
        return np.asarray(values, dtype=np.float64)
    given = np.empty(columns.size, dtype=object)
    given[:] = np.broadcast_to(np.asarray(values, dtype=object).ravel(), columns.size)
    out = np.empty(columns.size)
    for place, (j, value) in enumerate(zip(columns.tolist(), given, strict=True)):
        each = observations.column_types[j]
        if is_coded[j]:
            code_of = {level: code for code, level in enumerate(each.levels)}
            out[place] = _code(code_of, each, value, observations.column_labels[j])
        else:
            out[place] = value
    return out


def _code(code_of: dict[Any, int], fitted: ColumnType, value: Any, label: Any) -> int:
    if value not in code_of:
        shown = ", ".join(map(format_label, fitted.levels[:_SHOWN]))
        more = ", ..." if len(fitted.levels) > _SHOWN else ""
        raise InputError(
            f"column {format_label(label)} had the values {shown}{more} at the fit; got {value!r}, "
            "which is not one of them",
            advice="Leave it out, or fit again with it.",
        )
    return code_of[value]


def objects_as_text(values: np.ndarray) -> np.ndarray:
    """Values of mixed types as text, because the columns of data frames are typed; others unchanged."""
    if values.dtype != object:
        return values
    out = np.empty(values.size, dtype=object)
    out[:] = [_text(value) for value in values]
    return out


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return f"{value:.7g}" if isinstance(value, float) else as_text(value)
