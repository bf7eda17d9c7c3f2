"""A table of this machine, sent out to the workers of a cluster."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fillrank.cluster.homes import Homes
from fillrank.cluster.laid_out import LaidOut, Part, SideParts
from fillrank.cluster.monitor import Monitor
from fillrank.table.entries import Entries
from fillrank.table.observations import Observations
from fillrank.table.units import standardise


def send_out(
    observations: Observations, monitor: Monitor, centre: bool, dtype: np.dtype
) -> LaidOut:
    """Bring the entries to standard units, and send parts of them to all workers, by both sides."""
    standard = standardise(observations, centre, dtype)
    homes = Homes(monitor)
    rows, columns = _sent(standard.rows, homes), _sent(standard.columns, homes)
    homes.settle([*rows.parts, *columns.parts])
    return LaidOut(
        observations.row_labels,
        observations.column_labels,
        observations.origin,
        rows,
        columns,
        standard.location,
        standard.scale,
        observations.value_range(),
    )


def _sent(entries: Entries, homes: Homes) -> SideParts:
    """Parts as the arguments of tasks: so the scheduler can have them made again if a worker dies."""
    bounds = homes.bounds(entries.pointers)
    parts = [
        homes.submit(p, part_of_table, _cut(entries, *rows))
        for p, rows in enumerate(pairwise(bounds.tolist()))
    ]
    return SideParts(entries.pointers, bounds, parts)


def part_of_table(part: Part) -> Part:
    """A part, where it has come to."""
    return part.as_kernels_take_it()


def _cut(entries: Entries, start: int, stop: int) -> Part:
    first, last = entries.pointers[[start, stop]]
    pointers = entries.pointers[start : stop + 1] - first
    return Part(start, Entries(pointers, entries.indices[first:last], entries.values[first:last]))
