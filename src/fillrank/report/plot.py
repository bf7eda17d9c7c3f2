"""Plots as functions: each takes a fitted model and, if wanted, matplotlib axes; each returns axes.

Without axes, a figure is made that belongs to no window and needs no display: save it by
``ax.figure.savefig("spectrum.png")``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fillrank.data.observations import Observations
from fillrank.errors import InputError, NotSupportedError
from fillrank.report.style import (
    ACCENT,
    FAINT,
    INK,
    MUTED,
    REFERENCE,
    UNITS,
    axes_or_new,
    count_axis,
    counted,
    density_colours,
    ends_of,
    in_digits,
    plain,
)
from fillrank.solvers.spectral_start import detection_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Factors that the data do not need shrink without end; this far below the level they are all alike.
_FLOOR = 1e-2
# More held-out values than the first are shown as a density; so many get their interval drawn.
_MOST_POINTS = 3000
_BARS = 40


def _check_draws(model: Any) -> None:
    """Refuse a method without a posterior of the signal."""
    if "residual_variance" not in model.history_:
        raise NotSupportedError(
            f"this plot shows draws of the signal, and {type(model).__name__} has none; GASR and BPMF "
            "have."
        )


def spectrum(model: Any, ax: Axes | None = None) -> Axes:
    """Singular values of the low-rank part, and the level at which noise would hide them.

    Dots are posterior means, bars hold 90% of the kept draws. The factors that count for the rank
    are dark. Those far below the level are marked at the lower edge.

    Parameters
    ----------
    model : fitted GASR or BPMF
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(data)
    >>> fr.plot.spectrum(model).get_title(loc="left")
    '2 factors stand above the noise'
    """
    _check_draws(model)
    ax = axes_or_new(ax)
    means = model.singular_values_
    draws = model.posterior_.units.scale * model._recorder.spectra.reshape(-1, means.size)
    level = detection_level(
        model.posterior_.shape, model.observations_.n_entries, model.noise_variance_
    )
    floor = _floor(means, level)
    order = np.arange(1, means.size + 1)
    shown, found = means > floor, order <= model.rank_
    low, high = np.maximum(np.quantile(draws, (0.05, 0.95), axis=0), floor)
    if len(draws) > 1:
        for which, colour in ((shown & found, INK), (shown & ~found, MUTED)):
            ax.vlines(order[which], low[which], high[which], color=colour, linewidth=1.6)
    ax.plot(order[found & shown], means[found & shown], "o", color=INK, label="counted")
    ax.plot(order[~found & shown], means[~found & shown], "o", color=MUTED, label="not counted")
    _mark_the_rest(ax, order[~shown], floor)
    if level > 0:
        ax.axhline(level, **REFERENCE, zorder=0, label="detection level")
        ax.annotate(
            "below this level noise hides a factor", (1.0, level), color=ACCENT,
            xycoords=("axes fraction", "data"), xytext=(0, 3), textcoords="offset points",
            ha="right", va="bottom", fontsize="small",
        )  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylim(floor, 2 * max(level, float(high.max(initial=floor))))
    ax.set_xlim(0.3, means.size + 0.7)
    count_axis(ax)
    in_digits(ax)
    plain(ax, _rank_in_words(model.rank_), "factor", f"singular value, {UNITS}")
    return ax


def _floor(means: np.ndarray, level: float) -> float:
    """The lowest singular value to show: there is always one, also without noise or signal."""
    largest = float(means.max(initial=0.0))
    if level > 0:
        return _FLOOR * level
    return 1e-6 * largest if largest > 0 else 1e-6


def _mark_the_rest(ax: Axes, order: np.ndarray, floor: float) -> None:
    """Marks at the lower edge for factors that are below it."""
    if order.size == 0:
        return
    ax.plot(order, np.full(order.size, floor), "v", color=FAINT, clip_on=False, label="shrunk away")
    ax.annotate(
        "shrunk away: the data do not need them", (1.0, 0.0), xycoords="axes fraction", color=MUTED,
        xytext=(0, 7), textcoords="offset points", ha="right", va="bottom", fontsize="small",
    )  # fmt: skip


def _rank_in_words(rank: int) -> str:
    if rank == 0:
        return "No factor stands above the noise"
    return f"{counted(rank, 'factor')} {'stands' if rank == 1 else 'stand'} above the noise"


def trace(model: Any, ax: Axes | None = None) -> Axes:
    """Residual standard deviation at every sweep: level and quiet once a chain has settled.

    There is a line for each chain. The burn-in, which is not kept, is shaded.

    Parameters
    ----------
    model : fitted GASR or BPMF
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    _check_draws(model)
    ax = axes_or_new(ax)
    residual = np.sqrt(model.history_["residual_variance"])
    n_chains, n_sweeps = residual.shape
    sweeps = np.arange(1, n_sweeps + 1)
    burn_in = n_sweeps - model._recorder.n_recorded
    if burn_in > 0:
        ax.axvspan(0.5, burn_in + 0.5, color=FAINT, alpha=0.35, linewidth=0, label="burn-in")
        ax.annotate(
            "burn-in, not kept", (0.5, 1.0), xycoords=("data", "axes fraction"), color=MUTED,
            xytext=(5, -5), textcoords="offset points", va="top", fontsize="small",
        )  # fmt: skip
    mark = "." if n_sweeps == 1 else ""  # a line needs two
    for chain, values in enumerate(residual):
        shade = 1.0 - 0.6 * chain / n_chains
        ax.plot(sweeps, values, marker=mark, color=INK, alpha=shade, linewidth=1.0,
                label=f"chain {chain + 1}")  # fmt: skip
    noise = math.sqrt(model.noise_variance_)
    line = ax.axhline(noise, **REFERENCE, label=f"noise level {noise:.3g}")
    ax.legend(handles=[line], loc="upper right", frameon=False, fontsize="small", labelcolor=ACCENT)
    ax.set_xlim(0.5, n_sweeps + 0.5)
    ax.set_ylim(_trace_limits(residual, noise))
    count_axis(ax)
    title = f"Residuals over {counted(n_sweeps, 'sweep')} of {counted(n_chains, 'chain')}"
    plain(ax, title, "sweep", f"residual standard deviation,\n{UNITS}")
    return ax


def _trace_limits(residual: np.ndarray, noise: float) -> tuple[float, float]:
    """Room for all sweeps, and for the movement of a chain that has settled not to fill the plot."""
    low, high = min(float(residual.min()), noise), max(float(residual.max()), noise)
    room = max(0.15 * (high - low), 0.02 * high, 1e-12)
    return max(low - room, 0.0), high + room


def predicted(model: Any, test: Any, ax: Axes | None = None, *, level: float = 0.9) -> Axes:
    """Entries that the model has not seen, against its predictions of them.

    On the diagonal the prediction is right. Some entries, chosen at random, have the interval for a
    new observation drawn behind them; those outside their interval are in another colour. Very many
    entries are shown as a density, without intervals.

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
    test = Observations.of(test)
    values, means = test.values, model.predict(test.rows, test.columns)
    # Intervals cost far more than means: some entries tell the coverage of all.
    some = np.random.default_rng(0).permutation(len(values))[:_MOST_POINTS]
    low, high = model.predict_interval(
        test.rows[some], test.columns[some], level, kind="observation"
    )
    inside = (low <= values[some]) & (values[some] <= high)

    ends = ends_of(values, means)
    ax.axline((ends[0], ends[0]), slope=1, color=MUTED, linewidth=1.0, zorder=2)
    if len(values) > _MOST_POINTS:
        ax.hexbin(means, values, gridsize=50, extent=(*ends, *ends), cmap=density_colours(),
                  bins="log", mincnt=1, linewidths=0.1, zorder=1)  # fmt: skip
    else:
        ax.scatter(means, values, s=12, color=INK, alpha=0.25, linewidths=0, zorder=1)
        bars = slice(_BARS)
        _draw_intervals(ax, means[some[bars]], values[some[bars]], low[bars], high[bars], level)
        ends = ends_of(ends, low[bars], high[bars], room=0.0)
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    title = (
        f"{counted(len(values), 'held-out value')}, {100 * inside.mean():.0f}% within their "
        f"{100 * level:g}% intervals"
    )
    plain(ax, title, f"predicted value, {UNITS}", f"held-out value, {UNITS}")
    return ax


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


def path(model: Any, ax: Axes | None = None) -> Axes:
    """Errors along the path of penalties, with the one that was chosen.

    Parameters
    ----------
    model : fitted SoftImpute, SoftImputeALS, HASI, RelaxedSpectral, M3F or IPM3F
        Its penalty must have been chosen: a given one has no path.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.5, missing=0.3, random_state=0)
    >>> path(fr.SoftImpute(random_state=0, progress=False).fit(data)).get_xlabel()
    "penalty, in the table's units"
    """
    if not model.path_:
        raise InputError('there is no path: the penalty was given. Fit with penalty="auto".')
    ax = axes_or_new(ax)
    penalties = sorted({point.penalty for point in model.path_})
    best = [
        min((p for p in model.path_ if p.penalty == penalty), key=lambda p: p.validation_error)
        for penalty in penalties
    ]
    ax.plot(penalties, [p.validation_error for p in best], "o-", color=INK, ms=4, label="held out")
    ax.plot(penalties, [p.training_error for p in best], "o-", color=MUTED, ms=4, label="fitted")
    chosen = min(best, key=lambda p: p.validation_error)
    ax.axvline(chosen.penalty, **REFERENCE)
    ax.set_xscale("log")
    ax.set_xticks(penalties[::2], [f"{penalty:.3g}" for penalty in penalties[::2]])
    ax.set_xticks([], minor=True)
    ax.legend(frameon=False)
    title = f"penalty {chosen.penalty:.3g} predicts best, with {counted(chosen.rank, 'factor')}"
    # The penalty of a margin has no unit.
    penalty = "penalty" if hasattr(model, "levels_") else f"penalty, {UNITS}"
    plain(ax, title, penalty, f"error of the entries, {UNITS}")
    return ax
