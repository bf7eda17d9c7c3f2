"""How the paper's figures look: the style of all plots, and a colour and a mark for each method."""

from pathlib import Path
from typing import TYPE_CHECKING

from fillrank.paper import methods
from fillrank.report.style import INK, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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


def new_figure(width: float, height: float) -> "Figure":
    """A figure that belongs to no window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def digits_below(ax: "Axes") -> None:
    """Numbers such as 1, 10, 100 on a logarithmic horizontal axis, and not powers of ten."""
    from matplotlib.ticker import FuncFormatter

    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def save(figure: "Figure", folder: Path, name: str) -> None:
    """Write a figure as PNG and SVG; the same figure gives the same bytes."""
    from matplotlib import rc_context

    figure.savefig(folder / f"{name}.png")
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
