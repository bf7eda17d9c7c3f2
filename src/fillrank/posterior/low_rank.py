"""The posterior of a completed matrix of numbers: draws of a low-rank signal and their mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtri

from fillrank.errors import NotSupportedError
from fillrank.kernels.predictions import mixture_quantiles, pair_values, restored_pair_values
from fillrank.posterior.fold_in import fold_in_rows
from fillrank.posterior.imputation import Imputations
from fillrank.posterior.recommend import Top, TopQuery, best_by_draw, best_by_mean, best_by_quantile
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Draw
from fillrank.table.entries import Entries
from fillrank.table.units import standardise_new

Axis = Literal["rows", "columns"]
Kind = Literal["signal", "observation"]
# The largest number of draws in a fitted model: enough for intervals, and files stay small.
MOST_DRAWS = 128
# Cells processed together: all draws of a block stay in cache.
_BLOCK = 2048
# Cells that a thread takes at a time.
_GRAIN = 256


class Units(NamedTuple):
    """The conversion from standard units: location + scale * value; and the rating scale, if any."""

    location: float
    scale: float
    value_range: tuple[float, float] | None

    def restore(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Values in the data's units, clipped to the rating scale; in ``out``, if it is given."""
        values = np.multiply(self.scale, values, out=out)
        values += self.location
        return values if self.value_range is None else values.clip(*self.value_range, out=values)


def quantiles(values: np.ndarray, probabilities: Any) -> np.ndarray:
    """Quantiles over draws (draws, cells): one more draw is below them with these probabilities.

    That is the position p (T + 1) among T sorted draws. numpy's usual p (T - 1) + 1 makes intervals of
    few draws too narrow: the coverage of a nominal 90% would be 88.6% with 128 draws.
    """
    return np.quantile(values, probabilities, axis=0, method="weibull")


def _share_out(work: Callable[[int, int], None], n_cells: int, cost: int, workers: Workers) -> None:
    """Call ``work(start, stop)`` on ranges that cover all cells, on all threads."""
    ends = np.arange(0, n_cells + _GRAIN, _GRAIN)
    ends[-1] = n_cells
    workers.for_rows(lambda first, last: work(int(ends[first]), int(ends[last])), cost * ends)


@dataclass(frozen=True)
class LowRankPosterior:
    """Draws of a low-rank signal, and their mean.

    Parameters
    ----------
    draws : list of Draw
        In standard units.
    units : Units
    mean : Draw
        It may be the mean of more draws than are stored.
    has_draws : bool
        Whether ``draws`` are draws of a posterior. If not, there is one: the solution of a solver.
    """

    draws: list[Draw]
    units: Units
    mean: Draw
    has_draws: bool = True
    levels: None = None  # predictions are numbers

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.mean.left), len(self.mean.right)

    @property
    def n_draws(self) -> int:
        """The number of stored draws; 0 for the solution of a solver."""
        return len(self.draws) if self.has_draws else 0

    @property
    def new_row_nbytes(self) -> int:
        """The memory that a new row takes while it is folded in."""
        return 8 * len(self.draws) * max(1, self.draws[0].left.shape[1])

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Factors (left, right) whose product is the mean signal in standard units."""
        return self.mean.left, self.mean.right

    def predict(self, rows: np.ndarray, columns: np.ndarray, workers: Workers) -> np.ndarray:
        """Posterior means of the cells (rows_p, columns_p)."""
        left, right, _ = self.mean
        location, scale, value_range = self.units
        units = (location, scale, *(value_range or (-np.inf, np.inf)))
        out = np.empty(len(rows))

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            restored_pair_values(left, right, rows[part], columns[part], units, out[part])

        _share_out(work, len(rows), left.shape[1], workers)
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
        out = np.empty((2, len(rows)))

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, _BLOCK):
                block = slice(first, min(first + _BLOCK, stop))
                values = self._values(rows[block], columns[block])
                low, high = quantiles(values, tails)
                if kind == "observation":
                    # Noise can also move a quantile inwards, if a few draws are far from the others.
                    observed = self._observed(values, tails)
                    low, high = np.minimum(low, observed[0]), np.maximum(high, observed[1])
                out[:, block] = low, high

        _share_out(work, len(rows), len(self.draws) * self.draws[0].left.shape[1], workers)
        low, high = self.units.restore(out, out=out)
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

    def log_density(
        self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """Logarithms of the predictive density at new observations of the cells.

        The density is that of the mixture of N(signal, noise) over the draws, in the units of the data.
        It does not end at the rating scale.
        """
        if not self.has_draws:
            raise NotSupportedError("the solution of a solver has no predictive density.")
        standard, scale = self._standardise(values)
        noise = self._noise_variances()
        normaliser = 0.5 * np.log(2.0 * np.pi * noise)
        out = np.empty(len(rows))

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, _BLOCK):
                block = slice(first, min(first + _BLOCK, stop))
                distance = self._values(rows[block], columns[block]) - standard[block]
                with np.errstate(over="ignore"):  # a value beyond all range has the density 0
                    terms = -0.5 * distance**2 / noise - normaliser
                out[block] = logsumexp(terms, axis=0)

        _share_out(work, len(rows), len(self.draws) * self.draws[0].left.shape[1], workers)
        return out - np.log(len(self.draws)) - np.log(scale)

    def _standardise(self, values: np.ndarray) -> tuple[np.ndarray, float]:
        """Values in standard units, and the scale by which they were divided."""
        return (values - self.units.location) / self.units.scale, self.units.scale

    def _noise_variances(self) -> np.ndarray:
        """The noise variance of every draw (draws, 1), in standard units."""
        return np.array([[draw.noise_variance] for draw in self.draws])

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Posterior means of all cells of the given rows and columns: a matrix."""
        left, right, _ = self.mean
        values = left[rows].astype(np.float64) @ right[columns].T
        return self.units.restore(values, out=values)

    def average_prediction(
        self, rows: np.ndarray, columns: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """The same as `predict`: predictions are means over draws."""
        return self.predict(rows, columns, workers)

    def fold_in(self, entries: Entries, axis: Axis, workers: Workers) -> LowRankPosterior:
        """The posterior of new rows in the columns that were fitted, or of new columns in the rows.

        Parameters
        ----------
        entries : Entries
            Of the new rows (or columns), in the units of the data; the indices are positions of
            columns (or rows) at fit.
        axis : {"rows", "columns"}
        workers : Workers
            The result does not depend on their number.
        """
        location, scale, _ = self.units
        standard = entries._replace(values=standardise_new(entries.values, location, scale))
        if axis == "rows":
            draws, mean = fold_in_rows(self.draws, self.mean, standard, workers)
            return LowRankPosterior(draws, self.units, mean, self.has_draws)
        # Another seed: the draws of new columns are independent of those of new rows.
        other = self.transpose()
        draws, mean = fold_in_rows(other.draws, other.mean, standard, workers, seed=1)
        return LowRankPosterior(draws, self.units, mean, self.has_draws).transpose()

    def transpose(self) -> LowRankPosterior:
        """The posterior of the transposed table."""
        draws = [_transpose(draw) for draw in self.draws]
        return LowRankPosterior(draws, self.units, _transpose(self.mean), self.has_draws)

    def top(self, query: TopQuery, workers: Workers) -> Top:
        """The best columns of some rows."""
        if query.by == "mean":
            top = best_by_mean(self.mean, query, workers)
        elif query.by == "cautious":
            top = best_by_quantile(self.draws, self.mean, query, workers)
        else:
            top = best_by_draw(self.draws, query, workers)
        # At the end, since all scores beyond the rating scale would be equal.
        return top._replace(scores=self.units.restore(top.scores))

    def imputations(self, n: int, seed: int) -> Imputations:
        """Draws of complete tables."""
        return Imputations(self, n, seed)


def _transpose(draw: Draw) -> Draw:
    return Draw(draw.right, draw.left, draw.noise_variance)
