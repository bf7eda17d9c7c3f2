"""Scores by column and by level: on the terminal, as JSON and as CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.table import Table

from fillrank.cli.messages import escape_line, stdout
from fillrank.cli.results import json_label
from fillrank.table.labels import as_text, replace_surrogates
from fillrank.table.observations import Observations

if TYPE_CHECKING:
    from fillrank.estimators.score_groups import GroupScores, GroupSums

RELATIVE_FIGURES = ("relative_error", "rmse_in_sd", "accuracy")
_N_SHOWN, _N_SHOWN_MIXED = 5, 12  # columns on the terminal
_MAX_LABEL = 40  # characters of a label in a table


class SplitScores(NamedTuple):
    """The scores of a split by name, and sums by column and by level.

    ``is_mixed`` is whether columns have values of different kinds, whose errors have no common unit.
    """

    scores: dict[str, float]
    by_column: GroupSums
    by_level: GroupSums
    is_mixed: bool = False


class GroupResults(NamedTuple):
    """Scores by column, worst first, and by level; ``problems`` are those of `find_problems`.

    ``level_columns`` says for each label whether the values of its column are levels.
    """

    labels: np.ndarray
    columns: GroupScores
    levels: GroupScores
    problems: dict[int, str]
    level: float
    is_mixed: bool
    has_own_units: bool
    level_columns: np.ndarray

    @property
    def has_one_unit(self) -> bool:
        """Whether errors of all columns have the same unit, so that an overall RMSE has a meaning."""
        return not self.is_mixed and not self.has_own_units

    def rmse_in_sd(self) -> float:
        """The error over all columns, each in its own standard deviations; NaN if none has an error.

        In a table of mixed kinds, that of the columns without levels.
        """
        has_levels = self.level_columns[self.columns.group]
        errors = np.where(has_levels & self.is_mixed, np.nan, self.columns.rmse_in_sd)
        return self._mean_square(errors)

    def relative_error(self) -> float:
        """The error over all columns, relative to that of their mean or most frequent level."""
        with np.errstate(invalid="ignore", divide="ignore"):
            of_levels = (1.0 - self.columns.accuracy) / (1.0 - self.columns.usual_accuracy)
        errors = self.columns.rmse_in_sd
        return self._mean_square(np.where(np.isnan(errors), of_levels, errors))

    def _mean_square(self, errors: np.ndarray) -> float:
        known = np.isfinite(errors)
        if not known.any():
            return math.nan
        squares = np.average(errors[known] ** 2, weights=self.columns.entries[known])
        return math.sqrt(squares)

    def accuracy(self) -> tuple[float, float]:
        """The share of levels that are predicted correctly, and by the most frequent one; or NaN."""
        known = np.isfinite(self.columns.accuracy)
        if not known.any():
            return math.nan, math.nan
        shares = self.columns.accuracy[known], self.columns.usual_accuracy[known]
        right, usual = (
            float(np.average(each, weights=self.columns.entries[known])) for each in shares
        )
        return right, usual

    def relative_scores(self) -> dict[str, float]:
        """The scores that have a meaning without a common unit; none if there is one."""
        if self.has_one_unit:
            return {}
        figures = self.relative_error(), self.rmse_in_sd(), self.accuracy()[0]
        return dict(zip(RELATIVE_FIGURES, figures, strict=True))

    def describe_error(self) -> str:
        """The errors of a table without a common unit: those of numbers, and the accuracy of levels."""
        parts, error = [], self.rmse_in_sd()
        right, usual = self.accuracy()
        if not math.isnan(error):
            what = "RMSE of numbers" if self.is_mixed else "RMSE"
            parts.append(
                f"{what} {error:.3g} standard deviations of the column (1 is that of the "
                "column mean)"
            )
        if not math.isnan(right):
            parts.append(
                f"{100 * right:.0f}% of levels predicted correctly ({100 * usual:.0f}% by the most "
                "frequent level)"
            )
        return f"{'; '.join(parts)}; on {int(self.columns.entries.sum()):,} held-out entries"

    def warnings(self) -> list[str]:
        """A sentence about each column that is predicted badly."""
        return [
            f"Column {as_text(_label(self.labels[k]))}: {text}."
            for k, text in self.problems.items()
        ]

    def shown_warnings(self, all_in: str) -> list[str]:
        """The first warnings; ``all_in`` says where all of them are."""
        warnings = self.warnings()
        shown, n_more = warnings[:_N_SHOWN], len(warnings) - _N_SHOWN
        if n_more > 0:
            columns = "1 more column is" if n_more == 1 else f"{n_more:,} more columns are"
            shown.append(f"{columns} predicted as badly: {all_in} lists all.")
        return shown

    def by_column(self) -> list[dict[str, Any]]:
        """The table by column, a line after the other."""
        labels = [_label(label) for label in self.labels[self.columns.group]]
        return _lines({"column": labels, **_as_lists(self.columns.fields())})

    def by_level(self) -> list[dict[str, Any]]:
        """The table by level, a line after the other."""
        from fillrank.estimators.score_groups import level_fields

        return _lines(_as_lists(level_fields(self.levels)))

    def summary(self) -> dict[str, Any]:
        """Everything, for JSON; fifths of predictions of different kinds have no meaning."""
        found = {
            **self.relative_scores(),
            "warnings": self.warnings(),
            "by_column": self.by_column(),
        }
        return found if self.is_mixed else {**found, "by_level": self.by_level()}


def score_model(model: Any, test: Observations, level: float) -> SplitScores:
    """Score the predictions of held-out entries: all together, by column and by level."""
    from fillrank.estimators.score import overall_scores, predict_test
    from fillrank.estimators.score_groups import sums_by_column, sums_by_level

    found = predict_test(test, model, level)
    return SplitScores(
        overall_scores(found, model),
        sums_by_column(found, model),
        sums_by_level(found, model),
        model.completion_.is_mixed,
    )


def pool_splits(
    splits: Sequence[SplitScores], labels: np.ndarray, level: float, has_own_units: bool
) -> GroupResults:
    """The results over the held-out entries of all splits of a table with these column labels.

    ``has_own_units`` is whether the columns of the table have different units, of which the entries of a
    split may leave doubt.
    """
    from fillrank.estimators.score_groups import add_sums, compute_scores, find_problems

    sums = add_sums(split.by_column for split in splits)
    columns = compute_scores(sums, worst_first=True)
    levels = compute_scores(add_sums(split.by_level for split in splits))
    return GroupResults(
        labels,
        columns,
        levels,
        find_problems(columns, level),
        level,
        is_mixed=any(split.is_mixed for split in splits),
        has_own_units=has_own_units,
        level_columns=sums.n_levels > 0,
    )


def _label(label: Any) -> Any:
    """A label as files can store it."""
    label = json_label(label)
    return replace_surrogates(label) if isinstance(label, str) else label


def _as_lists(fields: dict[str, np.ndarray]) -> dict[str, list[Any]]:
    return {name: values.tolist() for name, values in fields.items()}


def _lines(fields: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(fields, line, strict=True)) for line in zip(*fields.values(), strict=True)]


def show_worst_columns(results: GroupResults, title: str) -> None:
    """Print the worst columns as a table, and warnings about columns that are predicted badly."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(title, vertical="bottom", overflow="fold")
    has_intervals = not np.isnan(results.columns.coverage).any()
    # A table of mixed kinds may have positive numbers or counts, and no levels.
    has_levels = results.is_mixed and not np.isnan(results.columns.accuracy).all()
    headers = ["Held out", "Missing", "RMSE", "RMSE\nin SD", "Mean\nerror"]
    if has_levels:
        headers += ["Correct", "By most\nfrequent"]
    if has_intervals:
        headers.append(f"In {100 * results.level:g}%\nintervals")
    for header in headers:
        table.add_column(header, justify="right", vertical="bottom", no_wrap=True)
    n_shown = _N_SHOWN_MIXED if results.is_mixed else _N_SHOWN
    for line in results.by_column()[:n_shown]:
        cells = [
            f"{line['entries']:,}",
            f"{100 * line['missing']:.0f}%",
            _format_number(line["rmse"]),
            _format_ratio(line["rmse_in_sd"]),
            _format_mean_error(line["mean_error"], line["rmse"]),
        ]
        if has_levels:
            cells += [_format_share(line["accuracy"]), _format_share(line["usual_accuracy"])]
        if has_intervals:
            cells.append(f"{100 * line['coverage']:.1f}%")
        table.add_row(escape_line(_shorten(as_text(line["column"]))), *cells)
    stdout().print()
    stdout().print(table)
    if warnings := results.shown_warnings(all_in="--json"):
        stdout().print()
    for text in warnings:
        stdout().print(f"[bold yellow]Warning:[/] {escape_line(text)}")


def _shorten(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else f"{label[: _MAX_LABEL - 3]}..."


def _format_number(x: float) -> str:
    return "-" if math.isnan(x) else f"{x:.4g}"


def _format_ratio(x: float) -> str:
    return "-" if math.isnan(x) else f"{x:.2f}"


def _format_share(x: float) -> str:
    return "-" if math.isnan(x) else f"{100 * x:.0f}%"


def _format_mean_error(x: float, rmse: float) -> str:
    """Format a mean error with the decimals that an RMSE has with three digits.

    Examples
    --------
    >>> _format_mean_error(0.01234, 0.321), _format_mean_error(-0.0001, 0.321)
    ('0.012', '0')
    """
    if math.isnan(x):
        return "-"
    decimals = 2 - math.floor(math.log10(rmse)) if rmse > 0 else 0
    return f"{round(x, decimals) + 0.0:.4g}"
