"""Table 2: all methods on ratings.

Methods are fitted to 80% of the ratings and predict the other 20%. Methods with a penalty choose it on a
fifth of the training entries. All have at most 30 factors and 100 iterations. Spectral methods and BPMF
are fitted to the ratings minus their overall mean; without that, the table would compare ways of
centring. GASR as published is fitted to the ratings as they are, as in its authors' program. The
library's GASR and the max-margin methods model effects or thresholds. Predictions are clipped to the
rating scale.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.paper import published
from fillrank.paper.methods import (
    AS_PUBLISHED,
    BPMF,
    BPMF_PUBLISHED,
    GASR,
    GASR_PUBLISHED,
    HASI,
    IPM3F,
    M3F,
    SAMPLERS,
    SOFT_IMPUTE,
    SOFT_IMPUTE_ALS,
    SPECTRAL,
    fit,
    make,
    predict_at,
)
from fillrank.paper.output import markdown, spread, with_spread, write_csv
from fillrank.paper.ratings import EACHMOVIE, MOVIELENS, Source, sources
from fillrank.paper.study import Experiment, Key, Request, Result, Task
from fillrank.posterior.metrics import nmae, rmse

NAME = "table2"
METHODS = (
    M3F, IPM3F, SOFT_IMPUTE, SOFT_IMPUTE_ALS, HASI, BPMF_PUBLISHED, BPMF, GASR_PUBLISHED, GASR,
)  # fmt: skip
ERRORS = ("rmse", "nmae", "rmse_rounded", "nmae_rounded")
# Seconds for a million ratings, on two cores.
_COSTS = {
    M3F: 45.0, IPM3F: 70.0, SOFT_IMPUTE: 65.0, SOFT_IMPUTE_ALS: 45.0, HASI: 270.0,
    BPMF_PUBLISHED: 12.0, BPMF: 27.0, GASR_PUBLISHED: 22.0, GASR: 27.0,
}  # fmt: skip


class Size(NamedTuple):
    """The size of the experiment; ``n_sweeps`` is that of the library's own samplers.

    Field names are settings in results files.
    """

    max_rank: int
    n_splits: int
    n_sweeps: int | str
    max_iterations: int


FULL = Size(30, 5, "auto", 100)
QUICK = Size(5, 2, 60, 10)


def experiment(request: Request) -> Experiment:
    """Return the experiment: all methods on all splits of each available set of ratings."""
    size = QUICK if request.quick else FULL
    ratings = sources(request.data, request.quick, size.n_splits)
    fingerprints = {name: source.fingerprint() for name, source in ratings.items()}
    tasks = [
        Task(
            {"data": name, "split": split, "method": method},
            0.1 + _COSTS[method] * fingerprints[name][2] / 1e6,
        )
        # The slowest method runs last: it takes as long as all others together.
        for methods in ([m for m in METHODS if m != HASI], [HASI])
        for name, source in ratings.items()
        for split in range(source.n_splits)
        for method in methods
    ]
    return Experiment(
        NAME,
        {"quick": request.quick, **size._asdict(), "data": fingerprints},
        tasks,
        partial(run, size=size, ratings=ratings, n_threads=request.n_threads),
        present,
        ("table2.csv", "table2.md"),
    )


def settings_for(method: str, size: Size) -> dict[str, Any]:
    """Return the settings of a method, without its seed."""
    settings: dict[str, Any] = {"max_rank": size.max_rank}
    if method not in SAMPLERS:
        settings |= {"max_iterations": size.max_iterations}
    elif method not in AS_PUBLISHED:
        settings |= {"n_sweeps": size.n_sweeps}
    if method in SPECTRAL:
        settings |= {"effects": "mean"}
    return settings


def run(
    key: Key, size: Size, ratings: Mapping[str, Source], n_threads: int | None
) -> dict[str, Any]:
    """Fit one method to the training entries of a split and score it on the test entries."""
    train, test = ratings[key["data"]].split(key["split"])
    model = make(
        key["method"],
        random_state=key["split"],
        n_threads=n_threads,
        **settings_for(key["method"], size),
    )
    seconds = fit(model, train)
    scale = train.value_range()
    if scale is None:
        raise InputError(f"{key['data']}: NMAE needs ratings on equally spaced levels.")
    predicted = predict_at(model, test.row_index, test.column_index)
    return errors(test.values, predicted, scale) | {"rank": int(model.rank_), "seconds": seconds}


def errors(
    truth: np.ndarray, predicted: np.ndarray, scale: tuple[float, float]
) -> dict[str, float]:
    """Return the errors of predictions, as they are and rounded to the nearest level."""
    rounded = np.rint(predicted)
    values = (
        rmse(truth, predicted),
        nmae(truth, predicted, scale),
        rmse(truth, rounded),
        nmae(truth, rounded, scale),
    )
    return dict(zip(ERRORS, values, strict=True))


def present(results: Sequence[Result], folder: Path) -> list[str]:
    """Write a table for each set of ratings as CSV and Markdown; return the lines."""
    names = list(dict.fromkeys(result.key["data"] for result in results))
    rows, lines = [], []
    for name in names:
        of_set = [result for result in results if result.key["data"] == name]
        rows += [_csv_row(name, method, _select(of_set, method)) for method in METHODS]
        lines += [_heading(name, of_set), ""]
        lines += markdown(
            ("method", "RMSE", "NMAE", "RMSE rounded", "NMAE rounded", "rank", "seconds",
             "paper: RMSE", "paper: NMAE", "paper: NMAE rounded"),
            [_markdown_row(name, method, _select(of_set, method)) for method in METHODS],
        )  # fmt: skip
        lines.append("")
    write_csv(folder / "table2.csv", _HEADER, rows)
    (folder / "table2.md").write_text("\n".join(lines), encoding="utf-8")
    return lines


def _heading(name: str, results: Sequence[Result]) -> str:
    if name == EACHMOVIE:
        return (
            f"{name}: the split that it comes with. Its users are heavy users, not those of the "
            "paper, so the paper's numbers are omitted."
        )
    n_splits = len({result.key["split"] for result in results})
    return f"{name}: {n_splits} random splits, mean ± standard deviation."


def _select(results: Sequence[Result], method: str) -> list[Result]:
    return [result for result in results if result.key["method"] == method]


def printed(name: str, method: str) -> tuple[published.Printed | None, ...]:
    """Return the paper's RMSE, NMAE and rounded NMAE of a method; None where it has none."""
    if name != MOVIELENS:
        return (None, None, None)
    theirs = published.TABLE_2[method.split(",")[0]]
    return theirs.rmse, theirs.nmae, theirs.nmae_rounded


_HEADER = (
    "data", "method", "splits", *(f"{error}{sd}" for error in ERRORS for sd in ("", " sd")),
    "rank", "seconds", "paper rmse", "paper rmse sd", "paper nmae", "paper nmae sd",
    "paper nmae_rounded", "paper nmae_rounded sd",
)  # fmt: skip


def _csv_row(name: str, method: str, results: Sequence[Result]) -> tuple[Any, ...]:
    columns = ([result.numbers[error] for result in results] for error in ERRORS)
    numbers = [x for values in columns for x in (float(np.mean(values)), spread(values))]
    rank, seconds = _rank_and_seconds(results)
    theirs = [x for number in printed(name, method) for x in (number or (None, None))]
    return (name, method, len(results), *numbers, rank, round(seconds, 1), *theirs)


def _markdown_row(name: str, method: str, results: Sequence[Result]) -> tuple[str, ...]:
    rank, seconds = _rank_and_seconds(results)
    ours = [with_spread([result.numbers[error] for result in results]) for error in ERRORS]
    theirs = (
        "" if number is None else f"{number.mean:.4f} ± {number.sd:.4f}"
        for number in printed(name, method)
    )
    return (method, *ours, f"{rank:g}", f"{seconds:.1f}", *theirs)


def _rank_and_seconds(results: Sequence[Result]) -> tuple[float, float]:
    rank = float(np.mean([result.numbers["rank"] for result in results]))
    return rank, float(np.mean([result.numbers["seconds"] for result in results]))
