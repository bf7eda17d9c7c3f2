"""A long table in partitions, laid out over workers: by row, and again by column.

Everything here is a task with a history: what is lost with a worker, Dask makes again from the files.
That is also why entries change places by Dask's shuffle of the kind "tasks": of its shuffles, it is
the one in which every piece is a task of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.cluster.lines import Lines, dask_dataframe, open_lines
from fillrank.cluster.monitor import Monitor
from fillrank.cluster.names import (
    Brief,
    Names,
    Numbered,
    brief_of,
    merge,
    names_of,
    number,
    positions_of,
    total_of,
)
from fillrank.cluster.partitions import Assignment, Partition, PartitionedTable, SidePartitions
from fillrank.cluster.repeats import Table, check_repeats
from fillrank.errors import InputError
from fillrank.table.entries import group_by_row, transpose
from fillrank.table.frames import Origin
from fillrank.table.levels import ENTRIES_PER_LEVEL, rating_scale
from fillrank.table.units import Measure, Span, compute_units


class Standardised(NamedTuple):
    """How values become standard units: (value - location) / scale, in this precision."""

    location: float
    scale: float
    dtype: np.dtype


class _Side(NamedTuple):
    """Which side entries go by, which is the other, and how long that is."""

    own: str
    other: str
    n_others: int


def lay_out(
    source: Any,
    client: Any,
    centre: bool,
    dtype: np.dtype,
    check_room: Callable[[int, tuple[int, int]], None],
) -> PartitionedTable:
    """Lay a long table out over the workers of a client, in standard units.

    The same bits as those of `Observations.from_table` and `standardise` for the same lines.

    Parameters
    ----------
    source : Dask data frame, path, or Lines
        As `open_lines` takes it.
    client : distributed.Client
    centre : bool
        Whether the overall mean is taken off.
    dtype : dtype
        Of the values in standard units.
    check_room : callable
        Is told the numbers of entries, and of rows and columns, as soon as they are known: before
        entries begin to change places.
    """
    lines = source if isinstance(source, Lines) else open_lines(source)
    monitor = Monitor(client)
    table = _number(lines, monitor)
    check_room(int(table.rows.counts.sum()), (table.rows.counts.size, table.columns.counts.size))
    briefs = monitor.gather(client.map(brief_of, table.numbered))
    span = _span(briefs)

    def total(measure: Measure) -> int:
        return sum(monitor.gather(client.map(total_of, table.numbered, measure=measure)))

    location, scale = compute_units(span, total, centre)
    rows, columns = _shuffle(monitor, table, Standardised(location, scale, np.dtype(dtype)))
    check_repeats(monitor, table, rows.partitions)
    return PartitionedTable(
        table.rows.labels,
        table.columns.labels,
        Origin("long", nw.Implementation.PANDAS, *lines.fields),
        rows,
        columns,
        location,
        scale,
        _value_range(briefs, span.n_values),
    )


def _number(lines: Lines, monitor: Monitor) -> Table:
    """Number all names; the client learns them, and how many entries each has."""
    import dask

    client, numbering = monitor.client, dask.delayed(number)
    parts = lines.frame.to_delayed()
    numbered = client.compute([numbering(part, lines.fields) for part in parts])
    rows, columns = (
        client.submit(merge, client.map(names_of, numbered, side=side), side)
        for side in ("row", "column")
    )
    row_positions, column_positions = (
        [client.submit(positions_of, merged, p) for p in range(len(parts))]
        for merged in (rows, columns)
    )
    row_names, column_names = monitor.gather(client.map(_names_of_all, [rows, columns]))
    return Table(numbered, row_positions, column_positions, row_names, column_names)


def _names_of_all(merged: Any) -> Names:
    return merged.names


def _span(briefs: Sequence[Brief]) -> Span:
    spans = [brief.span for brief in briefs if brief.span is not None]
    if not spans:
        raise InputError("at least one value must be observed; all are missing.")
    lows, highs, counts = zip(*spans, strict=True)
    return Span(min(lows), max(highs), sum(counts))


def _value_range(briefs: Sequence[Brief], n_values: int) -> tuple[float, float] | None:
    levels = np.unique(np.concatenate([brief.levels for brief in briefs]))
    # A scale depends on the levels, and on whether there are enough values: these stand for all.
    return rating_scale(np.resize(levels, min(n_values, ENTRIES_PER_LEVEL * levels.size)))


def _shuffle(
    monitor: Monitor, table: Table, units: Standardised
) -> tuple[SidePartitions, SidePartitions]:
    """Give every entry to the worker that has its row, and again to the one that has its column."""
    client = monitor.client
    placed = client.map(
        _place, table.numbered, table.row_positions, table.column_positions, units=units
    )
    nothing = np.empty(0, dtype=np.int32)
    meta = _frame(nothing, nothing, np.empty(0, dtype=units.dtype))
    entries = dask_dataframe().from_delayed(placed, meta=meta, verify_meta=False)
    rows, columns = (_at_least_two(names.counts) for names in (table.rows, table.columns))
    assignment = Assignment(monitor)
    by_row = _by_side(client, assignment, entries, rows, _Side("row", "column", columns.size))
    by_column = _by_side(client, assignment, entries, columns, _Side("column", "row", rows.size))
    assignment.wait([*by_row.partitions, *by_column.partitions])
    return by_row, by_column


def _at_least_two(counts: np.ndarray) -> np.ndarray:
    """The numbers of entries with an empty row more, if there was only one: as `standardise` has it."""
    return counts if counts.size > 1 else np.append(counts, 0)


def _frame(rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Any:
    import pandas

    return pandas.DataFrame({"row": rows, "column": columns, "value": values})


def _place(numbered: Numbered, rows: np.ndarray, columns: np.ndarray, units: Standardised) -> Any:
    """The entries of a partition, by positions in the whole table and in standard units."""
    i, j, values = numbered.triplets
    standard = (values.astype(np.float64) - units.location) / units.scale
    return _frame(rows[i], columns[j], standard.astype(units.dtype))


def _by_side(
    client: Any, assignment: Assignment, entries: Any, counts: np.ndarray, side: _Side
) -> SidePartitions:
    """Shuffle entries by their own side, into parts that go by the threads of the workers."""
    pointers = np.concatenate([[0], np.cumsum(counts)])
    bounds = assignment.bounds(pointers)
    aimed = entries.map_partitions(
        _aim, side.own, bounds, meta=_aim(entries._meta, side.own, bounds)
    )
    shuffled = aimed.set_index("part", divisions=list(range(bounds.size)), shuffle_method="tasks")
    pieces = client.compute(shuffled.to_delayed())
    parts = [
        assignment.submit(p, part_of_table, piece, side, *rows)
        for p, (piece, rows) in enumerate(zip(pieces, pairwise(bounds.tolist()), strict=True))
    ]
    return SidePartitions(pointers, bounds, parts)


def _aim(entries: Any, side: str, bounds: np.ndarray) -> Any:
    """Entries with the number of the part that each is to go to."""
    return entries.assign(part=np.searchsorted(bounds, entries[side], side="right") - 1)


def part_of_table(piece: Any, side: _Side, start: int, stop: int) -> Partition:
    """What has come for the rows from ``start`` to ``stop``, in order of row and column."""
    own, other = piece[side.own].to_numpy() - start, piece[side.other].to_numpy()
    by_other = group_by_row(other, own, piece["value"].to_numpy(), (side.n_others, stop - start))
    return Partition(start, transpose(by_other, stop - start))
