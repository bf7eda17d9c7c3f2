"""Text files as tables: their names of columns, lines and cells, and notes below the table."""

import csv
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from fillrank.errors import FileLocation, ReadError, Setting, Text, UnknownNameError
from fillrank.io.text_lines import (
    DELIMITERS,
    are_numbers,
    is_blank,
    parse_number,
    plain_style,
    split_lines,
)
from fillrank.table.number_text import NumberStyle, parse_value
from fillrank.table.text_values import shorten

MISSING_HINT = (
    "A missing value is an empty cell, NA, N/A, n.a., #N/A, <NA>, NaN, null, None, missing, ?, a dash "
    "or a point."
)
_STYLE_HINT: Text = (
    "Name the marks of numbers such as 1.234,5 by ",
    Setting("decimal", ...),
    " and ",
    Setting("thousands", ...),
    ".",
)
_FIELDS_HINT: Text = (
    "Or name its columns with ",
    Setting("row", ...),
    ", ",
    Setting("column", ...),
    " and ",
    Setting("value", ...),
    ".",
)
_EMPTY = ' *(?:" *" *)?'  # a cell
_NOTES = ("source:", "sources:", "note:", "notes:")  # starts of a note below a table
_NOTE_LETTERS = "sSnN* \t"  # first characters of notes


class TextTable(NamedTuple):
    """A text file as a table.

    ``names`` are those of the header, or 0, 1, 2, ... if there is none. ``head`` is the first lines
    below the header. ``above`` and ``below`` are lines above and directly below the header that are not
    of the table: in ``text`` they are blank. ``notes`` say which these are, unless they were to be
    skipped. ``has_empty_rows``: whether a line of empty cells is a row, as in a table without row
    labels, or blank, as spreadsheet programs write them below a table.
    """

    source: str
    text: str
    delimiter: str
    has_header: bool
    names: list[Any]
    head: list[list[str]]
    above: str = ""
    below: str = ""
    notes: tuple[str, ...] = ()
    has_empty_rows: bool = False

    def number(self, text: str, line: int, column: int) -> float:
        """Parse a cell; NaN if it is missing."""
        number = parse_number(text, self.delimiter)
        if number is None:
            raise ReadError(
                place=FileLocation(self.source, line, self.names[column]),
                allowed="a number",
                value=shorten(text),
                advice=self._number_advice(column),
                kind="number",
            )
        return number

    def ends(self, text: str, line: int, column: int, style: NumberStyle) -> tuple[float, float]:
        """Parse a cell that may be a limit; equal ends if it is not, NaN if it is missing."""
        value = parse_value(text, style)
        if value is not None and value.unit in ("", "%"):
            return value.low, value.high
        number = self.number(text, line, column)
        return number, number

    @property
    def style(self) -> NumberStyle:
        """The style of plain numbers."""
        return plain_style(self.delimiter)

    def numbers(
        self, fields: list[str], line: int, first: int = 0, last: int | None = None
    ) -> list[float]:
        """Parse the cells of a line, from the first one to before the last."""
        cells = fields[first:last]
        if "_" not in "".join(cells):  # Python accepts underscores
            with suppress(ValueError):
                return list(map(float, cells))
        return [self.number(text, line, column) for column, text in enumerate(cells, first)]

    @property
    def n_lines(self) -> int:
        """An upper limit of the number of lines, including the header."""
        return max(self.text.count("\n"), self.text.count("\r")) + 1

    def _number_advice(self, column: int) -> list[Text]:
        if self.has_numbers(column):
            return [MISSING_HINT, _STYLE_HINT]
        return [
            "Most cells of this column are text, but the values of a long table are numbers.",
            "Write numbers for answers in words, or save the table as a wide one: its columns may have "
            "text.",
            _FIELDS_HINT,
        ]

    def has_numbers(self, column: int) -> bool:
        """Whether most cells of a column are numbers or missing, in the first lines."""
        return are_numbers(self.first_cells(column), self.delimiter)

    def first_cells(self, column: int) -> list[str]:
        """The cells of a column in the first lines."""
        return [line[column] for line in self.head if len(line) > column]

    def header(self) -> list[str] | None:
        """The first line as it is written, with spaces that names do not have; None without a header."""
        lines = split_lines(self.text, self.delimiter)
        return next(line for line in lines if not is_blank(line)) if self.has_header else None

    def body(self) -> Iterator[tuple[int, list[str]]]:
        """Iterate over the lines below the header, with their numbers; blank lines are skipped."""
        width = len(self.names)
        skip = self.has_header
        after_blank = False
        note: tuple[int, list[str]] | None = None
        reader = split_lines(self.text, self.delimiter)
        try:
            for fields in reader:
                if skip:
                    skip = is_blank(fields)
                elif len(fields) == width and (self.has_empty_rows or not is_blank(fields)):
                    if note is not None:  # it is not the last line, so it is a row
                        yield note
                        note = None
                    if _may_be_note(fields, after_blank):
                        note = reader.line_num, fields
                    else:
                        yield reader.line_num, fields
                    after_blank = False
                elif not is_blank(fields):
                    place = FileLocation(self.source, reader.line_num)
                    raise width_error(fields, width, self.delimiter, place)
                else:
                    after_blank = True
        except csv.Error as error:
            place = FileLocation(self.source, reader.line_num)
            raise ReadError(str(error), place=place) from error
        if note is not None:
            if sum(_starts_note(fields[0]) for fields in self.head) < 2:
                raise ReadError(
                    "the last line does not look like a row",
                    place=FileLocation(self.source, note[0]),
                    advice=[_note_advice(note[1]), "If it is a row, move it up."],
                )
            yield note

    def has_empty_lines(self) -> bool:
        """Whether a line has as many cells as the table, all of them empty."""
        others = len(self.names) - 1
        line = f"{_EMPTY}(?:{re.escape(self.delimiter)}{_EMPTY}){{{others}}}"
        return others > 0 and re.search(rf"(?<![^\r\n]){line}(?![^\r\n])", self.text) is not None

    def position(self, name: Any) -> int:
        """Find a column by its name."""
        if name not in self.names:
            raise UnknownNameError(
                f"there is no column {name!r}; the columns are "
                f"{', '.join(map(repr, self.names[:20]))}",
                place=self.source,
            )
        return self.names.index(name)


def _starts_note(text: str) -> bool:
    return text.lstrip().lower().startswith(_NOTES)


def _may_be_note(fields: list[str], after_blank: bool) -> bool:
    """Whether the line would be a note below the table, if it were the last one."""
    first, *others = fields
    if not after_blank and first[:1] not in _NOTE_LETTERS:  # nearly all lines
        return False
    if _starts_note(first):
        return True
    may_be = after_blank or first.lstrip().startswith("*")
    return may_be and not is_blank([first]) and is_blank(others)


def width_error(fields: list[str], width: int, delimiter: str, place: FileLocation) -> ReadError:
    """An error about a line of another width, whose last line is at ``place``."""
    message = (
        f"{len(fields)} {'field' if len(fields) == 1 else 'fields'}, but the table has "
        f"{width} (delimiter {DELIMITERS[delimiter]})"
    )
    long = next((field for field in fields if "\n" in field or "\r" in field), None)
    if long is not None and place.line is not None:
        parts = long.splitlines()
        return ReadError(
            f"{message}, and the cell that starts with {shorten(parts[0])!r} goes on to line "
            f"{place.line}",
            place=FileLocation(place.file, place.line - len(parts) + 1),
            advice="A quote may not be closed: close it, or delete it.",
        )
    may_be_note = len(fields) == 1 or _starts_note(fields[0])
    return ReadError(
        message,
        place=place,
        advice=_note_advice(fields) if may_be_note else (),
        kind="width",
    )


def _note_advice(fields: list[str]) -> str:
    return f"Delete the line if it is a note: {shorten(fields[0])!r}."
