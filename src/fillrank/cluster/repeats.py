"""Cells that came more than once, found where the entries are and told of by name."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fillrank.cluster.monitor import Monitor
from fillrank.cluster.names import Names, Numbered
from fillrank.cluster.partitions import Partition
from fillrank.errors import InputError
from fillrank.table.labels import SHOWN, format_label

Cells = list[tuple[int, int]]


class Table(NamedTuple):
    """A table whose names are numbered: of every partition, futures; and what the client knows."""

    numbered: list[Any]
    row_positions: list[Any]
    column_positions: list[Any]
    rows: Names
    columns: Names


def check_repeats(monitor: Monitor, table: Table, parts: list[Any]) -> None:
    """Refuse a table with several values for one cell; ``parts`` are those by row."""
    found = monitor.gather(monitor.client.map(repeated_in, parts))
    cells = [cell for _, few in found for cell in few][:SHOWN]
    if cells:
        raise InputError(_message(monitor, table, sum(count for count, _ in found), cells))


def repeated_in(part: Partition) -> tuple[int, Cells]:
    """How many cells of a part have several values, and the first of them."""
    pointers, columns, _ = part.entries
    rows = np.repeat(np.arange(pointers.size - 1), np.diff(pointers))
    again = np.flatnonzero((columns[1:] == columns[:-1]) & (rows[1:] == rows[:-1]))
    cells = np.unique(np.stack([rows[again] + part.first_row, columns[again]]), axis=1)
    return cells.shape[1], [(int(i), int(j)) for i, j in cells[:, :SHOWN].T]


def values_at(numbered: Numbered, rows: np.ndarray, columns: np.ndarray, cells: Cells) -> Any:
    """The values that a partition has for each of some cells, the first few in order."""
    i, j, values = numbered.triplets
    i, j = rows[i], columns[j]
    return [values[(i == row) & (j == column)][: SHOWN + 1].tolist() for row, column in cells]


def _message(monitor: Monitor, table: Table, count: int, cells: Cells) -> str:
    tasks = monitor.client.map(
        values_at, table.numbered, table.row_positions, table.column_positions, cells=cells
    )
    shown = []
    for (i, j), parts in zip(cells, zip(*monitor.gather(tasks), strict=True), strict=True):
        values = [value for part in parts for value in part]
        listed = ", ".join(f"{value:g}" for value in values[:SHOWN])
        more = ", ..." if len(values) > SHOWN else ""
        row, column = format_label(table.rows.labels[i]), format_label(table.columns.labels[j])
        shown.append(f"  row {row}, column {column}: {listed}{more}")
    return (
        f"each (row, column) pair can have one value; {count} have more:\n"
        + "\n".join(shown)
        + "\nMake one of them first, for example by frame.groupby([row, column]).mean() in Dask."
    )
