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
from typing import NamedTuple

import numpy as np

from fillrank.draws import streams
from fillrank.draws.slice import slice_step
from fillrank.draws.streams import Address
from fillrank.kernels.gaussian_rows import NO_LIMITS, RowNoise
from fillrank.runtime.threads import Workers
from fillrank.samplers.level_likelihood import LevelLikelihood
from fillrank.samplers.model import LARGEST_ENTRY, CompleteData, Data, RemoteData

# Thresholds are drawn in one sweep of so many.
EVERY = 10
# The first width of a slice, in standard deviations of one entry.
_WIDTH = 3.0


class Intervals(NamedTuple):
    """The intervals in which values are known to be, in standard units, and which of them are drawn.

    ``limits`` (2, k) are their ends at the start of a chain. ``scales`` (g, 2) has the first interval
    and the number of levels of every scale of ordered levels that has thresholds to draw.
    """

    limits: np.ndarray = NO_LIMITS
    scales: np.ndarray = np.zeros((0, 2), dtype=np.int64)

    @property
    def n_drawn(self) -> int:
        """The number of the interval after the last one that belongs to such a scale."""
        return int(self.scales.sum(axis=1).max(initial=0))


NO_INTERVALS = Intervals()


def are_valid_limits(limits: np.ndarray) -> bool:
    """Whether intervals that were read from a file can be sampled from; all numbers are finite."""
    is_shaped = limits.ndim == 2 and limits.shape[0] == 2 and limits.dtype == np.float64
    are_small = is_shaped and bool((np.abs(limits) <= LARGEST_ENTRY).all())
    return are_small and bool((limits[0] < limits[1]).all())


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
