"""Draws of complete tables whose columns have different kinds of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fillrank.posterior.imputation import Imputations
from fillrank.posterior.kind_predictions import between, levels_of
from fillrank.table.latent import Coding, latent_ends

if TYPE_CHECKING:
    from fillrank.posterior.low_rank import LowRankPosterior


class KindImputations(Imputations):
    """Draws of what would be observed, in the values of each column."""

    def __init__(self, low_rank: LowRankPosterior, coding: Coding, n: int, seed: int):
        super().__init__(low_rank, n, seed)
        self._coding = coding

    def row(self, number: int, i: int) -> np.ndarray:
        """The values of an imputation in all cells of a row."""
        latent, coding, drawn = super().row(number, i), self._coding, self.draw(number)
        thresholds = drawn.thresholds_of(np.array([i]))
        out = np.empty(coding.scale_of.size)
        for j in range(out.size):
            scale = coding.scale(j)
            own = latent[coding.first_latent[j] : coding.first_latent[j + 1], np.newaxis]
            if scale.has_levels:
                out[j] = levels_of(scale, own, drawn.limits, thresholds)[0]
            else:
                out[j] = scale.restored(own[0])[0]
        return out

    def replicate(
        self, number: int, rows: np.ndarray, columns: np.ndarray, weights: np.ndarray | None
    ) -> np.ndarray:
        """New observations of the cells under a draw, in the values of each column."""
        rng, coding, drawn = self._replication(number), self._coding, self.draw(number)
        out = np.empty(len(rows))
        for scale, mine in coding.by_scale(columns):
            i, first = rows[mine], coding.first_latent[columns[mine]]
            own = None if weights is None else weights[mine]
            latent = np.array(
                [self._noisy(number, i, first + k, own, rng) for k in range(scale.n_latent)]
            )
            if scale.has_levels:
                out[mine] = levels_of(scale, latent, drawn.limits, drawn.thresholds_of(i))
            else:
                out[mine] = scale.restored(latent[0])
        return out

    def within(
        self, number: int, rows: np.ndarray, columns: np.ndarray, ends: np.ndarray
    ) -> np.ndarray:
        """Draws of values that are known to be in intervals with the ends (cells, 2)."""
        drawn, coding = self.draw(number), self._coding
        u = np.random.default_rng([self._seed, number]).random(len(rows))
        latent = coding.first_latent[columns]
        z, s = drawn.at(rows, latent), np.sqrt(drawn.noise.at(rows, latent))
        out = np.empty(len(rows))
        for scale, mine in coding.by_scale(columns):
            low, high = (latent_ends(scale, ends[mine]) - z[mine]) / s[mine]
            out[mine] = scale.restored(z[mine] + s[mine] * between(low, high, u[mine]))
        return np.clip(out, *ends.T)
