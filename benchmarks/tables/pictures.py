"""The pictures of docs/tables.md."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from python_methods import BASELINE, GASR_SETTINGS, OURS
from scipy import stats
from summary import SHARE, at_share, ratios, reported

from fillrank.report.style import FAINT, INK, MUTED, REFERENCE, finish_axes, use_decimal_ticks

COLOURS = {
    OURS: INK,
    "mice": "#c8553d",
    "IterativeImputer": "#e8a05c",
    "extra trees": "#6a994e",
    "KNN 5": "#7a5195",
    "missMDA": "#4fa3a5",
    "softImpute": "#b08968",
}
LEVEL = 0.9


def save_errors(results, path):
    """The error of every method over that of the column mean, a line for each table."""
    ratio = ratios(at_share(reported(results))).drop(columns=BASELINE)
    figure = Figure(figsize=(8.4, 0.42 * len(ratio) + 1.6), dpi=150, layout="constrained")
    ax = figure.subplots()
    ax.hlines(ratio.index, ratio.min(axis=1), ratio.max(axis=1), color=FAINT, linewidth=2)
    for method in ratio:
        is_ours = method in GASR_SETTINGS
        ax.scatter(
            ratio[method],
            ratio.index,
            s=70 if is_ours else 40,
            color=COLOURS.get(method, MUTED),
            label=method,
            zorder=4 if is_ours else 3,
        )
    ax.axvline(1.0, **REFERENCE)
    _use_log_scale(ax)
    ax.invert_yaxis()
    figure.legend(loc="outside lower center", ncols=len(ratio.columns), frameon=False)
    title = f"Error over that of the column mean, {100 * SHARE:g}% of the cells hidden"
    finish_axes(ax, title, "ratio; less is better", "")
    figure.savefig(path)


def save_coverage(results, path):
    """Coverage of fillrank's intervals over the number of hidden cells, a point for each column."""
    ours = results[results["method"] == OURS]
    inside = ours.assign(inside=ours["coverage"] * ours["n_hidden"])
    columns = inside.groupby(["table", "column"])[["inside", "n_hidden"]].sum()
    if columns.empty:
        print(f"no results of {OURS}: {path.name} is not drawn")
        return
    figure = Figure(figsize=(8.4, 4.4), dpi=150, layout="constrained")
    ax = figure.subplots()
    n = np.unique(np.geomspace(columns["n_hidden"].min(), columns["n_hidden"].max(), 200).round())
    low, high = stats.binom(n, LEVEL).ppf([[0.025], [0.975]]) / n
    ax.fill_between(n, low, high, color=FAINT, linewidth=0)
    ax.scatter(
        columns["n_hidden"], columns["inside"] / columns["n_hidden"], s=16, color=INK, alpha=0.6
    )
    ax.axhline(LEVEL, **REFERENCE)
    _use_log_scale(ax)
    title = f"Coverage of {OURS}'s 90% intervals by column; grey: 95% of columns by chance alone"
    finish_axes(ax, title, "hidden cells of the column, all masks", "share in their intervals")
    figure.savefig(path)


def _use_log_scale(ax):
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    use_decimal_ticks(ax.xaxis)
