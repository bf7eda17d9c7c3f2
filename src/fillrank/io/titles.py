"""Reading titles of rows or columns from files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import FileLocation, InputError, ReadError, Setting, Text
from fillrank.io.files import decode, read_bytes
from fillrank.io.label_files import find_label_file, read_fields, read_frame
from fillrank.io.read import SourceFile, find_files, located_errors
from fillrank.io.text_header import open_table
from fillrank.io.text_lines import parse_labels, parse_number
from fillrank.table.feature_table import KnownLabels
from fillrank.table.labels import as_labels, as_text, format_labels, is_missing
from fillrank.table.missing_values import MISSING_WORDS
from fillrank.table.text_values import shorten
from fillrank.table.titles import Titles, one_line, titles_of

_CONTENT = "titles"
# Columns of titles by their names or the ends of these; the first is preferred.
_WORDS = ("title", "titles", "name", "names", "label", "labels")
_NAME_ADVICE = "Name the column of titles 'title'."
_LABELS_ADVICE: Text = ("If the labels are in another column, set ", Setting("labels", ...), ".")
_QUOTE_ADVICE = "Put a title that contains the delimiter in quotes."
_SHOWN = 20  # columns in a message
# Files of MovieLens start with a number and a delimiter, in place of a header.
_MOVIELENS_FILES = ("movies.dat", "u.item")
_MOVIELENS_START = re.compile(rb"[0-9]+(::|\|)")


def read_titles(path: Any, labels: Any = None) -> dict[Any, str]:
    """Read the titles of rows or columns from a file, such as the names of films by their numbers.

    Parameters
    ----------
    path : str or Path
        Text, also with ``.gz``, or Parquet, with a header and a line for each label; the endings and
        delimiters are those of `fillrank.read`. The titles are in the column that is named title, name
        or label, or whose name ends in one of these words, such as movie_title; otherwise in the first
        column of text. Files of MovieLens without a header, ``movies.dat`` and ``u.item``, are read as
        they are published.
    labels : array, optional
        The labels of the rows or columns of the table. Then the column that has the most of them has
        the labels, and the result has all of them and no others. By default the labels are in the first
        column; they are integers if all of them are written as integers, as those of `fillrank.read`.

    Returns
    -------
    dict of label to title
        A label without a title has its own text.

    Raises
    ------
    ReadError
        The file cannot be read, has no titles, or has two for a label; the message has the location.
    InputError
        The file has none of the labels, or is too large for the memory.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "drinks.csv"
    >>> _ = path.write_text("id,price,name\\n1,2.5,Green tea\\n2,3,Oat milk\\n3,1,\\n")
    >>> read_titles(path)
    {1: 'Green tea', 2: 'Oat milk', 3: '3'}
    >>> read_titles(path, labels=["2", "4"])
    {'2': 'Oat milk', '4': '4'}
    """
    if labels is None:
        return typed_titles(find_titles(path))
    known = as_labels(labels)
    titles = find_titles(path, known)
    keys = [*known] if known.dtype.kind in "mM" else known.tolist()
    return dict(zip(keys, titles_of(titles, keys), strict=True))


def typed_titles(titles: Titles) -> dict[Any, str]:
    """The same by labels of the type that `fillrank.read` gives them."""
    return dict(zip(parse_labels([*titles]).tolist(), titles_of(titles, titles), strict=True))


def find_titles(path: Any, labels: np.ndarray | None = None) -> Titles:
    """Read titles by the text of their labels, at least one of ``labels`` if these are given.

    The arguments are those of `read_titles`. Titles that are missing are empty.
    """
    path = Path(path)
    if path.name.lower().removesuffix(".gz") in _MOVIELENS_FILES:
        (file,) = find_files(path, "csv")
        content = read_bytes(file.source, file.name, is_gzip=file.is_gzip)
        if _MOVIELENS_START.match(content):
            return _checked(parse_movielens(content, file.name), labels, file.name)
    file = find_label_file(path, _CONTENT)
    with located_errors(file.name, file.name):
        fields = (_read_parquet if file.ending == ".parquet" else _read_text)(file)
        return _checked(_find_titles(fields, labels), labels, file.name)


def _checked(titles: Titles, labels: np.ndarray | None, source: str) -> Titles:
    if labels is not None and len(labels) and not any(as_text(label) in titles for label in labels):
        raise InputError(
            f"the file has none of the labels of the table, {format_labels(labels)}; its own labels are "
            f"{format_labels([*titles])}",
            place=source,
        )
    return titles


class _Fields(NamedTuple):
    """The columns of a file, and the numbers of the lines of text."""

    source: str
    names: Sequence[str]
    columns: Sequence[list[str]]
    lines: Sequence[int] = ()
    delimiter: str = ","

    def place(self, i: int, column: int) -> FileLocation:
        """The location of a cell."""
        return FileLocation(self.source, self.lines[i] if self.lines else None, self.names[column])


def _read_text(file: SourceFile) -> _Fields:
    table = open_table(file.text(), file.name, needs_header=True)
    try:
        columns, lines = read_fields(table, _CONTENT)
    except ReadError as error:
        raise (error.with_advice(_QUOTE_ADVICE) if error.kind == "width" else error) from error
    return _Fields(file.name, table.names, columns, lines, table.delimiter)


def _read_parquet(file: SourceFile) -> _Fields:
    frame = read_frame(file, _CONTENT)
    columns = [
        ["" if is_missing(cell) else as_text(cell) for cell in column.to_list()]
        for column in frame.iter_columns()
    ]
    return _Fields(file.name, frame.columns, columns)


def _find_titles(fields: _Fields, labels: np.ndarray | None) -> Titles:
    """The titles in one of the columns, by the labels in another."""
    label = 0
    if labels is not None:
        known = KnownLabels(labels, by_text=True)
        label = known.best([as_labels(column) for column in fields.columns])
    others = [j for j in range(len(fields.names)) if j != label]
    title = _title_column(fields, others)
    if title is None:
        shown = ", ".join(repr(fields.names[j]) for j in others[:_SHOWN])
        raise ReadError(
            f"the file must have a column of titles, which is text; beside the labels in "
            f"{fields.names[label]!r}, it has {shown}",
            place=fields.source,
            advice=[_NAME_ADVICE, *([_LABELS_ADVICE] if labels is None else [])],
        )
    pairs = zip(fields.columns[label], fields.columns[title], strict=True)
    return _collect(pairs, lambda i, is_label: fields.place(i, label if is_label else title))


def _title_column(fields: _Fields, others: Sequence[int]) -> int | None:
    """The position of the column with titles among ``others``: by its name, or the first of text."""
    words = {j: re.sub(r"[^a-z]", "", str(fields.names[j]).lower()) for j in others}
    for wanted in _WORDS:
        for is_title in (str.__eq__, str.endswith):
            for j in others:
                if is_title(words[j], wanted):
                    return j
    return next((j for j in others if _is_text(fields.columns[j], fields.delimiter)), None)


def _is_text(cells: Iterable[str], delimiter: str) -> bool:
    return any(parse_number(cell, delimiter) is None for cell in cells)


def parse_movielens(content: bytes, source: str) -> Titles:
    """Read the titles of a file of MovieLens: a number, a title and more, without a header.

    Older files are in Latin-1, newer ones in UTF-8. Quotes have no meaning.

    Examples
    --------
    >>> parse_movielens(b'7::"Caf\\xe9"::Drama\\n', "movies.dat")
    {'7': '"Café"'}
    """
    text = decode(_as_utf8(content), source)
    delimiter = "::" if "::" in text.partition("\n")[0] else "|"
    lines = [line.split(delimiter) for line in text.rstrip().split("\n")]
    for number, fields in enumerate(lines, 1):
        if len(fields) < 2:
            raise ReadError(
                f"a line must have the number and the title of a film, with {delimiter!r} between them",
                place=FileLocation(source, number),
                value=shorten(fields[0]),
            )
    pairs = ((fields[0].strip(), fields[1]) for fields in lines)
    return _collect(pairs, lambda i, _: FileLocation(source, i + 1))


def _as_utf8(content: bytes) -> bytes | str:
    """Bytes as they are if they are UTF-8, otherwise the text that they are in Latin-1."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")
    return content


def _collect(
    pairs: Iterable[tuple[str, str]], place: Callable[[int, bool], FileLocation]
) -> dict[str, str]:
    """Titles by their labels; a pair that is repeated counts once.

    ``place`` is the location of a line, in the column of labels (True) or of titles.
    """
    titles: dict[str, str] = {}
    for i, (label, cell) in enumerate(pairs):
        if not label:
            raise ReadError(
                "the label is missing",
                place=place(i, True),
                advice="Remove this line or label it.",
            )
        title = "" if cell.strip().lower() in MISSING_WORDS else one_line(cell)
        known = titles.setdefault(label, title) or title
        if title and known != title:
            raise ReadError(
                f"the label {label!r} has two titles, {shorten(known)!r} and {shorten(title)!r}",
                place=place(i, False),
                advice="Remove one of them.",
            )
        titles[label] = known
    return titles
