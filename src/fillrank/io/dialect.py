"""How a text table is written, so that a completed one opens in the same program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

_LINES = 5  # below the header, that decide which columns have quotes
_HEAD = 100_000  # characters


class Dialect(NamedTuple):
    """How a text table is written.

    Attributes
    ----------
    delimiter : str
        White space is written as a single space.
    line_end : str
    quoted_header, quoted : tuple of bool
        Whether the names, and the cells, of each column have quotes that they do not need.
    has_bom : bool
        Whether the file starts with a byte order mark.
    decimal : str
        The decimal mark of numbers.
    above, below : str
        Lines above the header, and directly below it, that are not of the table.
    """

    delimiter: str = ","
    line_end: str = "\r\n"
    quoted_header: tuple[bool, ...] = ()
    quoted: tuple[bool, ...] = ()
    has_bom: bool = False
    decimal: str = "."
    above: str = ""
    below: str = ""

    def line(self, cells: Sequence[Any], quoted: tuple[bool, ...] = ()) -> str:
        """A line of the table; None becomes an empty cell.

        Examples
        --------
        >>> Dialect(";", "\\n").line(["a;b", 1, None, "c"])
        '"a;b";1;;c\\n'
        >>> Dialect(quoted=(True, False)).line(["a", "1"], (True, False))
        '"a",1\\r\\n'
        """
        texts = ["" if cell is None else str(cell) for cell in cells]
        forced = quoted if len(quoted) == len(texts) else (False,) * len(texts)
        parts = [self._quote(text, force) for text, force in zip(texts, forced, strict=True)]
        return self.delimiter.join(parts) + self.line_end

    def _quote(self, text: str, force: bool) -> str:
        needed = self.delimiter in text or any(mark in text for mark in '"\r\n')
        # White space between columns would swallow an empty cell.
        if force or needed or (self.delimiter == " " and not text):
            return '"' + text.replace('"', '""') + '"'
        return text

    def top(self, names: Sequence[Any] | None) -> str:
        """The lines above the rows: the header, None without one, and those around it.

        Examples
        --------
        >>> Dialect(",", "\\n", above="Results\\n", below=",kg\\n").top(["who", "weight"])
        'Results\\nwho,weight\\n,kg\\n'
        """
        header = "" if names is None else self.line(names, self.quoted_header)
        return self.above + header + self.below

    def body(self, lines: Iterable[Sequence[Any]]) -> Iterable[str]:
        """The lines below the header, each before the next one is requested."""
        return (self.line(line, self.quoted) for line in lines)

    def number(self, text: str) -> str:
        """A plain number with the decimal mark of the table."""
        return text.replace(".", self.decimal) if self.decimal != "." else text


def find_dialect(text: str, delimiter: str, has_header: bool, has_bom: bool) -> Dialect:
    """Find out how a text table is written.

    Examples
    --------
    >>> find_dialect('"id","x"\\n"a",1\\n', ",", True, False)[:4]
    (',', '\\n', (True, True), (True, False))
    """
    head = text[:_HEAD]
    end = re.search(r"\r\n|\n|\r", head)
    lines = [line for line in re.split(r"\r\n|\n|\r", head) if line.strip()][: _LINES + 1]
    marks = [_quoted_fields(line, delimiter) for line in lines]
    header = tuple(marks.pop(0)) if has_header and marks else ()
    width = max(map(len, marks), default=0)
    body = tuple(any(line[j] for line in marks if len(line) > j) for j in range(width))
    has_comma = delimiter == ";" and re.search(r"[0-9],[0-9]", head)
    decimal = "," if has_comma else "."
    return Dialect(delimiter, end[0] if end else "\n", header, body, has_bom, decimal)


def _quoted_fields(line: str, delimiter: str) -> list[bool]:
    """Which fields of a line have quotes; a field with a line break ends with the line."""
    found, rest = [], line
    separator = r"\s+" if delimiter == " " else re.escape(delimiter)
    while True:
        rest = rest.lstrip(" ")
        quoted = re.match(r'"(?:[^"]|"")*"?', rest)
        found.append(bool(quoted))
        rest = rest[quoted.end() :] if quoted else rest
        split = re.search(separator, rest)
        if split is None:
            return found
        rest = rest[split.end() :]
