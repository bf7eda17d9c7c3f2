"""Completed tables as CSV, written block by block."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

from fillrank.cli.source import STANDARD
from fillrank.io.csv_writer import format_number, format_numbers, significant_digits, write_csv
from fillrank.runtime.progress import make_progress
from fillrank.table.frames import unused_name
from fillrank.table.labels import as_text
from fillrank.table.observations import Observations

if TYPE_CHECKING:
    from fillrank.estimators.base import MatrixCompleter

MOST_WIDE_CELLS = 5_000_000
_CELLS_AT_ONCE = 200_000


def is_written_wide(data: Observations) -> bool:
    """Whether the completed table is one with a cell for each entry: not if it came as a long one."""
    return (
        data.origin.layout not in ("long", "triplets") and math.prod(data.shape) <= MOST_WIDE_CELLS
    )


class _PlainLines:
    """Ends lines as programs that read pipes expect them, and not as the CSV standard has it."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(f"{text[:-2]}\n" if text.endswith("\r\n") else text)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A text file to write CSV to; or standard output, for ``-``."""
    if path != STANDARD:
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    yield _PlainLines(sys.stdout)


def write_missing(
    path: Path, model: MatrixCompleter, level: float | None = None, *, show: bool = False
) -> None:
    """Write a line for each missing cell: row, column, value and, with a level, lower and upper."""
    data = model.observations_
    digits, n_missing = significant_digits(data.values), math.prod(data.shape) - len(data)

    def lines(tables: Iterable[Any]) -> Iterator[list[str]]:
        done = 0
        for table in tables:
            for row, column, *numbers in lines_of(table)[1]:
                yield [as_text(row), as_text(column), *format_numbers(numbers, digits)]
                done += 1
            report(done, n_missing, "writing")

    with opened(path) as file, make_progress(show, "cell") as report:
        tables = iter(model.predict_missing(level))
        if (first := next(tables, None)) is not None:
            write_csv(file, lines_of(first)[0], lines(chain([first], tables)))


def lines_of(table: Any) -> tuple[Sequence[str], Iterable[tuple[Any, ...]]]:
    """The names of a table's columns, and its lines; without any data frame library it is a dict."""
    if isinstance(table, dict):
        return list(table), zip(*(column.tolist() for column in table.values()), strict=True)
    frame = nw.from_native(table, eager_only=True)
    return frame.columns, frame.iter_rows()


def write_wide(path: Path, model: MatrixCompleter) -> None:
    """Write all cells, under their names: observed ones as they are, missing ones predicted."""
    data = model.observations_
    digits = significant_digits(data.values)
    columns = [as_text(name) for name in data.column_labels]
    corner = "row" if data.origin.row_field is None else str(data.origin.row_field)
    header = [unused_name(corner, columns), *columns]
    with opened(path) as file:
        write_csv(file, header, _completed_rows(data, model, digits))


def _completed_rows(data: Observations, model: MatrixCompleter, digits: int) -> Iterator[list[str]]:
    n_rows, n_columns = data.shape
    at_once = max(1, _CELLS_AT_ONCE // n_columns)
    for start in range(0, n_rows, at_once):
        names = data.row_labels[start : start + at_once]
        means = model.predict_block(names, data.column_labels)
        cells = [format_numbers(row, digits) for row in means.tolist()]
        stop = start + len(names)
        observed = slice(*data.pointers[[start, stop]])
        for i, j, value in zip(
            data.row_index_of(start, stop) - start,
            data.column_index[observed],
            data.stored_values[observed].tolist(),
            strict=True,
        ):
            cells[i][j] = format_number(value)
        for name, row in zip(names, cells, strict=True):
            yield [as_text(name), *row]
