"""Text tables: delimiter, header, numbers and labels, and the entries of long tables."""

import csv
import io
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import FileLocation, ReadError, Setting, Text, UnknownNameError
from fillrank.runtime.memory import check_memory
from fillrank.table.labels import as_labels
from fillrank.table.layout import is_label_column
from fillrank.table.missing_values import NO_MISSING_VALUES, MissingValues
from fillrank.table.number_text import (
    COMMA,
    NO_STYLE,
    POINT,
    NumberStyle,
    StyleOptions,
    find_style,
    looks_like_number,
    parse_value,
)
from fillrank.table.number_text import parse_number as parse_text_number
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
# In order of preference if several fit: a comma may be a decimal comma.
DELIMITERS = {"::": "'::'", "\t": "tab", ";": "';'", "|": "'|'", ",": "','", " ": "white space"}
_BLANK = " \t\r\n,;|:"  # lines of only these characters are blank
_NOTES = ("source:", "sources:", "note:", "notes:")  # starts of a note below a table
_NOTE_LETTERS = "sSnN* \t"  # first characters of notes
_HEAD = 100  # lines that determine delimiter and header
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")  # 007 is a code, not a number
# Names of columns that are numbers: years, or at least so many whole numbers at equal distances.
_COUNTED = re.compile(r"0|[1-9][0-9]{0,8}")
_YEARS, _FEWEST_COUNTED = (1500, 2150), 5
_CHUNK = 2**16  # characters that are split into lines together
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
    below the header.
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
        return next(line for line in lines if not _is_blank(line)) if self.has_header else None

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
                    raise self._width_error(reader.line_num, fields)
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

    def _width_error(self, line: int, fields: list[str]) -> ReadError:
        message = (
            f"{len(fields)} {'field' if len(fields) == 1 else 'fields'}, but the table has "
            f"{len(self.names)} (delimiter {DELIMITERS[self.delimiter]})"
        )
        long = next((field for field in fields if "\n" in field or "\r" in field), None)
        if long is not None:
            parts = long.splitlines()
            return ReadError(
                f"{message}, and the cell that starts with {shorten(parts[0])!r} goes on to line {line}",
                place=FileLocation(self.source, line - len(parts) + 1),
                advice="A quote may not be closed: close it, or delete it.",
            )
        may_be_note = len(fields) == 1 or _starts_note(fields[0])
        return ReadError(
            message,
            place=FileLocation(self.source, line),
            advice=_note_advice(fields) if may_be_note else (),
            kind="width",
        )

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


def split_lines(text: str, delimiter: str) -> Any:
    """Make a csv reader; quotes, and line breaks within them, follow the csv module."""
    lines: Iterator[str] = _iter_lines(text)
    if delimiter == "::":
        lines, delimiter = (line.replace("::", "\x1f") for line in lines), "\x1f"
    elif delimiter == " ":
        lines = (line.replace("\t", " ").strip() for line in lines)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter != "\t")


def _iter_lines(text: str) -> Iterator[str]:
    """The lines with their ends; in chunks, because io.StringIO takes four bytes per character."""
    start = 0
    while start < len(text):
        stop = text.find("\n", start + _CHUNK) + 1 or len(text)
        yield from io.StringIO(text[start:stop], newline="")
        start = stop


def _is_blank(fields: list[str]) -> bool:
    return not any(map(str.strip, fields))


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
    return may_be and not _is_blank([first]) and _is_blank(others)


def _note_advice(fields: list[str]) -> str:
    return f"Delete the line if it is a note: {shorten(fields[0])!r}."


def parse_number(text: str, delimiter: str) -> float | None:
    """Parse a number; NaN if the text is a missing value, None if it is not a number.

    Examples
    --------
    >>> parse_number("1,5", ";"), parse_number("n/a", ","), parse_number("1,5", "\\t")
    (1.5, nan, None)
    """
    return parse_text_number(text, plain_style(delimiter))


def plain_style(delimiter: str) -> NumberStyle:
    """The style of plain numbers: they may have a decimal comma between semicolons."""
    return COMMA if delimiter == ";" else POINT


class KnownText(NamedTuple):
    """What is known about text that was made from another kind of file; None is to be found out."""

    delimiter: str
    has_header: bool | None = None


def open_table(
    text: str, source: str, known: KnownText | None = None, needs_header: bool = False
) -> TextTable:
    """Determine the delimiter and the header.

    With ``needs_header``, a first line that may be a header is one, and any other is refused.
    """
    lines = (line for line in _iter_lines(text) if line.strip(_BLANK))
    head_text = "".join(islice(lines, _HEAD))
    if not head_text:
        raise ReadError("the file is empty", place=source)
    delimiter = _find_delimiter(head_text, source) if known is None else known.delimiter
    head = [fields for fields in split_lines(head_text, delimiter) if not _is_blank(fields)]
    width = _most_common_width(head)
    if known is None or known.has_header is None:
        has_header = _has_header(head, width, delimiter)
    else:
        has_header = known.has_header
    if needs_header and not has_header:
        _check_may_be_header(head, delimiter, source)
        has_header = True
    names: list[Any] = list(range(width))
    if has_header:
        names = [name.strip() for name in head.pop(0)]
        if not head:
            raise ReadError("the file has a header, but no lines below it", place=source)
        if len(names) == width - 1:
            # R does not write a name for the row labels. Or lines end with a delimiter.
            ends_empty = all(not line[-1].strip() for line in head if len(line) == width)
            names.insert(width - 1 if ends_empty else 0, "")
        names = _name_all(names)
        _check_header(names, source)
    return TextTable(source, text, delimiter, has_header, names, head)


def _most_common_width(lines: list[list[str]]) -> int:
    return Counter(map(len, lines)).most_common(1)[0][0]


def _find_delimiter(head: str, source: str) -> str:
    """Choose the delimiter that splits most lines into the same number of fields, at least two."""
    best, best_fraction, widest = None, 0.0, 1
    for delimiter in DELIMITERS:
        try:
            lines = [fields for fields in split_lines(head, delimiter) if not _is_blank(fields)]
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
        )
    return best


def _has_header(head: list[list[str]], width: int, delimiter: str) -> bool:
    """Whether the first line is text above numbers, or starts with a name for row labels."""
    first, *rest = head
    is_text = [parse_number(name, delimiter) is None for name in first]
    if not rest:
        return is_text[-1]
    if len(first) == width - 1 and any(is_text):
        return True
    # A line of another width has no information about columns: it may be a note at the end.
    regular = [fields for fields in rest if len(fields) == width] or rest
    columns = list(zip(*regular, strict=False))[: len(first)]
    named = [j for j, name in enumerate(first[: len(columns)]) if name.strip()]
    if any(is_text[j] and first[j] in cells for j, cells in enumerate(columns)):
        return False  # a name that is repeated below is not a header
    numeric = [j for j in named if are_numbers(columns[j], delimiter)]
    if 2 * sum(is_text[j] for j in numeric) > len(numeric):
        return True
    are_names = len(set(first)) == len(first) and all(name.strip() for name in first[1:])
    if not numeric and all(is_text) and _are_categories(columns):
        return are_names
    if are_names and _counts_up(first) and not any(map(_counts_up, rest)):
        return True
    return is_label_column(first[0]) and are_names


def _counts_up(names: Sequence[str]) -> bool:
    """Whether names are years in their order, or at least five whole numbers at equal distances.

    The first may be a name for row labels; some that are not numbers may be among years.
    """
    texts = [name.strip() for name in names]
    numbers = [int(text) for text in texts if _COUNTED.fullmatch(text)]
    others = [text for text in texts[1:] if not _COUNTED.fullmatch(text)]
    steps = {after - before for before, after in pairwise(numbers)}
    if not steps or min(steps) <= 0 or any(map(looks_like_number, others)):
        return False
    if _YEARS[0] <= numbers[0] and numbers[-1] <= _YEARS[1]:
        return True
    return len(steps) == 1 and len(numbers) >= _FEWEST_COUNTED and not others


def _are_categories(columns: Sequence[Sequence[str]]) -> bool:
    """Whether at least half of the columns have values that are repeated."""
    n_repeated = sum(len(set(cells)) < len(cells) for cells in columns)
    return 2 * n_repeated >= len(columns)


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


def are_numbers(cells: Sequence[str], delimiter: str) -> bool:
    """Whether at least half of the cells are numbers, limits or missing; others may be mistakes.

    Intervals such as 18-25 do not count: they may be labels.
    """
    base = plain_style(delimiter)
    return 2 * sum(not looks_like_number(cell, base) for cell in cells) <= len(cells)


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
            raise ReadError("the label is missing", place=place, kind="label")
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
