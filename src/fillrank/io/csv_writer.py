"""Writing CSV: numbers as short text, lines one by one."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_DIGITS = 6
_MAX_DIGITS = 17  # with these, every double is written exactly


def significant_digits(values: np.ndarray) -> int:
    """The number of significant digits for predictions of values.

    It is six, and more if the values differ by little of their size.

    Examples
    --------
    >>> significant_digits(np.array([1.0, 2.0, 5.0])), significant_digits(np.array([1e9, 1e9 + 2]))
    (6, 14)
    """
    if values.size == 0:  # new rows of which no value is known
        return _DIGITS
    size, spread = float(np.abs(values).max()), float(np.ptp(values))
    if spread == 0.0:
        return _DIGITS
    more = math.floor(math.log10(max(size / spread, 1.0)) + 1e-9)
    return min(_DIGITS + more, _MAX_DIGITS)


def round_digits(values: Iterable[Any], digits: int) -> list[Any]:
    """Round numbers to significant digits; text and None stay as they are."""
    return [
        value if value is None or isinstance(value, str) else float(f"{value:.{digits}g}")
        for value in values
    ]


def format_number(value: Any) -> str:
    """The shortest text that reads as exactly this number: 5 and not 5.0; empty for NaN and None."""
    if isinstance(value, str):
        return value
    return "" if value is None or math.isnan(value) else repr(value).removesuffix(".0")


def format_numbers(values: Iterable[Any], digits: int) -> list[str]:
    """Round numbers to significant digits and format them; text stays as it is.

    Examples
    --------
    >>> format_numbers([2.0, 1 / 3], 3)
    ['2', '0.333']
    """
    return [format_number(value) for value in round_digits(values, digits)]


def write_csv(
    file: Any, header: Sequence[Any], lines: Iterable[Sequence[Any]], delimiter: str = ","
) -> None:
    """Write a header and lines to a text file, each line before the next one is requested.

    None becomes an empty cell.
    """
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(header)
    writer.writerows(lines)


def csv_text(header: Sequence[Any], lines: Iterable[Sequence[Any]]) -> str:
    """The text of a CSV file.

    Examples
    --------
    >>> csv_text(["row", "value"], [["a", "1"]])
    'row,value\\r\\na,1\\r\\n'
    """
    file = io.StringIO(newline="")
    write_csv(file, header, lines)
    return file.getvalue()
