"""Results: completed tables, predicted cells and figures, as files, on a pipe or in a terminal."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
from rich.table import Table

import fillrank as fr
from fillrank.cli import output
from fillrank.cli.messages import escape_line, report, stdout
from fillrank.cli.source import STANDARD
from fillrank.errors import InputError
from fillrank.io.csv_writer import (
    format_number,
    format_numbers,
    round_digits,
    significant_digits,
    write_csv,
)
from fillrank.runtime.progress import make_progress
from fillrank.storage.atomic_write import write_atomically
from fillrank.table.column_types import NUMBER, are_numbers
from fillrank.table.frames import put_observed, unused_name
from fillrank.table.labels import as_text, is_missing
from fillrank.table.mids import (
    ROW_FIELD,
    TABLE_FIELD,
    original_matrix,
    passive_columns,
)
from fillrank.table.observations import Observations
from fillrank.table.restore import day_to_date

if TYPE_CHECKING:
    from fillrank.completion import Completion
    from fillrank.estimators.base import Estimator

ENDINGS = (".csv", ".tsv", ".json", ".parquet")
MOST_WIDE_CELLS = 5_000_000
MOST_LINES_SHOWN = 200
_BLOCK_CELLS = 200_000
_MISSING_IN_R = "NA"


class Target(NamedTuple):
    """Where results go, and their format: an ending, or "terminal"."""

    path: Path
    format: str

    @property
    def is_file(self) -> bool:
        """Whether it is a file, rather than standard output."""
        return self.path != STANDARD


def check_target(path: Path | None, as_json: bool, force: bool, inputs: Iterable[Path]) -> Target:
    """Check the destination of results before they are computed."""
    if path is None or path == STANDARD:
        if as_json:
            return Target(STANDARD, ".json")
        is_terminal = path is None and sys.stdout.isatty()
        return Target(STANDARD, "terminal" if is_terminal else ".csv")
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"{path}: result files end in {' '.join(ENDINGS)}; got {ending!r}.")
    if as_json and ending != ".json":
        raise InputError(f"--json writes JSON, but {path} ends in {ending}. Use a .json file.")
    output.check_file(path, force, inputs)
    return Target(path, ending)


def write_cells(tables: Iterable[Any], target: Target, values: np.ndarray) -> None:
    """Write tables with the fields row, column and numbers, each before the next is computed.

    Parameters
    ----------
    tables : iterable of data frames or dicts of arrays
    target : Target
    values : ndarray
        The number of digits is taken from these; if there are none, from the first results.
    """
    if target.format == ".parquet":
        fr.write_parquet(target.path, tables)
        return
    cells = _read_cells(tables, values)
    if target.format == "terminal":
        _show(cells)
        return
    with open_target(target.path) as stream:
        if target.format == ".json":
            _write_json(cells, stream)
        else:
            _write_csv(cells, stream, "\t" if target.format == ".tsv" else ",")


class _Cell(NamedTuple):
    """A cell: its labels, and rounded numbers."""

    labels: tuple[Any, Any]
    numbers: list[float]


class _Cells(NamedTuple):
    """The names of the fields, and the cells as they are computed."""

    fields: list[str]
    cells: Iterator[_Cell]


def _read_cells(tables: Iterable[Any], values: np.ndarray) -> _Cells:
    stream = iter(tables)
    first = next(stream)
    fields = [str(name) for name in _lines(first)[0]]
    return _Cells(fields, _round_cells(chain([first], stream), values))


def _round_cells(tables: Iterable[Any], values: np.ndarray) -> Iterator[_Cell]:
    digits = significant_digits(values) if values.size else None
    for table in tables:
        fields, lines = _lines(table)
        for row, column, *numbers in lines:
            if digits is None:
                digits = significant_digits(np.asarray(table[fields[2]]))
            yield _Cell((row, column), round_digits(numbers, digits))


def _lines(table: Any) -> tuple[Sequence[str], Iterable[tuple[Any, ...]]]:
    """The fields of a table and its lines; without a data frame library it is a dict."""
    if isinstance(table, dict):
        return list(table), zip(*(column.tolist() for column in table.values()), strict=True)
    frame = nw.from_native(table, eager_only=True)
    return frame.columns, frame.iter_rows()


class _UnixLines:
    """Ends lines as readers of pipes expect, instead of as the CSV standard does."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(f"{text[:-2]}\n" if text.endswith("\r\n") else text)


@contextmanager
def open_text(path: Path) -> Iterator[Any]:
    """Open a text file to write; ``-`` is standard output."""
    if path != STANDARD:
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    yield _UnixLines(sys.stdout)


@contextmanager
def open_target(path: Path) -> Iterator[Any]:
    """Open a text file that gets its name only once it is complete; ``-`` is standard output."""
    if path == STANDARD:
        with open_text(path) as stream:
            yield stream
        return
    with write_atomically(path) as temporary, open_text(temporary) as stream:
        yield stream


def _write_csv(cells: _Cells, stream: Any, delimiter: str) -> None:
    lines = (
        [*map(as_text, cell.labels), *map(format_number, cell.numbers)] for cell in cells.cells
    )
    write_csv(stream, cells.fields, lines, delimiter)


def _write_json(cells: _Cells, stream: Any) -> None:
    """Write a list of objects, one per line."""
    before = "["
    for cell in cells.cells:
        values = [*map(json_label, cell.labels), *map(_replace_nonfinite, cell.numbers)]
        text = json.dumps(
            dict(zip(cells.fields, values, strict=True)), ensure_ascii=sys.stdout.isatty()
        )
        stream.write(f"{before}{text}")
        before = ",\n "
    stream.write("[]\n" if before == "[" else "]\n")


def json_label(label: Any) -> Any:
    """A label as JSON can represent it: a number stays one."""
    if isinstance(label, np.generic) and not isinstance(label, np.datetime64):
        label = label.item()
    return label if isinstance(label, (str, int, float)) else as_text(label)


def _show(cells: _Cells) -> None:
    """Print the first lines as a table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for k, field in enumerate(cells.fields):
        table.add_column(escape_line(field), justify="left" if k < 2 else "right")
    for cell in islice(cells.cells, MOST_LINES_SHOWN):
        labels = (escape_line(as_text(label)) for label in cell.labels)
        table.add_row(*labels, *map(format_number, cell.numbers))
    stdout().print(table)
    if next(cells.cells, None) is not None:
        report(
            f"Only the first {MOST_LINES_SHOWN} lines are shown. Use --output FILE, or a pipe, for all."
        )


def as_json(content: Any, ascii_only: bool = False) -> str:
    """Serialize to JSON, with null for NaN and infinity, which JSON does not have."""
    finite = _replace_nonfinite(content)
    return json.dumps(finite, indent=2, ensure_ascii=ascii_only, allow_nan=False)


def _replace_nonfinite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _replace_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_nonfinite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def show_json(content: Any) -> None:
    """Print JSON, and nothing else, to standard output."""
    with open_text(STANDARD) as stream:
        # A terminal would execute control characters in labels.
        stream.write(as_json(content, ascii_only=sys.stdout.isatty()) + "\n")


def is_written_wide(data: Observations) -> bool:
    """Whether the completed table is written as a wide one: not if it came as a long one."""
    return (
        data.origin.layout not in ("long", "triplets") and math.prod(data.shape) <= MOST_WIDE_CELLS
    )


def write_missing(
    path: Path, model: Estimator | Completion, level: float | None = None, *, show: bool = False
) -> None:
    """Write each missing cell on a line: row, column, value and, with a level, lower and upper."""
    data = model.observations_
    digits, n_missing = significant_digits(data.values), math.prod(data.shape) - len(data)

    def format_lines(tables: Iterable[Any]) -> Iterator[list[str]]:
        done = 0
        for table in tables:
            for row, column, *numbers in _lines(table)[1]:
                yield [as_text(row), as_text(column), *format_numbers(numbers, digits)]
                done += 1
            report_progress(done, n_missing, "writing")

    with open_text(path) as file, make_progress(show, "cell") as report_progress:
        tables = iter(model.predict_missing(level))
        if (first := next(tables, None)) is not None:
            write_csv(file, _lines(first)[0], format_lines(chain([first], tables)))


def write_wide(path: Path, model: Estimator | Completion) -> None:
    """Write the completed table: observed cells as they are, missing ones predicted.

    The columns are in the order of the table; those that were not fitted are as they were.
    """
    data = model.observations_
    columns = [as_text(label) for label in data.column_labels]
    corner = "row" if data.origin.row_field is None else str(data.origin.row_field)
    others = _other_columns(data, unused_name(corner, columns))
    with open_text(path) as file:
        header = _insert(columns, [(position, name) for position, name, _ in others])
        write_csv(file, header, _completed_rows(data, model, others))


def write_imputations(path: Path, model: Estimator | Completion, n: int, seed: int) -> None:
    """Write the table and completed ones, in the long layout of R's package mice.

    Missing values are NA: R would take an empty cell of a column of text for a value.
    """
    completion = model.completion_
    data = completion.observations
    completion.check_table_memory(math.prod(data.shape), "Use a smaller table.")
    columns = [as_text(label) for label in data.column_labels]
    others = sorted(
        _OtherColumn(position, as_text(column.label), _cell_texts(column.values))
        for position, column in passive_columns(data.origin)
    )
    header = _insert(columns, [(position, name) for position, name, _ in others])
    with open_text(path) as file:
        lines = _imputed_rows(data, completion.sample_matrices(n, seed), others)
        write_csv(file, [TABLE_FIELD, ROW_FIELD, *header], lines)


def _imputed_rows(
    data: Observations, drawn: Iterable[np.ndarray], others: Sequence[_OtherColumn]
) -> Iterator[list[str]]:
    formats = _Formats(data)
    is_exact = ~np.isnan(original_matrix(data))
    labels = [as_text(label) for label in data.row_labels]
    for number, matrix in enumerate(chain([original_matrix(data)], drawn)):
        matrix = put_observed(data, matrix) if number else matrix
        cells = formats.predicted(matrix)
        for i, j in np.argwhere(is_exact).tolist():
            cells[i][j] = formats.observed(j, float(matrix[i, j]))
        for i, row in enumerate(cells):
            line = _insert(row, [(other.position, other.cells[i]) for other in others])
            yield [str(number), labels[i], *(cell or _MISSING_IN_R for cell in line)]


class _OtherColumn(NamedTuple):
    """A column beside those that were fitted: its position in the table, its name and its cells."""

    position: int
    name: str
    cells: Sequence[str]


def _other_columns(data: Observations, corner: str) -> list[_OtherColumn]:
    """The row labels, and the columns that were not fitted, in the order of the table."""
    origin = data.origin
    labels = _OtherColumn(
        origin.label_position, corner, [as_text(each) for each in data.row_labels]
    )
    # Without a column of labels in the table, they come before all of its columns.
    shift = int(origin.row_field is None or origin.rows_in_index)
    others = [
        _OtherColumn(column.position + shift, as_text(column.label), _cell_texts(column.values))
        for column in origin.passive
    ]
    return sorted([labels, *others])


def _cell_texts(values: Any) -> list[str]:
    """The cells of a column of a data frame, or of a file, as text."""
    cells = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    return ["" if is_missing(value) else as_text(value) for value in cells]


def _insert(cells: list[str], others: Iterable[tuple[int, str]]) -> list[str]:
    """A line with the cells of other columns, at ascending positions."""
    line = list(cells)
    for position, cell in others:
        line.insert(position, cell)
    return line


def _completed_rows(
    data: Observations, model: Estimator | Completion, others: Sequence[_OtherColumn]
) -> Iterator[list[str]]:
    n_rows, n_columns = data.shape
    block = max(1, _BLOCK_CELLS // n_columns)
    formats = _Formats(data)
    within = np.full(data.n_entries, np.nan)
    at, values = model.completion_.predict_intervals_of_fit()
    within[at] = values
    for start in range(0, n_rows, block):
        labels = data.row_labels[start : start + block]
        means = model.predict_block(labels, data.column_labels)
        means = model.completion_.round_whole(means, np.arange(n_columns))
        stop = start + len(labels)
        observed = slice(*data.pointers[[start, stop]])
        rows, columns = data.row_index_of(start, stop) - start, data.column_index[observed]
        in_interval = ~np.isnan(within[observed])
        means[rows[in_interval], columns[in_interval]] = within[observed][in_interval]
        cells = formats.predicted(means)
        for i, j, value, cell in zip(
            rows,
            columns,
            data.stored_values[observed].tolist(),
            np.full(len(rows), -1) if data.cells is None else data.cells[observed],
            strict=True,
        ):
            if cell < 0:
                cells[i][j] = formats.observed(j, value)
        for i, row in enumerate(cells):
            yield _insert(row, [(column.position, column.cells[start + i]) for column in others])


class _Formats:
    """How the cells of each column are written: numbers, the user's levels, or dates."""

    def __init__(self, data: Observations):
        self._types = data.column_types or (NUMBER,) * data.shape[1]
        is_number = np.array([are_numbers([kind]) for kind in self._types])
        values = data.values[is_number[data.column_index]]
        self._digits = significant_digits(values if values.size else data.values)
        self._other = np.flatnonzero(~is_number).tolist()
        self._levels = [[as_text(level) for level in kind.levels] for kind in self._types]

    def predicted(self, means: np.ndarray) -> list[list[str]]:
        """The cells of a block of predictions."""
        cells = [format_numbers(row, self._digits) for row in means.tolist()]
        for j in self._other:
            for row, value in zip(cells, means[:, j].tolist(), strict=True):
                row[j] = self.observed(j, value)
        return cells

    def observed(self, column: int, value: float) -> str:
        """An observed cell."""
        kind, levels = self._types[column], self._levels[column]
        if are_numbers([kind]) or math.isnan(value):
            return format_number(value)
        if kind.values == "datetime":
            return as_text(day_to_date(value))
        return levels[min(max(round(value), 0), len(levels) - 1)]
