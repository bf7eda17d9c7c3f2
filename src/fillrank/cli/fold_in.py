"""``fillrank fold-in``: complete new rows with a model, without a new fit."""

from pathlib import Path
from typing import Annotated

import typer

from fillrank.cli import models, new_data, options, source
from fillrank.cli.features import read_new
from fillrank.cli.source import Source


def fold_in(
    model: options.Model,
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="The new rows, with all or some of the columns of the model. A file as for `complete`. "
            "`-` reads standard input.",
        ),
    ],
    filled: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE",
            help="The new rows, completed. `-` writes them to standard output.",
            show_default="TABLE-filled.csv",
        ),
    ] = None,
    saved: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="MODEL",
            help="Save a model of the new rows in this file, for `predict` and others.",
        ),
    ] = None,
    row_features: options.NewRowFeatures = None,
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
    """Complete new rows with a model, without a new fit.

    The rows are read as the table of the fit was, and completed in all columns of the model. The model
    does not change.

    Examples:

    - fillrank fold-in ratings.fillrank newcomers.csv
    - fillrank fold-in survey.fillrank today.xlsx -o today.csv
    """
    origin = Source(
        table, row, column, value, layout, format=format, skip=skip, encoding=encoding,
        missing_values=na, label=label, decimal=decimal, thousands=thousands, sheet=sheet,
    )  # fmt: skip
    filled = new_data.filled_name(origin) if filled is None else filled
    inputs = [model, table, *([] if row_features is None else [row_features])]
    new_data.check_targets(filled, saved, force, inputs)
    loaded = models.load(model, threads, quiet)
    found = source.read_table(origin, quiet, like=loaded.observations_)
    features = read_new(row_features, found.data.row_labels.tolist(), "row", quiet)
    result = loaded.fold_in(found.data, row_features=features)
    new_data.write_results(result, found, origin, filled, saved)
