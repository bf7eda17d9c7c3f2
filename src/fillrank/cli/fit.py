"""``fillrank fit``: fit a table, and keep the model in a file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fillrank.cli import estimate, methods, output, source, summary
from fillrank.cli import options as given
from fillrank.cli.exits import INTERRUPTED
from fillrank.cli.messages import escape, say, show_files, show_results
from fillrank.cli.methods import Settings
from fillrank.cli.source import STANDARD, Source
from fillrank.data.observations import Observations
from fillrank.errors import InputError

ENDING = ".fillrank"


def fit(
    table: given.Table,
    model: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="File for the model.",
            show_default=f"TABLE{ENDING}",
        ),
    ] = None,
    method: given.Method = "GASR",
    with_data: Annotated[
        bool,
        typer.Option(
            "--with-data/--without-data",
            help="Whether the table's entries go into the file. Without them the model cannot tell "
            "what is missing, or leave out what was seen; names are always there.",
        ),
    ] = True,
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
    chains: given.Chains = 1,
    threads: given.Threads = None,
    checkpoint: given.Checkpoint = None,
    quiet: given.Quiet = False,
    force: given.Force = False,
) -> None:  # fmt: skip
    """Fit a table and keep the model in a file, for `predict`, `recommend`, `report` and `explore`.

    The file holds numbers and names, nothing that could be run; fr.load(MODEL) opens it in Python.

    Examples:

    - fillrank fit ratings.csv
    - fillrank fit ratings.csv -o small.fillrank --method BPMF --without-data
    - fillrank fit huge.csv --checkpoint huge-run
    """
    origin = Source(table, row, column, value, layout, duplicates, format, skip, encoding)
    settings = Settings(method, max_rank, sweeps, chains, threads, seed, checkpoint)
    methods.check(settings)
    place = Path(f"{origin.stem}{ENDING}") if model is None else model
    _check_place(place, force)
    data = source.read(origin, quiet, to_fill=False)
    if not quiet:
        estimate.tell(settings, data)
    fitted = _fit(settings, data, quiet)
    fitted.save(place, with_data=with_data)
    if not quiet:
        show_results(summary.in_words(fitted, None))
    show_files([place])


def _check_place(place: Path, force: bool) -> None:
    if place == STANDARD:
        raise InputError("a model is kept in a file, not on standard output. Name it by --output.")
    if source.is_table(place):
        raise InputError(
            f"{place} would look like a table. Give the model another ending, such as {ENDING}."
        )
    output.check_file(place, force)


def _fit(settings: Settings, data: Observations, quiet: bool) -> Any:
    try:
        return methods.fit(settings, data, progress=not quiet)
    except KeyboardInterrupt as error:
        if settings.checkpoint is None:
            raise
        say(
            f"Interrupted. The run is kept in {escape(str(settings.checkpoint))}: the same command "
            "takes it up again."
        )
        raise typer.Exit(INTERRUPTED) from error
