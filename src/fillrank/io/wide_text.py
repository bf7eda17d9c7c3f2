"""Wide text tables: numbers, or columns of any kind of value."""

from array import array
from collections.abc import Sequence

import numpy as np

from fillrank.errors import FileLocation, InputError, ReadError
from fillrank.io.text import MISSING_HINT, TextTable, parse_labels
from fillrank.runtime.memory import check_memory
from fillrank.table.frame_columns import code_remark
from fillrank.table.frames import Origin
from fillrank.table.labels import check_unique, factorize
from fillrank.table.layout import is_label_column
from fillrank.table.missing_values import MISSING_WORDS, MissingValues
from fillrank.table.notes import Remark, describe_columns
from fillrank.table.text_values import ColumnValues, LeftOut, are_words, judge_text
from fillrank.table.wide_frames import Rows, WideColumns, WideOptions, WideTable

# Memory for each cell as a number and as text, and for each label, in addition to the text. That of text
# is the figure for files of features.
_BYTES_PER_CELL, _BYTES_PER_TEXT_CELL, _BYTES_PER_LABEL = 9, 80, 200
_SIZE_ADVICE = (
    "Read a part of it, or save it as Parquet; long tables in Parquet are read in batches."
)


def read_wide(table: TextTable, options: WideOptions) -> WideTable:
    """Read a wide table: as numbers if it has nothing else, otherwise column by column."""
    found = _read_if_numbers(table) if options == WideOptions() else None
    return _read_any(table, options) if found is None else found


def _read_if_numbers(table: TextTable) -> WideTable | None:
    """Read a table of numbers; None if there is text, beside row labels that all differ."""
    is_named = _has_named_labels(table)
    try:
        found = _read_numbers(table)
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


# Tables of numbers.


def _read_numbers(table: TextTable) -> WideTable:
    """Parse one number per entry, and the row labels in the first column, if it has them."""
    has_labels = _has_named_labels(table) or not table.has_numbers(0)
    n_columns = len(table.names) - has_labels
    n_labels = table.n_lines if has_labels else 0
    _check_memory(table, _BYTES_PER_CELL * table.n_lines * n_columns + _BYTES_PER_LABEL * n_labels)
    labels, cells = [], array("d")
    for line, fields in table.body():
        if has_labels:
            labels.append(fields[0].strip())
            if not labels[-1]:
                raise _label_missing(table, line)
        cells.extend(table.numbers(fields, line, int(has_labels)))
    n_rows = len(cells) // n_columns
    row_labels = parse_labels(labels) if has_labels else np.arange(n_rows)
    column_labels = np.arange(n_columns)
    if table.has_header:
        column_labels = parse_labels(table.names[has_labels:])
    row_field = table.names[0] if has_labels and table.has_header else None
    matrix = np.frombuffer(cells).reshape(n_rows, n_columns)
    remarks = [code_remark(matrix[:, j]) for j in range(n_columns)]
    notes = describe_columns(zip(column_labels, remarks, strict=True))
    origin = Origin("wide", row_field=row_field or None)
    return WideTable(matrix, row_labels, column_labels, origin, notes=notes)


def _check_memory(table: TextTable, n_bytes: int) -> None:
    what = f"a wide table of up to {table.n_lines:,} lines and {len(table.names):,} columns"
    check_memory(n_bytes, what, _SIZE_ADVICE)


def _label_missing(table: TextTable, line: int) -> ReadError:
    place = FileLocation(table.source, line)
    return ReadError("the row label is missing", place=place, kind="label")


# Tables with text.


def _read_any(table: TextTable, options: WideOptions) -> WideTable:
    for name in options.ignore:
        table.position(name)
    columns, lines = _read_columns(table)
    rows = _find_rows(table, columns, lines, options)
    all_labels = parse_labels(table.names) if table.has_header else np.arange(len(table.names))
    cells = WideColumns(len(lines), len(columns) - (rows.column is not None))
    for j, column in enumerate(columns):
        if j != rows.column:
            found = _read_column(table, j, column, lines, options)
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
    table: TextTable, position: int, cells: list[str], lines: Sequence[int], options: WideOptions
) -> ColumnValues | LeftOut:
    name = table.names[position]
    if name in options.ignore:
        return LeftOut(Remark("ignored"))

    def place(i: int) -> FileLocation:
        return FileLocation(table.source, lines[i], name)

    texts = [None if cell.lower() in MISSING_WORDS else cell for cell in cells]
    if not any(text is not None for text in texts):
        return ColumnValues(np.full(len(texts), np.nan))
    try:
        found = judge_text(texts, place, options.missing, table.has_decimal_comma)
    except InputError as error:
        raise ReadError(
            error.message,
            place=error.place,
            value=error.value,
            allowed=error.allowed,
            advice=[MISSING_HINT, *error.advice],
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
    return Rows(labels, (table.names[position] or None) if table.has_header else None, position)


def _label_position(table: TextTable, columns: list[list[str]], options: WideOptions) -> int | None:
    """The position of the column with the row labels."""
    if options.label is not None:
        return table.position(options.label)
    if _has_named_labels(table) and table.names[0] not in options.ignore:
        return 0
    for j, column in enumerate(columns):
        if table.names[j] not in options.ignore and _can_be_labels(table, column, options.missing):
            return j
    return None


def _can_be_labels(table: TextTable, cells: list[str], missing: MissingValues) -> bool:
    """Whether cells are text, all different and none missing."""
    if len(set(cells)) < len(cells) or any(cell.lower() in MISSING_WORDS for cell in cells):
        return False
    if missing and any(missing.has_text(cell) for cell in cells):
        return False
    return are_words(cells, table.has_decimal_comma)
