"""Spreadsheets (.xlsx, .xls, .ods) as text tables, so that text becomes values in one place."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from fillrank.errors import ReadError, Setting
from fillrank.io.dialect import Dialect
from fillrank.io.files import library_errors
from fillrank.io.spreadsheet_memory import check_spreadsheet_memory
from fillrank.io.top_lines import is_line_of_units, starts_with_header
from fillrank.io.typed_cells import cell_text
from fillrank.runtime.memory import check_memory
from fillrank.table.missing_values import NO_MISSING_VALUES, MissingValues

_INSTALL = 'Run: pip install "fillrank[excel]"'
_DIALECT = Dialect(line_end="\n")
_FEWEST_COLUMNS = 3  # of a table below a title
_HEAD = 40  # rows by which units are recognised
_DELIMITER = ","  # of the text


class SheetText(NamedTuple):
    """A sheet as the text of a table with commas, its name in messages, and notes about it.

    ``rows`` are the cells of the lines of the table, and ``sheet`` is the name of the sheet.
    """

    text: str
    source: str
    notes: tuple[str, ...]
    rows: list[Sequence[Any]]
    sheet: str


def read_sheet(
    content: bytes, name: str, sheet: str | None, missing: MissingValues = NO_MISSING_VALUES
) -> SheetText:
    """Read a sheet by its name, or the first that is not empty.

    Line numbers of the text are the row numbers of the sheet. A row with one of the values ``missing``
    is not taken as units.
    """
    if not find_spec("python_calamine"):
        raise ReadError(
            "spreadsheets require python-calamine, which is not installed",
            place=name,
            advice=_INSTALL,
        )
    check_memory(3 * len(content), "reading a spreadsheet of this size", "Save a part of it.")
    check_spreadsheet_memory(content, name)
    found, rows, names = _find_rows(content, name, sheet)
    filled = [i for i, row in enumerate(rows) if any(map(_has_value, row))]
    titles = _title_rows([rows[i] for i in filled])
    for i in filled[:titles]:
        rows[i] = []
    has_units = _has_units([rows[i] for i in filled[titles:]], missing)
    if has_units:
        rows[filled[titles + 1]] = []
    used = list(_used_columns(rows))
    lines = [_DIALECT.line([cell_text(cell) for cell in row]) for row in used]
    first = next(i for i, row in enumerate(used) if any(map(_has_value, row)))
    cells = [row for row, line in zip(used[first:], lines[first:], strict=True) if line.strip()]
    notes = []
    if len(names) > 1:
        notes.append(f"The sheet {found!r} is read, of {len(names)}.")
    if titles:
        rows_above = "row is" if titles == 1 else "rows are"
        notes.append(f"{titles} {rows_above} taken as a title above the table.")
    if has_units:
        notes.append(f"Row {filled[titles + 1] + 1} is taken as units or further names of columns.")
    return SheetText("".join(lines), f"{name}, sheet {found!r}", tuple(notes), cells, found)


def _find_rows(
    content: bytes, name: str, sheet: str | None
) -> tuple[str, list[list[Any]], list[str]]:
    """The name of the sheet, its rows from the first on, and the names of all sheets."""
    from python_calamine import CalamineWorkbook

    with library_errors(name, "spreadsheet"):
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        names = list(book.sheet_names)
        if sheet is not None and sheet not in names:
            raise ReadError(
                "there is no such sheet",
                place=name,
                value=sheet,
                allowed=f"one of {', '.join(map(repr, names))}",
                advice=("Choose one with ", Setting("sheet"), "."),
            )
        for each in names if sheet is None else [sheet]:
            opened = book.get_sheet_by_name(each)
            if opened.start is not None and opened.height:
                above: list[list[Any]] = [[] for _ in range(opened.start[0])]
                return each, [*above, *map(list, opened.to_python(skip_empty_area=True))], names
    if sheet is None:
        raise ReadError("the file has no sheet with cells", place=name)
    others = [other for other in names if other != sheet]
    advice = [("Choose another with ", Setting("sheet", others[0]), ".")] if others else []
    raise ReadError(f"the sheet {sheet!r} is empty", place=name, advice=[*advice])


def _has_value(cell: Any) -> bool:
    return cell is not None and cell != ""


def _title_rows(rows: Sequence[Sequence[Any]]) -> int:
    """How many of the first rows have a single cell, above a table of several columns."""
    counts = [sum(map(_has_value, row)) for row in rows[:20]]
    if max(counts, default=0) < _FEWEST_COLUMNS:
        return 0
    return next(i for i, count in enumerate(counts) if count > 1)


def _has_units(rows: Sequence[Sequence[Any]], missing: MissingValues) -> bool:
    """Whether the row below the header has units."""
    head = [[cell_text(cell) for cell in row] for row in _used_columns(rows[:_HEAD])]
    if len(head) < 3 or not starts_with_header(head, len(head[0]), _DELIMITER):
        return False
    below, *rest = head[1:]
    return not any(map(missing.has_text, below)) and is_line_of_units(below, rest, _DELIMITER)


def _used_columns(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """The rows without columns that are empty everywhere."""
    width = max(map(len, rows))
    used = [j for j in range(width) if any(j < len(row) and _has_value(row[j]) for row in rows)]
    for row in rows:
        yield [row[j] for j in used] if row else []
