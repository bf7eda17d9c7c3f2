"""Figure 2: NMAE of the samplers after every sweep, on ratings.

Predictions are averages over all sweeps so far, the first included, as in the paper, which stopped
after 100. Here the chains continue, and the number of factors is shown below the errors. The other
methods have no sweeps: their results come from Table 2, if it has been computed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.kernels.predictions import pair_values
from fillrank.paper import table2
from fillrank.paper.methods import BPMF, BPMF_PUBLISHED, GASR, GASR_PUBLISHED, SAMPLERS, make
from fillrank.paper.output import COLOURS, new_figure, save, write_csv
from fillrank.paper.published import RANK_ON_RATINGS
from fillrank.paper.ratings import MOVIELENS, Source, Split, sources
from fillrank.paper.study import Experiment, Key, Request, Result, Task, read_results
from fillrank.paper.sweeps import Sweep, rank_by_ratio, sweeps
from fillrank.posterior.metrics import nmae, rmse
from fillrank.posterior.rank import rank_probabilities
from fillrank.report.style import ACCENT, FAINT, MUTED, REFERENCE, finish_axes, use_decimal_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "figure2"
# Seconds for 500 sweeps of a million ratings, on two cores.
_COSTS = {GASR_PUBLISHED: 115.0, GASR: 25.0, BPMF_PUBLISHED: 60.0, BPMF: 35.0}
# The number of sweeps in the paper.
_PAPER_SWEEPS = 100


class Size(NamedTuple):
    """The size of the experiment. Field names are settings in results files."""

    max_rank: int
    n_sweeps: int


FULL = Size(30, 500)
QUICK = Size(5, 120)


def experiment(request: Request) -> Experiment:
    """Return the experiment: all samplers on the first split of each available set of ratings."""
    size = QUICK if request.quick else FULL
    ratings = sources(request.data, request.quick, 1)
    fingerprints = {name: source.fingerprint() for name, source in ratings.items()}
    tasks = [
        Task(
            {"data": name, "method": method},
            0.1 + _COSTS[method] * fingerprints[name][2] / 1e6 * size.n_sweeps / 500,
        )
        for name in ratings
        for method in SAMPLERS
    ]
    return Experiment(
        NAME,
        {"quick": request.quick, **size._asdict(), "data": fingerprints},
        tasks,
        partial(run, size=size, ratings=ratings, n_threads=request.n_threads),
        partial(present, request=request),
        ("figure2.png", "figure2.svg", "figure2.csv"),
    )


def run(
    key: Key, size: Size, ratings: Mapping[str, Source], n_threads: int | None
) -> dict[str, Any]:
    """Return errors and ranks of one sampler after every sweep."""
    split = ratings[key["data"]].split(0)
    model = make(
        key["method"],
        max_rank=size.max_rank,
        n_sweeps=size.n_sweeps,
        random_state=0,
        n_threads=n_threads,
    )
    averages = _RunningAverages(split)
    for sweep in sweeps(model, split.train):
        averages.add(sweep)
    return {"traces": dict(averages.traces)}


class _RunningAverages:
    """Running averages of predictions and d, with their errors and ranks."""

    def __init__(self, split: Split):
        self._train, self._test = split
        scale = self._train.value_range()
        if scale is None:
            raise InputError("NMAE needs ratings on equally spaced levels.")
        self._scale = scale
        self._sum = np.zeros(len(self._test))
        self._one = np.empty(len(self._test))
        self._d = np.zeros(1)
        self.traces: dict[str, list[float]] = defaultdict(list)

    def add(self, sweep: Sweep) -> None:
        """Add a sweep."""
        cells = self._test.row_index, self._test.column_index
        pair_values(sweep.draw.left, sweep.draw.right, *cells, self._one)
        self._sum += self._one
        predicted = sweep.units.restore(self._sum / sweep.number, self._test.column_index)
        self.traces["nmae"].append(nmae(self._test.values, predicted, self._scale))
        self.traces["rmse"].append(rmse(self._test.values, predicted))
        self.traces["rank"].append(self._rank(sweep))
        if hasattr(sweep.state, "d"):
            self._d = self._d + sweep.state.d
            self.traces["rank_by_ratio"].append(rank_by_ratio(self._d))

    def _rank(self, sweep: Sweep) -> int:
        """Return how many factors of this draw are above the detection level."""
        (rank,) = rank_probabilities(
            sweep.spectrum[None, None],
            self._train.shape,
            len(self._train),
            sweep.draw.noise.average(),
        )
        return rank


def present(results: Sequence[Result], folder: Path, request: Request) -> list[str]:
    """Write the figure, with lines for the other methods if Table 2 has been computed."""
    table2_folder = request.output / table2.NAME
    others = read_results(table2_folder, table2.experiment(request))
    lines = {
        (result.key["data"], result.key["method"]): result.numbers["nmae"]
        for result in others
        if result.key["split"] == 0 and result.key["method"] not in SAMPLERS
    }
    _write_figure(folder, results, lines)
    write_csv(
        folder / "figure2.csv",
        ("data", "method", "sweep", "nmae", "rmse", "rank", "rank by ratio"),
        [row for result in results for row in _rows(result)],
    )
    if lines:
        return []
    return [
        "The methods without sweeps are missing from the figure. To add them, run table2 with the same "
        f"--output first: {table2_folder} has no matching results."
    ]


def _rows(result: Result) -> list[tuple[Any, ...]]:
    traces = result.numbers["traces"]
    n = len(traces["nmae"])
    by_ratio = traces.get("rank_by_ratio", [None] * n)
    key = result.key["data"], result.key["method"]
    columns = range(1, n + 1), traces["nmae"], traces["rmse"], traces["rank"], by_ratio
    return [(*key, *row) for row in zip(*columns, strict=True)]


def _write_figure(
    folder: Path, results: Sequence[Result], lines: Mapping[tuple[str, str], float]
) -> None:
    """Draw errors above and ranks below, with a column for each set of ratings, and save them."""
    names = list(dict.fromkeys(result.key["data"] for result in results))
    figure = new_figure(6.0 * len(names) + 2.0, 7.2)
    axes = figure.subplots(2, len(names), squeeze=False, height_ratios=[2, 1], sharex="col")
    for (above, below), name in zip(axes.T, names, strict=True):
        of_set = [result for result in results if result.key["data"] == name]
        others = {method: value for (data, method), value in lines.items() if data == name}
        _draw_errors(above, name, of_set, others)
        _draw_ranks(below, name, of_set)
    # One legend for all panels: a method may be in only one of them.
    labels = {line.get_label(): line for ax in axes[0] for line in ax.get_lines()}
    shown = {label: line for label, line in labels.items() if not str(label).startswith("_")}
    figure.legend(shown.values(), shown.keys(), loc="outside right upper", frameon=False)
    save(figure, folder, "figure2")


def _draw_curve(ax: Axes, result: Result, what: str) -> None:
    method, values = result.key["method"], result.numbers["traces"][what]
    shape = "steps-mid" if what == "rank" else "default"
    ax.plot(
        np.arange(1, len(values) + 1), values, color=COLOURS[method], label=method, lw=1.5,
        drawstyle=shape,
    )  # fmt: skip


def _draw_errors(
    ax: Axes, name: str, results: Sequence[Result], others: Mapping[str, float]
) -> None:
    for result in results:
        _draw_curve(ax, result, "nmae")
    for method, value in others.items():
        ax.axhline(value, color=COLOURS[method], lw=1.4, ls=(0, (1, 1.5)), label=method)
    _mark_paper_sweeps(ax)
    ax.annotate(
        "the paper stops here", (_PAPER_SWEEPS, 1.0), xycoords=("data", "axes fraction"),
        xytext=(-5, -2), textcoords="offset points", ha="right", va="top", color=MUTED,
        fontsize="small",
    )  # fmt: skip
    ends = [result.numbers["traces"]["nmae"][-1] for result in results] + list(others.values())
    first = max(result.numbers["traces"]["nmae"][0] for result in results)
    low, high = min(ends), max(*ends, min(first, 1.35 * min(ends)))
    ax.set_ylim(low - 0.05 * (high - low), high + 0.1 * (high - low))
    finish_axes(ax, f"{name}: error of the average of all sweeps so far", "", "NMAE")


def _draw_ranks(ax: Axes, name: str, results: Sequence[Result]) -> None:
    for result in results:
        _draw_curve(ax, result, "rank")
    if name == MOVIELENS:
        ax.axhline(RANK_ON_RATINGS, **REFERENCE)
        ax.annotate(
            "the paper's rank", (0.02, RANK_ON_RATINGS), xycoords=("axes fraction", "data"),
            xytext=(0, 3), textcoords="offset points", ha="left", va="bottom", color=ACCENT,
            fontsize="small",
        )  # fmt: skip
    _mark_paper_sweeps(ax)
    ax.set_ylim(bottom=0)
    ax.set_xscale("log")
    use_decimal_ticks(ax.xaxis)
    finish_axes(ax, "factors above the noise, of each draw", "sweep", "rank")


def _mark_paper_sweeps(ax: Axes) -> None:
    ax.axvline(_PAPER_SWEEPS, color=FAINT, lw=1.2, zorder=0)
