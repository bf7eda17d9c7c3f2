"""Tables out, as Parquet: one after the other, so that a stream of them takes the memory of one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import narwhals as nw

from fillrank.errors import InputError, NotSupportedError
from fillrank.storage.atomic_write import write_atomically
from fillrank.table.frames import is_table


def write_parquet(path: str | os.PathLike[str], tables: Any) -> None:
    """Write a table, or a stream of tables with the same columns, as one Parquet file.

    Parameters
    ----------
    path : path
        An existing file is replaced once the new one is whole.
    tables : data frame or iterable of data frames
        Such as ``model.predict_missing(level=0.9)``: each is written before the next is asked for.

    Examples
    --------
    >>> import fillrank as fr, os, tempfile
    >>> data, _ = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> model = fr.SoftImpute(penalty=1.0).fit(data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "missing.parquet")
    ...     fr.write_parquet(path, model.predict_missing())
    ...     len(fr.read(path))
    1200
    """
    stream = iter([tables]) if is_table(tables) else iter(tables)
    first = next(stream, None)
    if first is None:
        raise InputError("there is no table to write: the stream was empty.")
    with write_atomically(path) as temporary:
        _write(temporary, first, stream)


def _write(path: Path, first: Any, rest: Iterable[Any]) -> None:
    pa, parquet = _pyarrow()
    table = _as_arrow(first)
    with parquet.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        for number, each in enumerate(map(_as_arrow, rest), start=2):
            try:
                writer.write_table(each.cast(table.schema))
            except (pa.ArrowInvalid, ValueError) as error:
                raise InputError(
                    "all tables must have the same columns; "
                    f"number {number} differs from the first: {error}"
                ) from error


def _as_arrow(table: Any) -> Any:
    if not is_table(table):
        raise InputError(
            f"a table must be a pandas, polars or pyarrow data frame; got {type(table).__name__}."
        )
    return nw.from_native(table, eager_only=True).to_arrow()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise NotSupportedError(
            'Parquet is written by pyarrow, which is not installed. Do: pip install "fillrank[tables]"'
        ) from error
    return pyarrow, pyarrow.parquet
