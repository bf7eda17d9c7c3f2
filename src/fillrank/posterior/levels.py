"""The posterior of a completed table of ordered levels, such as ratings: scores and thresholds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fillrank.draws.streams import chain_key
from fillrank.errors import NotSupportedError
from fillrank.features.blocks import NO_BLOCKS, Blocks
from fillrank.features.new_rows import Axis
from fillrank.kernels.ordinal import Scorer, add_levels, add_margins
from fillrank.posterior.predictive import Statistic
from fillrank.posterior.protocol import SignalPosterior
from fillrank.posterior.recommend import Top, TopQuery, best_by_score
from fillrank.runtime.threads import Workers
from fillrank.samplers import ipm3f as gibbs
from fillrank.solvers import ipm3f as variational
from fillrank.solvers import m3f
from fillrank.table.entries import Entries
from fillrank.table.levels import Levels
from fillrank.table.units import Units

# Cells computed together: their margins fit into the cache.
_BLOCK = 8192
# Sweeps over a new row under each stored draw: it starts without features.
_NEW_ROW_SWEEPS, _NEW_ROW_SEED = 10, 0
# Scorers that represent all of them where an average over all would take too much memory.
_MOST_SCORERS = 8


class FitRows(Protocol):
    """How a method fits new rows, given the scorers of the fit."""

    def __call__(
        self, scorers: list[Scorer], entries: Entries, n_levels: int, workers: Workers
    ) -> list[Scorer]:
        """Scorers of the new rows; the values of ``entries`` are numbers of levels."""
        ...

    def is_valid(self, n_features: int) -> bool:
        """Whether what was read from a file can fit rows with so many features."""
        ...


@dataclass(frozen=True)
class FitRowsByMargin:
    """New rows by the objective of M3F."""

    penalty: float

    def __call__(
        self, scorers: list[Scorer], entries: Entries, n_levels: int, workers: Workers
    ) -> list[Scorer]:
        """See `FitRows`."""
        return [m3f.fit_rows(entries, scorers[0], self.penalty, workers)]

    def is_valid(self, n_features: int) -> bool:
        """See `FitRows`."""
        return True


@dataclass(frozen=True)
class FitRowsVariationally:
    """New rows by the variational objective of iPM3F; ``sticks`` are those of the fit."""

    penalty: float
    sticks: np.ndarray

    def __call__(
        self, scorers: list[Scorer], entries: Entries, n_levels: int, workers: Workers
    ) -> list[Scorer]:
        """See `FitRows`."""
        psi, Lam, thresholds = scorers[0]
        state = variational.State(psi, Lam, thresholds, self.sticks, np.zeros(0))
        hyper = variational.usual_hyper(1.0 / self.penalty)
        return [variational.fit_rows(entries, state, hyper, workers)]

    def is_valid(self, n_features: int) -> bool:
        """See `FitRows`."""
        sticks = self.sticks
        return sticks.shape == (n_features, 2) and bool((np.isfinite(sticks) & (sticks > 0)).all())


@dataclass(frozen=True)
class SampleRows:
    """New rows by the Gibbs sampler of iPM3F, under every stored draw."""

    penalty: float
    max_rank: int

    def __call__(
        self, scorers: list[Scorer], entries: Entries, n_levels: int, workers: Workers
    ) -> list[Scorer]:
        """See `FitRows`."""
        usual = variational.usual_hyper(1.0 / self.penalty)
        hyper = gibbs.Hyper(*usual, n_levels=n_levels, max_features=self.max_rank)
        # A stream for each draw: the same rows get the same result every time.
        contexts = (
            gibbs.Context(hyper, chain_key(_NEW_ROW_SEED, t), workers) for t in range(len(scorers))
        )
        return [
            _sample_rows(scorer, entries, context)
            for scorer, context in zip(scorers, contexts, strict=True)
        ]

    def is_valid(self, n_features: int) -> bool:
        """See `FitRows`."""
        return True


def _sample_rows(scorer: Scorer, entries: Entries, context: gibbs.Context) -> Scorer:
    state = gibbs.State(scorer.left, scorer.right, scorer.thresholds, sweep=0)
    new = gibbs.init_rows(entries.pointers.size - 1, state, context.hyper)
    for _ in range(_NEW_ROW_SWEEPS):
        new = gibbs.sweep_rows(new, entries, state, context)
    return Scorer(new.Z, scorer.right, new.thresholds)


@dataclass(frozen=True)
class LevelPosterior:
    """Scorers whose average predicts one of the levels.

    Parameters
    ----------
    scorers : list of Scorer
        One, or one for each stored draw.
    levels : ndarray
        The values of the levels, ascending.
    fit_rows : FitRows
        How the method fits new rows.
    """

    scorers: list[Scorer]
    levels: np.ndarray
    fit_rows: FitRows
    # Margins do not say how probable a level is.
    has_draws: bool = False
    n_draws: int = 0
    new_row_nbytes: int = 0
    blocks: Blocks = NO_BLOCKS

    @property
    def units(self) -> Units:
        """The scale that predictions are on."""
        value_range = float(self.levels[0]), float(self.levels[-1])
        return Units.equal(0.0, 1.0, self.shape[1], value_range)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.scorers[0].left), len(self.scorers[0].right)

    @property
    def signal(self) -> SignalPosterior:
        """Not supported: margins do not say how probable a level is."""
        raise NotSupportedError(
            "max-margin methods predict levels, without a posterior of a signal: they have no "
            "probabilities, intervals, densities or draws, and learn from new entries by a new fit "
            "only. GASR and BPMF do all of this."
        )

    @property
    def latent_columns(self) -> np.ndarray:
        """Each column is its own latent column."""
        return np.arange(self.shape[1])

    @property
    def has_own_kinds(self) -> bool:
        """All columns have the same levels."""
        return False

    @property
    def column_kinds(self) -> list[str]:
        """All are ordered levels."""
        return ["ordered"] * self.shape[1]

    @property
    def level_columns(self) -> np.ndarray:
        """None has levels with probabilities."""
        return np.zeros(self.shape[1], dtype=bool)

    def level_values(self, column: int) -> np.ndarray:
        """The values of the levels, ascending."""
        return self.levels

    def predict(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        workers: Workers,
        statistic: Statistic = "auto",
    ) -> np.ndarray:
        """The levels of the cells (rows_p, columns_p): those whose thresholds the scores reach.

        Scores and thresholds are averaged over the scorers, not levels: the prediction is a level.
        """

        def levels(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            margins = np.zeros((rows.size, self.levels.size - 1))
            for scorer in self.scorers:
                add_margins(scorer, rows, columns, margins)
            return self.levels[(margins >= 0).sum(axis=1)]

        return self._over_cells(levels, rows, columns, workers)

    def average_prediction(
        self, rows: np.ndarray, columns: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """The means over the scorers of the levels that each predicts."""

        def means(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            total = np.zeros(rows.size)
            for scorer in self.scorers:
                add_levels(scorer, self.levels, rows, columns, total)
            return total / len(self.scorers)

        return self._over_cells(means, rows, columns, workers)

    def _over_cells(
        self,
        compute: Callable[[np.ndarray, np.ndarray], np.ndarray],
        rows: np.ndarray,
        columns: np.ndarray,
        workers: Workers,
    ) -> np.ndarray:
        """Compute a number for every cell, in blocks, on all threads."""
        out = np.empty(len(rows))

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, _BLOCK):
                block = slice(first, min(first + _BLOCK, stop))
                out[block] = compute(rows[block], columns[block])

        cost = sum(scorer.left.shape[1] + self.levels.size for scorer in self.scorers)
        workers.for_rows(work, cost * np.arange(len(rows) + 1))
        return out

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Predictions for all cells of the given rows and columns: a matrix."""
        i, j = np.repeat(rows, len(columns)), np.tile(columns, len(rows))
        with Workers(1) as alone:
            return self.predict(i, j, alone).reshape(len(rows), len(columns))

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Factors (left, right) whose product is the score, averaged over some of the scorers."""
        n = len(self.scorers)
        chosen = sorted({n * t // _MOST_SCORERS for t in range(_MOST_SCORERS)})
        some = [self.scorers[t] for t in chosen]
        left = np.hstack([scorer.left for scorer in some]) / len(some)
        return left, np.hstack([scorer.right for scorer in some])

    def fold_in(
        self,
        entries: Entries,
        axis: Axis,
        workers: Workers,
        features: np.ndarray | None = None,
        intervals: np.ndarray | None = None,
    ) -> LevelPosterior:
        """The posterior of new rows in the columns that were fitted.

        ``entries`` are those of the new rows, in the units of the data; the indices are positions of
        columns at fit. There are no features.
        """
        if features is not None:
            raise NotSupportedError("max-margin methods take no features. GASR and BPMF do.")
        if axis == "columns":
            raise NotSupportedError(
                "max-margin methods learn the thresholds of every row from all of its columns: new "
                "columns need a new fit. The other methods can fold them in."
            )
        numbers = Levels(self.levels).encode(entries)
        scorers = self.fit_rows(self.scorers, numbers, self.levels.size, workers)
        return LevelPosterior(scorers, self.levels, self.fit_rows)

    def top(self, query: TopQuery, workers: Workers) -> Top:
        """The columns with the highest predicted levels; within a level, with the largest margins.

        The levels of a row rise with its average score, so the score decides.
        """
        top = best_by_score(self.scorers, query, workers)
        p, k = np.nonzero(top.columns >= 0)
        top.scores[p, k] = self.predict(query.rows[p], top.columns[p, k], workers)
        return top
