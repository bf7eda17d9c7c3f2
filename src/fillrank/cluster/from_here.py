"""A table of this machine, sent out to the workers of a cluster."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from fillrank.cluster.laid_out import LaidOut, Part, SideParts
from fillrank.data.entries import Entries
from fillrank.data.observations import Observations
from fillrank.data.standard import standardise


def send_out(observations: Observations, client: Any, centre: bool, dtype: np.dtype) -> LaidOut:
    """Bring the entries to standard units, and send parts of them to all workers, by both sides."""
    standard = standardise(observations, centre, dtype)
    threads = client.nthreads()
    return LaidOut(
        observations.row_labels,
        observations.column_labels,
        observations.origin,
        _sent(standard.rows, client, threads),
        _sent(standard.columns, client, threads),
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


def _sent(entries: Entries, client: Any, threads: dict[str, int]) -> SideParts:
    bounds = part_bounds(entries.pointers, list(threads.values()))
    # A part is the argument of a task, and not scattered: so the scheduler can have it made again when
    # its worker dies.
    parts = [
        client.submit(
            part_of_table,
            _cut(entries, *rows),
            pure=False,
            workers=[worker],
            allow_other_workers=True,
        )
        for rows, worker in zip(pairwise(bounds.tolist()), threads, strict=True)
    ]
    return SideParts(entries.pointers, bounds, parts)


def part_of_table(part: Part) -> Part:
    """A part, where it has come to."""
    return part


def _cut(entries: Entries, start: int, stop: int) -> Part:
    first, last = entries.pointers[[start, stop]]
    pointers = entries.pointers[start : stop + 1] - first
    return Part(start, Entries(pointers, entries.indices[first:last], entries.values[first:last]))
