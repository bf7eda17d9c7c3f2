"""Tables of sensors and times as tables of days and times of day, and back.

A table of sensors x times has one column for each time. In the refolded table, a row is one day of one
sensor and a column is a time of day. So the days of all sensors share their patterns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from fillrank.errors import InputError, Setting
from fillrank.features.times import TimeFeatures, times
from fillrank.table.column_types import are_numbers
from fillrank.table.feature_table import FeatureTable
from fillrank.table.frames import Origin, as_frame, is_data_frame, to_wide
from fillrank.table.labels import LabelIndex, as_text, check_unique, format_label
from fillrank.table.observations import Observations
from fillrank.table.times import DAY, as_period, as_times, looks_like_times
from fillrank.table.triplets import Triplets, dense_matrix
from fillrank.table.wide_frames import wide_table
from fillrank.validation import check_choice

Axis = Literal["auto", "rows", "columns"]

_MONDAY = 4 * DAY  # the 5th of January 1970: weeks begin on Mondays, and days at midnight
_SEPARATOR = " | "
# The most cells of the refolded table for each time of a sensor. Times at even steps have 1, and about 2
# if all days are partial; periods that the steps do not divide have many.
_MOST_CELLS = 10


class _Folds(NamedTuple):
    """Where each time goes: the position of its period, and that of its place in the period.

    ``starts`` are the starts of the periods, datetime64 or int64. ``offsets`` are the places, which
    are the columns of the refolded table: the time since the start, in int64.
    """

    fold_index: np.ndarray
    slot_index: np.ndarray
    starts: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Refolded:
    """A refolded table, from `refold`.

    Attributes
    ----------
    observations : Observations
        The refolded table, for `fit` or `fit_transform`. Its rows are labelled with the sensor and the
        start of the period, as in "sensor 7 | 2024-05-01", and its columns with times of day, as in
        "13:05".
    original : Observations
        The table that was given.
    time_axis : {"rows", "columns"}
        The axis of the original table that has the times.
    """

    observations: Observations
    original: Observations
    time_axis: Literal["rows", "columns"]
    folds: _Folds

    @property
    def row_features(self) -> dict[str, FeatureTable | TimeFeatures]:
        """Features of the rows for `fit`: which sensor each is of, and when its period starts."""
        sensors, _ = _sensors_and_times(self.original, self.time_axis)
        names = _as_objects(as_text(sensor) for sensor in sensors)
        features: dict[str, FeatureTable | TimeFeatures] = {}
        if len(sensors) > 1:
            fields = {"sensor": np.repeat(names, len(self.folds.starts))}
            features["sensor"] = FeatureTable(self.observations.row_labels, fields)
        if len(self.folds.starts) > 2:
            features["times"] = times(np.tile(self.folds.starts, len(sensors)))
        return features

    def restore(self, filled: Any) -> Any:
        """Put a completed refolded table back into the layout of the original table.

        Parameters
        ----------
        filled : data frame or array
            A table with the rows and columns of ``observations``, such as the result of `fit_transform`.
            A data frame is matched by its labels.

        Returns
        -------
        data frame or ndarray
            With the labels and the order of the original table, and of its library. Times of day that
            the original does not have, on its first and last day, are left out.
        """
        matrix = self._matched(filled)
        n_folds, n_slots = len(self.folds.starts), len(self.folds.offsets)
        cube = matrix.reshape(-1, n_folds, n_slots)
        unfolded = cube[:, self.folds.fold_index, self.folds.slot_index]
        return to_wide(self.original, unfolded if self.time_axis == "columns" else unfolded.T)

    def _matched(self, filled: Any) -> np.ndarray:
        """The cells of a completed refolded table, in the order of ``observations``."""
        if is_data_frame(filled):
            table = wide_table(as_frame(filled))
            rows = LabelIndex(table.row_labels, "row").positions(self.observations.row_labels)
            columns = LabelIndex(table.column_labels, "column").positions(
                self.observations.column_labels
            )
            matched: np.ndarray = table.matrix[np.ix_(rows, columns)]
            return matched
        matrix = dense_matrix(filled, "filled")
        if matrix.shape != self.observations.shape:
            raise InputError(
                place=Setting("filled"),
                allowed=f"the completed refolded table, of shape {self.observations.shape}",
                value=matrix.shape,
                advice="Pass what fit_transform returns for the refolded table.",
            )
        return matrix

    def __repr__(self) -> str:
        (m, n), (rows, columns) = self.original.shape, self.observations.shape
        return f"<Refolded: {m:,} x {n:,} as {rows:,} rows x {columns:,} columns>"


def refold(table: Any, period: Any = "1D", axis: Axis = "auto") -> Refolded:
    """Turn a table of sensors and times into one of days and times of day.

    A day of a sensor becomes a row, and a time of day a column. This is for measurements that repeat
    daily, such as traffic: the model then finds patterns of days.

    Parameters
    ----------
    table : data frame, Observations, array or sparse matrix
        With times as the labels of its rows or of its columns; see `Observations.of`. Steps may be
        uneven, and the first and the last day may be partial.
    period : str, timedelta or number
        The length of a row, such as "1D", "7D" or "12h". A week begins on Monday. It is a whole number
        if the times are whole numbers, as in a table without labels.
    axis : {"auto", "rows", "columns"}
        The axis that has the times. By default, that whose labels are dates.

    Returns
    -------
    Refolded
        Fit its ``observations``, and call its `restore` with the completed table.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> hours = pd.date_range("2024-05-01", periods=48, freq="h")
    >>> table = pd.DataFrame({"A9": np.arange(48.0), "B3": np.ones(48)}, index=hours)
    >>> folded = refold(table)
    >>> folded
    <Refolded: 48 x 2 as 4 rows x 24 columns>
    >>> folded.observations.row_labels[:2]
    array(['A9 | 2024-05-01', 'A9 | 2024-05-02'], dtype=object)
    >>> folded.observations.column_labels[:2]
    array(['00:00', '01:00'], dtype=object)
    """
    check_choice("axis", axis, ("auto", "rows", "columns"))
    original = Observations.of(table)
    _check_numbers(original)
    time_axis = _find_axis(original) if axis == "auto" else axis
    sensors, times = _sensors_and_times(original, time_axis)
    folds = _fold(times, period)
    triplets = _moved_entries(original, time_axis, folds)
    observations = Observations.from_positions(
        triplets,
        _row_labels(sensors, folds.starts),
        _column_labels(folds),
        _origin(original.origin),
        intervals=original.intervals,
    )
    observations = replace(observations, scale_before_averaging=original.scale_before_averaging)
    return Refolded(observations, original, time_axis, folds)


def _check_numbers(observations: Observations) -> None:
    """Raise InputError if values are not numbers: those of a column would be in many columns."""
    for label, each in zip(
        observations.column_labels, observations.column_types or (), strict=False
    ):
        if not are_numbers([each]):
            raise InputError(
                place=f"column {format_label(label)}",
                allowed="numbers, to be refolded",
                value=each.values,
                advice="Remove it.",
            )


def _find_axis(observations: Observations) -> Literal["rows", "columns"]:
    in_rows = looks_like_times(observations.row_labels)
    if in_rows == looks_like_times(observations.column_labels):
        found = "those of both are" if in_rows else "those of neither are"
        raise InputError(
            f"the labels of the rows or of the columns must be dates; {found}",
            advice=(
                "Choose the times with ",
                Setting("axis", "rows"),
                " or ",
                Setting("axis", "columns"),
                "; whole numbers can be times too.",
            ),
        )
    return "rows" if in_rows else "columns"


def _sensors_and_times(observations: Observations, time_axis: str) -> tuple[np.ndarray, np.ndarray]:
    """The labels that are not times, and those that are."""
    labels = observations.row_labels, observations.column_labels
    return labels[::-1] if time_axis == "rows" else labels


def _fold(labels: np.ndarray, period: Any) -> _Folds:
    """The period of each time and its place in it."""
    times = as_times(labels, "the labels of times")
    of_dates = times.dtype.kind == "M"
    length = as_period(period, of_dates, "period")
    if not of_dates:
        _check_whole(times, "the labels of times", "dates or whole numbers")
    unit = "a whole number of microseconds" if of_dates else "a whole number, as the times are"
    _check_whole(np.array([length]), Setting("period"), unit)
    ticks = times.astype(np.int64)
    _check_distinct(labels, ticks)
    folds, offsets = np.divmod(ticks - (_MONDAY if of_dates else 0), int(length))
    starts, fold_index = np.unique(folds, return_inverse=True)
    slots, slot_index = np.unique(offsets, return_inverse=True)
    result = _Folds(fold_index, slot_index, _starts(starts * int(length), of_dates), slots)
    _check_repeats(result, len(labels), period)
    return result


def _check_whole(numbers: np.ndarray, place: str | Setting, allowed: str) -> None:
    """Refuse fractions: with them, equal places in a period could differ by rounding."""
    is_whole = (numbers == np.rint(numbers)) & (np.abs(numbers) < 2**53)
    if not is_whole.all():
        value = float(numbers[np.argmin(is_whole)])
        raise InputError(place=place, allowed=allowed, value=value)


def _starts(ticks: np.ndarray, of_dates: bool) -> np.ndarray:
    """The starts of periods: dates where all are at midnight, otherwise with times."""
    if not of_dates:
        return ticks
    starts = (ticks + _MONDAY).view("datetime64[us]")
    return starts.astype("datetime64[D]") if not (ticks % DAY).any() else starts


def _check_distinct(labels: np.ndarray, ticks: np.ndarray) -> None:
    distinct, first, counts = np.unique(ticks, return_index=True, return_counts=True)
    if len(distinct) < len(ticks):
        repeated = format_label(labels[first[np.argmax(counts)]])
        raise InputError(
            f"each time must be there once; {repeated} is repeated",
            advice="If clocks were set back, convert the times to UTC first.",
        )


def _check_repeats(folds: _Folds, n_times: int, period: Any) -> None:
    """Raise InputError if there is only one period, or the times are hardly ever at the same place."""
    n_folds, n_slots = len(folds.starts), len(folds.offsets)
    if n_folds < 2:
        raise InputError(
            place=Setting("period"),
            allowed="so short that the times are in at least 2 periods",
            value=period,
        )
    if n_slots == n_times or n_folds * n_slots > _MOST_CELLS * n_times:
        raise InputError(
            f"times must be at the same places in their periods ({period}), such as the same times of "
            f"day; {n_times:,} times in {n_folds:,} periods are at {n_slots:,} different places",
            advice="Round the times to even steps first, or choose another period.",
        )


def _column_labels(folds: _Folds) -> np.ndarray:
    """The places in a period: times of day, "day 2" or "day 2 13:05" if it is longer, or numbers."""
    offsets = folds.offsets
    if folds.starts.dtype.kind != "M":
        return offsets
    clock = _clock(offsets % DAY)
    if offsets[-1] < DAY:
        return clock
    days = [f"day {day + 1}" for day in offsets // DAY]
    if not (offsets % DAY).any():
        return _as_objects(days)
    return _as_objects(f"{day} {time}" for day, time in zip(days, clock, strict=True))


def _clock(offsets: np.ndarray) -> np.ndarray:
    """Microseconds since midnight as text, in the coarsest unit that is exact."""
    second = 10**6
    unit: Literal["m", "s", "us"] = "us"
    if not (offsets % second).any():
        unit = "s" if (offsets % (60 * second)).any() else "m"
    texts = np.datetime_as_string(offsets.view("datetime64[us]"), unit=unit)
    return _as_objects(text.split("T")[1] for text in texts.tolist())


def _as_objects(texts: Iterable[str]) -> np.ndarray:
    return np.array(list(texts), dtype=object)


def _row_labels(sensors: np.ndarray, starts: np.ndarray) -> np.ndarray:
    names, days = [as_text(sensor) for sensor in sensors], [as_text(start) for start in starts]
    labels = _as_objects(f"{name}{_SEPARATOR}{day}" for name in names for day in days)
    check_unique(labels, "row")
    return labels


def _moved_entries(original: Observations, time_axis: str, folds: _Folds) -> Triplets:
    """The entries at their new positions."""
    positions = original.row_index, original.column_index
    sensor, time = positions[::-1] if time_axis == "rows" else positions
    rows = sensor * len(folds.starts) + folds.fold_index[time]
    return Triplets(rows, folds.slot_index[time], original.values, original.weights, original.cells)


def _origin(origin: Origin) -> Origin:
    """Results for the refolded table are wide, and of the library of the original table."""
    if origin.backend is None:
        return Origin("triplets")
    in_index = origin.backend.is_pandas_like()
    return Origin("wide", origin.backend, row_field="row", rows_in_index=in_index)
