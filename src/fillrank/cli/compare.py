"""``fillrank compare``: every method on the same held-out entries of a table."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.table import Table

import fillrank as fr
from fillrank.cli import features, models, options, output, source, summary
from fillrank.cli.features import NO_FEATURES, Features
from fillrank.cli.group_scores import (
    RELATIVE_FIGURES,
    GroupResults,
    SplitScores,
    pool_splits,
    score_model,
    show_worst_columns,
)
from fillrank.cli.messages import (
    describe_error,
    escape,
    escape_line,
    format_duration,
    report,
    show_files,
    stdout,
)
from fillrank.cli.models import SAMPLERS, Settings
from fillrank.cli.ranking import (
    POPULAR,
    TITLES,
    Relevant,
    Scoring,
    Top,
    lists_table,
    read_options,
    score_lists,
)
from fillrank.cli.results import as_json as json_text
from fillrank.cli.results import show_json
from fillrank.cli.signals import FAILED, INTERRUPTED
from fillrank.cli.source import Source
from fillrank.errors import FillrankError, InputError, NotSupportedError
from fillrank.io.csv_writer import csv_text
from fillrank.runtime.threads import available_threads
from fillrank.storage.atomic_write import write_atomically
from fillrank.table.labels import as_text
from fillrank.table.observations import Observations

_ALL = ",".join(options.METHODS)
FIGURES = ("rmse", "mae", "coverage", "interval_score", "log_score", "seconds")


def _parse_methods(text: str) -> Any:
    """Parse names of methods, separated by commas."""
    names = [options.method_name(name) for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter(
            f"name at least one method. Methods: {', '.join(options.METHODS)}."
        )
    return list(dict.fromkeys(names))


@options.filled_in(
    without=("method", "max_rank", "sweeps", "chains", "keep_empty", "thresholds", "checkpoint"),
    origin=Source,
    settings=Settings,
)
def compare(
    *,
    methods: Annotated[
        Any,
        typer.Option(
            "--methods", parser=_parse_methods, metavar="A,B,...", help="The methods to compare.",
            show_default="all",
        ),
    ] = _ALL,
    splits: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of random splits.")
    ] = 3,
    hold_out: options.Hidden = 0.2,
    level: options.Level = 0.9,
    top: Top = None,
    relevant: Relevant = None,
    origin: Source,
    settings: Settings,
    file: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE",
            help="Also write the figures to this file: .csv .json. With figures.csv, those by column "
            "and by level are in figures-by-column.csv and figures-by-level.csv.",
        ),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:  # fmt: skip
    """Compare the methods on a table: their errors, intervals and times.

    All methods are fitted on the same splits. A method that does not support the table, or fails, is
    listed with the reason. Features of rows and columns and kinds of values are for GASR and BPMF: the
    other methods are fitted without them. Below are the columns that the best method predicts worst:
    RMSE in SD is the error in standard deviations of the column; predicting its mean gives about 1. If
    columns have different units, the error of a method is given in this way. If they have values of
    different kinds, methods are ranked by their error relative to that of the column mean, or of the
    most frequent level; beside it are the error of numbers and the share of levels that are predicted
    correctly. With --top, methods are also compared by their recommendations. Ctrl-C shows the results
    so far.

    Examples:

    - fillrank compare ratings.csv
    - fillrank compare ratings.csv --methods GASR,BPMF --top 10 --relevant 4
    - fillrank compare ratings.csv --methods GASR,BPMF --splits 5 -o figures.csv
    - fillrank compare survey.csv --kind age=number --kind income=positive
    """
    scoring = Scoring(level, read_options(top, relevant))
    if file is not None:
        _check_file(file, force, origin.inputs)
    data = source.read(origin, quiet)
    given = features.read(origin, data)
    models.check_columns(settings, data)
    parts = [
        Split(*data.split(hold_out, random_state=seed), data, given)
        for seed in range(settings.seed, settings.seed + splits)
    ]
    of_all = Settings(seed=settings.seed, threads=settings.threads)
    of_methods = [
        (settings if name in SAMPLERS else of_all)._replace(method=name) for name in methods
    ]
    comparison = Comparison(of_methods, parts, scoring, models.has_own_units(settings, data))
    if not quiet:
        models.report_cost(of_methods, data, times=splits)
    interrupted = False
    try:
        comparison.run(quiet)
    except KeyboardInterrupt:
        interrupted = True
        has_results = any(candidate.scores for candidate in comparison.candidates)
        report(f"Interrupted. {'Results so far:' if has_results else 'There are no results yet.'}")
    figures = comparison_summary(comparison, origin, data)
    if as_json:
        show_json(figures)
    else:
        _show(comparison)
    if file is not None:
        files = _write(file, comparison, figures)
        if not as_json:
            show_files(files)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if not comparison.ranked():
        raise typer.Exit(FAILED)


def _check_file(file: Path, force: bool, inputs: list[Path]) -> None:
    if file.suffix.lower() not in (".csv", ".json"):
        raise InputError(f"{file}: the figures are written as .csv or .json; got {file.suffix!r}.")
    for each in _files(file):
        output.check_file(each, force, inputs)


def _files(file: Path) -> list[Path]:
    """The files that are written: JSON is one, CSV one for each table."""
    if file.suffix.lower() == ".json":
        return [file]
    return [file, *(file.with_name(f"{file.stem}-by-{name}.csv") for name in ("column", "level"))]


def _write(file: Path, comparison: Comparison, figures: dict[str, Any]) -> list[Path]:
    """Write the figures, and return the files."""
    files = _files(file)
    texts = [json_text(figures) + "\n"]
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


class Split(NamedTuple):
    """Training entries, held-out entries and all of them, and the features of rows and columns."""

    train: Observations
    test: Observations
    table: Observations
    features: Features = NO_FEATURES


class Figure(NamedTuple):
    """The mean over splits and the standard deviation between them, NaN for a single split."""

    mean: float
    spread: float

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "-"
        return (
            f"{self.mean:.4g}"
            if math.isnan(self.spread)
            else f"{self.mean:.4g} ± {self.spread:.2g}"
        )


def score_split(settings: Settings, split: Split, scoring: Scoring, progress: bool) -> SplitScores:
    """Fit the training entries and score the predictions of the others; with the time of the fit."""
    started = perf_counter()
    given = split.features if settings.method in SAMPLERS else NO_FEATURES
    model = models.fit(settings, split.train, progress, True, given, split.table)
    seconds = perf_counter() - started
    found = score_model(model, split.test, scoring.level)
    scores = found.scores | {"seconds": seconds, "rank": model.rank_}
    if scoring.lists is not None:
        scores |= score_lists(model, split.test, scoring.lists)
    return found._replace(scores=scores)


def average(splits: list[SplitScores], name: str) -> Figure:
    """The mean and spread of a score over all splits."""
    values = np.array([each.scores[name] for each in splits])
    spread = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Figure(float(values.mean()), spread)


def scores_summary(splits: list[SplitScores]) -> dict[str, Any]:
    """Means, standard deviations and the scores of each split, for JSON."""
    figures = {name: average(splits, name) for name in splits[0].scores}
    return {
        "mean": {name: figure.mean for name, figure in figures.items()},
        "standard_deviation": {name: figure.spread for name, figure in figures.items()},
        "splits": [each.scores for each in splits],
    }


class Candidate(NamedTuple):
    """A method, its scores by the number of the split, and why it was excluded, if it was."""

    settings: Settings
    scores: dict[int, SplitScores]
    excluded: list[str]

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.settings.method


class Ranked(NamedTuple):
    """A method and its scores on the splits by which it is ranked."""

    name: str
    scores: list[SplitScores]

    def figure(self, name: str) -> Figure:
        """The mean and spread of a score."""
        return average(self.scores, name)


class Comparison:
    """Methods and splits, and the scores so far."""

    def __init__(
        self, settings: list[Settings], splits: list[Split], scoring: Scoring, has_own_units: bool
    ):
        self.candidates = [Candidate(each, {}, []) for each in settings]
        self.splits = splits
        self.scoring = scoring
        self.has_own_units = has_own_units

    @property
    def level(self) -> float:
        """The level of the intervals."""
        return self.scoring.level

    def run(self, quiet: bool) -> None:
        """Run all methods on the first split, then on the second, so that results are comparable."""
        expected = self._expected_seconds()
        fits = [
            (number, candidate)
            for number in range(len(self.splits))
            for candidate in self.candidates
        ]
        for done, (number, candidate) in enumerate(fits):
            if candidate.excluded:
                continue
            if not quiet:
                ahead = [other for _, other in fits[done:] if not other.excluded]
                left = sum(_mean_seconds(other) or expected[other.name] for other in ahead)
                report(
                    f"{done + 1} of {len(fits)}, {format_duration(left)} left: {candidate.name}, "
                    f"split {number + 1}"
                )
            self._try(candidate, number, quiet)

    def _expected_seconds(self) -> dict[str, float]:
        train = self.splits[0].train
        return {
            each.name: models.estimate_cost(
                each.settings, train, available_threads(each.settings.threads)
            ).seconds
            for each in self.candidates
        }

    def _try(self, candidate: Candidate, number: int, quiet: bool) -> None:
        try:
            if number == 0:
                _compile(candidate.settings)
            candidate.scores[number] = score_split(
                candidate.settings, self.splits[number], self.scoring, progress=not quiet
            )
        except (InputError, NotSupportedError) as error:
            candidate.excluded.append(f"does not support this table: {describe_error(error)}")
        except Exception as error:  # any failure excludes one method only  # noqa: BLE001
            kind = "" if isinstance(error, FillrankError) else f"{type(error).__name__}: "
            candidate.excluded.append(f"failed: {kind}{describe_error(error)}")
        if candidate.excluded and not quiet:
            report(f"{candidate.name} {escape(candidate.excluded[0])}")

    def ranked(self) -> list[Ranked]:
        """The methods that were not excluded, smallest error first, on the splits they share."""
        complete = [each for each in self.candidates if each.scores and not each.excluded]
        shared = (
            sorted(set.intersection(*(set(each.scores) for each in complete))) if complete else []
        )
        found = [Ranked(each.name, [each.scores[number] for number in shared]) for each in complete]
        return sorted(found, key=self._error)

    def _error(self, ranked: Ranked) -> float:
        """The error by which methods are ranked; relative if columns have no common unit."""
        if self.has_one_unit:
            return ranked.figure("rmse").mean
        return self.groups(ranked).relative_error()

    @property
    def is_mixed(self) -> bool:
        """Whether columns have values of different kinds."""
        return any(score.is_mixed for score in self._scores())

    @property
    def has_one_unit(self) -> bool:
        """Whether errors of all columns have the same unit, so that an overall RMSE has a meaning."""
        return not self.is_mixed and not self.has_own_units

    def _scores(self) -> list[SplitScores]:
        return [score for each in self.candidates for score in each.scores.values()]

    def groups(self, ranked: Ranked) -> GroupResults:
        """The results of a method by column and by level, over the splits by which it is ranked.

        A method without kinds takes levels for numbers. Its errors of numbers are nevertheless those of
        the same columns as for the others.
        """
        labels = self.splits[0].train.column_labels
        found = pool_splits(ranked.scores, labels, self.level, self.has_own_units)
        has_levels = np.any([score.by_column.n_levels > 0 for score in self._scores()], axis=0)
        return found._replace(is_mixed=self.is_mixed, level_columns=has_levels)

    def without_features(self) -> list[str]:
        """The methods that take no features, if any are given."""
        if not self.splits[0].features.arguments():
            return []
        return [each.name for each in self.candidates if each.name not in SAMPLERS]

    def without_kinds(self) -> list[str]:
        """The methods that take all values for numbers, if columns have values of different kinds."""
        if not self.is_mixed:
            return []
        return [each.name for each in self.candidates if each.name not in SAMPLERS]

    def left_out(self) -> list[tuple[str, str]]:
        """The methods without figures, with the reason."""
        return [
            (each.name, each.excluded[0] if each.excluded else "not run")
            for each in self.candidates
            if each.excluded or not each.scores
        ]


def _mean_seconds(candidate: Candidate) -> float | None:
    seconds = [each.scores["seconds"] for each in candidate.scores.values()]
    return sum(seconds) / len(seconds) if seconds else None


def _compile(settings: Settings) -> None:
    """Fit a tiny table first, so that the time of the first fit does not include compilation."""
    stars = np.arange(1, 5)[np.add.outer(np.arange(8), np.arange(6)) % 4].astype(float)
    stars[0, 0] = np.nan
    with suppress(FillrankError):
        models.fit(settings, fr.Observations.of(stars), progress=False)


def _show(comparison: Comparison) -> None:
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


def _as_csv(comparison: Comparison) -> str:
    """The ranking as CSV: a line for each method; excluded methods come last."""
    names = [*FIGURES, *(f"{name}_sd" for name in ("rmse", "mae"))]
    if not comparison.has_one_unit:
        names += RELATIVE_FIGURES
    lines: list[list[Any]] = []
    measures = () if comparison.scoring.lists is None else tuple(TITLES)
    ranked = comparison.ranked()
    for each in ranked:
        means = [each.figure(name).mean for name in FIGURES]
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
