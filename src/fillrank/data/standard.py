"""Standard units: what the samplers work in, so that their constants are free of scale."""

from typing import NamedTuple

import numpy as np

from fillrank.data.entries import Entries
from fillrank.data.observations import Observations


class Standard(NamedTuple):
    """Entries by row and by column with (value - location) / scale for values.

    There are at least two rows and two columns: a ball in one dimension has no direction, and an
    empty row or column more changes nothing for the others.
    """

    rows: Entries
    columns: Entries
    location: float
    scale: float


def location_and_scale(values: np.ndarray, centre: bool) -> tuple[float, float]:
    """(mean, standard deviation), or (0, root mean square) without ``centre``; the scale is never 0.

    Examples
    --------
    >>> location_and_scale(np.array([1e150, 3e150]), centre=True)
    (2e+150, 1e+150)
    >>> location_and_scale(np.array([4.0, 4.0]), centre=True)
    (4.0, 1.0)
    """
    largest = float(np.abs(values).max()) or 1.0
    small = values / largest  # so that no square over- or underflows
    location = float(small.mean()) if centre else 0.0
    scale = float(np.sqrt(np.mean((small - location) ** 2)))
    # A constant differs from its own mean by rounding alone.
    if scale <= 1e-13 * abs(location):
        return largest * location, 1.0
    return largest * location, (largest * scale or 1.0)


def at_least_two(entries: Entries) -> Entries:
    """The entries with an empty row more, if there was only one."""
    if entries.pointers.size > 2:
        return entries
    return entries._replace(pointers=np.append(entries.pointers, entries.pointers[-1]))


def standardise(observations: Observations, centre: bool, dtype: np.dtype) -> Standard:
    """Bring the entries to standard units, gathered by row and by column."""
    location, scale = location_and_scale(observations.values, centre)

    def convert(entries: Entries) -> Entries:
        values = ((entries.values - location) / scale).astype(dtype)
        return at_least_two(entries._replace(values=values))

    rows, columns = convert(observations.by_row()), convert(observations.by_column())
    return Standard(rows, columns, location, scale)
