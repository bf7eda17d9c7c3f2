"""A plot of the intervals of missing cells, by column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.report.cells import missing_intervals
from fillrank.report.columns import is_mixed
from fillrank.report.style import FAINT, INK, count_noun, finish_axes, format_label, get_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COLUMNS = 30
_LABEL_LENGTH = 24


class ColumnWidths(NamedTuple):
    """Half-widths of the intervals of columns, the widest first: median, and ends of the middle 90%."""

    columns: np.ndarray
    low: np.ndarray
    median: np.ndarray
    high: np.ndarray
    units: str


def measure_widths(model: Any, level: float = 0.9) -> ColumnWidths:
    """Measure the intervals of missing cells by column; columns without any are left out."""
    found = missing_intervals(model, level)
    half = 0.5 * found.widths
    columns, starts = np.unique(np.sort(found.columns), return_index=True)
    parts = np.split(half[np.argsort(found.columns, kind="stable")], starts)[1:]
    quantiles = np.array([np.quantile(part, (0.05, 0.5, 0.95)) for part in parts]).reshape(-1, 3)
    order = np.argsort(-quantiles[:, 1], kind="stable")
    low, median, high = quantiles[order].T
    return ColumnWidths(columns[order], low, median, high, found.units)


def intervals(model: Any, ax: Axes | None = None, *, level: float = 0.9) -> Axes:
    """Plot how wide the intervals of missing cells are in each column, the widest first.

    Dots are the median half-widths, bars cover 90% of the cells. The intervals are those of the value
    without noise. Columns of numbers that have different units are compared in standard deviations of
    the column. If there are more than 30 columns, those with the widest intervals are shown.

    Parameters
    ----------
    model : fitted GASR or BPMF
    ax : matplotlib axes, optional
    level : float
        The probability of the intervals.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(data)
    >>> len(fr.plot.intervals(model).get_yticklabels())
    30
    """
    widths = measure_widths(model, level)
    n = widths.columns.size
    if n == 0:
        what = "missing number" if is_mixed(model) else "missing cell"
        raise InputError(f"the table has no {what}, so there are no intervals to show.")
    ax = get_axes(ax)
    shown = slice(min(n, MOST_COLUMNS))
    columns, low, median, high = (each[shown] for each in widths[:-1])
    at = np.arange(columns.size)
    ax.hlines(at, low, high, color=FAINT, linewidth=4.0)
    ax.plot(median, at, "o", color=INK, markersize=4)
    labels = model.observations_.column_labels[columns]
    names = [format_label(label, _LABEL_LENGTH) for label in labels]
    ax.set_yticks(at, names, parse_math=False, usetex=False)
    ax.tick_params(axis="y", labelsize="x-small")
    ax.set_ylim(columns.size - 0.5, -0.5)
    ax.set_xlim(left=0.0)
    title = f"Intervals of {count_noun(n, 'column')}"
    if n > MOST_COLUMNS:
        title += f": the {MOST_COLUMNS} widest"
    finish_axes(ax, title, f"half-width of the {100 * level:g}% interval, {widths.units}", "")
    return ax
