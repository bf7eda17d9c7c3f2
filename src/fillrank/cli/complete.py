"""``fillrank complete``: fill in the missing values of a table."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

import fillrank as fr
from fillrank.cli import features, models, options, output, source, summary
from fillrank.cli import messages as cli_messages
from fillrank.cli.completed_table import Written, is_written_wide, write_missing, write_wide
from fillrank.cli.features import Features
from fillrank.cli.fit_cost import report_cost
from fillrank.cli.group_scores import pool_splits, score_model
from fillrank.cli.imputation_file import write_imputations
from fillrank.cli.messages import Results, show_files, show_results
from fillrank.cli.models import Settings
from fillrank.cli.output import ResultNames
from fillrank.cli.source import STANDARD, Source
from fillrank.cli.titles import NO_TITLES, TableTitles
from fillrank.errors import InputError
from fillrank.io.read import ENDINGS, SHEET_ENDINGS
from fillrank.io.xlsx_writer import check_xlsx_writer
from fillrank.runtime.memory import format_bytes
from fillrank.table.labels import as_text
from fillrank.table.mids import check_mids_names
from fillrank.table.observations import Observations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fillrank.report.interface import Interface

Intervals = Literal["auto", "all", "none"]
MOST_INTERVALS = 2_000_000
MOST_DRAWS = 128  # as many as a fitted model has
FEWEST_TO_HOLD_OUT = 50  # entries of a table from which some are held out
_LARGE_RESULTS = 10**9  # bytes that are reported before the work starts


@options.filled_in(first=("method",), without=("checkpoint",), origin=Source, settings=Settings)
def complete(
    *,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR",
            help="Folder for the results; `-` writes the completed table, and nothing else, to standard "
            "output.",
            show_default="TABLE-filled",
        ),
    ] = None,
    origin: Source,
    level: options.Level = 0.9,
    hold_out: options.HoldOut = 0.1,
    settings: Settings,
    intervals: Annotated[
        Intervals,
        typer.Option(help="Write intervals.csv; auto: up to 2,000,000 missing values."),
    ] = "auto",
    imputations: Annotated[
        int,
        typer.Option(
            min=0, max=MOST_DRAWS, metavar="N",
            help="Write imputations.csv: N completed tables with random draws, for multiple imputation.",
        ),
    ] = 0,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:  # fmt: skip
    """Fill in the missing values of a table, with an interval for each.

    All entries are fitted. Then a share of them is held out and predicted by a second fit, to measure
    the error. The folder of results contains

    - filled.csv: the completed table, written as TABLE is: its delimiter, decimal mark, quotes and
      encoding; for a long table, the missing cells. Parquet, JSON and .xlsx are written as such, other
      spreadsheets as CSV
    - intervals.csv: for each missing cell, an interval for a new observation (GASR, BPMF)
    - imputations.csv, with --imputations: the table, and below it completed ones with random draws of
      the missing values, as as.mids of R's package mice reads them
    - TABLE-report.html: plots of the table, the model, and the predictions of held-out entries
    - spectrum.png, trace.png: the factors, and the course of the run
    - summary.json: settings, versions and figures

    Examples:

    - fillrank complete measurements.csv
    - fillrank complete survey.xlsx --sheet answers --ignore comments
    - fillrank complete ratings.csv --row user --column film --value stars
    - fillrank complete survey.csv --imputations 10
    - cat measurements.csv | fillrank complete - -o - > filled.csv
    """
    run(
        Job(
            origin,
            Path(f"{origin.stem}-filled") if folder is None else folder,
            settings,
            level=level,
            hold_out=hold_out,
            intervals=intervals,
            imputations=imputations,
            quiet=quiet,
            force=force,
        )
    )


@dataclass(frozen=True)
class Job:
    """The request; the options of ``fillrank complete`` explain the fields."""

    source: Source
    output: Path
    settings: Settings = field(default_factory=Settings)
    level: float = 0.9
    hold_out: float = 0.1
    intervals: Intervals = "auto"
    imputations: int = 0
    quiet: bool = False
    force: bool = False

    def report(self, markup: str) -> None:
        """Print a message, unless ``quiet``."""
        if not self.quiet:
            cli_messages.report(markup)


class Evaluation(NamedTuple):
    """Held-out entries, the model that was fitted without them, and its scores on them."""

    test: Observations
    model: Any
    scores: summary.HeldOut


def run(job: Job, more: Callable[[Any], Results] = lambda model: []) -> None:
    """Complete the table and show the results; ``more`` may add to them."""
    if job.output == STANDARD and job.imputations:
        raise InputError(
            "--output - writes one completed table, so it cannot be used with --imputations. Give a "
            "folder."
        )
    models.check(job.settings, job.source)
    if job.output != STANDARD:  # before the table is read, unless it is in a zip file
        _check_folder(job.output)
        _check_apart(job, output.result_names(job.source.stem, job.source.ending))
    table = source.read_table(job.source, job.quiet)
    data = table.data
    if job.imputations:
        passive = [column.label for column in data.origin.passive]
        check_mids_names([as_text(label) for label in (*data.column_labels, *passive)])
    if source.is_complete(data) and not job.quiet:
        source.report_complete(job.source, data)
    if job.output == STANDARD:
        _complete_to_stdout(job, data, Written.like(table, table.ending))
        return
    names = output.result_names(job.source.stem, table.ending, is_written_wide(data))
    filled = Path(names.filled)
    if filled.suffix == ".xlsx":
        check_xlsx_writer(filled)
    written = Written.like(table, filled.suffix)
    _check_apart(job, names)
    with output.staged(job.output, names, job.force) as stage:
        with_intervals = _plan_output(job, data, names)
        evaluation, model = fit(job, data)
        with output.writing(job.output):
            also = " and their intervals" if with_intervals else ""
            if n_missing := _n_missing(data):
                job.report(f"Writing {n_missing:,} missing cells{also}.")
            _write(job, model, written, stage, names, with_intervals)
            write_report(job, model, evaluation, stage / names.report)
            held_out = None if evaluation is None else evaluation.scores
            summary.write_summary(stage / names.summary, job, model, held_out)
    if table.ending in SHEET_ENDINGS and filled.suffix == ".csv":
        job.report(f"The completed table is CSV, which spreadsheets open: {names.filled}.")
    if not job.quiet:
        show_results([*summary.describe_model(model, held_out), *more(model)])
    show_files([path for name in names if (path := job.output / name).exists()])


def _check_folder(folder: Path) -> None:
    """Refuse the name of a table: its folder would look like a file to other programs."""
    if folder.suffix.lower() in ENDINGS and not folder.is_dir():
        raise InputError(
            f"--output is a folder for the results, and {folder} is the name of a table. Give the name "
            f"of a folder, such as {folder.with_suffix('')}, or write the completed table alone by "
            f"--output - > {folder}"
        )


def _check_apart(job: Job, names: ResultNames) -> None:
    output.check_apart([job.output / name for name in names], job.source.inputs)


def _complete_to_stdout(job: Job, data: Observations, written: Written) -> None:
    """Write only the completed table to standard output; messages go to standard error."""
    evaluation, model = fit(job, data)
    _write_filled(job, model, written, STANDARD)
    if not job.quiet:
        held_out = None if evaluation is None else evaluation.scores
        show_results(summary.describe_model(model, held_out), file=sys.stderr)


def _n_missing(data: Observations) -> int:
    return math.prod(data.shape) - data.n_entries


def _plan_output(job: Job, data: Observations, names: ResultNames) -> bool:
    """Check the disk space and report what is not written; return whether to write intervals."""
    n_missing = _n_missing(data)
    if job.settings.method not in models.SAMPLERS:
        if job.intervals == "all":
            raise InputError(
                f"--intervals all needs a method with intervals, {' or '.join(models.SAMPLERS)}; got "
                f"--method {job.settings.method}."
            )
        if job.imputations:
            raise InputError(
                f"--imputations needs a method with draws, {' or '.join(models.SAMPLERS)}; got "
                f"--method {job.settings.method}."
            )
        wanted = False
    else:
        wanted = job.intervals == "all" or (job.intervals == "auto" and n_missing <= MOST_INTERVALS)
        if job.intervals == "auto" and not wanted:
            job.report(
                f"{n_missing:,} values are missing: {names.intervals} is not written. "
                "Request it with --intervals all."
            )
    n_bytes = summary.results_size(data, wanted, job.imputations)
    if n_bytes >= _LARGE_RESULTS:
        job.report(f"The results will take about {format_bytes(n_bytes)}.")
    output.check_disk_space(job.output, n_bytes)
    return wanted


def fit(job: Job, data: Observations) -> tuple[Evaluation | None, Any]:
    """Fit all entries, and measure the error of such a model on held-out entries."""
    given = features.read(job.source, data)
    holds_out = job.hold_out > 0 and data.n_entries >= FEWEST_TO_HOLD_OUT
    if not job.quiet:
        report_cost(job.settings, data, times=1 + holds_out)
    job.report("Fitting all entries.")
    model = models.fit(job.settings, data, progress=not job.quiet, features=given)
    # One choice for the table, as its kinds and units are: it fits no held-out value better.
    noise = model.completion_.record.noise or job.settings.noise
    again = replace(job, settings=job.settings._replace(noise=noise))
    return evaluate(again, data, given), model


def evaluate(job: Job, data: Observations, given: Features) -> Evaluation | None:
    """Hold out some of the entries, predict them from the others, and compute the scores."""
    if job.hold_out == 0:
        return None
    if data.n_entries < FEWEST_TO_HOLD_OUT:
        few = "1 entry" if data.n_entries == 1 else f"{data.n_entries} entries"
        job.report(
            f"The table has only {few}: none is held out to measure the error, "
            f"which needs {FEWEST_TO_HOLD_OUT}."
        )
        return None
    train, test = data.split(job.hold_out, random_state=job.settings.seed)
    job.report(
        f"Fitting again without {len(test):,} held-out entries, to measure the error on them."
    )
    model = models.fit(job.settings, train, not job.quiet, features=given, table=data)
    own_units = models.has_own_units(job.settings, data)
    return Evaluation(test, model, _score(model, test, job.level, own_units))


def _score(model: Any, test: Observations, level: float, own_units: bool) -> summary.HeldOut:
    found = score_model(model, test, level)
    groups = pool_splits([found], test.column_labels, level, own_units)
    scores = found.scores
    return summary.HeldOut(
        len(test),
        scores["rmse"],
        scores["mae"],
        scores["coverage"],
        level,
        float(test.values.std()),
        scores["interval_score"],
        scores["log_score"],
        groups,
    )


def _write(
    job: Job, model: Any, written: Written, stage: Path, names: ResultNames, with_intervals: bool
) -> None:
    _write_filled(job, model, written, stage / names.filled)
    if with_intervals:
        path = stage / names.intervals
        write_missing(path, model, job.level, written, show=not job.quiet)
    if job.imputations:
        _write_imputations(job, model, stage / names.imputations)
    _save_plot(fr.plot.spectrum(model), stage / names.spectrum)
    if model.completion_.record.traces is not None:
        _save_plot(fr.plot.trace(model), stage / names.trace)


def _write_filled(job: Job, model: Any, written: Written, path: Path) -> None:
    if is_written_wide(model.observations_):
        write_wide(path, model, written)
    else:
        write_missing(path, model, written=written, show=not job.quiet)


def _write_imputations(job: Job, model: Any, path: Path) -> None:
    n = min(job.imputations, model.posterior_.n_draws)
    if n < job.imputations:
        job.report(f"The run has {n} draws, so {path.name} has {n} completed tables.")
    write_imputations(path, model, n, job.settings.seed)


def _save_plot(ax: Axes, path: Path) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.savefig(path)


def write_report(
    job: Job,
    model: Any,
    evaluation: Evaluation | None,
    path: Path,
    titles: TableTitles = NO_TITLES,
) -> None:
    """Write the report of a model, with the predictions of held-out entries if there are any."""
    from fillrank.report.html import write_report as write  # imported late: it loads matplotlib

    test, tested = (None, None) if evaluation is None else (evaluation.test, evaluation.model)
    write(
        model, path, test, job.source.name, tested=tested,
        interface=_interface(job, model.observations_), **titles.arguments(),
    )  # fmt: skip


def _interface(job: Job, data: Observations) -> Interface:
    """What users of the command line see in the report, and can run."""
    to_hold_out = ""
    if data.n_entries >= FEWEST_TO_HOLD_OUT:
        table = shlex.quote(str(job.source.table))
        to_hold_out = f"fillrank report {table} --hold-out 0.1"
    read = f"Read {job.source.name}: {source.describe_reading(data)}"
    return cli_messages.command_line(to_hold_out, (read, *source.list_notes(data)))
