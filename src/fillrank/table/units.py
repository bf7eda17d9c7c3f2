"""Standard units, in which samplers work so that their constants do not depend on the scale."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.table.entries import Entries, iter_blocks, transpose
from fillrank.table.observations import Observations

# Variances in the data's units must neither overflow nor underflow.
_LARGEST_VALUE, _SMALLEST_SCALE = 1e152, 1e-152
# The scale of a constant, relative to its size: about the resolution of single precision.
_SCALE_OF_CONSTANT = 1e-6
# The largest new value in standard units; draws of larger ones could overflow in single precision.
_LARGEST_NEW_VALUE = 1e15
# Bits of each of the two integers that represent a number of size 1, and numbers summed together.
_BITS, _BLOCK = 31, 2**17


class Standard(NamedTuple):
    """Entries by row and by column, with values (value - location) / scale.

    There are at least two rows and two columns, because a ball in one dimension has no direction. An
    additional empty row or column does not change the others.
    """

    rows: Entries
    columns: Entries
    location: float
    scale: float


class Span(NamedTuple):
    """The ends of some values, and their number."""

    low: float
    high: float
    n_values: int


class Measure(NamedTuple):
    """The terms of a sum: ((value / 2^exponent - centre) / 2^zoom)^power, at most 1 in size."""

    exponent: int
    centre: float
    zoom: int
    power: int


def location_and_scale(values: np.ndarray, centre: bool) -> tuple[float, float]:
    """(mean, standard deviation), or (0, root mean square) without ``centre``.

    The scale is never 0: for a constant it is a millionth of its size, and zeros count as a constant of
    size 1. The result does not depend on the order of the values, not even in its last bit.

    Raises InputError if variances in the data's units would overflow or underflow.

    Examples
    --------
    >>> location_and_scale(np.array([1e150, 3e150]), centre=True)
    (2e+150, 1e+150)
    >>> location_and_scale(np.array([4.0, 4.0]), centre=True)
    (4.0, 4e-06)
    """
    span = Span(float(values.min()), float(values.max()), values.size)
    return compute_units(span, lambda measure: exact_sum(values, measure), centre)


def compute_units(
    span: Span, sum_of: Callable[[Measure], int], centre: bool
) -> tuple[float, float]:
    """Compute `location_and_scale` of values that may be distributed.

    Parameters
    ----------
    span : Span
        Of all values.
    sum_of : callable
        Returns `exact_sum` over all partitions of the values; it is called at most twice.
    centre : bool
    """
    low, high, n_values = span
    largest = max(abs(low), abs(high))
    if largest > _LARGEST_VALUE:
        raise InputError(
            f"values must be at most {_LARGEST_VALUE:g} in size, so that their squares do not "
            f"overflow; the largest is {largest:.3g}. Change their unit first."
        )
    # Scaled to size 1 by a power of two, which is exact: no square overflows or underflows.
    exponent = math.frexp(largest)[1]
    of_one = n_values << 2 * _BITS
    mean = sum_of(Measure(exponent, 0.0, 0, 1)) / of_one if centre else 0.0
    # Deviations are scaled too, because they are small if values differ by little of their size.
    ends = (math.ldexp(low, -exponent) - mean, math.ldexp(high, -exponent) - mean)
    zoom = math.frexp(max(map(abs, ends)))[1]
    sd = math.ldexp(math.sqrt(sum_of(Measure(exponent, mean, zoom, 2)) / of_one), zoom)
    location, scale = math.ldexp(mean, exponent), math.ldexp(sd, exponent)
    # A constant differs from its mean only by rounding, so its scale comes from its size.
    if sd <= 1e-13 * abs(mean):
        return location, max(_SCALE_OF_CONSTANT * (abs(location) or 1.0), _SMALLEST_SCALE)
    if scale < _SMALLEST_SCALE:
        raise InputError(
            f"the standard deviation of values must be 0 or at least {_SMALLEST_SCALE:g}, so that "
            f"their variance does not underflow; it is {scale:.3g}. Change their unit first."
        )
    return location, scale


def exact_sum(values: np.ndarray, measure: Measure) -> int:
    """The sum of a measure over values in units of 2^-62, as an integer.

    Integers add up to the same sum for every partition and order of the values.

    Examples
    --------
    >>> exact_sum(np.array([1.0, 2.0, 4.0]), Measure(3, 0.0, 0, 1)) / 2**62 * 2**3
    7.0
    """
    return sum(_sum_block(values[block], measure) for block in iter_blocks(values.size, _BLOCK))


def _sum_block(values: np.ndarray, measure: Measure) -> int:
    exponent, centre, zoom, power = measure
    x = values.astype(np.float64)
    # In two steps, because the factor for the smallest numbers would overflow.
    x *= 2.0 ** -(exponent // 2)
    x *= 2.0 ** -(exponent - exponent // 2)
    if power == 2:
        x -= centre
        x *= 2.0**-zoom
        x *= x
    # Two integers of 31 bits for each value: sums of a block of them are exact in float64.
    x *= 2.0**_BITS
    upper = np.rint(x)
    x -= upper
    x *= 2.0**_BITS
    return (int(upper.sum()) << _BITS) + int(np.rint(x).sum())


def standardise_new(values: np.ndarray, location: float, scale: float) -> np.ndarray:
    """Convert values that were not part of the fit to its standard units.

    Raises InputError if a value is so large that its draws, in float32, could overflow.
    """
    with np.errstate(over="ignore"):
        standard = (values - location) / scale
    if standard.size and not np.abs(standard).max() <= _LARGEST_NEW_VALUE:
        far = values[np.argmax(np.abs(standard))]
        raise InputError(
            f"new values can be up to {_LARGEST_NEW_VALUE:g} standard deviations from the mean of the "
            f"fit (mean {location:.3g}, standard deviation {scale:.3g}); got {far:.3g}. Check that it "
            "is in the same unit."
        )
    return standard


def pad_to_two_rows(entries: Entries) -> Entries:
    """The entries, with an additional empty row if there is only one."""
    if entries.pointers.size > 2:
        return entries
    return entries._replace(pointers=np.append(entries.pointers, entries.pointers[-1]))


def standardise(observations: Observations, centre: bool, dtype: np.dtype) -> Standard:
    """Convert entries to standard units, grouped by row and by column."""
    stored = observations.stored_values
    location, scale = location_and_scale(stored, centre)
    values = np.empty(stored.size, dtype=dtype)
    for block in iter_blocks(stored.size):
        values[block] = (stored[block].astype(np.float64) - location) / scale
    weights = observations.weights_as(dtype)
    rows = Entries(observations.pointers, observations.column_index, values, weights)
    columns = transpose(rows, observations.shape[1])
    return Standard(pad_to_two_rows(rows), pad_to_two_rows(columns), location, scale)
