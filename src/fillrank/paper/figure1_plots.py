"""The panels of Figure 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fillrank.paper.factors import Shape, shape_in_ball
from fillrank.paper.look import COLOURS, digits_below, new_figure, save
from fillrank.paper.methods import BPMF, GASR, GASR_PUBLISHED, HASI, SOFT_IMPUTE
from fillrank.report.style import ACCENT, INK, MUTED, REFERENCE, count_axis, in_digits, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fillrank.paper.study import Result

# d below this share of the largest are drawn at it: they shrink without end.
_FLOOR = 1e-6
_MARKS = {
    f"{GASR_PUBLISHED}, paper's rule": (COLOURS[GASR_PUBLISHED], "o", 10.0),
    f"{GASR_PUBLISHED}, counted": (COLOURS[GASR_PUBLISHED], "x", 6.0),
    GASR: (COLOURS[GASR], "+", 9.0),
    BPMF: (COLOURS[BPMF], "s", 7.0),
    SOFT_IMPUTE: (COLOURS[SOFT_IMPUTE], "v", 6.0),
    HASI: (COLOURS[HASI], "^", 6.0),
}


def write(
    folder: Path,
    example: Result,
    ranks: Mapping[tuple[str, str], Sequence[tuple[int, int]]],
    q: int,
) -> None:
    """Draw all panels and save them."""
    figure = new_figure(12.5, 7.4)
    panels = figure.subplot_mosaic([["norm", "inner", "d"], ["rank 1", "rank sqrt(q)", "legend"]])
    traces = example.numbers["traces"]
    prior = shape_in_ball(10 * q)
    _trace(panels["norm"], traces, "norm", prior)
    _trace(panels["inner"], traces, "inner", prior)
    panels["norm"].set_ylim(0.9, 1.005)
    panels["norm"].legend(frameon=False, fontsize="small", loc="lower left")
    panels["inner"].set_ylim(bottom=0.0)
    _scales(panels["d"], example.numbers, q)
    top = max(found for pairs in ranks.values() for _, found in pairs)
    for noise in ("1", "sqrt(q)"):
        _recovered(panels[f"rank {noise}"], ranks, noise, top)
    _legend(panels["legend"], panels["rank 1"])
    save(figure, folder, "figure1")


def _trace(ax: Axes, traces: Mapping[str, Sequence[float]], what: str, prior: Shape) -> None:
    """Means over the columns after every sweep, and what they are without data."""
    for which, label, width in (
        ("all", "all factors", 1.6),
        ("largest", "those of the largest d", 0.9),
    ):
        for side, colour in (("U", INK), ("V", COLOURS[GASR])):
            values = traces[f"{side}, {which}, {what}"]
            style = "-" if which == "all" else ":"
            ax.plot(
                np.arange(1, len(values) + 1), values, style, color=colour, linewidth=width,
                label=f"{side}, {label}",
            )  # fmt: skip
    ax.axhline(getattr(prior, what), **REFERENCE, label="expected without data")
    ax.set_xscale("log")
    digits_below(ax)
    if what == "norm":
        plain(ax, "(a) norms of the columns of U and V", "sweep", "mean norm")
    else:
        plain(ax, "(a) inner products of these columns", "sweep", "mean size of the inner product")


def _scales(ax: Axes, numbers: Mapping[str, Any], q: int) -> None:
    """The sorted d, averaged and of one draw, with the paper's cut."""
    d, last = (np.sort(numbers[name]) for name in ("d", "last_d"))
    order, floor = np.arange(1, d.size + 1), _FLOOR * d[-1]
    cut = d.size - numbers["rank_by_ratio"]
    ax.plot(order, np.maximum(last, floor), ".", color=MUTED, ms=4, label="one draw")
    ax.plot(order, np.maximum(d, floor), "o", color=INK, ms=4, label="average of draws")
    ax.axvline(cut + 0.5, **REFERENCE)
    ax.annotate(
        f"the rule cuts here:\nrank {numbers['rank_by_ratio']}, true rank {q}", (cut + 0.5, 0.92),
        xycoords=("data", "axes fraction"), xytext=(-6, 0), textcoords="offset points",
        ha="right", va="top", color=ACCENT, fontsize="small",
    )  # fmt: skip
    ax.set_yscale("log")
    in_digits(ax)
    count_axis(ax)
    ax.legend(frameon=False, fontsize="small", loc="lower center")
    plain(ax, f"(b) d of a {10 * q} x {10 * q} matrix of rank {q}", "factor, in order of d", "d")


def _recovered(
    ax: Axes, ranks: Mapping[tuple[str, str], Sequence[tuple[int, int]]], noise: str, top: int
) -> None:
    """Recovered against true ranks."""
    truths = sorted({q for pairs in ranks.values() for q, _ in pairs})
    ax.plot(truths, truths, **REFERENCE, label="true rank")
    for method, (colour, mark, size) in _MARKS.items():
        if pairs := ranks.get((method, noise)):
            # Hollow marks of different sizes: those that agree can all be seen.
            ax.plot(
                *zip(*pairs, strict=True), mark, color=colour, ms=size, mfc="none", label=method
            )
    ax.set_ylim(0, 1.05 * max(top, truths[-1]))
    ax.set_xticks(truths)
    words = "noise of sd 1, as in the paper" if noise == "1" else "noise of sd sqrt(q)"
    plain(ax, f"(c) recovered rank, {words}", "true rank", "recovered rank")


def _legend(ax: Axes, source: Axes) -> None:
    """The marks of (c), in a place of their own."""
    ax.axis("off")
    handles, labels = source.get_legend_handles_labels()
    ax.legend(handles, labels, loc="center left", frameon=False, title="in (c)", alignment="left")
