"""``fillrank compare``: every method on the same held-out entries of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fillrank.cli import features, models, options, source
from fillrank.cli.comparison import Comparison
from fillrank.cli.comparison_results import (
    check_file,
    comparison_summary,
    show_comparison,
    write_figures,
)
from fillrank.cli.fit_cost import report_cost
from fillrank.cli.messages import report, show_files
from fillrank.cli.models import SAMPLERS, Settings
from fillrank.cli.ranking import Relevant, Scoring, Top, read_options
from fillrank.cli.results import show_json
from fillrank.cli.signals import FAILED, INTERRUPTED
from fillrank.cli.source import Source
from fillrank.cli.splits import Split

_ALL = ",".join(options.METHODS)


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
        check_file(file, force, origin.inputs)
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
        report_cost(of_methods, data, times=splits)
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
        show_comparison(comparison)
    if file is not None:
        files = write_figures(file, comparison, figures)
        if not as_json:
            show_files(files)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if not comparison.ranked():
        raise typer.Exit(FAILED)
