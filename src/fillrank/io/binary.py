"""Files that are no text tables: Parquet, Matrix Market, numpy's .npy and .npz.

Nothing here unpickles: a file can hold data, never code.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.errors import FillrankError, ReadError
from fillrank.io.contents import file_content
from fillrank.io.matrix_market import parse_matrix_market
from fillrank.io.numpy_files import is_sparse, load_array, load_arrays, sparse_matrix
from fillrank.table.blocks import blocks
from fillrank.table.frames import Origin
from fillrank.table.observations import Observations
from fillrank.table.triplets import Duplicates

LINES_AT_ONCE = 2**21  # of a column of a Parquet file
TRIPLET_ARRAYS = ("rows", "columns", "values")


def _foreign(path: Path, kind: str, reading: Callable[[], Any]) -> Any:
    """Run another library's reader; whatever it raises, the file is not what it should be."""
    try:
        return reading()
    except (FillrankError, KeyboardInterrupt, SystemExit):
        raise
    except MemoryError as error:
        raise ReadError(f"{path} needs more memory than can be had.") from error
    except BaseException as error:  # a panic of Rust, which polars is made of, is no Exception
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
    """Read a data frame: of polars if it is installed, else of pyarrow."""
    if _parquet_library(path) == "polars":
        import polars

        return _foreign(path, "Parquet", lambda: _sound(polars.read_parquet(path, glob=False)))
    import pyarrow.parquet

    return _foreign(path, "Parquet", lambda: _frame(pyarrow.parquet.ParquetFile(path).read()))


def open_parquet(paths: list[Path]) -> ParquetTable:
    """Look at files, of which `read_parquet` would make the same data frame."""
    opened = _by_polars if _parquet_library(paths[0]) == "polars" else _by_pyarrow
    tables = [_foreign(path, "Parquet", partial(opened, path)) for path in paths]
    first = tables[0]
    for path, table in zip(paths, tables, strict=True):
        if table.n_lines < 0:
            raise ReadError(
                f"{path} is no whole Parquet file: it says it has {table.n_lines} lines."
            )
        if table.names != first.names:
            raise ReadError(
                f"all files must have the same columns; {paths[0]} has {', '.join(first.names)}, "
                f"but {path} has {', '.join(table.names)}."
            )

    def batches(name: str) -> Iterator[nw.Series[Any]]:
        for path, table in zip(paths, tables, strict=True):
            yield from _counted(path, table, name)

    return first._replace(n_lines=sum(table.n_lines for table in tables), batches=batches)


def _counted(path: Path, table: ParquetTable, name: str) -> Iterator[nw.Series[Any]]:
    """The batches of a column, if they have as many lines as the file says."""
    n_left = table.n_lines
    for batch in table.batches(name):
        n_left -= len(batch)
        if n_left < 0:
            break
        yield batch
    if n_left:
        raise ReadError(
            f"{path} is no whole Parquet file: it should have {table.n_lines:,} lines, and column "
            f"{name!r} has {'more' if n_left < 0 else 'fewer'}."
        )


def _parquet_library(path: Path) -> str:
    """What reads: pyarrow if it can, since polars ends the process over some forged files."""
    for library in ("pyarrow", "polars"):
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
        # Names may be patterns, for selectors too in some versions: this one fits the name alone.
        column = table.select(polars.col(f"^{re.escape(name)}$"))
        for lines in blocks(n_lines, LINES_AT_ONCE):
            part = column.slice(lines.start, LINES_AT_ONCE)
            batch = _column(_foreign(path, "Parquet", partial(_collected, part)))
            if not len(batch):  # there are fewer lines than the file says: so to its end
                return
            yield batch

    names = table.collect_schema().names()
    return ParquetTable(names, n_lines, nw.Implementation.POLARS, batches)


def _collected(part: Any) -> Any:
    return _sound(part.collect())


def _sound(frame: Any) -> Any:
    """A data frame of polars, if its text can be had: some versions panic at damaged text only then."""
    import polars

    for column in frame.select(polars.selectors.string()):
        column.to_numpy()
    return frame


def _by_pyarrow(path: Path) -> ParquetTable:
    import pyarrow.parquet

    # Without pre_buffer, which would hold the whole column as it is in the file.
    file = pyarrow.parquet.ParquetFile(path, pre_buffer=False)

    def batches(name: str) -> Iterator[nw.Series[Any]]:
        parts = file.iter_batches(LINES_AT_ONCE, columns=[name])

        def next_part() -> Any:
            part = next(parts, None)
            if part is None:
                return None
            return _frame(pyarrow.Table.from_batches([part]).select([name]))

        while (part := _foreign(path, "Parquet", next_part)) is not None:
            yield _column(part)

    names, n_lines = file.schema_arrow.names, file.metadata.num_rows
    known = nw.Implementation.POLARS if find_spec("polars") else nw.Implementation.PYARROW
    return ParquetTable(names, n_lines, known, batches)


def _frame(table: Any) -> Any:
    """A table of pyarrow as the data frame that users get, if it is sound."""
    table.validate(full=True)  # text is UTF-8, and offsets stay inside
    if not find_spec("polars"):
        return table
    import polars

    return polars.from_arrow(table)


def _column(table: Any) -> nw.Series[Any]:
    """The only column of a table."""
    return next(nw.from_native(table, eager_only=True).iter_columns())


def _read_mtx(path: Path, duplicates: Duplicates) -> Observations:
    triplets, shape, sparse = parse_matrix_market(file_content(path), str(path))
    rows, columns = map(np.arange, shape)
    origin = Origin("sparse" if sparse else "matrix")
    return Observations.from_positions(triplets, rows, columns, origin, duplicates)


def _read_npy(path: Path, duplicates: Duplicates) -> Observations:
    matrix = _foreign(path, ".npy", lambda: load_array(path))
    return Observations.from_matrix(matrix, duplicates=duplicates)


def _read_npz(path: Path, duplicates: Duplicates) -> Observations:
    arrays = _foreign(path, ".npz", lambda: load_arrays(path))
    if is_sparse(arrays):
        matrix = _foreign(path, "sparse .npz", lambda: sparse_matrix(arrays, str(path)))
        return Observations.from_matrix(matrix, duplicates=duplicates)
    if set(arrays) == set(TRIPLET_ARRAYS):
        return Observations.from_triplets(**arrays, duplicates=duplicates)
    if len(arrays) == 1:
        return Observations.from_matrix(*arrays.values(), duplicates=duplicates)
    raise ReadError(
        f"{path} must hold one array, or {', '.join(TRIPLET_ARRAYS)}, or a sparse matrix; it holds "
        f"{', '.join(arrays) or 'nothing'}."
    )


MATRIX_READERS: dict[str, Callable[[Path, Duplicates], Observations]] = {
    ".mtx": _read_mtx,
    ".mm": _read_mtx,
    ".npy": _read_npy,
    ".npz": _read_npz,
}
