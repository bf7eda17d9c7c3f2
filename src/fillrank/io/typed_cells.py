"""The cells of files whose values have types: spreadsheets and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

from fillrank.io.csv_writer import format_number


class JsonLayout(NamedTuple):
    """How a JSON file has its table.

    Attributes
    ----------
    kind : {"records", "columns", "cells", "split"}
        A list of objects or lists, an object of columns that are lists, one of columns that are objects
        of cells by row label, or an object with columns, index and data.
    names : list or None
        The columns of "split", as they are in the file.
    numbers : list or None
        The row labels that are not a column of the table because they are 0, 1, 2, ...
    """

    kind: Literal["records", "columns", "cells", "split"] = "records"
    names: list[Any] | None = None
    numbers: list[Any] | None = None


class TypedCells(NamedTuple):
    """The cells of a wide table below its header, as they are in the file.

    ``sheet`` is the name of the sheet of a spreadsheet, and ``layout`` that of a JSON file.
    """

    rows: Sequence[Sequence[Any]]
    sheet: str | None = None
    layout: JsonLayout = JsonLayout()


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
