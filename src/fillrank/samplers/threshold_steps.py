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
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from fillrank.draws import streams
from fillrank.draws.slice import slice_step
from fillrank.draws.streams import Address
from fillrank.kernels.gaussian_rows import NO_LIMITS, RowNoise
from fillrank.kernels.interval_values import entry_signals, log_likelihood
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import LARGEST_ENTRY
from fillrank.table.entries import Entries

# Thresholds are drawn in one sweep of so many.
EVERY = 10
# Entries whose likelihoods are summed together; sums over such blocks do not depend on the threads.
_BLOCK = 2**13
# The cost of a likelihood, in entries of a half-sweep, and the first width of a slice, in standard
# deviations of one entry.
_COST, _WIDTH = 4, 3.0
_NO_ORDER = np.zeros(0, dtype=np.int64)


class Intervals(NamedTuple):
    """The intervals in which values are known to be, in standard units, and which of them are drawn.

    ``limits`` (2, k) are their ends at the start of a chain. ``scales`` (g, 2) has the first interval
    and the number of levels of every scale of ordered levels that has thresholds to draw. ``order`` are
    the positions of the entries by column, sorted by interval; those of interval c are from
    ``starts[c]`` to ``starts[c + 1]``.
    """

    limits: np.ndarray = NO_LIMITS
    scales: np.ndarray = np.zeros((0, 2), dtype=np.int64)
    order: np.ndarray = _NO_ORDER
    starts: np.ndarray = _NO_ORDER

    def ordered(self, columns: Entries) -> "Intervals":
        """The same with the order of the entries of a table."""
        if not self.scales.size:
            return self
        order = np.argsort(columns.cells, kind="stable")
        starts = np.searchsorted(columns.cells[order], np.arange(self.limits.shape[1] + 1))
        return self._replace(order=order, starts=starts)


NO_INTERVALS = Intervals()


class _Latent(NamedTuple):
    """The signals of entries, sorted by interval, and the inverse standard deviations of their noise."""

    signals: np.ndarray
    precisions: np.ndarray


def are_valid_limits(limits: np.ndarray) -> bool:
    """Whether intervals that were read from a file can be sampled from; all numbers are finite."""
    is_shaped = limits.ndim == 2 and limits.shape[0] == 2 and limits.dtype == np.float64
    are_small = is_shaped and bool((np.abs(limits) <= LARGEST_ENTRY).all())
    return are_small and bool((limits[0] < limits[1]).all())


def draw_thresholds(
    limits: np.ndarray,
    intervals: Intervals,
    columns: Entries,
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
    latent = _latent(intervals, columns, factors, noise, workers)
    limits, address = limits.copy(), address._replace(purpose=streams.THRESHOLDS)
    for first, n_levels in intervals.scales.tolist():
        for c in range(first + 1, first + n_levels - 2):
            theta = _draw_threshold(c, limits, latent, intervals.starts, address, workers)
            limits[1, c] = limits[0, c + 1] = theta
    return limits


def _latent(
    intervals: Intervals,
    columns: Entries,
    factors: tuple[np.ndarray, np.ndarray],
    noise: RowNoise,
    workers: Workers,
) -> _Latent:
    signals, precisions = np.empty(columns.n_entries), np.empty(columns.n_entries)
    work = partial(entry_signals, columns, *factors, noise, signals, precisions)
    workers.for_rows(work, columns.pointers)
    return _Latent(signals[intervals.order], precisions[intervals.order])


def _draw_threshold(
    c: int,
    limits: np.ndarray,
    latent: _Latent,
    starts: np.ndarray,
    address: Address,
    workers: Workers,
) -> float:
    """The threshold between the intervals c and c + 1."""
    low, theta, high = float(limits[0, c]), float(limits[1, c]), float(limits[1, c + 1])
    below, between, above = starts[c : c + 3].tolist()

    def log_density(at: float) -> float:
        if not low < at < high:
            return -math.inf
        under = _log_likelihood(latent, (low, at), below, between, workers)
        return under + _log_likelihood(latent, (at, high), between, above, workers)

    width = min(_WIDTH / math.sqrt(1.0 + above - below), high - low)
    return slice_step(theta, log_density, width, address, c)


def _log_likelihood(
    latent: _Latent, ends: tuple[float, float], first: int, last: int, workers: Workers
) -> float:
    """The log likelihood of the entries first to last, summed over fixed blocks."""
    edges = np.append(np.arange(first, last, _BLOCK), last)
    sums = np.zeros(edges.size - 1)

    def work(start: int, stop: int) -> None:
        for block in range(start, stop):
            sums[block] = log_likelihood(*latent, ends, edges[block], edges[block + 1])

    workers.for_rows(work, _COST * (edges - first))
    return float(sums.sum())
