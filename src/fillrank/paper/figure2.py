"""Figure 2: NMAE of the samplers after every sweep, on ratings.

Predictions are averages over all sweeps so far, the first included, as in the paper, which stopped
after 100. Here the chains run on, and the number of factors is shown with the errors. The other
methods have no sweeps: their results are taken from Table 2, where it has been made.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.kernels.pairs import pair_values
from fillrank.paper import figure2_plots, table2
from fillrank.paper.factors import rank_by_ratio
from fillrank.paper.methods import BPMF, BPMF_PUBLISHED, GASR, GASR_PUBLISHED, SAMPLERS, make
from fillrank.paper.ratings import Source, Split, sources
from fillrank.paper.record import read_results
from fillrank.paper.study import Experiment, Key, Request, Result, Task
from fillrank.paper.sweeps import Sweep, sweeps
from fillrank.paper.tables import write_csv
from fillrank.posterior.metrics import nmae, rmse
from fillrank.posterior.rank import rank_probabilities

NAME = "figure2"
# Seconds for 500 sweeps of a million ratings, on two cores.
_COSTS = {GASR_PUBLISHED: 115.0, GASR: 25.0, BPMF_PUBLISHED: 60.0, BPMF: 35.0}


class Size(NamedTuple):
    """How large the experiment is."""

    max_rank: int
    n_sweeps: int


FULL = Size(30, 500)
QUICK = Size(5, 120)


def experiment(request: Request) -> Experiment:
    """All samplers on the first split of the ratings that there are."""
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
    """Errors and ranks of one sampler after every sweep."""
    split = ratings[key["data"]].split(0)
    model = make(
        key["method"],
        max_rank=size.max_rank,
        n_sweeps=size.n_sweeps,
        random_state=0,
        n_threads=n_threads,
    )
    watched = _Watched(split)
    for sweep in sweeps(model, split.train):
        watched.take(sweep)
    return {"traces": dict(watched.traces)}


class _Watched:
    """Running averages of predictions and d, and what they are worth."""

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

    def take(self, sweep: Sweep) -> None:
        """Add a sweep."""
        place = self._test.row_index, self._test.column_index
        pair_values(sweep.draw.left, sweep.draw.right, *place, self._one)
        self._sum += self._one
        predicted = sweep.units.restore(self._sum / sweep.number)
        self.traces["nmae"].append(nmae(self._test.values, predicted, self._scale))
        self.traces["rmse"].append(rmse(self._test.values, predicted))
        self.traces["rank"].append(self._rank(sweep))
        if hasattr(sweep.state, "d"):
            self._d = self._d + sweep.state.d
            self.traces["rank_by_ratio"].append(rank_by_ratio(self._d))

    def _rank(self, sweep: Sweep) -> int:
        """How many factors of this draw stand above the noise."""
        (rank,) = rank_probabilities(
            sweep.spectrum[None, None],
            self._train.shape,
            len(self._train),
            sweep.draw.noise_variance,
        )
        return rank


def present(results: Sequence[Result], folder: Path, request: Request) -> list[str]:
    """Write the figure, with the other methods' lines if Table 2 is there."""
    beside = request.output / table2.NAME
    others = read_results(beside, table2.experiment(request))
    lines = {
        (result.key["data"], result.key["method"]): result.numbers["nmae"]
        for result in others
        if result.key["split"] == 0 and result.key["method"] not in SAMPLERS
    }
    figure2_plots.write(folder, results, lines)
    write_csv(
        folder / "figure2.csv",
        ("data", "method", "sweep", "nmae", "rmse", "rank", "rank by ratio"),
        [row for result in results for row in _rows(result)],
    )
    if lines:
        return []
    return [
        f"For the methods without sweeps, make table2 with the same --output: {beside} has none."
    ]


def _rows(result: Result) -> list[tuple[Any, ...]]:
    traces = result.numbers["traces"]
    n = len(traces["nmae"])
    by_ratio = traces.get("rank_by_ratio", [None] * n)
    where = result.key["data"], result.key["method"]
    columns = range(1, n + 1), traces["nmae"], traces["rmse"], traces["rank"], by_ratio
    return [(*where, *row) for row in zip(*columns, strict=True)]
