"""Results: predicted cells and figures, as files, on a pipe or in a terminal."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from rich.table import Table

import fillrank as fr
from fillrank.cli import output
from fillrank.cli.messages import escape_line, report, stdout
from fillrank.cli.source import STANDARD
from fillrank.cli.titles import NO_TITLES, TableTitles
from fillrank.errors import InputError
from fillrank.io.csv_writer import (
    format_number,
    round_digits,
    significant_digits,
    write_csv,
)
from fillrank.io.dialect import Dialect
from fillrank.storage.atomic_write import write_atomically
from fillrank.table.labels import as_text

ENDINGS = (".csv", ".tsv", ".json", ".parquet")
MOST_LINES_SHOWN = 200
_WITHOUT_MARK = ("utf-8", "utf8", "utf-16-le", "utf-16-be")  # encodings that write no mark


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


def write_cells(
    tables: Iterable[Any], target: Target, values: np.ndarray, titles: TableTitles = NO_TITLES
) -> None:
    """Write tables with the fields row, column and numbers, each before the next is computed.

    Parameters
    ----------
    tables : iterable of data frames or dicts of arrays
    target : Target
    values : ndarray
        The number of digits is taken from these; if there are none, from the first results.
    titles : TableTitles
        Those that are given are written beside the labels.
    """
    if titles.n_given:
        tables = map(titles.add_to, tables)
    if target.format == ".parquet":
        fr.write_parquet(target.path, tables)
        return
    cells = _read_cells(tables, values, 2 + titles.n_given)
    if target.format == "terminal":
        _show(cells)
        return
    with open_target(target.path) as stream:
        if target.format == ".json":
            _write_json(cells, stream)
        else:
            _write_csv(cells, stream, "\t" if target.format == ".tsv" else ",")


class _Cell(NamedTuple):
    """A cell: its labels, with their titles, and rounded numbers."""

    labels: tuple[Any, ...]
    numbers: list[float]


class _Cells(NamedTuple):
    """The names of the fields, of which the first have labels, and the cells as they are computed."""

    fields: list[str]
    n_labels: int
    cells: Iterator[_Cell]


def _read_cells(tables: Iterable[Any], values: np.ndarray, n_labels: int) -> _Cells:
    stream = iter(tables)
    first = next(stream)
    fields = [str(name) for name in iter_cells(first)[0]]
    return _Cells(fields, n_labels, _round_cells(chain([first], stream), values, n_labels))


def _round_cells(tables: Iterable[Any], values: np.ndarray, n_labels: int) -> Iterator[_Cell]:
    digits = significant_digits(values) if values.size else None
    for table in tables:
        fields, lines = iter_cells(table)
        for line in lines:
            if digits is None:
                digits = significant_digits(np.asarray(table[fields[n_labels]]))
            yield _Cell(line[:n_labels], round_digits(line[n_labels:], digits))


def iter_cells(table: Any) -> tuple[Sequence[str], Iterable[tuple[Any, ...]]]:
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
def open_text(path: Path, dialect: Dialect | None = None, encoding: str = "utf-8") -> Iterator[Any]:
    """Open a text file to write; ``-`` is standard output.

    Lines end as they are written. With a dialect, the file has a byte order mark if the dialect has one.
    """
    if path != STANDARD:
        with path.open("w", encoding=encoding, newline="") as file:
            _write_mark(file, dialect, encoding)
            yield file
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=encoding, newline="")
    if dialect is None:
        yield _UnixLines(sys.stdout)
    else:
        _write_mark(sys.stdout, dialect, encoding)
        yield sys.stdout


def _write_mark(file: Any, dialect: Dialect | None, encoding: str) -> None:
    # The encoding utf-16 writes a mark of its own, and so does utf-8-sig.
    if dialect is not None and dialect.has_bom and encoding.lower() in _WITHOUT_MARK:
        file.write("\ufeff")


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
        table.add_column(escape_line(field), justify="left" if k < cells.n_labels else "right")
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
