"""The posterior of a completed matrix of numbers: draws of a low-rank signal and their mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from fillrank.errors import InputError, NotSupportedError, Setting
from fillrank.features.blocks import NO_BLOCKS, Block, Blocks
from fillrank.features.new_rows import (
    Axis,
    is_given,
    known_blocks,
    new_values,
    side_of,
    with_new_side,
    with_values_at,
)
from fillrank.kernels.gaussian_rows import NO_LIMITS
from fillrank.kernels.predictions import (
    Student,
    pair_values,
    restored_pair_values,
    student,
)
from fillrank.noise.laws import LAWS, LawName
from fillrank.posterior.fold_in import FixedNoise, RowFeatures, fold_in_rows
from fillrank.posterior.imputation import Imputations
from fillrank.posterior.predictive import (
    Kind,
    Statistic,
    log_densities,
    observed_quantiles,
    quantiles,
)
from fillrank.posterior.recommend import Top, TopQuery, best_by_draw, best_by_mean, best_by_quantile
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Draw, Noise
from fillrank.table.entries import Entries
from fillrank.table.latent import FAR, Coding
from fillrank.table.new_columns import LatentColumns
from fillrank.table.units import Units, location_and_scale, standardise_new

# The largest number of draws in a fitted model: enough for intervals, and files stay small.
MOST_DRAWS = 128
# Cells processed together: all draws of a block stay in cache.
_BLOCK = 2048
# Cells that a thread takes at a time.
_GRAIN = 256
# Singular values of the columns of a mean below this share of the largest are rounding errors.
_ROUNDING = 1e-5
# How often the solution of a solver is repeated to fold in new rows.
_COPIES = 64


def _share_out(work: Callable[[int, int], None], n_cells: int, cost: int, workers: Workers) -> None:
    """Call ``work(start, stop)`` on ranges that cover all cells, on all threads."""
    ends = np.arange(0, n_cells + _GRAIN, _GRAIN)
    ends[-1] = n_cells
    workers.for_rows(lambda first, last: work(int(ends[first]), int(ends[last])), cost * ends)


def _own_unit(values: np.ndarray) -> tuple[float, float]:
    """(location, scale) of a new column in its own unit."""
    if values.size < 2 or values.min() == values.max():
        raise InputError(
            "a new column needs at least two different values, because the columns of this model have "
            f"their own units; one of the columns has {np.unique(values).size}."
        )
    return location_and_scale(values, centre=True)


def _no_levels() -> NotSupportedError:
    return NotSupportedError(
        "this model has numbers only, so it has no probabilities of levels",
        advice=("Set the kind of a column in ", Setting("kinds", ...), " and fit again."),
    )


def _standard_intervals(
    entries: Entries, columns: np.ndarray, units: Units, intervals: np.ndarray | None
) -> tuple[Entries, np.ndarray]:
    """The entries, numbered anew, and the ends (2, k) of their intervals in standard units."""
    if intervals is None or not entries.cells.size:
        return entries, NO_LIMITS
    inside = np.flatnonzero(entries.cells >= 0)
    j = columns[inside]
    ends = (intervals[entries.cells[inside]].T - units.location[j]) / units.scale[j]
    cells = np.full(entries.n_entries, -1, dtype=np.int32)
    cells[inside] = np.arange(inside.size)
    return entries._replace(cells=cells), np.clip(ends, -FAR, FAR)


class _NewSide(NamedTuple):
    """New rows (or columns): their draws, their mean, and their values in each block of features."""

    draws: list[Draw]
    mean: Draw
    values: list[np.ndarray]


def _spliced(own: Draw, new: Draw, positions: np.ndarray, axis: Axis) -> Draw:
    """A draw with some of its rows (or columns) from another draw with the same columns (or rows)."""
    if axis == "columns":
        return _spliced(own.transpose(), new.transpose(), positions, "rows").transpose()
    left, precisions = own.left.copy(), own.noise.rows.copy()
    left[positions], precisions[positions] = new.left, new.noise.rows
    thresholds = own.row_thresholds
    if thresholds.size:
        thresholds = thresholds.copy()
        thresholds[positions] = new.row_thresholds
    noise = own.noise._replace(rows=precisions)
    return own._replace(left=left, noise=noise, row_thresholds=thresholds)


def _spliced_mean(mean: Draw, new: Draw, positions: np.ndarray, axis: Axis) -> Draw:
    """The same for the mean, whose columns have another basis than those of the new mean."""
    if axis == "columns":
        turned = _spliced_mean(mean.transpose(), new.transpose(), positions, "rows")
        return turned.transpose()
    turn = new.right.T.astype(np.float64) @ mean.right
    left = np.linalg.lstsq(turn, new.left.T.astype(np.float64), rcond=_ROUNDING)[0].T
    return _spliced(mean, new._replace(left=left), positions, "rows")


def _row_features(side: tuple[Block, ...], values: list[np.ndarray]) -> RowFeatures | None:
    """The blocks of fitted rows and their values for new ones; None without any."""
    if not side:
        return None
    return RowFeatures([block.values for block in side], values, known_blocks(values))


def _given_at(side: tuple[Block, ...], positions: np.ndarray) -> np.ndarray | None:
    """The values of given blocks at some positions, side by side."""
    given = [block.values[positions] for block in side if is_given(block)]
    return np.hstack(given) if given else None


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
    blocks : Blocks
        The features of rows and columns, whose weights the draws have.
    law : str
        The distribution of the noise of an entry: one of `fillrank.noise.laws`.
    """

    draws: list[Draw]
    units: Units
    mean: Draw
    has_draws: bool = True
    blocks: Blocks = NO_BLOCKS
    law: LawName = "gaussian"
    levels: None = None  # predictions are numbers
    scorers: tuple[()] = ()
    coding: None = None

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

    def predict(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        workers: Workers,
        statistic: Statistic = "auto",
    ) -> np.ndarray:
        """Posterior means of the cells (rows_p, columns_p).

        The distribution of a number is nearly symmetric, so other statistics are the same.
        """
        left, right = self.mean.left, self.mean.right
        location, scale, value_range = self.units
        units = (location, scale, *(value_range or (-np.inf, np.inf)))
        out = np.empty(len(rows))

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            restored_pair_values(left, right, rows[part], columns[part], units, out[part])

        _share_out(work, len(rows), left.shape[1], workers)
        return out

    def signals(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
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
                values = self.signals(rows[block], columns[block])
                low, high = quantiles(values, tails)
                if kind == "observation":
                    # Noise can also move a quantile inwards, if a few draws are far from the others.
                    scales = np.sqrt(self._noise(rows[block], columns[block]))
                    observed = observed_quantiles(values, scales, self._student(), tails)
                    low, high = np.minimum(low, observed[0]), np.maximum(high, observed[1])
                out[:, block] = low, high

        _share_out(work, len(rows), len(self.draws) * self.draws[0].left.shape[1], workers)
        low, high = self.units.restore(out, columns, out=out)
        return low, high

    def _noise(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The squared scale of the noise of every draw (draws, cells), in standard units."""
        return np.array([draw.noise.at(rows, columns) for draw in self.draws])

    def _student(self) -> Student:
        """The degrees of freedom of the noise of every draw, infinite if it is Gaussian, and its law."""
        degrees = np.array([draw.noise.degrees for draw in self.draws])
        return student(degrees, LAWS[self.law].compiled)

    def within(
        self, rows: np.ndarray, columns: np.ndarray, ends: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """Predictions of values that are known to be in intervals, moved into them."""
        return np.clip(self.predict(rows, columns, workers), *ends.T)

    def log_density(
        self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """Logarithms of the predictive density at new observations of the cells.

        The density is that of the mixture of N(signal, noise), or of another distribution of the noise,
        over the draws, in the units of the data. It does not end at the rating scale.
        """
        if not self.has_draws:
            raise NotSupportedError("the solution of a solver has no predictive density.")
        location, scale = self.units.location[columns], self.units.scale[columns]
        standard = (values - location) / scale
        degrees = self._student().degrees[:, np.newaxis]
        out = np.empty(len(rows))

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, _BLOCK):
                block = slice(first, min(first + _BLOCK, stop))
                distance = self.signals(rows[block], columns[block]) - standard[block]
                noise = self._noise(rows[block], columns[block])
                terms = log_densities(distance, noise, degrees, self.law)
                out[block] = logsumexp(terms, axis=0)

        _share_out(work, len(rows), len(self.draws) * self.draws[0].left.shape[1], workers)
        return out - np.log(len(self.draws)) - np.log(scale)

    def log_likelihood(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        weights: np.ndarray | None,
    ) -> np.ndarray:
        """Logarithms of the density of observed values under every draw, (draws, cells)."""
        location, scale = self.units.location[columns], self.units.scale[columns]
        distance = self.signals(rows, columns) - (values - location) / scale
        noise = self._noise(rows, columns)
        if weights is not None:
            noise = noise / weights
        degrees = self._student().degrees[:, np.newaxis]
        return log_densities(distance, noise, degrees, self.law) - np.log(scale)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Posterior means of all cells of the given rows and columns: a matrix."""
        left, right = self.mean.left, self.mean.right
        values = left[rows].astype(np.float64) @ right[columns].T
        return self.units.restore(values, columns, out=values)

    def average_prediction(
        self, rows: np.ndarray, columns: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """The same as `predict`: predictions are means over draws."""
        return self.predict(rows, columns, workers)

    @property
    def latent_columns(self) -> np.ndarray:
        """Each column is its own latent column."""
        return np.arange(self.shape[1])

    def probabilities(self, rows: np.ndarray, column: int, workers: Workers) -> np.ndarray:
        """Not supported: numbers have no levels."""
        raise _no_levels()

    @property
    def has_own_kinds(self) -> bool:
        """New columns are numbers as the others are."""
        return False

    @property
    def column_kinds(self) -> list[str]:
        """All are numbers."""
        return ["number"] * self.shape[1]

    @property
    def level_columns(self) -> np.ndarray:
        """None has levels: all are numbers."""
        return np.zeros(self.shape[1], dtype=bool)

    def level_values(self, column: int) -> np.ndarray:
        """Not supported: numbers have no levels."""
        raise _no_levels()

    @property
    def signal(self) -> LowRankPosterior:
        """Itself."""
        return self

    @property
    def low_rank(self) -> LowRankPosterior:
        """The posterior of the signal: itself."""
        return self

    def fold_in(
        self,
        entries: Entries,
        axis: Axis,
        workers: Workers,
        features: np.ndarray | None = None,
        intervals: np.ndarray | None = None,
    ) -> LowRankPosterior:
        """The posterior of new rows in the columns that were fitted, or of new columns in the rows.

        Parameters
        ----------
        entries : Entries
            Of the new rows (or columns), in the units of the data; the indices are positions of
            columns (or rows) at fit.
        axis : {"rows", "columns"}
        workers : Workers
            The result does not depend on their number.
        features : ndarray (n_new, p), optional
            The values of the new rows in the blocks of given features, side by side; zeros where they
            are not known. The pattern of missing values is that of the entries.
        intervals : ndarray (k, 2), optional
            The ends of the intervals of which the entries have numbers, in the units of the data.

        Notes
        -----
        New columns have the unit of the fitted columns if these share one. Otherwise the unit of a new
        column is the mean and standard deviation of its own entries; without two different entries it
        has no unit, and InputError is raised.
        """
        if axis == "rows":
            units, columns = self.units, entries.indices
        else:
            units, columns = self._units_of_new(entries)
        standard = entries._replace(values=standardise_new(entries.values, columns, units))
        standard, limits = _standard_intervals(standard, columns, units, intervals)
        return self.fold_in_standard(standard, axis, workers, features, limits, units)

    def fold_in_columns(
        self,
        entries: Entries,
        coding: Coding,
        workers: Workers,
        features: np.ndarray | None = None,
        intervals: np.ndarray | None = None,
    ) -> LowRankPosterior:
        """Not supported: new columns have no kinds of their own."""
        raise NotSupportedError("new columns of a table of numbers are numbers.")

    def fold_in_standard(
        self,
        entries: Entries,
        axis: Axis,
        workers: Workers,
        features: np.ndarray | None,
        limits: np.ndarray,
        units: Units,
    ) -> LowRankPosterior:
        """The same for entries in standard units; ``limits`` (2, k) are the ends of their intervals.

        ``units`` are those of the columns of the result.
        """
        new = self._regress(entries, axis, workers, features, limits)
        return self._with_new_side(entries, axis, new, units)

    def fold_in_latent(
        self,
        columns: LatentColumns,
        workers: Workers,
        features: np.ndarray | None,
        fixed: np.ndarray,
    ) -> LowRankPosterior:
        """The posterior of new latent columns; ``fixed`` (n,) marks fitted ones with fixed noise."""
        new = self._regress_latent(columns, workers, features, fixed)
        units = Units.equal(0.0, 1.0, columns.first.size, None)
        return self._with_new_side(columns.entries, "columns", new, units)

    def _with_new_side(
        self, entries: Entries, axis: Axis, new: _NewSide, units: Units
    ) -> LowRankPosterior:
        blocks = with_new_side(self.blocks, axis, new.values, entries.pointers.size - 1)
        return replace(self, draws=new.draws, units=units, mean=new.mean, blocks=blocks)

    def _regress(
        self,
        entries: Entries,
        axis: Axis,
        workers: Workers,
        features: np.ndarray | None,
        limits: np.ndarray = NO_LIMITS,
    ) -> _NewSide:
        """The draws of new rows (or columns), from their entries in standard units."""
        side = side_of(self.blocks, axis)
        values = new_values(side, entries, features)
        if axis == "columns":
            return self._regress_columns(entries, workers, values, limits)
        both = _row_features(side, values)
        draws, mean = fold_in_rows(
            self._sources(), self.mean, entries, workers, 0, both, limits, law=self.law
        )
        return self._new_side(draws, mean, values)

    def _regress_latent(
        self,
        columns: LatentColumns,
        workers: Workers,
        features: np.ndarray | None,
        fixed: np.ndarray,
    ) -> _NewSide:
        """The draws of new latent columns; those of one column share its pattern of missing values."""
        values = new_values(self.blocks.columns, columns.entries, features)
        values = [each[columns.first] for each in values]
        noise = FixedNoise(fixed, columns.fixed)
        return self._regress_columns(columns.entries, workers, values, columns.limits, noise)

    def _regress_columns(
        self,
        entries: Entries,
        workers: Workers,
        values: list[np.ndarray],
        limits: np.ndarray,
        fixed: FixedNoise | None = None,
    ) -> _NewSide:
        turned, mean = [draw.transpose() for draw in self._sources()], self.mean.transpose()
        both = _row_features(self.blocks.columns, values)
        # Another seed: the draws of new columns are independent of those of new rows.
        draws, mean = fold_in_rows(turned, mean, entries, workers, 1, both, limits, fixed, self.law)
        return self._new_side([draw.transpose() for draw in draws], mean.transpose(), values)

    def _sources(self) -> list[Draw]:
        """The draws under which new rows are drawn."""
        return _COPIES * self.draws if self._is_repeated else self.draws

    def _new_side(self, draws: list[Draw], mean: Draw, values: list[np.ndarray]) -> _NewSide:
        if self._is_repeated:
            mean = mean._replace(limits=self.draws[0].limits)
            draws = [mean]
        return _NewSide(draws, mean, values)

    @property
    def _is_repeated(self) -> bool:
        """Whether the only draw, a solution, is repeated to fold in new rows.

        That is the case if weights or latent numbers of new entries are drawn: then the mean over many
        copies hardly depends on chance.
        """
        only = self.draws[0]
        return not self.has_draws and (only.limits.size > 0 or only.noise.degrees < np.inf)

    def update(
        self,
        entries: Entries,
        positions: np.ndarray,
        axis: Axis,
        workers: Workers,
        source: LowRankPosterior,
        intervals: np.ndarray | None = None,
    ) -> LowRankPosterior:
        """The same with some rows (or columns) drawn again, given all of their entries.

        Parameters
        ----------
        entries : Entries
            All entries of these rows, in the units of the data.
        positions : ndarray
            The positions of these rows.
        axis : {"rows", "columns"}
        workers : Workers
        source : LowRankPosterior
            The posterior whose rows are the prior: that of the fit.
        intervals : ndarray (k, 2), optional
            As in `fold_in`.
        """
        columns = entries.indices
        if axis == "columns":
            columns = np.repeat(positions, np.diff(entries.pointers))
        standard = entries._replace(values=standardise_new(entries.values, columns, self.units))
        standard, limits = _standard_intervals(standard, columns, self.units, intervals)
        return self.update_standard(standard, positions, axis, workers, source, limits)

    def update_standard(
        self,
        entries: Entries,
        positions: np.ndarray,
        axis: Axis,
        workers: Workers,
        source: LowRankPosterior,
        limits: np.ndarray,
    ) -> LowRankPosterior:
        """The same for entries in standard units, as in `fold_in_standard`."""
        features = _given_at(side_of(self.blocks, axis), positions)
        new = source._regress(entries, axis, workers, features, limits)
        return self._with_side_at(positions, axis, new)

    def update_latent(
        self,
        columns: LatentColumns,
        workers: Workers,
        source: LowRankPosterior,
        fixed: np.ndarray,
    ) -> LowRankPosterior:
        """The same with some latent columns drawn again, as in `fold_in_latent`."""
        features = _given_at(self.blocks.columns, columns.positions)
        new = source._regress_latent(columns, workers, features, fixed)
        return self._with_side_at(columns.positions, "columns", new)

    def _with_side_at(self, positions: np.ndarray, axis: Axis, new: _NewSide) -> LowRankPosterior:
        side = side_of(self.blocks, axis)
        blocks = self.blocks._replace(**{axis: with_values_at(side, positions, new.values)})
        mean = _spliced_mean(self.mean, new.mean, positions, axis)
        draws = [mean]
        if len(self.draws) > 1 or side:  # otherwise the only draw is the mean
            draws = [
                _spliced(own, other, positions, axis)
                for own, other in zip(self.draws, new.draws, strict=True)
            ]
        return replace(self, draws=draws, mean=mean, blocks=blocks)

    def noise_scales(self) -> tuple[np.ndarray, np.ndarray]:
        """Posterior means of the noise standard deviation of each row, and of each column.

        Those of rows are in the units of the data, or in standard units if columns have their own; that
        of a column is in its unit. For Student-t noise they are scales.
        """
        sd = np.sqrt(LAWS[self.law].variance)
        rows = np.mean([draw.noise.row_scales() for draw in self.draws], axis=0)
        columns = np.mean([draw.noise.column_scales() for draw in self.draws], axis=0)
        return sd * self.units.shared_scale * rows, sd * self.units.scale * columns

    def _units_of_new(self, entries: Entries) -> tuple[Units, np.ndarray]:
        """The units of new columns, and the number of the new column of each entry."""
        sizes = np.diff(entries.pointers)
        n = sizes.size
        location, scale, value_range = self.units
        if self.units.are_shared:
            units = Units.equal(float(location[0]), float(scale[0]), n, value_range)
        else:
            parts = np.split(entries.values, entries.pointers[1:-1])
            own = np.array([_own_unit(values) for values in parts]).reshape(n, 2)
            units = Units(own[:, 0].copy(), own[:, 1].copy(), value_range)
        return units, np.repeat(np.arange(n), sizes)

    def top(self, query: TopQuery, workers: Workers) -> Top:
        """The best columns of some rows, by values in the units of the data as users see them.

        If columns have their own units, numbers of different units are compared.
        """
        if not self.units.are_shared:
            return self._in_units_of_data().top(query, workers)
        if query.by == "mean":
            top = best_by_mean(self.mean, query, workers)
        elif query.by == "cautious":
            top = best_by_quantile(self.draws, self.mean, query, workers)
        else:
            top = best_by_draw(self.draws, query, workers)
        # At the end, since all scores beyond the rating scale would be equal.
        return top._replace(scores=self.units.restore(top.scores, top.columns))

    def _in_units_of_data(self) -> LowRankPosterior:
        """The same signal with the units as part of the factors; without its noise."""
        location, scale, value_range = self.units

        def convert(draw: Draw) -> Draw:
            left = np.column_stack([draw.left, np.ones(len(draw.left))])
            right = np.column_stack([scale[:, np.newaxis] * draw.right, location])
            return Draw(left, right, Noise.equal(0.0, self.shape))

        draws = [convert(draw) for draw in self.draws]
        units = Units.equal(0.0, 1.0, self.shape[1], value_range)
        return LowRankPosterior(draws, units, convert(self.mean), self.has_draws)

    def imputations(self, n: int, seed: int) -> Imputations:
        """Draws of complete tables."""
        return Imputations(self, n, seed)
