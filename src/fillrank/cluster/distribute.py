"""Distribution of a table of any kind over the workers of a cluster."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank.cluster.memory import check_worker_memory
from fillrank.cluster.monitor import Monitor
from fillrank.cluster.partitions import Assignment, Partition, PartitionedTable, SidePartitions
from fillrank.cluster.remote_side import RemoteSide
from fillrank.cluster.shuffle import shuffle_table
from fillrank.samplers.model import RemoteData
from fillrank.table.entries import Entries
from fillrank.table.observations import Observations
from fillrank.table.units import Units, location_and_scale, standardise

if TYPE_CHECKING:
    from distributed import Client


class DataFormat(NamedTuple):
    """The data that a sampler needs: whether they are centred, their type, and the number of factors."""

    centre: bool
    dtype: np.dtype
    width: int


class RemoteTable(NamedTuple):
    """A table on a cluster.

    Attributes
    ----------
    observations : Observations
        Its labels; and its entries, if it was in the memory of this machine.
    data : RemoteData
    location, scale : float
        Values in standard units are (value - location) / scale.
    value_range : (float, float) or None
        The ends of the rating scale, if the values are ratings.
    """

    observations: Observations
    data: RemoteData
    location: float
    scale: float
    value_range: tuple[float, float] | None

    def fingerprint(self) -> str:
        """A digest of the entries and their positions, computed on the workers."""
        digest = hashlib.sha256(repr((self.data.shape, self.location, self.scale)).encode())
        digest.update(self.data.rows.digest().to_bytes(8, "little"))
        return digest.hexdigest()


def distribute_table(source: Any, client: Client, data_format: DataFormat) -> RemoteTable:
    """Distribute a table over the workers.

    Parameters
    ----------
    source : Observations, Dask data frame, LongTable, or path or pattern of Parquet files
    client : distributed.Client
    data_format : DataFormat
    """
    monitor, (centre, dtype, width) = Monitor(client), data_format

    def check_memory(n_entries: int, shape: tuple[int, int]) -> None:
        limits = [worker["memory_limit"] for worker in monitor.wait_for_workers().values()]
        check_worker_memory(limits, n_entries, shape, width, dtype)

    if isinstance(source, Observations):
        check_memory(source.n_entries, source.shape)
        table = _send_table(source, monitor, centre, dtype)
    else:
        table = shuffle_table(source, client, centre, dtype, check_memory)
    rows, columns = (RemoteSide(monitor, side, dtype) for side in (table.rows, table.columns))
    data = RemoteData(rows, columns)
    return RemoteTable(table.observations, data, table.location, table.scale, table.value_range)


def _send_table(
    observations: Observations, monitor: Monitor, centre: bool, dtype: np.dtype
) -> PartitionedTable:
    """Convert entries to standard units, and send them to the workers by row and by column."""
    location, scale = location_and_scale(observations.stored_values, centre)
    units = Units.equal(location, scale, observations.shape[1], None)
    rows, columns = standardise(observations, units, dtype)
    assignment = Assignment(monitor)
    by_row, by_column = _send_side(rows, assignment), _send_side(columns, assignment)
    assignment.wait([*by_row.partitions, *by_column.partitions])
    value_range = observations.value_range()
    return PartitionedTable(observations, by_row, by_column, location, scale, value_range)


def _send_side(entries: Entries, assignment: Assignment) -> SidePartitions:
    """Send partitions as arguments of tasks, which the scheduler can run again if a worker dies."""
    bounds = assignment.bounds(entries.pointers)
    partitions = [
        assignment.submit(p, Partition.as_writable, _select_rows(entries, *rows))
        for p, rows in enumerate(pairwise(bounds.tolist()))
    ]
    return SidePartitions(entries.pointers, bounds, partitions)


def _select_rows(entries: Entries, start: int, stop: int) -> Partition:
    first, last = entries.pointers[[start, stop]]
    pointers = entries.pointers[start : stop + 1] - first
    return Partition(
        start, Entries(pointers, entries.indices[first:last], entries.values[first:last])
    )
