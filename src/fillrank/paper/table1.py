"""Table 1: errors at different missing rates, GASR and BPMF on synthetic matrices.

Z = A B^T with standard normal A and B of q columns, observed with noise of standard deviation sigma = 1
in a random part of the cells. The error is that of all cells, against Z. No method can do much better
than the oracle e0 = sigma sqrt(q (m + n - q) / |Omega|), which counts the degrees of freedom of Z.
"""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fillrank as fr
from fillrank.errors import InputError
from fillrank.paper import published
from fillrank.paper.averages import average_matrix
from fillrank.paper.methods import (
    AS_PUBLISHED,
    BPMF,
    BPMF_PUBLISHED,
    BPMF_TOO_SURE,
    BPMF_VAGUE,
    GASR,
    GASR_PUBLISHED,
    fit,
    make,
)
from fillrank.paper.published import Printed, Setting
from fillrank.paper.readings import readings
from fillrank.paper.study import Experiment, Key, Request, Result, Task
from fillrank.paper.tables import markdown, spread, with_spread, write_csv
from fillrank.posterior.metrics import rmse

NAME = "table1"
METHODS = (GASR_PUBLISHED, GASR, BPMF_PUBLISHED, BPMF, BPMF_TOO_SURE, BPMF_VAGUE)
_NOISE = 1.0
# Seconds for 100 million products of an entry with a factor, on two cores.
_COSTS = {
    GASR_PUBLISHED: 100.0, GASR: 57.0, BPMF_PUBLISHED: 40.0, BPMF: 56.0, BPMF_TOO_SURE: 20.0,
    BPMF_VAGUE: 20.0,
}  # fmt: skip


class Size(NamedTuple):
    """How large the experiment is; ``n_sweeps`` of the library's own methods."""

    settings: tuple[Setting, ...]
    missing: tuple[float, ...]
    n_seeds: int
    n_sweeps: int | str


FULL = Size(published.SETTINGS, published.MISSING, 3, "auto")
QUICK = Size((Setting(60, 2, 6),), (0.5, 0.0), 2, 60)


def experiment(request: Request) -> Experiment:
    """All methods, settings and missing rates, three data sets each."""
    if request.data is not None:
        raise InputError("table1 runs on generated matrices: leave out --data.")
    size = QUICK if request.quick else FULL
    tasks = [
        Task(
            {"setting": list(setting), "missing": missing, "seed": seed, "method": method},
            0.1 + _COSTS[method] * setting.size**2 * (1 - missing) * setting.max_rank / 1e8,
        )
        for setting in size.settings
        for missing in size.missing
        for seed in range(size.n_seeds)
        for method in METHODS
    ]
    return Experiment(
        NAME,
        {"quick": request.quick, **size._asdict()},
        tasks,
        partial(run, size=size, n_threads=request.n_threads),
        partial(present, size=size),
        ("table1.csv", "table1.md"),
    )


def oracle(m: int, n: int, q: int, n_entries: int) -> float:
    """e0, the error that the degrees of freedom of Z leave."""
    return _NOISE * math.sqrt(q * (m + n - q) / n_entries)


def run(key: Key, size: Size, n_threads: int | None) -> dict[str, Any]:
    """Fit one method to one data set."""
    setting, method, seed = Setting(*key["setting"]), key["method"], key["seed"]
    m, q = setting.size, setting.rank
    data, Z = fr.synthetic(m, m, q, _NOISE, key["missing"], random_state=seed)
    sweeps = {} if method in AS_PUBLISHED else {"n_sweeps": size.n_sweeps}
    model = make(
        method, max_rank=setting.max_rank, random_state=seed, n_threads=n_threads, **sweeps
    )
    seconds = fit(model, data)
    error = rmse(Z, average_matrix(model))
    return {
        "rmse": error,
        "relative": error / float(np.sqrt(np.mean(Z**2))),
        "ratio": error / oracle(m, m, q, len(data)),
        "rank": model.rank_,
        "sweeps": model.n_sweeps_,
        "seconds": seconds,
    }


class Cell(NamedTuple):
    """A method's results on the data sets of one setting and missing rate."""

    setting: Setting
    missing: float
    method: str
    results: list[Result]

    def all(self, name: str) -> list[float]:
        """One number of each result."""
        return [result.numbers[name] for result in self.results]


def cells(results: Sequence[Result], size: Size) -> list[Cell]:
    """Gather the results of the same setting, missing rate and method."""

    def some(*wanted: Any) -> list[Result]:
        names = ("setting", "missing", "method")
        return [r for r in results if [r.key[name] for name in names] == list(wanted)]

    return [
        Cell(setting, missing, method, some(list(setting), missing, method))
        for setting in size.settings
        for missing in size.missing
        for method in METHODS
    ]


def printed(setting: Setting, missing: float, method: str) -> Printed | None:
    """The paper's number."""
    row = published.TABLE_1[method.split(",")[0]].get(setting)
    return None if row is None else row[published.MISSING.index(missing)]


def present(results: Sequence[Result], folder: Path, size: Size) -> list[str]:
    """Write the table."""
    found = cells(results, size)
    write_csv(folder / "table1.csv", _HEADER, [_row(cell) for cell in found])
    lines = []
    for setting in size.settings:
        m, q, r = setting
        lines += [f"m = n = {m}, q = {q}, r = {r}, noise of standard deviation 1", ""]
        lines += markdown(
            ("missing", "method", "RMSE", "RMSE / sd(Z)", "RMSE / e0", "rank", "seconds", "paper"),
            [_words(cell) for cell in found if cell.setting == setting],
        )
        lines.append("")
    if not set(size.settings).isdisjoint(published.SETTINGS):
        lines += readings()
    (folder / "table1.md").write_text("\n".join(lines), encoding="utf-8")
    return lines


_HEADER = (
    "size", "true rank", "max rank", "missing", "method", "data sets", "rmse", "rmse sd", "relative",
    "relative sd", "ratio to oracle", "ratio sd", "seconds", "paper", "paper sd",
)  # fmt: skip


def _row(cell: Cell) -> tuple[Any, ...]:
    paper = printed(*cell[:3]) or (None, None)
    numbers = [
        number
        for name in ("rmse", "relative", "ratio")
        for number in (float(np.mean(cell.all(name))), spread(cell.all(name)))
    ]
    seconds = float(np.mean(cell.all("seconds")))
    where = (*cell.setting, cell.missing, cell.method, len(cell.results))
    return (*where, *numbers, round(seconds, 2), *paper)


def _words(cell: Cell) -> tuple[str, ...]:
    paper = printed(*cell[:3])
    ranks = sorted({int(rank) for rank in cell.all("rank")})
    return (
        f"{cell.missing:.0%}",
        cell.method,
        with_spread(cell.all("rmse")),
        f"{np.mean(cell.all('relative')):.4f}",
        f"{np.mean(cell.all('ratio')):.3f}",
        ", ".join(map(str, ranks)),
        f"{np.mean(cell.all('seconds')):.1f}",
        "" if paper is None else f"{paper.mean:.4f} ± {paper.sd:.4f}",
    )
