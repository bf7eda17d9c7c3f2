"""Partitions of a table, and their assignment to the workers of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank.cluster.monitor import Monitor
from fillrank.table.entries import Entries
from fillrank.table.latent import Coding
from fillrank.table.observations import Observations

if TYPE_CHECKING:
    from distributed import Future

_CHECK_INTERVAL = 0.05  # seconds
# The cost of drawing a row without entries, relative to that of an entry.
_ENTRIES_PER_ROW = 64


def as_writable(array: np.ndarray) -> np.ndarray:
    """An array as kernels need it: those from a network may be read-only or not aligned."""
    return np.require(array, requirements=("C", "A", "W"))


def worker_threads() -> int:
    """The number of threads of the worker that runs this task."""
    from distributed import get_worker

    return get_worker().state.nthreads


class Partition(NamedTuple):
    """Consecutive rows of a table (or of its transpose), as a worker has them.

    The pointers start at 0. The values are in standard units, or have intervals.
    """

    first_row: int
    entries: Entries

    def as_writable(self) -> Partition:
        """The partition as kernels need it."""
        return self._replace(entries=Entries(*map(as_writable, self.entries)))


class SidePartitions(NamedTuple):
    """The partitions of a table by row, or by column.

    Attributes
    ----------
    pointers : ndarray of int64
        Where the entries of every row of the table start, and their number. There are at least two
        rows: a single one has an additional empty row, in the pointers and in its partition.
    bounds : ndarray of int64
        Partition p has the rows from ``bounds[p]`` to just before ``bounds[p + 1]``.
    partitions : list of Future
        Of `Partition`. Dask computes them again if they are lost with a worker.
    """

    pointers: np.ndarray
    bounds: np.ndarray
    partitions: list[Future]


class PartitionedTable(NamedTuple):
    """A table whose entries are on workers; ``observations`` may have only its labels.

    The values are numbers in standard units; or, with a ``coding``, levels of one scale.
    """

    observations: Observations
    rows: SidePartitions
    columns: SidePartitions
    location: float
    scale: float
    value_range: tuple[float, float] | None
    coding: Coding | None = None


class Assignment:
    """Assigns one partition of each side to every worker.

    On its own Dask may assign several partitions to one worker, and half-sweeps run where partitions
    are. But a task that is restricted to a worker waits forever if this worker is lost while there is no
    other, even if it may run elsewhere. So restrictions last only until partitions are computed.

    Parameters
    ----------
    monitor : Monitor
    """

    def __init__(self, monitor: Monitor):
        self._monitor = monitor
        workers = monitor.wait_for_workers()
        self._addresses = list(workers)
        self._threads = [worker["nthreads"] for worker in workers.values()]

    def bounds(self, pointers: np.ndarray) -> np.ndarray:
        """`partition_bounds` for these workers."""
        return partition_bounds(pointers, self._threads)

    def submit(self, number: int, task: Callable[..., Partition], *arguments: Any) -> Future:
        """Submit the task that computes a partition to its worker, or to another if that is lost."""
        return self._monitor.client.submit(
            task,
            *arguments,
            pure=False,
            workers=[self._addresses[number]],
            allow_other_workers=True,
        )

    def wait(self, partitions: Sequence[Future]) -> None:
        """Wait until partitions are computed or a worker is lost; then remove all restrictions."""
        client, assigned = self._monitor.client, set(self._addresses)
        while (
            not all(partition.done() for partition in partitions)
            and assigned <= self._monitor.get_workers().keys()
        ):
            self._monitor.check()
            time.sleep(_CHECK_INTERVAL)
        unrestricted = {partition.key: None for partition in partitions}
        self._monitor.wait_for(lambda: client.scheduler.set_restrictions(worker=unrestricted))


def partition_bounds(pointers: np.ndarray, threads: Sequence[int]) -> np.ndarray:
    """The first row of each partition, and the number of rows; work is in proportion to threads.

    Examples
    --------
    >>> partition_bounds(np.array([0, 900, 1000, 1100, 1200]), threads=[1, 1])
    array([0, 1, 4])
    """
    costs = pointers + _ENTRIES_PER_ROW * np.arange(pointers.size)
    shares = costs[-1] * np.cumsum([0, *threads]) / sum(threads)
    bounds = np.searchsorted(costs, shares)
    bounds[0], bounds[-1] = 0, pointers.size - 1
    return bounds
