"""Standard units, in which samplers work so that their constants do not depend on the scale."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from fillrank.errors import InputError
from fillrank.table.entries import Entries, iter_blocks, transpose
from fillrank.table.observations import Observations

# Variances in the data's units must neither overflow nor underflow.
_LARGEST_VALUE, _SMALLEST_SCALE = 1e152, 1e-152
# The scale of a constant, relative to its size: about the resolution of single precision.
_SCALE_OF_CONSTANT = 1e-6
# That of a constant column with its own unit: predictions differ from the constant by rounding only.
_SCALE_OF_CONSTANT_COLUMN = 1e-12
# Columns with fewer values are not compared. Beyond these factors columns are unlike: of their standard
# deviations, and of the range of their means in units of the typical one.
_FEWEST_TO_JUDGE = 5
_UNLIKE_SCALES, _UNLIKE_MEANS = 3.0, 10.0
# How often the standard deviations of a table's columns, all within the factor, look unlike by chance.
_FALSE_ALARMS = 0.01
# The largest new value in standard units; draws of larger ones could overflow in single precision.
_LARGEST_NEW_VALUE = 1e15
# Bits of each of the two integers that represent a number of size 1, and numbers summed together.
_BITS, _BLOCK = 31, 2**17


class Units(NamedTuple):
    """Values in the data's units are location_j + scale_j * value in column j.

    ``location`` and ``scale`` (n,) are float64. Values are clipped to ``value_range``, the rating scale,
    if there is one.
    """

    location: np.ndarray
    scale: np.ndarray
    value_range: tuple[float, float] | None

    @staticmethod
    def equal(
        location: float, scale: float, n: int, value_range: tuple[float, float] | None
    ) -> "Units":
        """The same unit for n columns."""
        return Units(np.full(n, float(location)), np.full(n, float(scale)), value_range)

    @property
    def are_shared(self) -> bool:
        """Whether all columns have the same unit."""
        return all(bool((each == each[0]).all()) for each in (self.location, self.scale))

    @property
    def shared_scale(self) -> float:
        """The scale of all columns; 1 if they have their own.

        Quantities of the complete table, such as singular values, are multiplied by it. So they are in
        the data's units if columns share one, and otherwise in standard units.
        """
        return float(self.scale[0]) if self.are_shared else 1.0

    def restore(
        self, values: np.ndarray, columns: Any, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Values in the data's units, clipped to the rating scale; in ``out``, if it is given.

        Parameters
        ----------
        values : ndarray
            In standard units.
        columns : index
            The columns of the last axis of ``values``, or of each value.
        out : ndarray, optional
        """
        values = np.multiply(self.scale[columns], values, out=out)
        values += self.location[columns]
        return values if self.value_range is None else values.clip(*self.value_range, out=values)


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


def standardise_new(values: np.ndarray, columns: np.ndarray, units: Units) -> np.ndarray:
    """Convert values of these columns that were not part of the fit to its standard units.

    Raises InputError if a value is so large that its draws, in float32, could overflow.
    """
    with np.errstate(over="ignore"):
        standard: np.ndarray = (values - units.location[columns]) / units.scale[columns]
    if standard.size and not np.abs(standard).max() <= _LARGEST_NEW_VALUE:
        place = np.argmax(np.abs(standard))
        far, location, scale = values[place], *(each[columns[place]] for each in units[:2])
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


def shared_units(
    observations: Observations, centre: bool, value_range: tuple[float, float] | None
) -> Units:
    """One unit for all columns: `location_and_scale` of all values."""
    location, scale = location_and_scale(observations.stored_values, centre)
    return Units.equal(location, scale, observations.shape[1], value_range)


class ColumnStatistics(NamedTuple):
    """The number of values, their mean and their standard deviation, by column; NaN without values."""

    n_values: np.ndarray
    mean: np.ndarray
    sd: np.ndarray


def column_statistics(observations: Observations) -> ColumnStatistics:
    """Statistics of the observed values of each column."""
    column, values, n = observations.column_index, observations.values, observations.shape[1]
    count = np.bincount(column, minlength=n)
    # Scaled by a power of two, which is exact: no square overflows.
    size = 2.0 ** (math.frexp(float(np.abs(values).max(initial=0.0)))[1] - 1)
    values = values / size
    with np.errstate(invalid="ignore"):
        mean = np.bincount(column, values, n) / count
        deviations = values - mean[column]
        mean += np.bincount(column, deviations, n) / count  # what rounding has left
        sd = np.sqrt(np.bincount(column, (values - mean[column]) ** 2, n) / count)
    return ColumnStatistics(count, size * mean, size * sd)


def column_units(
    observations: Observations, value_range: tuple[float, float] | None, keep_empty: bool
) -> Units:
    """The mean and the standard deviation of each column as its unit.

    A constant column has a scale so small that it is predicted as that constant. A column without values
    has no unit: its location is NaN, and so are its predictions. With ``keep_empty`` they are around 0.
    """
    count, mean, sd = column_statistics(observations)
    size = np.abs(mean)
    is_constant = sd <= 1e-13 * size
    scale = np.where(is_constant, np.maximum(_SCALE_OF_CONSTANT_COLUMN * size, _SMALLEST_SCALE), sd)
    scale[count == 0] = 1.0
    if (size > _LARGEST_VALUE).any() or (scale < _SMALLEST_SCALE).any():
        location_and_scale(observations.stored_values, centre=True)  # raises an error that says why
    location = np.where(count == 0, 0.0, mean) if keep_empty else mean
    return Units(location, scale, value_range)


class UnitsChoice(NamedTuple):
    """Whether columns have their own units, and why, in a sentence."""

    by_column: bool
    reason: str


def choose_units(observations: Observations) -> UnitsChoice:
    """Decide whether the columns of a table have their own units.

    Long tables and ratings have one unit. The columns of a wide table have their own, if a standard
    deviation differs by more than a factor of 3 from the typical one, and by more than chance explains,
    or if their means differ by more than 10 typical standard deviations.
    """
    if observations.origin.layout not in ("wide", "matrix"):
        return UnitsChoice(False, "the table is not a wide one, so all values have one unit")
    if observations.value_range() is not None:
        return UnitsChoice(False, "the values are ratings on one scale")
    count, mean, sd = column_statistics(observations)
    is_long = count >= _FEWEST_TO_JUDGE
    varies = is_long & (sd > 1e-13 * np.abs(mean))
    mean, count, sd = mean[is_long], count[varies], sd[varies]  # a constant may be far away, too
    typical = float(np.median(sd)) if sd.size else math.nan
    if sd.size >= 2 and _has_unlike_scale(count, sd / typical):
        what, low, high = "standard deviations", sd.min(), sd.max()
    elif sd.size and np.ptp(mean) > _UNLIKE_MEANS * typical:
        what, low, high = "means", mean.min(), mean.max()
    elif sd.size < 2:
        return UnitsChoice(False, "too few columns vary to compare their scales")
    else:
        return UnitsChoice(False, "the columns are alike in mean and standard deviation")
    return UnitsChoice(True, f"the {what} of the columns range from {low:.3g} to {high:.3g}")


def _has_unlike_scale(count: np.ndarray, ratio: np.ndarray) -> bool:
    """Whether a standard deviation is beyond the factor, by more than the error of its estimate.

    ``ratio`` has those of the samples over the typical one. If that of the population is a factor f,
    then count (ratio / f)^2 of normal values has the chi-squared distribution with count - 1 degrees of
    freedom.
    """
    rate = _FALSE_ALARMS / (2 * count.size)
    highest = special.chdtri(count - 1, rate)
    lowest = special.chdtri(count - 1, 1 - rate)
    too_large = count * (ratio / _UNLIKE_SCALES) ** 2 > highest
    too_small = count * (ratio * _UNLIKE_SCALES) ** 2 < lowest
    return bool((too_large | too_small).any())


def standardise(
    observations: Observations, units: Units, dtype: np.dtype
) -> tuple[Entries, Entries]:
    """Entries in standard units, by row and by column.

    There are at least two rows and two columns, because a ball in one dimension has no direction. An
    additional empty row or column does not change the others.
    """
    stored, column = observations.stored_values, observations.column_index
    values = np.empty(stored.size, dtype=dtype)
    for block in iter_blocks(stored.size):
        at = column[block]
        values[block] = (stored[block].astype(np.float64) - units.location[at]) / units.scale[at]
    weights = observations.weights_as(dtype)
    cells = observations.cells_or_empty()
    rows = Entries(observations.pointers, column, values, weights, cells)
    columns = transpose(rows, observations.shape[1])
    return pad_to_two_rows(rows), pad_to_two_rows(columns)
