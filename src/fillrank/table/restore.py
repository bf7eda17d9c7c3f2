"""Completed columns in the types that the columns of the table had."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np

from fillrank.table.column_types import ColumnType
from fillrank.table.frame_columns import MICROSECONDS_PER_DAY

# The range of dates of pandas in nanoseconds, and that of Python, in days since 1970-01-01.
_NANOSECOND_DAYS = (-106_000, 106_000)
_PYTHON_DAYS = (-719_162, 2_932_896)
_TEXT_TYPES = ("object", "str", "large_string")  # of dates that are written as text


def level_values(values: np.ndarray, kind: ColumnType) -> np.ndarray:
    """The user's values of codes, which are rounded to the nearest; None where they are missing.

    Examples
    --------
    >>> level_values(np.array([0.2, 7.0, np.nan]), ColumnType("text", ("no", "yes")))
    array(['no', 'yes', None], dtype=object)
    """
    levels = np.empty(len(kind.levels) + 1, dtype=object)
    levels[:-1] = kind.levels
    codes = np.clip(np.rint(values), 0, len(kind.levels) - 1)
    restored: np.ndarray = levels[np.where(np.isnan(codes), -1, codes).astype(np.int64)]
    return restored


def restore_column(values: np.ndarray, kind: ColumnType, backend: Any, is_whole: bool) -> Any:
    """Convert numbers to a column of a data frame library.

    Parameters
    ----------
    values : ndarray of float64
        With codes for coded columns, and NaN for missing values.
    kind : ColumnType
    backend : narwhals.Implementation
    is_whole : bool
        Whether the observed values are whole: whole days of dates.
    """
    if kind.values == "datetime":
        return _restore_dates(values, kind.dtype, backend, is_whole)
    if kind.is_coded:
        return _column(level_values(values, kind).tolist(), kind.dtype, backend)
    if kind.values == "integer" and kind.dtype is not None:
        return _restore_integers(values, kind.dtype, backend)
    return values if kind.dtype is None else _convert(values, kind.dtype, backend)


def _column(values: list[Any], dtype: Any, backend: Any) -> Any:
    """A column of Python objects, of a type that the library chooses if the dtype is not known."""
    library = backend.to_native_namespace()
    if backend.is_pandas_like():
        return library.Series(values, dtype=_pandas_dtype(values, dtype))
    if backend.is_pyarrow():
        return library.array(values, type=dtype)
    if str(dtype).startswith("Enum") and not set(values) <= {None, *dtype.categories}:
        dtype = library.Enum([*dtype.categories, *_more(values, dtype.categories)])
    return library.Series(values, dtype=dtype)


def _pandas_dtype(values: list[Any], dtype: Any) -> Any:
    """The dtype of a column of pandas, with all values that it has."""
    if dtype is None or (isinstance(dtype, np.dtype) and dtype == np.bool_ and None in values):
        return object
    if hasattr(dtype, "categories") and (more := _more(values, dtype.categories)):
        return type(dtype)([*dtype.categories, *more], dtype.ordered)
    return dtype


def _more(values: list[Any], categories: Any) -> list[Any]:
    """Values that are not among the categories of a type: new rows may lack those of the fit."""
    known = set(categories)
    return [value for value in dict.fromkeys(values) if value is not None and value not in known]


def _convert(values: np.ndarray, dtype: Any, backend: Any) -> Any:
    """Numbers in another type of numbers; NaN becomes null where it is not a number."""
    library = backend.to_native_namespace()
    if backend.is_pandas_like():
        return library.Series(values).astype(dtype)
    if backend.is_pyarrow():
        return library.array(values, from_pandas=True).cast(dtype, safe=False)
    return library.Series(values, nan_to_null=True).cast(dtype)


def _restore_integers(values: np.ndarray, dtype: Any, backend: Any) -> Any:
    """Integers if all values are; otherwise floating-point numbers, which may be missing as before."""
    known = values[~np.isnan(values)]
    in_pandas = backend.is_pandas_like()
    is_numpy = isinstance(dtype, np.dtype)
    fits = bool((known == np.rint(known)).all()) and _in_range(known, dtype)
    if dtype is None:
        return values.astype(np.int64) if fits and known.size == values.size else values
    if fits and not (is_numpy and known.size < values.size):
        return _convert(values, dtype, backend)
    if in_pandas and not is_numpy and str(dtype)[:1] in "IU":  # a nullable type of pandas
        return _convert(values, "Float64", backend)
    return values


def _in_range(values: np.ndarray, dtype: Any) -> bool:
    name = str(dtype).lower()
    if not values.size or name not in np.sctypeDict:
        return True
    limits = np.iinfo(name)
    return bool(values.min() >= limits.min and values.max() <= limits.max)


def _restore_dates(values: np.ndarray, dtype: Any, backend: Any, is_whole: bool) -> Any:
    days = np.rint(values) if is_whole else values
    days = np.clip(days, *(_NANOSECOND_DAYS if "ns" in str(dtype) else _PYTHON_DAYS))
    if isinstance(dtype, type) and issubclass(dtype, date):  # of Python objects
        return _column([_as_date(day, dtype) for day in days], object, backend)
    if str(dtype).lower().startswith(_TEXT_TYPES):
        texts = [None if np.isnan(day) else str(day_to_date(day).date()) for day in days]
        return _column(texts, dtype, backend)
    missing = np.isnan(days)
    microseconds = np.rint(np.where(missing, 0.0, days) * MICROSECONDS_PER_DAY).astype(np.int64)
    times = microseconds.view("datetime64[us]")
    times[missing] = np.datetime64("NaT")
    if dtype is None:
        return times
    library = backend.to_native_namespace()
    if backend.is_pandas_like():
        series = library.Series(times)
        zone = getattr(dtype, "tz", None)
        if zone is not None:
            series = series.dt.tz_localize("UTC").dt.tz_convert(zone)
        return series if dtype is None else series.astype(dtype)
    if backend.is_pyarrow():
        zone = getattr(dtype, "tz", None)
        stamps = library.array(times)
        if zone is not None:
            stamps = stamps.cast(library.timestamp("us", "UTC"))
        return stamps if dtype is None else stamps.cast(dtype, safe=False)
    series = library.Series(times)
    zone = getattr(dtype, "time_zone", None)
    if zone is not None:
        series = series.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    return series if dtype is None else series.cast(dtype)


def _as_date(day: float, kind: type) -> date | datetime | None:
    if np.isnan(day):
        return None
    time = day_to_date(day)
    return time if issubclass(kind, datetime) else time.date()


def day_to_date(day: float) -> datetime:
    """The date and time of a number of days since 1970-01-01.

    Examples
    --------
    >>> day_to_date(1.5)
    datetime.datetime(1970, 1, 2, 12, 0)
    """
    return datetime(1970, 1, 1) + timedelta(microseconds=round(day * MICROSECONDS_PER_DAY))
