"""Files that are no text tables: Parquet, Matrix Market, numpy's .npy and .npz.

Nothing here unpickles: a file can hold data, never code.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import scipy.io
import scipy.sparse as sp

from fillrank.data.blocks import blocks
from fillrank.data.observations import Observations
from fillrank.data.triplets import Duplicates
from fillrank.errors import FillrankError, ReadError

LINES_AT_ONCE = 2**21  # of a column of a Parquet file
TRIPLET_ARRAYS = ("rows", "columns", "values")


def _foreign(path: Path, kind: str, reading: Callable[[], Any]) -> Any:
    """Run another library's reader; whatever it raises, the file is not what it should be."""
    try:
        return reading()
    except FillrankError:
        raise
    except Exception as error:
        cause = str(error).strip().splitlines()
        raise ReadError(
            f"{path} is no whole {kind} file: {cause[0] if cause else type(error).__name__}"
        ) from error


class ParquetTable(NamedTuple):
    """A Parquet file, or several, of which nothing has been read but what the columns are."""

    names: list[str]
    n_lines: int
    backend: nw.Implementation
    batches: Callable[[str], Iterator[nw.Series[Any]]]
    """``batches(name)`` reads a column, a batch of lines at a time."""


def read_parquet(path: Path) -> Any:
    """Read a data frame by the library that is there."""
    if _parquet_library(path) == "polars":
        import polars

        return _foreign(path, "Parquet", lambda: polars.read_parquet(path, glob=False))
    import pyarrow.parquet

    return _foreign(path, "Parquet", lambda: pyarrow.parquet.read_table(path))


def open_parquet(paths: list[Path]) -> ParquetTable:
    """Look at files by the library that is there, the same as `read_parquet` would take."""
    opened = _by_polars if _parquet_library(paths[0]) == "polars" else _by_pyarrow
    tables = [_foreign(path, "Parquet", partial(opened, path)) for path in paths]
    first = tables[0]
    for path, table in zip(paths, tables, strict=True):
        if table.names != first.names:
            raise ReadError(
                f"all files must have the same columns; {paths[0]} has {', '.join(first.names)}, "
                f"but {path} has {', '.join(table.names)}."
            )

    def batches(name: str) -> Iterator[nw.Series[Any]]:
        for table in tables:
            yield from table.batches(name)

    return first._replace(n_lines=sum(table.n_lines for table in tables), batches=batches)


def _parquet_library(path: Path) -> str:
    for library in ("polars", "pyarrow"):
        if find_spec(library):
            return library
    raise ReadError(
        f"{path}: Parquet needs polars or pyarrow, and neither is installed. "
        'Do: pip install "fillrank[tables]"'
    )


def _by_polars(path: Path) -> ParquetTable:
    import polars

    table = polars.scan_parquet(path, glob=False)
    n_lines = table.select(polars.len()).collect().item()

    def batches(name: str) -> Iterator[nw.Series[Any]]:
        column = table.select(polars.selectors.by_name(name))  # col() would take patterns
        for lines in blocks(n_lines, LINES_AT_ONCE):
            part = column.slice(lines.start, LINES_AT_ONCE)
            yield _column(_foreign(path, "Parquet", part.collect))

    names = table.collect_schema().names()
    return ParquetTable(names, n_lines, nw.Implementation.POLARS, batches)


def _by_pyarrow(path: Path) -> ParquetTable:
    import pyarrow.parquet

    # Without pre_buffer, which would hold the whole column as it is in the file.
    file = pyarrow.parquet.ParquetFile(path, pre_buffer=False)

    def batches(name: str) -> Iterator[nw.Series[Any]]:
        parts = file.iter_batches(LINES_AT_ONCE, columns=[name])
        while (part := _foreign(path, "Parquet", lambda: next(parts, None))) is not None:
            yield _column(pyarrow.Table.from_batches([part]).select([name]))

    names, n_lines = file.schema_arrow.names, file.metadata.num_rows
    return ParquetTable(names, n_lines, nw.Implementation.PYARROW, batches)


def _column(table: Any) -> nw.Series[Any]:
    """The only column of a table."""
    return next(nw.from_native(table, eager_only=True).iter_columns())


def _read_mtx(path: Path, duplicates: Duplicates) -> Observations:
    def reading() -> Any:
        field = scipy.io.mminfo(str(path))[4]
        if field == "pattern":
            raise ReadError(
                f"{path} is a pattern: it says where entries are, but not which values they have. "
                "Save it with values (field real or integer)."
            )
        return scipy.io.mmread(str(path))

    return Observations.from_matrix(_foreign(path, "Matrix Market", reading), duplicates=duplicates)


def _read_npy(path: Path, duplicates: Duplicates) -> Observations:
    matrix = _foreign(path, ".npy", lambda: np.load(path, allow_pickle=False))
    if not isinstance(matrix, np.ndarray):
        raise ReadError(f"{path} is no .npy file but an archive; name it .npz.")
    return Observations.from_matrix(matrix, duplicates=duplicates)


def _read_npz(path: Path, duplicates: Duplicates) -> Observations:
    arrays = _foreign(path, ".npz", lambda: _arrays(path))
    if "format" in arrays and "shape" in arrays:
        sparse = _foreign(path, "sparse .npz", lambda: sp.load_npz(path))
        return Observations.from_matrix(sparse, duplicates=duplicates)
    if set(arrays) == set(TRIPLET_ARRAYS):
        return Observations.from_triplets(**arrays, duplicates=duplicates)
    if len(arrays) == 1:
        return Observations.from_matrix(*arrays.values(), duplicates=duplicates)
    raise ReadError(
        f"{path} must hold one array, or {', '.join(TRIPLET_ARRAYS)}, or a sparse matrix; it holds "
        f"{', '.join(arrays) or 'nothing'}."
    )


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


MATRIX_READERS: dict[str, Callable[[Path, Duplicates], Observations]] = {
    ".mtx": _read_mtx,
    ".npy": _read_npy,
    ".npz": _read_npz,
}
