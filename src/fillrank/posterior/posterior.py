"""The posterior of the completed matrix, asked by position and answered in the data's own units."""

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from fillrank.kernels.pairs import mixture_quantiles, pair_values
from fillrank.kernels.workers import Workers
from fillrank.samplers.draw import Draw

Kind = Literal["signal", "observation"]
# The most draws that a fitted model has: enough for intervals, few enough for small files.
MOST_DRAWS = 128
# Cells worked on at once: all draws of a block stay in cache.
_BLOCK = 2048


class Units(NamedTuple):
    """How standard units become the data's: location + scale * value; and the rating scale, if any."""

    location: float
    scale: float
    value_range: tuple[float, float] | None

    def restore(self, values: np.ndarray) -> np.ndarray:
        """Values in the data's units, within the rating scale."""
        values = self.scale * values
        values += self.location
        return (
            values if self.value_range is None else np.clip(values, *self.value_range, out=values)
        )


def quantiles(values: np.ndarray, probabilities: Any) -> np.ndarray:
    """Quantiles over draws (draws, cells) such that one more draw is below them as often as they say.

    That is the position p (T + 1) among T sorted draws. numpy's usual p (T - 1) + 1 makes intervals
    of few draws too narrow: a nominal 90% would hold 88.6% with 128 of them.
    """
    return np.quantile(values, probabilities, axis=0, method="weibull")


class Posterior(NamedTuple):
    """Draws of the signal, their mean, and what can be asked of them.

    The mean may be that of more draws than are kept. Rows and columns are positions here; the
    estimators know names.
    """

    draws: list[Draw]
    units: Units
    mean: Draw

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.mean.left), len(self.mean.right)

    def predict(self, rows: np.ndarray, columns: np.ndarray, workers: Workers) -> np.ndarray:
        """Posterior means of the cells (rows_p, columns_p)."""
        left, right, _ = self.mean
        out = np.empty(len(rows))

        def work(start: int, stop: int) -> None:
            pair_values(left, right, rows[start:stop], columns[start:stop], out[start:stop])

        workers.for_rows(work, left.shape[1] * np.arange(len(rows) + 1))
        return self.units.restore(out)

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
        out = np.empty((2, len(rows)))

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, _BLOCK):
                block = slice(first, min(first + _BLOCK, stop))
                values = self._values(rows[block], columns[block])
                if kind == "signal":
                    out[:, block] = quantiles(values, tails)
                else:
                    out[:, block] = self._observed(values, tails)

        cost = len(self.draws) * self.draws[0].left.shape[1]
        workers.for_rows(work, cost * np.arange(len(rows) + 1))
        low, high = self.units.restore(out)
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
        left, right, _ = self.mean
        return self.units.restore(left[rows].astype(np.float64) @ right[columns].T)
