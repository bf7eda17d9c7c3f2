"""How many decimals the numbers of a column are written with, so that filled cells have as many."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from fillrank.table.number_text import NumberFormat, NumberStyle, marks_between
from fillrank.table.observations import Observations

_FEWEST = 3  # cells; one or two may have the same number by chance


def with_decimals(
    formats: Sequence[NumberFormat], lines: Iterable[Sequence[str]], data: Observations
) -> list[NumberFormat]:
    """Formats of columns, with the number of decimals if it is the same in all exact values.

    Limits such as <0.5 do not count: they often have other decimals than the numbers beside them.

    Parameters
    ----------
    formats : sequence of NumberFormat
        Those of the columns of the data.
    lines : iterable of sequences of str
        The cells of these columns in each row, as they are written.
    data : Observations
    """
    found: list[int | None] = [None] * len(formats)
    is_fixed = np.ones(len(formats), dtype=bool)
    is_exact = np.ones(data.n_entries, dtype=bool) if data.cells is None else data.cells < 0
    for i, cells in enumerate(lines):
        row = slice(*data.pointers[[i, i + 1]])
        observed = data.column_index[row][is_exact[row]]
        for j in observed[is_fixed[observed]].tolist():
            n = _n_decimals(cells[j].strip(), formats[j].style)
            if n is None or n != (n if found[j] is None else found[j]):
                is_fixed[j] = False
            found[j] = n
        if not is_fixed.any():
            break
    columns = data.column_index[is_exact]
    is_fixed &= np.bincount(columns, minlength=len(formats)) >= _FEWEST
    lowest = np.full(len(formats), np.inf)
    np.minimum.at(lowest, columns, data.stored_values[is_exact])
    return [
        each._replace(decimals=found[j], is_positive=bool(lowest[j] > 0)) if is_fixed[j] else each
        for j, each in enumerate(formats)
    ]


def _n_decimals(text: str, style: NumberStyle) -> int | None:
    """The number of decimals; None for a number with an exponent.

    Examples
    --------
    >>> [_n_decimals(text, NumberStyle(".", ",")) for text in ("$12,351.10", "(7)", "1e-5")]
    [2, 0, None]
    """
    match = _pattern(style).fullmatch(text)
    return None if match is None else len(match[1] or "")


@lru_cache
def _pattern(style: NumberStyle) -> re.Pattern[str]:
    """A number with a unit before or after it; its group has the decimals."""
    between = rf"(?:{marks_between(style.thousands)})?" if style.thousands else ""
    beside, after = "[^0-9.,<>=≤≥]*", "[^0-9.,+]*"
    return re.compile(
        rf"{beside}[0-9](?:{between}[0-9])*(?:{re.escape(style.decimal)}([0-9]+))?{after}"
    )
