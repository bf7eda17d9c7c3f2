"""``fillrank update``: take new entries into a model, without a new fit."""

from pathlib import Path
from typing import Annotated

import typer

from fillrank.cli import models, new_data, options, source
from fillrank.cli.source import Source


def update(
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
            show_default="TABLE-filled.csv",
        ),
    ] = None,
    saved: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="MODEL", help="File for the updated model.",
            show_default="MODEL-updated.fillrank",
        ),
    ] = None,
    row: options.Row = None,
    column: options.Column = None,
    value: options.Value = None,
    layout: options.Layout = "auto",
    format: options.Format = None,
    skip: options.Skip = 0,
    encoding: options.Encoding = None,
    na: options.MissingValues = None,
    label: options.Label = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    sheet: options.Sheet = None,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:  # fmt: skip
    """Take new entries of known rows and columns into a model, without a new fit.

    Rows with new entries are completed again, each given all of its entries. All else does not change:
    after many new entries, fit again. A new value of a cell replaces the old one.

    Examples:

    - fillrank update ratings.fillrank today.csv
    - fillrank update ratings.fillrank today.csv --save new.fillrank
    """
    origin = Source(
        table, row, column, value, layout, format=format, skip=skip, encoding=encoding,
        missing_values=na, label=label, decimal=decimal, thousands=thousands, sheet=sheet,
    )  # fmt: skip
    filled = new_data.filled_name(origin) if filled is None else filled
    saved = Path(f"{model.stem}-updated.fillrank") if saved is None else saved
    new_data.check_targets(filled, saved, force, [model, table])
    loaded = models.load(model, threads, quiet)
    models.check_entries(loaded, model, "an update")
    found = source.read_table(origin, quiet, like=loaded.observations_)
    result = loaded.update(found.data)
    new_data.write_results(result, found, origin, filled, saved)
