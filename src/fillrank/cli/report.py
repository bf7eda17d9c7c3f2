"""``fillrank report``: an HTML page about a table or a model."""

from pathlib import Path
from typing import Annotated

import typer

from fillrank.cli import complete, models, options, output, source, summary
from fillrank.cli.complete import Job
from fillrank.cli.messages import command_line, report_note, show_files
from fillrank.cli.models import Settings
from fillrank.cli.source import Source
from fillrank.cli.titles import TitleFiles
from fillrank.completions.convergence import convergence_of


@options.filled_in(first=("method",), without=("checkpoint",), origin=Source, settings=Settings)
def report(
    *,
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE|MODEL",
            help="A table, as for `complete`; or a model that `fillrank fit` has saved.",
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The HTML file. An earlier report is replaced.",
            show_default="TABLE-report.html",
        ),
    ] = None,
    hold_out: options.HoldOut = 0.1,
    origin: Source,
    row_titles: options.RowTitles = None,
    column_titles: options.ColumnTitles = None,
    settings: Settings,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:  # fmt: skip
    """Write a report as a single HTML file: results, plots and settings.

    For a table, a share of the entries is held out and predicted by a second fit, as in `complete`, and
    the report shows how well they are predicted. For a model, it shows the model.

    Examples:

    - fillrank report measurements.csv
    - fillrank report ratings.fillrank -o ratings.html
    - fillrank report ml-1m.fillrank --column-titles movies.dat
    """
    file = Path(output.report_name(origin.stem)) if file is None else file
    title_files = TitleFiles(row_titles, column_titles)
    inputs = [*origin.inputs, *title_files.paths]
    output.check_file(file, force or output.is_report(file), inputs)
    if not source.is_table(table) and origin.format is None:
        from fillrank.report.html import write_report

        model = models.load(table, settings.threads, quiet)
        interface = command_line("fillrank report TABLE --hold-out 0.1")
        titles = title_files.read(model.observations_, quiet).arguments()
        write_report(model, file, title=table.stem, interface=interface, **titles)
    else:
        _report_table(Job(origin, file, settings, hold_out=hold_out, quiet=quiet), title_files)
    show_files([file])


def _report_table(job: Job, title_files: TitleFiles) -> None:
    models.check(job.settings, job.source)
    data = source.read(job.source, job.quiet)
    titles = title_files.read(data, job.quiet)
    evaluation, model = complete.fit(job, data)
    if not job.quiet and convergence_of(model).converged is False:
        report_note(summary.describe_convergence(model, "The run has not converged"))
    complete.write_report(job, model, evaluation, job.output, titles)
