"""Draws of complete tables, for multiple imputation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fillrank.noise.laws import LAWS
from fillrank.samplers.model import Draw

if TYPE_CHECKING:
    from fillrank.posterior.low_rank import LowRankPosterior


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
        if self._law == "gaussian":
            noise = rng.standard_normal(n_columns)
        else:
            noise = LAWS[self._law].quantile(rng.random(n_columns))
        if degrees < np.inf:  # a t variable is normal with a random precision
            noise /= np.sqrt(rng.chisquare(degrees, n_columns) / degrees)
        signal = draw.right @ draw.left[i]
        every = slice(None)
        return self._units.restore(signal + np.sqrt(draw.noise.at(i, every)) * noise, every)

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
