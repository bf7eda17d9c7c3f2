"""``fillrank update``: take new entries into a model, without a new fit."""

from pathlib import Path
from typing import Annotated

import typer

from fillrank.cli import models, new_data, options, source
from fillrank.cli.source import Source


@options.filled_in(without=new_data.NOT_READ, origin=Source)
def update(
    *,
    model: options.Model,
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="New entries of rows and columns that the model knows. A file as for `complete`. `-` "
            "reads standard input.",
        ),
    ],
    filled: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE",
            help="The completed table, with the new entries. `-` writes it to standard output.",
            show_default="TABLE-filled and the ending of TABLE",
        ),
    ] = None,
    saved: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="MODEL", help="File for the updated model.",
            show_default="MODEL-updated.fillrank",
        ),
    ] = None,
    origin: Source,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:  # fmt: skip
    """Take new entries of known rows and columns into a model, without a new fit.

    Rows with new entries are completed again, each given all of its entries. All else does not change:
    after many new entries, fit again. A new value of a cell replaces the old one. The completed table
    has the columns that were not fitted, and numbers as they are written, if TABLE has all rows and
    entries; a model does not have them.

    Examples:

    - fillrank update ratings.fillrank today.csv
    - fillrank update ratings.fillrank today.csv --save new.fillrank
    """
    saved = Path(f"{model.stem}-updated.fillrank") if saved is None else saved
    loaded = models.load(model, threads, quiet)
    models.check_entries(loaded, model, "an update")
    targets = new_data.check_targets(loaded, origin, (filled, saved), force, [model, table])
    found = source.read_table(origin, quiet, like=loaded.observations_)
    result = loaded.update(found.data)
    new_data.write_results(result, found, targets)
