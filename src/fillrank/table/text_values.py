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
from fillrank.table.missing_values import NO_MISSING_VALUES, MissingValues, find_code_among_words
from fillrank.table.notes import Remark, Remarkable
from fillrank.table.number_text import (
    KNOWN_UNITS,
    NO_STYLE,
    PLAIN_FORMAT,
    NumberFormat,
    StyleOptions,
    Value,
    find_format,
    find_style,
    is_between,
    looks_like_number,
    parse_value,
)

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Dates and times in other formats: 1.5.2024, 5/1/24, 2024-05-01 13:00Z, 13:00:05.
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?(?: ?[ap]m)?"
_OTHER_DATE = re.compile(
    rf"(?:[0-9]{{1,4}}([./-])[0-9]{{1,2}}\1[0-9]{{2,4}}(?:,?[ T].*)?|{_CLOCK})", re.IGNORECASE
)
_LISTED = re.compile(r"\([0-9]{1,2}\)")  # the items of a list, if all values are like this
_YES_NO = (("no", "yes"), ("n", "y"), ("false", "true"))
_YES_NO_WORDS = {word for pair in _YES_NO for word in pair}
_ABBREVIATIONS = {"n": "no", "y": "yes", "f": "false", "t": "true"}
# Categories with more levels than this, or with a level for nearly every row, say nothing about others.
_MOST_LEVELS = 200
_MANY_LEVELS, _SEVERAL_LEVELS = 50, 10
_NEARLY_ALL = 0.8  # of the values, if there are several levels
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
    format : NumberFormat
        How numbers were written.
    """

    values: np.ndarray
    type: ColumnType = NUMBER
    upper: np.ndarray | None = None
    remark: Remark | None = None
    format: NumberFormat = PLAIN_FORMAT


class LeftOut(NamedTuple):
    """A column that cannot be fitted, and why."""

    remark: Remark


def are_words(texts: Sequence[str], style: StyleOptions = NO_STYLE) -> bool:
    """Whether most values are not numbers or limits, so that they can be labels.

    Examples
    --------
    >>> are_words(["tea", "milk", "7"]), are_words(["0.7", "<0.5", "x"]), are_words(["18-25", "26-40"])
    (True, False, True)
    >>> are_words(["1 Oak", "2 Elm"]), are_words(["1.5 kg", "2 kg"])
    (True, False)
    """
    best = find_style(texts, style)
    found = [value for text in texts if (value := parse_value(text, best)) is not None]
    several = len({value.unit for value in found if value.unit}) > 1
    n_numbers = sum(not (is_between(value) or (several and value.unit)) for value in found)
    return 2 * n_numbers < len(texts)


def judge_text(
    texts: Sequence[Any],
    place: Callable[[int], Text],
    missing: MissingValues = NO_MISSING_VALUES,
    style: StyleOptions = NO_STYLE,
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
    style : StyleOptions
        What is known about decimal marks and thousands separators.

    Raises
    ------
    InputError
        Most values are numbers, but some are words, or have another unit.
    """
    counts = Counter(text for text in texts if text is not None)
    for text in [text for text in counts if missing.has_text(str(text))]:
        del counts[text]
    best = find_style((str(text) for text in counts), style)
    parsed = {text: parse_value(str(text), best) for text in counts}
    if all(_LISTED.fullmatch(str(text)) for text, value in parsed.items() if _is_number(value)):
        parsed = {text: None if _is_number(value) else value for text, value in parsed.items()}
    _judge_units(texts, counts, parsed, place)
    n_numbers = sum(count for text, count in counts.items() if _is_number(parsed[text]))
    words = [text for text, value in parsed.items() if value is None]
    if n_numbers and not words:
        groups = _groups(counts, parsed)
        if groups is not None:
            return _codes(texts, groups)
        known = [str(text) for text in counts if _is_number(parsed[text])]
        format = find_format(known, best)
        found = _numbers(texts, parsed)._replace(format=format)
        is_usual = format in (PLAIN_FORMAT, NumberFormat(style.base))
        return found if is_usual else found._replace(remark=_format_remark(known, parsed, found))
    if n_numbers and n_numbers >= sum(counts[text] for text in words):
        raise _mixture(texts, words[0], place)
    levels = [text for text in counts if str(text).strip()]
    if levels and (days := parse_dates(levels)) is not None:
        values = np.array([days.get(text, np.nan) for text in texts])
        return ColumnValues(values, ColumnType("datetime"), remark=Remark("dates"))
    category = _categories(texts, levels, sum(counts[level] for level in levels))
    if isinstance(category, ColumnValues) and (remark := code_among_words(counts)) is not None:
        return category._replace(remark=remark)
    return category


def code_among_words(counts: Mapping[Any, int]) -> Remark | None:
    """A remark if a level such as -99 may stand for missing values."""
    found = find_code_among_words(counts)
    return None if found is None else Remark("code", *found)


def _is_number(value: Value | None) -> bool:
    return value is not None and value.low == value.low


def _judge_units(
    texts: Sequence[Any],
    counts: Mapping[Any, int],
    parsed: dict[Any, Value | None],
    place: Callable[[int], Text],
) -> None:
    """Take values with units as words unless they are numbers of one unit, which most of them have.

    Raises InputError if numbers have several known units, or if only some are percentages: their scales
    differ.
    """
    numbers = {text: value for text, value in parsed.items() if value and _is_number(value)}
    units = Counter[str]()
    for text, value in numbers.items():
        units[value.unit] += counts[text]
    n_numbers, n_bare = sum(units.values()), units.pop("", 0)
    if not units:
        return
    (unit, _), *others = units.most_common()
    if others and all(known in KNOWN_UNITS for known in units):
        other = others[0][0]
        i = _position(texts, lambda text: text in numbers and numbers[text].unit == other)
        raise _another_unit(texts[i], unit, place(i))
    if unit == "%" and not others and n_bare:
        i = _position(texts, lambda text: text in numbers and not numbers[text].unit)
        raise InputError(
            "some values of this column are percentages, but not this one",
            place=place(i),
            allowed="a number with %",
            value=texts[i],
            advice="Write all of them with %, or none.",
        )
    if others or 2 * n_bare > n_numbers:
        parsed.update({text: None for text, value in numbers.items() if value.unit})


def _format_remark(
    known: Sequence[str], parsed: Mapping[Any, Value | None], found: ColumnValues
) -> Remark:
    """What the longest of the numbers was read as, or one that is a limit."""
    if found.remark is not None and found.remark.what == "limits":
        return found.remark
    longest = max(known, key=len)
    value = next(value for text, value in parsed.items() if str(text) == longest and value)
    return Remark("written", f"{longest.strip()!r}, read as {value.low:.12g}", unit=value.unit)


def _position(texts: Sequence[Any], is_wanted: Callable[[Any], bool]) -> int:
    return next(i for i, text in enumerate(texts) if is_wanted(text))


def _another_unit(text: Any, unit: str, place: Text) -> InputError:
    return InputError(
        "the numbers of a column must have one unit",
        place=place,
        allowed=f"a number in {unit}",
        value=shorten(text),
        advice=[
            "Convert it.",
            ("Or leave the column out with ", Setting("ignore", ...), "."),
        ],
    )


def _mixture(texts: Sequence[Any], word: Any, place: Callable[[int], Text]) -> InputError:
    return InputError(
        place=place(_position(texts, lambda text: text == word)),
        allowed="a number",
        value=shorten(word),
        advice=[
            "Most values of this column are numbers.",
            (
                "If this one means a missing value, set ",
                Setting("missing_values", [shorten(word)]),
                ".",
            ),
            *_style_advice(str(word)),
            ("Or leave the column out with ", Setting("ignore", ...), "."),
        ],
    )


def _style_advice(word: str) -> list[Text]:
    """Advice about a number that is of another style than the others."""
    if not looks_like_number(word):
        return []
    return [
        (
            "If it is a number, name its marks with ",
            Setting("decimal", ...),
            " and ",
            Setting("thousands", ...),
            ".",
        )
    ]


def shorten(text: str) -> str:
    """The beginning of a text, for a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


# Numbers and limits.


def _numbers(texts: Sequence[Any], parsed: Mapping[Any, Value | None]) -> ColumnValues:
    nothing = Value(np.nan, np.nan)
    found = [parsed.get(text) or nothing for text in texts]
    low, high = (np.array(ends, dtype=np.float64) for ends in list(zip(*found, strict=True))[:2])
    is_limit = low < high
    if not is_limit.any():
        return ColumnValues(low, remark=Remark("numbers"))
    example = str(texts[int(np.argmax(is_limit))]).strip()
    return ColumnValues(low, NUMBER, high, Remark("limits", example, int(is_limit.sum())))


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


def parse_dates(levels: Sequence[Any]) -> dict[Any, float] | None:
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
    remark = _remark_on_levels(levels)
    if (left_out := too_many_levels(len(levels), n_values)) is not None:
        is_date = remark.what == "unread_dates"
        return LeftOut(remark._replace(what="left_dates")) if is_date else left_out
    if (yes_no := _yes_no(levels)) is not None:
        return _codes(texts, yes_no, is_ordered=False, what="yes_no")
    return _codes(texts, sorted(levels, key=str), is_ordered=False)._replace(remark=remark)


def _remark_on_levels(levels: Sequence[Any]) -> Remark:
    """What users may not expect of the levels of a category."""
    words = [str(level).strip().lower() for level in levels]
    if words and all(map(_OTHER_DATE.fullmatch, words)):
        return Remark("unread_dates", repr(levels[0]))
    if {*words} <= {*_YES_NO_WORDS, *_ABBREVIATIONS}:
        words = [_ABBREVIATIONS.get(word, word) for word in words]
    spellings: dict[str, list[Any]] = {}
    for level, word in zip(levels, words, strict=True):
        spellings.setdefault(word, []).append(level)
    several = next((each for each in spellings.values() if len(each) > 1), None)
    if several is None or len(spellings) == 1:
        return Remark("category")
    return Remark("spellings", f"{several[0]!r} and {several[1]!r}")


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
    nearly_all = n_levels >= _NEARLY_ALL * n_values and n_levels > _SEVERAL_LEVELS
    many = n_levels > _MANY_LEVELS and 2 * n_levels >= n_values
    if n_levels == n_values or nearly_all or many or n_levels > _MOST_LEVELS:
        return LeftOut(Remark("distinct", n_values=n_levels))
    return None
