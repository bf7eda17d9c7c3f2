"""Long tables in partitions: Dask data frames, and Parquet files that no machine reads alone."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import narwhals as nw

from fillrank.errors import InputError, NotSupportedError, ReadError
from fillrank.table.frames import check_fields
from fillrank.table.layout import Layout, LongFields, given_fields, named_fields


class Lines(NamedTuple):
    """A Dask data frame with a line for each entry, and which of its fields are which."""

    frame: Any
    fields: LongFields


def is_partitioned(data: Any) -> bool:
    """Whether data lie, or are to be read, in partitions: what `lay_out` takes."""
    return isinstance(data, Lines | str | os.PathLike) or nw.dependencies.is_dask_dataframe(data)


def open_lines(
    source: Any, row: Any = None, column: Any = None, value: Any = None, layout: Layout = "auto"
) -> Lines:
    """Take a long table in partitions, of which nothing is read yet but what its fields are.

    Parameters
    ----------
    source : Dask data frame, or path
        The path of a Parquet file, of a folder of them, or a pattern such as "ratings/*.parquet"; also
        an address of a bucket, if fsspec can open it. Files are taken in the order of the numbers in
        their names: part.2 before part.10.
    row, column, value : name of a field
    layout : {"auto", "long", "wide"}
        Without those three names, "auto" knows a long table by the names of its fields, as
        `Observations.from_table` does, and "long" takes the first three.
    """
    fields = given_fields(row, column, value, layout)
    frame = open_frame(source)
    names = list(frame.columns)
    fields = fields or named_fields(names, layout)
    if fields is None:
        raise InputError(
            "on a cluster a table must be long, with a line for each entry; the fields here are "
            f"{', '.join(map(repr, names))}. Name three of them row, column and value."
        )
    check_fields(names, fields)
    return Lines(frame[list(fields)], fields)


def open_frame(source: Any) -> Any:
    """A Dask data frame as it is; or that of the Parquet files of a path or pattern."""
    if nw.dependencies.is_dask_dataframe(source):
        return source
    if isinstance(source, str | os.PathLike):
        return _open(source)
    raise InputError(
        "a Dask data frame is needed, or the path of Parquet files; got "
        f"{type(source).__name__}. dask.dataframe.from_pandas makes one of a pandas table."
    )


def _open(path: str | os.PathLike[str]) -> Any:
    try:
        frame = dask_dataframe().read_parquet(os.fspath(path))
        if len(frame.columns):  # a pattern that nothing fits gives an empty frame
            return frame
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # pyarrow's own errors are among these
        raise ReadError(f"{path} cannot be read as Parquet: {error}") from error
    raise ReadError(
        f"there is no file {path}. Look at the pattern and the folder: this machine and all workers "
        "must see the files under the same name."
    )


def dask_dataframe() -> Any:
    """Dask's module of data frames, or a word on how to get it."""
    try:
        import dask.dataframe
    except ImportError as error:
        raise NotSupportedError(
            'tables in partitions need Dask, which is not installed. Do: pip install "fillrank[dask]"'
        ) from error
    return dask.dataframe
