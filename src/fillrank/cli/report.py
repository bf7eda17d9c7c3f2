"""``fillrank report``: a page of pictures about a table or a model."""

from pathlib import Path
from typing import Annotated

import typer

from fillrank.cli import job, methods, models, output, source, summary
from fillrank.cli import options as given
from fillrank.cli.job import Job
from fillrank.cli.messages import escape, show_files
from fillrank.cli.methods import Settings
from fillrank.cli.source import Source
from fillrank.estimators.convergence import convergence_of


def report(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE|MODEL",
            help="A table, as for `complete`; or a model that `fillrank fit` has kept.",
        ),
    ],
    file: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page.")] = Path(
        "report.html"
    ),
    method: given.Method = "GASR",
    hold_out: given.HoldOut = 0.1,
    row: given.Row = None,
    column: given.Column = None,
    value: given.Value = None,
    layout: given.Layout = "auto",
    duplicates: given.Duplicates = "error",
    format: given.Format = None,
    skip: given.Skip = 0,
    encoding: given.Encoding = None,
    seed: given.Seed = 0,
    max_rank: given.MaxRank = "auto",
    sweeps: given.Sweeps = "auto",
    chains: given.Chains = 2,
    threads: given.Threads = None,
    quiet: given.Quiet = False,
    force: given.Force = False,
) -> None:
    """Write a report as one HTML file that needs nothing else: pictures first, then settings.

    Of a table, a share of the entries is hidden first and predicted, as `complete` does, and the report
    shows how well that went. Of a model, it shows what the model has found.

    Examples:

    - fillrank report measurements.csv
    - fillrank report ratings.fillrank -o ratings.html
    """
    output.check_file(file, force, [table])
    if not source.is_table(table) and format is None:
        from fillrank.report.html import write_report as write

        model = models.load(table, threads, quiet)
        write(model, file, title=table.stem)
    else:
        origin = Source(table, row, column, value, layout, duplicates, format, skip, encoding)
        settings = Settings(method, max_rank, sweeps, chains, threads, seed)
        _of_table(Job(origin, file, settings, hold_out=hold_out, quiet=quiet))
    show_files([file])


def _of_table(asked: Job) -> None:
    methods.check(asked.settings)
    data = source.read(asked.source, asked.quiet, to_fill=False)
    measured, model = job.fit(asked, data)
    if convergence_of(model).converged is False:
        asked.say(f"[bold yellow]Note:[/] converged: {escape(summary.verdict(model))}")
    job.write_report(asked, model, measured, asked.output)
