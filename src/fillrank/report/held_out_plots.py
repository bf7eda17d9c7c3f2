"""Plots of entries that were kept aside: predictions of them, and what intervals hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fillrank.estimators.sampled import SampledCompleter
from fillrank.report.held_out import calibrate, compare, some_of
from fillrank.report.style import (
    ACCENT,
    FAINT,
    INK,
    MUTED,
    UNITS,
    axes_or_new,
    counted,
    density_colours,
    ends_of,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More held-out values than this are shown as a density; so many get their interval drawn.
_MOST_POINTS = 3000
_BARS = 40


def predicted(model: Any, test: Any, ax: Axes | None = None, *, level: float = 0.9) -> Axes:
    """Entries that the model has not seen, against its predictions of them.

    On the diagonal the prediction is right. Some entries, chosen at random, have the interval for a
    new observation drawn behind them, if the method has intervals; those outside are in another
    colour. Very many entries are shown as a density, without intervals; levels of ratings as discs,
    whose areas are the numbers of entries.

    Parameters
    ----------
    model : fitted estimator
    test : Observations or table
        Entries kept aside, whose rows and columns the model knows.
    ax : matplotlib axes, optional
    level : float
        Of the intervals.

    Returns
    -------
    matplotlib axes
    """
    ax = axes_or_new(ax, square=True)
    held_out = compare(model, test)
    values, means = held_out.test.values, held_out.predicted
    title = f"{counted(len(values), 'held-out value')}"
    ends = ends_of(values, means, room=0.12 if hasattr(model, "levels_") else 0.04)
    ax.axline((ends[0], ends[0]), slope=1, color=MUTED, linewidth=1.0, zorder=2)
    if hasattr(model, "levels_"):
        title += f", {100 * np.mean(values == means):.0f}% predicted exactly"
        _draw_discs(ax, means, values)
    elif len(values) > _MOST_POINTS:
        ax.hexbin(means, values, gridsize=50, extent=(*ends, *ends), cmap=density_colours(),
                  bins="log", mincnt=1, linewidths=0.1, zorder=1)  # fmt: skip
    else:
        ax.scatter(means, values, s=12, color=INK, alpha=0.25, linewidths=0, zorder=1)
    if isinstance(model, SampledCompleter):
        some = some_of(held_out.test)
        rows, columns = held_out.test.rows[some], held_out.test.columns[some]
        low, high = model.predict_interval(rows, columns, level, kind="observation")
        inside = (low <= values[some]) & (values[some] <= high)
        title += f", {100 * inside.mean():.0f}% within their {100 * level:g}% intervals"
        if len(values) <= _MOST_POINTS:
            bars = slice(_BARS)
            _draw_intervals(ax, means[some[bars]], values[some[bars]], low[bars], high[bars], level)
            ends = ends_of(ends, low[bars], high[bars], room=0.0)
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    plain(ax, title, f"predicted value, {UNITS}", f"held-out value, {UNITS}")
    return ax


def _draw_discs(ax: Axes, means: np.ndarray, values: np.ndarray) -> None:
    pairs, counts = np.unique(np.column_stack([means, values]), axis=0, return_counts=True)
    sizes = 600 * counts / counts.max()
    ax.scatter(pairs[:, 0], pairs[:, 1], s=sizes, color=INK, alpha=0.7, linewidths=0, zorder=3)


def _draw_intervals(
    ax: Axes, means: np.ndarray, values: np.ndarray, low: np.ndarray, high: np.ndarray, level: float
) -> None:
    """A bar for each interval, and the value itself: dark within its bar, in red outside."""
    ax.vlines(means, low, high, color=MUTED, linewidth=1.0, zorder=3)
    inside = (low <= values) & (values <= high)
    for which, colour, place in ((inside, INK, "within"), (~inside, ACCENT, "outside")):
        ax.scatter(means[which], values[which], s=18, color=colour, linewidths=0, zorder=4,
                   label=f"{place} its {100 * level:g}% interval")  # fmt: skip
    ax.legend(loc="lower right", frameon=False, fontsize="small", handletextpad=0.2)


def calibration(model: Any, test: Any, ax: Axes | None = None) -> Axes:
    """How often intervals hold entries that the model has not seen, against what they say.

    On the diagonal they hold what they say; above it they are wider than need be, below it too
    narrow. The band is what chance alone makes of as many entries, 95 times out of 100.

    Parameters
    ----------
    model : fitted GASR or BPMF
    test : Observations or table
        Entries kept aside, whose rows and columns the model knows.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = axes_or_new(ax, square=True)
    levels, shares, n = calibrate(model, test)
    nominal = np.linspace(0.0, 1.0, 101)
    chance = 1.96 * np.sqrt(nominal * (1.0 - nominal) / n)
    ax.fill_between(100 * nominal, 100 * np.clip(nominal - chance, 0, 1),
                    100 * np.clip(nominal + chance, 0, 1), color=FAINT, linewidth=0,
                    label="chance alone")  # fmt: skip
    ax.plot([0, 100], [0, 100], color=MUTED, linewidth=1.0)
    ax.plot(100 * levels, 100 * shares, "o-", color=INK, markersize=5, label="this model")
    ax.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
    ax.legend(loc="lower right", frameon=False, fontsize="small")
    at = int(np.argmin(np.abs(levels - 0.9)))
    title = f"90% intervals hold {100 * shares[at]:.0f}% of {counted(n, 'held-out value')}"
    plain(ax, title, "level of the intervals, %", "held-out values within, %")
    return ax
