"""Tables as CSV and Markdown; the style of the paper's figures, and how they are saved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fillrank.io import csv_writer
from fillrank.paper import methods
from fillrank.report.style import INK, MUTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {
    methods.GASR_PUBLISHED: INK,
    methods.GASR: "#3f9bd8",
    methods.BPMF_PUBLISHED: "#8a5a00",
    methods.BPMF: "#d99a2b",
    methods.SOFT_IMPUTE: MUTED,
    methods.SOFT_IMPUTE_ALS: "#3a9b92",
    methods.HASI: "#5d8a4a",
    methods.M3F: "#7a4fa3",
    methods.IPM3F: "#cf6bb8",
}


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; None becomes an empty cell."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv_writer.write_csv(file, header, rows)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table.

    Examples
    --------
    >>> markdown(("method", "RMSE"), [("GASR", "0.84")])
    ['| method | RMSE |', '|---|---|', '| GASR | 0.84 |']
    """
    lines = [header, ["---"] * len(header), *rows]
    text = ["| " + " | ".join(cells) + " |" for cells in lines]
    return [text[0], "|" + "---|" * len(header), *text[2:]]


def spread(values: Sequence[float]) -> float | None:
    """Return the standard deviation over repetitions; None if there is only one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def with_spread(values: Sequence[float]) -> str:
    """Format the mean and the standard deviation with four decimals.

    Examples
    --------
    >>> with_spread([0.84, 0.86]), with_spread([0.84])
    ('0.8500 ± 0.0141', '0.8400')
    """
    sd = spread(values)
    mean = f"{np.mean(values):.4f}"
    return mean if sd is None else f"{mean} ± {sd:.4f}"


def new_figure(width: float, height: float) -> Figure:
    """Return a figure that needs no display."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as PNG and SVG; equal figures give equal bytes."""
    from matplotlib import rc_context

    figure.savefig(folder / f"{name}.png")
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
