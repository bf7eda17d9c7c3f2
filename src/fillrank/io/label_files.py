"""Files about the labels of a table, with a line for each: text with a header, or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw

from fillrank.errors import ReadError
from fillrank.io.parquet import ParquetFile, open_parquet, read_parquet
from fillrank.io.read import TEXT_ENDINGS, SourceFile, find_files, refuse_folder
from fillrank.io.text_table import TextTable
from fillrank.runtime.memory import check_memory

# Memory of a cell of a text file, as text and as a number; and of one in Parquet.
_BYTES_PER_TEXT_CELL, _BYTES_PER_CELL = 80, 16
_SIZE_ADVICE = "Leave fields or lines out."


class TextFields(NamedTuple):
    """The cells of each column of a text file, without the white space around them; and their lines."""

    columns: list[list[str]]
    lines: list[int]


def find_label_file(path: Path, content: str) -> SourceFile:
    """Find the file at a path; ``content``, such as "features", is for messages."""
    refuse_folder(path)
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    if name.suffix.lower() not in (*TEXT_ENDINGS, ".parquet"):
        raise ReadError(
            f"{content} are read from text and Parquet, whose names end in "
            f"{' '.join(TEXT_ENDINGS)} .parquet",
            place=path,
            advice="Save it as CSV, with labels in the first column and a header.",
        )
    file, *others = find_files(path)
    if others:
        raise ReadError(f"{content} are read from one file", place=path, value=len(others) + 1)
    return file


def read_frame(file: SourceFile, content: str) -> nw.DataFrame[Any]:
    """Read a Parquet file with at least two columns."""
    source = file.seekable()
    table = open_parquet([ParquetFile(source, file.name)])
    _check_width(len(table.names), file.name, content)
    check_memory(
        _BYTES_PER_CELL * table.n_lines * len(table.names),
        f"a table of {table.n_lines:,} lines and {len(table.names):,} columns",
        _SIZE_ADVICE,
    )
    return nw.from_native(read_parquet(source, file.name), eager_only=True)


def read_fields(table: TextTable, content: str) -> TextFields:
    """Read the cells of a text file with at least two columns."""
    _check_width(len(table.names), table.source, content)
    check_memory(
        _BYTES_PER_TEXT_CELL * table.n_lines * len(table.names),
        f"a table of up to {table.n_lines:,} lines and {len(table.names):,} columns",
        _SIZE_ADVICE,
    )
    columns: list[list[str]] = [[] for _ in table.names]
    lines: list[int] = []
    cells = [""]
    for line, cells in table.body():
        lines.append(line)
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell.strip())
    # The csv module takes all that follows an open quote as one cell.
    if "\n" in cells[-1] and not table.text.rstrip().endswith('"'):
        first = cells[-1].splitlines()[0]
        raise ReadError("a quote is not closed", place=table.source, value=first)
    return TextFields(columns, lines)


def _check_width(n_columns: int, source: str, content: str) -> None:
    if n_columns < 2:
        raise ReadError(
            f"a table of {content} must have a column of labels and at least one other",
            place=source,
            value=n_columns,
        )
