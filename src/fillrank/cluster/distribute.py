"""Distribution of a table from any source over the workers of a cluster."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from fillrank.cluster.memory import check_worker_memory
from fillrank.cluster.monitor import Monitor
from fillrank.cluster.partitions import Assignment, Partition, PartitionedTable, SidePartitions
from fillrank.cluster.remote_side import RemoteSide
from fillrank.cluster.shuffle import shuffle_table
from fillrank.cluster.value_codes import DataFormat
from fillrank.samplers.model import RemoteData
from fillrank.table.entries import Entries, rows_of
from fillrank.table.latent import Coding, code_ratings, latent_data
from fillrank.table.observations import Observations
from fillrank.table.units import Units, location_and_scale, standardise

if TYPE_CHECKING:
    from distributed import Client


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
    coding : Coding or None
        If the values are levels of one scale: how they become latent numbers.
    """

    observations: Observations
    data: RemoteData
    location: float
    scale: float
    value_range: tuple[float, float] | None
    coding: Coding | None

    def fingerprint(self) -> str:
        """A digest of the entries and their positions, computed on the workers."""
        digest = hashlib.sha256(repr((self.data.shape, self.location, self.scale)).encode())
        if self.coding is not None:
            digest.update(self.coding.scales[0].levels.tobytes())
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
    monitor, dtype = Monitor(client), data_format.dtype

    def check_memory(n_entries: int, shape: tuple[int, int]) -> None:
        limits = [worker["memory_limit"] for worker in monitor.wait_for_workers().values()]
        check_worker_memory(
            limits, n_entries, shape, data_format.width, dtype, data_format.n_level_chains
        )

    if isinstance(source, Observations):
        check_memory(source.n_entries, source.shape)
        table = _send_table(source, monitor, data_format)
    else:
        table = shuffle_table(source, client, data_format, check_memory)
    rows, columns = (RemoteSide(monitor, side, dtype) for side in (table.rows, table.columns))
    data = RemoteData(rows, columns)
    return RemoteTable(
        table.observations, data, table.location, table.scale, table.value_range, table.coding
    )


def _send_table(
    observations: Observations, monitor: Monitor, data_format: DataFormat
) -> PartitionedTable:
    """Convert entries to standard units or levels, and send them to the workers by row and by column."""
    location, scale, coding = 0.0, 1.0, None
    if data_format.ordered:
        coding = code_ratings(observations)
        rows, columns = latent_data(coding, observations, data_format.dtype)
    else:
        location, scale = location_and_scale(observations.stored_values, data_format.centre)
        units = Units.equal(location, scale, observations.shape[1], None)
        rows, columns = standardise(observations, units, data_format.dtype)
    assignment = Assignment(monitor)
    by_row, by_column = _send_side(rows, assignment), _send_side(columns, assignment)
    assignment.wait([*by_row.partitions, *by_column.partitions])
    value_range = observations.value_range()
    return PartitionedTable(observations, by_row, by_column, location, scale, value_range, coding)


def _send_side(entries: Entries, assignment: Assignment) -> SidePartitions:
    """Send partitions as arguments of tasks, which the scheduler can run again if a worker dies."""
    bounds = assignment.bounds(entries.pointers)
    partitions = [
        assignment.submit(
            p, Partition.as_writable, Partition(start, rows_of(entries, slice(start, stop)))
        )
        for p, (start, stop) in enumerate(pairwise(bounds.tolist()))
    ]
    return SidePartitions(entries.pointers, bounds, partitions)
