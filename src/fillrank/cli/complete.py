"""``fillrank complete``: fill in the missing cells of a table."""

from pathlib import Path
from typing import Annotated

import typer

from fillrank.cli import options as given
from fillrank.cli.job import Intervals, Job, run
from fillrank.cli.methods import Settings
from fillrank.cli.source import Source


def complete(
    table: given.Table,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR",
            help="Folder for the results; `-` writes the filled table to standard output, and nothing "
            "else.",
            show_default="TABLE-filled",
        ),
    ] = None,
    row: given.Row = None,
    column: given.Column = None,
    value: given.Value = None,
    layout: given.Layout = "auto",
    duplicates: given.Duplicates = "error",
    format: given.Format = None,
    skip: given.Skip = 0,
    encoding: given.Encoding = None,
    level: given.Level = 0.9,
    hold_out: given.HoldOut = 0.1,
    seed: given.Seed = 0,
    max_rank: given.MaxRank = "auto",
    sweeps: given.Sweeps = "auto",
    chains: given.Chains = 2,
    threads: given.Threads = None,
    intervals: Annotated[
        Intervals,
        typer.Option(help="Write intervals.csv; auto: up to 2,000,000 missing cells."),
    ] = "auto",
    quiet: given.Quiet = False,
    force: given.Force = False,
) -> None:  # fmt: skip
    """Fill in the missing cells of a table and say how sure each is.

    First a share of the entries is hidden and predicted, which gives an honest error. Then all
    entries are fitted. The folder of results gets

    - filled.csv: the completed table; of a long table, the missing cells
    - intervals.csv: each missing cell with the interval that would hold a new observation of it
    - report.html: pictures of the table, of what was found, and of how well hidden entries were met
    - spectrum.png, trace.png: the factors found, and how the run went
    - summary.json: settings, versions and figures

    Examples:

    - fillrank complete measurements.csv
    - fillrank complete ratings.csv --row user --column film --value stars
    - cat measurements.csv | fillrank complete - -o - > filled.csv
    """
    source = Source(table, row, column, value, layout, duplicates, format, skip, encoding)
    run(
        Job(
            source,
            Path(f"{source.stem}-filled") if output is None else output,
            Settings("GASR", max_rank, sweeps, chains, threads, seed),
            level=level,
            hold_out=hold_out,
            intervals=intervals,
            quiet=quiet,
            force=force,
        )
    )
