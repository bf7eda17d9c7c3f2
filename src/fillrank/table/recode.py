"""Codes of one table as those of another: the same category may have other levels there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fillrank.errors import InputError
from fillrank.table.column_types import NUMBER, ColumnType
from fillrank.table.labels import format_label, format_labels

if TYPE_CHECKING:
    from fillrank.table.observations import Observations


def recode(new: Observations, known: Observations) -> Observations:
    """The entries of a table with the codes of another one, for columns of the same label.

    Values of arrays are numbers, and taken as codes.
    """
    has_types = new.column_types is not None or known.column_types is not None
    if not has_types or new.origin.layout in ("matrix", "sparse"):
        return new
    types = known.types_by_label()
    own = new.column_types or (NUMBER,) * new.shape[1]
    values, result, is_same = new.values.copy(), [], True
    for j, (label, kind) in enumerate(zip(new.column_labels.tolist(), own, strict=True)):
        target = types.get(label, kind)
        # A table that was read from a file does not know the types of a data frame's library.
        result.append(target if target.dtype is not None else target._replace(dtype=kind.dtype))
        if kind.levels != target.levels:
            is_same = False
            entries = np.flatnonzero(new.column_index == j)
            codes = _new_codes(kind, target, label)
            values[entries] = _look_up(values[entries], codes, new, entries, target, label)
    recoded = new if is_same else replace(new, stored_values=values)
    return replace(recoded, column_types=tuple(result))


def _new_codes(kind: ColumnType, target: ColumnType, label: Any) -> np.ndarray:
    """The code in the other table of each code, NaN for levels that it does not have."""
    if not (kind.is_coded and target.is_coded):
        one, other = (
            "categories" if each.is_coded else f"{each.values}s" for each in (target, kind)
        )
        raise InputError(
            f"column {format_label(label)} must contain {one}, as in the table of the fit; got {other}."
        )
    codes = {level: float(code) for code, level in enumerate(target.levels)}
    return np.array([codes.get(level, np.nan) for level in kind.levels])


def _look_up(
    values: np.ndarray,
    codes: np.ndarray,
    new: Observations,
    entries: np.ndarray,
    target: ColumnType,
    label: Any,
) -> np.ndarray:
    found: np.ndarray = codes[np.rint(values).astype(np.int64)]
    unknown = np.flatnonzero(np.isnan(found))
    if unknown.size:
        first = int(unknown[0])
        row = np.searchsorted(new.pointers, entries[first], side="right") - 1
        kind = new.types_by_label()[label]
        raise InputError(
            "the table of the fit does not have this value in this column",
            place=f"row {format_label(new.row_labels[row])}, column {format_label(label)}",
            allowed=f"one of its {len(target.levels)} values, {format_labels(target.levels)}",
            value=kind.levels[int(values[first])],
            advice="Clear the cell, or fit again with it.",
        )
    return found
