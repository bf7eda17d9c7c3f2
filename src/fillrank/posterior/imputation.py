"""Draws of complete tables, for multiple imputation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fillrank.kernels.predictions import pair_values
from fillrank.noise.laws import LAWS
from fillrank.samplers.model import Draw

if TYPE_CHECKING:
    from fillrank.posterior.low_rank import LowRankPosterior


# What tells the seeds of replicated data from those of imputations.
_REPLICATION = 1


class Imputations:
    """Draws of what would be observed in any cells, which do not depend on how cells are queried.

    Each is one of the stored draws, spread over the run, plus a draw of its noise. The noise of a row
    depends only on the seed, the number of the imputation and the position of the row.
    """

    def __init__(self, posterior: LowRankPosterior, n: int, seed: int):
        self.n = n
        self._seed = seed
        self._units = posterior.units
        self._law = posterior.law
        chosen = np.linspace(0, len(posterior.draws) - 1, n).round().astype(int)
        self._draws = [posterior.draws[t] for t in chosen]

    def draw(self, number: int) -> Draw:
        """The stored draw of an imputation."""
        return self._draws[number]

    def row(self, number: int, i: int) -> np.ndarray:
        """The values of an imputation in all cells of a row."""
        draw = self._draws[number]
        n_columns, degrees = len(draw.right), draw.noise.degrees
        rng = np.random.default_rng([self._seed, number, i])
        noise = self._standard_noise(n_columns, degrees, rng)
        signal = draw.right @ draw.left[i]
        every = slice(None)
        return self._units.restore(signal + np.sqrt(draw.noise.at(i, every)) * noise, every)

    def _standard_noise(self, n: int, degrees: float, rng: np.random.Generator) -> np.ndarray:
        """Noise of scale 1, from the distribution of the model."""
        if self._law != "gaussian":
            return LAWS[self._law].quantile(rng.random(n))
        noise = rng.standard_normal(n)
        if degrees < np.inf:  # a t variable is normal with a random precision
            noise /= np.sqrt(rng.chisquare(degrees, n) / degrees)
        return noise

    def replicate(
        self, number: int, rows: np.ndarray, columns: np.ndarray, weights: np.ndarray | None
    ) -> np.ndarray:
        """New observations of the cells (rows_p, columns_p) under a draw, for predictive checks.

        They have another noise than those of `row`. ``weights`` divide the variance of the noise.
        """
        latent = self._noisy(number, rows, columns, weights, self._replication(number))
        return self._units.restore(latent, columns)

    def _replication(self, number: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, number, 0, _REPLICATION])

    def _noisy(
        self,
        number: int,
        rows: np.ndarray,
        columns: np.ndarray,
        weights: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """The signal of cells with noise, in standard units."""
        draw = self._draws[number]
        signal, degrees = np.empty(len(rows)), draw.noise.degrees
        pair_values(draw.left, draw.right, rows, columns, signal)
        noise = self._standard_noise(len(rows), degrees, rng)
        variance = draw.noise.at(rows, columns)
        return signal + np.sqrt(variance if weights is None else variance / weights) * noise

    def within(
        self, number: int, rows: np.ndarray, columns: np.ndarray, ends: np.ndarray
    ) -> np.ndarray:
        """Values in intervals with the ends (cells, 2): those of the imputation, moved into them."""
        return np.clip(self.at(number, rows, columns), *ends.T)

    def at(self, number: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The values of an imputation in the cells (rows_p, columns_p), which are sorted by row."""
        out = np.empty(len(rows))
        distinct, first = np.unique(rows, return_index=True)
        for i, start, stop in zip(distinct, first, [*first[1:], len(rows)], strict=True):
            out[start:stop] = self.row(number, int(i))[columns[start:stop]]
        return out
