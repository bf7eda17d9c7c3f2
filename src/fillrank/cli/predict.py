"""``fillrank predict``: predict cells with a model."""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import narwhals as nw
import typer

from fillrank.cli import models, options
from fillrank.cli.features import Features, read_new
from fillrank.cli.labels import Labels
from fillrank.cli.messages import show_files
from fillrank.cli.results import check_target, write_cells
from fillrank.cli.source import STANDARD
from fillrank.cli.titles import TitleFiles
from fillrank.completions.user_values import objects_as_text
from fillrank.errors import FileLocation, InputError, ReadError
from fillrank.io.files import decode
from fillrank.io.parquet import read_parquet
from fillrank.io.text_lines import DELIMITERS, parse_number, split_lines
from fillrank.table.frames import to_long
from fillrank.table.labels import as_text
from fillrank.table.layout import long_fields
from fillrank.table.observations import Observations

_BLOCK = 2**18  # cells that are predicted together


def predict(
    model: options.Model,
    pairs: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PAIRS]",
            help="A .csv or .parquet file with a line for each cell to predict: its row label and its "
            "column label. `-`, or no file, reads standard input.",
            show_default=False,
        ),
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Predict all missing cells, instead of pairs.")
    ] = False,
    level: options.OptionalLevel = None,
    unknown: Annotated[
        Literal["error", "prior"],
        typer.Option(
            help="Labels that the model does not know: an error, or predict them as rows and columns "
            "without entries."
        ),
    ] = "error",
    row_features: options.NewRowFeatures = None,
    column_features: options.NewColumnFeatures = None,
    row_titles: options.RowTitles = None,
    column_titles: options.ColumnTitles = None,
    row: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of PAIRS with the row labels.")
    ] = None,
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="... the column with the column labels.")
    ] = None,
    output: options.ResultsFile = None,
    as_json: options.Json = False,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:
    """Predict cells by their row and column labels.

    Results have a line for each cell, in the order of the pairs: row, column, value and, with --level,
    lower and upper. Titles are beside the labels. A terminal shows a table; a pipe gets CSV. A row that
    the model does not know can be predicted from its features, if the model was fitted with features of
    rows.

    Examples:

    - echo "Ana,tea" | fillrank predict ratings.fillrank
    - fillrank predict ratings.fillrank pairs.csv --level 0.9 -o predictions.csv
    - fillrank predict ratings.fillrank --missing -o all.parquet
    - fillrank predict m.fillrank new.csv --unknown prior --row-features p.csv
    - fillrank predict ml-1m.fillrank pairs.csv --column-titles movies.dat
    """
    if missing and pairs is not None:
        raise InputError(f"use --missing or the pairs in {pairs}, not both.")
    if not missing and pairs is None and sys.stdin.isatty():
        raise InputError("give a file of pairs, pipe them in, or predict all cells with --missing.")
    files = [path for path in (row_features, column_features) if path is not None]
    if files and (missing or unknown == "error"):
        option = "--column-features" if row_features is None else "--row-features"
        raise InputError(
            f"{option} is for pairs with labels that the model does not know: add --unknown prior"
            f"{', and leave out --missing' if missing else ''}."
        )
    file = STANDARD if pairs is None else pairs
    title_files = TitleFiles(row_titles, column_titles)
    inputs = [model, *title_files.paths, *([] if missing else [file, *files])]
    target = check_target(output, as_json, force, inputs)
    loaded = models.load(model, threads, quiet)
    data = loaded.observations_
    titles = title_files.read(data, quiet)
    if missing:
        models.check_entries(loaded, model, "--missing")
        if len(data) == math.prod(data.shape):
            raise InputError(
                f"the table of {model} has no missing cell: there is nothing to predict."
            )
        tables = loaded.predict_missing(level)
    else:
        requested = read_pairs(file, data, row, column)
        if unknown == "error":
            loaded.check_known(*requested)  # all pairs, before the first result
        given = _read_features(data, requested, (row_features, column_features), quiet)
        tables = _predict(loaded, requested, level, unknown, given)
    write_cells(tables, target, data.values, titles)
    if target.is_file:
        show_files([target.path])


class Pairs(NamedTuple):
    """Row labels and column labels, of the same number."""

    rows: list[Any]
    columns: list[Any]


def _read_features(
    data: Observations, pairs: Pairs, files: tuple[Path | None, Path | None], quiet: bool
) -> Features:
    """Read the features of the labels that the model does not know."""
    rows, columns = Labels(data.row_labels), Labels(data.column_labels)
    return Features(
        read_new(files[0], rows.unknown(pairs.rows), "row", quiet),
        read_new(files[1], columns.unknown(pairs.columns), "column", quiet),
    )


def _predict(
    model: Any,
    pairs: Pairs,
    level: float | None,
    unknown: Literal["error", "prior"],
    given: Features,
) -> Iterator[Any]:
    options: dict[str, Any] = {"unknown": unknown, **given.arguments()}
    for start in range(0, len(pairs.rows), _BLOCK):
        rows, columns = (labels[start : start + _BLOCK] for labels in pairs)
        fields = {"value": model.predict(rows, columns, **options)}
        if level is not None:
            low, high = model.predict_interval(rows, columns, level, **options)
            fields |= {"lower": low, "upper": high}
        fields = {name: objects_as_text(each) for name, each in fields.items()}
        yield to_long(model.observations_, rows, columns, fields)


class _Fields(NamedTuple):
    """The positions of the two labels in a line, and whether the first line is a header."""

    row: int
    column: int
    has_header: bool


_ROW_FIRST = _Fields(0, 1, False)
_COLUMN_FIRST = _Fields(1, 0, False)


def read_pairs(path: Path, data: Observations, row: str | None, column: str | None) -> Pairs:
    """Read pairs of row and column labels.

    They are in the two columns given; or in those that the fitted table had; or in two that are named
    like row and column. Without a header they are the first two. A first line with a label that the
    model knows is not a header.
    """
    name = "standard input" if path == STANDARD else str(path)
    reader = _PairReader(data, row, column)
    if path.suffix.lower() == ".parquet":
        return reader.read_frame(read_parquet(path), name)
    content = sys.stdin.buffer.read() if path == STANDARD else path.read_bytes()
    return reader.read_text(decode(content, name), name)


class _PairReader:
    """Finds the labels of a model in the columns of a file."""

    def __init__(self, data: Observations, row: str | None, column: str | None):
        if (row is None) != (column is None):
            raise InputError("--row and --column go together: use both, or none.")
        self._rows, self._columns = Labels(data.row_labels), Labels(data.column_labels)
        origin = data.origin
        self._given = None if row is None or column is None else (row, column)
        self._names = [("row", "column")]
        if origin.layout == "long" and origin.row_field is not None:
            self._names.insert(0, (str(origin.row_field), str(origin.column_field)))

    def read_text(self, text: str, source: str) -> Pairs:
        """Read CSV with any delimiter."""
        if not text.strip():
            raise ReadError("the file is empty; it must have a line for each pair", place=source)
        delimiter, found = self._find_delimiter(text, source)
        rows, columns = [], []
        for line, fields in _lines(text, delimiter, source):
            if len(fields) <= max(found.row, found.column):
                raise ReadError(
                    f"{len(fields)} fields, but the labels are in fields {found.row + 1} and "
                    f"{found.column + 1}",
                    place=FileLocation(source, line),
                )
            rows.append(fields[found.row])
            columns.append(fields[found.column])
        return self._pairs(rows[found.has_header :], columns[found.has_header :], source)

    def read_frame(self, table: Any, source: str) -> Pairs:
        """Read a data frame."""
        frame = nw.from_native(table, eager_only=True)
        if (found := self._find_by_header(frame.columns)) is None:
            raise self._no_fields(frame.columns, source)
        rows, columns = (
            [as_text(label) for label in frame[frame.columns[k]].to_list()] for k in found[:2]
        )
        return self._pairs(rows, columns, source)

    def _pairs(self, rows: list[str], columns: list[str], source: str) -> Pairs:
        if not rows:
            raise ReadError("the file has a header, but no pairs below it", place=source)
        return Pairs(self._rows.find(rows), self._columns.find(columns))

    def _find_delimiter(self, text: str, source: str) -> tuple[str, _Fields]:
        """The delimiter with which the labels are found in the first line, and their positions."""
        widest: list[str] = []
        for delimiter in DELIMITERS:
            first = next((fields for _, fields in _lines(text, delimiter, source)), [])
            if (found := self._find_fields(first)) is not None:
                return delimiter, found
            widest = max(widest, first, key=len)
        raise self._no_fields(widest, source)

    def _find_fields(self, first: list[str]) -> _Fields | None:
        """Find the labels in the first line. Labels that the model knows are not a header."""
        if self._given is not None:
            return _find_names(first, [self._given])
        n_known, fields = self._find_labels(first)
        if n_known == 2:
            return fields
        if (header := _find_names(first, self._names)) is not None:
            return header
        if n_known:
            return fields
        if (header := _find_usual_names(first)) is None:
            return None
        # "user 1" and "film 3" are more likely the labels of a cell than names of columns.
        has_digits = re.search("[0-9]", first[header.row] + first[header.column])
        return _ROW_FIRST if has_digits else header

    def _find_labels(self, fields: list[str]) -> tuple[int, _Fields]:
        """How many of the first two fields are labels of the model, and which is that of the row.

        The row comes first. The other order is taken only if nothing fits that one, and not where
        labels are numbers: 7 is a label of rows and columns alike, so it shows no order.
        """
        if len(fields) < 2:
            return 0, _ROW_FIRST
        first, second = fields[:2]
        n_known = (first in self._rows) + (second in self._columns)
        if n_known or any(map(_is_number, (first, second))):
            return n_known, _ROW_FIRST
        return (second in self._rows) + (first in self._columns), _COLUMN_FIRST

    def _find_by_header(self, fields: list[str]) -> _Fields | None:
        if self._given is not None:
            return _find_names(fields, [self._given])
        return _find_names(fields, self._names) or _find_usual_names(fields)

    def _no_fields(self, fields: list[str], source: str) -> ReadError:
        row, column = self._given or self._names[0]
        shown = ", ".join(map(repr, fields[:20]))
        return ReadError(
            f"the file must have the columns {row!r} and {column!r}, or pairs of labels from the first "
            f"line; its first line is {shown}",
            place=source,
            advice="Name the columns with --row and --column.",
        )


def _is_number(text: str) -> bool:
    return parse_number(text, ",") is not None


def _find_names(fields: list[str], wanted: Sequence[tuple[str, str]]) -> _Fields | None:
    """Find the columns with exactly these names."""
    for row, column in wanted:
        if row in fields and column in fields:
            return _Fields(fields.index(row), fields.index(column), True)
    return None


def _find_usual_names(fields: list[str]) -> _Fields | None:
    """Find the columns that are named like row and column, with or without one for the value."""
    found = long_fields(fields) or long_fields([*fields, "value"])
    if found is None:
        return None
    return _Fields(fields.index(found.row), fields.index(found.column), True)


def _lines(text: str, delimiter: str, source: str) -> Iterator[tuple[int, list[str]]]:
    reader = split_lines(text, delimiter)
    try:
        for fields in reader:
            stripped = [field.strip() for field in fields]
            if any(stripped):
                yield reader.line_num, stripped
    except csv.Error as error:
        raise ReadError(str(error), place=FileLocation(source, reader.line_num)) from error
