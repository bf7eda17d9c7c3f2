r"""Values of any kind as numbers of a latent table, in which the samplers work.

Every kind of value is a monotone function of a latent number y:

- number: the value is location + scale y;
- positive: its logarithm is;
- count: the value is floor(exp(location + scale y)), so k is the interval [log k, log(k + 1)) and 0 all
  below;
- ordered levels: level c is the interval (theta_{c-1}, theta_c];
- yes/no: the same with two levels;
- category of K values: K - 1 latent columns with two levels each. The first says whether the value is
  the most frequent one; the l-th, which is missing unless all before it say no, whether it is the l-th.
  So

.. math:: P(x = l) = P(y_l > \theta_l) \prod_{h < l} P(y_h \le \theta_h) .

Of a number or a positive number, too, only an interval may be known ("<0.5"). So an entry of the
latent table is an exact number, or it has the number of an interval. The ends of all intervals are one
array, of which a sampler changes the thresholds between ordered levels. At first, thresholds are normal
quantiles of the frequencies of levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from fillrank.errors import InputError, Setting
from fillrank.table.column_types import coded_columns
from fillrank.table.entries import Entries, compress, transpose
from fillrank.table.kinds import LEVEL_KINDS, ColumnKind, Kind
from fillrank.table.labels import format_labels
from fillrank.table.observations import Observations
from fillrank.table.units import location_and_scale, pad_to_two_rows

# Stands for infinity in standard units: states of chains and files have finite numbers only.
FAR = 1e6
# The largest number of levels of ratings.
MOST_LEVELS = 50
# What is added to a count before its logarithm is taken, for location and scale.
_HALF = 0.5
# Added to the frequencies of levels, so that those that do not occur have thresholds, too.
_PSEUDOCOUNT = 0.5
# The largest latent number of a new value, in standard units.
_LARGEST = 1e4
# The scale of a constant column, relative to its size: predictions differ from it by rounding only.
_SCALE_OF_CONSTANT, _SMALLEST_SCALE = 1e-12, 1e-150
_SHOWN = 5


class Scale(NamedTuple):
    """How the values of a column follow from latent numbers.

    ``levels`` are the values of the levels; those of a category by falling frequency. ``first`` is the
    number of the first interval of the levels; a category has two for each of its latent columns.
    Predictions are clipped to ``bounds``. The location of a column without values is NaN, and so are its
    predictions.
    """

    kind: Kind
    levels: np.ndarray
    location: float
    scale: float
    first: int
    bounds: tuple[float, float]

    @property
    def n_latent(self) -> int:
        """The number of latent columns."""
        return self.levels.size - 1 if self.kind == "category" else 1

    @property
    def has_levels(self) -> bool:
        """Whether values are one of a few levels."""
        return self.kind in LEVEL_KINDS

    def standard(self, values: np.ndarray) -> np.ndarray:
        """The latent numbers of exact values."""
        if self.kind == "positive":
            values = np.log(values)
        elif self.kind == "count":
            values = np.log(values + _HALF)
        return (values - self.location) / self.scale

    def restored(self, latent: np.ndarray) -> np.ndarray:
        """The values of latent numbers, clipped to the bounds; not for levels."""
        numbers = self.location + self.scale * latent
        if self.kind == "positive":
            numbers = np.exp(np.minimum(numbers, 700.0))
        elif self.kind == "count":
            numbers = np.floor(np.exp(np.minimum(numbers, 700.0)))
        return np.clip(numbers, *self.bounds)

    def nearest_codes(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of a level near each value, and whether the value is that level."""
        order = np.argsort(self.levels)
        places = np.searchsorted(self.levels, values, sorter=order).clip(0, self.levels.size - 1)
        codes: np.ndarray = order[places]
        return codes, self.levels[codes] == values

    def level_codes(self, values: np.ndarray, label: Any) -> np.ndarray:
        """The number of the level of each value; an error for values that are no level."""
        codes, are_known = self.nearest_codes(values)
        unknown = np.unique(values[~are_known])
        if unknown.size:
            raise InputError(
                f"column {format_labels([label])} has the levels {_listed(np.sort(self.levels))}; got "
                f"{_listed(unknown)}, which the fit has not seen"
            )
        return codes


class Coding(NamedTuple):
    """How a table of mixed kinds is coded.

    ``scales`` are those that occur, ``scale_of`` (n,) the number of that of each column, and the latent
    columns of column j are from ``first_latent[j]`` to ``first_latent[j + 1]``. ``limits`` (2, k) are
    the ends of the intervals at the start: those of levels, then those of counts and censored values.
    """

    scales: tuple[Scale, ...]
    scale_of: np.ndarray
    first_latent: np.ndarray
    limits: np.ndarray
    labels: np.ndarray

    @property
    def n_latent(self) -> int:
        """The number of latent columns."""
        return int(self.first_latent[-1])

    @property
    def column_of(self) -> np.ndarray:
        """The column of each latent column."""
        return np.repeat(np.arange(self.scale_of.size), np.diff(self.first_latent))

    def scale(self, j: int) -> Scale:
        """The scale of a column."""
        return self.scales[int(self.scale_of[j])]

    def by_scale(self, columns: np.ndarray) -> Iterator[tuple[Scale, np.ndarray]]:
        """Iterate over the scales of some columns, with the places of their columns among these."""
        numbers = self.scale_of[columns]
        for g in np.unique(numbers).tolist():
            yield self.scales[g], np.flatnonzero(numbers == g)

    @property
    def n_level_intervals(self) -> int:
        """The number of intervals that belong to levels; they come first."""
        ends = [
            each.first + (2 * each.n_latent if each.kind == "category" else each.levels.size)
            for each in self.scales
            if each.has_levels
        ]
        return max(ends, default=0)

    def drawn_scales(self) -> np.ndarray:
        """The first interval and the number of levels (g, 2) of scales that have thresholds to draw."""
        drawn = [
            (each.first, each.levels.size)
            for each in self.scales
            if each.kind == "ordered" and each.levels.size > 3
        ]
        return np.array(drawn, dtype=np.int64).reshape(-1, 2)

    def with_empty_at_zero(self) -> Coding:
        """The same, where columns without values have predictions around 0."""
        scales = (
            each._replace(location=0.0) if np.isnan(each.location) else each for each in self.scales
        )
        return self._replace(scales=tuple(scales))

    def fixed_columns(self) -> np.ndarray:
        """The latent columns of two levels, whose noise is fixed."""
        has_two = np.array(
            [each.kind == "category" or each.levels.size == 2 for each in self.scales]
        )
        return np.flatnonzero(has_two[self.scale_of][self.column_of])


def _listed(values: np.ndarray) -> str:
    shown = ", ".join(f"{value:g}" for value in values[:_SHOWN])
    return shown if values.size <= _SHOWN else f"{shown}, ..."


# The coding of a table


class _Builder:
    """Collects the ends of intervals."""

    def __init__(self) -> None:
        self.low: list[np.ndarray] = []
        self.high: list[np.ndarray] = []
        self.n = 0

    def add(self, low: np.ndarray, high: np.ndarray) -> int:
        """Add intervals; the number of the first."""
        first = self.n
        self.low.append(np.clip(low, -FAR, FAR))
        self.high.append(np.clip(high, -FAR, FAR))
        self.n += len(low)
        return first

    def limits(self) -> np.ndarray:
        """The ends (2, k) of all intervals."""
        return np.array([np.concatenate(self.low), np.concatenate(self.high)])


def code_table(
    observations: Observations,
    kinds: Sequence[ColumnKind],
    bounds: Mapping[int, tuple[float, float]],
) -> Coding:
    """The coding of a table whose columns have these kinds.

    Parameters
    ----------
    observations : Observations
    kinds : sequence of ColumnKind
        One for each column.
    bounds : mapping of position to (low, high)
        Of the predictions of some columns.
    """
    builder, n = _Builder(), observations.shape[1]
    builder.add(np.zeros(0), np.zeros(0))
    columns = observations.by_column()
    scales = []
    for j in range(n):
        values = columns.values[columns.pointers[j] : columns.pointers[j + 1]]
        limits = bounds.get(j, (-np.inf, np.inf))
        scales.append(_scale(values.astype(np.float64), kinds[j], limits, builder))
    first_latent = np.append(0, np.cumsum([each.n_latent for each in scales]))
    coding = Coding(
        tuple(scales), np.arange(n), first_latent, builder.limits(), observations.column_labels
    )
    return _with_other_intervals(coding, observations)


def code_ratings(observations: Observations) -> Coding:
    """The coding of a table whose values are levels of one scale, as ratings are."""
    if observations.cells is not None or coded_columns(observations.column_types) is not None:
        raise _not_ratings("a table with text or limits")
    levels, counts = np.unique(observations.values, return_counts=True)
    return code_levels(levels.astype(np.float64), counts, observations.column_labels)


def code_levels(levels: np.ndarray, counts: np.ndarray, labels: np.ndarray) -> Coding:
    """The coding of such a table by its levels, ascending, and how often each occurs.

    ``labels`` are those of the columns.
    """
    if levels.size > MOST_LEVELS:
        raise _not_ratings(f"more than {MOST_LEVELS} different values")
    if levels.size < 2:
        raise _not_ratings(f"{levels.size} different values")
    return _shared_coding("ordered", levels, _level_intervals(counts), labels)


def code_two_levels(
    observations: Observations, levels: np.ndarray, quantile: Callable[[np.ndarray], np.ndarray]
) -> Coding:
    """The coding of a table whose values are one of two levels.

    ``quantile`` is the inverse of the distribution function of latent numbers, for the threshold.
    """
    counts = np.bincount(np.searchsorted(levels, observations.values), minlength=levels.size)
    ends = _level_intervals(counts, quantile)
    return _shared_coding("yes_no", levels, ends, observations.column_labels)


def _shared_coding(
    kind: Kind, levels: np.ndarray, ends: tuple[np.ndarray, np.ndarray], labels: np.ndarray
) -> Coding:
    """The coding of columns that have the same levels, with these intervals."""
    builder, n = _Builder(), labels.size
    first = builder.add(*ends)
    scale = Scale(kind, levels, 0.0, 1.0, first, (-np.inf, np.inf))
    return Coding((scale,), np.zeros(n, dtype=np.int64), np.arange(n + 1), builder.limits(), labels)


def _not_ratings(found: str) -> InputError:
    return InputError(
        f"ratings have 2 to {MOST_LEVELS} levels; got {found}",
        place=Setting("likelihood", "ordered"),
        advice=("Use ", Setting("likelihood", "auto"), " for other values."),
    )


def _scale(
    values: np.ndarray,
    column: ColumnKind,
    bounds: tuple[float, float],
    builder: _Builder,
) -> Scale:
    kind, levels = column.kind, column.levels
    if kind in LEVEL_KINDS:
        counts = np.bincount(np.searchsorted(levels, values), minlength=levels.size)
        if kind == "category":
            order = np.argsort(-counts, kind="stable")
            levels, counts = levels[order], counts[order]
            first = builder.add(*_category_intervals(counts))
        else:
            first = builder.add(*_level_intervals(counts))
        return Scale(kind, levels, 0.0, 1.0, first, bounds)
    if kind in ("positive", "count"):
        bounds = (max(bounds[0], 0.0), bounds[1])
    probe = Scale(kind, levels, 0.0, 1.0, 0, bounds)
    if not values.size:
        return probe._replace(location=np.nan)
    standard = probe.standard(values)
    location, scale = location_and_scale(standard, centre=True)
    if standard.min() == standard.max():
        scale = max(_SCALE_OF_CONSTANT * abs(location), _SMALLEST_SCALE)
    return probe._replace(location=location, scale=scale)


def _level_intervals(
    counts: np.ndarray, quantile: Callable[[np.ndarray], np.ndarray] = ndtri
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals whose probabilities are the frequencies of the levels."""
    smooth = counts + _PSEUDOCOUNT
    thresholds = quantile(np.cumsum(smooth)[:-1] / smooth.sum())
    return np.append(-np.inf, thresholds), np.append(thresholds, np.inf)


def _category_intervals(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two intervals for each latent column: "a later value", and "this value"."""
    smooth = counts + _PSEUDOCOUNT
    rest = np.cumsum(smooth[::-1])[::-1]
    thresholds = ndtri(1.0 - smooth[:-1] / rest[:-1])
    low = np.column_stack([np.full(thresholds.size, -np.inf), thresholds]).ravel()
    high = np.column_stack([thresholds, np.full(thresholds.size, np.inf)]).ravel()
    return low, high


def _with_other_intervals(coding: Coding, observations: Observations) -> Coding:
    """The coding with the intervals of the counts and of the censored values of a table."""
    low, high = _other_intervals(coding, observations.by_row(), observations.intervals)
    limits = np.hstack([coding.limits, np.clip([low, high], -FAR, FAR)])
    return coding._replace(limits=limits)


def _other_intervals(
    coding: Coding, entries: Entries, intervals: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the intervals of counts and of censored values, in the order of their entries."""
    low, high = np.full(entries.n_entries, np.nan), np.full(entries.n_entries, np.nan)
    for g, scale in enumerate(coding.scales):
        mine = coding.scale_of[entries.indices] == g
        if scale.kind == "count":
            values = entries.values[mine].astype(np.float64)
            with np.errstate(divide="ignore"):
                ends = np.log(values), np.log(values + 1.0)
            low[mine], high[mine] = ((each - scale.location) / scale.scale for each in ends)
        if entries.cells.size and intervals is not None:
            mine &= entries.cells >= 0
            if mine.any():
                low[mine], high[mine] = latent_ends(scale, intervals[entries.cells[mine]])
    known = ~np.isnan(low)
    return low[known], high[known]


def latent_ends(scale: Scale, ends: np.ndarray) -> np.ndarray:
    """The ends (2, n) of intervals of values, on the latent scale."""
    if scale.has_levels and len(ends):
        raise InputError(
            "the values of a column of levels cannot be limits or intervals",
            advice=("Give it the kind number in ", Setting("kinds"), "."),
        )
    low, high = ends.T
    if scale.kind == "number":
        return (np.array([low, high]) - scale.location) / scale.scale
    if scale.kind == "count":
        # "<5" is at most 4 and ">10" at least 11, but 2-4 includes its ends: k is [log k, log(k + 1)).
        low, high = low + (high == np.inf), high + (low > -np.inf)
    with np.errstate(divide="ignore"):
        both = np.log(np.maximum([low, high], 0.0))
    return (both - scale.location) / scale.scale


# Entries of the latent table


def encode(
    coding: Coding, entries: Entries, intervals: np.ndarray | None
) -> tuple[Entries, np.ndarray]:
    """Entries of the latent table, by row, and the ends (2, k) of the intervals that they refer to.

    Parameters
    ----------
    coding : Coding
    entries : Entries
        By row, in the units of the data; the indices are columns of the table.
    intervals : ndarray (n, 2) or None
        The ends of the intervals of censored values.

    Returns
    -------
    entries : Entries
        In standard units. Of those with an interval, the value is the mean of a standard normal variable
        in that interval: where a sampler starts.
    limits : ndarray (2, k)
        Those of the levels first, as at the start of a chain.
    """
    n_rows = entries.pointers.size - 1
    row_of = np.repeat(np.arange(n_rows), np.diff(entries.pointers))
    other = np.clip(_other_intervals(coding, entries, intervals), -FAR, FAR)
    n_levels = coding.n_level_intervals
    limits = np.hstack([coding.limits[:, :n_levels], other])
    number_of = _numbers_of_others(coding, entries, n_levels)
    parts = [_encode_scale(coding, g, entries, number_of) for g in range(len(coding.scales))]
    place, latent, values, cells = (np.concatenate(each) for each in zip(*parts, strict=True))
    known = cells >= 0
    values[known] = expected_values(limits)[cells[known]]
    weights = entries.weights[place] if entries.weights.size else entries.weights
    coded = compress(n_rows, row_of[place], latent, values, weights, cells.astype(np.int32))
    return coded, limits


def _numbers_of_others(coding: Coding, entries: Entries, first: int) -> np.ndarray:
    """The number of the interval of every count and censored entry; -1 for others."""
    is_count = np.array([each.kind == "count" for each in coding.scales])
    has_own = is_count[coding.scale_of[entries.indices]]
    if entries.cells.size:
        has_own |= entries.cells >= 0
    numbers = np.full(entries.n_entries, -1)
    numbers[has_own] = first + np.arange(np.count_nonzero(has_own))
    return numbers


def _encode_scale(
    coding: Coding, g: int, entries: Entries, number_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(place, latent column, value, interval) of the latent entries of a scale."""
    scale = coding.scales[g]
    place = np.flatnonzero(coding.scale_of[entries.indices] == g)
    columns = entries.indices[place]
    latent = coding.first_latent[columns]
    values = entries.values[place].astype(np.float64)
    if not scale.has_levels:
        numbers = number_of[place]
        exact = numbers < 0
        standard = np.zeros(place.size)
        standard[exact] = np.clip(scale.standard(values[exact]), -_LARGEST, _LARGEST)
        return place, latent, standard, numbers
    label = coding.labels[columns[0]] if place.size else None
    codes = scale.level_codes(values, label)
    if scale.kind != "category":
        return place, latent, np.zeros(place.size), scale.first + codes
    # "No" in all latent columns before the value's own, and "yes" in that; the last value has none.
    n_no = codes
    n_each = np.minimum(codes + 1, scale.n_latent)
    of = np.repeat(np.arange(place.size), n_each)
    which = np.arange(of.size) - np.repeat(np.cumsum(n_each) - n_each, n_each)
    is_yes = which == n_no[of]
    cells = scale.first + 2 * which + is_yes
    return place[of], latent[of] + which, np.zeros(of.size), cells


def expected_values(limits: np.ndarray) -> np.ndarray:
    """The mean of a standard normal variable in each interval."""
    low, high = limits
    flip = low + high > 0
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    mass = ndtr(high) - ndtr(low)
    density = np.exp(-0.5 * low**2) - np.exp(-0.5 * high**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = density / np.sqrt(2.0 * np.pi) / mass
    mean = np.where(mass > 1e-12, mean, high)
    mean = np.clip(mean, low, high)
    expected: np.ndarray = np.where(flip, -mean, mean)
    return expected


def latent_data(
    coding: Coding, observations: Observations, dtype: np.dtype
) -> tuple[Entries, Entries]:
    """The entries of a table's latent numbers, by row and by column, as samplers take them."""
    rows, _ = encode(coding, observations.by_row(), observations.intervals)
    rows = rows._replace(
        values=rows.values.astype(dtype), weights=rows.weights.astype(dtype, copy=False)
    )
    columns = transpose(rows, coding.n_latent)
    return pad_to_two_rows(rows), pad_to_two_rows(columns)


def checked_bounds(
    observations: Observations, bounds: Mapping[Any, Any] | None
) -> dict[int, tuple[float, float]]:
    """The bounds that users gave, by the position of their column."""
    if bounds is not None and not isinstance(bounds, Mapping):
        raise InputError(
            place=Setting("bounds"),
            allowed="a mapping of column to (low, high), such as {'age': (0, 110)}",
            value=bounds,
        )
    if not bounds:
        return {}
    positions = observations.column_positions(list(bounds)).tolist()
    found = {}
    for j, (label, ends) in zip(positions, bounds.items(), strict=True):
        low, high = _as_bounds(ends)
        if not low < high:
            raise InputError(
                place=Setting("bounds"),
                allowed="(low, high) for each column, with low < high; None for a side without a bound",
                value=f"{ends!r} for {label!r}",
            )
        found[j] = (low, high)
    return found


def _as_bounds(ends: Any) -> tuple[float, float]:
    """Two numbers; NaN if there are none."""
    try:
        low, high = ends
        return (
            -math.inf if low is None else float(low),
            math.inf if high is None else float(high),
        )
    except (TypeError, ValueError):
        return math.nan, math.nan
