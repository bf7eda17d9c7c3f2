"""The style that all plots share, and the text of numbers and labels in plots and report."""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap

INK = "#1f4e79"  # the subject of the plot
MUTED = "#8a94a0"  # secondary lines and points
QUIET = "#566573"  # secondary text, which needs more contrast than lines
FAINT = "#d3d9df"  # background
ACCENT = "#c8553d"  # references to compare with
REFERENCE: dict[str, Any] = {"color": ACCENT, "linewidth": 1.2, "linestyle": (0, (4, 3))}
UNITS = "in the table's units"
# Decimal exponents of numbers that are written without a power of ten.
_PLAIN_EXPONENTS = range(-4, 7)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def get_axes(ax: Axes | None, square: bool = False) -> Axes:
    """Return the given axes, or those of a new figure that is not managed by pyplot.

    So nothing must be closed, and no figure remains in memory after its last use.
    """
    if ax is not None:
        return ax
    # Imported late: reading tables and fitting need no matplotlib.
    from matplotlib.figure import Figure

    from fillrank.report.shown_axes import ShownAxes

    size = (5.2, 5.2) if square else (6.8, 4.2)
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    return figure.subplots(subplot_kw={"axes_class": ShownAxes})


def finish_axes(ax: Axes, title: str, x_label: str, y_label: str) -> None:
    """Set the title and the axis labels, and remove the frame."""
    ax.set_title(title, loc="left", fontsize="medium", pad=10)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.tick_params(color=MUTED, which="both")


def use_integer_ticks(axis: Axis) -> None:
    """Use integers as ticks."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def use_decimal_ticks(axis: Axis) -> None:
    """Label a logarithmic axis with numbers such as 0.1, 1, 10 instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def density_colours() -> Colormap:
    """Return colours of densities; none is as light as the white background."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("density", [FAINT, "#7fa3c4", INK])


def value_colours() -> Colormap:
    """Return colours of values; none is as light as white, which marks a missing value."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = ["#1d3557", "#2a6f97", "#4fa3a5", "#a3c585", "#f0c95c", "#e07a3f", "#a4303f"]
    return LinearSegmentedColormap.from_list("values", stops)


def axis_limits(*values: Any, margin: float = 0.04) -> tuple[float, float]:
    """Return limits that contain all values, with a margin relative to their range."""
    low = min(float(np.min(v)) for v in values)
    high = max(float(np.max(v)) for v in values)
    width = margin * (high - low) if high > low else 1.0
    return low - width, high + width


def count_noun(n: int, noun: str) -> str:
    """Format a number with its noun.

    Examples
    --------
    >>> count_noun(1, "sweep"), count_noun(2000, "sweep")
    ('1 sweep', '2,000 sweeps')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def format_number(x: float, digits: int = 3) -> str:
    """Format a number with this many significant digits.

    Examples
    --------
    >>> format_number(0.01234), format_number(1234567), format_number(1.5e-9), format_number(0)
    ('0.0123', '1,234,567', '1.50e-09', '0')
    """
    if x == 0 or not math.isfinite(x):
        return f"{x + 0.0:g}"
    exponent = math.floor(math.log10(abs(x)))
    if exponent not in _PLAIN_EXPONENTS:
        return f"{x:.{digits - 1}e}"
    return f"{x:,.{max(0, digits - 1 - exponent)}f}"


def format_percent(share: float) -> str:
    """Format a share of draws as a percentage, never 100%: there are only some hundred of them.

    Examples
    --------
    >>> format_percent(0.474), format_percent(1.0)
    ('47%', 'over 99%')
    """
    return f"{100 * share:.0f}%" if share < 0.995 else "over 99%"


def format_share(share: float) -> str:
    """Format a share as a percentage; 0% is nothing, and 100% is all.

    Examples
    --------
    >>> format_share(0.124), format_share(0.0001), format_share(0.9996), format_share(1.0)
    ('12%', 'below 1%', 'over 99%', '100%')
    """
    if 0 < share < 0.005:
        return "below 1%"
    return "over 99%" if 0.995 <= share < 1 else f"{100 * share:.0f}%"


def format_label(label: Any, max_length: int = 40) -> str:
    """Format a row or column label as one line of text; it is not yet escaped for HTML.

    White space becomes a blank. Characters that cannot be displayed or encoded are replaced.

    Examples
    --------
    >>> format_label("two\\nlines"), format_label("x" * 50, max_length=5)
    ('two lines', 'xxxx…')
    """
    # Labels that are much longer are cut first, to bound the time.
    text = "".join(_displayable(character) for character in str(label)[: 4 * max_length])
    text = " ".join(text.split()) or "(blank)"
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def _displayable(character: str) -> str:
    if character.isspace():
        return " "
    return _REPLACEMENT if unicodedata.category(character) in ("Cc", "Cs") else character
