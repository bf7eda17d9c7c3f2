"""Kernels over rows, on several threads.

The kernels release the interpreter's lock and address their draws by row, so a half-sweep is a matter
of handing out ranges of rows; which thread takes which range does not change a bit of the result.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np

_A = TypeVar("_A")
_B = TypeVar("_B")

# Ranges per thread: enough to even out rows of different cost, few enough to cost nothing themselves.
_RANGES_PER_THREAD = 8
# Entries below which a second thread costs more than it brings.
_SMALLEST_SHARE = 5_000


class Workers:
    """A fixed number of threads that work on ranges of rows."""

    def __init__(self, n_threads: int):
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def for_rows(self, work: Callable[[int, int], None], pointers: np.ndarray) -> None:
        """Call ``work(start, stop)`` on ranges that cover all rows once and share out the entries."""
        n_rows = pointers.size - 1
        if self._pool is None or pointers[-1] < _SMALLEST_SHARE:
            work(0, n_rows)
            return
        shares = np.linspace(0, pointers[-1], _RANGES_PER_THREAD * self.n_threads + 1)[1:-1]
        bounds = [0, *np.searchsorted(pointers, shares).clip(0, n_rows).tolist(), n_rows]
        ranges = [(a, b) for a, b in pairwise(bounds) if a < b]
        for future in [self._pool.submit(work, a, b) for a, b in ranges]:
            future.result()

    def both(self, one: Callable[[], _A], other: Callable[[], _B], size: int) -> tuple[_A, _B]:
        """The results of two calls; side by side if there are as many as ``size`` things to work on."""
        if self._pool is None or size < _SMALLEST_SHARE:
            return one(), other()
        first = self._pool.submit(one)
        second = other()
        return first.result(), second

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
