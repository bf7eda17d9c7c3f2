"""Matrix Market files: what is in them is checked before it is used.

A header, ``%%MatrixMarket matrix coordinate real general``; comments, which begin with ``%``; a line
with the numbers of rows, columns and (of ``coordinate``) entries. Then ``coordinate`` has a line for
each entry: row, column, value; and ``array`` a line for each cell, column by column.
"""

import io
import warnings
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from fillrank.errors import InputError, ReadError
from fillrank.io.text import decode
from fillrank.runtime.memory import check_room, in_bytes
from fillrank.table.matrices import check_shape, check_stored_shape, observed_cells
from fillrank.table.triplets import Triplets

SMALL = 1_000_000  # characters; for less than this it does not pay to import pyarrow
_FORMATS = ("coordinate", "array")
_FIELDS = ("real", "double", "integer", "unsigned-integer")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")
_BYTES_PER_NUMBER = 24  # as text was parsed, as a column and as an array
_SHOWN = 60  # letters of a line


class MatrixMarket(NamedTuple):
    """The entries of a matrix, its shape, and whether what is not among them is missing."""

    triplets: Triplets
    shape: tuple[int, int]
    is_sparse: bool


class _Body(NamedTuple):
    """The lines below the sizes, and the number of the first of them."""

    text: str
    first_line: int
    source: str


def parse_matrix_market(data: bytes, source: str) -> MatrixMarket:
    """Read the content of a Matrix Market file; ``source`` names it in messages.

    Raises
    ------
    ReadError
        It is no such file, or what it says about itself is not true.
    InputError
        It has no real numbers, or a size that it cannot have.
    """
    text = decode(data, source)
    format, symmetry = _read_header(text, source)
    sizes, body = _read_sizes(text, 3 if format == "coordinate" else 2, source)
    shape = (sizes[0], sizes[1])
    check_shape(shape)
    if symmetry != "general" and shape[0] != shape[1]:
        raise ReadError(f"{source}: a {symmetry} matrix must be square; its shape is {shape}.")
    if format == "array":
        return _parse_cells(body, shape, symmetry)
    return _parse_entries(body, shape, sizes[2], symmetry)


def _read_header(text: str, source: str) -> tuple[str, str]:
    """Give the format and the symmetry, if what the first line promises can be read."""
    line = text.partition("\n")[0]
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise ReadError(
            f"{source} is no Matrix Market file: its first line must be like '%%MatrixMarket matrix "
            f"coordinate real general'; it is {_cut(line)}."
        )
    format, field, symmetry = words[2:]
    if field == "pattern":
        raise ReadError(
            f"{source} is a pattern: it says where entries are, but not which values they have. "
            "Save it with values (field real or integer)."
        )
    if field == "complex":
        raise InputError("a matrix must hold real numbers; the file has complex ones.")
    for what, word, allowed in (
        ("format", format, _FORMATS),
        ("field", field, _FIELDS),
        ("symmetry", symmetry, _SYMMETRIES),
    ):
        if word not in allowed:
            raise ReadError(
                f"{source}, line 1: the {what} must be one of {', '.join(allowed)}; "
                f"got {_cut(word)}."
            )
    return format, symmetry


def _read_sizes(text: str, n_sizes: int, source: str) -> tuple[list[int], _Body]:
    """Give the numbers of the first line that is no comment, and what is below it."""
    number, stop = 0, 0
    while stop < len(text):
        start, stop = stop, text.find("\n", stop) + 1 or len(text)
        number, line = number + 1, text[start:stop]
        if line.startswith("%") or not line.strip():
            continue
        words = line.split()
        if len(words) != n_sizes or not all(map(_is_size, words)):
            wanted = "rows, columns and entries" if n_sizes == 3 else "rows and columns"
            raise ReadError(
                f"{source}, line {number}: must be the numbers of {wanted}; got {_cut(line)}."
            )
        return [int(word) for word in words], _Body(text[stop:], number + 1, source)
    raise ReadError(f"{source} ends before the line that has the size of the matrix.")


def _is_size(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 18


def _parse_entries(
    body: _Body, shape: tuple[int, int], n_entries: int, symmetry: str
) -> MatrixMarket:
    rows, columns, values = _parse_numbers(body, ("row", "column", "value")).T
    _check_number(body.source, "entries", n_entries, values.size)
    check_stored_shape(shape, n_entries)
    index = []
    for what, size, positions in zip(("row", "column"), shape, (rows, columns), strict=True):
        wrong = np.flatnonzero(~((positions >= 1) & (positions <= size) & (positions % 1 == 0)))
        if wrong.size:
            raise ReadError(
                f"{body.source}: a {what} must be a whole number from 1 to {size}; entry "
                f"{wrong[0] + 1} has {positions[wrong[0]]:.15g}."
            )
        index.append(positions.astype(np.int32) - np.int32(1))
    triplets = Triplets(index[0], index[1], values)
    if symmetry != "general":
        triplets = _mirrored(triplets, symmetry, body.source)
    return MatrixMarket(triplets, shape, is_sparse=True)


def _mirrored(triplets: Triplets, symmetry: str, source: str) -> Triplets:
    """The entries of both triangles, of which the file has one."""
    rows, columns, values = triplets
    outside = rows != columns
    if symmetry == "skew-symmetric" and not outside.all():
        raise ReadError(f"{source}: a skew-symmetric matrix has no entries on its diagonal.")
    sign = -1.0 if symmetry == "skew-symmetric" else 1.0
    return Triplets(
        np.concatenate((rows, columns[outside])),
        np.concatenate((columns, rows[outside])),
        np.concatenate((values, sign * values[outside])),
    )


def _parse_cells(body: _Body, shape: tuple[int, int], symmetry: str) -> MatrixMarket:
    n_rows, n_columns = shape
    below = int(symmetry == "skew-symmetric")  # whose diagonal is 0 and not written
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


def _check_number(source: str, what: str, promised: int, found: int) -> None:
    if promised != found:
        raise ReadError(
            f"{source} is not whole: it should have {promised:,} {what} by its sizes, and has "
            f"{found:,}."
        )


def _parse_numbers(body: _Body, fields: tuple[str, ...]) -> np.ndarray:
    """Parse lines of so many numbers each."""
    if not body.text.strip():
        return np.empty((0, len(fields)))
    n_numbers = len(fields) * (body.text.count("\n") + 1)
    check_room(
        len(body.text) + _BYTES_PER_NUMBER * n_numbers,
        f"a Matrix Market file of {in_bytes(len(body.text))} with {n_numbers:,} numbers",
        "Save a part of it.",
    )
    is_large = len(body.text) >= SMALL and find_spec("pyarrow")
    if is_large and (fast := _parse_fast(body.text, len(fields))) is not None:
        return fast
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            numbers = np.loadtxt(io.StringIO(body.text), comments=None, ndmin=2)
    except (ValueError, Warning) as error:
        raise _complaint(body, fields) from error
    if numbers.shape[1] != len(fields):
        raise _complaint(body, fields)
    return numbers


def _parse_fast(text: str, n_fields: int) -> np.ndarray | None:
    """Parse by pyarrow; None if that would not give what numpy's own reader gives."""
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


def _complaint(body: _Body, fields: tuple[str, ...]) -> ReadError:
    """Say which line is wrong."""
    wanted = f"{len(fields)} numbers ({', '.join(fields)})" if len(fields) > 1 else "one number"
    for number, line in enumerate(io.StringIO(body.text), body.first_line):
        if (words := line.split()) and not (
            len(words) == len(fields) and all(map(_is_number, words))
        ):
            return ReadError(f"{body.source}, line {number}: must be {wanted}; got {_cut(line)}.")
    return ReadError(f"{body.source}: all lines below the sizes must be {wanted}.")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word  # which Python would take


def _cut(text: str) -> str:
    """A line as it is shown in a message."""
    text = text.strip()
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
