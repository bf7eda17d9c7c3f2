"""Reading tables of features of rows or columns from files."""

import re
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from fillrank.errors import ReadError
from fillrank.io.parquet import ParquetFile, open_parquet, read_parquet
from fillrank.io.read import TEXT_ENDINGS, SourceFile, find_files, located_errors
from fillrank.io.text import TextTable, open_table, parse_number
from fillrank.runtime.memory import check_memory
from fillrank.table.feature_table import FeatureTable, KnownLabels, frame_features, labels_note
from fillrank.table.labels import as_labels
from fillrank.table.missing_values import MISSING_WORDS

_CODE = re.compile(r"-?0[0-9]+")  # 007 is a code, not a number
# Memory of a cell of a text file, as text and as a number; and of one in Parquet.
_BYTES_PER_TEXT_CELL, _BYTES_PER_CELL = 80, 16
_SIZE_ADVICE = "Leave fields or lines out."


def read_features(path: Any, labels: Any = None) -> FeatureTable:
    """Read the features of rows or columns from a file.

    Parameters
    ----------
    path : str or Path
        Text, also with ``.gz``, or Parquet; the endings and delimiters are those of `fillrank.read`. A
        text file has a header. A field is numeric if all its cells are numbers or missing, and none is
        a code such as 007; all other fields are categories. Missing values are written as for
        `fillrank.read`.
    labels : array, optional
        The labels of the rows or columns of the table. Then the column that has the most of them has
        the labels of the features. Otherwise it is the first.

    Returns
    -------
    FeatureTable
        Its labels match those of the table if their text is the same.

    Raises
    ------
    ReadError
        The file cannot be read, or is not of its kind; the message has the location.
    InputError
        The file is too large for the memory.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("who,age,sex\\nAna,30,F\\nBen,,M\\n")
    >>> features = read_features(path)
    >>> features.labels, features.fields["age"], features.fields["sex"]
    (array(['Ana', 'Ben'], dtype=object), array([30., nan]), array(['F', 'M'], dtype=object))
    """
    file = _find_file(Path(path))
    known = None if labels is None else KnownLabels(as_labels(labels), by_text=True)
    with located_errors(file.name, file.name):
        if file.ending == ".parquet":
            return _read_frame(file, known)
        return _read_text(open_table(file.text(), file.name, needs_header=True), known)


def _find_file(path: Path) -> SourceFile:
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    if name.suffix.lower() not in (*TEXT_ENDINGS, ".parquet"):
        raise ReadError(
            "features are read from text and Parquet, whose names end in "
            f"{' '.join(TEXT_ENDINGS)} .parquet",
            place=path,
            advice="Save it as CSV, with labels in the first column and a header.",
        )
    file, *others = find_files(path)
    if others:
        raise ReadError("features are read from one file", place=path, value=len(others) + 1)
    return file


def _check_fields(n_columns: int, source: str) -> None:
    if n_columns < 2:
        raise ReadError(
            "a table of features must have a column of labels and at least one other",
            place=source,
            value=n_columns,
        )


# Parquet.


def _read_frame(file: SourceFile, known: KnownLabels | None) -> FeatureTable:
    source = file.seekable()
    table = open_parquet([ParquetFile(source, file.name)])
    _check_fields(len(table.names), file.name)
    check_memory(
        _BYTES_PER_CELL * table.n_lines * len(table.names),
        f"a table of {table.n_lines:,} lines and {len(table.names):,} columns",
        _SIZE_ADVICE,
    )
    frame = nw.from_native(read_parquet(source, file.name), eager_only=True)
    return frame_features(frame, known, by_text=True)


# Text.


def _read_text(table: TextTable, known: KnownLabels | None) -> FeatureTable:
    _check_fields(len(table.names), table.source)
    check_memory(
        _BYTES_PER_TEXT_CELL * table.n_lines * len(table.names),
        f"a table of up to {table.n_lines:,} lines and {len(table.names):,} columns",
        _SIZE_ADVICE,
    )
    columns = _read_columns(table)
    position = 0 if known is None else known.best([as_labels(column) for column in columns])
    fields = {
        name: _parse_field(column, table.delimiter)
        for j, (name, column) in enumerate(zip(table.names, columns, strict=True))
        if j != position
    }
    notes = (labels_note(table.names[position]),) if position else ()
    labels = np.array(columns[position], dtype=object)
    _check_labels(table, labels)
    return FeatureTable(labels, fields, True, notes)


def _read_columns(table: TextTable) -> list[list[str]]:
    """The cells of each column."""
    columns: list[list[str]] = [[] for _ in table.names]
    cells = [""]
    for _, cells in table.body():
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell.strip())
    # The csv module takes all that follows an open quote as one cell.
    if "\n" in cells[-1] and not table.text.rstrip().endswith('"'):
        first = cells[-1].splitlines()[0]
        raise ReadError("a quote is not closed", place=table.source, value=first)
    return columns


def _check_labels(table: TextTable, labels: np.ndarray) -> None:
    n_missing = int(np.count_nonzero(labels == ""))
    if n_missing:
        raise ReadError(
            f"every line of a table of features needs a label; {n_missing:,} have none",
            place=table.source,
            advice="Remove these lines or label them.",
        )


def _parse_field(cells: list[str], delimiter: str) -> np.ndarray:
    """The numbers of a field, or its levels if not all cells are numbers."""
    numbers = [None if _CODE.fullmatch(cell) else parse_number(cell, delimiter) for cell in cells]
    if None not in numbers:
        return np.array(numbers, dtype=np.float64)
    levels = (None if cell.lower() in MISSING_WORDS else cell for cell in cells)
    return np.fromiter(levels, dtype=object, count=len(cells))
