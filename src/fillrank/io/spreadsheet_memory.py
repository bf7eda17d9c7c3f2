"""The memory that a spreadsheet takes, before it is read.

A file of a few bytes may stand for any number of cells: one far from the others, one that is repeated,
or many that share a long text. The library that reads spreadsheets has no limits.
"""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from pathlib import PurePosixPath
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

from fillrank.errors import ReadError
from fillrank.io.files import library_errors
from fillrank.runtime.memory import check_memory

_BYTES_PER_CELL = 100  # as an object of Python, and as text
_BYTES_PER_CHARACTER = 4  # as an object of Python, in a line and in the text of all lines
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384  # others are not read
_SHARED = "xl/sharedstrings.xml"
_ADVICE = "Delete cells far from the table, or save the table as CSV."


def check_spreadsheet_memory(content: bytes, name: str) -> None:
    """Raise InputError if the sheets of a file do not fit in memory; .xls has at most 65,536 rows."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return
    with library_errors(name, "spreadsheet"), zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {member.filename.lower(): member for member in archive.infolist()}
        if "xl/workbook.bin" in members:
            raise ReadError("binary workbooks are not read", place=name, advice="Save it as .xlsx.")
        # Nobody reads more of a member than the archive says.
        n_bytes = sum(member.file_size for member in members.values())
        check_memory(_BYTES_PER_CHARACTER * n_bytes, "a spreadsheet of this size", _ADVICE)
        shared = _SharedTexts()
        if _SHARED in members:
            _parse(archive, members[_SHARED], shared)
        for path in _sheet_paths(archive, members):
            sheet = _Sheet()
            try:
                _parse(archive, members[path], sheet)
            except ExpatError:
                if PurePosixPath(path).suffix != ".bin":  # as macros are
                    raise
            _check(sheet.n_cells, n_bytes + sheet.n_shared(shared.lengths))
        if "content.xml" in members:
            document = _OpenDocument()
            _parse(archive, members["content.xml"], document)
            _check(document.n_cells, document.n_characters)


def _check(n_cells: int, n_characters: int) -> None:
    n_bytes = _BYTES_PER_CELL * n_cells + _BYTES_PER_CHARACTER * n_characters
    check_memory(n_bytes, f"a sheet of {n_cells:,} cells", _ADVICE)


class _Part:
    """A file of XML in a spreadsheet, element by element; names are without a prefix."""

    def __init__(self) -> None:
        self.parser: Any = ParserCreate()
        self.parser.StartElementHandler = self._start_any
        self.parser.EndElementHandler = self._end_any

    def _start_any(self, tag: str, attributes: dict[str, str]) -> None:
        self.start(tag if ":" not in tag else tag.rpartition(":")[2], attributes)

    def _end_any(self, tag: str) -> None:
        self.end(tag if ":" not in tag else tag.rpartition(":")[2])

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """At the start of an element."""

    def end(self, tag: str) -> None:
        """At its end."""

    @property
    def at(self) -> int:
        """The position in the file."""
        return int(self.parser.CurrentByteIndex)


def _parse(archive: zipfile.ZipFile, member: zipfile.ZipInfo, part: _Part) -> None:
    with archive.open(member) as file:
        part.parser.ParseFile(file)


# .xlsx


class _Relations(_Part):
    """The files that a workbook refers to; some are its sheets."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.targets.append(attributes.get("Target", "").lower())


def _sheet_paths(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> list[str]:
    """The paths of all files that may be sheets of a workbook."""
    path = "xl/_rels/workbook.xml.rels"
    if path not in members:
        return []
    relations = _Relations()
    _parse(archive, members[path], relations)
    named = [each for target in relations.targets for each in (target.lstrip("/"), f"xl/{target}")]
    return [each for each in dict.fromkeys(named) if each in members and each != _SHARED]


class _SharedTexts(_Part):
    """The lengths of the texts that cells refer to by their number."""

    def __init__(self) -> None:
        super().__init__()
        self.lengths: list[int] = []
        self._start = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "si":
            self._start = self.at

    def end(self, tag: str) -> None:
        if tag == "si":
            self.lengths.append(self.at - self._start)


class _Sheet(_Part):
    """The extent of a sheet, from its first cell with a value to its last one, and its shared texts."""

    def __init__(self) -> None:
        super().__init__()
        self._row = self._column = 0
        self._top, self._left, self._bottom, self._right = _MOST_ROWS, _MOST_COLUMNS, 0, 0
        self._is_shared = False
        self._text = ""
        self._references: Counter[str] = Counter()
        self._column_numbers: dict[str, int] = {}

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "v" or tag == "is" or tag == "f":
            self._extend(self._row, self._column)
            if self._is_shared:
                self._text = ""
                self.parser.CharacterDataHandler = self._add
        elif tag == "c":
            self._is_shared = attributes.get("t") == "s"
            place = attributes.get("r", "")
            letters = place.rstrip("0123456789")
            column = self._column_numbers.get(letters)
            if column is None:
                column = self._column_numbers[letters] = _column_number(letters)
            self._column = column or self._column + 1
            if column:
                self._row = _whole(place[len(letters) :], self._row)
        elif tag == "row":
            self._row = _whole(attributes.get("r", ""), self._row + 1)
            self._column = 0

    def _extend(self, row: int, column: int) -> None:
        if row > self._bottom:
            self._bottom = min(row, _MOST_ROWS)
        if row < self._top:
            self._top = row
        if column > self._right:
            self._right = min(column, _MOST_COLUMNS)
        if column < self._left:
            self._left = column

    def end(self, tag: str) -> None:
        if self._is_shared and tag == "v":
            self._references[self._text.strip()] += 1
            self.parser.CharacterDataHandler = None

    def _add(self, text: str) -> None:
        self._text += text

    @property
    def n_cells(self) -> int:
        """The number of cells, with empty ones between others."""
        if not self._bottom:
            return 0
        return (self._bottom - self._top + 1) * (self._right - self._left + 1)

    def n_shared(self, lengths: list[int]) -> int:
        """The number of characters of all shared texts, each as often as it is referred to."""
        found = ((_whole(number, -1), count) for number, count in self._references.items())
        return sum(count * lengths[k] for k, count in found if 0 <= k < len(lengths))


def _whole(text: str, other: int) -> int:
    """The whole number that a text is, or another one if it is none."""
    if not text.isdecimal():
        return other
    return int(text) if len(text) < 10 else min(int(text.lstrip("0")[:20] or "0"), 10**10)


def _column_number(letters: str) -> int:
    """The number of a column from its letters; 0 if they are none.

    Examples
    --------
    >>> _column_number("A"), _column_number("aa"), _column_number("")
    (1, 27, 0)
    """
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number if letters.isalpha() and letters.isascii() else 0


# .ods


class _OpenDocument(_Part):
    """The cells of all sheets, which are read together, and their text, both with repetitions.

    Rows and cells have numbers of repetitions. Empty ones after the last value of a row or a sheet are
    not read.
    """

    def __init__(self) -> None:
        super().__init__()
        self.n_cells = self.n_characters = 0
        self._repeated = 1  # rows
        self._rows = self._last_row = self._last_column = 0
        self._column = self._filled = self._text = 0  # of the row
        self._count = 1  # of the cell
        self._start = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "table":
            self._rows = self._last_row = self._last_column = 0
        elif tag == "table-row":
            self._repeated = _repetitions(attributes, "rows")
            self._column = self._filled = self._text = 0
        elif tag in ("table-cell", "covered-table-cell"):
            self._start = self.at
            self._count = min(_repetitions(attributes, "columns"), _MOST_COLUMNS)
            self._column = min(self._column + self._count, _MOST_COLUMNS)
            if any(name.startswith("office:") for name in attributes):
                self._filled = self._column

    def end(self, tag: str) -> None:
        if tag in ("table-cell", "covered-table-cell"):
            self._text += self._count * (self.at - self._start)
        elif tag == "table-row":
            self._rows = min(self._rows + self._repeated, _MOST_ROWS)
            if self._filled:
                self._last_row = self._rows
                self._last_column = max(self._last_column, self._filled)
                self.n_characters += min(self._repeated, _MOST_ROWS) * self._text
        elif tag == "table":
            self.n_cells += self._last_row * self._last_column


def _repetitions(attributes: dict[str, str], what: str) -> int:
    number = attributes.get(f"table:number-{what}-repeated", "1")
    return _whole(number.strip().removeprefix("+"), 1)
