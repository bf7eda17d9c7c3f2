"""Lines and cells of text tables."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np

from fillrank.table.labels import as_labels
from fillrank.table.number_text import COMMA, POINT, NumberStyle, looks_like_number
from fillrank.table.number_text import parse_number as parse_text_number

# In order of preference if several fit: a comma may be a decimal comma.
DELIMITERS = {"::": "'::'", "\t": "tab", ";": "';'", "|": "'|'", ",": "','", " ": "white space"}
BLANK = " \t\r\n,;|:"  # lines of only these characters are blank
_LINE_END = re.compile(r"\r\n|\n|\r")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")  # 007 is a code, not a number
_CHUNK = 2**16  # characters that are split into lines together


def split_lines(text: str, delimiter: str) -> Any:
    """Make a csv reader; quotes, and line breaks within them, follow the csv module."""
    lines: Iterator[str] = iter_lines(text)
    if delimiter == "::":
        lines, delimiter = (line.replace("::", "\x1f") for line in lines), "\x1f"
    elif delimiter == " ":
        lines = (line.replace("\t", " ").strip() for line in lines)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter != "\t")


def iter_lines(text: str) -> Iterator[str]:
    """The lines with their ends; in chunks, because io.StringIO takes four bytes per character."""
    start = 0
    while start < len(text):
        stop = text.find("\n", start + _CHUNK) + 1 or len(text)
        yield from io.StringIO(text[start:stop], newline="")
        start = stop


def take_lines(text: str, start: int, stop: int) -> tuple[str, str]:
    """The lines at some positions, and the text in which these are blank, so that no number changes.

    Examples
    --------
    >>> take_lines("Results\\na,b\\n1,2\\n", 0, 1)
    ('Results\\n', '\\na,b\\n1,2\\n')
    """
    before = sum(map(len, islice(iter_lines(text), start)))
    taken = "".join(islice(iter_lines(text), start, stop))
    ends = "".join(_LINE_END.findall(taken))
    return taken, text[:before] + ends + text[before + len(taken) :]


def is_blank(fields: list[str]) -> bool:
    """Whether all cells of a line are empty."""
    return not any(map(str.strip, fields))


def parse_number(text: str, delimiter: str) -> float | None:
    """Parse a number; NaN if the text is a missing value, None if it is not a number.

    Examples
    --------
    >>> parse_number("1,5", ";"), parse_number("n/a", ","), parse_number("1,5", "\\t")
    (1.5, nan, None)
    """
    return parse_text_number(text, plain_style(delimiter))


def plain_style(delimiter: str) -> NumberStyle:
    """The style of plain numbers: they may have a decimal comma between semicolons."""
    return COMMA if delimiter == ";" else POINT


def are_numbers(cells: Sequence[str], delimiter: str) -> bool:
    """Whether at least half of the cells are numbers, limits or missing; others may be mistakes.

    Intervals such as 18-25 do not count: they may be labels.
    """
    base = plain_style(delimiter)
    return 2 * sum(not looks_like_number(cell, base) for cell in cells) <= len(cells)


def parse_labels(labels: list[str]) -> np.ndarray:
    """Convert labels to integers if all are written as such; otherwise they stay text.

    Examples
    --------
    >>> parse_labels(["1", "10"]), parse_labels(["01", "10"])
    (array([ 1, 10]), array(['01', '10'], dtype=object))
    """
    if all(_INTEGER.fullmatch(label) for label in labels):
        # Some may be too long for int64, or for Python's limit on digits.
        with suppress(OverflowError, ValueError):
            return np.array([int(label) for label in labels], dtype=np.int64)
    return as_labels(labels)
