"""A table of this machine, sent out to the workers of a cluster."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fillrank.cluster.monitor import Monitor
from fillrank.cluster.partitions import Assignment, Partition, PartitionedTable, SidePartitions
from fillrank.table.entries import Entries
from fillrank.table.observations import Observations
from fillrank.table.units import standardise


def send_out(
    observations: Observations, monitor: Monitor, centre: bool, dtype: np.dtype
) -> PartitionedTable:
    """Bring the entries to standard units, and send parts of them to all workers, by both sides."""
    standard = standardise(observations, centre, dtype)
    assignment = Assignment(monitor)
    rows, columns = _sent(standard.rows, assignment), _sent(standard.columns, assignment)
    assignment.wait([*rows.partitions, *columns.partitions])
    return PartitionedTable(
        observations.row_labels,
        observations.column_labels,
        observations.origin,
        rows,
        columns,
        standard.location,
        standard.scale,
        observations.value_range(),
    )


def _sent(entries: Entries, assignment: Assignment) -> SidePartitions:
    """Parts as the arguments of tasks: so the scheduler can have them made again if a worker dies."""
    bounds = assignment.bounds(entries.pointers)
    parts = [
        assignment.submit(p, part_of_table, _cut(entries, *rows))
        for p, rows in enumerate(pairwise(bounds.tolist()))
    ]
    return SidePartitions(entries.pointers, bounds, parts)


def part_of_table(part: Partition) -> Partition:
    """A part, where it has come to."""
    return part.as_writable()


def _cut(entries: Entries, start: int, stop: int) -> Partition:
    first, last = entries.pointers[[start, stop]]
    pointers = entries.pointers[start : stop + 1] - first
    return Partition(
        start, Entries(pointers, entries.indices[first:last], entries.values[first:last])
    )
