"""Which worker a part of a table is for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fillrank.cluster.monitor import Monitor

_BETWEEN_LOOKS = 0.05  # seconds
# What the draws of a row take beside its entries, in entries.
_ENTRIES_OF_A_ROW = 64


class Homes:
    """The workers that there are, each a home for one part of a side.

    Left to itself Dask may give several parts to one worker, and half-sweeps follow the parts. But a
    task for which a worker is named waits for ever if that one has gone while no other was there, even
    if it may run elsewhere: so homes are named only until parts are there.

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
        """Rows at which parts begin, and the number of rows: as `part_bounds`."""
        return part_bounds(pointers, self._threads)

    def submit(self, number: int, task: Callable[..., Any], *arguments: Any) -> Any:
        """The future of a part, made by a task on its home; or elsewhere, if that is gone."""
        return self._monitor.client.submit(
            task,
            *arguments,
            pure=False,
            workers=[self._addresses[number]],
            allow_other_workers=True,
        )

    def settle(self, parts: Sequence[Any]) -> None:
        """Wait until parts are at home; from then on, or if a home is gone, they may be anywhere."""
        client, homes = self._monitor.client, set(self._addresses)
        while (
            not all(part.done() for part in parts) and homes <= self._monitor.get_workers().keys()
        ):
            self._monitor.check()
            time.sleep(_BETWEEN_LOOKS)
        anywhere = {part.key: None for part in parts}
        self._monitor.wait_for(lambda: client.scheduler.set_restrictions(worker=anywhere))


def part_bounds(pointers: np.ndarray, threads: list[int]) -> np.ndarray:
    """Rows at which parts begin, and the number of rows, so that work goes by workers' threads.

    Examples
    --------
    >>> part_bounds(np.array([0, 900, 1000, 1100, 1200]), threads=[1, 1])
    array([0, 1, 4])
    """
    costs = pointers + _ENTRIES_OF_A_ROW * np.arange(pointers.size)
    shares = costs[-1] * np.cumsum([0, *threads]) / sum(threads)
    bounds = np.searchsorted(costs, shares)
    bounds[0], bounds[-1] = 0, pointers.size - 1
    return bounds
