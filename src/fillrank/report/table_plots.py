"""Plots of a table: its cells, how sure the model is of them, its rows and columns on a map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fillrank.errors import InputError, NotSupportedError
from fillrank.report.cells import Blocks, Sure, filled_blocks, observed_blocks, sure_of
from fillrank.report.names import shown
from fillrank.report.places import Places, Side, outermost, places
from fillrank.report.style import (
    INK,
    MUTED,
    REFERENCE,
    UNITS,
    axes_or_new,
    counted,
    density_colours,
    plain,
    value_colours,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Values beyond these quantiles have the colour of the ends: one outlier must not make all else alike.
_ENDS = (0.01, 0.99)
# A few cells of which nothing is known must not make all others a single bar.
_SHOWN_WIDTHS = 0.999
_MOST_OF_A_NAME = 24


def matrix(model: Any, ax: Axes | None = None, *, filled: bool = False) -> Axes:
    """The table as a picture, with its holes or without; rows and columns in the table's order.

    Tables of more than 300 rows or columns are shown in blocks: with holes, the share of each that is
    observed; filled, its average prediction.

    Parameters
    ----------
    model : fitted estimator
    ax : matplotlib axes, optional
    filled : bool
        Whether predictions fill the holes.

    Returns
    -------
    matplotlib axes
    """
    data = model.observations_
    if not filled and len(data) == 0:
        raise NotSupportedError(
            "this model was saved without the entries that it was fitted on, so it cannot show them. "
            "Save it by save(path, with_data=True), or use filled=True."
        )
    ax = axes_or_new(ax)
    blocks = filled_blocks(model) if filled else observed_blocks(data)
    if filled or blocks.exact:
        low, high = np.nanquantile(blocks.cells if len(data) == 0 else data.values, _ENDS)
        if not blocks.exact:  # averages are closer together
            low, high = np.quantile(blocks.cells, _ENDS)
        _draw_cells(ax, blocks, data.shape, (value_colours(), low, high), f"value, {UNITS}")
    else:
        percent = blocks._replace(cells=100 * blocks.cells)
        most = max(float(np.quantile(percent.cells, 0.995)), 1e-9)
        percent.cells[percent.cells == 0] = np.nan
        _draw_cells(ax, percent, data.shape, (density_colours(), 0.0, most), "cells observed, %")
    plain(
        ax,
        _table_title(data, blocks, filled),
        "columns, in the table's order",
        "rows, in the table's order",
    )
    ax.spines[["top", "right"]].set_visible(True)
    ax.spines[:].set_color(MUTED)
    return ax


def _draw_cells(
    ax: Axes, blocks: Blocks, shape: tuple[int, int], look: tuple[Any, float, float], label: str
) -> None:
    """Draw cells with a bar of colours; ``look`` is the colours, and what the ends of them stand for."""
    n_rows, n_columns = shape
    colours, low, high = look
    image = ax.imshow(
        blocks.cells, aspect="auto", interpolation="nearest", cmap=colours, vmin=low,
        vmax=high if high > low else low + 1.0, extent=(0.5, n_columns + 0.5, n_rows + 0.5, 0.5),
    )  # fmt: skip
    for axis, n in ((ax.xaxis, n_columns), (ax.yaxis, n_rows)):
        ends = sorted({1, n})
        axis.set_ticks(ends, [f"{end:,}" for end in ends])
    figure: Any = ax.get_figure(root=True)
    figure.colorbar(image, ax=ax, label=label, pad=0.02).outline.set_visible(False)


def _table_title(data: Any, blocks: Blocks, filled: bool) -> str:
    if filled:
        return "Without holes" if blocks.exact else "Without holes: average of each block"
    share = f"{100 * data.density:.3g}% of the cells are observed"
    return share if blocks.exact else f"{share}, most of them in dark blocks"


def certainty(model: Any, ax: Axes | None = None) -> Axes:
    """How far the missing cells are known: half of the width of their 90% intervals.

    The intervals are those of the noise-free value. Of more than 200,000 missing cells so many are
    looked at, chosen at random.

    Parameters
    ----------
    model : fitted GASR or BPMF
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    sure = sure_of(model)
    if sure.rows.size == 0:
        raise InputError("there is no missing cell: nothing to be uncertain of.")
    return draw_certainty(sure, axes_or_new(ax))


def draw_certainty(sure: Sure, ax: Axes) -> Axes:
    """The plot of `certainty`, for cells that have been looked at already."""
    half = 0.5 * (sure.high - sure.low)
    typical = float(np.median(half))
    top = float(np.quantile(half, _SHOWN_WIDTHS))
    ax.hist(half, bins=50, range=(0.0, top if top > 0 else 1.0), color=INK)
    ax.axvline(typical, **REFERENCE)
    ax.set_xlim(left=0.0)
    ax.yaxis.set_major_formatter("{x:,.0f}")
    title = f"Half of the cells are known to within ±{typical:.3g}"
    plain(ax, title, f"half-width of the {100 * sure.level:g}% interval, {UNITS}", "cells")
    return ax


def map(model: Any, side: Side = "rows", ax: Axes | None = None) -> Axes:
    """Rows, or columns, as points: similar ones are near each other.

    The distance between two points is the typical difference of their filled-in values, as far as two
    dimensions can show it. The outermost points are named.

    Parameters
    ----------
    model : fitted estimator
    side : {"rows", "columns"}
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = axes_or_new(ax)
    found = places(model, side)
    x, y = found.points.T
    size = float(np.clip(4000 / len(x), 3, 24))
    ax.scatter(x, y, s=size, color=INK, alpha=0.45, linewidths=0)
    middle = 0.5 * (x.min() + x.max())
    for k in outermost(found.points):
        # Into the plot, and names are text, whatever is in them: no mathematics, no TeX.
        ends, away = ("right", -4) if x[k] > middle else ("left", 4)
        ax.annotate(
            shown(found.names[k], _MOST_OF_A_NAME), (x[k], y[k]), xytext=(away, 4), ha=ends,
            textcoords="offset points", fontsize="small", color=MUTED, parse_math=False, usetex=False,
        )  # fmt: skip
    ax.set_aspect("equal", adjustable="datalim")
    title = f"{counted(len(x), side.removesuffix('s'))}: similar ones are near each other"
    plain(ax, title, *_axis_names(found, model))
    return ax


def _axis_names(found: Places, model: Any) -> tuple[str, str]:
    units = "" if hasattr(model, "levels_") else f", {UNITS}"
    return (
        f"main difference{units}\n(the map shows {100 * found.share:.0f}% of all differences)",
        f"second difference{units}",
    )
