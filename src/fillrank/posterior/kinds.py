"""The posterior of a table whose columns have different kinds of values, or one kind but numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.special import logsumexp

from fillrank.errors import NotSupportedError
from fillrank.features.blocks import Blocks
from fillrank.features.new_rows import Axis
from fillrank.kernels.predictions import pair_values
from fillrank.noise.laws import LAWS
from fillrank.posterior.kind_imputations import KindImputations
from fillrank.posterior.kind_predictions import (
    Latent,
    level_log_likelihood,
    level_probabilities,
    level_quantile,
    log_density,
    mean_value,
    mean_within,
)
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.posterior.predictive import Kind, Statistic
from fillrank.posterior.recommend import Top, TopQuery
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Draw
from fillrank.table.entries import Entries
from fillrank.table.labels import format_labels
from fillrank.table.latent import Coding, Scale, encode, latent_ends
from fillrank.table.new_columns import LatentColumns, encode_columns
from fillrank.table.units import Units

# Cells computed together.
_BLOCK = 2048
# Cells that a thread takes at a time.
_GRAIN = 64
# Draws that represent all of them in complete tables of many cells.
_FEW_DRAWS, _MANY_CELLS = 16, 2_000_000
# The probability of a level that the fit has not seen.
_UNSEEN = 1e-6
# Columns that are ranked beyond those asked for.
_MORE_TO_RANK = 100
# The level of an interval whose ends are both the median.
_NARROW = 1e-9


def _blocks(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Ranges of cells that are computed together; a last single one is not left alone."""
    ends = [*range(start, max(stop - 1, start + 1), _BLOCK), stop]
    return pairwise(ends)


@dataclass(frozen=True)
class KindPosterior:
    """The posterior of the latent numbers of a table, and how its values follow from them.

    Parameters
    ----------
    low_rank : LowRankPosterior
        Of the latent table, in standard units. Its draws have the ends of the intervals of levels.
    coding : Coding
    """

    low_rank: LowRankPosterior
    coding: Coding
    levels: None = None  # those of max-margin methods
    scorers: tuple[()] = ()

    @property
    def has_draws(self) -> bool:
        """Whether there are draws; if not, there is the solution of a solver."""
        return self.low_rank.has_draws

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.low_rank.shape[0], self.coding.scale_of.size

    @property
    def units(self) -> Units:
        """The units of columns of numbers; those of other columns are standard units."""
        scales = [self.coding.scales[g] for g in self.coding.scale_of]
        location = np.array([each.location for each in scales])
        scale = np.array([each.scale for each in scales])
        first = self.coding.scales[0]
        is_one = len(self.coding.scales) == 1 and first.kind == "ordered"
        value_range = (float(first.levels.min()), float(first.levels.max())) if is_one else None
        return Units(location, scale, value_range)

    @property
    def n_draws(self) -> int:
        """The number of stored draws."""
        return self.low_rank.n_draws

    @property
    def blocks(self) -> Blocks:
        """The features of rows and of latent columns."""
        return self.low_rank.blocks

    @property
    def new_row_nbytes(self) -> int:
        """The memory that a new row takes while it is folded in."""
        return self.low_rank.new_row_nbytes

    @property
    def signal(self) -> KindPosterior:
        """Itself."""
        return self

    @property
    def latent_columns(self) -> np.ndarray:
        """The column of each latent column."""
        return self.coding.column_of

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Factors (left, right) whose product is the mean of the first latent number of each column."""
        left, right = self.low_rank.factors()
        return left, right[self.coding.first_latent[:-1]]

    # Single cells

    def predict(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        workers: Workers,
        statistic: Statistic = "auto",
    ) -> np.ndarray:
        """Predictions of the cells (rows_p, columns_p).

        Those of levels that are text are their codes. With "auto", numbers have their mean, ordered
        levels the median, and two values or categories the most probable one, which categories have
        with every statistic.
        """

        def one(scale: Scale, i: np.ndarray, j: np.ndarray) -> np.ndarray:
            return self._statistic(scale, i, j, statistic, self.low_rank.draws)

        return self._over_cells(one, rows, columns, workers)

    def average_prediction(
        self, rows: np.ndarray, columns: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """Means, also of ordered levels."""
        return self.predict(rows, columns, workers, "mean")

    def probabilities(self, rows: np.ndarray, column: int, workers: Workers) -> np.ndarray:
        """The probabilities (cells, levels) of the levels of a column, as `level_values` has them."""
        scale = self.coding.scale(column)
        if not scale.has_levels:
            raise NotSupportedError(
                f"column {format_labels([self.coding.labels[column]])} has no levels: its values are "
                f"{scale.kind!r}. predict_interval says how certain they are."
            )
        out = np.empty((len(rows), scale.levels.size))

        def work(start: int, stop: int) -> None:
            for first, last in _blocks(start, stop):
                part = slice(first, last)
                at = np.full(out[part].shape[0], column)
                out[part] = self._level_probabilities(scale, rows[part], at, self.low_rank.draws)

        self._share_out(work, len(rows), workers)
        return out[:, np.argsort(scale.levels)]

    @property
    def has_own_kinds(self) -> bool:
        """Whether new columns have kinds of their own: not if all columns share one scale."""
        return len(self.coding.scales) > 1 or self.coding.scales[0].n_latent > 1

    @property
    def column_kinds(self) -> list[str]:
        """The kind of the values of each column."""
        return [self.coding.scales[g].kind for g in self.coding.scale_of]

    @property
    def level_columns(self) -> np.ndarray:
        """Whether the values of each column are levels."""
        has_levels = np.array([each.has_levels for each in self.coding.scales])
        return has_levels[self.coding.scale_of]

    def level_values(self, column: int) -> np.ndarray:
        """The values of the levels of a column, ascending."""
        return np.sort(self.coding.scale(column).levels)

    def interval(
        self, rows: np.ndarray, columns: np.ndarray, level: float, kind: Kind, workers: Workers
    ) -> tuple[np.ndarray, np.ndarray]:
        """Credible intervals (low, high) of the cells; NaN for categories, which have no order."""
        out = np.empty((2, len(rows)))
        alone = Workers(1)

        def one(scale: Scale, i: np.ndarray, j: np.ndarray) -> np.ndarray:
            return np.array(self._interval(scale, i, j, level, kind, alone))

        self._over_cells(one, rows, columns, workers, out)
        return out[0], out[1]

    def within(
        self, rows: np.ndarray, columns: np.ndarray, ends: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """Means of values that are known to be in intervals with the ends (cells, 2)."""
        out = np.empty(len(rows))
        for scale, mine in self.coding.by_scale(columns):
            for first in range(0, mine.size, _BLOCK):
                at = mine[first : first + _BLOCK]
                latent = self._latent(rows[at], columns[at], 0, self.low_rank.draws)
                out[at] = mean_within(scale, latent, latent_ends(scale, ends[at]))
        return np.clip(out, *ends.T)

    def log_density(
        self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """Logarithms of the predictive density at new observations; of levels, of their probability."""
        out = np.empty(len(rows))
        for scale, mine in self.coding.by_scale(columns):
            i, j, at = rows[mine], columns[mine], values[mine]
            if scale.kind == "number":
                standard, latent = scale.standard(at), self.coding.first_latent[j]
                density = self.low_rank.log_density(i, latent, standard, workers)
                out[mine] = density - np.log(scale.scale)
            else:
                out[mine] = self._log_density(scale, i, j, at)
        return out

    def log_likelihood(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        weights: np.ndarray | None,
    ) -> np.ndarray:
        """Logarithms of the density, or of the probability of levels, under every draw."""
        out = np.empty((self.n_draws, len(rows)))
        for scale, mine in self.coding.by_scale(columns):
            i, j, at = rows[mine], columns[mine], values[mine]
            own = None if weights is None else weights[mine]
            if scale.kind == "number":
                first = self.coding.first_latent[j]
                terms = self.low_rank.log_likelihood(i, first, scale.standard(at), own)
                out[:, mine] = terms - np.log(scale.scale)
                continue
            latents = list(self._latents(scale, i, j, self.low_rank.draws))
            if own is not None:
                latents = [each._replace(sds=each.sds / np.sqrt(own)) for each in latents]
            if scale.has_levels:
                codes = scale.nearest_codes(at)[0]
                out[:, mine] = level_log_likelihood(scale, latents, codes, self._cumulative)
            else:
                out[:, mine] = log_density(scale, latents[0], at)
        return out

    # All cells of some rows and columns

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Predictions of all cells of the given rows and columns: a matrix."""
        draws = self.low_rank.draws
        if len(rows) * len(columns) > _MANY_CELLS:
            chosen = np.linspace(0, len(draws) - 1, _FEW_DRAWS).round().astype(int)
            draws = [draws[t] for t in chosen]
        out = np.empty((len(rows), len(columns)))
        for place, j in enumerate(np.asarray(columns).tolist()):
            scale = self.coding.scale(j)
            for first in range(0, len(rows), _BLOCK):
                part = slice(first, first + _BLOCK)
                at = np.full(len(rows[part]), j)
                out[part, place] = self._statistic(scale, rows[part], at, "auto", draws)
        return out

    def imputations(self, n: int, seed: int) -> KindImputations:
        """Draws of complete tables."""
        return KindImputations(self.low_rank, self.coding, n, seed)

    # New rows and columns

    def fold_in(
        self,
        entries: Entries,
        axis: Axis,
        workers: Workers,
        features: np.ndarray | None = None,
        intervals: np.ndarray | None = None,
    ) -> KindPosterior:
        """The posterior of new rows, or of new columns if all columns have one scale.

        ``entries`` are in the units of the data, and have numbers of ``intervals`` (n, 2). Columns with
        kinds of their own are for `fold_in_columns`.
        """
        if axis == "columns":
            coding, coded, limits = self._encode_new_columns(entries, intervals)
        else:
            coding = self.coding
            coded, limits = encode(coding, entries, intervals)
        units = Units.equal(0.0, 1.0, coding.n_latent, None)
        new = self.low_rank.fold_in_standard(coded, axis, workers, features, limits, units)
        return replace(self, low_rank=new, coding=coding)

    def fold_in_columns(
        self,
        entries: Entries,
        coding: Coding,
        workers: Workers,
        features: np.ndarray | None = None,
        intervals: np.ndarray | None = None,
    ) -> KindPosterior:
        """The posterior of new columns, which are coded in their own way.

        Their units, levels and thresholds are those of the coding in all draws. Numbers have noise like
        the columns of the fit; that of two levels is fixed, as in the fit.
        """
        n = coding.scale_of.size
        columns = self._latent_columns(coding, entries, np.arange(n), intervals)
        given = None if features is None else features[coding.column_of]
        after = columns.after(self.n_limits)
        new = self.low_rank.fold_in_latent(after, workers, given, self.are_fixed)
        limits = columns.limits[:, : coding.n_level_intervals]
        draws = [draw._replace(limits=limits) for draw in new.draws]
        return replace(self, low_rank=replace(new, draws=draws), coding=coding)

    @property
    def n_limits(self) -> int:
        """The number of intervals that the draws have: those of levels."""
        return self.low_rank.draws[0].limits.shape[1]

    @property
    def are_fixed(self) -> np.ndarray:
        """Whether the noise of each latent column is fixed."""
        return np.isin(np.arange(self.low_rank.shape[1]), self.coding.fixed_columns())

    def _latent_columns(
        self, coding: Coding, entries: Entries, positions: np.ndarray, intervals: np.ndarray | None
    ) -> LatentColumns:
        return encode_columns(coding, entries, positions, self.shape[0], intervals)

    def update(
        self,
        entries: Entries,
        positions: np.ndarray,
        axis: Axis,
        workers: Workers,
        source: KindPosterior,
        intervals: np.ndarray | None = None,
    ) -> KindPosterior:
        """The same with some rows (or columns) drawn again, given all of their entries.

        The units, levels and thresholds of columns do not change.
        """
        if axis == "columns":
            columns = self._latent_columns(self.coding, entries, positions, intervals)
            if source.coding is not self.coding:
                columns = columns.after(source.n_limits)
            new = self.low_rank.update_latent(columns, workers, source.low_rank, source.are_fixed)
            return replace(self, low_rank=new)
        coded, limits = encode(self.coding, entries, intervals)
        new = self.low_rank.update_standard(
            coded, positions, axis, workers, source.low_rank, limits
        )
        return replace(self, low_rank=new)

    def top(self, query: TopQuery, workers: Workers) -> Top:
        """The best columns of some rows, if all columns have one scale; scores are means."""
        if len(self.coding.scales) > 1:
            raise NotSupportedError(
                "columns of different kinds cannot be compared with each other, so none is best."
            )
        # By latent numbers first. The order of means can differ, since the noise of columns does.
        top = self.low_rank.top(query._replace(n=query.n + _MORE_TO_RANK), workers)
        p, k = np.nonzero(top.columns >= 0)
        scores = np.full(top.scores.shape, -np.inf)
        scores[p, k] = self._expected_at(query, top, p, k, workers)
        order = np.argsort(-scores, axis=1, kind="stable")[:, : query.n]
        columns = np.take_along_axis(top.columns, order, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
        return top._replace(columns=columns, scores=np.where(columns >= 0, scores, np.nan))

    def _expected_at(
        self, query: TopQuery, top: Top, p: np.ndarray, k: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """The means of cells, or what is expected at the quantile or draw that the order is by."""
        rows, columns = query.rows[p], top.columns[p, k]
        if query.by == "mean":
            return self.predict(rows, columns, workers, "mean")
        scale, mean = self.coding.scales[0], self.low_rank.mean
        sds = np.sqrt(mean.noise.at(rows, columns))[np.newaxis]
        limits = np.mean([drawn.limits for drawn in self.low_rank.draws], axis=0)[np.newaxis]
        thresholds = _thresholds_of(rows, self.low_rank.draws)
        if thresholds.size:
            thresholds = thresholds.mean(axis=0, keepdims=True)
        latent = Latent(top.scores[p, k][np.newaxis], sds, limits, thresholds)
        if scale.has_levels:
            return level_probabilities(scale, [latent], self._cumulative) @ scale.levels
        return mean_value(scale, latent)

    def noise_scales(self) -> tuple[np.ndarray, np.ndarray]:
        """Noise standard deviations of rows, and of the first latent number of each column."""
        rows, columns = self.low_rank.noise_scales()
        return rows, self.units.scale * columns[self.coding.first_latent[:-1]]

    # Parts

    def _over_cells(
        self,
        one: Callable[[Scale, np.ndarray, np.ndarray], np.ndarray],
        rows: np.ndarray,
        columns: np.ndarray,
        workers: Workers,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Compute numbers for every cell, scale by scale, in blocks, on all threads."""
        result = np.empty(len(rows)) if out is None else out
        for scale, mine in self.coding.by_scale(columns):

            def work(start: int, stop: int, scale: Scale = scale, mine: np.ndarray = mine) -> None:
                for first, last in _blocks(start, stop):
                    at = mine[first:last]
                    result[..., at] = one(scale, rows[at], columns[at])

            self._share_out(work, mine.size, workers)
        return result

    def _share_out(self, work: Callable[[int, int], None], n_cells: int, workers: Workers) -> None:
        cost = len(self.low_rank.draws) * (self.low_rank.draws[0].left.shape[1] + 8)
        # The sums over draws of a single cell are rounded in another way than those of several, so no
        # number of threads may leave one alone.
        ends = np.append(np.arange(0, max(n_cells - 1, 1), _GRAIN), n_cells)
        workers.for_rows(lambda a, b: work(int(ends[a]), int(ends[b])), cost * ends)

    def _latent(
        self, rows: np.ndarray, columns: np.ndarray, which: int, draws: list[Draw]
    ) -> Latent:
        """The latent numbers of cells: those with the number ``which`` of their columns.

        The draws are shifted so that their mean is that of all draws of the run, which are more.
        """
        latent = self.coding.first_latent[columns] + which
        signals = np.empty((len(draws), len(rows)))
        for drawn, line in zip(draws, signals, strict=True):
            pair_values(drawn.left, drawn.right, rows, latent, line)
        mean = np.empty(len(rows))
        pair_values(self.low_rank.mean.left, self.low_rank.mean.right, rows, latent, mean)
        signals += mean - signals.mean(axis=0)
        sds = np.sqrt([drawn.noise.at(rows, latent) for drawn in draws])
        limits = np.array([drawn.limits for drawn in draws])
        return Latent(signals, sds, limits, _thresholds_of(rows, draws))

    @property
    def _cumulative(self) -> Callable[[np.ndarray], np.ndarray]:
        """The distribution function of the noise of latent numbers."""
        return LAWS[self.low_rank.law].cumulative

    def _latents(
        self, scale: Scale, rows: np.ndarray, columns: np.ndarray, draws: list[Draw]
    ) -> Iterator[Latent]:
        return (self._latent(rows, columns, which, draws) for which in range(scale.n_latent))

    def _level_probabilities(
        self, scale: Scale, rows: np.ndarray, columns: np.ndarray, draws: list[Draw]
    ) -> np.ndarray:
        latents = list(self._latents(scale, rows, columns, draws))
        return level_probabilities(scale, latents, self._cumulative)

    def _statistic(
        self,
        scale: Scale,
        rows: np.ndarray,
        columns: np.ndarray,
        statistic: Statistic,
        draws: list[Draw],
    ) -> np.ndarray:
        if not scale.has_levels:
            if statistic in ("median", "mode"):
                latent = self.coding.first_latent[columns]
                low, _ = self.low_rank.interval(rows, latent, _NARROW, "observation", Workers(1))
                values = scale.restored(low)
            else:
                values = mean_value(scale, self._latent(rows, columns, 0, draws))
            return values
        probabilities = self._level_probabilities(scale, rows, columns, draws)
        is_auto = statistic == "auto"
        if statistic == "mode" or scale.kind == "category" or (is_auto and scale.kind == "yes_no"):
            return scale.levels[probabilities.argmax(axis=1)]
        if statistic == "mean":
            return probabilities @ scale.levels
        return scale.levels[level_quantile(probabilities, 0.5)]

    def _interval(
        self,
        scale: Scale,
        rows: np.ndarray,
        columns: np.ndarray,
        level: float,
        kind: Kind,
        workers: Workers,
    ) -> tuple[np.ndarray, np.ndarray]:
        if scale.kind == "category":
            nothing = np.full(len(rows), np.nan)
            return nothing, nothing
        if not scale.has_levels:
            latent = self.coding.first_latent[columns]
            low, high = self.low_rank.interval(rows, latent, level, kind, workers)
            return scale.restored(low), scale.restored(high)
        draws = self.low_rank.draws
        latents = list(self._latents(scale, rows, columns, draws))
        if kind == "signal":
            latents = [each._replace(sds=1e-9 * np.ones_like(each.sds)) for each in latents]
        probabilities = level_probabilities(scale, latents, self._cumulative)
        tails = 0.5 * (1.0 - level), 0.5 * (1.0 + level)
        low, high = (scale.levels[level_quantile(probabilities, tail)] for tail in tails)
        return low, high

    def _log_density(
        self, scale: Scale, rows: np.ndarray, columns: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        draws, out = self.low_rank.draws, np.empty(len(rows))
        for first in range(0, len(rows), _BLOCK):
            part = slice(first, first + _BLOCK)
            i, j, at = rows[part], columns[part], values[part]
            if scale.has_levels:
                probabilities = self._level_probabilities(scale, i, j, draws)
                codes, are_known = scale.nearest_codes(at)
                chosen = probabilities[np.arange(len(i)), codes]
                least = np.where(are_known, np.finfo(float).tiny, _UNSEEN)
                out[part] = np.log(np.where(are_known, np.maximum(chosen, least), least))
            else:
                terms = log_density(scale, self._latent(i, j, 0, draws), at)
                out[part] = logsumexp(terms, axis=0) - np.log(len(draws))
        return out

    def _encode_new_columns(
        self, entries: Entries, intervals: np.ndarray | None
    ) -> tuple[Coding, Entries, np.ndarray]:
        """New columns, each a line of ``entries``, on the scale that all columns share."""
        if self.has_own_kinds:
            raise NotSupportedError(
                "a column without values cannot be predicted in a table of different kinds: its kind is "
                "not known. fold_in completes new columns that have some."
            )
        n = entries.pointers.size - 1
        coding = self.coding._replace(
            scale_of=np.zeros(n, dtype=np.int64),
            first_latent=np.arange(n + 1),
            labels=np.arange(n),
        )
        # All entries are on the same scale, so any column can stand for theirs.
        on_first = entries._replace(indices=np.zeros_like(entries.indices))
        coded, limits = encode(coding, on_first, intervals)
        return coding, coded._replace(indices=entries.indices), limits


def _thresholds_of(rows: np.ndarray, draws: list[Draw]) -> np.ndarray:
    """The thresholds (draws, cells, L + 1) of cells in these rows; empty if rows do not differ."""
    return np.array([drawn.thresholds_of(rows) for drawn in draws])
