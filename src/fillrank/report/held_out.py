"""Held-out entries: errors of their predictions, coverage of their intervals, and plots of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.posterior.metrics import coverage, rmse
from fillrank.report.style import (
    ACCENT,
    FAINT,
    INK,
    MUTED,
    UNITS,
    axis_limits,
    count_noun,
    density_colours,
    finish_axes,
    get_axes,
)
from fillrank.table.observations import Observations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# Intervals take much longer than means; a sample of this size gives the coverage to within 1%.
_MAX_INTERVALS = 3000
# More held-out values than this are shown as a density.
_MAX_POINTS = 3000
# The number of held-out values whose interval is drawn.
_N_BARS = 40


class HeldOut(NamedTuple):
    """Held-out entries and their predictions.

    ``spread`` is the error of always predicting their mean. ``n_fitted`` is the number of entries that
    were also fitted, which should be 0.
    """

    test: Observations
    predicted: np.ndarray
    rmse: float
    median_error: float
    spread: float
    n_fitted: int


class Calibration(NamedTuple):
    """The coverage of intervals for each level, measured on ``n`` entries."""

    levels: np.ndarray
    shares: np.ndarray
    n: int


def predict_held_out(model: Any, test: Any) -> HeldOut:
    """Predict the entries of ``test``, whose rows and columns the model must know."""
    test = Observations.of(test)
    if len(test) == 0:
        raise InputError("test must have at least one held-out entry, got none.")
    predicted = model.predict(test.rows, test.columns)
    error = rmse(test.values, predicted)
    median = float(np.median(np.abs(test.values - predicted)))
    return HeldOut(
        test, predicted, error, median, float(test.values.std()), _count_fitted(model, test)
    )


def _count_fitted(model: Any, test: Observations) -> int:
    fitted = model.observations_
    n_columns = fitted.shape[1]
    rows = fitted.row_positions(test.row_labels[np.unique(test.row_index)])
    columns = fitted.column_positions(test.column_labels[np.unique(test.column_index)])
    i = rows[np.unique(test.row_index, return_inverse=True)[1]]
    j = columns[np.unique(test.column_index, return_inverse=True)[1]]
    known = fitted.row_index.astype(np.int64) * n_columns + fitted.column_index
    return int(np.isin(i * n_columns + j, known).sum())


def _sample(test: Observations) -> np.ndarray:
    """Return the positions of all entries, or of a reproducible random sample, in random order."""
    return np.random.default_rng(0).permutation(len(test))[:_MAX_INTERVALS]


def calibrate(model: Any, test: Any, levels: tuple[float, ...] = LEVELS) -> Calibration:
    """Measure the coverage of intervals for a new observation on held-out entries."""
    test = Observations.of(test)
    some = _sample(test)
    rows, columns, values = test.rows[some], test.columns[some], test.values[some]
    shares = [
        coverage(values, *model.predict_interval(rows, columns, level, kind="observation"))
        for level in levels
    ]
    return Calibration(np.array(levels), np.array(shares), len(some))


def predicted(model: Any, test: Any, ax: Axes | None = None, *, level: float = 0.9) -> Axes:
    """Plot held-out entries against their predictions.

    On the diagonal the prediction is correct. If the method has intervals, the intervals for a new
    observation are drawn for a random sample of entries; entries outside their interval have another
    colour. Very many entries are shown as a density, without intervals. Rating levels are shown as
    discs, whose areas are proportional to the numbers of entries.

    Parameters
    ----------
    model : fitted estimator
    test : Observations or table
        Held-out entries, whose rows and columns the model knows.
    ax : matplotlib axes, optional
    level : float
        The level of the intervals.

    Returns
    -------
    matplotlib axes
    """
    ax = get_axes(ax, square=True)
    held_out = predict_held_out(model, test)
    values, means = held_out.test.values, held_out.predicted
    title = f"{count_noun(len(values), 'held-out value')}"
    limits = axis_limits(
        values, means, margin=0.12 if model.posterior_.levels is not None else 0.04
    )
    ax.axline((limits[0], limits[0]), slope=1, color=MUTED, linewidth=1.0, zorder=2)
    if model.posterior_.levels is not None:
        title += f", {100 * np.mean(values == means):.0f}% predicted exactly"
        _draw_discs(ax, means, values)
    elif len(values) > _MAX_POINTS:
        ax.hexbin(means, values, gridsize=50, extent=(*limits, *limits), cmap=density_colours(),
                  bins="log", mincnt=1, linewidths=0.1, zorder=1)  # fmt: skip
    else:
        ax.scatter(means, values, s=12, color=INK, alpha=0.25, linewidths=0, zorder=1)
    if model.posterior_.has_draws:
        some = _sample(held_out.test)
        rows, columns = held_out.test.rows[some], held_out.test.columns[some]
        low, high = model.predict_interval(rows, columns, level, kind="observation")
        inside = (low <= values[some]) & (values[some] <= high)
        title += f", {100 * inside.mean():.0f}% within their {100 * level:g}% intervals"
        if len(values) <= _MAX_POINTS:
            bars = slice(_N_BARS)
            _draw_intervals(ax, means[some[bars]], values[some[bars]], low[bars], high[bars], level)
            limits = axis_limits(limits, low[bars], high[bars], margin=0.0)
    ax.set(xlim=limits, ylim=limits, aspect="equal")
    finish_axes(ax, title, f"predicted value, {UNITS}", f"held-out value, {UNITS}")
    return ax


def _draw_discs(ax: Axes, means: np.ndarray, values: np.ndarray) -> None:
    pairs, counts = np.unique(np.column_stack([means, values]), axis=0, return_counts=True)
    sizes = 600 * counts / counts.max()
    ax.scatter(pairs[:, 0], pairs[:, 1], s=sizes, color=INK, alpha=0.7, linewidths=0, zorder=3)


def _draw_intervals(
    ax: Axes, means: np.ndarray, values: np.ndarray, low: np.ndarray, high: np.ndarray, level: float
) -> None:
    """Draw a bar for each interval, and its value: dark within the interval, red outside."""
    ax.vlines(means, low, high, color=MUTED, linewidth=1.0, zorder=3)
    inside = (low <= values) & (values <= high)
    for which, colour, side in ((inside, INK, "within"), (~inside, ACCENT, "outside")):
        ax.scatter(means[which], values[which], s=18, color=colour, linewidths=0, zorder=4,
                   label=f"{side} its {100 * level:g}% interval")  # fmt: skip
    ax.legend(loc="lower right", frameon=False, fontsize="small", handletextpad=0.2)


def calibration(model: Any, test: Any, ax: Axes | None = None) -> Axes:
    """Plot the coverage of intervals, measured on held-out entries, against their level.

    On the diagonal the intervals are calibrated. Above it they are too wide, below it too narrow. For
    calibrated intervals, the coverage of this number of entries is within the band in 95 of 100 cases.

    Parameters
    ----------
    model : fitted GASR or BPMF
    test : Observations or table
        Held-out entries, whose rows and columns the model knows.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = get_axes(ax, square=True)
    levels, shares, n = calibrate(model, test)
    nominal = np.linspace(0.0, 1.0, 101)
    chance = 1.96 * np.sqrt(nominal * (1.0 - nominal) / n)
    ax.fill_between(100 * nominal, 100 * np.clip(nominal - chance, 0, 1),
                    100 * np.clip(nominal + chance, 0, 1), color=FAINT, linewidth=0,
                    label="random variation")  # fmt: skip
    ax.plot([0, 100], [0, 100], color=MUTED, linewidth=1.0)
    ax.plot(100 * levels, 100 * shares, "o-", color=INK, markersize=5, label="this model")
    ax.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
    ax.legend(loc="lower right", frameon=False, fontsize="small")
    at = int(np.argmin(np.abs(levels - 0.9)))
    title = f"90% intervals cover {100 * shares[at]:.0f}% of {count_noun(n, 'held-out value')}"
    finish_axes(ax, title, "level of the intervals, %", "coverage of held-out values, %")
    return ax
