"""Reading tables of features of rows or columns from files."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from fillrank.errors import ReadError
from fillrank.io.label_files import find_label_file, read_fields, read_frame
from fillrank.io.read import located_errors
from fillrank.io.text_header import open_table
from fillrank.io.text_lines import parse_number
from fillrank.io.text_table import TextTable
from fillrank.table.feature_table import FeatureTable, KnownLabels, frame_features, labels_note
from fillrank.table.labels import as_labels
from fillrank.table.missing_values import MISSING_WORDS

_CODE = re.compile(r"-?0[0-9]+")  # 007 is a code, not a number
_CONTENT = "features"


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
    file = find_label_file(Path(path), _CONTENT)
    known = None if labels is None else KnownLabels(as_labels(labels), by_text=True)
    with located_errors(file.name, file.name):
        if file.ending == ".parquet":
            return frame_features(read_frame(file, _CONTENT), known, by_text=True)
        return _read_text(open_table(file.text(), file.name, needs_header=True), known)


def _read_text(table: TextTable, known: KnownLabels | None) -> FeatureTable:
    columns = read_fields(table, _CONTENT).columns
    position = 0 if known is None else known.best([as_labels(column) for column in columns])
    fields = {
        name: _parse_field(column, table.delimiter)
        for j, (name, column) in enumerate(zip(table.names, columns, strict=True))
        if j != position
    }
    notes = tuple(f"{table.source}: {note}" for note in table.notes)
    if position:
        notes = (*notes, labels_note(table.names[position]))
    labels = np.array(columns[position], dtype=object)
    _check_labels(table, labels)
    return FeatureTable(labels, fields, True, notes)


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
