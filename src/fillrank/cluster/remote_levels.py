"""The likelihood of ordered levels whose entries are on workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank.cluster.partitions import Partition, as_writable, worker_threads
from fillrank.kernels.gaussian_rows import RowNoise
from fillrank.runtime.threads import Workers
from fillrank.samplers.level_likelihood import (
    Cuts,
    LevelEntries,
    LevelLikelihood,
    block_sums,
    level_entries,
)

if TYPE_CHECKING:
    from distributed import Future

    from fillrank.cluster.remote_side import RemoteSide

# States of a task that Dask does not compute again by itself.
_FAILED = ("error", "cancelled", "lost")


class RemoteLikelihood(LevelLikelihood):
    """The likelihood of the levels of entries on workers, as `fillrank.samplers.level_likelihood`.

    Workers sort their entries and compute the signals once; then each likelihood is one task for each
    partition, which returns its sums over blocks.

    Parameters
    ----------
    side : RemoteSide
        The columns.
    factors : (ndarray, ndarray)
        Of the columns and of the rows.
    noise : RowNoise
    n_intervals : int
    """

    def __init__(
        self,
        side: RemoteSide,
        factors: tuple[np.ndarray, np.ndarray],
        noise: RowNoise,
        n_intervals: int,
    ):
        self._side = side
        self._own, other = factors
        self._variances = noise.variances
        self._shared = SharedFactors(other, noise._replace(variances=np.zeros(0)), n_intervals)
        self._entries: list[Future] = []
        self.counts = np.sum(self._map(count_entries), axis=0)

    def block_sums(self, c: int, cuts: Cuts) -> tuple[np.ndarray, np.ndarray]:
        """Sums over the blocks of the interval c, and over those of c + 1, in the order of columns."""
        under, over = zip(*self._map(block_sums_of_partition, c, cuts), strict=True)
        return np.concatenate(under), np.concatenate(over)

    def _map(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """``task(entries, *arguments)`` for the entries of all partitions."""

        def submit() -> list[Future]:
            return [self._side.submit(task, each, *arguments) for each in self._sorted_entries()]

        results: list[Any] = self._side.run(submit)
        return results

    def _sorted_entries(self) -> list[Future]:
        """Futures of `LevelEntries`, one for each partition; submitted again after a failure."""
        if not self._entries or any(each.status in _FAILED for each in self._entries):
            shared = self._side.share(self._shared)
            self._entries = [
                self._side.submit(
                    sort_partition, partition, self._own[rows], self._variances[rows], shared
                )
                for rows, partition in self._side.partitions
            ]
        return self._entries


# Tasks.


class SharedFactors(NamedTuple):
    """The arguments of `sort_partition` that all partitions share."""

    other: np.ndarray
    noise: RowNoise
    n_intervals: int


def sort_partition(
    partition: Partition, own: np.ndarray, variances: np.ndarray, shared: SharedFactors
) -> LevelEntries:
    """`level_entries` for the columns of a partition."""
    other, noise, n_intervals = shared
    noise = RowNoise(
        as_writable(variances),
        as_writable(noise.roots),
        noise.degrees,
        noise.purpose,
        as_writable(noise.limits),
    )
    factors = as_writable(own), as_writable(other)
    entries = partition.as_writable().entries
    with Workers(worker_threads()) as workers:
        return level_entries(entries, factors, noise, n_intervals, workers)


def count_entries(entries: LevelEntries) -> np.ndarray:
    """The number of entries in each interval."""
    return entries.counts


def block_sums_of_partition(
    entries: LevelEntries, c: int, cuts: Cuts
) -> tuple[np.ndarray, np.ndarray]:
    """`block_sums` for the columns of a partition."""
    with Workers(worker_threads()) as workers:
        return block_sums(LevelEntries(*map(as_writable, entries)), c, cuts, workers)
