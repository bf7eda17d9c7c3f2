"""Cells to predict, as pairs of names in a file."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw

from fillrank.cli.models import column_names, row_names
from fillrank.cli.source import STANDARD
from fillrank.errors import InputError, ReadError
from fillrank.io.files import decode
from fillrank.io.parquet import read_parquet
from fillrank.io.text import DELIMITERS, parse_number, split_lines
from fillrank.table.labels import as_text
from fillrank.table.layout import long_fields
from fillrank.table.observations import Observations


class Pairs(NamedTuple):
    """The names of rows and columns, as many of the one as of the other."""

    rows: list[Any]
    columns: list[Any]


class _Places(NamedTuple):
    """Where the two names stand in a line, and whether the first line says so."""

    row: int
    column: int
    has_header: bool


_UNNAMED = _Places(0, 1, False)
_UNNAMED_SWAPPED = _Places(1, 0, False)


def read_pairs(path: Path, data: Observations, row: str | None, column: str | None) -> Pairs:
    """Read pairs of names of rows and columns.

    The fields are those of the two names given; or those that the fitted table had; or two that are
    named like row and column. Without a header the first two fields are taken. A first line with a
    label that the model knows is no header.
    """
    source = "standard input" if path == STANDARD else str(path)
    finder = _Finder(data, row, column)
    if path.suffix.lower() == ".parquet":
        return finder.of_frame(read_parquet(path), source)
    content = sys.stdin.buffer.read() if path == STANDARD else path.read_bytes()
    return finder.of_text(decode(content, source), source)


class _Finder:
    """Knows the names of a model, and which fields of a file may hold them."""

    def __init__(self, data: Observations, row: str | None, column: str | None):
        if (row is None) != (column is None):
            raise InputError("--row and --column go together: name both fields, or none.")
        self._rows, self._columns = row_names(data), column_names(data)
        origin = data.origin
        self._given = None if row is None or column is None else (row, column)
        self._fields = [("row", "column")]
        if origin.layout == "long" and origin.row_field is not None:
            self._fields.insert(0, (str(origin.row_field), str(origin.column_field)))

    def of_text(self, text: str, source: str) -> Pairs:
        """From CSV, whatever its delimiter."""
        if not text.strip():
            raise ReadError(f"{source} is empty; it must have a line for each pair.")
        delimiter, places = self._look(text, source)
        rows, columns = [], []
        for line, fields in _lines(text, delimiter, source):
            if len(fields) <= max(places.row, places.column):
                raise ReadError(
                    f"{source}, line {line}: {len(fields)} fields, but the names are in number "
                    f"{places.row + 1} and {places.column + 1}."
                )
            rows.append(fields[places.row])
            columns.append(fields[places.column])
        return self._pairs(rows[places.has_header :], columns[places.has_header :], source)

    def of_frame(self, table: Any, source: str) -> Pairs:
        """From a data frame."""
        frame = nw.from_native(table, eager_only=True)
        if (found := self._by_header(frame.columns)) is None:
            raise self._complaint(frame.columns, source)
        rows, columns = (
            [as_text(name) for name in frame[frame.columns[k]].to_list()] for k in found[:2]
        )
        return self._pairs(rows, columns, source)

    def _pairs(self, rows: list[str], columns: list[str], source: str) -> Pairs:
        if not rows:
            raise ReadError(f"{source} has a header, but no pairs below it.")
        return Pairs(self._rows.of(rows), self._columns.of(columns))

    def _look(self, text: str, source: str) -> tuple[str, _Places]:
        """The delimiter under which the first line makes sense, and where the names are."""
        widest: list[str] = []
        for delimiter in DELIMITERS:
            first = next((fields for _, fields in _lines(text, delimiter, source)), [])
            if (places := self._places(first)) is not None:
                return delimiter, places
            widest = max(widest, first, key=len)
        raise self._complaint(widest, source)

    def _places(self, first: list[str]) -> _Places | None:
        """Where the names are, by the first line. Names that are known are no header."""
        if self._given is not None:
            return _named(first, [self._given])
        n_known, data = self._labels(first)
        if n_known == 2:
            return data
        if (header := _named(first, self._fields)) is not None:
            return header
        if n_known:
            return data
        if (header := _alike(first)) is None:
            return None
        # "user 1" and "film 3" are like names of fields, but they are rather those of a cell.
        numbered = re.search("[0-9]", first[header.row] + first[header.column])
        return _UNNAMED if numbered else header

    def _labels(self, fields: list[str]) -> tuple[int, _Places]:
        """How many of the first two fields are labels of the model, and which is that of the row.

        The row comes first. The other order is taken only if nothing fits that one, and not where
        labels are numbers: 7 is a label of rows and columns alike, so it shows no order.
        """
        if len(fields) < 2:
            return 0, _UNNAMED
        first, second = fields[:2]
        n_known = (first in self._rows) + (second in self._columns)
        if n_known or any(map(_is_number, (first, second))):
            return n_known, _UNNAMED
        return (second in self._rows) + (first in self._columns), _UNNAMED_SWAPPED

    def _by_header(self, fields: list[str]) -> _Places | None:
        if self._given is not None:
            return _named(fields, [self._given])
        return _named(fields, self._fields) or _alike(fields)

    def _complaint(self, fields: list[str], source: str) -> ReadError:
        row, column = self._given or self._fields[0]
        shown = ", ".join(map(repr, fields[:20]))
        return ReadError(
            f"{source} must have the fields {row!r} and {column!r}, or pairs of names from its first "
            f"line on; its first line is {shown}. Name the fields by --row and --column."
        )


def _is_number(text: str) -> bool:
    return parse_number(text, ",") is not None


def _named(fields: list[str], wanted: Sequence[tuple[str, str]]) -> _Places | None:
    """Where the fields of exactly these names are."""
    for row, column in wanted:
        if row in fields and column in fields:
            return _Places(fields.index(row), fields.index(column), True)
    return None


def _alike(fields: list[str]) -> _Places | None:
    """Where the fields are that are named like row and column, with or without one for the value."""
    found = long_fields(fields) or long_fields([*fields, "value"])
    if found is None:
        return None
    return _Places(fields.index(found.row), fields.index(found.column), True)


def _lines(text: str, delimiter: str, source: str) -> Iterator[tuple[int, list[str]]]:
    reader = split_lines(text, delimiter)
    try:
        for fields in reader:
            stripped = [field.strip() for field in fields]
            if any(stripped):
                yield reader.line_num, stripped
    except csv.Error as error:
        raise ReadError(f"{source}, line {reader.line_num}: {error}.") from error
