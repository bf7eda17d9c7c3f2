"""Tables brought to the workers of a cluster, whatever they come from."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np

from fillrank.cluster.from_here import send_out
from fillrank.cluster.memory import check_worker_memory
from fillrank.cluster.monitor import Monitor
from fillrank.cluster.partitions import PartitionedTable
from fillrank.cluster.remote_side import RemoteSide
from fillrank.cluster.table import lay_out
from fillrank.samplers.model import RemoteData
from fillrank.table.observations import Observations


class Form(NamedTuple):
    """What a sampler asks of its data: a mean of zero, their type, and how wide its factors are."""

    centre: bool
    dtype: np.dtype
    width: int


class Placed(NamedTuple):
    """A table on a cluster.

    Attributes
    ----------
    observations : Observations
        Its names; and its entries, if it came from this machine.
    data : RemoteData
    location, scale : float
        What standard units are made of.
    value_range : (float, float) or None
        The ends of the rating scale, if the values are ratings.
    """

    observations: Observations
    data: RemoteData
    location: float
    scale: float
    value_range: tuple[float, float] | None

    def fingerprint(self) -> str:
        """A digest of the entries and their places, computed where they are."""
        digest = hashlib.sha256(repr((self.data.shape, self.location, self.scale)).encode())
        digest.update(self.data.rows.digest().to_bytes(8, "little"))
        return digest.hexdigest()


def place(source: Any, client: Any, form: Form) -> Placed:
    """Lay a table out over the workers.

    Parameters
    ----------
    source : Observations, Dask data frame, or path or glob of Parquet files
    client : distributed.Client
    form : Form
    """
    monitor = Monitor(client)

    def check_room(n_entries: int, shape: tuple[int, int]) -> None:
        limits = [worker["memory_limit"] for worker in monitor.wait_for_workers().values()]
        check_worker_memory(limits, n_entries, shape, form.width, form.dtype)

    if isinstance(source, Observations):
        check_room(source.n_entries, source.shape)
        laid = send_out(source, monitor, form.centre, form.dtype)
        return _placed(laid, source, monitor, form.dtype)
    laid = lay_out(source, client, form.centre, form.dtype, check_room)
    return _placed(laid, _names_alone(laid), monitor, form.dtype)


def _placed(
    laid: PartitionedTable, observations: Observations, monitor: Monitor, dtype: np.dtype
) -> Placed:
    data = RemoteData(
        RemoteSide(monitor, laid.rows, dtype), RemoteSide(monitor, laid.columns, dtype)
    )
    return Placed(observations, data, laid.location, laid.scale, laid.value_range)


def _names_alone(laid: PartitionedTable) -> Observations:
    """The names of a table, without its entries."""
    return Observations(
        np.zeros(len(laid.row_labels) + 1, dtype=np.int64),
        np.zeros(0, dtype=np.int32),
        np.zeros(0, dtype=np.float32),
        laid.row_labels,
        laid.column_labels,
        laid.origin,
    )
