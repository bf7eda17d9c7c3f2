"""The look that all plots share: few colours, no boxes, words beside the lines they explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#1f4e79"  # what the plot is about
MUTED = "#8a94a0"  # what stands beside it
FAINT = "#d3d9df"  # ground
ACCENT = "#c8553d"  # what to compare with
REFERENCE: dict[str, Any] = {"color": ACCENT, "linewidth": 1.2, "linestyle": (0, (4, 3))}
UNITS = "in the table's units"


def axes_or_new(ax: Axes | None, square: bool = False) -> Axes:
    """The axes given, or those of a new figure that pyplot does not know of."""
    if ax is not None:
        return ax
    # Imported late: reading tables and fitting need no matplotlib.
    from matplotlib.figure import Figure

    size = (5.2, 5.2) if square else (6.8, 4.2)
    return Figure(figsize=size, dpi=150, layout="constrained").subplots()


def plain(ax: Axes, title: str, x_label: str, y_label: str) -> None:
    """Name the plot and its axes, and take away what says nothing."""
    ax.set_title(title, loc="left", fontsize="medium", pad=10)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.tick_params(color=MUTED, which="both")


def count_axis(ax: Axes) -> None:
    """Whole numbers on the horizontal axis."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))


def in_digits(ax: Axes) -> None:
    """Numbers such as 0.1, 1, 10 at the ticks of a logarithmic axis, and not powers of ten."""
    from matplotlib.ticker import FuncFormatter

    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def density_colours() -> Any:
    """Colours from ground to ink, none of them as light as the paper."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("density", [FAINT, "#7fa3c4", INK])


def ends_of(*values: Any, room: float = 0.04) -> tuple[float, float]:
    """Ends of an axis that holds all of the values, with a share of their range as room."""
    low = min(float(np.min(v)) for v in values)
    high = max(float(np.max(v)) for v in values)
    margin = room * (high - low) if high > low else 1.0
    return low - margin, high + margin


def counted(n: int, noun: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> counted(1, "sweep"), counted(2000, "sweep")
    ('1 sweep', '2,000 sweeps')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def value_colours() -> Any:
    """Colours of values from low to high, none of them as light as the paper: that is a hole."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = ["#1d3557", "#2a6f97", "#4fa3a5", "#a3c585", "#f0c95c", "#e07a3f", "#a4303f"]
    return LinearSegmentedColormap.from_list("values", stops)


def percent(share: float) -> str:
    """A probability as a whole percentage, though never certain: it is counted in some hundred draws.

    Examples
    --------
    >>> percent(0.474), percent(1.0)
    ('47%', 'over 99%')
    """
    return f"{100 * share:.0f}%" if share < 0.995 else "over 99%"
