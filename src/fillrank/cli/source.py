"""The table that a command reads: where it is, how to read it, and what was read."""

from __future__ import annotations

import io
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fillrank.cli import options
from fillrank.cli.messages import describe_error, escape, report, report_note, with_option
from fillrank.errors import FillrankError, InputError, ReadError, Setting
from fillrank.io.files import read_bytes
from fillrank.io.read import ENDINGS, TEXT_ENDINGS, check_exists, make_options, read_source
from fillrank.io.text_layout import ReadTable
from fillrank.runtime.memory import format_bytes
from fillrank.runtime.progress import mark_reported
from fillrank.table.column_types import are_numbers
from fillrank.table.labels import as_text, format_label
from fillrank.table.layout import LONG_HINT
from fillrank.table.notes import describe_entries, describe_size
from fillrank.table.observations import Observations

STANDARD = Path("-")  # standard input or output
_LONGEST_LABEL = 40
_LARGE_FILE = 20_000_000  # bytes that take some seconds to read
_ENCODING_ADVICE = "Or set its encoding, such as --encoding latin-1 or --encoding utf-16."


class Source(NamedTuple):
    """A table and how to read it: the options of the commands."""

    table: options.Table
    row: options.Row = None
    column: options.Column = None
    value: options.Value = None
    weight: options.Weight = None
    standard_error: options.StandardError = None
    layout: options.Layout = "auto"
    duplicates: options.Duplicates = "error"
    format: options.Format = None
    skip: options.Skip = None
    encoding: options.Encoding = None
    missing_values: options.MissingValues = None
    label: options.Label = None
    ignore: options.Ignore = None
    columns: options.Columns = None
    decimal: options.Decimal = None
    thousands: options.Thousands = None
    sheet: options.Sheet = None
    row_features: options.RowFeatures = None
    column_features: options.ColumnFeatures = None

    @property
    def inputs(self) -> list[Path]:
        """All files that are read."""
        features = (self.row_features, self.column_features)
        return [self.table, *(path for path in features if path is not None)]

    @property
    def is_plain(self) -> bool:
        """Whether the library can read the path without further options."""
        has_path = self.table != STANDARD and self.format is None
        return has_path and self.skip is None and self.encoding is None

    @property
    def ending(self) -> str:
        """The kind of the file, without .gz.

        Examples
        --------
        >>> Source(Path("data/ratings.tsv.gz")).ending, Source(Path("-")).ending
        ('.tsv', '.csv')
        """
        if self.format is not None:
            return f".{self.format}"
        if self.table == STANDARD:
            return ".csv"
        path = self.table
        return (Path(path.stem) if _is_gzip(path) else path).suffix.lower()

    @property
    def is_text(self) -> bool:
        """Whether the file is a text file."""
        return self.ending in TEXT_ENDINGS

    @property
    def name(self) -> str:
        """The name of the table in messages."""
        return "standard input" if self.table == STANDARD else str(self.table)

    @property
    def stem(self) -> str:
        """The first part of the names of result files.

        Examples
        --------
        >>> Source(Path("data/ratings.csv.gz")).stem, Source(Path("-")).stem
        ('ratings', 'stdin')
        """
        if self.table == STANDARD:
            return "stdin"
        return (self.table.with_suffix("") if _is_gzip(self.table) else self.table).stem


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def is_table(path: Path) -> bool:
    """Whether a path is that of a table, by its ending, rather than that of a model."""
    return path == STANDARD or path.suffix.lower() in (*ENDINGS, ".gz")


def read(source: Source, quiet: bool = False) -> Observations:
    """Read the table and report what was read."""
    return read_table(source, quiet).data


def read_table(source: Source, quiet: bool = False, like: Observations | None = None) -> ReadTable:
    """Read the table, with the text that it was read from, and report what was read.

    With ``like``, the table of a fit, it has new rows or entries for that.
    """
    if not quiet and (n_bytes := _size(source)) > _LARGE_FILE:
        report(f"Reading {escape(source.name)}, {format_bytes(n_bytes)}.")
    _check_columns_and_ignore(source)
    try:
        table = _read(source, like)
        _check_fitted(source, table.data)
    except FillrankError as error:
        raise error.with_advice(*_advice(error, source)) from error
    if not quiet:
        report(f"Read {escape(source.name)}: {escape(describe_table(table.data))}")
        mark_reported(table.data.notes)
        for note in list_notes(table.data):
            report_note(note)
    return table


def list_notes(data: Observations) -> list[str]:
    """What may be wrong with how a table was read, and what to do."""
    return [*filter(None, (_label_note(data), _long_hint(data)))]


def is_complete(data: Observations) -> bool:
    """Whether no value is missing, and none is known as a limit only."""
    return data.n_entries == math.prod(data.shape) and data.cells is None


def report_complete(source: Source, data: Observations) -> None:
    """Report that nothing is missing, and what may be the reason if that is wrong."""
    note = InputError(
        "no value is missing: there is nothing to fill in, and the table is written as it is",
        place=source.name,
        advice=[
            "A missing value is an empty cell or NA.",
            "If a number such as -1 stands for it, add --na -1.",
            *([LONG_HINT] if _has_text(data) else []),
        ],
    )
    report_note(describe_error(note))


def _read(source: Source, like: Observations | None) -> ReadTable:
    options = make_options(
        row=source.row,
        column=source.column,
        value=source.value,
        layout=source.layout,
        duplicates=source.duplicates,
        weight=source.weight,
        standard_error=source.standard_error,
        label=source.label,
        ignore=_split(source.ignore),
        columns=_split(source.columns),
        missing_values=_split(source.missing_values),
        decimal=source.decimal,
        thousands=source.thousands,
        sheet=source.sheet,
        skip=source.skip,
    )
    if like is not None:
        options = options.like(like)
    if source.encoding is not None:
        content, encoding = _convert_text(source, source.encoding)
        table = read_source(content, options, source.ending[1:], source.name)
        return table._replace(encoding=encoding)
    if source.format is None and source.table != STANDARD:
        return read_source(source.table, options)
    file = sys.stdin.buffer if source.table == STANDARD else source.table
    return read_source(file, options, source.ending[1:], source.name)


def _check_columns_and_ignore(source: Source) -> None:
    """Reject columns that are to be fitted and to be left as they are."""
    ignored = _split(source.ignore)
    both = [name for name in _split(source.columns) if name in ignored]
    if both:
        raise InputError(
            f"--columns and --ignore both name {both[0]!r}: a column is fitted, or left as it is."
        )


def _check_fitted(source: Source, data: Observations) -> None:
    """Reject columns that were named to be fitted, and could not be."""
    left = {as_text(column.label) for column in data.origin.passive}
    for name in _split(source.columns):
        if name in left:
            raise InputError(
                f"column {name!r} cannot be fitted: it has text with a different value in nearly every "
                "row, or very many different ones",
                place=Setting("columns"),
                advice=[
                    "Leave it out.",
                    (
                        "If it has numbers, name their marks with ",
                        Setting("decimal"),
                        " and ",
                        Setting("thousands"),
                        ".",
                    ),
                ],
            )


def _split(text: str | None) -> list[str]:
    return [] if text is None else [part.strip() for part in text.split(",")]


def _convert_text(source: Source, encoding: str) -> tuple[io.BytesIO, str]:
    """The file in UTF-8, and its own encoding."""
    if not source.is_text:
        raise InputError(f"--encoding is for text files, not for {source.ending}.")
    is_piped = source.table == STANDARD
    if not is_piped:
        check_exists(source.table)
    file = sys.stdin.buffer if is_piped else source.table
    content = read_bytes(file, source.name, is_gzip=not is_piped and _is_gzip(source.table))
    try:
        return io.BytesIO(content.decode(encoding).encode()), encoding
    except LookupError as error:
        raise InputError(
            f"the encoding {encoding!r} is unknown",
            advice="Common encodings are latin-1, cp1252 and utf-16.",
        ) from error
    except UnicodeError as error:
        raise ReadError(f"not {encoding} text ({error})", place=source.name) from error


def _advice(error: FillrankError, source: Source) -> list[str]:
    """Advice about options of the command line that the library does not have."""
    return [_ENCODING_ADVICE] if error.kind == "encoding" and source.encoding is None else []


def _size(source: Source) -> int:
    return source.table.stat().st_size if source.table.is_file() else 0


def _label_note(data: Observations) -> str:
    """A note if the first column of a wide table looks like row labels; else empty."""
    n_rows = data.shape[0]
    if data.origin.layout != "wide" or data.origin.row_field or data.row_labels.dtype.kind != "i":
        return ""
    values = data.values[data.column_index == 0]
    distinct = np.unique(values)
    if not len(values) == len(distinct) == n_rows > 2 or (distinct % 1 != 0).any():
        return ""
    name = data.column_labels[0]
    return (
        f"the column {name!r} has a different whole number in every row. If these are the row labels, "
        f"add --label {name}."
    )


def _long_hint(data: Observations) -> str:
    """A note about a wide table of three columns that may be a long one; else empty.

    The first two columns have whole numbers in every row, some more than once, and no pair twice.
    """
    n_rows = data.shape[0]
    if data.origin.layout != "wide" or data.origin.row_field or data.shape[1] != 3:
        return ""
    first, second = (data.values[data.column_index == column] for column in (0, 1))
    if not len(first) == len(second) == n_rows or (np.append(first, second) % 1 != 0).any():
        return ""
    n_labels = max(len(np.unique(first)), len(np.unique(second)))
    n_pairs = len(np.unique(np.column_stack([first, second]), axis=0))
    if n_labels == n_rows or n_pairs < n_rows:
        return ""
    return (
        "the first two columns look like labels: whole numbers without duplicate pairs. If the table is "
        "long, with a line for each entry, add --layout long."
    )


def describe_table(data: Observations) -> str:
    """Describe what was read, and how it was interpreted, with the notes of the reader."""
    return " ".join([describe_reading(data), *map(with_option, data.notes)])


def describe_reading(data: Observations) -> str:
    """Describe the size of the table, and how its layout and its values were interpreted."""
    values = ""
    if data.n_entries and are_numbers(data.column_types):
        low, high = value_limits(data)
        values = f", values {low:g} to {high:g}"
    text = (
        f"{describe_size(data.shape)}, {describe_entries(data.n_entries)} "
        f"({100 * data.density:.3g}% of the cells){values}; {_describe_layout(data)}."
    )
    if (scale := data.value_range()) is not None:
        text += f" The values are taken as ratings from {scale[0]:g} to {scale[1]:g}."
    if data.weights is not None:
        text += f" The weights are from {data.weights.min():.3g} to {data.weights.max():.3g}."
    return text


def value_limits(data: Observations) -> tuple[float, float]:
    """The smallest and the largest value."""
    # Adding 0 turns -0 into 0.
    return float(data.values.min()) + 0.0, float(data.values.max()) + 0.0


def _has_text(data: Observations) -> bool:
    """Whether a wide table has columns of text, which may be the labels of a long one."""
    return bool(data.origin.passive) or not are_numbers(data.column_types)


def _describe_layout(data: Observations) -> str:
    origin = data.origin
    if origin.layout == "long":
        if origin.row_field is None:
            return "a long table, with a line for each entry"
        row, column, value = map(repr, origin[2:5])
        return f"a long table, with rows from {row}, columns from {column}, values from {value}"
    if origin.layout == "wide":
        row, column = _shorten(data.row_labels[0]), _shorten(data.column_labels[0])
        named = "" if origin.row_field is None else f" (labelled by {_shorten(origin.row_field)})"
        return (
            "a wide table, with a cell for each entry; its first row is "
            f"{row}{named}, its first column {column}"
        )
    return {"matrix": "a matrix", "sparse": "a sparse matrix"}.get(origin.layout, "triplets")


def _shorten(label: Any) -> str:
    text = format_label(label)
    return text if len(text) <= _LONGEST_LABEL else f"{text[:_LONGEST_LABEL]}..."
