"""Figure 1: (a) factors become orthonormal, (b) the d of a matrix of rank 20, (c) recovered ranks.

The paper's protocol: Z = A B^T with m = n = 10 q, all cells observed, at most 100 factors, 1,000 sweeps
of which the last 200 are averaged. Its noise is "standard Gaussian" and of "a signal to noise ratio of
1", which are two things. It was the first: a matrix of q = 10 that comes with the authors' program
(github.com/yang-song/GASR, 2015) has noise of sd 1 and sd(Z) = 3.15. (c) has both all the same.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fillrank as fr
from fillrank.errors import InputError
from fillrank.paper import figure1_plots
from fillrank.paper.factors import rank_by_ratio, shape_of
from fillrank.paper.methods import BPMF, GASR, GASR_PUBLISHED, HASI, SOFT_IMPUTE, fit, make
from fillrank.paper.study import Experiment, Key, Request, Result, Task
from fillrank.paper.sweeps import Sweep, sweeps
from fillrank.paper.tables import write_csv
from fillrank.posterior.rank import most_probable, rank_probabilities
from fillrank.table.observations import Observations

NAME = "figure1"
METHODS = (GASR_PUBLISHED, GASR, BPMF, SOFT_IMPUTE, HASI)
NOISES = ("1", "sqrt(q)")
# Seconds for a matrix of true rank 45, on two cores.
_COSTS = {GASR_PUBLISHED: 165.0, GASR: 8.0, BPMF: 13.0, SOFT_IMPUTE: 40.0, HASI: 120.0}


class Size(NamedTuple):
    """How large the experiment is. ``traced`` is the true rank of the matrix of (a) and (b)."""

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
    """All methods on all true ranks and both readings of the noise."""
    if request.data is not None:
        raise InputError("figure1 runs on generated matrices: leave out --data.")
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
    """The rank that a method finds in one matrix; of GASR as published also d, and traces for (a)."""
    q, method = key["rank"], key["method"]
    noise = 1.0 if key["noise"] == "1" else math.sqrt(q)
    data, _ = fr.synthetic(10 * q, 10 * q, q, noise, 0.0, random_state=key["seed"])
    settings = {"max_rank": size.max_rank, "random_state": key["seed"], "n_threads": n_threads}
    if method == GASR_PUBLISHED:
        model = make(method, n_sweeps=size.published_sweeps, **settings)
        return _watch(sweeps(model, data), data, size, traced=q if q == size.traced else None)
    # The matrices have no effects; the samplers shrink those they allow for, solvers are told.
    if method in (GASR, BPMF):
        settings |= {"n_sweeps": size.sweeps}
    else:
        settings |= {"effects": None, "max_iterations": size.max_iterations}
    model = make(method, **settings)
    fit(model, data)
    return {"rank": model.rank_}


def _watch(
    chain: Iterable[Sweep], data: Observations, size: Size, traced: int | None
) -> dict[str, Any]:
    """Ranks and d from the last sweeps; with ``traced``, shapes of factors after every sweep."""
    traces: dict[str, list[float]] = defaultdict(list)
    spectra, scales, noise = [], [], []
    for sweep in chain:
        if traced is not None:
            _trace(traces, sweep.state, traced)
        if sweep.number > size.published_sweeps - size.published_kept:
            spectra.append(sweep.spectrum)
            scales.append(sweep.units.scale * sweep.state.d)
            noise.append(sweep.draw.noise_variance)
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


def _trace(traces: dict[str, list[float]], state: Any, q: int) -> None:
    """Add the shapes of U and V: of all columns, and of the q with the largest d."""
    largest = np.argsort(state.d)[-q:]
    for side, factors in (("U", state.left), ("V", state.right)):
        vectors = factors[:, : state.d.size]
        for which, some in (("all", vectors), ("largest", vectors[:, largest])):
            norm, inner = shape_of(some)
            traces[f"{side}, {which}, norm"].append(norm)
            traces[f"{side}, {which}, inner"].append(inner)


def present(results: Sequence[Result], folder: Path, size: Size) -> list[str]:
    """Write the figure and its numbers; say how often each method found the rank."""
    example = next(r for r in results if r.key["rank"] == size.traced and r.numbers.get("traces"))
    ranks = ranks_found(results)
    figure1_plots.write(folder, example, ranks, size.traced)
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


Ranks = dict[tuple[str, str], list[tuple[int, int]]]


def ranks_found(results: Sequence[Result]) -> Ranks:
    """(True, recovered) ranks by method and noise; GASR as published by the paper's rule and ours."""
    found: Ranks = defaultdict(list)
    for key, numbers, _ in results:
        method, noise, q = key["method"], key["noise"], key["rank"]
        if "rank_by_ratio" in numbers:
            found[f"{method}, paper's rule", noise].append((q, numbers["rank_by_ratio"]))
            method = f"{method}, counted"
        found[method, noise].append((q, numbers["rank"]))
    return dict(found)
