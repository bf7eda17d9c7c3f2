"""Long text tables: an entry in each line."""

import math
import re
from array import array
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import FileLocation, ReadError
from fillrank.io.text_lines import parse_labels
from fillrank.io.text_table import TextTable
from fillrank.runtime.memory import check_memory
from fillrank.table.missing_values import NO_MISSING_VALUES, MissingValues
from fillrank.table.number_text import NO_STYLE, StyleOptions, find_style
from fillrank.table.triplets import Triplets, encode_triplets, with_intervals

# Memory for each line and label, in addition to the text; measured.
_BYTES_PER_LINE, _BYTES_PER_LABEL = 32, 200
_FIRST_CHECK = 2**10  # lines of a long table
_SIZE_ADVICE = (
    "Read a part of it, or save it as Parquet; long tables in Parquet are read in batches."
)
SMALL = 1_000_000  # characters below which importing pyarrow takes longer than it saves
# 007, 0x7 and -0 are integers for pyarrow, but text here.
_ODD_INTEGER = re.compile(r"(?<![0-9.])0[0-9xX]|-0(?![0-9.])")


class LabelledTriplets(NamedTuple):
    """Entries by position, with row and column labels."""

    triplets: Triplets
    row_labels: np.ndarray
    column_labels: np.ndarray
    intervals: np.ndarray | None = None


def parse_long(
    table: TextTable,
    row: int,
    column: int,
    value: int,
    weight: int | None = None,
    missing: MissingValues = NO_MISSING_VALUES,
    style: StyleOptions = NO_STYLE,
) -> LabelledTriplets:
    """Parse one entry per line, from the columns at three positions, or four with weights."""
    is_simple = not missing and style == NO_STYLE
    if is_simple and (fast := parse_long_fast(table, row, column, value, weight)) is not None:
        return fast
    found = find_style(table.first_cells(value), style._replace(base=table.style))
    rows: dict[str, int] = {}
    columns: dict[str, int] = {}
    row_index, column_index, values, weights = array("i"), array("i"), array("d"), array("d")
    n_lines = table.n_lines
    upper: dict[int, float] = {}
    for line, fields in table.body():
        n_read = len(values)
        if n_read >= _FIRST_CHECK and n_read & (n_read - 1) == 0:  # at powers of two
            _check_long(n_lines, n_read, len(rows) + len(columns))
        row_label, column_label = fields[row].strip(), fields[column].strip()
        if not (row_label and column_label):
            name = table.names[column if row_label else row]
            place = FileLocation(table.source, line, name)
            raise ReadError(
                "the label is missing",
                place=place,
                advice="Fill it in, or delete the line.",
                kind="label",
            )
        row_index.append(rows.setdefault(row_label, len(rows)))
        column_index.append(columns.setdefault(column_label, len(columns)))
        low = high = math.nan
        if not (missing and missing.has_text(fields[value])):
            low, high = table.ends(fields[value], line, value, found)
        if low < high:
            upper[len(values)] = high
        values.append(low)
        if weight is not None:
            weights.append(table.number(fields[weight], line, weight))
    triplets = Triplets(*map(np.array, (row_index, column_index, values)))
    if weight is not None:
        triplets = triplets._replace(weights=np.array(weights))
    labels = parse_labels(list(rows)), parse_labels(list(columns))
    if not upper:
        return LabelledTriplets(triplets, *labels)
    ends = triplets.values.copy()
    ends[list(upper)] = list(upper.values())
    triplets, intervals = with_intervals(triplets, ends, *labels)
    return LabelledTriplets(triplets, *labels, intervals)


def _check_long(n_lines: int, n_read: int, n_labels: int) -> None:
    """Raise InputError if the rest of a table, with as many new labels per line, exceeds memory."""
    n_left = max(n_lines - n_read, 0)
    check_memory(
        _BYTES_PER_LINE * n_left + _BYTES_PER_LABEL * n_left * n_labels // n_read,
        f"a long table of {n_lines:,} lines",
        _SIZE_ADVICE,
    )


# Large long tables are read by pyarrow, if it is installed and gives the same result.


def parse_long_fast(
    table: TextTable, row: int, column: int, value: int, weight: int | None = None
) -> LabelledTriplets | None:
    """Parse a long table with integer labels and no missing values by pyarrow, or return None.

    All other tables are left to the slow parser, which also reports errors.
    """
    if len(table.text) < SMALL or not find_spec("pyarrow") or not _is_simple(table):
        return None
    types = {row: "int64", column: "int64", value: "float64"}
    if weight is not None:
        types[weight] = "float64"
    columns = _read_by_pyarrow(table, types)
    if columns is None or len(columns) < 3 + (weight is not None):  # one column given twice
        return None
    return LabelledTriplets(*encode_triplets(*(part.to_numpy() for part in columns)))


def _is_simple(table: TextTable) -> bool:
    text = table.text
    if table.delimiter == " " or text[:1].isspace() or '"' in text:
        return False
    # Searching for plain strings is much faster than the pattern, and usually sufficient.
    may_be_odd = any(f"{before}0" in text for before in ("\n", "\r", " ", "-", table.delimiter))
    return not (may_be_odd or text.startswith("0")) or not _ODD_INTEGER.search(text)


def _read_by_pyarrow(table: TextTable, types: dict[int, str]) -> list[Any] | None:
    import pyarrow
    from pyarrow import csv

    text, delimiter = table.text, table.delimiter
    if delimiter == "::":
        text, delimiter = text.replace("::", "\x1f"), "\x1f"
    positions = [str(position) for position in range(len(table.names))]
    selected = [str(position) for position in types]
    try:
        read = csv.read_csv(
            pyarrow.BufferReader(text.encode()),
            csv.ReadOptions(column_names=positions, skip_rows=int(table.has_header)),
            csv.ParseOptions(delimiter=delimiter, quote_char=False),
            csv.ConvertOptions(
                column_types={str(position): kind for position, kind in types.items()},
                include_columns=selected,
                null_values=[],
            ),
        )
    except pyarrow.ArrowInvalid:
        return None
    return [read.column(position) for position in selected]
