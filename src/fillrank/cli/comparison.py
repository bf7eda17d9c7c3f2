"""A comparison of methods: all are fitted on the same splits of a table, and ranked by their errors."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

import fillrank as fr
from fillrank.cli import models
from fillrank.cli.fit_cost import estimate_cost
from fillrank.cli.group_scores import GroupResults, SplitScores, pool_splits
from fillrank.cli.messages import describe_error, escape, format_duration, report
from fillrank.cli.models import SAMPLERS, Settings
from fillrank.cli.ranking import Scoring
from fillrank.cli.splits import Figure, Split, average, score_split
from fillrank.errors import FillrankError, InputError, NotSupportedError
from fillrank.runtime.threads import available_threads


class Candidate(NamedTuple):
    """A method, its scores by the number of the split, and why it was excluded, if it was."""

    settings: Settings
    scores: dict[int, SplitScores]
    excluded: list[str]

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.settings.method


class Ranked(NamedTuple):
    """A method and its scores on the splits by which it is ranked."""

    name: str
    scores: list[SplitScores]

    def figure(self, name: str) -> Figure:
        """The mean and spread of a score."""
        return average(self.scores, name)


class Comparison:
    """Methods and splits, and the scores so far."""

    def __init__(
        self, settings: list[Settings], splits: list[Split], scoring: Scoring, has_own_units: bool
    ):
        self.candidates = [Candidate(each, {}, []) for each in settings]
        self.splits = splits
        self.scoring = scoring
        self.has_own_units = has_own_units

    @property
    def level(self) -> float:
        """The level of the intervals."""
        return self.scoring.level

    def run(self, quiet: bool) -> None:
        """Run all methods on the first split, then on the second, so that results are comparable."""
        expected = self._expected_seconds()
        fits = [
            (number, candidate)
            for number in range(len(self.splits))
            for candidate in self.candidates
        ]
        for done, (number, candidate) in enumerate(fits):
            if candidate.excluded:
                continue
            if not quiet:
                ahead = [other for _, other in fits[done:] if not other.excluded]
                left = sum(_mean_seconds(other) or expected[other.name] for other in ahead)
                report(
                    f"{done + 1} of {len(fits)}, {format_duration(left)} left: {candidate.name}, "
                    f"split {number + 1}"
                )
            self._try(candidate, number, quiet)

    def _expected_seconds(self) -> dict[str, float]:
        train = self.splits[0].train
        return {
            each.name: estimate_cost(
                each.settings, train, available_threads(each.settings.threads)
            ).seconds
            for each in self.candidates
        }

    def _try(self, candidate: Candidate, number: int, quiet: bool) -> None:
        try:
            if number == 0:
                _compile(candidate.settings)
            candidate.scores[number] = score_split(
                candidate.settings, self.splits[number], self.scoring, progress=not quiet
            )
        except (InputError, NotSupportedError) as error:
            candidate.excluded.append(f"does not support this table: {describe_error(error)}")
        except Exception as error:  # any failure excludes one method only  # noqa: BLE001
            kind = "" if isinstance(error, FillrankError) else f"{type(error).__name__}: "
            candidate.excluded.append(f"failed: {kind}{describe_error(error)}")
        if candidate.excluded and not quiet:
            report(f"{candidate.name} {escape(candidate.excluded[0])}")

    def ranked(self) -> list[Ranked]:
        """The methods that were not excluded, smallest error first, on the splits they share."""
        complete = [each for each in self.candidates if each.scores and not each.excluded]
        shared = (
            sorted(set.intersection(*(set(each.scores) for each in complete))) if complete else []
        )
        found = [Ranked(each.name, [each.scores[number] for number in shared]) for each in complete]
        return sorted(found, key=self._error)

    def _error(self, ranked: Ranked) -> float:
        """The error by which methods are ranked; relative if columns have no common unit."""
        if self.has_one_unit:
            return ranked.figure("rmse").mean
        return self.groups(ranked).relative_error()

    @property
    def is_mixed(self) -> bool:
        """Whether columns have values of different kinds."""
        return any(score.is_mixed for score in self._scores())

    @property
    def has_one_unit(self) -> bool:
        """Whether errors of all columns have the same unit, so that an overall RMSE has a meaning."""
        return not self.is_mixed and not self.has_own_units

    def _scores(self) -> list[SplitScores]:
        return [score for each in self.candidates for score in each.scores.values()]

    def groups(self, ranked: Ranked) -> GroupResults:
        """The results of a method by column and by level, over the splits by which it is ranked.

        A method without kinds takes levels for numbers. Its errors of numbers are nevertheless those of
        the same columns as for the others.
        """
        labels = self.splits[0].train.column_labels
        found = pool_splits(ranked.scores, labels, self.level, self.has_own_units)
        has_levels = np.any([score.by_column.n_levels > 0 for score in self._scores()], axis=0)
        return found._replace(is_mixed=self.is_mixed, level_columns=has_levels)

    def without_features(self) -> list[str]:
        """The methods that take no features, if any are given."""
        if not self.splits[0].features.arguments():
            return []
        return [each.name for each in self.candidates if each.name not in SAMPLERS]

    def without_kinds(self) -> list[str]:
        """The methods that take all values for numbers, if columns have values of different kinds."""
        if not self.is_mixed:
            return []
        return [each.name for each in self.candidates if each.name not in SAMPLERS]

    def left_out(self) -> list[tuple[str, str]]:
        """The methods without figures, with the reason."""
        return [
            (each.name, each.excluded[0] if each.excluded else "not run")
            for each in self.candidates
            if each.excluded or not each.scores
        ]


def _mean_seconds(candidate: Candidate) -> float | None:
    seconds = [each.scores["seconds"] for each in candidate.scores.values()]
    return sum(seconds) / len(seconds) if seconds else None


def _compile(settings: Settings) -> None:
    """Fit a tiny table first, so that the time of the first fit does not include compilation."""
    stars = np.arange(1, 5)[np.add.outer(np.arange(8), np.arange(6)) % 4].astype(float)
    stars[0, 0] = np.nan
    with suppress(FillrankError):
        models.fit(settings, fr.Observations.of(stars), progress=False)
