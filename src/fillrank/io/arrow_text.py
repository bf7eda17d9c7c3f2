"""Long text tables by pyarrow, where it is installed and gives what the slow reader would give."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from fillrank.table.triplets import Triplets, number_names

if TYPE_CHECKING:
    from fillrank.io.text import TextTable

SMALL = 1_000_000  # characters; for less than this it does not pay to import pyarrow
# 007, 0x7 and -0 are integers to pyarrow, but text to the slow reader.
ODD_INTEGER = re.compile(r"(?<![0-9.])0[0-9xX]|-0(?![0-9.])")


def parse_long_fast(
    table: TextTable, row: int, column: int, value: int
) -> tuple[Triplets, np.ndarray, np.ndarray] | None:
    """Take a long table whose names are integers and whose values are all there, or None.

    Whatever is out of the ordinary is left to the slow reader, which also finds the words for
    what is wrong.
    """
    if len(table.text) < SMALL or not find_spec("pyarrow") or not _is_ordinary(table):
        return None
    columns = _read(table, {row: "int64", column: "int64", value: "float64"})
    if columns is None:
        return None
    rows, names, values = (part.to_numpy() for part in columns)
    return number_names(rows, names, values)


def _is_ordinary(table: TextTable) -> bool:
    text = table.text
    if table.delimiter == " " or text[:1].isspace() or '"' in text:
        return False
    # A search for plain strings is much faster than the pattern, and mostly enough.
    may_be_odd = any(f"{before}0" in text for before in ("\n", "\r", " ", "-", table.delimiter))
    return not (may_be_odd or text.startswith("0")) or not ODD_INTEGER.search(text)


def _read(table: TextTable, types: dict[int, str]) -> list[Any] | None:
    import pyarrow
    from pyarrow import csv

    text, delimiter = table.text, table.delimiter
    if delimiter == "::":
        text, delimiter = text.replace("::", "\x1f"), "\x1f"
    positions = [str(position) for position in range(len(table.names))]
    wanted = [str(position) for position in types]
    try:
        read = csv.read_csv(
            pyarrow.BufferReader(text.encode()),
            csv.ReadOptions(column_names=positions, skip_rows=int(table.has_header)),
            csv.ParseOptions(delimiter=delimiter, quote_char=False),
            csv.ConvertOptions(
                column_types={str(position): kind for position, kind in types.items()},
                include_columns=wanted,
                null_values=[],
            ),
        )
    except pyarrow.ArrowInvalid:
        return None
    return [read.column(position) for position in wanted]
