"""Files in: text tables, Parquet, Matrix Market and numpy's own formats."""

import difflib
import re
from os import PathLike
from pathlib import Path
from typing import Any

from fillrank.errors import InputError, ReadError
from fillrank.io.binary import MATRIX_READERS, open_parquet, read_parquet
from fillrank.io.contents import file_content
from fillrank.io.long_files import read_long
from fillrank.io.text_layout import read_text
from fillrank.runtime.memory import check_room
from fillrank.table.frames import is_table
from fillrank.table.layout import Layout, LongFields, given_fields, named_fields
from fillrank.table.observations import Observations
from fillrank.table.triplets import Duplicates

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".dat", ".data")


def read(
    source: Any,
    *,
    row: Any = None,
    column: Any = None,
    value: Any = None,
    layout: Layout = "auto",
    duplicates: Duplicates = "error",
) -> Observations:
    """Read the observed entries of a matrix from a file, or from a table in memory.

    Parameters
    ----------
    source : str, Path, data frame, array, masked array or sparse matrix
        A data frame is understood as by `Observations.from_table`, and arrays and sparse matrices as by
        `Observations.from_matrix`. Of a file, the ending says what it is:

        - ``.csv .tsv .txt .dat .data``, each also with ``.gz``: text in UTF-8. The delimiter is
          one of ``, ; | ::``, tab or white space; after ``;`` numbers may have a decimal comma.
          Missing is an empty cell, NA, N/A, #N/A, <NA>, NaN, null, None, missing, ?, -, -- or a point,
          in any case.
          Names that are whole numbers in all lines are numbers, otherwise they are text.
        - ``.parquet``: read by pyarrow, or by polars if that is missing, and judged as by
          `Observations.from_table`. A long table may be in several files: ``ratings/*.parquet``
          takes them in the order of their names.
        - ``.mtx``, ``.mm``, each also with ``.gz``: Matrix Market. What is not stored is missing.
        - ``.npy``: an array, NaN is missing. ``.npz``: one array; or ``rows``, ``columns`` and
          ``values``; or what `scipy.sparse.save_npz` writes.
    row, column, value : name of a column
        Where a long table has its row names, column names and values. If a text file has no
        header, its columns are named 0, 1, 2, ...
    layout : {"auto", "long", "wide"}
        A long table has a line per entry, a wide one a cell. By itself, a text file is long if
        its columns are named so (user, item, rating; row, column, value; ...); or if it has 3 or 4
        columns, the first two hold names and the third numbers, and the second is either text, or
        there is no header and more than 1.5 times as many lines as distinct names in each of the
        first two columns, nearly all pairs of which differ. A fourth column is left alone. All else
        is wide; the first column has the row names if it is text or its header is empty or a word
        like id, name or row. Otherwise rows are named 0, 1, 2, ...
    duplicates : {"error", "mean", "last", "first"}
        What to do if a (row, column) pair comes more than once.

    Returns
    -------
    Observations

    Raises
    ------
    ReadError
        The file cannot be read, or is not what its ending says; the message has the place.
    UnknownNameError
        The file has no column of that name.
    InputError
        The file can be read, but an argument or its entries cannot be used.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "ratings.csv"
    >>> _ = path.write_text("user,item,rating\\nAna,tea,5\\nBen,tea,3\\nBen,milk,1\\n")
    >>> read(path)
    <Observations: 2 rows x 2 columns, 3 entries (75% observed), values 1 to 5>
    >>> read([[5.0, float("nan")], [3.0, 1.0]])
    <Observations: 2 rows x 2 columns, 3 entries (75% observed), values 1 to 5>
    """
    fields = given_fields(row, column, value, layout)
    if not isinstance(source, (str, PathLike)):
        return _from_memory(source, fields, layout, duplicates)
    path = Path(source)
    ending = _ending(path)
    files = _files(path)
    try:
        if ending in MATRIX_READERS:
            if fields or layout != "auto":
                raise InputError(f"row, column, value and layout are for tables, not for {ending}.")
            return MATRIX_READERS[ending](path, duplicates)
        if ending == ".parquet":
            return _read_parquet(files, fields, layout, duplicates)
        return read_text(file_content(path), str(path), fields, layout, duplicates)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise ReadError(f"{path} needs more memory than can be had. Read a part of it.") from error


def _from_memory(
    source: Any, fields: LongFields | None, layout: Layout, duplicates: Duplicates
) -> Observations:
    if isinstance(source, Observations):
        return source
    if is_table(source):
        options = fields._asdict() if fields else {"layout": layout}
        return Observations.from_table(source, **options, duplicates=duplicates)
    if fields or layout != "auto":
        raise InputError(
            f"row, column, value and layout are for tables with columns; got {type(source).__name__}."
        )
    return Observations.from_matrix(source, duplicates=duplicates)


def _read_parquet(
    paths: list[Path], fields: LongFields | None, layout: Layout, duplicates: Duplicates
) -> Observations:
    table = open_parquet(paths)
    found = fields or named_fields(table.names, layout)
    if found is not None and table.n_lines and len(set(table.names)) == len(table.names):
        return Observations.from_columns(*read_long(table, found), duplicates)
    if len(paths) > 1:
        raise InputError(
            f"{len(paths)} files together must be one long table, with a line per entry; their "
            f"columns are {', '.join(map(repr, table.names))}. Name three of them by row=..., "
            "column=..., value=...; or read the files one by one."
        )
    check_room(
        8 * table.n_lines * len(table.names),
        f"a wide table of {table.n_lines:,} rows and {len(table.names):,} columns",
        "Read a part of it; or save it as a long table, with a line for each value that is there.",
    )
    options = fields._asdict() if fields else {"layout": layout}
    return Observations.from_table(read_parquet(paths[0]), **options, duplicates=duplicates)


def _by_numbers(path: Path) -> list[tuple[int, str]]:
    """A key that puts part.2 before part.10, as Dask does."""
    pieces = re.split(r"(\d+)", path.name)
    return [(int(piece), "") if piece.isdigit() else (0, piece) for piece in pieces]


def _files(path: Path) -> list[Path]:
    """The file, if it is one; of Parquet also all that a pattern stands for."""
    if path.suffix.lower() == ".parquet" and "*" in path.name and not path.exists():
        if found := sorted(path.parent.glob(path.name), key=_by_numbers):
            return found
        raise ReadError(f"there is no file {path}. Look at the pattern and the folder.")
    _check_is_file(path)
    return [path]


def _ending(path: Path) -> str:
    """Give the ending without .gz, in lower case, if there is a reader for it."""
    ending = path.suffix.lower()
    if ending == ".gz":
        ending = Path(path.stem).suffix.lower()
        readable: tuple[str, ...] = (*TEXT_ENDINGS, ".mtx", ".mm")
    else:
        readable = (*TEXT_ENDINGS, ".parquet", *MATRIX_READERS)
    if ending not in readable:
        raise ReadError(
            f"{path}: cannot tell what kind of file this is. Files that can be read end in "
            f"{' '.join((*TEXT_ENDINGS, '.parquet', *MATRIX_READERS))}; text, .mtx and .mm also in .gz."
        )
    return ending


def _check_is_file(path: Path) -> None:
    if path.is_dir():
        raise ReadError(f"{path} is a folder; give the file in it.")
    if path.exists():
        return
    siblings = [other.name for other in path.parent.glob("*")] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, siblings, n=1)
    raise ReadError(f"{path} does not exist." + (f" Did you mean {near[0]}?" if near else ""))
