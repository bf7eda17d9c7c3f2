"""The columns of a table of mixed kinds: the kind of each and why, its values and its scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fillrank.completions.user_values import decode
from fillrank.estimators.score_groups import GroupScores
from fillrank.report.names import Name, Names
from fillrank.report.style import UNITS, count_noun, format_label, format_number, format_share
from fillrank.table.column_types import NUMBER, are_numbers
from fillrank.table.kinds import choose_kinds
from fillrank.table.labels import as_text
from fillrank.table.observations import Observations
from fillrank.table.units import column_statistics

NUMBER_KINDS = ("number", "positive", "count")
# Columns in the table of the report, and levels that are named there.
_MOST_COLUMNS, _MOST_LEVELS = 100, 8
# Rows whose predictions stand for the values of a model that was saved without its entries.
_ROWS_PREDICTED = 300
_SHORT = 1e9  # whole numbers below this are written with all of their digits
_KIND_NAMES = {
    "number": "number",
    "positive": "positive number",
    "ordered": "ordered levels",
    "yes_no": "two values",
    "count": "count",
    "category": "category",
}


class ColumnLine(NamedTuple):
    """A row of the table of columns; ``tone`` is bad if the column is predicted badly."""

    name: Name
    kind: str
    why: str
    values: str
    missing: str
    entries: str
    error: str
    coverage: str
    tone: str


class Standard(NamedTuple):
    """The mean and the standard deviation of each column, in which its values are compared."""

    mean: np.ndarray
    sd: np.ndarray

    def of(self, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Values of these columns in standard deviations from the mean of their column."""
        standard: np.ndarray = (values - self.mean[columns]) / self.sd[columns]
        return standard


def is_mixed(model: Any) -> bool:
    """Whether columns have other values than numbers, or numbers that cannot be compared as they are."""
    return bool(model.completion_.is_mixed)


def have_one_unit(model: Any) -> bool:
    """Whether the values of all columns have the same unit."""
    return bool(model.posterior_.units.are_shared) and not is_mixed(model)


def units_of_table(model: Any) -> str:
    """Say in which units singular values and residuals are; they have no unit of a column."""
    return UNITS if have_one_unit(model) else "in standard units"


def columns_of_kinds(model: Any, *kinds: str) -> np.ndarray:
    """Mark the columns of these kinds."""
    return np.isin(model.posterior_.column_kinds, kinds)


def standard_of(model: Any) -> Standard:
    """The mean and the standard deviation of each column; levels count by their codes.

    If a model was saved without its entries, those of predictions.
    """
    data = model.observations_
    if len(data):
        _, mean, sd = column_statistics(data)
    else:
        rows = np.arange(min(data.shape[0], _ROWS_PREDICTED))
        predicted = model.posterior_.block(rows, np.arange(data.shape[1]))
        mean, sd = predicted.mean(axis=0), predicted.std(axis=0)
    return Standard(np.nan_to_num(mean), np.where(sd > 0, sd, 1.0))


def limit_sides(data: Observations, entries: Any = slice(None)) -> np.ndarray:
    """For each entry -1 if only an upper limit of its value is known, 1 if a lower one, else 0."""
    n = data.column_index[entries].size
    if data.cells is None or data.intervals is None:
        return np.zeros(n, dtype=np.int64)
    sides = np.isinf(data.intervals[:, 1]).astype(np.int64) - np.isinf(data.intervals[:, 0])
    found: np.ndarray = np.append(sides, 0)[data.cells[entries]]
    return found


def list_columns(
    model: Any, scores: GroupScores | None, problems: dict[int, str], names: Names
) -> list[ColumnLine]:
    """The first columns of the table, in its order, with the scores of held-out entries."""
    data, kinds = model.observations_, model.posterior_.column_kinds
    reasons, standard = _reasons(model), standard_of(model)
    missing = 1.0 - np.bincount(data.column_index, minlength=data.shape[1]) / data.shape[0]
    place_of = {} if scores is None else {int(j): k for k, j in enumerate(scores.group)}
    lines = []
    for j, label in enumerate(data.column_labels[:_MOST_COLUMNS]):
        entries, error, coverage = _format_scores(scores, place_of.get(j), standard.sd[j])
        lines.append(
            ColumnLine(
                names.column(label),
                _name_of_kind(data, kinds[j], j),
                reasons[j],
                _describe_values(model, j),
                format_share(missing[j]) if len(data) else "–",
                entries,
                error,
                coverage,
                "bad" if j in problems else "plain",
            )
        )
    return lines


def _name_of_kind(data: Observations, kind: str, j: int) -> str:
    is_date = data.column_types is not None and data.column_types[j].values == "datetime"
    return "date" if is_date else _KIND_NAMES[kind]


def _reasons(model: Any) -> list[str]:
    """Why each column has its kind; empty if it is not known, or needs no reason."""
    data, settings = model.observations_, model.completion_.settings
    kinds = model.posterior_.column_kinds
    if len(data) == 0 or settings.get("likelihood", "auto") != "auto":
        return [""] * len(kinds)
    # Files do not store the kinds that users gave: a column of another kind than "auto" has one.
    found = choose_kinds(data, settings.get("kinds", "auto"))
    return [
        each.reason if each.kind == kind else "it was given"
        for each, kind in zip(found, kinds, strict=True)
    ]


def _describe_values(model: Any, j: int) -> str:
    """The levels of a column, or the range of its values."""
    data = model.observations_
    if model.posterior_.level_columns[j]:
        names = level_names(model, j)
        if len(names) > 2 and names == _whole_numbers(names):
            return f"{names[0]} to {names[-1]}"
        more = f" and {len(names) - _MOST_LEVELS} more" if len(names) > _MOST_LEVELS else ""
        return ", ".join(names[:_MOST_LEVELS]) + more
    mine = np.flatnonzero(data.column_index == j)
    if mine.size == 0:
        return "–"
    values = data.values[mine]
    low, high = format_values(data, j, np.array([values.min(), values.max()]))
    n_limits = int(np.count_nonzero(limit_sides(data, mine)))
    limits = f"; {count_noun(n_limits, 'limit')}" if n_limits else ""
    return (low if low == high else f"{low} to {high}") + limits


def _whole_numbers(names: list[str]) -> list[str]:
    """As many whole numbers in a row as there are names, from the first name on, if it is one."""
    first = int(names[0]) if names[0].removeprefix("-").isdecimal() else 0
    return [str(first + k) for k in range(len(names))]


def level_names(model: Any, j: int) -> list[str]:
    """The levels of a column as text, in the order of their probabilities."""
    values = model.posterior_.level_values(j)
    decoded = decode(model.observations_, np.full(values.size, j), values).tolist()
    return [f"{each:g}" if isinstance(each, float) else format_label(each) for each in decoded]


def format_values(data: Observations, j: int, values: np.ndarray) -> list[str]:
    """Values of a column as text: numbers with three digits, days of dates, and levels as they are."""
    each = NUMBER if data.column_types is None else data.column_types[j]
    if are_numbers([each]):
        return [_format_number(value) for value in values.tolist()]
    if each.values == "datetime":
        values = np.rint(values)
    decoded = decode(data, np.full(values.size, j), values)
    return [format_label(as_text(value)) for value in decoded]


def _format_number(value: float) -> str:
    if value.is_integer() and abs(value) < _SHORT:
        return f"{value:,.0f}"
    text = format_number(value)
    # Zeros at the end would suggest digits that the data may not have.
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _format_scores(scores: GroupScores | None, k: int | None, sd: float) -> tuple[str, str, str]:
    """The number of held-out entries, the error or the accuracy, and the coverage."""
    if scores is None or k is None:
        return "–", "–", "–"
    if np.isfinite(scores.accuracy[k]):
        usual = (
            f" ({scores.usual_accuracy[k]:.0%})" if np.isfinite(scores.usual_accuracy[k]) else ""
        )
        error = f"{scores.accuracy[k]:.0%} correct{usual}"
    else:
        error = f"{scores.rmse[k] / sd:.2f} SD"
    covered = scores.coverage[k]
    return f"{scores.entries[k]:,}", error, f"{covered:.0%}" if np.isfinite(covered) else "–"
