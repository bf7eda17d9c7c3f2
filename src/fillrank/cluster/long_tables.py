"""Long tables in partitions: Dask data frames, and Parquet files too large for one machine."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import narwhals as nw

from fillrank.errors import InputError, NotSupportedError, ReadError
from fillrank.table.frames import check_fields
from fillrank.table.layout import Layout, LongFields, given_fields, named_fields


class LongTable(NamedTuple):
    """A Dask data frame with a line for each entry, and its columns for row, column and value."""

    frame: Any
    fields: LongFields


def is_partitioned(data: Any) -> bool:
    """Whether data are a table in partitions, or its path."""
    return isinstance(data, LongTable | str | os.PathLike) or nw.dependencies.is_dask_dataframe(
        data
    )


def open_long_table(
    source: Any, row: Any = None, column: Any = None, value: Any = None, layout: Layout = "auto"
) -> LongTable:
    """Open a long table in partitions. Only the names of its columns are read.

    Parameters
    ----------
    source : Dask data frame or path
        The path of a Parquet file, of a folder of them, or a pattern such as "ratings/*.parquet"; or a
        URL that fsspec can open. Files are read in the order of the numbers in their names: part.2
        before part.10.
    row, column, value : name, optional
        The columns with the row labels, the column labels and the values.
    layout : {"auto", "long", "wide"}
        Without those names, "auto" finds a long table by the names of its columns, as
        `Observations.from_table` does, and "long" uses the first three columns.
    """
    fields = given_fields(row, column, value, layout)
    frame = open_frame(source)
    names = list(frame.columns)
    fields = fields or named_fields(names, layout)
    if fields is None:
        raise InputError(
            "on a cluster a table must be long, with a line for each entry; the columns are "
            f"{', '.join(map(repr, names))}. Set row, column and value to the names of three of them."
        )
    check_fields(names, fields)
    return LongTable(frame[list(fields)], fields)


def open_frame(source: Any) -> Any:
    """Open Parquet files, by path or pattern, as a Dask data frame; or return one as it is."""
    if nw.dependencies.is_dask_dataframe(source):
        return source
    if isinstance(source, str | os.PathLike):
        return _open_parquet(source)
    raise InputError(
        "a Dask data frame or the path of Parquet files is needed; got "
        f"{type(source).__name__}. Convert a pandas table with dask.dataframe.from_pandas."
    )


def _open_parquet(path: str | os.PathLike[str]) -> Any:
    try:
        frame = import_dask_dataframe().read_parquet(os.fspath(path))
        if len(frame.columns):  # a pattern without matches gives an empty frame
            return frame
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # includes the errors of pyarrow
        raise ReadError(f"{path} cannot be read as Parquet: {error}") from error
    raise ReadError(
        f"there is no file {path}. Check the pattern and the folder: this machine and all workers need "
        "the files at the same path."
    )


def import_dask_dataframe() -> Any:
    """Import dask.dataframe; raise NotSupportedError if it is not installed."""
    try:
        import dask.dataframe
    except ImportError as error:
        raise NotSupportedError(
            'tables in partitions need Dask, which is not installed. Run: pip install "fillrank[dask]"'
        ) from error
    return dask.dataframe
