"""Methods held against each other on the same splits: run, ranked, and shown."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

import fillrank as fr
from fillrank.cli import estimate, methods, scores, summary
from fillrank.cli.messages import duration, escape, in_words, on_one_line, out, say
from fillrank.cli.methods import Settings
from fillrank.cli.scores import Figure, Split
from fillrank.cli.source import Source
from fillrank.errors import FillrankError, InputError, NotSupportedError
from fillrank.io.csv_writer import csv_text
from fillrank.table.observations import Observations

FIGURES = ("rmse", "mae", "coverage", "seconds")


class Entrant(NamedTuple):
    """A method, its scores by the number of the split, and why it is out, if it is."""

    settings: Settings
    scores: dict[int, dict[str, float]]
    out: list[str]

    @property
    def name(self) -> str:
        """The method's."""
        return self.settings.method


class Ranked(NamedTuple):
    """A method and its scores on the splits by which it is ranked."""

    name: str
    scores: list[dict[str, float]]

    def figure(self, name: str) -> Figure:
        """One of its figures."""
        return scores.gathered(self.scores, name)


class Contest:
    """Methods and splits, and what is known so far."""

    def __init__(self, settings: list[Settings], splits: list[Split], level: float):
        self.entrants = [Entrant(each, {}, []) for each in settings]
        self.splits = splits
        self.level = level

    def run(self, quiet: bool) -> None:
        """Run all; every method on the first split, then on the second, so that all have as many."""
        expected = self._expected()
        todo = [
            (number, entrant) for number in range(len(self.splits)) for entrant in self.entrants
        ]
        for done, (number, entrant) in enumerate(todo):
            if entrant.out:
                continue
            if not quiet:
                ahead = [other for _, other in todo[done:] if not other.out]
                left = sum(_mean_seconds(other) or expected[other.name] for other in ahead)
                say(
                    f"{done + 1} of {len(todo)}, {duration(left)} left: {entrant.name}, "
                    f"split {number + 1}"
                )
            self._try(entrant, number, quiet)

    def _expected(self) -> dict[str, float]:
        from fillrank.runtime.threads import available_threads

        train = self.splits[0].train
        return {
            each.name: estimate.of_fit(
                each.settings, train, available_threads(each.settings.threads)
            ).seconds
            for each in self.entrants
        }

    def _try(self, entrant: Entrant, number: int, quiet: bool) -> None:
        try:
            if number == 0:
                _compile(entrant.settings)
            entrant.scores[number] = scores.measure(
                entrant.settings, self.splits[number], self.level, progress=not quiet
            )
        except (InputError, NotSupportedError) as error:
            entrant.out.append(f"cannot take this table: {in_words(error)}")
        except Exception as error:  # whatever it is, the others go on
            kind = "" if isinstance(error, FillrankError) else f"{type(error).__name__}: "
            entrant.out.append(f"failed: {kind}{in_words(error)}")
        if entrant.out and not quiet:
            say(f"{entrant.name} {escape(entrant.out[0])}")

    def ranked(self) -> list[Ranked]:
        """The methods that are not out, the least error first, by the splits that all of them have."""
        there = [each for each in self.entrants if each.scores and not each.out]
        common = sorted(set.intersection(*(set(each.scores) for each in there))) if there else []
        found = [Ranked(each.name, [each.scores[number] for number in common]) for each in there]
        return sorted(found, key=lambda ranked: ranked.figure("rmse").mean)

    def left_out(self) -> list[tuple[str, str]]:
        """The methods without figures, with the reason."""
        return [
            (each.name, each.out[0] if each.out else "not run")
            for each in self.entrants
            if each.out or not each.scores
        ]


def _mean_seconds(entrant: Entrant) -> float | None:
    seconds = [each["seconds"] for each in entrant.scores.values()]
    return sum(seconds) / len(seconds) if seconds else None


def _compile(settings: Settings) -> None:
    """Fit a tiny table first, so that the time of compilation is no part of the first fit's."""
    stars = np.arange(1, 5)[np.add.outer(np.arange(8), np.arange(6)) % 4].astype(float)
    stars[0, 0] = np.nan
    with suppress(FillrankError):
        methods.fit(settings, fr.Observations.of(stars), progress=False)


def show(contest: Contest) -> None:
    """A table of the ranking, and what is not in it."""
    ranked = contest.ranked()
    if ranked:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("Method", no_wrap=True)
        for title in ("RMSE", "MAE", f"In {100 * contest.level:g}% intervals", "Seconds a fit"):
            table.add_column(title, justify="right", no_wrap=True)
        for each in ranked:
            table.add_row(
                each.name,
                str(each.figure("rmse")),
                str(each.figure("mae")),
                _share(each.figure("coverage").mean),
                f"{each.figure('seconds').mean:.1f}",
            )
        out().print(table)
    for name, reason in contest.left_out():
        out().print(f"[bold]{name}[/] {on_one_line(reason)}")


def _share(share: float) -> str:
    return "none" if math.isnan(share) else f"{100 * share:.1f}%"


def for_programs(contest: Contest, origin: Source, data: Observations) -> dict[str, Any]:
    """All figures, best method first."""
    return {
        "table": summary.of_source(origin, data),
        "level": contest.level,
        "hidden_entries": len(contest.splits[0].test),
        "ranking": [
            {"method": each.name, **scores.for_programs(each.scores)} for each in contest.ranked()
        ],
        "left_out": [{"method": name, "reason": reason} for name, reason in contest.left_out()],
    }


def as_csv(contest: Contest) -> str:
    """The ranking as CSV: a line for each method, with those that are left out at the end."""
    spreads = [f"{name}_sd" for name in ("rmse", "mae")]
    lines: list[list[Any]] = []
    for each in contest.ranked():
        means = [each.figure(name).mean for name in FIGURES]
        sds = [each.figure(name).spread for name in ("rmse", "mae")]
        cells = ["" if math.isnan(value) else f"{value:.6g}" for value in (*means, *sds)]
        lines.append([each.name, len(each.scores), *cells, ""])
    lines += [[name, 0, *[""] * 6, reason] for name, reason in contest.left_out()]
    return csv_text(["method", "splits", *FIGURES, *spreads, "left_out"], lines)
