"""``fillrank predict``: ask a model for cells."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fillrank.cli import answers, models
from fillrank.cli import options as given
from fillrank.cli.messages import show_files
from fillrank.cli.pairs import Pairs, read_pairs
from fillrank.cli.source import STANDARD
from fillrank.errors import InputError
from fillrank.table.frames import to_long

_AT_ONCE = 2**18


def predict(
    model: given.Model,
    pairs: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PAIRS]",
            help="A .csv or .parquet file with a line for each cell to predict: a field with its row, "
            "and one with its column. `-`, or nothing, reads standard input.",
            show_default=False,
        ),
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="All cells that were missing, instead of pairs.")
    ] = False,
    level: given.OptionalLevel = None,
    unknown: Annotated[
        Literal["error", "prior"],
        typer.Option(
            help="Names that the model does not know: an error, or predicted as rows and columns of "
            "which nothing is known."
        ),
    ] = "error",
    row: Annotated[
        str | None, typer.Option(metavar="NAME", help="The field of PAIRS with the row names.")
    ] = None,
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="... the field with the column names.")
    ] = None,
    output: given.AnswersFile = None,
    as_json: given.Json = False,
    threads: given.Threads = None,
    quiet: given.Quiet = False,
    force: given.Force = False,
) -> None:
    """Predict cells by the names of their row and column.

    Answers are a line for each cell, in the order of the pairs: row, column, value and, with --level,
    lower and upper. A terminal shows them as a table, a pipe gets CSV.

    Examples:

    - echo "Ana,tea" | fillrank predict ratings.fillrank
    - fillrank predict ratings.fillrank asked.csv --level 0.9 -o answers.csv
    - fillrank predict ratings.fillrank --missing -o all.parquet
    """
    if missing and pairs is not None:
        raise InputError(
            f"--missing asks for all missing cells, and {pairs} for some. Leave out one."
        )
    if not missing and pairs is None and sys.stdin.isatty():
        raise InputError("name a file of pairs, pipe them in, or ask for all cells by --missing.")
    asked_in = STANDARD if pairs is None else pairs
    where = answers.target(output, as_json, force, [model] if missing else [model, asked_in])
    loaded = models.load(model, threads, quiet)
    data = loaded.observations_
    if missing:
        models.check_entries(loaded, model, "--missing")
        if len(data) == math.prod(data.shape):
            raise InputError(
                f"the table of {model} has no missing cell: there is nothing to predict."
            )
        tables = loaded.predict_missing(level)
    else:
        asked = read_pairs(asked_in, data, row, column)
        if unknown == "error":
            loaded.check_known(asked.rows, asked.columns)  # of all pairs, before the first answer
        tables = _answers(loaded, asked, level, unknown)
    answers.write(tables, where, data.values)
    if where.is_file:
        show_files([where.path])


def _answers(
    model: Any, asked: Pairs, level: float | None, unknown: Literal["error", "prior"]
) -> Iterator[Any]:
    for start in range(0, len(asked.rows), _AT_ONCE):
        rows, columns = (names[start : start + _AT_ONCE] for names in asked)
        fields = {"value": model.predict(rows, columns, unknown=unknown)}
        if level is not None:
            low, high = model.predict_interval(rows, columns, level, unknown=unknown)
            fields |= {"lower": low, "upper": high}
        yield to_long(model.observations_, rows, columns, fields)
