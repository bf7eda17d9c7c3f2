"""Predictions of ordered levels, asked by position: from one scorer, or from one for each kept draw."""

from typing import NamedTuple

import numpy as np

from fillrank.kernels.ordinal import Scorer, add_levels, add_margins
from fillrank.posterior.posterior import Units
from fillrank.runtime.threads import Workers

# Cells worked on at once: their margins stay in cache.
_BLOCK = 8192


class OrdinalPosterior(NamedTuple):
    """Scorers that predict levels together, and the levels' values, ascending."""

    scorers: list[Scorer]
    levels: np.ndarray

    @property
    def units(self) -> Units:
        """The scale that predictions are on."""
        return Units(0.0, 1.0, (float(self.levels[0]), float(self.levels[-1])))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.scorers[0].left), len(self.scorers[0].right)

    def predict(self, rows: np.ndarray, columns: np.ndarray, workers: Workers) -> np.ndarray:
        """The levels of the cells (rows_p, columns_p): those whose thresholds the scores reach.

        Scores and thresholds are averaged over the scorers, not levels: the answer is a level.
        """

        def levels(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            margins = np.zeros((rows.size, self.levels.size - 1))
            for scorer in self.scorers:
                add_margins(scorer, rows, columns, margins)
            return self.levels[(margins >= 0).sum(axis=1)]

        return self._over_cells(levels, rows, columns, workers)

    def mean(self, rows: np.ndarray, columns: np.ndarray, workers: Workers) -> np.ndarray:
        """The means over the scorers of the levels that each predicts."""

        def means(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            total = np.zeros(rows.size)
            for scorer in self.scorers:
                add_levels(scorer, self.levels, rows, columns, total)
            return total / len(self.scorers)

        return self._over_cells(means, rows, columns, workers)

    def _over_cells(self, answer, rows: np.ndarray, columns: np.ndarray, workers: Workers):
        """An answer for every cell, in blocks, on all threads."""
        out = np.empty(len(rows))

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, _BLOCK):
                block = slice(first, min(first + _BLOCK, stop))
                out[block] = answer(rows[block], columns[block])

        cost = sum(scorer.left.shape[1] + self.levels.size for scorer in self.scorers)
        workers.for_rows(work, cost * np.arange(len(rows) + 1))
        return out

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Predictions for all cells of the given rows and columns: a matrix."""
        i, j = np.repeat(rows, len(columns)), np.tile(columns, len(rows))
        with Workers(1) as alone:
            return self.predict(i, j, alone).reshape(len(rows), len(columns))
