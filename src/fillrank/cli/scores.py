"""Errors on hidden entries, gathered over several splits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import fillrank as fr
from fillrank.cli import methods
from fillrank.cli.methods import Settings
from fillrank.table.observations import Observations


class Split(NamedTuple):
    """Entries to learn from, and hidden ones."""

    train: Observations
    test: Observations


class Figure(NamedTuple):
    """A mean over splits, and the standard deviation between them, NaN of a single one."""

    mean: float
    spread: float

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "-"
        return (
            f"{self.mean:.4g}"
            if math.isnan(self.spread)
            else f"{self.mean:.4g} ± {self.spread:.2g}"
        )


def folds(data: Observations, n: int, seed: int) -> Iterator[Split]:
    """Part the entries into so many sets, each of which is hidden once."""
    for train, test in fr.EntryKFold(n, random_state=seed).split(data):
        yield Split(data[train], data[test])


def measure(settings: Settings, split: Split, level: float, progress: bool) -> dict[str, float]:
    """Fit without the hidden entries, and score their predictions; with the seconds of the fit."""
    started = perf_counter()
    model = methods.fit(settings, split.train, progress, warn=True)
    seconds = perf_counter() - started
    return fr.score(split.test, model, level) | {"seconds": seconds, "rank": model.rank_}


def gathered(scores: list[dict[str, float]], name: str) -> Figure:
    """One of the figures over all splits."""
    values = np.array([each[name] for each in scores])
    spread = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Figure(float(values.mean()), spread)


def for_programs(scores: list[dict[str, float]]) -> dict[str, Any]:
    """All figures: means, standard deviations, and those of each split."""
    names = scores[0].keys()
    figures = {name: gathered(scores, name) for name in names}
    return {
        "mean": {name: figure.mean for name, figure in figures.items()},
        "standard_deviation": {name: figure.spread for name, figure in figures.items()},
        "splits": scores,
    }
