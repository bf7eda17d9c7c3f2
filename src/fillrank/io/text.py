"""Text files as tables: delimiter, header, numbers, names."""

import csv
import io
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import ReadError, UnknownNameError
from fillrank.io.arrow_text import parse_long_fast
from fillrank.runtime.memory import check_room, in_bytes
from fillrank.table.labels import as_names
from fillrank.table.layout import LONG_HINT, names_rows
from fillrank.table.triplets import Triplets

# In any case; a point is SAS's and Stata's, #N/A a spreadsheet's, <NA> that of pandas.
MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "missing"})
MISSING |= {"?", "-", "--", "."}
_MISSING_HINT = (
    "A missing value is an empty cell, NA, N/A, #N/A, <NA>, NaN, null, None, missing, ?, -, -- or a "
    "point."
)
# In order of preference where several would do: a decimal comma is no delimiter.
DELIMITERS = {"::": "'::'", "\t": "tab", ";": "';'", "|": "'|'", ",": "','", " ": "white space"}
BLANK = " \t\r\n,;|:"  # lines of nothing else have no content
NOTES = ("source:", "sources:", "note:", "notes:")  # how a note below a table begins
_NOTE_LETTERS = "sSnN* \t"
_SHOWN = 60  # letters of a cell
_PIECE = 2**16  # characters that are split into lines together
# Memory for each cell, line and label, beside the text; measured.
_BYTES_PER_CELL, _BYTES_PER_LINE, _BYTES_PER_LABEL = 9, 32, 200
_FIRST_CHECK = 2**10  # lines of a long table
_TOO_LARGE = "Read a part of it; or save it as Parquet, of which a long table is read in batches."
HEAD = 100  # lines from which delimiter and header are judged
INTEGER = re.compile(r"0|-?[1-9][0-9]*")  # 007 is a code, not a number


class TextTable(NamedTuple):
    """A text file, seen as a table.

    ``names`` are those of the header, or 0, 1, 2, ... if there is none; ``head`` is the first
    lines of the body.
    """

    source: str
    text: str
    delimiter: str
    has_header: bool
    names: list[Any]
    head: list[list[str]]

    def number(self, text: str, line: int, column: int) -> float:
        """Parse a cell; NaN if it is missing."""
        number = parse_number(text, self.delimiter)
        if number is None:
            raise ReadError(
                f"{self.source}, line {line}, column {self.names[column]!r}: {_cut(text)} is not "
                f"a number. {self._advice(column)}"
            )
        return number

    def numbers(self, fields: list[str], line: int, first: int) -> list[float]:
        """Parse the cells of a line from the first one that holds a value."""
        cells = fields[first:]
        if "_" not in "".join(cells):  # which Python would take
            with suppress(ValueError):
                return list(map(float, cells))
        return [self.number(text, line, column) for column, text in enumerate(cells, first)]

    @property
    def n_lines(self) -> int:
        """The number of lines at most, the header included."""
        return max(self.text.count("\n"), self.text.count("\r")) + 1

    def _advice(self, column: int) -> str:
        """What to do about a cell that is no number."""
        if self.holds_numbers(column):
            return _MISSING_HINT
        return f"Most cells of this column are text: leave it out. {LONG_HINT}"

    def holds_numbers(self, column: int) -> bool:
        """Whether most cells of a column are numbers or missing, as far as the first lines show."""
        return _are_numbers(
            [line[column] for line in self.head if len(line) > column], self.delimiter
        )

    def body(self) -> Iterator[tuple[int, list[str]]]:
        """Walk through the lines below the header, with their numbers; blank lines are skipped."""
        width = len(self.names)
        skip = self.has_header
        after_blank = False
        note: tuple[int, list[str]] | None = None
        reader = split_lines(self.text, self.delimiter)
        try:
            for fields in reader:
                if skip:
                    skip = _is_blank(fields)
                elif len(fields) == width:
                    if note is not None:  # it is not the last line, so it is a row
                        yield note
                        note = None
                    if _may_be_note(fields, after_blank):
                        note = reader.line_num, fields
                    else:
                        yield reader.line_num, fields
                    after_blank = False
                elif not _is_blank(fields):
                    raise self._misfit(reader.line_num, fields)
                else:
                    after_blank = True
        except csv.Error as error:
            raise ReadError(f"{self.source}, line {reader.line_num}: {error}.") from error
        if note is not None:
            if sum(_starts_note(fields[0]) for fields in self.head) < 2:
                raise ReadError(
                    f"{self.source}, line {note[0]}: the last line is not like a row. "
                    f"{_note_hint(note[1])} If it is a row, move it up."
                )
            yield note

    def _misfit(self, line: int, fields: list[str]) -> ReadError:
        noun = "field" if len(fields) == 1 else "fields"
        may_be_note = len(fields) == 1 or _starts_note(fields[0])
        note = f" {_note_hint(fields)}" if may_be_note else ""
        return ReadError(
            f"{self.source}, line {line}: {len(fields)} {noun}, but the table has {len(self.names)} "
            f"(delimiter {DELIMITERS[self.delimiter]}).{note}"
        )

    def position(self, name: Any) -> int:
        """Find a column by its name."""
        if name not in self.names:
            raise UnknownNameError(
                f"{self.source} has no column {name!r}; it has "
                f"{', '.join(map(repr, self.names[:20]))}."
            )
        return self.names.index(name)


class NamedTriplets(NamedTuple):
    """Entries by position, with the names of rows and columns."""

    triplets: Triplets
    row_labels: np.ndarray
    column_labels: np.ndarray


def decode(data: bytes, source: str) -> str:
    """Decode UTF-8; refuse what is no text."""
    if b"\0" in data:
        raise ReadError(f"{source} is not a text file: it has zero bytes in it.")
    # A single character outside of ASCII may make all of them take up to four bytes.
    n_bytes = len(data) if data.isascii() else 4 * len(data)
    check_room(n_bytes, f"a text of {in_bytes(len(data))}", _TOO_LARGE)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ReadError(
            f"{source}, line {line}: not UTF-8 text ({error.reason}, byte {error.start}). "
            "Save the file as UTF-8."
        ) from error


def split_lines(text: str, delimiter: str) -> Any:
    """Make a csv reader: quotes, and line breaks within them, are as the csv module has them."""
    lines: Iterator[str] = _lines(text)
    if delimiter == "::":
        lines, delimiter = (line.replace("::", "\x1f") for line in lines), "\x1f"
    elif delimiter == " ":
        lines = (line.replace("\t", " ").strip() for line in lines)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter != "\t")


def _lines(text: str) -> Iterator[str]:
    """The lines with their ends; in pieces, for io.StringIO takes four bytes for each character."""
    start = 0
    while start < len(text):
        stop = text.find("\n", start + _PIECE) + 1 or len(text)
        yield from io.StringIO(text[start:stop], newline="")
        start = stop


def _is_blank(fields: list[str]) -> bool:
    return not any(map(str.strip, fields))


def _starts_note(text: str) -> bool:
    return text.lstrip().lower().startswith(NOTES)


def _may_be_note(fields: list[str], after_blank: bool) -> bool:
    """Whether the line would be a note below the table, if it were the last one."""
    first, *others = fields
    if not after_blank and first[:1] not in _NOTE_LETTERS:  # nearly all lines
        return False
    if _starts_note(first):
        return True
    may_be = after_blank or first.lstrip().startswith("*")
    return may_be and not _is_blank([first]) and _is_blank(others)


def _note_hint(fields: list[str]) -> str:
    return f"Delete the line if it is a note: {_cut(fields[0])}."


def parse_number(text: str, delimiter: str) -> float | None:
    """Parse a number, NaN if it is missing, None if it is none.

    Examples
    --------
    >>> parse_number("1,5", ";"), parse_number("n/a", ","), parse_number("1,5", "\\t")
    (1.5, nan, None)
    """
    if not text:
        return np.nan
    if "_" in text:  # which Python would take
        return None
    try:
        return float(text)
    except ValueError:
        pass
    if text.strip().lower() in MISSING:
        return np.nan
    return parse_number(text.replace(",", "."), ",") if delimiter == ";" and "," in text else None


def open_table(text: str, source: str) -> TextTable:
    """Find out the delimiter and the header."""
    lines = (line for line in _lines(text) if line.strip(BLANK))
    head_text = "".join(islice(lines, HEAD))
    if not head_text:
        raise ReadError(f"{source} is empty.")
    delimiter = _find_delimiter(head_text, source)
    head = [fields for fields in split_lines(head_text, delimiter) if not _is_blank(fields)]
    width = _usual_width(head)
    has_header = _has_header(head, width, delimiter)
    names: list[Any] = list(range(width))
    if has_header:
        names = [name.strip() for name in head.pop(0)]
        if not head:
            raise ReadError(f"{source} has a header, but no lines below it.")
        if len(names) == width - 1:
            names.insert(0, "")  # R leaves the name of the row names out
        _check_header(names, source)
    return TextTable(source, text, delimiter, has_header, names, head)


def _usual_width(lines: list[list[str]]) -> int:
    return Counter(map(len, lines)).most_common(1)[0][0]


def _find_delimiter(head: str, source: str) -> str:
    """Choose what splits most lines into the same number of fields, if into two at least."""
    best, best_share = None, 0.0
    for delimiter in DELIMITERS:
        try:
            lines = [fields for fields in split_lines(head, delimiter) if not _is_blank(fields)]
        except csv.Error:
            continue
        if not lines:
            continue
        width = _usual_width(lines)
        share = sum(len(fields) == width for fields in lines) / len(lines)
        if width > 1 and share > best_share:
            best, best_share = delimiter, share
    if best is None or best_share < 0.5:
        raise ReadError(
            f"{source} does not look like a table: its lines cannot be split into equally many "
            f"fields by any of {', '.join(DELIMITERS.values())}."
        )
    return best


def _has_header(head: list[list[str]], width: int, delimiter: str) -> bool:
    """A header is text where numbers follow; or it begins as the name of row names does."""
    first, *rest = head
    is_text = [parse_number(name, delimiter) is None for name in first]
    if not rest:
        return is_text[-1]
    if len(first) == width - 1 and any(is_text):
        return True
    # A line of another length says nothing about columns: it may be a note at the end.
    usual = [fields for fields in rest if len(fields) == width] or rest
    columns = list(zip(*usual, strict=False))[: len(first)]
    if any(is_text[j] and first[j] in cells for j, cells in enumerate(columns)):
        return False  # a name that comes again below is no title
    numeric = [j for j, cells in enumerate(columns) if _are_numbers(cells, delimiter)]
    if 2 * sum(is_text[j] for j in numeric) > len(numeric):
        return True
    filled = not any(name.strip() == "" for name in first[1:])
    return names_rows(first[0]) and filled and len(set(first)) == len(first)


def _are_numbers(cells: Sequence[str], delimiter: str) -> bool:
    """Whether at least half of the cells are numbers or missing: a few others may be mistakes."""
    return 2 * sum(parse_number(cell, delimiter) is None for cell in cells) <= len(cells)


def _cut(text: str) -> str:
    """A cell as it is shown in a message."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _check_header(names: list[str], source: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ReadError(f"{source}: the header has {repeated[0]!r} more than once. Rename one.")


def parse_long(table: TextTable, row: int, column: int, value: int) -> NamedTriplets:
    """Take one entry per line, from the columns at three positions."""
    if (fast := parse_long_fast(table, row, column, value)) is not None:
        return NamedTriplets(*fast)
    rows: dict[str, int] = {}
    columns: dict[str, int] = {}
    row_index, column_index, values = array("i"), array("i"), array("d")
    n_lines = table.n_lines
    for line, fields in table.body():
        n_read = len(values)
        if (
            n_read >= _FIRST_CHECK and n_read & (n_read - 1) == 0
        ):  # and then whenever it has doubled
            _check_long(n_lines, n_read, len(rows) + len(columns))
        row_name, column_name = fields[row].strip(), fields[column].strip()
        if not (row_name and column_name):
            nameless = table.names[column if row_name else row]
            raise ReadError(f"{table.source}, line {line}: no name in column {nameless!r}.")
        row_index.append(rows.setdefault(row_name, len(rows)))
        column_index.append(columns.setdefault(column_name, len(columns)))
        values.append(table.number(fields[value], line, value))
    triplets = Triplets(*map(np.array, (row_index, column_index, values)))
    return NamedTriplets(triplets, as_labels(list(rows)), as_labels(list(columns)))


def _check_long(n_lines: int, n_read: int, n_labels: int) -> None:
    """Refuse a long table that does not fit in memory if the rest has as many new labels per line."""
    n_left = max(n_lines - n_read, 0)
    check_room(
        _BYTES_PER_LINE * n_left + _BYTES_PER_LABEL * n_left * n_labels // n_read,
        f"a long table of {n_lines:,} lines",
        _TOO_LARGE,
    )


def parse_wide(table: TextTable) -> tuple[np.ndarray, np.ndarray, np.ndarray, str | None]:
    """Take one cell per entry; return the cells, both sides' names, the name of the row names."""
    named = _first_column_names(table)
    n_columns = len(table.names) - named
    n_cells = table.n_lines * n_columns
    n_labels = table.n_lines if named else 0
    check_room(
        _BYTES_PER_CELL * n_cells + _BYTES_PER_LABEL * n_labels,
        f"a wide table of up to {table.n_lines:,} lines and {n_columns:,} columns",
        _TOO_LARGE,
    )
    labels, cells = [], array("d")
    for line, fields in table.body():
        if named:
            labels.append(fields[0].strip())
            if not labels[-1]:
                raise ReadError(f"{table.source}, line {line}: the row has no name.")
        cells.extend(table.numbers(fields, line, int(named)))
    n_rows = len(cells) // n_columns
    row_labels = as_labels(labels) if named else np.arange(n_rows)
    column_labels = as_labels(table.names[named:]) if table.has_header else np.arange(n_columns)
    row_field = table.names[0] if named and table.has_header else None
    matrix = np.frombuffer(cells).reshape(n_rows, n_columns)
    return matrix, row_labels, column_labels, row_field or None


def _first_column_names(table: TextTable) -> bool:
    if table.has_header and names_rows(table.names[0]):
        return True
    return not table.holds_numbers(0)


def as_labels(names: list[str]) -> np.ndarray:
    """Make integers of names if all are written as such; otherwise leave them text.

    Examples
    --------
    >>> as_labels(["1", "10"]), as_labels(["01", "10"])
    (array([ 1, 10]), array(['01', '10'], dtype=object))
    """
    if all(INTEGER.fullmatch(name) for name in names):
        # Longer than any integer that numpy has, or that Python would make of text.
        with suppress(OverflowError, ValueError):
            return np.array([int(name) for name in names], dtype=np.int64)
    return as_names(names)
