"""The main job: read a table, measure the error on hidden entries, fit, write the results."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import fillrank as fr
from fillrank.cli import output, summary
from fillrank.cli.messages import Lines, escape, say, show_files, show_results
from fillrank.cli.tables import is_written_wide, write_missing, write_wide
from fillrank.data.layout import Layout
from fillrank.data.observations import Observations
from fillrank.data.triplets import Duplicates
from fillrank.errors import ConvergenceWarning, InputError

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

    table: Path
    output: Path
    row: str | None = None
    column: str | None = None
    value: str | None = None
    layout: Layout = "auto"
    duplicates: Duplicates = "error"
    level: float = 0.9
    hold_out: float = 0.1
    seed: int = 0
    max_rank: int | Literal["auto"] = "auto"
    sweeps: int | Literal["auto"] = "auto"
    chains: int = 1
    threads: int | None = None
    intervals: Intervals = "auto"
    quiet: bool = False
    force: bool = False

    def say(self, markup: str) -> None:
        """Tell the user what happens, unless silence was asked for."""
        if not self.quiet:
            say(markup)


def run(job: Job, more: Callable[[GASR], Lines] = lambda model: []) -> None:
    """Do the job and show its results; ``more`` may add to them."""
    data = _read(job)
    output.check_keeps(job.table, job.output, output.RESULTS)
    with output.staged(job.output, output.RESULTS, job.force) as stage:
        with_intervals = _plan_output(job, data)
        hidden = _measure(job, data)
        job.say("Fitting all entries.")
        model = _fit(job, data)
        with output.writing(job.output):
            also = " and their intervals" if with_intervals else ""
            job.say(f"Writing {_n_missing(data):,} missing cells{also}.")
            _write(job, model, stage, with_intervals)
            diagnostics = model.diagnostics()
            summary.write(stage / output.SUMMARY, job, model, hidden, diagnostics)
    if not job.quiet:
        show_results([*summary.in_words(model, hidden, diagnostics), *more(model)])
    show_files([path for name in output.RESULTS if (path := job.output / name).exists()])


def _read(job: Job) -> Observations:
    data = fr.read(
        job.table,
        row=job.row,
        column=job.column,
        value=job.value,
        layout=job.layout,
        duplicates=job.duplicates,
    )
    if data.n_entries == math.prod(data.shape):
        raise InputError(
            f"{job.table} has no missing cell: there is nothing to fill in. A missing value is an "
            "empty cell or NA. If a number such as 0 or -1 stands for it, clear those cells first."
        )
    job.say(f"Read {escape(str(job.table))}: {escape(summary.of_table(data))}")
    return data


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
        job.say(f"The results will take about {output.in_bytes(n_bytes)}.")
    output.check_room(job.output, n_bytes)
    return wanted


def _measure(job: Job, data: Observations) -> summary.Hidden | None:
    """Hide some of the entries, predict them from the others, and score that."""
    if job.hold_out == 0:
        return None
    if data.n_entries < FEWEST_FOR_HIDING:
        job.say(
            f"There are only {data.n_entries} entries: none is hidden to measure the error "
            f"(that takes {FEWEST_FOR_HIDING})."
        )
        return None
    train, test = data.split(job.hold_out, random_state=job.seed)
    job.say(f"Fitting without {len(test):,} hidden entries, to measure the error on them.")
    scores = fr.score(test, _fit(job, train), job.level)
    spread = float(test.values.std())
    return summary.Hidden(
        len(test), scores["rmse"], scores["mae"], scores["coverage"], job.level, spread
    )


def _fit(job: Job, data: Observations) -> GASR:
    model = fr.GASR(
        max_rank=job.max_rank,
        n_sweeps=job.sweeps,
        n_chains=job.chains,
        n_threads=job.threads,
        random_state=job.seed,
        progress=not job.quiet,
    )
    with warnings.catch_warnings():
        # How the run ended is among the results.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data)
    if model.interrupted_:
        # The library keeps what it has; at a terminal, Ctrl-C means to end.
        raise KeyboardInterrupt
    return model


def _write(job: Job, model: GASR, stage: Path, with_intervals: bool) -> None:
    if is_written_wide(model.observations_):
        write_wide(stage / output.FILLED, model)
    else:
        write_missing(stage / output.FILLED, model, show=not job.quiet)
    if with_intervals:
        write_missing(stage / output.INTERVALS, model, job.level, show=not job.quiet)
    _save(fr.plot.spectrum(model), stage / output.SPECTRUM)
    _save(fr.plot.trace(model), stage / output.TRACE)


def _save(ax: Axes, path: Path) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.savefig(path)
