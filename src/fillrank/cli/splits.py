"""Splits of a table into training and held-out entries, and the scores of fits on them."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from fillrank.cli import models
from fillrank.cli.features import NO_FEATURES, Features
from fillrank.cli.group_scores import SplitScores, score_model
from fillrank.cli.models import SAMPLERS, Settings
from fillrank.cli.ranking import Scoring, score_lists
from fillrank.table.observations import Observations


class Split(NamedTuple):
    """Training entries, held-out entries and all of them, and the features of rows and columns."""

    train: Observations
    test: Observations
    table: Observations
    features: Features = NO_FEATURES


class Figure(NamedTuple):
    """The mean over splits and the standard deviation between them, NaN for a single split."""

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


def score_split(settings: Settings, split: Split, scoring: Scoring, progress: bool) -> SplitScores:
    """Fit the training entries and score the predictions of the others; with the time of the fit."""
    started = perf_counter()
    given = split.features if settings.method in SAMPLERS else NO_FEATURES
    model = models.fit(settings, split.train, progress, True, given, split.table)
    seconds = perf_counter() - started
    found = score_model(model, split.test, scoring.level)
    scores = found.scores | {"seconds": seconds, "rank": model.rank_}
    if scoring.lists is not None:
        scores |= score_lists(model, split.test, scoring.lists)
    return found._replace(scores=scores)


def average(splits: list[SplitScores], name: str) -> Figure:
    """The mean and spread of a score over all splits."""
    values = np.array([each.scores[name] for each in splits])
    spread = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Figure(float(values.mean()), spread)


def scores_summary(splits: list[SplitScores]) -> dict[str, Any]:
    """Means, standard deviations and the scores of each split, for JSON."""
    figures = {name: average(splits, name) for name in splits[0].scores}
    return {
        "mean": {name: figure.mean for name, figure in figures.items()},
        "standard_deviation": {name: figure.spread for name, figure in figures.items()},
        "splits": [each.scores for each in splits],
    }
