"""Where a text table begins, and how: its delimiter, title, header and line of units."""

import csv
from collections import Counter
from itertools import islice
from typing import Any, NamedTuple

from fillrank.errors import FileLocation, ReadError, Setting
from fillrank.io.text_lines import (
    BLANK,
    DELIMITERS,
    is_blank,
    iter_lines,
    parse_number,
    split_lines,
    take_lines,
)
from fillrank.io.text_table import TextTable, width_error
from fillrank.io.top_lines import (
    count_titles,
    find_hint,
    is_line_of_units,
    refuse_markdown,
    starts_with_header,
)
from fillrank.table.missing_values import NO_MISSING_VALUES, MissingValues
from fillrank.table.text_values import shorten

_HEAD = 100  # lines that determine delimiter and header


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
    missing: MissingValues = NO_MISSING_VALUES,
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
    missing : MissingValues, optional
        A line with one of these is a row, not one of units.
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
            raise width_error(header, width, top.delimiter, place)
        names = _find_names(header, head, width)
        _check_header(names, source)
    table = TextTable(
        source, top.text, top.delimiter, has_header, names, head, top.above, notes=top.notes
    )
    if known is not None or skip == 0 or not has_header:
        return table
    below = top.lines[1]
    return table if any(map(missing.has_text, below.fields)) else _without_units(table, below)


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
        return f"Line {lines.stop} was skipped: {what}, {shown}."
    return f"Lines {lines.start + 1} to {lines.stop} were skipped: {what}, {shown}."


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
