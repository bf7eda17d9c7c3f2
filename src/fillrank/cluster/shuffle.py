"""The shuffle of a long table into partitions by row, and again by column.

Everything is computed by tasks, so Dask computes what is lost with a worker again, from the files. That
is also why the shuffle method is "tasks": the only one of Dask in which every piece is a separate task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.cluster.labels import (
    EncodedPartition,
    EncodedTable,
    ValueSummary,
    encode_table,
    sum_values,
    summarize_values,
)
from fillrank.cluster.long_tables import LongTable, import_dask_dataframe, open_long_table
from fillrank.cluster.monitor import Monitor
from fillrank.cluster.partitions import Assignment, Partition, PartitionedTable, SidePartitions
from fillrank.cluster.value_codes import DataFormat, LevelCodes, StandardUnits, ValueCode
from fillrank.errors import InputError
from fillrank.table.entries import group_by_row, transpose
from fillrank.table.frames import Origin
from fillrank.table.labels import SHOWN, format_label
from fillrank.table.latent import code_levels
from fillrank.table.levels import ENTRIES_PER_LEVEL, rating_scale
from fillrank.table.observations import Observations
from fillrank.table.units import Measure, Span, compute_units

if TYPE_CHECKING:
    from distributed import Client, Future

Cells = list[tuple[int, int]]


class _Side(NamedTuple):
    """The side that entries are grouped by, the other side, its size, and the code of the values."""

    own: str
    other: str
    n_others: int
    code: ValueCode


def shuffle_table(
    source: Any,
    client: Client,
    data_format: DataFormat,
    check_memory: Callable[[int, tuple[int, int]], None],
) -> PartitionedTable:
    """Shuffle a long table into partitions on the workers of a client, in standard units or as levels.

    The bits are those of `Observations.from_table` and `standardise` or `latent_data` for the same
    lines.

    Parameters
    ----------
    source : Dask data frame, path or LongTable
        As for `open_long_table`.
    client : distributed.Client
    data_format : DataFormat
    check_memory : callable
        Called with the number of entries and the shape as soon as they are known, before the shuffle.
    """
    long = source if isinstance(source, LongTable) else open_long_table(source)
    monitor = Monitor(client)
    table = encode_table(long, monitor)
    (row_labels, row_counts), (column_labels, column_counts) = table.rows, table.columns
    check_memory(int(row_counts.sum()), (row_counts.size, column_counts.size))
    summaries = monitor.gather(client.map(summarize_values, table.partitions))
    span = _merge_spans(summaries)

    def total(measure: Measure) -> int:
        return sum(monitor.gather(client.map(sum_values, table.partitions, measure=measure)))

    code: ValueCode
    location, scale, coding = 0.0, 1.0, None
    if data_format.ordered:
        coding = code_levels(*_merge_levels(summaries), column_labels)
        code = LevelCodes.of(coding, data_format.dtype)
    else:
        location, scale = compute_units(span, total, data_format.centre)
        code = StandardUnits(location, scale, data_format.dtype)
    rows, columns = _shuffle(monitor, table, code)
    _check_duplicates(monitor, table, rows.partitions)
    without_entries = Observations(
        np.zeros(len(row_labels) + 1, dtype=np.int64),
        np.zeros(0, dtype=np.int32),
        np.zeros(0, dtype=np.float32),
        row_labels,
        column_labels,
        Origin("long", nw.Implementation.PANDAS, *long.fields),
    )
    value_range = _value_range(summaries, span.n_values)
    return PartitionedTable(without_entries, rows, columns, location, scale, value_range, coding)


def _merge_spans(summaries: Sequence[ValueSummary]) -> Span:
    spans = [summary.span for summary in summaries if summary.span is not None]
    if not spans:
        raise InputError("at least one value must be observed; all are missing.")
    lows, highs, counts = zip(*spans, strict=True)
    return Span(min(lows), max(highs), sum(counts))


def _merge_levels(summaries: Sequence[ValueSummary]) -> tuple[np.ndarray, np.ndarray]:
    """The levels of all partitions, ascending, and how often each occurs."""
    _, levels, counts = zip(*summaries, strict=True)
    merged, places = np.unique(np.concatenate(levels), return_inverse=True)
    totals = np.zeros(merged.size, dtype=np.int64)
    np.add.at(totals, places, np.concatenate(counts))
    return merged, totals


def _value_range(summaries: Sequence[ValueSummary], n_values: int) -> tuple[float, float] | None:
    levels, _ = _merge_levels(summaries)
    # The scale depends only on the levels and on whether there are enough values for them.
    return rating_scale(np.resize(levels, min(n_values, ENTRIES_PER_LEVEL * levels.size)))


def _shuffle(
    monitor: Monitor, table: EncodedTable, code: ValueCode
) -> tuple[SidePartitions, SidePartitions]:
    """Send every entry to the worker that has its row, and to the one that has its column."""
    client = monitor.client
    frames = client.map(
        _encode_values, table.partitions, table.row_positions, table.column_positions, code=code
    )
    no_index = np.empty(0, dtype=np.int32)
    meta = _make_frame(no_index, no_index, code.encode(np.empty(0)))
    entries = import_dask_dataframe().from_delayed(frames, meta=meta, verify_meta=False)
    rows, columns = (_pad_to_two(side.counts) for side in (table.rows, table.columns))
    assignment = Assignment(monitor)
    by_row, by_column = (
        _shuffle_by(side, entries, counts, assignment, client)
        for side, counts in (
            (_Side("row", "column", columns.size, code), rows),
            (_Side("column", "row", rows.size, code), columns),
        )
    )
    assignment.wait([*by_row.partitions, *by_column.partitions])
    return by_row, by_column


def _pad_to_two(counts: np.ndarray) -> np.ndarray:
    """The numbers of entries, with that of an additional empty row if there is only one."""
    return counts if counts.size > 1 else np.append(counts, 0)


def _make_frame(rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Any:
    import pandas

    return pandas.DataFrame({"row": rows, "column": columns, "value": values})


def _encode_values(
    partition: EncodedPartition, rows: np.ndarray, columns: np.ndarray, code: ValueCode
) -> Any:
    """The entries of a partition, by positions in the table and with codes for their values."""
    i, j, values, *_ = partition.triplets
    return _make_frame(rows[i], columns[j], code.encode(values))


def _shuffle_by(
    side: _Side, entries: Any, counts: np.ndarray, assignment: Assignment, client: Client
) -> SidePartitions:
    """Shuffle entries by one side, into partitions in proportion to the threads of the workers."""
    pointers = np.concatenate([[0], np.cumsum(counts)])
    bounds = assignment.bounds(pointers)
    numbered = entries.map_partitions(
        _add_partition, side.own, bounds, meta=_add_partition(entries._meta, side.own, bounds)
    )
    divisions = list(range(bounds.size))
    shuffled = numbered.set_index("partition", divisions=divisions, shuffle_method="tasks")
    frames = client.compute(shuffled.to_delayed())
    partitions = [
        assignment.submit(p, make_partition, frame, side, *rows)
        for p, (frame, rows) in enumerate(zip(frames, pairwise(bounds.tolist()), strict=True))
    ]
    return SidePartitions(pointers, bounds, partitions)


def _add_partition(entries: Any, side: str, bounds: np.ndarray) -> Any:
    """Entries with a column for the number of the partition that each belongs to."""
    return entries.assign(partition=np.searchsorted(bounds, entries[side], side="right") - 1)


def make_partition(entries: Any, side: _Side, start: int, stop: int) -> Partition:
    """A partition with the rows from ``start`` to ``stop``, sorted by row and column."""
    own, other = entries[side.own].to_numpy() - start, entries[side.other].to_numpy()
    by_other = group_by_row(other, own, entries["value"].to_numpy(), (side.n_others, stop - start))
    return Partition(start, side.code.decode(transpose(by_other, stop - start)))


# Duplicates.


def _check_duplicates(monitor: Monitor, table: EncodedTable, partitions: list[Future]) -> None:
    """Raise InputError if a cell has several values; ``partitions`` are those by row."""
    found = monitor.gather(monitor.client.map(find_duplicates, partitions))
    cells = [cell for _, first in found for cell in first][:SHOWN]
    if cells:
        count = sum(count for count, _ in found)
        raise InputError(_duplicates_message(monitor, table, count, cells))


def find_duplicates(partition: Partition) -> tuple[int, Cells]:
    """The number of cells of a partition with several values, and the first of them."""
    pointers, columns, *_ = partition.entries
    rows = np.repeat(np.arange(pointers.size - 1), np.diff(pointers))
    repeated = np.flatnonzero((columns[1:] == columns[:-1]) & (rows[1:] == rows[:-1]))
    cells = np.unique(np.stack([rows[repeated] + partition.first_row, columns[repeated]]), axis=1)
    return cells.shape[1], [(int(i), int(j)) for i, j in cells[:, :SHOWN].T]


def get_values(
    partition: EncodedPartition, rows: np.ndarray, columns: np.ndarray, cells: Cells
) -> list[list[float]]:
    """The first few values of each of some cells in a partition, in order."""
    i, j, values, *_ = partition.triplets
    i, j = rows[i], columns[j]
    return [values[(i == row) & (j == column)][: SHOWN + 1].tolist() for row, column in cells]


def _duplicates_message(monitor: Monitor, table: EncodedTable, count: int, cells: Cells) -> str:
    tasks = monitor.client.map(
        get_values, table.partitions, table.row_positions, table.column_positions, cells=cells
    )
    shown = []
    for (i, j), found in zip(cells, zip(*monitor.gather(tasks), strict=True), strict=True):
        values = [value for partition in found for value in partition]
        listed = ", ".join(f"{value:g}" for value in values[:SHOWN])
        more = ", ..." if len(values) > SHOWN else ""
        row, column = format_label(table.rows.labels[i]), format_label(table.columns.labels[j])
        shown.append(f"  row {row}, column {column}: {listed}{more}")
    heading = f"each (row, column) pair can have one value; {count} have more:"
    advice = "Merge them first, for example with frame.groupby([row, column]).mean() in Dask."
    return "\n".join([heading, *shown, advice])
