"""The table that a verb works on: where it is, how to read it, and what was read."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fillrank as fr
from fillrank.cli.messages import escape, say
from fillrank.cli.options import FormatName
from fillrank.errors import FileLocation, FillrankError, InputError, ReadError
from fillrank.io.files import read_bytes
from fillrank.io.read import TEXT_ENDINGS
from fillrank.runtime.memory import format_bytes
from fillrank.table.labels import format_label
from fillrank.table.layout import Layout
from fillrank.table.observations import Observations
from fillrank.table.triplets import Duplicates

_LONGEST = 40
_LARGE = 20_000_000  # bytes that take some seconds to read
_NEAR_THE_TOP = 5
STANDARD = Path("-")  # standard input, or output
ENDINGS = (*TEXT_ENDINGS, ".parquet", ".mtx", ".mm", ".npy", ".npz", ".gz")


class Source(NamedTuple):
    """A table and how it is to be understood; the options of the verbs explain the fields."""

    table: Path
    row: str | None = None
    column: str | None = None
    value: str | None = None
    layout: Layout = "auto"
    duplicates: Duplicates = "error"
    format: FormatName | None = None
    skip: int = 0
    encoding: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the file can be read as it is."""
        is_named = self.table != STANDARD and self.format is None
        return is_named and not self.skip and self.encoding is None

    @property
    def ending(self) -> str:
        """What kind of file it is, without .gz if it is text.

        Examples
        --------
        >>> Source(Path("data/ratings.tsv.gz")).ending, Source(Path("-")).ending
        ('.tsv', '.csv')
        """
        if self.format is not None:
            return f".{self.format}"
        if self.table == STANDARD:
            return ".csv"
        path = self.table
        return (Path(path.stem) if path.suffix.lower() == ".gz" else path).suffix.lower()

    @property
    def is_text(self) -> bool:
        """Whether the file is one of lines."""
        return self.ending in TEXT_ENDINGS

    @property
    def name(self) -> str:
        """What to call it."""
        return "standard input" if self.table == STANDARD else str(self.table)

    @property
    def stem(self) -> str:
        """What to name files after.

        Examples
        --------
        >>> Source(Path("data/ratings.csv.gz")).stem, Source(Path("-")).stem
        ('ratings', 'stdin')
        """
        if self.table == STANDARD:
            return "stdin"
        table = self.table.with_suffix("") if self.table.suffix.lower() == ".gz" else self.table
        return table.stem


def is_table(path: Path) -> bool:
    """Whether a path is that of a table, by its ending, rather than that of a model."""
    return path == STANDARD or path.suffix.lower() in ENDINGS


def read(source: Source, quiet: bool = False, to_fill: bool = True) -> Observations:
    """Read the table and say what it is.

    Parameters
    ----------
    source : Source
    quiet : bool
    to_fill : bool
        Whether there must be something to fill in.
    """
    if not quiet and (n_bytes := _size(source)) > _LARGE:
        say(f"Reading {escape(source.name)}, {format_bytes(n_bytes)}.")
    with _explained(source):
        data = fr.read(
            _input(source),
            row=source.row,
            column=source.column,
            value=source.value,
            layout=source.layout,
            duplicates=source.duplicates,
            format=None if source.is_plain else source.ending.removeprefix("."),
            name=source.name,
        )
    if to_fill and data.n_entries == math.prod(data.shape):
        raise InputError(
            f"{source.name} has no missing cell: there is nothing to fill in. A missing value is an "
            "empty cell or NA. If a number such as 0 or -1 stands for it, clear those cells first."
            f"{f' But {hint}' if (hint := _long_hint(data)) else ''}"
        )
    if not quiet:
        say(f"Read {escape(source.name)}: {escape(of_table(data))}")
        for note in filter(None, (_note_on_names(data), _long_hint(data))):
            say(f"[bold yellow]Note:[/] {escape(note)}")
    return data


def _input(source: Source) -> Any:
    """The path of the table; or an open file, if it has none or must be converted to UTF-8."""
    is_piped = source.table == STANDARD
    table: Any = sys.stdin.buffer if is_piped else source.table
    if not source.skip and source.encoding is None:
        return table
    if not source.is_text:
        raise InputError(f"--skip and --encoding are for text files, not for {source.ending}.")
    is_gzip = not is_piped and source.table.suffix.lower() == ".gz"
    content = read_bytes(table, source.name, is_gzip=is_gzip)
    try:
        if source.encoding is not None:
            content = content.decode(source.encoding).encode()
    except LookupError as error:
        raise InputError(
            f"{source.encoding!r} is no encoding that is known. Often it is latin-1, cp1252 or utf-16."
        ) from error
    except UnicodeError as error:
        raise ReadError(f"{source.name} is not {source.encoding} text: {error}.") from error
    # Skipped lines become blank, so that the others have the same numbers in messages.
    rest = content.split(b"\n", source.skip)[source.skip :]
    return io.BytesIO(b"\n" * source.skip + b"".join(rest))


@contextmanager
def _explained(source: Source) -> Iterator[None]:
    """Add which options may help."""
    try:
        yield
    except FillrankError as error:
        raise error.with_advice(*_advice(error, source)) from error


def _advice(error: FillrankError, source: Source) -> Iterator[str]:
    if error.kind == "encoding":
        yield "Or name its encoding, such as --encoding latin-1 or --encoding utf-16."
        return
    line = error.place.line if isinstance(error.place, FileLocation) else None
    if source.is_text and line is not None and line <= _NEAR_THE_TOP and not source.skip:
        yield "If the first lines are a title or a comment, leave them out by --skip N."


def _size(source: Source) -> int:
    return source.table.stat().st_size if source.table.is_file() else 0


def _note_on_names(data: Observations) -> str:
    """Ask whether a column of a wide table is one of names, if it looks so; else say nothing."""
    n_rows = data.shape[0]
    if data.origin.layout != "wide" or data.origin.row_field or data.row_labels.dtype.kind != "i":
        return ""
    values = data.values[data.column_index == 0]
    distinct = np.unique(values)
    if not len(values) == len(distinct) == n_rows > 2 or (distinct % 1 != 0).any():
        return ""
    name = data.column_labels[0]
    return (
        f"the column {name!r} has another whole number in every row. If these are the rows' names, call "
        "it 'id' in the header."
    )


def _long_hint(data: Observations) -> str:
    """Point out a wide table of three columns that may be a long one; empty if it does not look so.

    The first two columns have whole numbers in every row, some more than once, and no pair twice.
    """
    n_rows = data.shape[0]
    if data.origin.layout != "wide" or data.origin.row_field or data.shape[1] != 3:
        return ""
    first, second = (data.values[data.column_index == column] for column in (0, 1))
    if not len(first) == len(second) == n_rows or (np.append(first, second) % 1 != 0).any():
        return ""
    n_labels = max(len(np.unique(first)), len(np.unique(second)))
    n_pairs = len(np.unique(np.column_stack([first, second]), axis=0))
    if n_labels == n_rows or n_pairs < n_rows:
        return ""
    return (
        "the first two columns look like labels: whole numbers of which no pair comes twice. If the "
        "table is long, with a line for each entry, add --layout long."
    )


def of_table(data: Observations) -> str:
    """Say what was read, and how it was understood."""
    n_rows, n_columns = data.shape
    low, high = ends(data)
    text = (
        f"{n_rows:,} rows x {n_columns:,} columns, {data.n_entries:,} entries "
        f"({100 * data.density:.3g}% of the cells), values {low:g} to {high:g}; {_layout(data)}."
    )
    if (scale := data.value_range()) is not None:
        text += f" The values are taken for ratings from {scale[0]:g} to {scale[1]:g}."
    return text


def ends(data: Observations) -> tuple[float, float]:
    """The smallest and the largest value."""
    # Adding 0 turns -0 into 0, which is what a reader expects to see.
    return float(data.values.min()) + 0.0, float(data.values.max()) + 0.0


def _layout(data: Observations) -> str:
    origin = data.origin
    if origin.layout == "long":
        if origin.row_field is None:
            return "a long table, with a line for each entry"
        row, column, value = map(repr, origin[2:5])
        return f"a long table, with rows from {row}, columns from {column}, values from {value}"
    if origin.layout == "wide":
        row, column = _cut(data.row_labels[0]), _cut(data.column_labels[0])
        return (
            "a wide table, with a cell for each entry; its first row is "
            f"{row}, its first column {column}"
        )
    return {"matrix": "a matrix", "sparse": "a sparse matrix"}.get(origin.layout, "triplets")


def _cut(name: Any) -> str:
    """A name as a user would write it, cut if it is long."""
    text = format_label(name)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
