"""Threads: how many to use, work on ranges of rows, and linear algebra on one thread.

Kernels release the interpreter's lock and address their random draws by row. So a half-sweep
distributes ranges of rows to threads, and the result does not depend on which thread takes which range.
"""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]


def one_blas_thread() -> Any:
    """A context in which linear algebra runs on one thread.

    With blocks of about 30 columns this is faster, many times so on a busy machine, and the bits of a
    result do not depend on the number of processors.
    """
    return threadpool_limits(1, user_api="blas")


def available_threads(n_threads: int | None) -> int:
    """The number of threads to use: as requested, or all processors available to this process."""
    if n_threads is not None:
        return n_threads
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_A = TypeVar("_A")
_B = TypeVar("_B")

# The shortest range, as a share of what each thread takes on average.
_SHORTEST = 1 / 64
# With fewer entries a second thread costs more time than it saves.
_SMALLEST_SHARE = 5_000


def _shares(n_threads: int) -> np.ndarray:
    """Where ranges end, as shares of all entries: long ones first, short ones to finish together.

    A range is half of the remaining entries per thread, but at least ``_SHORTEST`` of all entries per
    thread: handing out many short ranges would cost more than the better balance saves.
    """
    ends, end = [], 0.0
    while end < 1.0:
        end += max(0.5 * (1.0 - end), _SHORTEST) / n_threads
        ends.append(end)
    return np.array(ends[:-1])


class Workers:
    """A fixed number of threads that work on ranges of rows."""

    def __init__(self, n_threads: int):
        self.n_threads = n_threads
        # The calling thread works too: this avoids putting it to sleep and waking it.
        self._pool = ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else None

    def for_rows(self, work: Callable[[int, int], None], pointers: np.ndarray) -> None:
        """Call ``work(start, stop)`` on ranges that cover all rows and distribute the entries."""
        n_rows = pointers.size - 1
        if self._pool is None or pointers[-1] < _SMALLEST_SHARE:
            work(0, n_rows)
            return
        shares = pointers[-1] * _shares(self.n_threads)
        bounds = [0, *np.searchsorted(pointers, shares).clip(0, n_rows).tolist(), n_rows]
        ranges = deque((a, b) for a, b in pairwise(bounds) if a < b)

        def take_ranges() -> None:
            while True:
                try:
                    start, stop = ranges.popleft()
                except IndexError:
                    return
                work(start, stop)

        others = [self._pool.submit(take_ranges) for _ in range(self.n_threads - 1)]
        try:
            take_ranges()
        finally:
            ranges.clear()
            for other in others:
                if not other.cancel():
                    other.result()

    def both(self, one: Callable[[], _A], other: Callable[[], _B], size: int) -> tuple[_A, _B]:
        """The results of two calls; in parallel if ``size``, the number of entries, is large enough."""
        if self._pool is None or size < _SMALLEST_SHARE:
            return one(), other()
        first = self._pool.submit(one)
        second = other()
        return one() if first.cancel() else first.result(), second

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
