"""``fillrank complete``: fill in the missing cells of a table."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fillrank.cli.job import Intervals, Job, run
from fillrank.cli.output import default_folder
from fillrank.data.layout import Layout
from fillrank.data.triplets import Duplicates


def whole_or_auto(text: str) -> Any:
    """Take a whole number above 0, or "auto"."""
    if text == "auto":
        return text
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(f"{text!r} is neither 'auto' nor a whole number above 0.")


def complete(
    table: Annotated[
        Path,
        typer.Argument(
            help="A wide table (a cell for each entry) or a long one (a line for each entry): "
            ".csv .tsv .txt .dat .data .parquet .mtx .npy .npz, text also as .gz",
            metavar="TABLE",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for the results.",
            show_default="TABLE-filled",
        ),
    ] = None,
    row: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of a long table: the field with the row names."),
    ] = None,
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="... the field with the column names.")
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="NAME", help="... the field with the values.")
    ] = None,
    layout: Annotated[Layout, typer.Option(help="How the table is laid out.")] = "auto",
    duplicates: Annotated[
        Duplicates, typer.Option(help="What to do with several values for one cell.")
    ] = "error",
    level: Annotated[
        float,
        typer.Option(
            metavar="SHARE", min=0.01, max=0.999, help="Probability that an interval holds."
        ),
    ] = 0.9,
    hold_out: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=0.9,
            help="Entries to hide first, to measure the error; 0: none.",
        ),
    ] = 0.1,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=2**32 - 1, help="The same seed gives the same results."
        ),
    ] = 0,
    max_rank: Annotated[
        Any, typer.Option(parser=whole_or_auto, metavar="N|auto", help="The most factors.")
    ] = "auto",
    sweeps: Annotated[
        Any,
        typer.Option(
            parser=whole_or_auto, metavar="N|auto", help="Sweeps of the sampler; auto: until enough."
        ),
    ] = "auto",
    chains: Annotated[int, typer.Option(metavar="N", min=1, help="Independent chains.")] = 1,
    threads: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Processors to use.", show_default="all"),
    ] = None,
    intervals: Annotated[
        Intervals,
        typer.Option(help="Write intervals.csv; auto: up to 2,000,000 missing cells."),
    ] = "auto",
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print errors and the list of files only.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier results.")] = False,
) -> None:  # fmt: skip
    """Fill in the missing cells of a table and say how sure each is.

    First a share of the entries is hidden and predicted, which gives an honest error. Then all
    entries are fitted. The folder of results gets

    - filled.csv: the completed table; of a long table, the missing cells
    - intervals.csv: each missing cell with the interval that would hold a new observation of it
    - spectrum.png, trace.png: the factors found, and how the run went
    - summary.json: settings, versions and figures

    Examples:

    - fillrank complete measurements.csv
    - fillrank complete ratings.csv --row user --column film --value stars
    """
    run(
        Job(
            table=table,
            output=default_folder(table) if output is None else output,
            row=row,
            column=column,
            value=value,
            layout=layout,
            duplicates=duplicates,
            level=level,
            hold_out=hold_out,
            seed=seed,
            max_rank=max_rank,
            sweeps=sweeps,
            chains=chains,
            threads=threads,
            intervals=intervals,
            quiet=quiet,
            force=force,
        )
    )
