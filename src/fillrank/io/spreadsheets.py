"""Spreadsheets (.xlsx, .xls, .ods) as text tables, so that text becomes values in one place."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import IO, Any, NamedTuple

from fillrank.errors import ReadError, Setting
from fillrank.io.dialect import Dialect
from fillrank.io.files import library_errors
from fillrank.io.typed_cells import cell_text
from fillrank.runtime.memory import check_memory

_INSTALL = 'Run: pip install "fillrank[excel]"'
_DIALECT = Dialect(line_end="\n")
_CHUNK = 2**20
_BYTES_PER_CELL = 100  # of a cell as an object of Python, and as text
_CELL = re.compile(rb'\br="([A-Z]{1,3})([0-9]{1,7})"')
_REPEATED = re.compile(rb'number-(?:rows|columns)-repeated="([0-9]{1,9})"')
_LONGEST = 64  # bytes of such an attribute, which a chunk may cut
_FEWEST_COLUMNS = 3  # of a table below a title


class SheetText(NamedTuple):
    """A sheet as the text of a table with commas, its name in messages, and notes about it.

    ``rows`` are the cells of the lines of the table, and ``sheet`` is the name of the sheet.
    """

    text: str
    source: str
    notes: tuple[str, ...]
    rows: list[Sequence[Any]]
    sheet: str


def read_sheet(content: bytes, name: str, sheet: str | None) -> SheetText:
    """Read a sheet by its name, or the first that is not empty.

    Line numbers of the text are the row numbers of the sheet.
    """
    if not find_spec("python_calamine"):
        raise ReadError(
            "spreadsheets require python-calamine, which is not installed",
            place=name,
            advice=_INSTALL,
        )
    check_memory(3 * len(content), "reading a spreadsheet of this size", "Save a part of it.")
    _check_cells(content, name)
    found, rows, names = _find_rows(content, name, sheet)
    filled = [i for i, row in enumerate(rows) if any(map(_has_value, row))]
    titles = _title_rows([rows[i] for i in filled])
    for i in filled[:titles]:
        rows[i] = []
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


def _used_columns(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """The rows without columns that are empty everywhere."""
    width = max(map(len, rows))
    used = [j for j in range(width) if any(j < len(row) and _has_value(row[j]) for row in rows)]
    for row in rows:
        yield [row[j] for j in used] if row else []


# A file of a few bytes may declare a cell so far away that the empty cells before it fill the memory.


def _check_cells(content: bytes, name: str) -> None:
    """Raise an error if the sheets of a file do not fit in memory; .xls has no more than 65,536 rows."""
    if not content.startswith(b"PK"):
        return
    with library_errors(name, "spreadsheet"), zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            is_sheet = member.filename.startswith("xl/worksheets/")
            if is_sheet or member.filename == "content.xml":
                with archive.open(member) as file:
                    _check_sheet(file, name)


def _check_sheet(file: IO[bytes], name: str) -> None:
    last_row = last_column = repeated = size = 0
    tail = b""
    while chunk := file.read(_CHUNK):
        size += len(chunk)
        block = tail + chunk
        for letters, digits in _CELL.findall(block):
            last_row, last_column = max(last_row, int(digits)), max(last_column, _column(letters))
        # The cells of rows that are repeated at the end of a sheet are mostly empty, and left out.
        repeated += sum(int(count) for count in _REPEATED.findall(block) if int(count) < 2**14)
        tail = block[-_LONGEST:]
        n_cells = max(last_row * last_column, repeated)
        what = f"{name}: a sheet of {n_cells:,} cells"
        check_memory(_BYTES_PER_CELL * n_cells + 4 * size, what, "Delete cells far from the table.")


def _column(letters: bytes) -> int:
    """The number of a column from its letters: 27 for AA."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number
