"""Labels that are times: dates, ISO text or numbers; and lengths of time such as "7D"."""

import re
from datetime import date, datetime, timedelta
from numbers import Real
from typing import Any

import numpy as np

from fillrank.errors import InputError, Setting
from fillrank.table.labels import as_labels

# A year and a month, with a day and a time if they are given. Years are from 1000 to 2999, so that
# article numbers such as 0815-12 are not dates.
_MONTH, _CLOCK = r"[12]\d{3}-\d{2}", r"[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
_ZONE = r"(?: ?Z|[+-]\d{2}(?::?\d{2})?)?"
_ISO = re.compile(rf"({_MONTH}(?:-\d{{2}})?)|({_MONTH}-\d{{2}}{_CLOCK}){_ZONE}")
_LENGTH = re.compile(r"(\d*\.?\d*) ?(s|min|h|d|w)", re.IGNORECASE)
_MICROSECONDS = {"s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6}
DAY = 24 * _MICROSECONDS["h"]
_MICROSECONDS |= {"d": DAY, "w": 7 * DAY}
_NOT_A_TIME = np.datetime64("NaT", "us")


def looks_like_times(labels: Any) -> bool:
    """Whether all labels are dates, dates with times, or ISO text of them. Numbers are not.

    Examples
    --------
    >>> looks_like_times(["2024-05-01", "2024-05-02 13:00"]), looks_like_times([2023, 2024])
    (True, False)
    """
    labels = as_labels(labels)
    if labels.dtype.kind == "M":
        return bool(labels.size) and not np.isnat(labels).any()
    if labels.dtype.kind != "O" or not labels.size:
        return False
    return not any(np.isnat(_as_time(label)) for label in labels)


def as_times(labels: Any, what: str = "labels") -> np.ndarray:
    """Convert labels to times: microseconds for dates and ISO text, float64 for numbers.

    A time with a zone is its local time. So the time of day is what a clock shows.

    Parameters
    ----------
    labels : array of dates, text or numbers
    what : str
        What the labels are, for messages.

    Returns
    -------
    ndarray of datetime64[us] or float64

    Examples
    --------
    >>> as_times(["2024-05-01", "2024-05-01 13:00"])
    array(['2024-05-01T00:00:00.000000', '2024-05-01T13:00:00.000000'],
          dtype='datetime64[us]')
    """
    labels = as_labels(labels)
    kind = labels.dtype.kind
    times: np.ndarray
    if kind in "iuf":
        times = labels.astype(np.float64)
        is_time = np.isfinite(times)
    elif kind == "M":
        times = labels.astype("datetime64[us]")
        is_time = ~np.isnat(times)
    else:
        times = np.array([_as_time(label) for label in labels], dtype="datetime64[us]")
        is_time = ~np.isnat(times)
    if not is_time.all():
        raise InputError(
            place=what,
            allowed='dates, text such as "2024-05-01" or "2024-05-01 13:00", or numbers, none missing',
            value=labels[~is_time].tolist()[0],
            advice="Convert them to dates first, and remove those that are missing.",
        )
    return times


def _as_time(label: Any) -> np.datetime64:
    """A date or ISO text as a time, without its zone; NaT for anything else."""
    if isinstance(label, str):
        found = _ISO.fullmatch(label)
        label = (found[1] or found[2]) if found else ""
    elif isinstance(label, datetime):
        label = label.replace(tzinfo=None)
    elif not isinstance(label, date | np.datetime64):
        return _NOT_A_TIME
    try:
        return np.datetime64(label, "us")
    except (ValueError, TypeError):  # the 30th of February, or pandas.NaT
        return _NOT_A_TIME


def as_period(period: Any, of_dates: bool, name: str) -> float:
    """A length of time in the unit of `as_times`: microseconds for dates.

    Parameters
    ----------
    period : str, timedelta or number
        A number if the times are numbers. Text is a number and a unit: s, min, h, D or W.
    of_dates : bool
        Whether the times are dates.
    name : str
        The name of the setting, for messages.

    Examples
    --------
    >>> as_period("1h", True, "period"), as_period(12, False, "period")
    (3600000000.0, 12.0)
    """
    length = _microseconds(period) if of_dates else _number(period)
    if not (np.isfinite(length) and length > 0):
        lengths = 'a length of time such as "1D", "7D", "12h" or "30min"'
        raise InputError(
            place=Setting(name),
            allowed=lengths if of_dates else "a number above 0, because the times are numbers",
            value=period,
        )
    return length


def _number(period: Any) -> float:
    return float(period) if isinstance(period, Real) else np.nan


def _microseconds(period: Any) -> float:
    """The microseconds of a length of time; NaN for anything else."""
    if isinstance(period, timedelta):
        return period / timedelta(microseconds=1)
    found = _LENGTH.fullmatch(period) if isinstance(period, str) else None
    if found is None or found[1] == ".":
        return np.nan
    return float(found[1] or 1) * _MICROSECONDS[found[2].lower()]


def as_positions(times: np.ndarray) -> np.ndarray:
    """Times as numbers: themselves, or microseconds since 1970 for dates."""
    if times.dtype.kind != "M":
        return times
    return times.astype("datetime64[us]").astype(np.int64).astype(np.float64)
