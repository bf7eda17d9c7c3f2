"""Table 1: errors at different missing rates, GASR and BPMF on synthetic matrices.

Z = A B^T with standard normal A and B of q columns, observed with noise of standard deviation sigma = 1
in a random subset of the cells. The error is that of all cells, against Z. No method can do much better
than the oracle e0 = sigma sqrt(q (m + n - q) / |Omega|), which counts the degrees of freedom of Z.

The paper's description leaves open which noise and which error its table has: it says "standard Gaussian
noise" and "a signal to noise ratio of 1", and "RMSE". With sd(Z) = sqrt(q) these are sigma = 1 or
sigma = sqrt(q), and the error may be absolute or relative to the size of Z or of X. An average of draws
cannot be far below the oracle, so an interpretation with ratios well below 1 is excluded. (The authors'
data show that sigma was 1 in the experiment of `fillrank.paper.figure1`, which has the same protocol.)
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fillrank as fr
from fillrank.errors import InputError
from fillrank.paper import published
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
    predict_matrix,
)
from fillrank.paper.output import markdown, spread, with_spread, write_csv
from fillrank.paper.published import Printed, Setting
from fillrank.paper.study import Experiment, Key, Request, Result, Task
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
    """The size of the experiment; ``n_sweeps`` is that of the library's own methods.

    Field names are settings in results files.
    """

    settings: tuple[Setting, ...]
    missing: tuple[float, ...]
    n_seeds: int
    n_sweeps: int | str


FULL = Size(published.SETTINGS, published.MISSING, 3, "auto")
QUICK = Size((Setting(60, 2, 6),), (0.5, 0.0), 2, 60)


def experiment(request: Request) -> Experiment:
    """Return the experiment: all methods, settings and missing rates, on three data sets each."""
    if request.data is not None:
        raise InputError("table1 runs on generated matrices: omit --data.")
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
    """Return e0, the error that the degrees of freedom of Z imply."""
    return _NOISE * math.sqrt(q * (m + n - q) / n_entries)


def run(key: Key, size: Size, n_threads: int | None) -> dict[str, Any]:
    """Fit one method to one data set and return its errors."""
    setting, method, seed = Setting(*key["setting"]), key["method"], key["seed"]
    m, q = setting.size, setting.rank
    data, Z = fr.synthetic(m, m, q, _NOISE, key["missing"], random_state=seed)
    sweeps = {} if method in AS_PUBLISHED else {"n_sweeps": size.n_sweeps}
    model = make(
        method, max_rank=setting.max_rank, random_state=seed, n_threads=n_threads, **sweeps
    )
    seconds = fit(model, data)
    error = rmse(Z, predict_matrix(model))
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
        """Return one number of each result."""
        return [result.numbers[name] for result in self.results]


def cells(results: Sequence[Result], size: Size) -> list[Cell]:
    """Group the results by setting, missing rate and method."""

    def matching(*wanted: Any) -> list[Result]:
        names = ("setting", "missing", "method")
        return [r for r in results if [r.key[name] for name in names] == list(wanted)]

    return [
        Cell(setting, missing, method, matching(list(setting), missing, method))
        for setting in size.settings
        for missing in size.missing
        for method in METHODS
    ]


def printed(setting: Setting, missing: float, method: str) -> Printed | None:
    """Return the paper's number, if it has one."""
    row = published.TABLE_1[method.split(",")[0]].get(setting)
    return None if row is None else row[published.MISSING.index(missing)]


def present(results: Sequence[Result], folder: Path, size: Size) -> list[str]:
    """Write the table as CSV and Markdown; return its lines."""
    found = cells(results, size)
    write_csv(folder / "table1.csv", _HEADER, [_csv_row(cell) for cell in found])
    lines = []
    for setting in size.settings:
        m, q, r = setting
        lines += [f"m = n = {m}, q = {q}, r = {r}, noise of standard deviation 1", ""]
        lines += markdown(
            ("missing", "method", "RMSE", "RMSE / sd(Z)", "RMSE / e0", "rank", "seconds", "paper"),
            [_markdown_row(cell) for cell in found if cell.setting == setting],
        )
        lines.append("")
    if not set(size.settings).isdisjoint(published.SETTINGS):
        lines += _interpretation_lines()
    (folder / "table1.md").write_text("\n".join(lines), encoding="utf-8")
    return lines


_HEADER = (
    "size", "true rank", "max rank", "missing", "method", "data sets", "rmse", "rmse sd", "relative",
    "relative sd", "ratio to oracle", "ratio sd", "seconds", "paper", "paper sd",
)  # fmt: skip


def _csv_row(cell: Cell) -> tuple[Any, ...]:
    paper = printed(*cell[:3]) or (None, None)
    numbers = [
        number
        for name in ("rmse", "relative", "ratio")
        for number in (float(np.mean(cell.all(name))), spread(cell.all(name)))
    ]
    seconds = float(np.mean(cell.all("seconds")))
    key = (*cell.setting, cell.missing, cell.method, len(cell.results))
    return (*key, *numbers, round(seconds, 2), *paper)


def _markdown_row(cell: Cell) -> tuple[str, ...]:
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


class Interpretation(NamedTuple):
    """The standard deviation of the noise, and the number that errors are divided by."""

    description: str
    noise: float
    unit: float


def _interpretations(q: int) -> tuple[Interpretation, ...]:
    """Return all interpretations of the paper's description, for matrices of rank q."""
    root = math.sqrt(q)
    return (
        Interpretation("sigma = 1, absolute", 1.0, 1.0),
        Interpretation("sigma = 1, relative to Z", 1.0, root),
        Interpretation("sigma = 1, relative to X", 1.0, math.sqrt(q + 1)),
        Interpretation("sigma = sqrt(q), absolute", root, 1.0),
        Interpretation("sigma = sqrt(q), relative to Z", root, root),
    )


def _oracle_under(setting: Setting, missing: float, interpretation: Interpretation) -> float:
    """Return the oracle's error under an interpretation."""
    m, q, _ = setting
    e0 = interpretation.noise * math.sqrt(q * (2 * m - q) / ((1 - missing) * m * m))
    return e0 / interpretation.unit


def _interpretation_rows() -> Iterator[tuple[str, ...]]:
    for method, table in published.TABLE_1.items():
        for setting, row in table.items():
            for interpretation in _interpretations(setting.rank):
                ratios = (
                    number.mean / _oracle_under(setting, missing, interpretation)
                    for number, missing in zip(row, published.MISSING, strict=True)
                )
                yield (
                    method,
                    str(setting.size),
                    interpretation.description,
                    *(f"{x:.2f}" for x in ratios),
                )


def _interpretation_lines() -> list[str]:
    """Return the ratios of the paper's errors to the oracle's, as Markdown."""
    missing_rates = (f"{missing:.0%}" for missing in published.MISSING)
    return [
        "The paper's errors divided by the oracle's, for each interpretation of its noise and error; "
        "a ratio well below 1 is impossible:",
        "",
        *markdown(("paper's", "m = n", "interpretation", *missing_rates), _interpretation_rows()),
        "",
    ]
