"""The panels of Figure 2: errors above, ranks below, a column for each set of ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fillrank.paper.look import COLOURS, digits_below, new_figure, save
from fillrank.paper.published import RANK_ON_RATINGS
from fillrank.paper.ratings import MOVIELENS
from fillrank.report.style import ACCENT, FAINT, MUTED, REFERENCE, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fillrank.paper.study import Result

# Where the paper stopped.
_PAPER_SWEEPS = 100


def write(folder: Path, results: Sequence[Result], lines: Mapping[tuple[str, str], float]) -> None:
    """Draw all panels and save them."""
    names = list(dict.fromkeys(result.key["data"] for result in results))
    figure = new_figure(6.0 * len(names) + 2.0, 7.2)
    axes = figure.subplots(2, len(names), squeeze=False, height_ratios=[2, 1], sharex="col")
    for (above, below), name in zip(axes.T, names, strict=True):
        of_set = [result for result in results if result.key["data"] == name]
        others = {method: value for (data, method), value in lines.items() if data == name}
        _errors(above, name, of_set, others)
        _ranks(below, name, of_set)
    # The first panel may lack what only the second has: no label twice, none left out.
    labels = {line.get_label(): line for ax in axes[0] for line in ax.get_lines()}
    shown = {label: line for label, line in labels.items() if not str(label).startswith("_")}
    figure.legend(shown.values(), shown.keys(), loc="outside right upper", frameon=False)
    save(figure, folder, "figure2")


def _curve(ax: Axes, result: Result, what: str) -> None:
    method, values = result.key["method"], result.numbers["traces"][what]
    shape = "steps-mid" if what == "rank" else "default"
    ax.plot(
        np.arange(1, len(values) + 1), values, color=COLOURS[method], label=method, lw=1.5,
        drawstyle=shape,
    )  # fmt: skip


def _errors(ax: Axes, name: str, results: Sequence[Result], others: Mapping[str, float]) -> None:
    for result in results:
        _curve(ax, result, "nmae")
    for method, value in others.items():
        ax.axhline(value, color=COLOURS[method], lw=1.4, ls=(0, (1, 1.5)), label=method)
    _mark_paper(ax)
    ax.annotate(
        "the paper stops here", (_PAPER_SWEEPS, 1.0), xycoords=("data", "axes fraction"),
        xytext=(-5, -2), textcoords="offset points", ha="right", va="top", color=MUTED,
        fontsize="small",
    )  # fmt: skip
    ends = [result.numbers["traces"]["nmae"][-1] for result in results] + list(others.values())
    first = max(result.numbers["traces"]["nmae"][0] for result in results)
    low, high = min(ends), max(*ends, min(first, 1.35 * min(ends)))
    ax.set_ylim(low - 0.05 * (high - low), high + 0.1 * (high - low))
    plain(ax, f"{name}: error of the average of all sweeps so far", "", "NMAE")


def _ranks(ax: Axes, name: str, results: Sequence[Result]) -> None:
    for result in results:
        _curve(ax, result, "rank")
    if name == MOVIELENS:
        ax.axhline(RANK_ON_RATINGS, **REFERENCE)
        ax.annotate(
            "the paper's rank", (0.02, RANK_ON_RATINGS), xycoords=("axes fraction", "data"),
            xytext=(0, 3), textcoords="offset points", ha="left", va="bottom", color=ACCENT,
            fontsize="small",
        )  # fmt: skip
    _mark_paper(ax)
    ax.set_ylim(bottom=0)
    ax.set_xscale("log")
    digits_below(ax)
    plain(ax, "factors above the noise, of each draw", "sweep", "rank")


def _mark_paper(ax: Axes) -> None:
    ax.axvline(_PAPER_SWEEPS, color=FAINT, lw=1.2, zorder=0)
