"""The results of a comparison of methods: on the terminal, as JSON, and as files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rich.table import Table

from fillrank.cli import output, summary
from fillrank.cli.comparison import Comparison, Ranked
from fillrank.cli.group_scores import RELATIVE_FIGURES, show_worst_columns
from fillrank.cli.messages import escape_line, stdout
from fillrank.cli.models import SAMPLERS
from fillrank.cli.ranking import POPULAR, TITLES, lists_table
from fillrank.cli.results import as_json
from fillrank.cli.source import Source
from fillrank.cli.splits import scores_summary
from fillrank.errors import InputError
from fillrank.io.csv_writer import csv_text
from fillrank.storage.atomic_write import write_atomically
from fillrank.table.labels import as_text
from fillrank.table.observations import Observations

_FIGURES = ("rmse", "mae", "coverage", "interval_score", "log_score", "seconds")


def show_comparison(comparison: Comparison) -> None:
    """Print the ranking as a table, the methods that are not in it, and the worst columns."""
    ranked = comparison.ranked()
    if ranked:
        stdout().print((_table if comparison.has_one_unit else _relative_table)(comparison))
        if (lists := comparison.scoring.lists) is not None:
            stdout().print()
            stdout().print(lists_table(lists, {each.name: each.figure for each in ranked}))
    if names := [each.name for each in ranked if each.name in comparison.without_features()]:
        stdout().print(f"Fitted without the features, which they do not take: {', '.join(names)}.")
    if names := [each.name for each in ranked if each.name in comparison.without_kinds()]:
        stdout().print(f"Fitted on levels and counts as numbers: {', '.join(names)}.")
    for name, reason in comparison.left_out():
        stdout().print(f"[bold]{name}[/] {escape_line(reason)}")
    if ranked:
        title = f"Worst columns of {ranked[0].name}" if len(ranked) > 1 else "Worst columns"
        show_worst_columns(comparison.groups(ranked[0]), title)


def _table(comparison: Comparison) -> Table:
    titles = ("RMSE", "MAE", _intervals(comparison), "Interval\nscore", "Log\nscore")
    table = _empty_table((*titles, "Seconds\nper fit"))
    for each in comparison.ranked():
        table.add_row(
            each.name,
            str(each.figure("rmse")),
            _format_mean(each.figure("mae").mean),
            _format_coverage(each),
            *(_format_mean(each.figure(name).mean) for name in ("interval_score", "log_score")),
            f"{each.figure('seconds').mean:.1f}",
        )
    return table


def _relative_table(comparison: Comparison) -> Table:
    """The ranking on a table whose columns have no common unit."""
    own: tuple[str, ...] = ("RMSE\nin SD",)
    if comparison.is_mixed:
        own = ("Relative\nerror", "Numbers,\nRMSE in SD", "Levels\ncorrect")
    table = _empty_table((*own, _intervals(comparison), "Log\nscore", "Seconds\nper fit"))
    for each in comparison.ranked():
        groups = comparison.groups(each)
        accuracy, _ = groups.accuracy()
        errors = [
            _format_mean(groups.relative_error()),
            _format_mean(groups.rmse_in_sd()),
            "-" if math.isnan(accuracy) else f"{100 * accuracy:.1f}%",
        ]
        table.add_row(
            each.name,
            *(errors if comparison.is_mixed else errors[1:2]),
            _format_coverage(each),
            _format_mean(each.figure("log_score").mean),
            f"{each.figure('seconds').mean:.1f}",
        )
    return table


def _empty_table(titles: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("Method", vertical="bottom", no_wrap=True)
    for title in titles:
        table.add_column(title, justify="right", vertical="bottom", no_wrap=True)
    return table


def _intervals(comparison: Comparison) -> str:
    return f"In {100 * comparison.level:g}%\nintervals"


def _format_coverage(ranked: Ranked) -> str:
    coverage = ranked.figure("coverage").mean
    return "none" if math.isnan(coverage) else f"{100 * coverage:.1f}%"


def _format_mean(x: float) -> str:
    return "-" if math.isnan(x) else f"{x:.4g}"


def comparison_summary(
    comparison: Comparison, origin: Source, data: Observations
) -> dict[str, Any]:
    """All figures for JSON, best method first."""
    has_features = bool(comparison.splits[0].features.arguments())
    return {
        "table": summary.table_summary(origin, data),
        "level": comparison.level,
        **({} if comparison.scoring.lists is None else comparison.scoring.lists.summary()),
        "hidden_entries": len(comparison.splits[0].test),
        "ranking": [
            {
                "method": each.name,
                "uses_features": has_features and each.name in SAMPLERS,
                **scores_summary(each.scores),
                **comparison.groups(each).summary(),
            }
            for each in comparison.ranked()
        ],
        "left_out": [{"method": name, "reason": reason} for name, reason in comparison.left_out()],
    }


def check_file(file: Path, force: bool, inputs: list[Path]) -> None:
    """Check the files of the figures, before the work starts."""
    if file.suffix.lower() not in (".csv", ".json"):
        raise InputError(f"{file}: the figures are written as .csv or .json; got {file.suffix!r}.")
    for each in _files(file):
        output.check_file(each, force, inputs)


def _files(file: Path) -> list[Path]:
    """The files that are written: JSON is one, CSV one for each table."""
    if file.suffix.lower() == ".json":
        return [file]
    return [file, *(file.with_name(f"{file.stem}-by-{name}.csv") for name in ("column", "level"))]


def write_figures(file: Path, comparison: Comparison, figures: dict[str, Any]) -> list[Path]:
    """Write the figures, and return the files."""
    files = _files(file)
    texts = [as_json(figures) + "\n"]
    if len(files) > 1:
        by_method = [(each.name, comparison.groups(each)) for each in comparison.ranked()]
        by_column = [(name, groups.by_column()) for name, groups in by_method]
        by_level = [(name, groups.by_level()) for name, groups in by_method]
        texts = [_as_csv(comparison), _groups_as_csv(by_column), _groups_as_csv(by_level)]
    if comparison.is_mixed:  # fifths of predictions in different units have no meaning
        files, texts = files[:2], texts[:2]
    for path, text in zip(files, texts, strict=True):
        with write_atomically(path) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="")
    return files


def _as_csv(comparison: Comparison) -> str:
    """The ranking as CSV: a line for each method; excluded methods come last."""
    names = [*_FIGURES, *(f"{name}_sd" for name in ("rmse", "mae"))]
    if not comparison.has_one_unit:
        names += RELATIVE_FIGURES
    lines: list[list[Any]] = []
    measures = () if comparison.scoring.lists is None else tuple(TITLES)
    ranked = comparison.ranked()
    for each in ranked:
        means = [each.figure(name).mean for name in _FIGURES]
        sds = [each.figure(name).spread for name in ("rmse", "mae")]
        relative = comparison.groups(each).relative_scores()
        of_lists = [each.figure(name).mean for name in measures]
        figures = map(_format_cell, (*means, *sds, *relative.values(), *of_lists))
        lines.append([each.name, len(each.scores), *figures, ""])
    empty = [""] * len(names)
    if measures and ranked:
        popular = [ranked[0].figure(f"popular_{name}").mean for name in measures]
        lines.append([POPULAR, len(ranked[0].scores), *empty, *map(_format_cell, popular), ""])
    names += measures
    lines += [[name, 0, *[""] * len(names), reason] for name, reason in comparison.left_out()]
    return csv_text(["method", "splits", *names, "left_out"], lines)


def _groups_as_csv(by_method: list[tuple[str, list[dict[str, Any]]]]) -> str:
    """The tables by column, or by level, of all methods as one."""
    # Only methods with probabilities of levels have an accuracy.
    fields: list[str] = max((list(groups[0]) for _, groups in by_method), key=len, default=[])
    lines = []
    for name, groups in by_method:
        for group in groups:
            first, *figures = (group.get(field, math.nan) for field in fields)
            lines.append([name, as_text(first), *map(_format_cell, figures)])
    return csv_text(["method", *fields], lines)


def _format_cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
