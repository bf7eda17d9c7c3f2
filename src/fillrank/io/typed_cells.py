"""The cells of files whose values have types: spreadsheets and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

from fillrank.io.csv_writer import format_number


class TypedCells(NamedTuple):
    """The cells of a wide table below its header, as they are in the file, and the name of the sheet."""

    rows: Sequence[Sequence[Any]]
    sheet: str | None = None


def cell_text(cell: Any) -> str:
    """A cell as the text that a CSV file of the table would have.

    Examples
    --------
    >>> [cell_text(cell) for cell in (None, True, 5.0, datetime(2020, 1, 2), "tea")]
    ['', 'true', '5', '2020-01-02', 'tea']
    """
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return format_number(cell)
    if isinstance(cell, datetime):
        return cell.isoformat().removesuffix("T00:00:00")
    return cell.isoformat() if isinstance(cell, date) else str(cell)
