"""Answers about cells, as long tables: to a file, to a pipe, or for the eye in a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

import fillrank as fr
from fillrank.cli import output
from fillrank.cli.messages import on_one_line, out, say
from fillrank.cli.source import STANDARD
from fillrank.cli.tables import lines_of, opened
from fillrank.errors import InputError
from fillrank.io.csv_writer import format_number, round_digits, significant_digits, write_csv
from fillrank.storage.atomic_write import write_atomically
from fillrank.table.labels import as_text

ENDINGS = (".csv", ".tsv", ".json", ".parquet")
MOST_SHOWN = 200


class Target(NamedTuple):
    """Where answers go, and in which form: an ending, or "terminal"."""

    path: Path
    form: str

    @property
    def is_file(self) -> bool:
        """Whether it is a file, rather than standard output."""
        return self.path != STANDARD


def target(path: Path | None, as_json: bool, force: bool, inputs: Iterable[Path]) -> Target:
    """Judge where answers are to go, before they are worked out."""
    if path is None or path == STANDARD:
        if as_json:
            return Target(STANDARD, ".json")
        for_eyes = path is None and sys.stdout.isatty()
        return Target(STANDARD, "terminal" if for_eyes else ".csv")
    form = path.suffix.lower()
    if form not in ENDINGS:
        raise InputError(f"{path}: files of answers end in {' '.join(ENDINGS)}; got {form!r}.")
    if as_json and form != ".json":
        raise InputError(f"--json writes JSON, but {path} is to be {form}. Name a .json file.")
    output.check_file(path, force, inputs)
    return Target(path, form)


def write(tables: Iterable[Any], where: Target, values: np.ndarray) -> None:
    """Write tables with the fields row, column and numbers, each before the next is asked for.

    Parameters
    ----------
    tables : iterable of data frames or dicts of arrays
    where : Target
    values : ndarray
        What decides how many digits are told; if it is empty, the first answers do.
    """
    if where.form == ".parquet":
        fr.write_parquet(where.path, tables)
        return
    found = _opened(tables, values)
    if where.form == "terminal":
        _show(found)
        return
    with _stream(where.path) as stream:
        if where.form == ".json":
            _write_json(found, stream)
        else:
            _write_csv(found, stream, "\t" if where.form == ".tsv" else ",")


class _Line(NamedTuple):
    """A cell: its labels, and rounded numbers."""

    names: tuple[Any, Any]
    numbers: list[float]


class _Found(NamedTuple):
    """The names of the fields, and the lines as they come."""

    fields: list[str]
    lines: Iterator[_Line]


def _opened(tables: Iterable[Any], values: np.ndarray) -> _Found:
    stream = iter(tables)
    first = next(stream)
    fields = [str(name) for name in lines_of(first)[0]]
    return _Found(fields, _lines(chain([first], stream), values))


def _lines(tables: Iterable[Any], values: np.ndarray) -> Iterator[_Line]:
    digits = significant_digits(values) if values.size else None
    for table in tables:
        fields, lines = lines_of(table)
        for row, column, *numbers in lines:
            if digits is None:
                digits = significant_digits(np.asarray(table[fields[2]]))
            yield _Line((row, column), round_digits(numbers, digits))


@contextmanager
def _stream(path: Path) -> Iterator[Any]:
    if path == STANDARD:
        with opened(path) as stream:
            yield stream
        return
    with write_atomically(path) as temporary, opened(temporary) as stream:
        yield stream


def _write_csv(found: _Found, stream: Any, delimiter: str) -> None:
    lines = ([*map(as_text, line.names), *map(format_number, line.numbers)] for line in found.lines)
    write_csv(stream, found.fields, lines, delimiter)


def _write_json(found: _Found, stream: Any) -> None:
    """A list of objects, one on each line."""
    before = "["
    for line in found.lines:
        cells = [*map(_plain, line.names), *line.numbers]
        text = json.dumps(dict(zip(found.fields, cells, strict=True)), ensure_ascii=_for_eyes())
        stream.write(f"{before}{text}")
        before = ",\n "
    stream.write("[]\n" if before == "[" else "]\n")


def _for_eyes() -> bool:
    """Whether a terminal would obey what is in a name."""
    return sys.stdout.isatty()


def _plain(name: Any) -> Any:
    """A name as JSON can hold it: a number stays one."""
    if isinstance(name, np.generic) and not isinstance(name, np.datetime64):
        name = name.item()
    return name if isinstance(name, (str, int, float)) else as_text(name)


def _show(found: _Found) -> None:
    """A table for the eye, of the first lines."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for k, field in enumerate(found.fields):
        table.add_column(on_one_line(field), justify="left" if k < 2 else "right")
    for line in islice(found.lines, MOST_SHOWN):
        names = (on_one_line(as_text(name)) for name in line.names)
        table.add_row(*names, *map(format_number, line.numbers))
    out().print(table)
    if next(found.lines, None) is not None:
        say(f"The first {MOST_SHOWN} lines are shown. --output FILE, or a pipe, gets all.")


def show_json(content: Any) -> None:
    """Print what a program will read: nothing else goes to standard output then."""
    from fillrank.cli.summary import as_json

    with opened(STANDARD) as stream:
        stream.write(as_json(content, ascii_only=_for_eyes()) + "\n")
