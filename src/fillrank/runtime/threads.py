"""How many threads to use, and for what."""

import os
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]


def one_blas_thread() -> Any:
    """Linear algebra on one thread, for as long as the context lasts.

    Blocks of 30 columns or so are faster that way, and many times so on a busy machine; and the bits
    of a result do not depend on the number of processors.
    """
    return threadpool_limits(1, user_api="blas")


def available_threads(n_threads: int | None) -> int:
    """The number of threads to use: what was asked for, or all that this process may run on."""
    if n_threads is not None:
        return n_threads
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
