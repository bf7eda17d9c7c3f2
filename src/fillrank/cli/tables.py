"""Completed tables as CSV, written block by block."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fillrank.data.observations import Observations
from fillrank.data.tables import free_name
from fillrank.run.progress import progress_for

if TYPE_CHECKING:
    from fillrank.estimators.base import MatrixCompleter

MOST_WIDE_CELLS = 5_000_000
_CELLS_AT_ONCE = 200_000
_DIGITS = 6
_MOST_DIGITS = 17  # with these, every double is written exactly


def is_written_wide(data: Observations) -> bool:
    """Whether the completed table is one with a cell for each entry: not if it came as a long one."""
    return (
        data.origin.layout not in ("long", "triplets") and math.prod(data.shape) <= MOST_WIDE_CELLS
    )


def digits_for(values: np.ndarray) -> int:
    """Significant digits for predictions: six, and more where values differ by little of their size.

    Examples
    --------
    >>> digits_for(np.array([1.0, 2.0, 5.0])), digits_for(np.array([1e9, 1e9 + 2]))
    (6, 14)
    """
    size, spread = float(np.abs(values).max()), float(np.ptp(values))
    if spread == 0.0:
        return _DIGITS
    more = math.floor(math.log10(max(size / spread, 1.0)) + 1e-9)
    return min(_DIGITS + more, _MOST_DIGITS)


def write_missing(
    path: Path, model: MatrixCompleter, level: float | None = None, *, show: bool = False
) -> None:
    """Write a line for each missing cell: row, column, value and, with a level, lower and upper."""
    data = model.observations_
    digits, n_missing, done = digits_for(data.values), math.prod(data.shape) - len(data), 0
    with path.open("w", encoding="utf-8", newline="") as file, progress_for(show, "cell") as tell:
        writer = csv.writer(file)
        for number, table in enumerate(model.predict_missing(level)):
            fields, lines = _lines(table)
            if number == 0:
                writer.writerow(fields)
            writer.writerows(
                [_text(row), _text(column), *_rounded(numbers, digits)]
                for row, column, *numbers in lines
            )
            done += len(table[fields[0]])
            tell(done, n_missing, "writing")


def _lines(table: Any) -> tuple[Sequence[str], Iterable[tuple[Any, ...]]]:
    """The names of a table's columns, and its lines; without any data frame library it is a dict."""
    if isinstance(table, dict):
        return list(table), zip(*(column.tolist() for column in table.values()), strict=True)
    frame = nw.from_native(table, eager_only=True)
    return frame.columns, frame.iter_rows()


def write_wide(path: Path, model: MatrixCompleter) -> None:
    """Write all cells, under their names: observed ones as they are, missing ones predicted."""
    data = model.observations_
    digits = digits_for(data.values)
    columns = [_text(name) for name in data.column_labels]
    corner = "row" if data.origin.row_field is None else str(data.origin.row_field)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([free_name(corner, columns), *columns])
        for name, cells in _completed_rows(data, model, digits):
            writer.writerow([name, *cells])


def _completed_rows(
    data: Observations, model: MatrixCompleter, digits: int
) -> Iterator[tuple[str, list[str]]]:
    n_rows, n_columns = data.shape
    at_once = max(1, _CELLS_AT_ONCE // n_columns)
    for start in range(0, n_rows, at_once):
        names = data.row_labels[start : start + at_once]
        means = model.predict_block(names, data.column_labels)
        cells = [list(_rounded(row, digits)) for row in means.tolist()]
        observed = slice(*np.searchsorted(data.row_index, [start, start + len(names)]))
        for i, j, value in zip(
            data.row_index[observed] - start,
            data.column_index[observed],
            data.values[observed].tolist(),
            strict=True,
        ):
            cells[i][j] = _shortest(value)
        yield from zip(map(_text, names), cells, strict=True)


def _text(name: Any) -> str:
    """A name as text; a date alike in all files, whichever library has had it in hand."""
    if isinstance(name, np.datetime64):
        name = name.astype("datetime64[us]").item()
    return name.isoformat().removesuffix("T00:00:00") if isinstance(name, date) else str(name)


def _rounded(values: Iterable[float], digits: int) -> Iterator[str]:
    return (_shortest(float(f"{value:.{digits}g}")) for value in values)


def _shortest(value: float) -> str:
    """The shortest text that reads as this very number: 5 and not 5.0."""
    return repr(value).removesuffix(".0")
