"""Values that stand for missing ones: codes such as -999 and words such as NA."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import InputError, Setting

# In lower case. SAS and Stata write a point, spreadsheets #N/A, pandas <NA>.
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "missing"})
MISSING_WORDS |= {"?", "-", "--", "–", "—", ".", "n.a."}
MISSING_WORDS |= {"#div/0!", "#value!", "#ref!", "#num!", "#name?", "#null!"}
# Codes that people use for missing values.
_CODES = (-1.0, -9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0)
_NULL_TYPES = ("NAType", "NaTType")  # of pandas, which need not be installed
_FEWEST = 2  # how often a code must occur
_FAR = 3.0  # how far from the median of the others it must be, relative to their range


class MissingValues(NamedTuple):
    """Values that stand for missing ones, as numbers and as text."""

    numbers: tuple[float, ...] = ()
    texts: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.texts)

    def has_text(self, text: str) -> bool:
        """Whether a text stands for a missing value: 99 and "99.0" are the same."""
        text = text.strip()
        if text in self.texts:
            return True
        if self.numbers:
            with suppress(ValueError):
                return float(text) in self.numbers
        return False

    def remove(self, values: np.ndarray) -> np.ndarray:
        """Numbers with NaN in place of those that stand for missing values."""
        if not self.numbers:
            return values
        found = np.isin(values, self.numbers)
        return np.where(found, np.nan, values) if found.any() else values


NO_MISSING_VALUES = MissingValues()


def given_missing_values(values: Any) -> MissingValues:
    """Check the values that a user gives; None means none.

    Examples
    --------
    >>> given_missing_values([99, "n/a"]).numbers
    (99.0,)
    >>> given_missing_values(["-999"]).has_text("-999.0")
    True
    >>> given_missing_values([None, -1]).numbers
    (-1.0,)
    """
    if values is None:
        return NO_MISSING_VALUES
    if isinstance(values, str | Real) or not isinstance(values, Iterable):
        values = [values]
    numbers, texts = [], []
    for value in values:
        if value is None or type(value).__name__ in _NULL_TYPES:
            continue  # missing without being named
        if not isinstance(value, str | Real) or isinstance(value, bool):
            raise InputError(
                place=Setting("missing_values"),
                allowed="a list of numbers and texts, such as [99, -999, 'unknown']",
                value=value,
            )
        texts.append(f"{value:g}" if isinstance(value, Real) else value.strip())
        with suppress(ValueError):
            numbers.append(float(value))
    return MissingValues(tuple(numbers), frozenset(texts))


def find_code(values: np.ndarray) -> tuple[float, int] | None:
    """A number that may stand for missing values, and how often it occurs; None without any.

    It is one that people use for that, occurs at least twice, and is far from all other values, or
    below -1 where no other value is negative.

    Examples
    --------
    >>> find_code(np.array([1.0, 2.0, 3.0, -999.0, -999.0, np.nan]))
    (-999.0, 2)
    >>> find_code(np.array([20.0, 45.0, 75.0, -99.0, -99.0]))
    (-99.0, 2)
    >>> find_code(np.array([1.0, 2.0, 3.0, -1.0, -1.0]))
    """
    observed = values[np.isfinite(values)]
    if not observed.size:
        return None
    for code in (float(observed.min()), float(observed.max())):
        if code not in _CODES:
            continue
        others = observed[observed != code]
        count = observed.size - others.size
        if count >= _FEWEST and others.size > count:
            distance = abs(code - float(np.median(others)))
            is_below_zero = code < -1.0 and float(others.min()) >= 0
            if is_below_zero or distance > _FAR * float(np.ptp(others)):
                return code, count
    return None


def find_code_among_words(counts: Mapping[Any, int]) -> tuple[str, int] | None:
    """The same for the levels of a category, from how often each occurs: the only number among words.

    Examples
    --------
    >>> find_code_among_words({"yes": 7, "no": 5, "-99": 2})
    ('-99', 2)
    >>> find_code_among_words({"yes": 7, "12": 5, "-99": 2})
    """
    numbers = {}
    for level in counts:
        with suppress(ValueError):
            numbers[level] = float(str(level))
    if len(numbers) != 1 or len(counts) == 1:
        return None
    ((level, number),) = numbers.items()
    if number not in _CODES or counts[level] < _FEWEST:
        return None
    return f"{number:g}", counts[level]
