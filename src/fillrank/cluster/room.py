"""Whether the parts of a table fit into the memory of the workers, asked before a run begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fillrank.errors import InputError, Setting
from fillrank.runtime.memory import format_bytes

_POSITION = 4  # bytes of the place of an entry
_POINTER = 8
# Dask stops giving work to a worker above this share of its memory.
_USABLE = 0.8


def bytes_on_a_worker(
    n_entries: int, shape: tuple[int, int], width: int, dtype: np.dtype, n_workers: int
) -> int:
    """About how much memory a worker needs, if the entries are shared out evenly.

    Its entries by row and by column; and in a half-sweep the other side's factors, as they came and
    lined up for the kernel, with its own as they came and as they go. ``width`` is that of the factors.

    Examples
    --------
    >>> bytes_on_a_worker(10**9, (10**7, 10**5), 32, np.dtype("float32"), n_workers=10) / 1e9
    4.42408
    """
    largest, size = max(shape), dtype.itemsize
    entries = 2 * (_POSITION + size) * n_entries // n_workers
    pointers = _POINTER * sum(shape) // n_workers
    factors = width * size * (2 * largest + 2 * largest // n_workers)
    return entries + pointers + factors


def check_worker_room(
    limits: Sequence[int], n_entries: int, shape: tuple[int, int], width: int, dtype: np.dtype
) -> None:
    """Refuse a table that the workers cannot hold.

    Parameters
    ----------
    limits : sequence of int
        The memory that each worker may use, in bytes; 0 if nobody says.
    n_entries : int
    shape : (int, int)
        Numbers of rows and columns.
    width : int
        The number of factors that travel: their rank, and two for effects.
    dtype : dtype
        Of values and factors.
    """
    smallest = min(limits)
    if smallest == 0:
        return
    needed = bytes_on_a_worker(n_entries, shape, width, dtype, len(limits))
    available = int(_USABLE * smallest)
    if needed > available:
        raise InputError(
            f"each of the {len(limits)} workers would need about {format_bytes(needed)} of memory for "
            f"its part of {n_entries:,} entries and for the factors, and the smallest can use "
            f"{format_bytes(available)}",
            advice=("Start more workers or larger ones, or lower ", Setting("max_rank"), "."),
        )
