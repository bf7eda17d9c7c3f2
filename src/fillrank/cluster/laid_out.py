"""A table whose entries have been laid out over the workers of a cluster."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fillrank.table.entries import Entries
from fillrank.table.frames import Origin


class Part(NamedTuple):
    """Consecutive rows of a table (or of its transpose), as a worker holds them.

    The pointers begin at 0, the values are in standard units.
    """

    first_row: int
    entries: Entries

    def as_kernels_take_it(self) -> Part:
        """Itself, or a copy: what has come over a network may not be aligned, or read-only."""
        sound = (np.require(each, requirements=("C", "A", "W")) for each in self.entries)
        return self._replace(entries=Entries(*sound))


class SideParts(NamedTuple):
    """One side of a table in parts.

    Attributes
    ----------
    pointers : ndarray of int64
        Where the entries of every row of the whole side begin, and their number. There are at least
        two rows: a single one has an empty twin, in the pointers and in its part.
    bounds : ndarray of int64
        Part p has the rows from ``bounds[p]`` to just before ``bounds[p + 1]``.
    parts : list of Future
        Of `Part`. Dask can make them again if they are lost with a worker.
    """

    pointers: np.ndarray
    bounds: np.ndarray
    parts: list[Any]


class LaidOut(NamedTuple):
    """What the client knows of a table whose entries lie with workers."""

    row_labels: np.ndarray
    column_labels: np.ndarray
    origin: Origin
    rows: SideParts
    columns: SideParts
    location: float
    scale: float
    value_range: tuple[float, float] | None
