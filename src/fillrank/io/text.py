"""Text tables: delimiter, header, numbers and labels, and the entries of long tables."""

import csv
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import FileLocation, ReadError, Setting, Text, UnknownNameError
from fillrank.io.text_lines import (
    BLANK,
    DELIMITERS,
    are_numbers,
    is_blank,
    iter_lines,
    parse_number,
    plain_style,
    split_lines,
    take_lines,
)
from fillrank.io.top_lines import (
    count_titles,
    find_hint,
    is_line_of_units,
    refuse_markdown,
    starts_with_header,
)
from fillrank.runtime.memory import check_memory
from fillrank.table.labels import as_labels
from fillrank.table.missing_values import NO_MISSING_VALUES, MissingValues
from fillrank.table.number_text import (
    NO_STYLE,
    NumberStyle,
    StyleOptions,
    find_style,
    parse_value,
)
from fillrank.table.text_values import shorten
from fillrank.table.triplets import Triplets, encode_triplets, with_intervals

MISSING_HINT = (
    "A missing value is an empty cell, NA, N/A, n.a., #N/A, <NA>, NaN, null, None, missing, ?, a dash "
    "or a point."
)
STYLE_HINT: Text = (
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
_NOTES = ("source:", "sources:", "note:", "notes:")  # starts of a note below a table
_NOTE_LETTERS = "sSnN* \t"  # first characters of notes
_HEAD = 100  # lines that determine delimiter and header
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")  # 007 is a code, not a number
# Memory for each cell, line and label, in addition to the text; measured.
_BYTES_PER_CELL, _BYTES_PER_LINE, _BYTES_PER_LABEL = 9, 32, 200
_FIRST_CHECK = 2**10  # lines of a long table
_SIZE_ADVICE = (
    "Read a part of it, or save it as Parquet; long tables in Parquet are read in batches."
)
SMALL = 1_000_000  # characters below which importing pyarrow takes longer than it saves
# 007, 0x7 and -0 are integers for pyarrow, but text here.
_ODD_INTEGER = re.compile(r"(?<![0-9.])0[0-9xX]|-0(?![0-9.])")


class TextTable(NamedTuple):
    """A text file as a table.

    ``names`` are those of the header, or 0, 1, 2, ... if there is none. ``head`` is the first lines
    below the header. ``above`` and ``below`` are lines above and directly below the header that are not
    of the table: in ``text`` they are blank.
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
            return [MISSING_HINT, STYLE_HINT]
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
                elif len(fields) == width:
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
                    raise _width_error(fields, width, self.delimiter, place)
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

    def position(self, name: Any) -> int:
        """Find a column by its name."""
        if name not in self.names:
            raise UnknownNameError(
                f"there is no column {name!r}; the columns are "
                f"{', '.join(map(repr, self.names[:20]))}",
                place=self.source,
            )
        return self.names.index(name)


class LabelledTriplets(NamedTuple):
    """Entries by position, with row and column labels."""

    triplets: Triplets
    row_labels: np.ndarray
    column_labels: np.ndarray
    intervals: np.ndarray | None = None


# Delimiter and header.


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


def _width_error(fields: list[str], width: int, delimiter: str, place: FileLocation) -> ReadError:
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


class KnownText(NamedTuple):
    """What is known about text that was made from another kind of file; None is to be found out."""

    delimiter: str
    has_header: bool | None = None


class _Line(NamedTuple):
    """The fields of a line that is not blank, and the positions of its lines in the text."""

    fields: list[str]
    lines: range


class _Top(NamedTuple):
    """The text of a table in which the lines above it are blank, its first lines, and notes."""

    text: str
    delimiter: str
    lines: list[_Line]
    above: str = ""
    notes: tuple[str, ...] = ()


def open_table(
    text: str,
    source: str,
    known: KnownText | None = None,
    needs_header: bool = False,
    skip: int | None = None,
) -> TextTable:
    """Determine the delimiter and the header.

    Parameters
    ----------
    text : str
    source : str
        The name of the file in messages.
    known : KnownText, optional
        Such text has neither a title nor a line of units.
    needs_header : bool
        Whether a first line that may be a header is one, and any other is refused.
    skip : int, optional
        The number of lines to skip. By default a title is found and skipped; with 0 no line is
        skipped, nor one of units.
    """
    if known is None:
        top = _find_top(text, source, skip)
    else:
        top = _Top(text, known.delimiter, _first_lines(text, known.delimiter, source))
    first, head = top.lines[0], [line.fields for line in top.lines]
    width = _most_common_width(head)
    if known is None or known.has_header is None:
        has_header = starts_with_header(head, width, top.delimiter)
    else:
        has_header = known.has_header
    if needs_header and not has_header:
        _check_may_be_header(head, top.delimiter, source)
        has_header = True
    names: list[Any] = list(range(width))
    if has_header:
        header = head.pop(0)
        if not head:
            raise ReadError("the file has a header, but no lines below it", place=source)
        if len(header) not in (width - 1, width):
            place = FileLocation(source, first.lines.stop)
            raise _width_error(header, width, top.delimiter, place)
        names = _find_names(header, head, width)
        _check_header(names, source)
    table = TextTable(
        source, top.text, top.delimiter, has_header, names, head, top.above, notes=top.notes
    )
    if known is not None or skip == 0 or not has_header:
        return table
    return _without_units(table, top.lines[1])


def _find_top(text: str, source: str, skip: int | None) -> _Top:
    """Find the first line of the table, below a hint of the delimiter and a title."""
    hint = None if skip else find_hint(text, source)
    above, rest = take_lines(text, 0, skip or int(hint is not None))
    if skip and (not rest or rest.isspace()):
        raise ReadError(
            "the file has no further lines", place=(source, ", ", Setting("skip")), value=skip
        )
    refuse_markdown(rest, source)
    delimiter = _find_delimiter(_read_head(rest, source), source) if hint is None else hint
    lines = _first_lines(rest, delimiter, source)
    head = [line.fields for line in lines]
    width = _most_common_width(head)
    if hint is not None and width == 1:
        raise ReadError(
            "each line has a single field with the delimiter that this line names",
            place=FileLocation(source, 1),
            value=above.strip("\r\n"),
            advice="Correct the line, or delete it.",
        )
    n_titles = count_titles(head, width, delimiter) if skip is None else 0
    if not n_titles:
        return _Top(rest, delimiter, lines, above)
    first, last = lines[0].lines.start, lines[n_titles - 1].lines.stop
    note = _skipped_note(text, range(first, last), "a title")
    above, rest = take_lines(text, 0, lines[n_titles].lines.start)
    return _Top(rest, delimiter, lines[n_titles:], above, (note,))


def _without_units(table: TextTable, line: _Line) -> TextTable:
    """The same without the line below the header, if it has units."""
    is_whole = len(line.fields) == len(table.names)
    if not is_whole or not is_line_of_units(line.fields, table.head[1:], table.delimiter):
        return table
    note = _skipped_note(table.text, line.lines, "units or further names of columns")
    below, text = take_lines(table.text, line.lines.start, line.lines.stop)
    return table._replace(text=text, head=table.head[1:], below=below, notes=(*table.notes, note))


def _skipped_note(text: str, lines: range, what: str) -> str:
    """A note about lines that are not of the table, with the first of them."""
    first = take_lines(text, lines.start, lines.start + 1)[0]
    shown = repr(shorten(first.strip(BLANK)))
    if len(lines) == 1:
        return f"Line {lines.stop} was skipped: {what}, {shown}. If it is a row, set skip=0."
    return (
        f"Lines {lines.start + 1} to {lines.stop} were skipped: {what}, {shown}. If they are rows, set "
        "skip=0."
    )


def _read_head(text: str, source: str) -> str:
    """The first lines that are not blank."""
    lines = list(islice((line for line in iter_lines(text) if line.strip(BLANK)), _HEAD))
    if not lines:
        raise ReadError("the file is empty", place=source)
    return "".join(lines)


def _first_lines(text: str, delimiter: str, source: str) -> list[_Line]:
    """The first lines that are not blank; a cell with a line break goes on to further ones."""
    found: list[_Line] = []
    start = 0
    reader = split_lines(text, delimiter)
    try:
        for fields in reader:
            if not is_blank(fields):
                found.append(_Line(fields, range(start, reader.line_num)))
            if len(found) == _HEAD:
                break
            start = reader.line_num
    except csv.Error as error:
        raise ReadError(str(error), place=FileLocation(source, reader.line_num)) from error
    if not found:
        raise ReadError("the file is empty", place=source)
    return found


def _find_names(header: list[str], head: list[list[str]], width: int) -> list[str]:
    """The names of all columns, also of one without a name in the header."""
    names = [name.strip() for name in header]
    if len(names) == width - 1:
        # R does not write a name for the row labels. Or lines end with a delimiter.
        ends_empty = all(not line[-1].strip() for line in head if len(line) == width)
        names.insert(width - 1 if ends_empty else 0, "")
    return _name_all(names)


def _most_common_width(lines: list[list[str]]) -> int:
    return Counter(map(len, lines)).most_common(1)[0][0]


def _find_delimiter(head: str, source: str) -> str:
    """Choose the delimiter that splits most lines into the same number of fields, at least two."""
    best, best_fraction, widest = None, 0.0, 1
    for delimiter in DELIMITERS:
        try:
            lines = [fields for fields in split_lines(head, delimiter) if not is_blank(fields)]
        except csv.Error:
            continue
        if not lines:
            continue
        width = _most_common_width(lines)
        widest = max(widest, *map(len, lines))
        fraction = sum(len(fields) == width for fields in lines) / len(lines)
        if width > 1 and fraction > best_fraction:
            best, best_fraction = delimiter, fraction
    if best is None and widest == 1:
        raise ReadError(
            "the file is not a table: each line has a single field, and a table needs two at least",
            place=source,
            allowed=f"fields between {', '.join(DELIMITERS.values())}",
            advice="A single column of values can be filled in if another column has row labels.",
        )
    if best is None or best_fraction < 0.5:
        raise ReadError(
            "the file is not a table: its lines cannot be split into the same number of fields by any "
            f"of {', '.join(DELIMITERS.values())}",
            place=source,
            kind="delimiter",
        )
    return best


def _check_may_be_header(head: list[list[str]], delimiter: str, source: str) -> None:
    """Raise ReadError if the first line has a number, or a text that is repeated below it."""
    first, *rest = head
    for j, name in enumerate(first):
        is_repeated = any(len(fields) > j and fields[j] == name for fields in rest)
        if is_repeated or parse_number(name, delimiter) is not None:
            raise ReadError(
                "the first line must be a header with the name of each column",
                place=source,
                value=shorten(name),
                advice="Add a first line with their names.",
            )


def _name_all(names: list[str]) -> list[str]:
    """Names for columns after the first that have none, as pandas gives them."""
    return [name or (f"Unnamed: {j}" if j else name) for j, name in enumerate(names)]


def _check_header(names: list[str], source: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ReadError(
            f"the header has {repeated[0]!r} more than once", place=source, advice="Rename one."
        )


# Entries.


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


def parse_labels(labels: list[str]) -> np.ndarray:
    """Convert labels to integers if all are written as such; otherwise they stay text.

    Examples
    --------
    >>> parse_labels(["1", "10"]), parse_labels(["01", "10"])
    (array([ 1, 10]), array(['01', '10'], dtype=object))
    """
    if all(_INTEGER.fullmatch(label) for label in labels):
        # Some may be too long for int64, or for Python's limit on digits.
        with suppress(OverflowError, ValueError):
            return np.array([int(label) for label in labels], dtype=np.int64)
    return as_labels(labels)


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
