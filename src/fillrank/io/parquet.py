"""Parquet files: reading in batches, and writing."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.errors import InputError, NotSupportedError, ReadError, Setting
from fillrank.io.files import library_errors
from fillrank.runtime.memory import check_memory
from fillrank.storage.atomic_write import write_atomically
from fillrank.table.entries import compact_floats, iter_blocks
from fillrank.table.frame_columns import number_column, real_column
from fillrank.table.frames import Origin, check_fields, is_data_frame
from fillrank.table.labels import LabelEncoder, as_labels
from fillrank.table.layout import Layout, LongFields, named_fields, refuse_for_long
from fillrank.table.number_text import StyleOptions
from fillrank.table.observations import Observations
from fillrank.table.triplets import (
    Duplicates,
    Triplets,
    errors_to_weights,
    group_by_column,
    with_intervals,
)
from fillrank.table.weights import WeightField
from fillrank.table.wide_frames import WideOptions

BATCH_LINES = 2**21  # of a column
# Memory for positions, a value and whether it is missing, and for a weight; labels are not included.
_BYTES_PER_LINE, _BYTES_PER_WEIGHT = 13, 8
_INSTALL = 'Run: pip install "fillrank[tables]"'


class ParquetFile(NamedTuple):
    """A Parquet file: a path or the content of an open file, and its name in messages."""

    source: Path | io.BytesIO
    name: str


class ParquetTable(NamedTuple):
    """The columns of one or more Parquet files, whose lines have not been read yet."""

    names: list[str]
    n_lines: int
    backend: nw.Implementation
    batches: Callable[[str], Iterator[nw.Series[Any]]]
    """``batches(name)`` reads a column in batches of lines."""


def read_parquet_table(
    files: Sequence[ParquetFile],
    fields: LongFields | None,
    layout: Layout,
    duplicates: Duplicates,
    weight: WeightField | None = None,
    options: WideOptions = WideOptions(),  # noqa: B008
) -> Observations:
    """Read observations from Parquet; `fillrank.io.read.read` documents the rules."""
    table = open_parquet(files)
    found = fields or named_fields(table.names, layout)
    if found is not None and table.n_lines and len(set(table.names)) == len(table.names):
        refuse_for_long(options.label, options.ignore, options.only)
        return _read_long(table, found, duplicates, weight, options)
    if len(files) > 1:
        raise InputError(
            f"{len(files)} files together must be one long table, with a line for each entry; their "
            f"columns are {', '.join(map(repr, table.names))}",
            advice=(
                "Set ",
                Setting("row", ...),
                ", ",
                Setting("column", ...),
                " and ",
                Setting("value", ...),
                " to three of them, or read the files one by one.",
            ),
        )
    check_memory(
        8 * table.n_lines * len(table.names),
        f"a wide table of {table.n_lines:,} rows and {len(table.names):,} columns",
        "Read some of its rows; or save it as a long table, with a line for each observed value.",
    )
    frame = read_parquet(*files[0])
    return Observations.from_frame(frame, fields, layout, duplicates, weight, options)


def read_parquet(source: Path | io.BytesIO, name: str | None = None) -> Any:
    """Read a data frame: of polars if it is installed, otherwise of pyarrow."""
    name = str(source) if name is None else name
    with library_errors(name, "Parquet"):
        if _parquet_library(name) == "polars":
            import polars

            return _check_text(polars.read_parquet(source, glob=False))
        import pyarrow.parquet

        return _from_arrow(pyarrow.parquet.ParquetFile(source).read())


def open_parquet(files: Sequence[ParquetFile]) -> ParquetTable:
    """Open files with the same columns as one table, with the columns of `read_parquet`."""
    open_one = _open_by_polars if _parquet_library(files[0].name) == "polars" else _open_by_pyarrow
    tables = []
    for file in files:
        with library_errors(file.name, "Parquet"):
            tables.append(open_one(file))
    first = tables[0]
    for file, table in zip(files, tables, strict=True):
        if table.n_lines < 0:
            raise ReadError(
                f"not a complete Parquet file: it declares {table.n_lines} lines", place=file.name
            )
        if table.names != first.names:
            raise ReadError(
                f"all files must have the same columns; {files[0].name} has "
                f"{', '.join(first.names)}, but {file.name} has {', '.join(table.names)}."
            )

    def batches(name: str) -> Iterator[nw.Series[Any]]:
        for file, table in zip(files, tables, strict=True):
            yield from _checked_batches(file.name, table, name)

    return first._replace(n_lines=sum(table.n_lines for table in tables), batches=batches)


def _checked_batches(source: str, table: ParquetTable, name: str) -> Iterator[nw.Series[Any]]:
    """The batches of a column; raise ReadError if it does not have the declared number of lines."""
    n_left = table.n_lines
    for batch in table.batches(name):
        n_left -= len(batch)
        if n_left < 0:
            break
        yield batch
    if n_left:
        raise ReadError(
            f"not a complete Parquet file: it declares {table.n_lines:,} lines, and column "
            f"{name!r} has {'more' if n_left < 0 else 'fewer'}",
            place=source,
        )


def _parquet_library(name: str) -> str:
    """The library that reads: pyarrow if installed, because some forged files abort polars."""
    for library in ("pyarrow", "polars"):
        if find_spec(library):
            return library
    raise ReadError(
        "Parquet requires polars or pyarrow, and neither is installed", place=name, advice=_INSTALL
    )


def _open_by_polars(file: ParquetFile) -> ParquetTable:
    import polars

    table = polars.scan_parquet(file.source, glob=False)
    n_lines = table.select(polars.len()).collect().item()

    def batches(name: str) -> Iterator[nw.Series[Any]]:
        # Some versions take names as patterns, also in selectors. This pattern matches only the name.
        column = table.select(polars.col(f"^{re.escape(name)}$"))
        for lines in iter_blocks(n_lines, BATCH_LINES):
            with library_errors(file.name, "Parquet"):
                part = _check_text(column.slice(lines.start, BATCH_LINES).collect())
            if not len(part):  # there are fewer lines than the file declares
                return
            yield _only_column(part)

    names = table.collect_schema().names()
    return ParquetTable(names, n_lines, nw.Implementation.POLARS, batches)


def _check_text(frame: Any) -> Any:
    """Return a data frame of polars, if its text is valid: some versions panic only on access."""
    import polars

    for column in frame.select(polars.selectors.string()):
        column.to_numpy()
    return frame


def _open_by_pyarrow(file: ParquetFile) -> ParquetTable:
    import pyarrow.parquet

    # pre_buffer would hold the complete column, as it is in the file, in memory.
    parquet = pyarrow.parquet.ParquetFile(file.source, pre_buffer=False)

    def batches(name: str) -> Iterator[nw.Series[Any]]:
        parts = parquet.iter_batches(BATCH_LINES, columns=[name])
        while True:
            with library_errors(file.name, "Parquet"):
                part = next(parts, None)
                if part is None:
                    return
                frame = _from_arrow(pyarrow.Table.from_batches([part]).select([name]))
            yield _only_column(frame)

    names, n_lines = parquet.schema_arrow.names, parquet.metadata.num_rows
    backend = nw.Implementation.POLARS if find_spec("polars") else nw.Implementation.PYARROW
    return ParquetTable(names, n_lines, backend, batches)


def _from_arrow(table: Any) -> Any:
    """Convert a valid table of pyarrow to the data frame that users get."""
    table.validate(full=True)  # text is UTF-8, and offsets are in range
    if not find_spec("polars"):
        return table
    import polars

    return polars.from_arrow(table)


def _only_column(table: Any) -> nw.Series[Any]:
    return next(nw.from_native(table, eager_only=True).iter_columns())


# Long tables are read column by column, and only positions and values are in memory for all lines. The
# values come first, then the row labels, then the column labels: in the order in which
# `Observations.from_table` checks them, so that errors are the same.


def _read_long(
    table: ParquetTable,
    fields: LongFields,
    duplicates: Duplicates,
    weight: WeightField | None,
    options: WideOptions,
) -> Observations:
    check_fields(table.names, fields if weight is None else [*fields, weight.name])
    check_memory(
        (_BYTES_PER_LINE + (0 if weight is None else _BYTES_PER_WEIGHT)) * table.n_lines,
        f"the entries of {table.n_lines:,} lines",
        "Read some of them, or fit the table on a cluster.",
    )
    triplets, row_labels, column_labels, intervals = _read_triplets(table, fields, weight, options)
    by_column = group_by_column(triplets, row_labels, column_labels)
    del triplets  # which would take memory while the entries are sorted
    origin = Origin("long", table.backend, *fields)
    return Observations.from_columns(
        by_column, row_labels, column_labels, origin, duplicates, intervals=intervals
    )


def _read_triplets(
    table: ParquetTable, fields: LongFields, weight: WeightField | None, options: WideOptions
) -> tuple[Triplets, np.ndarray, np.ndarray, np.ndarray | None]:
    """The entries, row labels, column labels, and the intervals of values that are not exact."""
    values, is_observed, upper = _read_values(table, fields.value, options)
    rows, row_labels = _read_labels(table, fields.row, "row", is_observed)
    columns, column_labels = _read_labels(table, fields.column, "column", is_observed)
    triplets, intervals = Triplets(rows, columns, values), None
    if upper is not None:
        triplets, intervals = with_intervals(triplets, upper, row_labels, column_labels)
    if weight is not None:
        weights = _read_observed(table, weight.name, is_observed, real_column, np.float64)
        triplets = triplets._replace(weights=weights)
        if weight.is_error:
            triplets = errors_to_weights(triplets, row_labels, column_labels)
    return triplets, row_labels, column_labels, intervals


def _read_values(
    table: ParquetTable, field: str, options: WideOptions
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The observed values, in float32 if that is exact; which lines have one; and their upper ends.

    If some values are limits, the values are their lower ends. The upper ends are None if all values are
    exact.
    """
    values: np.ndarray = np.zeros(table.n_lines, dtype=np.float32)
    is_observed = np.empty(table.n_lines, dtype=bool)
    n_lines = n_values = 0
    limits: list[tuple[int, np.ndarray]] = []
    # A batch of text must not be read in another style than the batches before it.
    decimal, thousands, *_ = options.style
    style = StyleOptions(decimal or ".", thousands or "")
    for column in table.batches(field):
        batch, upper = number_column(column, options.missing, style)
        observed = ~np.isnan(batch)
        is_observed[n_lines : n_lines + len(batch)] = observed
        n_lines += len(batch)
        if upper is not None:
            limits.append((n_values, upper[observed]))
        batch = compact_floats(batch[observed])
        if batch.dtype != np.float32:
            values = values.astype(batch.dtype, copy=False)
        values[n_values : n_values + len(batch)] = batch
        n_values += len(batch)
    return values[:n_values], is_observed[:n_lines], _upper_ends(values[:n_values], limits)


def _upper_ends(values: np.ndarray, limits: Sequence[tuple[int, np.ndarray]]) -> np.ndarray | None:
    """The values, with upper ends in the batches that have limits."""
    if not limits:
        return None
    upper = values.astype(np.float64)
    for start, ends in limits:
        upper[start : start + len(ends)] = ends
    return upper


def _read_labels(
    table: ParquetTable, field: str, axis: str, is_observed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The position of the label of each line that has a value, and all labels."""
    encoder = LabelEncoder(axis)

    def encode(column: nw.Series[Any]) -> np.ndarray:
        return encoder.encode(as_labels(column.to_numpy()))

    index = _read_observed(table, field, is_observed, encode, np.int32)
    return index, encoder.labels()


def _read_observed(
    table: ParquetTable,
    field: str,
    is_observed: np.ndarray,
    convert: Callable[[nw.Series[Any]], np.ndarray],
    dtype: type[np.number[Any]],
) -> np.ndarray:
    """A column as an array, converted batch by batch; only the lines that have a value."""
    found = np.empty(np.count_nonzero(is_observed), dtype=dtype)
    n_lines = n_entries = 0
    for column in table.batches(field):
        part = convert(column)[is_observed[n_lines : n_lines + len(column)]]
        found[n_entries : n_entries + len(part)] = part
        n_lines += len(column)
        n_entries += len(part)
    return found[:n_entries]


# Writing.


def write_parquet(path: str | os.PathLike[str], tables: Any) -> None:
    """Write a table, or a stream of tables with the same columns, as one Parquet file.

    Parameters
    ----------
    path : path
        An existing file is replaced once the new one is complete.
    tables : data frame or iterable of data frames
        For example ``model.predict_missing(level=0.9)``. Each table is written before the next one is
        requested.

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
    stream = iter([tables]) if is_data_frame(tables) else iter(tables)
    first = next(stream, None)
    if first is None:
        raise InputError("there is no table to write: the stream was empty.")
    with write_atomically(path) as temporary:
        _write(temporary, first, stream)


def _write(path: Path, first: Any, rest: Iterable[Any]) -> None:
    pa, parquet = _import_pyarrow()
    table = _to_arrow(first)
    with parquet.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        for number, each in enumerate(map(_to_arrow, rest), start=2):
            try:
                writer.write_table(each.cast(table.schema))
            except (pa.ArrowInvalid, ValueError) as error:
                raise InputError(
                    "all tables must have the same columns; "
                    f"number {number} differs from the first: {error}"
                ) from error


def _to_arrow(table: Any) -> Any:
    if not is_data_frame(table):
        raise InputError(
            f"a table must be a pandas, polars or pyarrow data frame; got {type(table).__name__}."
        )
    return nw.from_native(table, eager_only=True).to_arrow()


def _import_pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise NotSupportedError(
            "writing Parquet requires pyarrow, which is not installed", advice=_INSTALL
        ) from error
    return pyarrow, pyarrow.parquet
