"""Writing .xlsx files: numbers, text, dates and booleans as such, row by row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fillrank.errors import OutputError
from fillrank.io.csv_writer import format_number

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # of a sheet
_MOST_CHARACTERS = 32_767  # of a cell
# Excel has no dates before this year, and loses digits of whole numbers above this size.
_FIRST_YEAR, _LARGEST_WHOLE = 1900, 2**53
_DATE, _DATE_AND_TIME, _TIME, _DURATION = (
    "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss", "hh:mm:ss", "[h]:mm:ss",
)  # fmt: skip


def check_xlsx_writer(path: Path) -> None:
    """Raise an error if the library that writes .xlsx files is not installed."""
    if not find_spec("xlsxwriter"):
        raise OutputError(
            f"{path}: writing .xlsx files requires XlsxWriter, which is not installed",
            advice='Run: pip install "fillrank[excel]"',
        )


def write_xlsx(path: Path, rows: Iterable[Sequence[Any]], sheet: str | None = None) -> None:
    """Write rows of cells to a sheet, each row before the next is requested.

    Parameters
    ----------
    path : Path
    rows : iterable of sequences
        Of numbers, text, booleans, dates and times. None and NaN are empty cells. Text is never a
        formula or a link.
    sheet : str, optional
        The name of the sheet.

    Raises
    ------
    OutputError
        There are more rows, columns or characters than a sheet can have.
    """
    from xlsxwriter import Workbook
    from xlsxwriter.exceptions import FileCreateError, InvalidWorksheetName

    # If a row cannot be computed, the library leaves its temporary files behind.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, path.open("wb") as file:
        book = Workbook(file, {"constant_memory": True, "tmpdir": folder})
        book.use_zip64()
        try:
            page = book.add_worksheet(sheet)
        except InvalidWorksheetName:  # of a file that Excel would not open
            page = book.add_worksheet("Sheet1")
        names = (_DATE, _DATE_AND_TIME, _TIME, _DURATION)
        formats = {name: book.add_format({"num_format": name}) for name in names}
        try:
            for i, row in enumerate(rows):
                _check_size(path, i + 1, len(row))
                for j, value in enumerate(row):
                    _write(page, i, j, value, formats)
            book.close()
        except FileCreateError as error:
            raise error.args[0] from error  # of the system


class _Exact(float):
    """A number that is written with all of its digits, where the library would write 16."""

    def __format__(self, specification: str) -> str:
        return format_number(float(self))


def _write(page: Any, i: int, j: int, value: Any, formats: dict[str, Any]) -> None:
    if value is None or value == "":
        return
    if isinstance(value, bool):
        page.write_boolean(i, j, value)
    elif isinstance(value, (int, float)) and abs(value) <= _LARGEST_WHOLE:
        page.write_number(i, j, _Exact(value))
    elif isinstance(value, float):
        if not math.isnan(value):
            page.write_number(i, j, _Exact(value))
    elif (name := _date_format(value)) is not None:
        page.write_datetime(i, j, value, formats[name])
    else:
        _write_text(page, i, j, str(value))


def _date_format(value: Any) -> str | None:
    """The format of a date or time; None for other values, and for dates that Excel does not have."""
    if isinstance(value, timedelta):
        return _DURATION
    if isinstance(value, time):
        return _TIME
    if not isinstance(value, date) or value.year < _FIRST_YEAR:
        return None
    has_time = isinstance(value, datetime) and value.time() != time()
    return _DATE_AND_TIME if has_time else _DATE


def _write_text(page: Any, i: int, j: int, text: str) -> None:
    if len(text) > _MOST_CHARACTERS:
        raise OutputError(
            f"row {i + 1} has a text of {len(text):,} characters; a cell of a spreadsheet has at most "
            f"{_MOST_CHARACTERS:,}",
            advice="Write another kind of file, such as .csv.",
        )
    page.write_string(i, j, text)


def _check_size(path: Path, n_rows: int, n_columns: int) -> None:
    if n_rows > MOST_ROWS or n_columns > MOST_COLUMNS:
        raise OutputError(
            f"{path}: a sheet has at most {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns, and the "
            "table has more",
            advice="Write another kind of file, such as .csv.",
        )
