"""Figure 1: (a) factors become orthonormal, (b) the d of a matrix of rank 20, (c) recovered ranks.

The paper's protocol: Z = A B^T with m = n = 10 q, all cells observed, at most 100 factors, 1,000 sweeps
of which the last 200 are averaged. Its noise is "standard Gaussian" and of "a signal to noise ratio of
1", which differ. It was the first: a matrix of q = 10 that comes with the authors' program
(github.com/yang-song/GASR, 2015) has noise of sd 1 and sd(Z) = 3.15. Panel (c) shows both.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import fillrank as fr
from fillrank.errors import InputError
from fillrank.paper.methods import BPMF, GASR, GASR_PUBLISHED, HASI, SOFT_IMPUTE, fit, make
from fillrank.paper.output import COLOURS, new_figure, save, write_csv
from fillrank.paper.study import Experiment, Key, Request, Result, Task
from fillrank.paper.sweeps import Shape, Sweep, rank_by_ratio, shape_in_ball, shape_of, sweeps
from fillrank.posterior.rank import most_probable, rank_probabilities
from fillrank.report.style import (
    ACCENT,
    INK,
    MUTED,
    REFERENCE,
    finish_axes,
    use_decimal_ticks,
    use_integer_ticks,
)
from fillrank.table.observations import Observations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "figure1"
METHODS = (GASR_PUBLISHED, GASR, BPMF, SOFT_IMPUTE, HASI)
NOISES = ("1", "sqrt(q)")
# Seconds for a matrix of true rank 45, on two cores.
_COSTS = {GASR_PUBLISHED: 165.0, GASR: 8.0, BPMF: 13.0, SOFT_IMPUTE: 40.0, HASI: 120.0}


# Values of d below this fraction of the largest are drawn at it: they shrink without bound.
_FLOOR = 1e-6
_MARKS = {
    f"{GASR_PUBLISHED}, paper's rule": (COLOURS[GASR_PUBLISHED], "o", 10.0),
    f"{GASR_PUBLISHED}, counted": (COLOURS[GASR_PUBLISHED], "x", 6.0),
    GASR: (COLOURS[GASR], "+", 9.0),
    BPMF: (COLOURS[BPMF], "s", 7.0),
    SOFT_IMPUTE: (COLOURS[SOFT_IMPUTE], "v", 6.0),
    HASI: (COLOURS[HASI], "^", 6.0),
}
# Pairs (true rank, recovered rank) by (method, noise).
Ranks = dict[tuple[str, str], list[tuple[int, int]]]


class Size(NamedTuple):
    """The size of the experiment. ``traced`` is the true rank of the matrix of (a) and (b).

    Field names are settings in results files.
    """

    ranks: tuple[int, ...]
    traced: int
    max_rank: int
    published_sweeps: int
    published_kept: int
    sweeps: int
    max_iterations: int


FULL = Size(tuple(range(5, 50, 5)), 20, 100, 1000, 200, 200, 100)
QUICK = Size((3, 6), 6, 12, 150, 50, 60, 10)


def experiment(request: Request) -> Experiment:
    """Return the experiment: all methods on all true ranks and both noise levels."""
    if request.data is not None:
        raise InputError("figure1 runs on generated matrices: omit --data.")
    size = QUICK if request.quick else FULL
    tasks = [
        Task({"method": method, "rank": q, "noise": noise, "seed": 0}, _cost(method, q, size))
        for q in size.ranks
        for noise in NOISES
        for method in METHODS
    ]
    return Experiment(
        NAME,
        {"quick": request.quick, **size._asdict()},
        tasks,
        partial(run, size=size, n_threads=request.n_threads),
        partial(present, size=size),
        ("figure1.png", "figure1.svg", "figure1-ranks.csv", "figure1-traces.csv"),
    )


def _cost(method: str, q: int, size: Size) -> float:
    return _COSTS[method] * (q / 45) ** 2 * (size.max_rank / 100) + 0.1


def run(key: Key, size: Size, n_threads: int | None) -> dict[str, Any]:
    """Return the rank that a method finds; for GASR as published also d, and the traces for (a)."""
    q, method = key["rank"], key["method"]
    noise = 1.0 if key["noise"] == "1" else math.sqrt(q)
    data, _ = fr.synthetic(10 * q, 10 * q, q, noise, 0.0, random_state=key["seed"])
    settings = {"max_rank": size.max_rank, "random_state": key["seed"], "n_threads": n_threads}
    if method == GASR_PUBLISHED:
        model = make(method, n_sweeps=size.published_sweeps, **settings)
        return _summarise(sweeps(model, data), data, size, traced=q if q == size.traced else None)
    # The matrices have no effects. Samplers shrink theirs to zero; solvers fit none.
    if method in (GASR, BPMF):
        settings |= {"n_sweeps": size.sweeps}
    else:
        settings |= {"effects": None, "max_iterations": size.max_iterations}
    model = make(method, **settings)
    fit(model, data)
    return {"rank": model.rank_}


def _summarise(
    chain: Iterable[Sweep], data: Observations, size: Size, traced: int | None
) -> dict[str, Any]:
    """Return rank and d from the last sweeps; with ``traced``, factor shapes after every sweep."""
    traces: dict[str, list[float]] = defaultdict(list)
    spectra, scales, noise = [], [], []
    for sweep in chain:
        if traced is not None:
            _add_shapes(traces, sweep.state, traced)
        if sweep.number > size.published_sweeps - size.published_kept:
            spectra.append(sweep.spectrum)
            scales.append(sweep.units.shared_scale * sweep.state.d)
            noise.append(sweep.draw.noise.average())
    level_ranks = rank_probabilities(
        np.array([spectra]), data.shape, len(data), float(np.mean(noise))
    )
    d = np.mean(scales, axis=0)
    return {
        "rank": most_probable(level_ranks),
        "rank_by_ratio": rank_by_ratio(d),
        "d": d.tolist(),
        "last_d": scales[-1].tolist(),
        "traces": dict(traces),
    }


def _add_shapes(traces: dict[str, list[float]], state: Any, q: int) -> None:
    """Add the shapes of U and V: of all columns, and of the q with the largest d."""
    largest = np.argsort(state.d)[-q:]
    for side, factors in (("U", state.left), ("V", state.right)):
        vectors = factors[:, : state.d.size]
        for which, some in (("all", vectors), ("largest", vectors[:, largest])):
            norm, inner = shape_of(some)
            traces[f"{side}, {which}, norm"].append(norm)
            traces[f"{side}, {which}, inner"].append(inner)


def present(results: Sequence[Result], folder: Path, size: Size) -> list[str]:
    """Write the figure and its numbers; return how often each method found the rank."""
    example = next(r for r in results if r.key["rank"] == size.traced and r.numbers.get("traces"))
    ranks = ranks_found(results)
    _write_figure(folder, example, ranks, size.traced)
    write_csv(
        folder / "figure1-ranks.csv",
        ("method", "noise", "true rank", "recovered rank"),
        [
            (method, noise, q, found)
            for (method, noise), pairs in ranks.items()
            for q, found in pairs
        ],
    )
    traces = example.numbers["traces"]
    write_csv(
        folder / "figure1-traces.csv",
        ("sweep", *traces),
        [(number, *row) for number, row in enumerate(zip(*traces.values(), strict=True), start=1)],
    )
    return [
        f"{method}, noise {noise}: {sum(q == found for q, found in pairs)} of {len(pairs)} ranks exact"
        for (method, noise), pairs in ranks.items()
    ]


def ranks_found(results: Sequence[Result]) -> Ranks:
    """Return (true, recovered) ranks by method and noise.

    GASR as published has two: by the paper's rule, and counted above the detection level.
    """
    found: Ranks = defaultdict(list)
    for key, numbers, _ in results:
        method, noise, q = key["method"], key["noise"], key["rank"]
        if "rank_by_ratio" in numbers:
            found[f"{method}, paper's rule", noise].append((q, numbers["rank_by_ratio"]))
            method = f"{method}, counted"
        found[method, noise].append((q, numbers["rank"]))
    return dict(found)


def _write_figure(folder: Path, example: Result, ranks: Ranks, q: int) -> None:
    """Draw all panels and save them."""
    figure = new_figure(12.5, 7.4)
    panels = figure.subplot_mosaic([["norm", "inner", "d"], ["rank 1", "rank sqrt(q)", "legend"]])
    traces = example.numbers["traces"]
    prior = shape_in_ball(10 * q)
    _draw_shapes(panels["norm"], traces, "norm", prior)
    _draw_shapes(panels["inner"], traces, "inner", prior)
    panels["norm"].set_ylim(0.9, 1.005)
    panels["norm"].legend(frameon=False, fontsize="small", loc="lower left")
    panels["inner"].set_ylim(bottom=0.0)
    _draw_d(panels["d"], example.numbers, q)
    top = max(found for pairs in ranks.values() for _, found in pairs)
    for noise in ("1", "sqrt(q)"):
        _draw_ranks(panels[f"rank {noise}"], ranks, noise, top)
    _draw_legend(panels["legend"], panels["rank 1"])
    save(figure, folder, "figure1")


def _draw_shapes(ax: Axes, traces: Mapping[str, Sequence[float]], what: str, prior: Shape) -> None:
    """Draw means over the columns after every sweep, and their expectation under the prior."""
    for which, label, width in (
        ("all", "all factors", 1.6),
        ("largest", "those of the largest d", 0.9),
    ):
        for side, colour in (("U", INK), ("V", COLOURS[GASR])):
            values = traces[f"{side}, {which}, {what}"]
            style = "-" if which == "all" else ":"
            ax.plot(
                np.arange(1, len(values) + 1), values, style, color=colour, linewidth=width,
                label=f"{side}, {label}",
            )  # fmt: skip
    ax.axhline(getattr(prior, what), **REFERENCE, label="expected without data")
    ax.set_xscale("log")
    use_decimal_ticks(ax.xaxis)
    if what == "norm":
        finish_axes(ax, "(a) norms of the columns of U and V", "sweep", "mean norm")
    else:
        finish_axes(
            ax, "(a) inner products of these columns", "sweep", "mean size of the inner product"
        )


def _draw_d(ax: Axes, numbers: Mapping[str, Any], q: int) -> None:
    """Draw the sorted d, averaged and of one draw, with the cut of the paper's rule."""
    d, last = (np.sort(numbers[name]) for name in ("d", "last_d"))
    order, floor = np.arange(1, d.size + 1), _FLOOR * d[-1]
    cut = d.size - numbers["rank_by_ratio"]
    ax.plot(order, np.maximum(last, floor), ".", color=MUTED, ms=4, label="one draw")
    ax.plot(order, np.maximum(d, floor), "o", color=INK, ms=4, label="average of draws")
    ax.axvline(cut + 0.5, **REFERENCE)
    ax.annotate(
        f"the rule cuts here:\nrank {numbers['rank_by_ratio']}, true rank {q}", (cut + 0.5, 0.92),
        xycoords=("data", "axes fraction"), xytext=(-6, 0), textcoords="offset points",
        ha="right", va="top", color=ACCENT, fontsize="small",
    )  # fmt: skip
    ax.set_yscale("log")
    use_decimal_ticks(ax.yaxis)
    use_integer_ticks(ax.xaxis)
    ax.legend(frameon=False, fontsize="small", loc="lower center")
    finish_axes(
        ax, f"(b) d of a {10 * q} x {10 * q} matrix of rank {q}", "factor, in order of d", "d"
    )


def _draw_ranks(ax: Axes, ranks: Ranks, noise: str, top: int) -> None:
    """Draw recovered against true ranks."""
    truths = sorted({q for pairs in ranks.values() for q, _ in pairs})
    ax.plot(truths, truths, **REFERENCE, label="true rank")
    for method, (colour, mark, size) in _MARKS.items():
        if pairs := ranks.get((method, noise)):
            # Hollow marks of different sizes stay visible where methods agree.
            ax.plot(
                *zip(*pairs, strict=True), mark, color=colour, ms=size, mfc="none", label=method
            )
    ax.set_ylim(0, 1.05 * max(top, truths[-1]))
    ax.set_xticks(truths)
    level = "noise of sd 1, as in the paper" if noise == "1" else "noise of sd sqrt(q)"
    finish_axes(ax, f"(c) recovered rank, {level}", "true rank", "recovered rank")


def _draw_legend(ax: Axes, source: Axes) -> None:
    """Draw the legend of (c) in a panel without axes."""
    ax.axis("off")
    handles, labels = source.get_legend_handles_labels()
    ax.legend(handles, labels, loc="center left", frameon=False, title="in (c)", alignment="left")
