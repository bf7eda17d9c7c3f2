"""Held-out entries: errors of their predictions, coverage of their intervals, and plots of both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank.completions.unknown_labels import find_cells
from fillrank.errors import InputError, NotSupportedError
from fillrank.estimators.score import predict_test
from fillrank.estimators.score_groups import (
    GroupScores,
    compute_scores,
    find_problems,
    sums_by_column,
    sums_by_level,
)
from fillrank.posterior.metrics import coverage, rmse
from fillrank.report.columns import (
    NUMBER_KINDS,
    Standard,
    columns_of_kinds,
    have_one_unit,
    is_mixed,
    limit_sides,
    standard_of,
)
from fillrank.report.style import (
    ACCENT,
    FAINT,
    INK,
    MUTED,
    REFERENCE,
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

GROUP_LEVEL = 0.9  # of the intervals whose coverage is measured by column and by level
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# Intervals take much longer than means; a sample of this size gives the coverage to within 1%.
_MAX_INTERVALS = 3000
# More held-out values than this are shown as a density.
_MAX_POINTS = 3000
# The number of held-out values whose interval is drawn.
_N_BARS = 40
# How far the axes go beyond the values, relative to their range, to show intervals.
_MOST_BEYOND = 0.25


class HeldOut(NamedTuple):
    """Held-out entries and their predictions.

    ``spread`` is the error of always predicting their mean. If the columns of the model that predicts
    have their own units, ``are_standard`` is set: errors are in standard deviations of the column, and
    ``spread`` is that of its mean. ``n_fitted`` is the number
    of entries that were also fitted, which should be 0. In a table of mixed kinds, errors are those of
    numbers, NaN if there are none, and ``levels`` the scores of the others.
    """

    test: Observations
    predicted: np.ndarray
    rmse: float
    median_error: float
    spread: float
    n_fitted: int
    are_standard: bool
    levels: LevelScores | None = None


class LevelScores(NamedTuple):
    """How many levels are predicted correctly, and by always predicting the most frequent one."""

    n_numbers: int
    n_levels: int
    accuracy: float
    usual_accuracy: float


class Plotted(NamedTuple):
    """Held-out entries as a plot shows them: which ones, their values, predictions and units."""

    chosen: np.ndarray
    values: np.ndarray
    predicted: np.ndarray
    units: str
    standard: Standard | None = None

    def shown(self, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Other numbers of these columns in the same units."""
        return values if self.standard is None else self.standard.of(columns, values)


class Calibration(NamedTuple):
    """The coverage of intervals for each level, measured on ``n`` entries."""

    levels: np.ndarray
    shares: np.ndarray
    n: int


class Groups(NamedTuple):
    """Scores by column, worst first, and by level; and the columns that are predicted badly."""

    columns: GroupScores
    levels: GroupScores
    problems: dict[int, str]


def score_groups(model: Any, test: Observations) -> Groups:
    """Score the predictions of held-out entries by column and by level."""
    found = predict_test(test, model, GROUP_LEVEL)
    columns = compute_scores(sums_by_column(found, model), worst_first=True)
    levels = compute_scores(sums_by_level(found, model))
    return Groups(columns, levels, find_problems(columns, GROUP_LEVEL))


def predict_held_out(model: Any, test: Any) -> HeldOut:
    """Predict the entries of ``test``, whose rows and columns the model must know."""
    test = Observations.of(test, like=model.observations_)
    if len(test) == 0:
        raise InputError("test must have at least one held-out entry, got none.")
    predicted = model.completion_.predict_cells(
        find_cells(model.completion_, test.rows, test.columns), "mean"
    )
    if is_mixed(model):
        return _mixed_held_out(model, test, predicted)
    units, values, shown = model.posterior_.units, test.values, predicted
    spread = float(values.std())
    if not units.are_shared:
        columns = model.observations_.column_positions(test.columns)
        values, shown = (
            (each - units.location[columns]) / units.scale[columns] for each in (values, predicted)
        )
        spread = math.sqrt(np.mean(values**2))
    median = float(np.median(np.abs(values - shown)))
    n_fitted, are_standard = _count_fitted(model, test), not units.are_shared
    return HeldOut(test, predicted, rmse(values, shown), median, spread, n_fitted, are_standard)


def _mixed_held_out(model: Any, test: Observations, predicted: np.ndarray) -> HeldOut:
    """The errors of numbers, in standard deviations of their columns, and the accuracy of levels."""
    columns = model.observations_.column_positions(test.columns)
    is_number = columns_of_kinds(model, *NUMBER_KINDS)[columns] & (limit_sides(test) == 0)
    standard = standard_of(model)
    values, shown = (
        standard.of(columns[is_number], each[is_number]) for each in (test.values, predicted)
    )
    error, median, spread = math.nan, math.nan, math.nan
    if values.size:
        median = float(np.median(np.abs(values - shown)))
        error, spread = rmse(values, shown), math.sqrt(np.mean(values**2))
    levels = _level_scores(model, test, values.size)
    n_fitted = _count_fitted(model, test)
    return HeldOut(test, predicted, error, median, spread, n_fitted, True, levels)


def _level_scores(model: Any, test: Observations, n_numbers: int) -> LevelScores:
    sums = sums_by_column(predict_test(test, model, GROUP_LEVEL), model)
    n, correct, usual = (
        float(each.sum()) for each in (sums.n_levels, sums.correct, sums.usual_correct)
    )
    share, usual_share = (correct / n, usual / n) if n else (math.nan, math.nan)
    return LevelScores(n_numbers, int(n), share, usual_share)


def _plotted(model: Any, held_out: HeldOut) -> Plotted:
    """All held-out entries; in a table of mixed kinds, those of numbers and ordered levels."""
    test, predicted = held_out.test, held_out.predicted
    if have_one_unit(model):
        return Plotted(np.arange(len(test)), test.values, predicted, UNITS)
    columns = model.observations_.column_positions(test.columns)
    chosen = np.flatnonzero(columns_of_kinds(model, *NUMBER_KINDS, "ordered")[columns])
    if chosen.size == 0:
        raise NotSupportedError(
            "this plot shows numbers and ordered levels: none is held out. predict_proba has the "
            "probabilities of other levels."
        )
    standard = standard_of(model)
    values, shown = (
        standard.of(columns[chosen], each[chosen]) for each in (test.values, predicted)
    )
    return Plotted(chosen, values, shown, "SD from the mean of the column", standard)


def _count_fitted(model: Any, test: Observations) -> int:
    fitted = model.observations_
    n_columns = fitted.shape[1]
    rows = fitted.row_positions(test.row_labels[np.unique(test.row_index)])
    columns = fitted.column_positions(test.column_labels[np.unique(test.column_index)])
    i = rows[np.unique(test.row_index, return_inverse=True)[1]]
    j = columns[np.unique(test.column_index, return_inverse=True)[1]]
    known = fitted.row_index.astype(np.int64) * n_columns + fitted.column_index
    return int(np.isin(i * n_columns + j, known).sum())


def _sample(n: int) -> np.ndarray:
    """Return the positions of n entries, or of a reproducible random sample, in random order."""
    return np.random.default_rng(0).permutation(n)[:_MAX_INTERVALS]


def calibrate(model: Any, test: Any, levels: tuple[float, ...] = LEVELS) -> Calibration:
    """Measure the coverage of intervals for a new observation on held-out entries.

    In a table of mixed kinds, those of numbers: intervals of few levels cannot have just any coverage.
    """
    test = Observations.of(test, like=model.observations_)
    model.completion_.check_draws("intervals")
    if is_mixed(model):
        columns = model.observations_.column_positions(test.columns)
        is_number = columns_of_kinds(model, *NUMBER_KINDS)[columns] & (limit_sides(test) == 0)
        if not is_number.any():
            raise NotSupportedError("this plot shows intervals of numbers: none is held out.")
        test = test[np.flatnonzero(is_number)]
    some, completion = _sample(len(test)), model.completion_
    cells = find_cells(completion, test.rows[some], test.columns[some])
    values, shares = test.values[some], []
    for level in levels:
        low, high = completion.predict_cell_intervals(cells, level)
        shares.append(coverage(values, low, high))
    return Calibration(np.array(levels), np.array(shares), len(some))


def predicted(model: Any, test: Any, ax: Axes | None = None, *, level: float = 0.9) -> Axes:
    """Plot held-out entries against their predictions.

    On the diagonal the prediction is correct. If the method has intervals, the intervals for a new
    observation are drawn for a random sample of entries; entries outside their interval have another
    colour. Very many entries are shown as a density, without intervals. Rating levels are shown as
    discs, whose areas are proportional to the numbers of entries. Values of which only a limit is known
    are arrows. If columns have different units, values are in standard deviations from the mean of their
    column. In a table of mixed kinds, the plot shows numbers and ordered levels.

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

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> train, test = data.split(test_fraction=0.2, random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(train)
    >>> fr.plot.predicted(model, test).get_xlabel()
    "predicted value, in the table's units"
    """
    ax = get_axes(ax, square=True)
    held_out = predict_held_out(model, test)
    plotted = _plotted(model, held_out)
    chosen, values, means, units, _ = plotted
    title = f"{count_noun(len(values), 'held-out value')}"
    limits = axis_limits(
        values, means, margin=0.12 if model.posterior_.levels is not None else 0.04
    )
    ax.axline((limits[0], limits[0]), slope=1, color=MUTED, linewidth=1.0, zorder=2)
    sides = limit_sides(held_out.test)[chosen]
    if model.posterior_.levels is not None:
        title += f", {100 * np.mean(values == means):.0f}% predicted exactly"
        _draw_discs(ax, means, values)
    elif len(values) > _MAX_POINTS:
        ax.hexbin(means, values, gridsize=50, extent=(*limits, *limits), cmap=density_colours(),
                  bins="log", mincnt=1, linewidths=0.1, zorder=1)  # fmt: skip
    else:
        exact = sides == 0
        ax.scatter(means[exact], values[exact], s=12, color=INK, alpha=0.25, linewidths=0, zorder=1)
        _draw_limits(ax, means[~exact], values[~exact], sides[~exact])
    if model.posterior_.has_draws:
        some = _sample(len(values))
        at, completion = chosen[some], model.completion_
        cells = find_cells(completion, held_out.test.rows[at], held_out.test.columns[at])
        low, high = (
            plotted.shown(cells.columns, each)
            for each in completion.predict_cell_intervals(cells, level)
        )
        inside = ((low <= values[some]) & (values[some] <= high))[sides[some] == 0]
        title += f", {100 * inside.mean():.0f}% within their {100 * level:g}% intervals"
        if len(values) <= _MAX_POINTS:
            bars = np.flatnonzero(sides[some] == 0)[:_N_BARS]
            _draw_intervals(ax, means[some[bars]], values[some[bars]], low[bars], high[bars], level)
            limits = _extend(limits, low[bars], high[bars])
    ax.set(xlim=limits, ylim=limits, aspect="equal")
    finish_axes(ax, title, f"predicted value, {units}", f"held-out value, {units}")
    return ax


def _extend(limits: tuple[float, float], low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """Extend limits to intervals, but not so far that a few wide ones press the values together."""
    most = _MOST_BEYOND * (limits[1] - limits[0])
    start, stop = axis_limits(limits, low, high, margin=0.0)
    return max(start, limits[0] - most), min(stop, limits[1] + most)


def _draw_limits(ax: Axes, means: np.ndarray, values: np.ndarray, sides: np.ndarray) -> None:
    """Draw values of which only a limit is known as arrows to the side where the value is."""
    for side, marker, name in ((-1, "$\\downarrow$", "below"), (1, "$\\uparrow$", "above")):
        mine = sides == side
        if mine.any():
            ax.scatter(means[mine], values[mine], s=70, marker=marker, color=INK, linewidths=0,
                       zorder=5, label=f"{name} a limit")  # fmt: skip


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

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> train, test = data.split(test_fraction=0.2, random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(train)
    >>> fr.plot.calibration(model, test).get_xlabel()
    'level of the intervals, %'
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


def draw_error_by_level(levels: GroupScores, ax: Axes) -> Axes:
    """Draw the error of each fifth of the predictions, and the mean error."""
    ax.bar(levels.group, levels.rmse, width=0.7, color=INK, label="RMSE")
    ax.plot(levels.group, levels.mean_error, "o", color=ACCENT, markersize=6, label="mean error")
    ax.axhline(0.0, color=MUTED, linewidth=1.0)
    low, high = (f"{end:.3g}" for end in (levels.rmse.min(), levels.rmse.max()))
    ax.set_ylim(top=1.25 * levels.rmse.max() or None)
    ax.legend(loc="upper right", frameon=False, fontsize="small", ncols=2)
    title = f"RMSE {low}" if low == high else f"RMSE {low} to {high} in fifths of the predictions"
    _finish_levels(ax, levels, title, f"error, {UNITS}")
    return ax


def draw_coverage_by_level(levels: GroupScores, ax: Axes) -> Axes:
    """Draw the coverage of intervals in each fifth of the predictions.

    For calibrated intervals, each dot is within its bar in 95 of 100 cases.
    """
    chance = 1.96 * np.sqrt(GROUP_LEVEL * (1.0 - GROUP_LEVEL) / levels.entries)
    low, high = np.maximum(GROUP_LEVEL - chance, 0.0), np.minimum(GROUP_LEVEL + chance, 1.0)
    ax.bar(levels.group, 100 * (high - low), bottom=100 * low, width=0.7, color=FAINT,
           label="random variation")  # fmt: skip
    ax.axhline(100 * GROUP_LEVEL, **REFERENCE)
    ax.plot(levels.group, 100 * levels.coverage, "o", color=INK, markersize=7, label="coverage")
    ax.set_ylim(100 * min(low.min(), levels.coverage.min()) - 8, 101)
    ax.legend(loc="lower right", frameon=False, fontsize="small", ncols=2)
    first, last = (f"{100 * end:.0f}" for end in (levels.coverage.min(), levels.coverage.max()))
    share = first if first == last else f"{first} to {last}"
    title = f"{100 * GROUP_LEVEL:g}% intervals cover {share}% in fifths of the predictions"
    _finish_levels(ax, levels, title, "coverage of held-out values, %")
    return ax


def _finish_levels(ax: Axes, levels: GroupScores, title: str, y_label: str) -> None:
    ax.set_xticks(levels.group, [f"{prediction:.3g}" for prediction in levels.prediction])
    finish_axes(ax, title, f"mean prediction, {UNITS}", y_label)
