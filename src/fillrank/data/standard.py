"""Standard units: what the samplers work in, so that their constants are free of scale."""

import math
from typing import NamedTuple

import numpy as np

from fillrank.data.entries import Entries
from fillrank.data.observations import Observations
from fillrank.errors import InputError

# Variances, in the data's units, must neither over- nor underflow.
_LARGEST_VALUE, _SMALLEST_SCALE = 1e152, 1e-152


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

    Raises InputError if variances in the data's units would over- or underflow.

    Examples
    --------
    >>> location_and_scale(np.array([1e150, 3e150]), centre=True)
    (2e+150, 1e+150)
    >>> location_and_scale(np.array([4.0, 4.0]), centre=True)
    (4.0, 1.0)
    """
    largest = float(np.abs(values).max())
    if largest > _LARGEST_VALUE:
        raise InputError(
            f"values must be at most {_LARGEST_VALUE:g} in size, so that their squares are numbers; "
            f"the largest is {largest:.3g}. Change their unit first."
        )
    # Brought to size 1 by a power of two, which is exact: no square over- or underflows.
    exponent = math.frexp(largest)[1]
    small = np.ldexp(values, -exponent)
    mean = float(small.mean()) if centre else 0.0
    sd = math.sqrt(float(np.mean((small - mean) ** 2)))
    location, scale = math.ldexp(mean, exponent), math.ldexp(sd, exponent)
    # A constant differs from its own mean by rounding alone.
    if sd <= 1e-13 * abs(mean):
        return location, 1.0
    if scale < _SMALLEST_SCALE:
        raise InputError(
            f"values must spread by at least {_SMALLEST_SCALE:g} or not at all, so that their "
            f"variance is a number; the standard deviation is {scale:.3g}. Change their unit first."
        )
    return location, scale


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
