"""The memory that a table needs on each worker, checked before a run starts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fillrank.errors import InputError, Setting
from fillrank.runtime.memory import format_bytes

_INDEX_BYTES, _POINTER_BYTES = 4, 8
# The number of the interval of a level; and, by column while thresholds are drawn, an entry's place in
# the sorted order, its signal and its precision.
_CELL_BYTES, _SORTED_BYTES = 4, 25
# Columns of a block that are multiplied by the mask of the observed cells at a time, and their bytes.
MASK_COLUMNS = 32
_MASK_BYTES = 4 * MASK_COLUMNS
# Dask assigns no more tasks to a worker that uses more than this share of its memory.
_USABLE = 0.8


def estimate_worker_memory(
    n_entries: int,
    shape: tuple[int, int],
    width: int,
    dtype: np.dtype,
    n_workers: int,
    n_level_chains: int = 0,
) -> int:
    """Estimate the bytes that a worker needs if all workers have equally many entries.

    It has its entries by row and by column; in a half-sweep also the factors of the other side, as
    received and as aligned for the kernel, and its own, as received and as returned, with what features
    add to their means. ``width`` is the number of factors. If they are few, products with the mask of
    the observed cells, for the features of missing values, need more. If values are ordered levels,
    ``n_level_chains`` chains may draw thresholds at the same time.

    Examples
    --------
    >>> estimate_worker_memory(10**9, (10**7, 10**5), 32, np.dtype("float32"), n_workers=10) / 1e9
    4.55208
    """
    largest, size = max(shape), dtype.itemsize
    of_entry = 2 * (_INDEX_BYTES + size)
    if n_level_chains:
        of_entry += 2 * _CELL_BYTES + n_level_chains * _SORTED_BYTES
    entries = of_entry * n_entries // n_workers
    pointers = _POINTER_BYTES * sum(shape) // n_workers
    factors = max(width * size, _MASK_BYTES) * (2 * largest + 3 * largest // n_workers)
    return entries + pointers + factors


def check_worker_memory(
    limits: Sequence[int],
    n_entries: int,
    shape: tuple[int, int],
    width: int,
    dtype: np.dtype,
    n_level_chains: int = 0,
) -> None:
    """Raise InputError if a table does not fit in the memory of the workers.

    Parameters
    ----------
    limits : sequence of int
        The memory that each worker may use, in bytes; 0 if unknown.
    n_entries : int
    shape : (int, int)
        Numbers of rows and columns.
    width : int
        The number of factors that are sent: the rank, and two for effects.
    dtype : dtype
        Of values and factors.
    n_level_chains : int
        The number of chains, if values are ordered levels; 0 if they are numbers.
    """
    smallest = min(limits)
    if smallest == 0:
        return
    needed = estimate_worker_memory(n_entries, shape, width, dtype, len(limits), n_level_chains)
    available = int(_USABLE * smallest)
    if needed > available:
        raise InputError(
            f"each of the {len(limits)} workers would need about {format_bytes(needed)} of memory for "
            f"its partition of {n_entries:,} entries and for the factors, and the smallest can use "
            f"{format_bytes(available)}",
            advice=("Start more workers or larger ones, or lower ", Setting("max_rank"), "."),
        )
