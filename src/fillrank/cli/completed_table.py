"""The completed table as a file, written as the table that came in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import fillrank as fr
from fillrank.cli.column_decimals import with_decimals
from fillrank.cli.results import iter_cells, open_text
from fillrank.cli.source import STANDARD
from fillrank.cli.typed_lines import typed_lines
from fillrank.io.csv_writer import format_number, format_numbers, significant_digits
from fillrank.io.dialect import Dialect
from fillrank.io.json_tables import write_json, write_json_lines
from fillrank.io.read import JSON_ENDINGS
from fillrank.io.text_layout import ReadTable, WideText
from fillrank.io.typed_cells import JsonLayout, TypedCells
from fillrank.io.xlsx_writer import write_xlsx
from fillrank.runtime.progress import make_progress
from fillrank.table.column_types import NUMBER, are_numbers
from fillrank.table.frames import to_wide, unused_name
from fillrank.table.labels import as_text, is_missing
from fillrank.table.number_text import PLAIN_FORMAT, NumberFormat, NumberStyle, apply_format
from fillrank.table.observations import Observations
from fillrank.table.restore import day_to_date
from fillrank.table.wide_frames import PANDAS_STORED_INDEX

if TYPE_CHECKING:
    from fillrank.completion import Completion
    from fillrank.estimators.base import Estimator

MOST_WIDE_CELLS = 5_000_000
_BLOCK_CELLS = 200_000
TYPED_ENDINGS = (*JSON_ENDINGS, ".xlsx")  # of files whose values have types


class Written(NamedTuple):
    """How completed tables are written: as CSV, or as the table that was read."""

    dialect: Dialect = Dialect()
    text: WideText | None = None
    encoding: str = "utf-8"
    ending: str = ".csv"
    cells: TypedCells | None = None
    value_format: NumberFormat = PLAIN_FORMAT

    @classmethod
    def like(cls, table: ReadTable, ending: str) -> Written:
        """As a table that was read, in a file with this ending."""
        dialect = table.dialect or Dialect()
        if ending not in TYPED_ENDINGS:
            text, encoding = table.text, table.encoding
            return cls(dialect, text, encoding, ending, value_format=table.value_format)
        written = cls(dialect._replace(decimal="."), table.text, "utf-8", ending, table.cells)
        # The text of a number is no number: without cells that have types, values are written instead.
        return written.plain() if table.cells is None else written

    def plain(self) -> Written:
        """The same without what is known of the cells of a table, for one with other rows or columns."""
        dialect = self.dialect._replace(quoted=(), quoted_header=(), above="", below="")
        return self._replace(text=None, cells=None, dialect=dialect)


def is_written_wide(data: Observations) -> bool:
    """Whether the completed table is written as a wide one: not if it came as a long one."""
    return (
        data.origin.layout not in ("long", "triplets") and math.prod(data.shape) <= MOST_WIDE_CELLS
    )


def write_missing(
    path: Path,
    model: Estimator | Completion,
    level: float | None = None,
    written: Written = Written(),  # noqa: B008
    *,
    show: bool = False,
) -> None:
    """Write each missing cell on a line: row, column, value and, with a level, lower and upper.

    Only without a level, values have the unit that those of a long table are written with.
    """
    data = model.observations_
    digits, n_missing = significant_digits(data.values), math.prod(data.shape) - len(data)
    dialect = written.dialect._replace(quoted_header=(), quoted=(), below="")
    if level is not None:  # these are intervals, not the completed table
        dialect = dialect._replace(above="")
    value_format = written.value_format if level is None else PLAIN_FORMAT

    def format_value(text: str) -> str:
        if value_format == PLAIN_FORMAT:
            return dialect.number(text)
        return apply_format(text, value_format)

    def format_lines(tables: Iterable[Any]) -> Iterator[list[str]]:
        done = 0
        for table in tables:
            for row, column, *numbers in iter_cells(table)[1]:
                texts = map(format_value, format_numbers(numbers, digits))
                yield [as_text(row), as_text(column), *texts]
                done += 1
            report_progress(done, n_missing, "writing")

    tables = iter(model.predict_missing(level))
    first = next(tables, None)
    names = ["row", "column", "value", *([] if level is None else ["lower", "upper"])]
    with (
        open_text(path, dialect, written.encoding) as file,
        make_progress(show, "cell") as report_progress,
    ):
        file.write(dialect.top(names if first is None else iter_cells(first)[0]))
        if first is not None:
            file.writelines(dialect.body(format_lines(chain([first], tables))))


def write_wide(path: Path, model: Estimator | Completion, written: Written) -> None:
    """Write the completed table: observed cells as they are, missing ones predicted.

    The columns are in the order of the table; those that were not fitted are as they were. The kind of
    file is that of the table; on standard output, Parquet and spreadsheets are written as CSV.
    """
    data = model.observations_
    if written.ending == ".parquet" and path != STANDARD:
        fr.write_parquet(path, to_wide(data, model.completion_.predict_table()))
        return
    names, lines, at = _completed_lines(model, written)
    if written.ending == ".xlsx" and path != STANDARD:
        typed = typed_lines(lines, data, at, written.cells)
        header = [] if names is None else [names]
        write_xlsx(path, chain(header, typed), written.cells and written.cells.sheet)
        return
    with open_text(path, written.dialect, written.encoding) as file:
        if written.ending in JSON_ENDINGS:
            typed = typed_lines(lines, data, at, written.cells)
            if written.ending == ".json":
                layout = JsonLayout() if written.cells is None else written.cells.layout
                write_json(file, names, typed, layout)
            else:
                write_json_lines(file, names, typed)
            return
        file.write(written.dialect.top(names))
        file.writelines(written.dialect.body(lines))


# Lines of cells.


class _Lines(NamedTuple):
    """The names of the columns, None without a header, and the lines below them.

    ``at`` is the position of each fitted column in a line.
    """

    names: list[str] | None
    lines: Iterator[list[str]]
    at: list[int]


def _completed_lines(model: Estimator | Completion, written: Written) -> _Lines:
    data = model.observations_
    if written.text is not None:
        table, formats = written.text
        origin = data.origin
        others = {column.position for column in origin.passive}
        if _has_label_column(data, len(table.names)):
            others.add(origin.label_position)
        at = [j for j in range(len(table.names)) if j not in others]
        lines = (fields for _, fields in table.body())
        plain = NumberFormat(NumberStyle(written.dialect.decimal))
        known = [plain if each == PLAIN_FORMAT else each for each in formats]
        if model.completion_.rounds:
            cells = ([fields[k] for k in at] for _, fields in table.body())
            known = with_decimals(known, cells, data)
        return _Lines(table.header(), _fill(lines, model, at, known, keep=True), at)
    columns = [as_text(label) for label in data.column_labels]
    beside = _other_columns(data, columns)
    at = _positions(len(columns), [column.position for column in beside])
    header = insert_cells(columns, [(column.position, column.name) for column in beside])
    empty = [""] * len(columns)
    lines = (
        insert_cells(empty, [(column.position, column.cells[i]) for column in beside])
        for i in range(data.shape[0])
    )
    plain = NumberFormat(NumberStyle(written.dialect.decimal))
    return _Lines(header, _fill(lines, model, at, (plain,) * len(columns), keep=False), at)


def _has_label_column(data: Observations, n_columns: int) -> bool:
    return data.shape[1] + len(data.origin.passive) < n_columns


def _positions(n_columns: int, others: Sequence[int]) -> list[int]:
    """The positions of the fitted columns in a line that also has others."""
    return [j for j in range(n_columns + len(others)) if j not in others]


def _fill(
    lines: Iterator[list[str]],
    model: Estimator | Completion,
    at: Sequence[int],
    formats: Sequence[NumberFormat],
    keep: bool,
) -> Iterator[list[str]]:
    """Put predictions into lines; with ``keep`` their observed cells stay as they are written."""
    data = model.observations_
    writers = CellFormats(data, formats)
    for means, is_observed, values in _blocks(data, model):
        predicted = writers.predicted(means)
        for i, cells in enumerate(predicted):
            line = list(next(lines))
            for j, position in enumerate(at):
                if not is_observed[i, j]:
                    line[position] = cells[j]
                elif not keep:
                    line[position] = writers.observed(j, values[i, j])
            yield line


class _Block(NamedTuple):
    """Rows of the completed table: predictions, and the observed values among them."""

    means: np.ndarray
    is_observed: np.ndarray
    values: np.ndarray


def _blocks(data: Observations, model: Estimator | Completion) -> Iterator[_Block]:
    """The rows of the completed table; values that are known as limits count as predictions."""
    n_rows, n_columns = data.shape
    block = max(1, _BLOCK_CELLS // n_columns)
    within = np.full(data.n_entries, np.nan)
    at, values = model.completion_.predict_intervals_of_fit()
    within[at] = values
    for start in range(0, n_rows, block):
        labels = data.row_labels[start : start + block]
        means = model.predict_block(labels, data.column_labels)
        means = model.completion_.round_whole(means, np.arange(n_columns))
        stop = start + len(labels)
        entries = slice(*data.pointers[[start, stop]])
        rows, columns = data.row_index_of(start, stop) - start, data.column_index[entries]
        in_interval = ~np.isnan(within[entries])
        means[rows[in_interval], columns[in_interval]] = within[entries][in_interval]
        is_exact = np.ones(len(rows), bool) if data.cells is None else data.cells[entries] < 0
        is_observed = np.zeros(means.shape, dtype=bool)
        is_observed[rows[is_exact], columns[is_exact]] = True
        observed = np.full(means.shape, np.nan)
        observed[rows, columns] = data.stored_values[entries]
        yield _Block(means, is_observed, observed)


class CellFormats:
    """How the cells of each column are written: numbers, the user's levels, or dates."""

    def __init__(self, data: Observations, formats: Sequence[NumberFormat]):
        self._types = data.column_types or (NUMBER,) * data.shape[1]
        is_number = np.array([are_numbers([kind]) for kind in self._types])
        values = data.values[is_number[data.column_index]]
        self._digits = significant_digits(values if values.size else data.values)
        self._other = np.flatnonzero(~is_number).tolist()
        self._formats = [each if is_number[j] else PLAIN_FORMAT for j, each in enumerate(formats)]
        self._levels = [[as_text(level) for level in kind.levels] for kind in self._types]

    def predicted(self, means: np.ndarray) -> list[list[str]]:
        """The cells of a block of predictions."""
        cells = [format_numbers(row, self._digits) for row in means.tolist()]
        for j in self._other:
            for row, value in zip(cells, means[:, j].tolist(), strict=True):
                row[j] = self.observed(j, value)
        for j, each in enumerate(self._formats):
            if each != PLAIN_FORMAT:
                for row, value in zip(cells, means[:, j].tolist(), strict=True):
                    row[j] = apply_format(each.fixed(value) or row[j], each)
        return cells

    def observed(self, column: int, value: float) -> str:
        """An observed cell."""
        kind, levels = self._types[column], self._levels[column]
        if are_numbers([kind]) or math.isnan(value):
            return apply_format(format_number(float(value)), self._formats[column])
        if kind.values == "datetime":
            return as_text(day_to_date(value))
        return levels[min(max(round(value), 0), len(levels) - 1)]


class OtherColumn(NamedTuple):
    """A column beside those that were fitted: its position in the table, its name and its cells."""

    position: int
    name: str
    cells: Sequence[str]


def _other_columns(data: Observations, fitted: Sequence[str]) -> list[OtherColumn]:
    """The row labels, and the columns that were not fitted, in the order of the table."""
    origin = data.origin
    has_name = origin.row_field is not None and origin.row_field != PANDAS_STORED_INDEX
    corner = unused_name(str(origin.row_field) if has_name else "row", fitted)
    position = origin.label_position if has_name else 0
    labels = OtherColumn(position, corner, [as_text(each) for each in data.row_labels])
    # Without a column of labels in the table, they come before all of its columns.
    shift = int(not has_name or origin.rows_in_index)
    others = [
        OtherColumn(column.position + shift, as_text(column.label), cell_texts(column.values))
        for column in origin.passive
    ]
    return sorted([labels, *others])


def cell_texts(values: Any) -> list[str]:
    """The cells of a column of a data frame, or of a file, as text."""
    cells = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    return ["" if is_missing(value) else as_text(value) for value in cells]


def insert_cells(cells: list[str], others: Iterable[tuple[int, str]]) -> list[str]:
    """A line with the cells of other columns, at ascending positions."""
    line = list(cells)
    for position, cell in others:
        line.insert(position, cell)
    return line
