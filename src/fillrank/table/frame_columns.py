"""Columns of data frames as numbers, whatever they contain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np

from fillrank.errors import InputError, Setting, Text
from fillrank.table.column_types import NUMBER, ColumnType, are_numbers
from fillrank.table.labels import format_labels, is_missing
from fillrank.table.layout import LONG_HINT
from fillrank.table.missing_values import MissingValues, find_code
from fillrank.table.notes import Remark
from fillrank.table.number_text import NO_STYLE, StyleOptions
from fillrank.table.text_values import (
    ColumnValues,
    LeftOut,
    code_among_words,
    judge_text,
    too_many_levels,
)

MICROSECONDS_PER_DAY = 86_400_000_000
_SPARSE_ADVICE = (
    "table.sparse.to_dense() has the values of cells that are not stored; in table.sparse.to_coo() "
    "these are missing."
)
_ALLOWED = "numbers, text, categories, booleans or dates"

Place = Callable[[int], Text]


def real_column(column: nw.Series[Any]) -> np.ndarray:
    """Convert a column to float64, with NaN for null; raise InputError if it is not numeric."""
    if column.null_count() == len(column):
        return np.full(len(column), np.nan)
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        raise InputError(
            f"column {column.name!r} must contain real numbers; got {column.dtype}",
            advice=["Convert or remove it.", LONG_HINT],
        )
    return column.cast(nw.Float64).to_numpy()


def number_column(
    column: nw.Series[Any], missing: MissingValues, style: StyleOptions = NO_STYLE
) -> tuple[np.ndarray, np.ndarray | None]:
    """The values of a long table, or their lower and upper ends; other text is refused."""
    is_text = column.dtype == nw.String or column.dtype == nw.Object
    if is_text and column.null_count() < len(column):
        found = _objects(column, lambda i: f"line {i}, column {column.name!r}", missing, style)
        if isinstance(found, ColumnValues) and are_numbers([found.type]):
            return found.values, found.upper
    return missing.remove(real_column(column)), None


def read_column(
    column: nw.Series[Any], place: Place, missing: MissingValues, style: StyleOptions = NO_STYLE
) -> ColumnValues | LeftOut:
    """Convert a column of a wide table, by its type and, if it is text, by its content.

    Parameters
    ----------
    column : narwhals.Series
    place : callable
        Returns the place of a value for messages, from its position.
    missing : MissingValues
        Values that stand for missing ones.
    style : StyleOptions
        How numbers are written as text.
    """
    dtype = column.dtype
    if column.null_count() == len(column) and not dtype.is_numeric():
        has_type = dtype != nw.Unknown and native_dtype(column) != np.dtype(object)
        return LeftOut(Remark("empty")) if has_type else ColumnValues(real_column(column))
    if dtype == nw.Boolean:
        values = real_column(column)
        return ColumnValues(
            values, ColumnType("boolean", (False, True), dtype=native_dtype(column))
        )
    if dtype.is_numeric():
        return _numeric(column, missing)
    if is_category(column):
        return _category(column, missing)
    if isinstance(dtype, (nw.Date, nw.Datetime)):
        days = column.dt.timestamp("us").cast(nw.Float64).to_numpy() / MICROSECONDS_PER_DAY
        return _dates(days, native_dtype(column))
    if dtype == nw.String or dtype == nw.Object:
        return _objects(column, place, missing, style)
    if (ends := _interval_ends(column)) is not None:
        return ends
    raise _not_allowed(column)


def read_known_column(
    column: nw.Series[Any],
    known: ColumnType,
    place: Place,
    missing: MissingValues,
    style: StyleOptions = NO_STYLE,
) -> ColumnValues:
    """Convert a column of new rows, as the column of the same label was converted before."""
    if known.is_coded:
        codes = find_codes(_as_objects(column), known.levels, place, missing)
        dtype = _without_codes(native_dtype(column), missing)
        return ColumnValues(codes, known._replace(dtype=dtype))
    found = read_column(column, place, missing, style)
    if isinstance(found, LeftOut) and column.null_count() == len(column):
        dtype = native_dtype(column)
        return ColumnValues(np.full(len(column), np.nan), known._replace(dtype=dtype))
    if isinstance(found, LeftOut) or (found.type.is_coded and found.type.values != "boolean"):
        raise InputError(
            f"column {column.name!r} must contain {known.values}s, as in the table of the fit; got "
            f"{column.dtype}."
        )
    return found._replace(type=known._replace(dtype=found.type.dtype))


def native_dtype(column: nw.Series[Any]) -> Any:
    """The type of a column in its own library."""
    native = column.to_native()
    return native.dtype if hasattr(native, "dtype") else native.type


def is_category(column: nw.Series[Any]) -> bool:
    """Whether the type of a column is that of categories."""
    return column.dtype == nw.Categorical or isinstance(column.dtype, nw.Enum)


def _not_allowed(column: nw.Series[Any]) -> InputError:
    dtype = native_dtype(column)
    got = str(dtype)
    if dtype == np.dtype(object):
        value = next((each for each in column.to_list() if not is_missing(each)), None)
        got = f"objects such as {type(value).__name__}"
    return InputError(
        f"column {column.name!r} must contain {_ALLOWED}; got {got}",
        advice=[
            _SPARSE_ADVICE if got.startswith("Sparse") else "Convert or remove it.",
            ("Or leave it out when the table is read: ", Setting("ignore", ...), "."),
        ],
    )


# Numbers and dates.


def _numeric(column: nw.Series[Any], missing: MissingValues) -> ColumnValues:
    values = missing.remove(real_column(column))
    dtype = native_dtype(column)
    kind = NUMBER
    if column.dtype.is_integer():
        kind = ColumnType("integer", dtype=dtype)
    elif column.dtype.is_float() and not _is_plain(column, dtype):
        kind = ColumnType("number", dtype=dtype)
    return ColumnValues(values, kind, remark=code_remark(values))


def _is_plain(column: nw.Series[Any], dtype: Any) -> bool:
    """Whether numbers are of the type that results have without conversion."""
    if column.implementation.is_pandas_like():
        return isinstance(dtype, np.dtype) and dtype == np.float64
    return column.dtype == nw.Float64


def code_remark(values: np.ndarray) -> Remark | None:
    """A remark if a number such as -999 may stand for missing values."""
    found = find_code(values)
    return None if found is None else Remark("code", f"{found[0]:g}", found[1])


def _dates(days: np.ndarray, dtype: Any) -> ColumnValues:
    return ColumnValues(days, ColumnType("datetime", dtype=dtype), remark=Remark("dates"))


def _interval_ends(column: nw.Series[Any]) -> ColumnValues | None:
    """The ends of the intervals of pandas; None if the column does not contain any."""
    native = column.to_native()
    if not str(native_dtype(column)).startswith("interval"):
        return None
    low, high = (
        np.asarray(getattr(native.array, side), dtype=np.float64) for side in ("left", "right")
    )
    is_known = ~np.asarray(native.isna())
    low, high = (np.where(is_known, ends, np.nan) for ends in (low, high))
    first = native.iloc[int(np.argmax(is_known))]
    return ColumnValues(low, NUMBER, high, Remark("limits", str(first), int((low < high).sum())))


# Categories.


def _category(column: nw.Series[Any], missing: MissingValues) -> ColumnValues | LeftOut:
    values = [None if is_missing(value) else value for value in column.to_list()]
    values = [None if value is None or missing.has_text(str(value)) else value for value in values]
    present = {value for value in values if value is not None}
    ordered, all_levels = _declared_levels(column)
    if all_levels is not None:
        all_levels = [level for level in all_levels if not missing.has_text(str(level))]
    levels = tuple(level for level in all_levels or sorted(present, key=str) if level in present)
    n_values = sum(value is not None for value in values)
    if (left_out := too_many_levels(len(levels), n_values)) is not None:
        return left_out
    if ordered and all_levels is not None and len(levels) > 1:
        levels = tuple(all_levels)  # an answer that nobody gave is a level between the others
    codes = {level: float(code) for code, level in enumerate(levels)}
    counts = Counter(value for value in values if value is not None)
    return ColumnValues(
        np.array([codes.get(value, np.nan) for value in values]),
        ColumnType("category", levels, ordered, _without_codes(native_dtype(column), missing)),
        remark=code_among_words(counts) or Remark("ordered" if ordered else "category"),
    )


def _without_codes(dtype: Any, missing: MissingValues) -> Any:
    """The type of a category without the codes of missing values, which are not levels."""
    declared = getattr(dtype, "categories", None)
    if not missing or declared is None:
        return dtype
    levels = [level for level in declared if not missing.has_text(str(level))]
    if len(levels) == len(declared):
        return dtype
    return type(dtype)(levels, dtype.ordered) if hasattr(dtype, "ordered") else type(dtype)(levels)


def _declared_levels(column: nw.Series[Any]) -> tuple[bool, list[Any] | None]:
    """Whether the levels of a category have an order, and the levels, if its type declares them."""
    native = column.to_native()
    if column.implementation.is_pandas_like():
        return bool(native.cat.ordered), native.cat.categories.tolist()
    if isinstance(column.dtype, nw.Enum):
        return True, list(column.dtype.categories)
    if column.implementation.is_pyarrow():
        dictionary = native.unify_dictionaries().chunk(0).dictionary
        return bool(native.type.ordered), dictionary.to_pylist() if native.type.ordered else None
    return False, None


def find_codes(
    values: Sequence[Any], levels: tuple[Any, ...], place: Place, missing: MissingValues
) -> np.ndarray:
    """The codes of known levels; another value is refused."""
    codes = {level: float(code) for code, level in enumerate(levels)}
    found = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        if value in codes:
            found[i] = codes[value]
        elif not missing.has_text(str(value)):
            raise InputError(
                "the table of the fit does not have this value in this column",
                place=place(i),
                allowed=f"one of its {len(levels)} values, {format_labels(levels)}",
                value=value,
                advice="Clear the cell, or fit again with it.",
            )
    return found


# Text and objects.


def _as_objects(column: nw.Series[Any]) -> list[Any]:
    return [None if is_missing(value) else value for value in column.to_list()]


def _objects(
    column: nw.Series[Any], place: Place, missing: MissingValues, style: StyleOptions
) -> ColumnValues | LeftOut:
    """Convert a column of text, or one of any Python objects of one kind."""
    values = _as_objects(column)
    known = [value for value in values if value is not None]
    if all(isinstance(value, (bool, np.bool_)) for value in known):
        codes = np.array([np.nan if value is None else float(value) for value in values])
        return ColumnValues(codes, ColumnType("boolean", (False, True), dtype=native_dtype(column)))
    if all(_is_number(value) for value in known):
        numbers = np.array([np.nan if value is None else float(value) for value in values])
        numbers = missing.remove(numbers)
        return ColumnValues(numbers, remark=code_remark(numbers))
    if all(isinstance(value, date) for value in known):
        return _dates(np.array([_days(value) for value in values]), type(known[0]))
    if not all(isinstance(value, str) or _is_number(value) for value in known):
        raise _not_allowed(column)
    found = judge_text(values, place, missing, style)
    if isinstance(found, ColumnValues) and not are_numbers([found.type]):
        return found._replace(type=found.type._replace(dtype=native_dtype(column)))
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, (bool, np.bool_))


def _days(value: date | None) -> float:
    """Days since 1970-01-01; a time zone is converted to UTC."""
    if value is None:
        return np.nan
    if isinstance(value, datetime):
        zone = value.tzinfo
        start = datetime(1970, 1, 1, tzinfo=zone)
        if zone is not None and (offset := value.utcoffset()) is not None:
            start = start.replace(tzinfo=None)
            value = value.replace(tzinfo=None) - offset
        return (value - start).total_seconds() / 86_400
    return float((value - date(1970, 1, 1)).days)
