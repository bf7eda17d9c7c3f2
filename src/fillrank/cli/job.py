"""The main job: read a table, measure the error on hidden entries, fit, write the results."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import fillrank as fr
from fillrank.cli import estimate, methods, output, source, summary
from fillrank.cli.messages import Lines, say, show_files, show_results
from fillrank.cli.methods import Settings
from fillrank.cli.source import STANDARD, Source
from fillrank.cli.tables import is_written_wide, write_missing, write_wide
from fillrank.runtime.memory import format_bytes
from fillrank.table.observations import Observations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fillrank.estimators.gasr import GASR

Intervals = Literal["auto", "all", "none"]
MOST_INTERVALS = 2_000_000
FEWEST_FOR_HIDING = 50
_LARGE = 10**9  # bytes of results that are worth a word beforehand


@dataclass(frozen=True)
class Job:
    """What was asked for; the options of ``fillrank complete`` explain the fields."""

    source: Source
    output: Path
    settings: Settings = field(default_factory=Settings)
    level: float = 0.9
    hold_out: float = 0.1
    intervals: Intervals = "auto"
    quiet: bool = False
    force: bool = False

    def say(self, markup: str) -> None:
        """Tell the user what happens, unless silence was asked for."""
        if not self.quiet:
            say(markup)


class Measured(NamedTuple):
    """Hidden entries, the model that was fitted without them, and how well it predicts them."""

    test: Observations
    model: Any
    hidden: summary.Hidden


def run(job: Job, more: Callable[[GASR], Lines] = lambda model: []) -> None:
    """Do the job and show its results; ``more`` may add to them."""
    if job.output != STANDARD:
        results = [job.output / name for name in output.RESULTS]
        output.check_apart(results, [job.source.table])
    data = source.read(job.source, job.quiet)
    if job.output == STANDARD:
        _to_standard_output(job, data)
        return
    with output.staged(job.output, output.RESULTS, job.force) as stage:
        with_intervals = _plan_output(job, data)
        measured, model = fit(job, data)
        with output.writing(job.output):
            also = " and their intervals" if with_intervals else ""
            job.say(f"Writing {_n_missing(data):,} missing cells{also}.")
            _write(job, model, stage, with_intervals)
            write_report(job, model, measured, stage / output.REPORT)
            hidden = None if measured is None else measured.hidden
            summary.write(stage / output.SUMMARY, job, model, hidden)
    if not job.quiet:
        show_results([*summary.in_words(model, hidden), *more(model)])
    show_files([path for name in output.RESULTS if (path := job.output / name).exists()])


def _to_standard_output(job: Job, data: Observations) -> None:
    """The completed table alone to standard output; all words go elsewhere."""
    measured, model = fit(job, data)
    _write_filled(job, model, STANDARD)
    if not job.quiet:
        hidden = None if measured is None else measured.hidden
        show_results(summary.in_words(model, hidden), file=sys.stderr)


def _n_missing(data: Observations) -> int:
    return math.prod(data.shape) - data.n_entries


def _plan_output(job: Job, data: Observations) -> bool:
    """Say what will not be written, and refuse what the disk cannot hold; are there intervals?"""
    n_missing = _n_missing(data)
    wanted = job.intervals == "all" or (job.intervals == "auto" and n_missing <= MOST_INTERVALS)
    if job.intervals == "auto" and not wanted:
        job.say(
            f"{n_missing:,} cells are missing: {output.INTERVALS} is left out. "
            "Ask for it by --intervals all."
        )
    n_bytes = summary.size_of_results(data, wanted)
    if n_bytes >= _LARGE:
        job.say(f"The results will take about {format_bytes(n_bytes)}.")
    output.check_room(job.output, n_bytes)
    return wanted


def fit(job: Job, data: Observations) -> tuple[Measured | None, Any]:
    """Measure the error, and fit all entries."""
    hides = job.hold_out > 0 and data.n_entries >= FEWEST_FOR_HIDING
    if not job.quiet:
        estimate.tell(job.settings, data, times=1 + hides)
    measured = measure(job, data)
    job.say("Fitting all entries.")
    return measured, methods.fit(job.settings, data, progress=not job.quiet)


def measure(job: Job, data: Observations) -> Measured | None:
    """Hide some of the entries, predict them from the others, and score that."""
    if job.hold_out == 0:
        return None
    if data.n_entries < FEWEST_FOR_HIDING:
        few = "is only 1 entry" if data.n_entries == 1 else f"are only {data.n_entries} entries"
        job.say(
            f"There {few}: none is hidden to measure the error (that takes {FEWEST_FOR_HIDING})."
        )
        return None
    train, test = data.split(job.hold_out, random_state=job.settings.seed)
    job.say(f"Fitting without {len(test):,} hidden entries, to measure the error on them.")
    model = methods.fit(job.settings, train, progress=not job.quiet)
    scores = fr.score(test, model, job.level)
    spread = float(test.values.std())
    hidden = summary.Hidden(
        len(test), scores["rmse"], scores["mae"], scores["coverage"], job.level, spread
    )
    return Measured(test, model, hidden)


def _write(job: Job, model: GASR, stage: Path, with_intervals: bool) -> None:
    _write_filled(job, model, stage / output.FILLED)
    if with_intervals:
        write_missing(stage / output.INTERVALS, model, job.level, show=not job.quiet)
    _save(fr.plot.spectrum(model), stage / output.SPECTRUM)
    _save(fr.plot.trace(model), stage / output.TRACE)


def _write_filled(job: Job, model: GASR, path: Path) -> None:
    if is_written_wide(model.observations_):
        write_wide(path, model)
    else:
        write_missing(path, model, show=not job.quiet)


def _save(ax: Axes, path: Path) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.savefig(path)


def write_report(job: Job, model: Any, measured: Measured | None, path: Path) -> None:
    """Write the report of a model of all entries; hidden ones are met by the model without them."""
    from fillrank.report.html import write_report as write  # imported late: it brings matplotlib

    title = job.source.name
    if measured is None:
        write(model, path, title=title)
    else:
        write(model, path, test=measured.test, title=title, tested=measured.model)
