"""The kind of values that each column of a table has: numbers, ordered answers, counts, categories, ...

`choose_kinds` decides, by the values alone or as users say, and checks that the values are of that kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from fillrank.errors import InputError, Setting, UnknownNameError
from fillrank.table.column_types import NUMBER, ColumnType
from fillrank.table.labels import format_labels
from fillrank.table.observations import Observations
from fillrank.table.units import choose_units

Kind = Literal["number", "positive", "ordered", "yes_no", "count", "category"]
KINDS: tuple[Kind, ...] = ("number", "positive", "ordered", "yes_no", "count", "category")
# Kinds whose values are one of a few levels.
LEVEL_KINDS: tuple[Kind, ...] = ("ordered", "yes_no", "category")

# Numbers are ordered levels if there are at most so many, with so many values at each on average.
_MOST_LEVELS, _VALUES_PER_LEVEL = 10, 10
# Columns with fewer values are numbers.
_FEWEST = 20
# Numbers are positive or counts if they are so skewed, and positive if they span such a ratio.
_SKEWED, _RATIO = 1.0, 10.0
# More levels are refused: each takes a column of the model.
MOST_CATEGORIES = 200
# The share of columns that must be ordered levels if a table of one rating scale is read as such.
_MOST_COLUMNS = 0.8
_SHOWN = 4


class ColumnKind(NamedTuple):
    """The kind of a column, the values of its levels if it has any, and why it was chosen."""

    kind: Kind
    levels: np.ndarray = np.zeros(0)
    reason: str = ""


def check_kinds(kinds: Any) -> None:
    """Reject kinds that are neither "auto" nor a mapping."""
    is_auto = isinstance(kinds, str) and kinds == "auto"
    if not is_auto and not isinstance(kinds, Mapping):
        raise InputError(
            place=Setting("kinds"), allowed='"auto" or a mapping of column to kind', value=kinds
        )


def choose_kinds(
    observations: Observations,
    kinds: Literal["auto"] | Mapping[Any, str | ColumnKind],
    alone: bool = False,
) -> list[ColumnKind]:
    """The kind of every column.

    Parameters
    ----------
    observations : Observations
    kinds : "auto" or mapping of column label to kind
        Columns that a mapping does not name are chosen as by "auto". A `ColumnKind` is taken as it is:
        it was chosen for a table of which these are some of the entries.
    alone : bool
        Whether each column is chosen by its own values alone, as a new one of a table of mixed kinds is,
        and columns that are alike are not one scale of numbers.

    Raises
    ------
    InputError
        If the values of a column are not of the kind that was given.
    """
    given = {} if isinstance(kinds, str) else _given_kinds(observations, kinds)
    types = observations.column_types or (NUMBER,) * observations.shape[1]
    parts = _column_values(observations)
    has_intervals = _columns_with_intervals(observations)
    is_wide = observations.origin.layout == "wide"
    found = []
    for j, (each, values) in enumerate(zip(types, parts, strict=True)):
        if j in given:
            label = observations.column_labels[j]
            found.append(_as_given(given[j], each, values, label))
        elif each.is_coded or is_wide:
            found.append(_auto_kind(each, values, bool(has_intervals[j])))
        else:
            found.append(ColumnKind("number"))
    if given or alone or _are_mostly_ordered(found):
        return found
    if _is_one_scale(observations, types):
        return [ColumnKind("number")] * len(found)
    return found


def _is_one_scale(observations: Observations, types: Sequence[ColumnType]) -> bool:
    """Whether all columns are numbers that are alike, such as ratings or hours of a day."""
    if observations.cells is not None or any(each.is_coded for each in types):
        return False
    return not choose_units(observations).by_column


def _given_kinds(
    observations: Observations, kinds: Mapping[Any, str | ColumnKind]
) -> dict[int, Kind | ColumnKind]:
    """The kinds that were given, by the position of their column."""
    try:
        positions = observations.column_positions(list(kinds)).tolist() if kinds else []
    except UnknownNameError as error:
        raise error.with_advice("kinds has the labels of columns as its keys.") from error
    return {
        j: kind if isinstance(kind, ColumnKind) else _kind_name(kind, label)
        for j, (label, kind) in zip(positions, kinds.items(), strict=True)
    }


def _kind_name(kind: Any, label: Any) -> Kind:
    for name in KINDS:
        if name == kind:
            return name
    raise InputError(
        place=Setting("kinds"),
        allowed=f"one of {', '.join(KINDS)} for each column",
        value=f"{kind!r} for {label!r}",
    )


def _column_values(observations: Observations) -> list[np.ndarray]:
    """The values of each column, without those of which only an interval is known."""
    columns = observations.by_column()
    exact = columns.cells < 0 if columns.cells.size else np.ones(columns.n_entries, dtype=bool)
    ends = zip(columns.pointers[:-1], columns.pointers[1:], strict=True)
    return [columns.values[a:b][exact[a:b]].astype(np.float64) for a, b in ends]


def _columns_with_intervals(observations: Observations) -> np.ndarray:
    """Whether each column has values of which only a limit or an interval is known."""
    found = np.zeros(observations.shape[1], dtype=bool)
    if observations.cells is not None:
        found[observations.column_index[observations.cells >= 0]] = True
    return found


def _are_mostly_ordered(found: list[ColumnKind]) -> bool:
    ordered = sum(each.kind in ("ordered", "yes_no") for each in found)
    return ordered >= _MOST_COLUMNS * len(found)


# Chosen by the values


def _auto_kind(column: ColumnType, values: np.ndarray, has_intervals: bool) -> ColumnKind:
    if column.is_coded:
        return _kind_of_codes(column)
    if has_intervals:
        if values.size and values.min() > 0 and np.unique(values).size > _MOST_LEVELS:
            return ColumnKind("positive", reason="it has limits, and all values are above 0")
        return ColumnKind("number")
    if values.size < _FEWEST or column.values == "datetime":
        return ColumnKind("number")
    return _kind_of_numbers(values)


def _kind_of_codes(column: ColumnType) -> ColumnKind:
    # All of them: a level that does not occur here may occur in held-out entries.
    levels = np.arange(float(len(column.levels)))
    if levels.size <= 2:
        return ColumnKind("yes_no", levels, "it has two values")
    if column.is_ordered:
        return ColumnKind("ordered", levels, "it is an ordered category")
    return ColumnKind("category", levels, f"it has {levels.size} different values")


def _kind_of_numbers(values: np.ndarray) -> ColumnKind:
    low, high = values.min(), values.max()
    if low == high:
        return ColumnKind("number")
    if bool((values == np.rint(values)).all()):
        levels = np.unique(values)
        if levels.size == 2:
            return ColumnKind("yes_no", levels, "it has two values")
        is_short = levels.size <= _MOST_LEVELS and high - low <= _MOST_LEVELS
        if is_short and values.size >= _VALUES_PER_LEVEL * levels.size:
            reason = f"it has whole numbers from {low:g} to {high:g}"
            # Also those between that do not occur here: they may occur in held-out entries.
            return ColumnKind("ordered", np.arange(low, high + 1.0), reason)
        if 0 <= low <= 1 and levels.size > _MOST_LEVELS and _skewness(values) > _SKEWED:
            return ColumnKind("count", reason="it has whole numbers from 0 or 1, and is skewed")
    if low > 0 and high >= _RATIO * low and _skewness(values) > _SKEWED:
        logarithms = np.log(values)
        if abs(_skewness(logarithms)) < 0.5 * _skewness(values):
            reason = "all values are above 0, and their logarithms are less skewed"
            return ColumnKind("positive", reason=reason)
    return ColumnKind("number")


def _skewness(values: np.ndarray) -> float:
    deviations = (values - values.mean()) / values.std()
    return float(np.mean(deviations**3))


# Given by users


def _as_given(
    kind: Kind | ColumnKind, column: ColumnType, values: np.ndarray, label: Any
) -> ColumnKind:
    if isinstance(kind, ColumnKind):
        return kind
    return _checked_kind(kind, column, values, label)


def _checked_kind(kind: Kind, column: ColumnType, values: np.ndarray, label: Any) -> ColumnKind:
    """The kind that was given, with its levels; an error if the values contradict it."""
    if column.is_coded and kind not in LEVEL_KINDS:
        allowed = f"one of the kinds {', '.join(LEVEL_KINDS)}"
        raise _contradiction(label, kind, f"it has text such as {column.levels[0]!r}", allowed)
    if kind == "positive":
        _check_values(values, values > 0, label, kind, "numbers above 0")
    if kind == "count":
        is_count = (values >= 0) & (values == np.rint(values))
        _check_values(values, is_count, label, kind, "whole numbers from 0")
    if kind not in LEVEL_KINDS:
        return ColumnKind(kind, reason="it was given")
    levels = np.unique(values)
    if column.is_coded:
        levels = np.arange(float(len(column.levels)))
    _check_levels(levels, values.size, label, kind)
    return ColumnKind(kind, levels, "it was given")


def _check_levels(levels: np.ndarray, n_values: int, label: Any, kind: Kind) -> None:
    if kind == "yes_no" and levels.size != 2:
        raise _contradiction(label, kind, f"it has {levels.size} different values", "two values")
    if levels.size < 2:
        raise _contradiction(label, kind, f"it has {levels.size} different values", "at least two")
    if levels.size > MOST_CATEGORIES or levels.size == n_values:
        most = f"at most {MOST_CATEGORIES}, some of which occur more than once"
        raise _contradiction(label, kind, f"it has {levels.size} different values", most)


def _check_values(
    values: np.ndarray, are_valid: np.ndarray, label: Any, kind: Kind, allowed: str
) -> None:
    if are_valid.all():
        return
    wrong = values[~are_valid]
    shown = ", ".join(f"{value:g}" for value in wrong[:_SHOWN])
    more = f" and {wrong.size - _SHOWN} more" if wrong.size > _SHOWN else ""
    raise _contradiction(label, kind, f"it has {shown}{more}", allowed)


def _contradiction(label: Any, kind: Kind, found: str, allowed: str) -> InputError:
    return InputError(
        f"column {format_labels([label])} cannot be {kind!r}: {found}; allowed is {allowed}",
        advice=("Give it another kind in ", Setting("kinds"), "."),
    )
