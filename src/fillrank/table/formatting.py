"""Names and numbers as text, alike in all files and on all pages."""

import math
import re
from collections.abc import Iterable
from datetime import date
from typing import Any

import numpy as np

_SURROGATES = re.compile("[\ud800-\udfff]")
_DIGITS = 6
_MOST_DIGITS = 17  # with these, every double is written exactly


def as_text(name: Any) -> str:
    """A name as text; a date alike everywhere, whichever library has had it in hand.

    Examples
    --------
    >>> as_text(np.datetime64("2020-01-02")), as_text(5)
    ('2020-01-02', '5')
    """
    if isinstance(name, np.datetime64):
        name = name.astype("datetime64[us]").item()
    return name.isoformat().removesuffix("T00:00:00") if isinstance(name, date) else str(name)


def as_unicode(text: str) -> str:
    """A text without lone surrogates, which no file and no data frame can hold.

    Names of files have them in place of bytes that are no text.

    Examples
    --------
    >>> as_unicode("caf\\udce9")
    'caf�'
    """
    return _SURROGATES.sub("�", text)


def digits_for(values: np.ndarray) -> int:
    """Significant digits for predictions: six, and more where values differ by little of their size.

    Examples
    --------
    >>> digits_for(np.array([1.0, 2.0, 5.0])), digits_for(np.array([1e9, 1e9 + 2]))
    (6, 14)
    """
    size, spread = float(np.abs(values).max()), float(np.ptp(values))
    if spread == 0.0:
        return _DIGITS
    more = math.floor(math.log10(max(size / spread, 1.0)) + 1e-9)
    return min(_DIGITS + more, _MOST_DIGITS)


def rounded(values: Iterable[float], digits: int) -> list[float]:
    """Numbers to so many significant digits."""
    return [float(f"{value:.{digits}g}") for value in values]


def shortest(value: float) -> str:
    """The shortest text that reads as this very number: 5 and not 5.0."""
    return repr(value).removesuffix(".0")
