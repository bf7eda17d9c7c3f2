"""Columns of text: numbers, limits, yes and no, or categories. Files and data frames share it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import InputError, Setting, Text
from fillrank.table.column_types import NUMBER, ColumnType
from fillrank.table.missing_values import MISSING_WORDS, NO_MISSING_VALUES, MissingValues
from fillrank.table.notes import Remark, Remarkable

_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_BELOW = re.compile(rf"(?:<=|=<|≤|<)\s*({_NUMBER})")
_ABOVE = re.compile(rf"(?:>=|=>|≥|>)\s*({_NUMBER})|({_NUMBER})\s*\+")
_BETWEEN = re.compile(rf"({_NUMBER})\s*(?:-|–|\.\.|\bto\b)\s*({_NUMBER})")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_YES_NO = (("no", "yes"), ("n", "y"), ("false", "true"))
# Categories with more levels than this, or with a level for nearly every row, say nothing about others.
_MOST_LEVELS = 200
_MANY_LEVELS = 50
_SHOWN = 60  # characters of a value in a message


class ColumnValues(NamedTuple):
    """A column as numbers.

    Attributes
    ----------
    values : ndarray of float64
        NaN for missing values; the lower ends of values that are not exact.
    type : ColumnType
    upper : ndarray of float64 or None
        The upper ends; None if all values are exact.
    remark : Remark or None
        What to tell the user about it.
    """

    values: np.ndarray
    type: ColumnType = NUMBER
    upper: np.ndarray | None = None
    remark: Remark | None = None


class LeftOut(NamedTuple):
    """A column that cannot be fitted, and why."""

    remark: Remark


class Value(NamedTuple):
    """The ends of a value that is written as text; equal for an exact number."""

    low: float
    high: float
    is_percent: bool = False


def parse_number(text: str, decimal_comma: bool = False) -> float | None:
    """Parse a number; NaN if the text is a missing value, None if it is not a number.

    Examples
    --------
    >>> parse_number("1,5", decimal_comma=True), parse_number("n/a"), parse_number("1,5")
    (1.5, nan, None)
    """
    if not text:
        return np.nan
    if "_" in text:  # Python accepts underscores
        return None
    try:
        return float(text)
    except ValueError:
        pass
    if text.strip().lower() in MISSING_WORDS:
        return np.nan
    return parse_number(text.replace(",", ".")) if decimal_comma and "," in text else None


def parse_value(text: str, decimal_comma: bool = False) -> Value | None:
    """Parse a number, a percentage, a limit or an interval; None if the text is none of them.

    Examples
    --------
    >>> parse_value("<0.5"), parse_value("0.2 to 0.5"), parse_value("21%")
    (Value(low=-inf, high=0.5, is_percent=False), Value(low=0.2, high=0.5, is_percent=False), \
Value(low=21.0, high=21.0, is_percent=True))
    >>> parse_value("tea")
    """
    number = parse_number(text, decimal_comma)
    if number is not None:
        return Value(number, number)
    text = text.strip()
    if text.endswith("%"):
        inner = parse_value(text[:-1], decimal_comma) if text[:-1].strip() else None
        return None if inner is None else inner._replace(is_percent=True)
    if decimal_comma:
        text = text.replace(",", ".")
    if found := _BELOW.fullmatch(text):
        return Value(-np.inf, float(found[1]))
    if found := _ABOVE.fullmatch(text):
        return Value(float(found[1] or found[2]), np.inf)
    if found := _BETWEEN.fullmatch(text):
        low, high = float(found[1]), float(found[2])
        return Value(low, high) if low <= high else None
    return None


def is_between(value: Value) -> bool:
    """Whether a value has two different ends, such as 18-25, which may also be a label."""
    return bool(np.isfinite(value.low) and np.isfinite(value.high) and value.low < value.high)


def are_words(texts: Sequence[str], decimal_comma: bool = False) -> bool:
    """Whether most values are not numbers or limits, so that they can be labels.

    Examples
    --------
    >>> are_words(["tea", "milk", "7"]), are_words(["0.7", "<0.5", "x"]), are_words(["18-25", "26-40"])
    (True, False, True)
    """
    found = (parse_value(text, decimal_comma) for text in texts)
    n_numbers = sum(value is not None and not is_between(value) for value in found)
    return 2 * n_numbers < len(texts)


def judge_text(
    texts: Sequence[Any],
    place: Callable[[int], Text],
    missing: MissingValues = NO_MISSING_VALUES,
    decimal_comma: bool = False,
) -> ColumnValues | LeftOut:
    """Find out what a column of text contains, and convert it.

    Parameters
    ----------
    texts : sequence of str or None
        None is missing. Numbers are allowed among text.
    place : callable
        Returns the place of a value for messages, from its position.
    missing : MissingValues
        Further values that stand for missing ones.
    decimal_comma : bool
        Whether numbers may have one.

    Raises
    ------
    InputError
        Most values are numbers, but some are words.
    """
    counts = Counter(text for text in texts if text is not None)
    for text in [text for text in counts if missing.has_text(str(text))]:
        del counts[text]
    parsed = {text: parse_value(str(text), decimal_comma) for text in counts}
    n_numbers = sum(count for text, count in counts.items() if _is_number(parsed[text]))
    words = [text for text, value in parsed.items() if value is None]
    if n_numbers and not words:
        groups = _groups(counts, parsed)
        return _numbers(texts, parsed, place) if groups is None else _codes(texts, groups)
    if n_numbers and n_numbers >= sum(counts[text] for text in words):
        raise _mixture(texts, words[0], place)
    levels = [text for text in counts if str(text).strip()]
    if levels and (days := _dates(levels)) is not None:
        values = np.array([days.get(text, np.nan) for text in texts])
        return ColumnValues(values, ColumnType("datetime"), remark=Remark("dates"))
    return _categories(texts, levels, sum(counts[level] for level in levels))


def _is_number(value: Value | None) -> bool:
    return value is not None and value.low == value.low


def _mixture(texts: Sequence[Any], word: Any, place: Callable[[int], Text]) -> InputError:
    return InputError(
        place=place(next(i for i, text in enumerate(texts) if text == word)),
        allowed="a number",
        value=shorten(word),
        advice=[
            "Most values of this column are numbers.",
            (
                "If this one means a missing value, set ",
                Setting("missing_values", [shorten(word)]),
                ".",
            ),
            ("Or leave the column out with ", Setting("ignore", ...), "."),
        ],
    )


def shorten(text: str) -> str:
    """The beginning of a text, for a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


# Numbers and limits.


def _numbers(
    texts: Sequence[Any], parsed: Mapping[Any, Value | None], place: Callable[[int], Text]
) -> ColumnValues:
    nothing = Value(np.nan, np.nan)
    found = [parsed.get(text) or nothing for text in texts]
    _check_percent(texts, found, place)
    low, high = (np.array(ends, dtype=np.float64) for ends in list(zip(*found, strict=True))[:2])
    is_limit = low < high
    if not is_limit.any():
        return ColumnValues(low, remark=Remark("numbers"))
    example = str(texts[int(np.argmax(is_limit))]).strip()
    return ColumnValues(low, NUMBER, high, Remark("limits", example, int(is_limit.sum())))


def _check_percent(
    texts: Sequence[Any], found: Sequence[Value], place: Callable[[int], Text]
) -> None:
    """Raise InputError if only some of the numbers are percentages."""
    if not any(value.is_percent for value in found):
        return
    for i, value in enumerate(found):
        if not value.is_percent and _is_number(value):
            raise InputError(
                "some values of this column are percentages, but not this one",
                place=place(i),
                allowed="a number with %",
                value=texts[i],
                advice="Write all of them with %, or none.",
            )


def _groups(
    counts: Mapping[Any, int], parsed: Mapping[Any, Value | None]
) -> tuple[Any, ...] | None:
    """The levels of groups such as 18-25 and 26-40, in order; None if values are single limits.

    In a column of groups there is no exact number, no two groups overlap, and some occur repeatedly.
    """
    ends = sorted(
        (value.low, value.high, str(text), text)
        for text, value in parsed.items()
        if value is not None and _is_number(value)
    )
    if len(ends) < 2 or sum(counts.values()) < 2 * len(ends):
        return None
    if any(low == high for low, high, *_ in ends):
        return None
    if any(before[1] > after[0] for before, after in pairwise(ends)):
        return None
    return tuple(text for *_, text in ends)


def _codes(
    texts: Sequence[Any],
    levels: Sequence[Any],
    is_ordered: bool = True,
    what: Remarkable = "ordered",
) -> ColumnValues:
    codes = {level: float(code) for code, level in enumerate(levels)}
    values = np.array([codes.get(text, np.nan) for text in texts])
    return ColumnValues(values, ColumnType("text", tuple(levels), is_ordered), remark=Remark(what))


# Dates and categories.


def _dates(levels: Sequence[Any]) -> dict[Any, float] | None:
    """The days since 1970-01-01 of dates such as 2024-05-01; None if not all levels are dates."""
    days = {}
    for level in levels:
        if not (isinstance(level, str) and _DATE.fullmatch(level)):
            return None
        try:
            days[level] = float((date.fromisoformat(level) - date(1970, 1, 1)).days)
        except ValueError:  # the 31st of February
            return None
    return days


def _categories(texts: Sequence[Any], levels: list[Any], n_values: int) -> ColumnValues | LeftOut:
    if (left_out := too_many_levels(len(levels), n_values)) is not None:
        return left_out
    if (yes_no := _yes_no(levels)) is not None:
        return _codes(texts, yes_no, is_ordered=False, what="yes_no")
    return _codes(texts, sorted(levels, key=str), is_ordered=False, what="category")


def _yes_no(levels: Sequence[Any]) -> tuple[Any, ...] | None:
    """Two levels that mean no and yes, in this order."""
    words = {str(level).strip().lower(): level for level in levels}
    for pair in _YES_NO:
        if len(levels) == 2 and words.keys() == set(pair):
            return tuple(words[word] for word in pair)
    return None


def too_many_levels(n_levels: int, n_values: int) -> LeftOut | None:
    """Why a category cannot be fitted: it has a single level, or nearly as many as values."""
    if n_levels == 0:
        return LeftOut(Remark("empty"))
    if n_levels == 1:
        return LeftOut(Remark("constant"))
    nearly_all = n_levels == n_values or (n_levels > _MANY_LEVELS and 2 * n_levels >= n_values)
    if nearly_all or n_levels > _MOST_LEVELS:
        return LeftOut(Remark("distinct", n_values=n_levels))
    return None
