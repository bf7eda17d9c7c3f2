"""Plots of a fit: singular values, rank, traces of a sampler, and the path of a solver."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fillrank.errors import InputError, NotSupportedError
from fillrank.report.columns import units_of_table
from fillrank.report.style import (
    ACCENT,
    FAINT,
    INK,
    MUTED,
    QUIET,
    REFERENCE,
    UNITS,
    count_noun,
    finish_axes,
    format_percent,
    get_axes,
    use_decimal_ticks,
    use_integer_ticks,
)
from fillrank.solvers.rank import detection_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Factors that the data do not need shrink without bound. The plot ends at this fraction of the level.
_FLOOR = 1e-2


def _not_supported(model: Any, what: str, methods: str) -> NotSupportedError:
    if "residual_variance" in model.history_:
        why = "a model of folded-in rows or columns has none; use the model that it came from"
    else:
        why = f"{model.completion_.method} has none; {methods} have"
    return NotSupportedError(f"this plot shows {what}: {why}.")


def spectrum(model: Any, ax: Axes | None = None) -> Axes:
    """Plot the singular values of the low-rank part, and the level below which noise hides a factor.

    Dots are posterior means; bars cover 90% of the stored draws. Factors that count towards the rank
    are dark. Factors far below the level are marked at the lower edge. Methods without draws have only
    dots.

    Parameters
    ----------
    model : fitted estimator, other than IPM3F
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
    '2 factors are stronger than the noise'
    """
    if (
        "residual_variance" not in model.history_
        and model.completion_.record.singular_values is not None
    ):
        return _solver_spectrum(model, get_axes(ax))
    if model.completion_.record.traces is None or model.completion_.record.singular_values is None:
        raise _not_supported(model, "singular values", "all methods except IPM3F")
    ax = get_axes(ax)
    means = model.singular_values_
    # Of the latent numbers, if the table has other values than numbers.
    signal = model.posterior_.signal.low_rank
    draws = signal.units.shared_scale * model.traces_.spectra.reshape(-1, means.size)
    level = detection_level(signal.shape, model.traces_.n_entries, model.noise_variance_)
    floor = _floor(means, level)
    order = np.arange(1, means.size + 1)
    shown, found = means > floor, order <= model.rank_
    low, high = np.maximum(np.quantile(draws, (0.05, 0.95), axis=0), floor)
    if len(draws) > 1:
        for which, colour in ((shown & found, INK), (shown & ~found, MUTED)):
            ax.vlines(order[which], low[which], high[which], color=colour, linewidth=1.6)
    ax.plot(order[found & shown], means[found & shown], "o", color=INK, label="counted")
    ax.plot(order[~found & shown], means[~found & shown], "o", color=MUTED, label="not counted")
    _mark_shrunk(ax, order[~shown], floor)
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
    use_integer_ticks(ax.xaxis)
    use_decimal_ticks(ax.yaxis)
    finish_axes(ax, _rank_title(model.rank_), "factor", f"singular value, {units_of_table(model)}")
    return ax


def _solver_spectrum(model: Any, ax: Axes) -> Axes:
    """Draw the singular values of the solution of a solver."""
    values = model.singular_values_
    order = np.arange(1, values.size + 1)
    is_counted = order <= model.rank_
    ax.vlines(order, 0.0, values, color=FAINT, linewidth=1.6)
    ax.plot(order[is_counted], values[is_counted], "o", color=INK, label="counted")
    ax.plot(order[~is_counted], values[~is_counted], "o", color=MUTED, label="not counted")
    ax.set_ylim(bottom=0.0)
    ax.set_xlim(0.3, max(values.size, 1) + 0.7)
    use_integer_ticks(ax.xaxis)
    units = "of the scores" if model.posterior_.levels is not None else units_of_table(model)
    title = f"{count_noun(model.rank_, 'factor')} {'is' if model.rank_ == 1 else 'are'} used"
    finish_axes(ax, title, "factor", f"singular value, {units}")
    return ax


def _floor(means: np.ndarray, level: float) -> float:
    """Return the lowest singular value to show; it is positive, also without noise or signal."""
    largest = float(means.max(initial=0.0))
    if level > 0:
        return _FLOOR * level
    return 1e-6 * largest if largest > 0 else 1e-6


def _mark_shrunk(ax: Axes, order: np.ndarray, floor: float) -> None:
    """Mark factors below the lower edge."""
    if order.size == 0:
        return
    ax.plot(
        order,
        np.full(order.size, floor),
        "v",
        color=FAINT,
        clip_on=False,
        label="shrunk towards zero",
    )
    ax.annotate(
        "shrunk towards zero: the data do not need them", (0.0, 0.0), xycoords="axes fraction",
        color=QUIET, xytext=(5, 7), textcoords="offset points", va="bottom", fontsize="small",
    )  # fmt: skip


def _rank_title(rank: int) -> str:
    if rank == 0:
        return "No factor is stronger than the noise"
    return f"{count_noun(rank, 'factor')} {'is' if rank == 1 else 'are'} stronger than the noise"


def rank(model: Any, ax: Axes | None = None) -> Axes:
    """Plot the share of draws with each number of factors above the detection level.

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
    >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(data)
    >>> fr.plot.rank(model).get_xlabel()
    'number of factors above the noise'
    """
    if model.completion_.record.rank_probabilities is None:
        raise _not_supported(model, "draws of the number of factors", "GASR and BPMF")
    ax = get_axes(ax)
    ranks = np.array(list(model.rank_probabilities_))
    heights = 100 * np.array(list(model.rank_probabilities_.values()))
    colours = [INK if k == model.rank_ else MUTED for k in ranks]
    ax.bar(ranks, heights, width=0.7, color=colours)
    middle, half = (ranks.min() + ranks.max()) / 2, max(np.ptp(ranks) / 2, 2.5)
    ax.set_xlim(max(middle - half, 0) - 0.7, middle + half + 0.7)
    ax.set_ylim(0, 105)
    use_integer_ticks(ax.xaxis)
    share = model.rank_probabilities_[model.rank_]
    title = f"{count_noun(model.rank_, 'factor')} in {format_percent(share)} of the draws"
    finish_axes(ax, title, "number of factors above the noise", "share of draws, %")
    return ax


def trace(model: Any, ax: Axes | None = None) -> Axes:
    """Plot the residual standard deviation at every sweep: stationary once a chain has converged.

    There is a line for each chain. The burn-in, which is discarded, is shaded. For IPM3F the plot shows
    the loss.

    Parameters
    ----------
    model : fitted GASR or BPMF, or IPM3F with ``inference="gibbs"``
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(data)
    >>> fr.plot.trace(model).get_xlabel()
    'sweep'
    """
    if model.completion_.record.traces is None:
        raise _not_supported(
            model, "sweeps of a sampler", 'GASR, BPMF and IPM3F with inference="gibbs"'
        )
    ax = get_axes(ax)
    if "residual_variance" in model.history_:
        traced = np.sqrt(model.history_["residual_variance"])
        noise: float | None = math.sqrt(model.noise_variance_)
        title, label = "Residuals", f"residual standard deviation,\n{units_of_table(model)}"
    else:
        traced, noise = model.history_["hinge_loss"], None
        title, label = "Loss", "mean loss of the entries"
    n_chains, n_sweeps = traced.shape
    _shade_burn_in(ax, min(model.traces_.burn_in, n_sweeps))
    marker = "." if n_sweeps == 1 else ""  # a line needs two points
    for chain, values in enumerate(traced):
        shade = 1.0 - 0.6 * chain / n_chains
        ax.plot(np.arange(1, n_sweeps + 1), values, marker=marker, color=INK, alpha=shade,
                linewidth=1.0, label=f"chain {chain + 1}")  # fmt: skip
    if noise is not None:
        line = ax.axhline(noise, **REFERENCE, label=f"noise level {noise:.3g}")
        ax.legend(handles=[line], loc="upper right", frameon=False, fontsize="small",
                  labelcolor=ACCENT)  # fmt: skip
    ax.set_xlim(0.5, n_sweeps + 0.5)
    ax.set_ylim(_trace_limits(traced, noise))
    use_integer_ticks(ax.xaxis)
    title += f" over {count_noun(n_sweeps, 'sweep')} of {count_noun(n_chains, 'chain')}"
    finish_axes(ax, title, "sweep", label)
    return ax


def _shade_burn_in(ax: Axes, burn_in: int) -> None:
    if burn_in == 0:
        return
    ax.axvspan(0.5, burn_in + 0.5, color=FAINT, alpha=0.35, linewidth=0, label="burn-in")
    ax.annotate(
        "burn-in, discarded", (0.5, 1.0), xycoords=("data", "axes fraction"), color=QUIET,
        xytext=(5, -5), textcoords="offset points", va="top", fontsize="small",
    )  # fmt: skip


def _trace_limits(traced: np.ndarray, noise: float | None) -> tuple[float, float]:
    """Return limits for all sweeps; the margin shows a converged chain as nearly flat."""
    shown = traced if noise is None else np.append(traced, noise)
    low, high = float(shown.min()), float(shown.max())
    margin = max(0.15 * (high - low), 0.02 * high, 1e-12)
    return max(low - margin, 0.0), high + margin


def path(model: Any, ax: Axes | None = None) -> Axes:
    """Plot the errors along the path of penalties, with the chosen penalty.

    Parameters
    ----------
    model : fitted SoftImpute, SoftImputeALS, HASI, RelaxedSpectral, M3F or IPM3F
        Fitted with ``penalty="auto"``: a given penalty has no path.
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
    if model.completion_.record.path is None:
        raise NotSupportedError(
            f"this plot shows penalties: {model.completion_.method} has none; solvers have."
        )
    if not model.path_:
        raise InputError('there is no path: the penalty was given. Fit with penalty="auto".')
    ax = get_axes(ax)
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
    title = f"penalty {chosen.penalty:.3g} predicts best, with {count_noun(chosen.rank, 'factor')}"
    # The penalty of a max-margin method has no unit.
    penalty = "penalty" if model.posterior_.levels is not None else f"penalty, {UNITS}"
    finish_axes(ax, title, penalty, f"error of the entries, {UNITS}")
    return ax
