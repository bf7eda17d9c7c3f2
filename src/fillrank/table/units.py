"""Standard units: what the samplers work in, so that their constants are free of scale."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.table.blocks import blocks
from fillrank.table.entries import Entries
from fillrank.table.observations import Observations
from fillrank.table.ordering import turned

# Variances, in the data's units, must neither over- nor underflow.
_LARGEST_VALUE, _SMALLEST_SCALE = 1e152, 1e-152
# The scale of a constant, by its size: about what single precision can still tell apart.
_OF_CONSTANT = 1e-6
# Of new values, in standard units: beyond it their draws, in single precision, could overflow.
_FARTHEST = 1e15
# Of each of the two whole numbers that stand for a number of size 1; and how many are summed at once.
_BITS, _AT_ONCE = 31, 2**17


class Standard(NamedTuple):
    """Entries by row and by column with (value - location) / scale for values.

    There are at least two rows and two columns: a ball in one dimension has no direction, and an
    empty row or column more changes nothing for the others.
    """

    rows: Entries
    columns: Entries
    location: float
    scale: float


class Span(NamedTuple):
    """The ends of some values, and how many they are."""

    low: float
    high: float
    n_values: int


class Measure(NamedTuple):
    """What is summed: ((value / 2^exponent - centre) / 2^zoom)^power, at most 1 in size."""

    exponent: int
    centre: float
    zoom: int
    power: int


def location_and_scale(values: np.ndarray, centre: bool) -> tuple[float, float]:
    """(mean, standard deviation), or (0, root mean square) without ``centre``; the scale is never 0.

    That of a constant is a millionth of its size, and 1 for zeros.

    Raises InputError if variances in the data's units would over- or underflow. The order of the values
    does not change a bit.

    Examples
    --------
    >>> location_and_scale(np.array([1e150, 3e150]), centre=True)
    (2e+150, 1e+150)
    >>> location_and_scale(np.array([4.0, 4.0]), centre=True)
    (4.0, 4e-06)
    """
    span = Span(float(values.min()), float(values.max()), values.size)
    return units_of(span, lambda measure: total(values, measure), centre)


def units_of(span: Span, total_of: Callable[[Measure], int], centre: bool) -> tuple[float, float]:
    """`location_and_scale` of values that need not be in one place.

    Parameters
    ----------
    span : Span
        Of all values.
    total_of : callable
        Gives the sum of `total` over all parts of the values; it is asked twice at most.
    centre : bool
    """
    low, high, n_values = span
    largest = max(abs(low), abs(high))
    if largest > _LARGEST_VALUE:
        raise InputError(
            f"values must be at most {_LARGEST_VALUE:g} in size, so that their squares are numbers; "
            f"the largest is {largest:.3g}. Change their unit first."
        )
    # Brought to size 1 by a power of two, which is exact: no square over- or underflows.
    exponent = math.frexp(largest)[1]
    of_one = n_values << 2 * _BITS
    mean = total_of(Measure(exponent, 0.0, 0, 1)) / of_one if centre else 0.0
    # And so are distances from the mean: that of values which differ by little of their size is small.
    ends = (math.ldexp(low, -exponent) - mean, math.ldexp(high, -exponent) - mean)
    zoom = math.frexp(max(map(abs, ends)))[1]
    sd = math.ldexp(math.sqrt(total_of(Measure(exponent, mean, zoom, 2)) / of_one), zoom)
    location, scale = math.ldexp(mean, exponent), math.ldexp(sd, exponent)
    # A constant differs from its own mean by rounding alone: its size is all that there is to go by.
    if sd <= 1e-13 * abs(mean):
        return location, max(_OF_CONSTANT * abs(location), _SMALLEST_SCALE) if location else 1.0
    if scale < _SMALLEST_SCALE:
        raise InputError(
            f"values must spread by at least {_SMALLEST_SCALE:g} or not at all, so that their "
            f"variance is a number; the standard deviation is {scale:.3g}. Change their unit first."
        )
    return location, scale


def total(values: np.ndarray, measure: Measure) -> int:
    """The sum of what is measured, in units of 2^-62: a whole number.

    So totals of parts add up to the same number, however the values are divided and in whatever order.

    Examples
    --------
    >>> total(np.array([1.0, 2.0, 4.0]), Measure(3, 0.0, 0, 1)) / 2**62 * 2**3
    7.0
    """
    return sum(_total(values[part], measure) for part in blocks(values.size, _AT_ONCE))


def _total(values: np.ndarray, measure: Measure) -> int:
    exponent, centre, zoom, power = measure
    x = values.astype(np.float64)
    # In two steps, because the power of the smallest numbers is above what a double can hold.
    x *= 2.0 ** -(exponent // 2)
    x *= 2.0 ** -(exponent - exponent // 2)
    if power == 2:
        x -= centre
        x *= 2.0**-zoom
        x *= x
    # Two whole numbers for each: a double holds sums of so few of them, of 31 bits, exactly.
    x *= 2.0**_BITS
    upper = np.rint(x)
    x -= upper
    x *= 2.0**_BITS
    return (int(upper.sum()) << _BITS) + int(np.rint(x).sum())


def new_values(values: np.ndarray, location: float, scale: float) -> np.ndarray:
    """Values that came after the fit in its standard units, in which draws hold them in float32.

    Raises InputError if one is so far off that it, or what is made of it, would not fit.
    """
    with np.errstate(over="ignore"):
        standard = (values - location) / scale
    if standard.size and not np.abs(standard).max() <= _FARTHEST:
        far = values[np.argmax(np.abs(standard))]
        raise InputError(
            f"new values may be up to {_FARTHEST:g} standard deviations away from those of the fit, "
            f"whose mean is {location:.3g} and standard deviation {scale:.3g}; got {far:.3g}. Is it in "
            "the same unit?"
        )
    return standard


def at_least_two(entries: Entries) -> Entries:
    """The entries with an empty row more, if there was only one."""
    if entries.pointers.size > 2:
        return entries
    return entries._replace(pointers=np.append(entries.pointers, entries.pointers[-1]))


def standardise(observations: Observations, centre: bool, dtype: np.dtype) -> Standard:
    """Bring the entries to standard units, gathered by row and by column."""
    stored = observations.stored_values
    location, scale = location_and_scale(stored, centre)
    values = np.empty(stored.size, dtype=dtype)
    for part in blocks(stored.size):
        values[part] = (stored[part].astype(np.float64) - location) / scale
    rows = Entries(observations.pointers, observations.column_index, values)
    columns = turned(rows, observations.shape[1])
    return Standard(at_least_two(rows), at_least_two(columns), location, scale)
