"""Wide text tables: numbers, or columns of any kind of value."""

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from fillrank.errors import FileLocation, InputError, ReadError
from fillrank.io.text_lines import parse_labels
from fillrank.io.text_table import MISSING_HINT, TextTable
from fillrank.runtime.memory import check_memory
from fillrank.table.frame_columns import code_remark, find_codes
from fillrank.table.frames import Origin
from fillrank.table.labels import as_text, check_unique, factorize
from fillrank.table.layout import are_row_numbers, is_label_column, is_row_name
from fillrank.table.missing_values import MISSING_WORDS
from fillrank.table.notes import Remark, describe_columns, labels_note
from fillrank.table.number_text import find_certain_style
from fillrank.table.text_values import ColumnValues, LeftOut, are_words, judge_text
from fillrank.table.wide_frames import Rows, WideColumns, WideOptions, WideTable

# Memory for each cell as a number and as text, and for each label, in addition to the text. That of text
# is the figure for files of features.
_BYTES_PER_CELL, _BYTES_PER_TEXT_CELL, _BYTES_PER_LABEL = 9, 80, 200
_SIZE_ADVICE = (
    "Read a part of it, or save it as Parquet; long tables in Parquet are read in batches."
)
_HEADER_ADVICE = (
    "If this line has units or further names of columns, delete it; or the line above, if this one has "
    "the names to keep."
)


def read_wide(table: TextTable, options: WideOptions) -> WideTable:
    """Read a wide table: as numbers if it has nothing else, otherwise column by column."""
    found = _read_if_numbers(table) if options == WideOptions() else None
    return _read_any(table, options) if found is None else found


def _read_if_numbers(table: TextTable) -> WideTable | None:
    """Read a table of numbers; None if there is text, beside row labels that all differ."""
    is_named = _has_named_labels(table)
    position = _likely_labels(table)
    try:
        found = _read_numbers(table, position)
        if position is not None and not (is_named or _are_labels(table, position, found)):
            found = _read_numbers(table, None)
    except ReadError as error:
        if error.kind == "number" or (error.kind == "label" and not is_named):
            return None
        raise
    if is_named:
        check_unique(found.row_labels, "row")
    has_repeated = len(factorize(found.row_labels, "row")[1]) < len(found.row_labels)
    return None if has_repeated else found


def _has_named_labels(table: TextTable) -> bool:
    return table.has_header and is_label_column(table.names[0])


def _likely_labels(table: TextTable) -> int | None:
    """The position of the column that has the row labels, by the header and the first lines."""
    if _has_named_labels(table) or not table.has_numbers(0):
        return 0
    if not table.has_header:
        return None
    if are_row_numbers(table.names[0], [line[0].strip() for line in table.head]):
        return 0
    return next((j for j, name in enumerate(table.names) if is_row_name(name, j)), None)


def _are_labels(table: TextTable, position: int, found: WideTable) -> bool:
    """Whether the column that was read as row labels is one."""
    labels = found.row_labels
    if not table.has_numbers(position):
        return True
    if labels.dtype.kind == "i" and is_row_name(table.names[position], position):
        return len(np.unique(labels)) == len(labels)
    return position == 0 and are_row_numbers(table.names[0], [str(label) for label in labels])


# Tables of numbers.


def _read_numbers(table: TextTable, position: int | None) -> WideTable:
    """Parse one number per entry; the row labels are in the column at a position, if there are any."""
    has_labels = position is not None
    n_columns = len(table.names) - has_labels
    n_labels = table.n_lines if has_labels else 0
    _check_memory(table, _BYTES_PER_CELL * table.n_lines * n_columns + _BYTES_PER_LABEL * n_labels)
    labels, cells = [], array("d")
    for line, fields in table.body():
        if position is not None:
            labels.append(fields[position].strip())
            if not labels[-1]:
                raise _label_missing(table, line)
            cells.extend(table.numbers(fields, line, 0, position))
            cells.extend(table.numbers(fields, line, position + 1))
        else:
            cells.extend(table.numbers(fields, line))
    n_rows = len(cells) // n_columns
    row_labels = parse_labels(labels) if has_labels else np.arange(n_rows)
    column_labels = np.arange(n_columns)
    names = list(table.names)
    row_field = names.pop(position) if position is not None and table.has_header else None
    if table.has_header:
        column_labels = parse_labels(names)
    matrix = np.frombuffer(cells).reshape(n_rows, n_columns)
    remarks = [code_remark(matrix[:, j]) for j in range(n_columns)]
    notes = describe_columns(zip(column_labels, remarks, strict=True))
    if position is not None and row_labels.dtype.kind == "i":
        notes = (*_labels_notes(table, position), *notes)
    origin = Origin("wide", row_field=row_field or None, label_position=position or 0)
    return WideTable(matrix, row_labels, column_labels, origin, notes=notes)


def _check_memory(table: TextTable, n_bytes: int) -> None:
    what = f"a wide table of up to {table.n_lines:,} lines and {len(table.names):,} columns"
    check_memory(n_bytes, what, _SIZE_ADVICE)


def _label_missing(table: TextTable, line: int) -> ReadError:
    place = FileLocation(table.source, line)
    advice = "Fill it in, or delete the line."
    return ReadError("the row label is missing", place=place, advice=advice, kind="label")


# Tables with text.


def _read_any(table: TextTable, options: WideOptions) -> WideTable:
    for name in (*options.ignore, *options.only):
        table.position(name)
    columns, lines = _read_columns(table)
    seen = find_certain_style(cell for column in columns for cell in column if "," in cell)
    options = options._replace(style=options.style._replace(base=table.style, seen=seen))
    rows = _find_rows(table, columns, lines, options)
    all_labels = parse_labels(table.names) if table.has_header else np.arange(len(table.names))
    cells = WideColumns(len(lines), len(columns) - (rows.column is not None), options.known)
    for j, column in enumerate(columns):
        if j != rows.column:
            found = _read_column(table, j, all_labels[j], column, lines, options)
            cells.add(j, all_labels[j], found, column)
    origin = Origin("wide", row_field=rows.field, label_position=rows.column or 0)
    return cells.table(all_labels, rows, origin)


def _read_columns(table: TextTable) -> tuple[list[list[str]], list[int]]:
    """The cells of each column, and the numbers of the lines."""
    _check_memory(table, _BYTES_PER_TEXT_CELL * table.n_lines * len(table.names))
    columns: list[list[str]] = [[] for _ in table.names]
    lines = []
    for line, fields in table.body():
        lines.append(line)
        for column, cell in zip(columns, fields, strict=True):
            column.append(cell.strip())
    return columns, lines


def _read_column(
    table: TextTable,
    position: int,
    label: Any,
    cells: list[str],
    lines: Sequence[int],
    options: WideOptions,
) -> ColumnValues | LeftOut:
    name = table.names[position]
    if options.leaves_out(name):
        return LeftOut(Remark("ignored"))

    def place(i: int) -> FileLocation:
        return FileLocation(table.source, lines[i], name)

    texts = [None if cell.lower() in MISSING_WORDS else cell for cell in cells]
    known = None if options.known is None else options.known.get(label)
    if options.known is not None and known is None:
        return LeftOut(Remark("ignored"))  # it was not fitted either
    if known is not None and known.is_coded:
        levels = tuple(map(as_text, known.levels))
        return ColumnValues(find_codes(texts, levels, place, options.missing), known)
    if not any(text is not None for text in texts):
        return ColumnValues(np.full(len(texts), np.nan))
    try:
        found = judge_text(texts, place, options.missing, options.style)
    except InputError as error:
        is_first = isinstance(error.place, FileLocation) and error.place.line == lines[0]
        raise ReadError(
            error.message,
            place=error.place,
            value=error.value,
            allowed=error.allowed,
            advice=[*([_HEADER_ADVICE] if is_first else []), MISSING_HINT, *error.advice],
        ) from error
    if isinstance(found, ColumnValues) and found.remark == Remark("numbers"):
        return found._replace(remark=code_remark(found.values))
    return found


def _find_rows(
    table: TextTable, columns: list[list[str]], lines: Sequence[int], options: WideOptions
) -> Rows:
    position = _label_position(table, columns, options)
    if position is None:
        return Rows(np.arange(len(lines)), None, None)
    cells = columns[position]
    if "" in cells:
        raise _label_missing(table, lines[cells.index("")])
    labels = parse_labels(cells)
    check_unique(labels, "row")
    field = (table.names[position] or None) if table.has_header else None
    is_taken = options.label is None and labels.dtype.kind == "i"
    notes = _labels_notes(table, position) if is_taken else ()
    return Rows(labels, field, position, notes=notes)


def _labels_notes(table: TextTable, position: int) -> tuple[str, ...]:
    """A note about row labels that are numbers, unless the name of their column says it."""
    if position == 0 and _has_named_labels(table):
        return ()
    return (labels_note(table.names[position] if table.has_header else ""),)


def _label_position(table: TextTable, columns: list[list[str]], options: WideOptions) -> int | None:
    """The position of the column with the row labels."""
    if options.label is not None:
        return table.position(options.label)
    if _has_named_labels(table) and options.may_label(table.names[0]):
        return 0
    may_label = [options.may_label(name) for name in table.names]
    if table.has_header and may_label[0] and are_row_numbers(table.names[0], columns[0]):
        return 0
    for j, column in enumerate(columns):
        is_named = table.has_header and is_row_name(table.names[j], j)
        if may_label[j] and _can_be_labels(column, is_named, options):
            return j
    return None


def _can_be_labels(cells: list[str], is_named: bool, options: WideOptions) -> bool:
    """Whether cells are all different, none is missing, and they are text or named as labels."""
    if len(set(cells)) < len(cells) or any(cell.lower() in MISSING_WORDS for cell in cells):
        return False
    if options.missing and any(options.missing.has_text(cell) for cell in cells):
        return False
    if is_named and all(cell.isdigit() for cell in cells):
        return True
    return are_words(cells, options.style)
