"""The pictures of docs/benchmarks.md."""

import numpy as np
from contract import TARGET
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from methods import METHODS, OURS
from results import iteration_ratios, middle, over_rounds, per_iteration

from fillrank.report.style import ACCENT, MUTED, REFERENCE, finish_axes

# Worse than this is shown as a line that comes from above.
_WORST = 0.90
# A letter's width and a line's height, as shares of the axes.
_LETTER, _LINE = 0.0125, 0.042


def save_curves(rounds, path):
    """Test RMSE over the seconds of work: every round a line, the first one's stronger."""
    figure = Figure(figsize=(8.4, 5.0), dpi=150, layout="constrained")
    ax = figure.subplots()
    for name in rounds[0]:
        for number, results in enumerate(rounds):
            points = results[name]["curve"]
            ax.plot(
                [p["seconds"] for p in points],
                [p["test_rmse"] for p in points],
                color=METHODS[name].colour,
                linewidth=2.6 if name == OURS else 1.6,
                alpha=1.0 if number == 0 else 0.3,
                marker="o" if len(points) < 10 else None,
                markersize=3.5,
            )
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    best = min(p["test_rmse"] for r in rounds for each in r.values() for p in each["curve"])
    ax.set_ylim(best - 0.003, _WORST)
    ax.set_xlim(right=4.5 * ax.get_xlim()[1])  # room for names
    ax.axhline(TARGET, **REFERENCE)
    start = ax.get_xlim()[0]
    ax.annotate(f" {TARGET:g}", (start, TARGET + 0.0006), color=ACCENT, fontsize="small")
    finish_axes(ax, "Test RMSE over the time of the fit", "seconds, from its start", "test RMSE")
    _name_lines(ax, rounds[0])
    figure.savefig(path)


def _name_lines(ax, results):
    """Names where the lines end, moved up where one would stand on another."""
    low, high = ax.get_ylim()
    left, right = np.log(ax.get_xlim())
    placed = []
    for name in sorted(results, key=lambda name: results[name]["curve"][-1]["test_rmse"]):
        end = results[name]["curve"][-1]
        x = (np.log(end["seconds"]) - left) / (right - left) + 0.01
        y = (min(end["test_rmse"], high) - low) / (high - low)
        width = _LETTER * len(name)
        for other_x, other_y, other_width in sorted(placed, key=lambda place: place[1]):
            apart = x + width < other_x or other_x + other_width < x
            if not apart and abs(y - other_y) < _LINE:
                y = other_y + _LINE
        placed.append((x, y, width))
        ax.annotate(
            name,
            (x, y),
            xycoords="axes fraction",
            color=METHODS[name].colour,
            fontsize="small",
            fontweight="bold" if name == OURS else "normal",
            va="center",
            path_effects=[withStroke(linewidth=3, foreground="white")],  # over another's line
        )


def save_bars(rounds, path):
    """Milliseconds of one iteration, with the ratio over GASR's, and the spread over the rounds."""
    names = sorted(rounds[0], key=lambda name: middle(over_rounds(rounds, name, per_iteration)))
    times = [over_rounds(rounds, name, per_iteration) for name in names]
    middles = 1e3 * np.array([middle(each) for each in times])
    spread = [
        middles - 1e3 * np.array([min(each.values) for each in times]),
        1e3 * np.array([max(each.values) for each in times]) - middles,
    ]
    figure = Figure(figsize=(8.4, 0.55 * len(names) + 1.2), dpi=150, layout="constrained")
    ax = figure.subplots()
    colours = [METHODS[name].colour for name in names]
    ax.barh(names, middles, color=colours, height=0.62, xerr=spread, ecolor=MUTED)
    for place, name in enumerate(names):
        ratio = middle(iteration_ratios(rounds, name))
        end = middles[place] + spread[1][place] + 0.01 * middles.max()
        ax.annotate(f"{middles[place]:,.0f} ms, {ratio:.1f}x", (end, place), va="center")
    ax.invert_yaxis()
    ax.set_xlim(0, 1.25 * (middles + spread[1]).max())
    finish_axes(ax, "One iteration, and its ratio over a sweep of GASR", "milliseconds", "")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    figure.savefig(path)
