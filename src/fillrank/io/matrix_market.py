"""Matrix Market files, whose contents are checked before use.

A header, ``%%MatrixMarket matrix coordinate real general``; comments, which start with ``%``; and a line
with the numbers of rows, columns and (for ``coordinate``) entries. Then ``coordinate`` has a line for
each entry: row, column, value; and ``array`` a line for each cell, column by column.
"""

import io
import warnings
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from fillrank.errors import FileLocation, InputError, ReadError
from fillrank.runtime.memory import check_memory, format_bytes
from fillrank.table.frames import Origin
from fillrank.table.observations import Observations
from fillrank.table.triplets import (
    Duplicates,
    Triplets,
    check_declared_shape,
    check_shape,
    observed_cells,
)

SMALL = 1_000_000  # characters below which importing pyarrow takes longer than it saves
_FORMATS = ("coordinate", "array")
_FIELDS = ("real", "double", "integer", "unsigned-integer")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")
_BYTES_PER_NUMBER = 24  # after parsing, as a column and as an array
_SHOWN = 60  # characters of a line in a message


class MatrixMarket(NamedTuple):
    """The entries of a matrix, its shape, and whether it is stored as a sparse matrix."""

    triplets: Triplets
    shape: tuple[int, int]
    is_sparse: bool


class _Body(NamedTuple):
    """The lines below the sizes, and the number of the first line."""

    text: str
    first_line: int
    source: str


def read_matrix_market(text: str, name: str, duplicates: Duplicates) -> Observations:
    """Read observations from the text of a Matrix Market file; ``name`` is for messages.

    Raises
    ------
    ReadError
        It is not a valid Matrix Market file.
    InputError
        It does not contain real numbers, or its size is not possible.
    """
    triplets, shape, is_sparse = _parse(text, name)
    rows, columns = map(np.arange, shape)
    origin = Origin("sparse" if is_sparse else "matrix")
    return Observations.from_positions(triplets, rows, columns, origin, duplicates)


def _parse(text: str, source: str) -> MatrixMarket:
    format, symmetry = _read_header(text, source)
    sizes, body = _read_sizes(text, 3 if format == "coordinate" else 2, source)
    shape = (sizes[0], sizes[1])
    check_shape(shape)
    if symmetry != "general" and shape[0] != shape[1]:
        raise ReadError(f"a {symmetry} matrix must be square; its shape is {shape}", place=source)
    if format == "array":
        return _parse_cells(body, shape, symmetry)
    return _parse_entries(body, shape, sizes[2], symmetry)


def _read_header(text: str, source: str) -> tuple[str, str]:
    """The format and the symmetry in the first line."""
    line = text.partition("\n")[0]
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise ReadError(
            "not a Matrix Market file: its first line must be like '%%MatrixMarket matrix coordinate "
            f"real general'; it is {_cut(line)}",
            place=source,
        )
    format, field, symmetry = words[2:]
    if field == "pattern":
        raise ReadError(
            "the matrix is a pattern: it has the positions of entries, but not their values",
            place=source,
            advice="Save it with values (field real or integer).",
        )
    if field == "complex":
        raise InputError("a matrix must contain real numbers; the file has complex numbers.")
    for part, word, allowed in (
        ("format", format, _FORMATS),
        ("field", field, _FIELDS),
        ("symmetry", symmetry, _SYMMETRIES),
    ):
        if word not in allowed:
            raise ReadError(
                f"the {part} must be one of {', '.join(allowed)}; got {_cut(word)}",
                place=FileLocation(source, 1),
            )
    return format, symmetry


def _read_sizes(text: str, n_sizes: int, source: str) -> tuple[list[int], _Body]:
    """The numbers in the first line that is not a comment, and the lines below it."""
    number, stop = 0, 0
    while stop < len(text):
        start, stop = stop, text.find("\n", stop) + 1 or len(text)
        number, line = number + 1, text[start:stop]
        if line.startswith("%") or not line.strip():
            continue
        words = line.split()
        if len(words) != n_sizes or not all(map(_is_size, words)):
            expected = "rows, columns and entries" if n_sizes == 3 else "rows and columns"
            raise ReadError(
                f"the line must have the numbers of {expected}; got {_cut(line)}",
                place=FileLocation(source, number),
            )
        return [int(word) for word in words], _Body(text[stop:], number + 1, source)
    raise ReadError(
        "the file is incomplete: there is no line with the size of the matrix", place=source
    )


def _is_size(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 18


def _parse_entries(
    body: _Body, shape: tuple[int, int], n_entries: int, symmetry: str
) -> MatrixMarket:
    rows, columns, values = _parse_numbers(body, ("row", "column", "value")).T
    _check_number(body.source, "entries", n_entries, values.size)
    check_declared_shape(shape, n_entries)
    index = []
    for axis, size, positions in zip(("row", "column"), shape, (rows, columns), strict=True):
        wrong = np.flatnonzero(~((positions >= 1) & (positions <= size) & (positions % 1 == 0)))
        if wrong.size:
            raise ReadError(
                f"a {axis} must be a whole number from 1 to {size}; entry {wrong[0] + 1} has "
                f"{positions[wrong[0]]:.15g}",
                place=body.source,
            )
        index.append(positions.astype(np.int32) - np.int32(1))
    triplets = Triplets(index[0], index[1], values)
    if symmetry != "general":
        triplets = _mirrored(triplets, symmetry, body.source)
    return MatrixMarket(triplets, shape, is_sparse=True)


def _mirrored(triplets: Triplets, symmetry: str, source: str) -> Triplets:
    """The entries of both triangles; the file has those of one."""
    rows, columns, values, *_ = triplets
    outside = rows != columns
    if symmetry == "skew-symmetric" and not outside.all():
        raise ReadError("a skew-symmetric matrix has no entries on its diagonal", place=source)
    sign = -1.0 if symmetry == "skew-symmetric" else 1.0
    return Triplets(
        np.concatenate((rows, columns[outside])),
        np.concatenate((columns, rows[outside])),
        np.concatenate((values, sign * values[outside])),
    )


def _parse_cells(body: _Body, shape: tuple[int, int], symmetry: str) -> MatrixMarket:
    n_rows, n_columns = shape
    below = int(symmetry == "skew-symmetric")  # the diagonal is 0 and not in the file
    n_cells = (
        n_rows * n_columns if symmetry == "general" else n_rows * (n_rows + 1 - 2 * below) // 2
    )
    cells = _parse_numbers(body, ("value",))[:, 0]
    _check_number(body.source, "values", n_cells, cells.size)
    if symmetry == "general":
        matrix = cells.reshape(n_columns, n_rows).T
    else:
        matrix = np.zeros(shape)
        columns, rows = np.triu_indices(n_rows, below)
        matrix[columns, rows] = -cells if below else cells
        matrix[rows, columns] = cells
    return MatrixMarket(observed_cells(matrix), shape, is_sparse=False)


def _check_number(source: str, what: str, declared: int, found: int) -> None:
    if declared != found:
        raise ReadError(
            f"the file is incomplete: it declares {declared:,} {what}, and has {found:,}",
            place=source,
        )


def _parse_numbers(body: _Body, fields: tuple[str, ...]) -> np.ndarray:
    """Parse lines with one number for each field."""
    if not body.text.strip():
        return np.empty((0, len(fields)))
    n_numbers = len(fields) * (body.text.count("\n") + 1)
    check_memory(
        len(body.text) + _BYTES_PER_NUMBER * n_numbers,
        f"a Matrix Market file of {format_bytes(len(body.text))} with {n_numbers:,} numbers",
        "Save a smaller matrix.",
    )
    is_large = len(body.text) >= SMALL and find_spec("pyarrow")
    if is_large and (fast := _parse_fast(body.text, len(fields))) is not None:
        return fast
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            numbers = np.loadtxt(io.StringIO(body.text), comments=None, ndmin=2)
    except (ValueError, Warning) as error:
        raise _line_error(body, fields) from error
    if numbers.shape[1] != len(fields):
        raise _line_error(body, fields)
    return numbers


def _parse_fast(text: str, n_fields: int) -> np.ndarray | None:
    """Parse with pyarrow; None if its result could differ from that of numpy."""
    import pyarrow
    from pyarrow import csv

    if "x" in text:  # hexadecimal numbers
        return None
    names = [str(number) for number in range(n_fields)]
    try:
        table = csv.read_csv(
            pyarrow.BufferReader(text.encode()),
            csv.ReadOptions(column_names=names),
            csv.ParseOptions(delimiter=" ", quote_char=False),
            csv.ConvertOptions(column_types=dict.fromkeys(names, "float64"), null_values=[]),
        )
    except pyarrow.ArrowInvalid:
        return None
    return np.column_stack([table.column(name).to_numpy() for name in names])


def _line_error(body: _Body, fields: tuple[str, ...]) -> ReadError:
    """An error that shows the first invalid line."""
    expected = f"{len(fields)} numbers ({', '.join(fields)})" if len(fields) > 1 else "one number"
    for number, line in enumerate(io.StringIO(body.text), body.first_line):
        if (words := line.split()) and not (
            len(words) == len(fields) and all(map(_is_number, words))
        ):
            return ReadError(
                f"the line must have {expected}; got {_cut(line)}",
                place=FileLocation(body.source, number),
            )
    return ReadError(f"all lines below the sizes must have {expected}", place=body.source)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word  # Python accepts underscores


def _cut(text: str) -> str:
    """A line as it is shown in a message, shortened if it is long."""
    text = text.strip()
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
