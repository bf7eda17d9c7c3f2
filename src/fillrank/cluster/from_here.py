"""A table of this machine, sent out to the workers of a cluster."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from fillrank.cluster.laid_out import LaidOut, Part, SideParts
from fillrank.cluster.watch import Watch
from fillrank.data.entries import Entries
from fillrank.data.observations import Observations
from fillrank.data.standard import standardise


def send_out(observations: Observations, watch: Watch, centre: bool, dtype: np.dtype) -> LaidOut:
    """Bring the entries to standard units, and send parts of them to all workers, by both sides."""
    standard = standardise(observations, centre, dtype)
    threads = [worker["nthreads"] for worker in watch.workers().values()]
    return LaidOut(
        observations.row_labels,
        observations.column_labels,
        observations.origin,
        _sent(standard.rows, watch.client, threads),
        _sent(standard.columns, watch.client, threads),
        standard.location,
        standard.scale,
        observations.value_range(),
    )


def part_bounds(pointers: np.ndarray, threads: list[int]) -> np.ndarray:
    """Rows at which parts begin, and the number of rows, so that entries go by workers' threads.

    Examples
    --------
    >>> part_bounds(np.array([0, 4, 5, 6, 8]), threads=[1, 1])
    array([0, 1, 4])
    """
    shares = pointers[-1] * np.cumsum([0, *threads]) / sum(threads)
    bounds = np.searchsorted(pointers, shares)
    bounds[0], bounds[-1] = 0, pointers.size - 1
    return bounds


def _sent(entries: Entries, client: Any, threads: list[int]) -> SideParts:
    """Parts as the arguments of tasks: so the scheduler can have them made again if a worker dies.

    Which worker takes which is left to Dask: a task for which one is named waits for ever if that one
    has gone while no other was there, even if it may run elsewhere.
    """
    bounds = part_bounds(entries.pointers, threads)
    parts = [
        client.submit(part_of_table, _cut(entries, *rows), pure=False)
        for rows in pairwise(bounds.tolist())
    ]
    return SideParts(entries.pointers, bounds, parts)


def part_of_table(part: Part) -> Part:
    """A part, where it has come to."""
    return part


def _cut(entries: Entries, start: int, stop: int) -> Part:
    first, last = entries.pointers[[start, stop]]
    pointers = entries.pointers[start : stop + 1] - first
    return Part(start, Entries(pointers, entries.indices[first:last], entries.values[first:last]))
