"""``fillrank fold-in``: complete new rows with a model, without a new fit."""

from pathlib import Path
from typing import Annotated

import typer

from fillrank.cli import models, new_data, options, source
from fillrank.cli.features import read_new
from fillrank.cli.source import Source


@options.filled_in(without=new_data.NOT_READ, origin=Source)
def fold_in(
    *,
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
            show_default="TABLE-filled and the ending of TABLE",
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
    origin: Source,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:  # fmt: skip
    """Complete new rows with a model, without a new fit.

    The rows are read as the table of the fit was, and completed in all columns of the model. The model
    does not change.

    Examples:

    - fillrank fold-in ratings.fillrank newcomers.csv
    - fillrank fold-in survey.fillrank today.xlsx
    - fillrank fold-in survey.fillrank today.csv -o today.xlsx
    """
    inputs = [model, table, *([] if row_features is None else [row_features])]
    loaded = models.load(model, threads, quiet)
    targets = new_data.check_targets(loaded, origin, (filled, saved), force, inputs)
    found = source.read_table(origin, quiet, like=loaded.observations_)
    features = read_new(row_features, found.data.row_labels.tolist(), "row", quiet)
    result = loaded.fold_in(found.data, row_features=features)
    new_data.write_results(result, found, targets)
