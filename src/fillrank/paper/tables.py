"""Tables as CSV for programs and as Markdown for readers."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; what is None is an empty cell."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table.

    Examples
    --------
    >>> markdown(("method", "RMSE"), [("GASR", "0.84")])
    ['| method | RMSE |', '|---|---|', '| GASR | 0.84 |']
    """
    lines = [header, ["---"] * len(header), *rows]
    text = ["| " + " | ".join(cells) + " |" for cells in lines]
    return [text[0], "|" + "---|" * len(header), *text[2:]]


def spread(values: Sequence[float]) -> float | None:
    """The standard deviation over repetitions; None of a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def with_spread(values: Sequence[float]) -> str:
    """Mean and standard deviation, to four digits.

    Examples
    --------
    >>> with_spread([0.84, 0.86]), with_spread([0.84])
    ('0.8500 ± 0.0141', '0.8400')
    """
    sd = spread(values)
    mean = f"{np.mean(values):.4f}"
    return mean if sd is None else f"{mean} ± {sd:.4f}"
