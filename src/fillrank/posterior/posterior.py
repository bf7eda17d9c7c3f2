"""The posterior of the completed matrix, asked by position and answered in the data's own units."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from fillrank.kernels.pairs import mixture_quantiles, pair_values
from fillrank.kernels.workers import Workers
from fillrank.samplers.draw import Draw

Kind = Literal["signal", "observation"]
# Cells worked on at once: all draws of a block stay in cache.
_BLOCK = 2048


class Units(NamedTuple):
    """How standard units become the data's: location + scale * value; and the rating scale, if any."""

    location: float
    scale: float
    value_range: tuple[float, float] | None

    def restore(self, values: np.ndarray) -> np.ndarray:
        """Values in the data's units, within the rating scale."""
        values = self.location + self.scale * values
        return values if self.value_range is None else np.clip(values, *self.value_range)


class Posterior(NamedTuple):
    """Draws of the signal, and what can be asked of them.

    Rows and columns are positions here; the estimators know names.
    """

    draws: list[Draw]
    units: Units

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.draws[0].left), len(self.draws[0].right)

    def predict(self, rows: np.ndarray, columns: np.ndarray, workers: Workers) -> np.ndarray:
        """Posterior means of the cells (rows_p, columns_p)."""
        means = self._over_cells(lambda v: v.mean(axis=0), 1, rows, columns, workers)
        return self.units.restore(means[0])

    def _over_cells(
        self,
        summary: Callable[[np.ndarray], np.ndarray],
        n_summaries: int,
        rows: np.ndarray,
        columns: np.ndarray,
        workers: Workers,
    ) -> np.ndarray:
        """A summary over the draws for every cell (n_summaries, cells), in blocks, on all threads."""
        out = np.empty((n_summaries, len(rows)))

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, _BLOCK):
                block = slice(first, min(first + _BLOCK, stop))
                out[:, block] = summary(self._values(rows[block], columns[block]))

        cost = len(self.draws) * self.draws[0].left.shape[1]
        workers.for_rows(work, cost * np.arange(len(rows) + 1))
        return out

    def _values(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The signal of every draw (draws, cells), in standard units."""
        values = np.empty((len(self.draws), len(rows)))
        for draw, out in zip(self.draws, values, strict=True):
            pair_values(draw.left, draw.right, rows, columns, out)
        return values

    def interval(
        self, rows: np.ndarray, columns: np.ndarray, level: float, kind: Kind, workers: Workers
    ) -> tuple[np.ndarray, np.ndarray]:
        """Equal-tailed intervals (low, high) of the cells, for the signal or for a new observation."""
        tails = (0.5 * (1.0 - level), 0.5 * (1.0 + level))

        def quantiles(values: np.ndarray) -> np.ndarray:
            if kind == "signal":
                return np.quantile(values, tails, axis=0)
            return self._observed(values, tails)

        low, high = self.units.restore(self._over_cells(quantiles, 2, rows, columns, workers))
        return low, high

    def _observed(self, values: np.ndarray, tails: tuple[float, float]) -> np.ndarray:
        """Quantiles of a new observation: of the mixture of N(value, noise) over the draws."""
        noise = np.array([draw.noise_variance for draw in self.draws])
        spread = np.sqrt(values.var(axis=0) + noise.mean())
        out = np.empty((2, values.shape[1]))
        for tail, row in zip(tails, out, strict=True):
            start = values.mean(axis=0) + ndtri(tail) * spread
            mixture_quantiles(values, np.sqrt(noise), tail, start, row)
        return out

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Posterior means of all cells of the given rows and columns: a matrix."""
        total = np.zeros((len(rows), len(columns)))
        for draw in self.draws:
            total += draw.left[rows] @ draw.right[columns].T
        return self.units.restore(total / len(self.draws))
