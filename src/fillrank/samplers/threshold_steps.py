r"""The thresholds between ordered levels, which GASR and BPMF share.

A value of ordered levels 1, ..., L is level c if its latent number y, with y ~ N(z, s^2), is in the
interval (theta_{c-1}, theta_c], where theta_0 = -inf and theta_L = inf. The first and the last threshold
are fixed, which fixes location and scale of y. The others have the uniform prior on

.. math:: \theta_1 < \theta_2 < \dots < \theta_{L-1} .

They are drawn with y integrated out, one after the other, by a slice step on

.. math:: \log p(\theta_c \mid z) =
          \sum_{x = c} \log[\Phi((\theta_c - z)/s) - \Phi((\theta_{c-1} - z)/s)]
          + \sum_{x = c+1} \log[\Phi((\theta_{c+1} - z)/s) - \Phi((\theta_c - z)/s)] .

Given y they would hardly move: between the largest y of one level and the smallest of the next. Since
this costs a few passes over the entries, it is done in one sweep of `EVERY`.

Thresholds may differ by row, because people use a scale in different ways. Then theta_ic, of row i, has
the joint prior

.. math:: p(\theta, v, \{\theta_i\}) \propto p(v) \prod_i \prod_c N(\theta_{ic}; \theta_c, v_c) \;
          1[\theta_{i1} < \dots < \theta_{i,L-1}] \; 1[\theta_1 < \dots < \theta_{L-1}],

with half-Cauchy priors of sqrt(v_c). Those of a row are drawn by slice steps, again with y integrated
out (`fillrank.kernels.row_thresholds`). Given them, theta_c is normal between its neighbours, but for
the first and the last, which are fixed, and v_c is drawn as other variances are.
"""

import math
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from fillrank.draws import streams
from fillrank.draws.slice import slice_step
from fillrank.draws.streams import Address, seek, start_stream
from fillrank.draws.truncated_normal import truncated_normal
from fillrank.kernels.gaussian_rows import NO_LIMITS, NO_THRESHOLDS, RowNoise
from fillrank.kernels.row_thresholds import ThresholdPrior, draw_thresholds_of_rows
from fillrank.noise.precisions import draw_variance
from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers
from fillrank.samplers.level_likelihood import LevelLikelihood
from fillrank.samplers.model import LARGEST_ENTRY, CompleteData, Data, RemoteData
from fillrank.samplers.noise_steps import NoiseModel, NoiseState, column_noise, row_noise

# Thresholds are drawn in one sweep of so many.
EVERY = 10
# The variance of the thresholds of rows at the start of a chain, and their cost, in entries.
_FIRST_VARIANCE, _ROW_COST = 0.1, 10
# The first width of a slice, in standard deviations of one entry.
_WIDTH = 3.0


class Intervals(NamedTuple):
    """The intervals in which values are known to be, in standard units, and which of them are drawn.

    ``limits`` (2, k) are their ends at the start of a chain. ``scales`` (g, 2) has the first interval
    and the number of levels of every scale of ordered levels that has thresholds to draw. With
    ``by_row`` all intervals are those of one scale, whose thresholds differ by row.
    """

    limits: np.ndarray = NO_LIMITS
    scales: np.ndarray = np.zeros((0, 2), dtype=np.int64)
    by_row: bool = False

    def first_row_thresholds(self, n_rows: int) -> "RowThresholds":
        """The thresholds of rows at the start of a chain: the same in all rows."""
        if not self.by_row:
            return NO_ROW_THRESHOLDS
        ends = np.append(self.limits[0], self.limits[1, -1])
        return RowThresholds(np.tile(ends, (n_rows, 1)), np.full(ends.size - 2, _FIRST_VARIANCE))

    @property
    def are_drawn(self) -> bool:
        """Whether there are thresholds to draw."""
        return self.by_row or self.scales.size > 0

    @property
    def n_drawn(self) -> int:
        """The number of the interval after the last one that belongs to such a scale."""
        return int(self.scales.sum(axis=1).max(initial=0))


NO_INTERVALS = Intervals()


class RowThresholds(NamedTuple):
    """The ends (m, L + 1) of the intervals of levels in every row, and the variances v_c (L - 1,).

    Both are empty if thresholds do not differ by row.
    """

    ends: np.ndarray
    variances: np.ndarray

    def of_rows(self, noise: RowNoise) -> RowNoise:
        """The noise of a half-sweep of the rows, with these thresholds."""
        return noise._replace(thresholds=self.ends)

    def drawn(self, dtype: np.dtype) -> np.ndarray:
        """The ends as a draw has them."""
        return self.ends.astype(dtype) if self.ends.size else NO_THRESHOLDS

    def of_columns(self, noise: RowNoise) -> RowNoise:
        """The noise of a half-sweep of the columns, with these thresholds."""
        return noise._replace(thresholds=self.ends, of_other=True)


NO_ROW_THRESHOLDS = RowThresholds(NO_THRESHOLDS, np.zeros(0))


class ThresholdState(Protocol):
    """What a state of either sampler has of the thresholds and of the noise."""

    @property
    def limits(self) -> np.ndarray: ...

    @property
    def row_thresholds(self) -> RowThresholds: ...

    @property
    def noise(self) -> NoiseState: ...


def are_valid_limits(limits: np.ndarray) -> bool:
    """Whether intervals that were read from a file can be sampled from; all numbers are finite."""
    is_shaped = limits.ndim == 2 and limits.shape[0] == 2 and limits.dtype == np.float64
    are_small = is_shaped and bool((np.abs(limits) <= LARGEST_ENTRY).all())
    return are_small and bool((limits[0] < limits[1]).all())


def are_valid_row_thresholds(found: RowThresholds, intervals: Intervals, n_rows: int) -> bool:
    """Whether thresholds of rows that were read from a file can be sampled from; all are finite."""
    expected = intervals.first_row_thresholds(n_rows)
    return (
        all(
            one.shape == other.shape and one.dtype == other.dtype
            for one, other in zip(found, expected, strict=True)
        )
        and bool((np.diff(found.ends, axis=1) > 0).all())
        and bool((np.abs(found.ends) <= LARGEST_ENTRY).all())
        and bool(((found.variances > 0) & (found.variances <= LARGEST_ENTRY)).all())
    )


def draw_intervals(
    state: ThresholdState,
    factors: tuple[np.ndarray, np.ndarray],
    data: Data | CompleteData | RemoteData,
    intervals: Intervals,
    model: NoiseModel,
    address: Address,
    workers: Workers,
) -> tuple[np.ndarray, RowThresholds]:
    """The limits and the thresholds of rows after a sweep; ``factors`` (left, right) give the signal."""
    cells, (left, right) = state.noise.cells, factors
    if intervals.by_row:
        of_rows = row_noise(cells, model)
        return draw_row_thresholds(
            state.limits, state.row_thresholds, data, factors, of_rows, address, workers
        )
    of_columns = column_noise(cells, model, state.limits)
    limits = draw_thresholds(
        state.limits, intervals, data, (right, left), of_columns, address, workers
    )
    return limits, state.row_thresholds


def draw_thresholds(
    limits: np.ndarray,
    intervals: Intervals,
    data: Data | CompleteData | RemoteData,
    factors: tuple[np.ndarray, np.ndarray],
    noise: RowNoise,
    address: Address,
    workers: Workers,
) -> np.ndarray:
    """The limits with new thresholds, if this is a sweep in which they are drawn.

    ``factors`` (own, other) are those of the columns and of the rows, as in a half-sweep of the columns.
    """
    if address.sweep % EVERY:
        return limits
    likelihood = data.level_likelihood(factors, noise, intervals.n_drawn, workers)
    limits, address = limits.copy(), address._replace(purpose=streams.THRESHOLDS)
    for first, n_levels in intervals.scales.tolist():
        for c in range(first + 1, first + n_levels - 2):
            theta = _draw_threshold(c, limits, likelihood, address)
            limits[1, c] = limits[0, c + 1] = theta
    return limits


def draw_row_thresholds(
    limits: np.ndarray,
    current: RowThresholds,
    data: Data | CompleteData | RemoteData,
    factors: tuple[np.ndarray, np.ndarray],
    noise: RowNoise,
    address: Address,
    workers: Workers,
) -> tuple[np.ndarray, RowThresholds]:
    """New thresholds of the rows, and given these their means and variances.

    ``factors`` (own, other) are those of the rows and of the columns, as in a half-sweep of the rows.
    """
    if address.sweep % EVERY:
        return limits, current
    ends, rows = current.ends.copy(), data.entries_by_row()
    prior = ThresholdPrior(limits[1, :-1].copy(), current.variances)
    address = address._replace(purpose=streams.ROW_THRESHOLDS)
    work = partial(draw_thresholds_of_rows, rows, *factors, noise, prior, address, ends)
    workers.for_rows(work, _ROW_COST * rows.pointers)
    prior = _draw_prior(prior, ends, address._replace(purpose=streams.THRESHOLDS))
    means = prior.means
    limits = np.array([np.append(limits[0, 0], means), np.append(means, limits[1, -1])])
    return limits, RowThresholds(ends, prior.variances)


def _draw_prior(prior: ThresholdPrior, ends: np.ndarray, address: Address) -> ThresholdPrior:
    """theta_c and v_c given the thresholds of all rows."""
    m, last = len(ends), prior.means.size - 1
    means, variances = prior.means.copy(), prior.variances.copy()
    for c in range(last + 1):
        own = ends[:, c + 1]
        if 0 < c < last:
            law = float(own.mean()), math.sqrt(variances[c] / m), means[c - 1], means[c + 1]
            means[c] = _draw_between(address, c, *law)
        square = float(np.square(own - means[c]).sum())
        variances[c] = _draw_variance(address, c, variances[c], m, square)
    return ThresholdPrior(means, variances)


@njit(cache=True)
def _draw_between(
    address: Address, row: int, mean: float, sd: float, low: float, high: float
) -> float:
    """A draw of N(mean, sd^2) between low and high."""
    stream = start_stream(address.key, address.sweep, address.purpose)
    seek(stream, row, 0)
    return truncated_normal(stream, mean, sd, low, high)


@njit(cache=True)
def _draw_variance(address: Address, row: int, variance: float, n: int, square: float) -> float:
    stream = start_stream(address.key, address.sweep, address.purpose)
    seek(stream, row, 1)
    return draw_variance(stream, variance, n, square)


def _draw_threshold(
    c: int, limits: np.ndarray, likelihood: LevelLikelihood, address: Address
) -> float:
    """The threshold between the intervals c and c + 1."""
    low, theta, high = float(limits[0, c]), float(limits[1, c]), float(limits[1, c + 1])

    def log_density(at: float) -> float:
        if not low < at < high:
            return -math.inf
        return likelihood.at(c, (low, at, high))

    n_entries = int(likelihood.counts[c : c + 2].sum())
    width = min(_WIDTH / math.sqrt(1.0 + n_entries), high - low)
    return slice_step(theta, log_density, width, address, c)
