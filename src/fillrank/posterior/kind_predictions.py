"""Predictions of values of any kind, from draws of latent numbers: see `fillrank.table.latent`.

Under a draw, the latent number of a cell is N(z, s^2). The distribution of the value is the mixture over
the draws. All functions take arrays (draws, cells).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from fillrank.kernels.gaussian_rows import NO_THRESHOLDS
from fillrank.table.latent import Scale

# Probabilities of counts that are summed one by one for their means.
_SUMMED = 16
# Quantiles that represent the values in an interval.
_NODES = 16
_LARGEST_EXPONENT = 700.0
_Function = Callable[[np.ndarray], np.ndarray]


class Latent(NamedTuple):
    """Signals z and standard deviations s of latent numbers (draws, cells), in one latent column.

    ``limits`` (draws, 2, k) are the ends of the intervals of levels under each draw. If they differ by
    row, ``thresholds`` (draws, cells, L + 1) are those of the cells.
    """

    signals: np.ndarray
    sds: np.ndarray
    limits: np.ndarray
    thresholds: np.ndarray = NO_THRESHOLDS

    def upper_ends(self, scale: Scale) -> list[np.ndarray]:
        """The upper ends of all levels of a scale but the last, each (draws, cells) or (draws, 1)."""
        inner = range(scale.levels.size - 1)
        if self.thresholds.size:
            return [self.thresholds[:, :, c + 1] for c in inner]
        return [self.limits[:, 1, scale.first + c, np.newaxis] for c in inner]


def level_probabilities(
    scale: Scale, columns: list[Latent], cumulative: _Function = ndtr
) -> np.ndarray:
    """The probabilities (cells, levels) of the levels, averaged over the draws.

    ``columns`` are the latent columns of the cells: several for a category. ``cumulative`` is the
    distribution function of the noise.
    """
    if scale.kind == "category":
        return _category_probabilities(scale, columns)
    z, s = columns[0].signals, columns[0].sds
    below = [cumulative((each - z) / s).mean(axis=0) for each in columns[0].upper_ends(scale)]
    n_cells = z.shape[1]
    up_to = np.column_stack([np.zeros(n_cells), *below, np.ones(n_cells)])
    return np.maximum(np.diff(up_to, axis=1), 0.0)


def _category_probabilities(scale: Scale, columns: list[Latent]) -> np.ndarray:
    """P(x = l) = P(y_l > theta_l) prod_{h < l} P(y_h <= theta_h)."""
    n_cells = columns[0].signals.shape[1]
    out = np.empty((n_cells, scale.levels.size))
    none_before = np.ones_like(columns[0].signals)
    for which, (z, s, limits, _) in enumerate(columns):
        threshold = limits[:, 1, scale.first + 2 * which][:, np.newaxis]
        later = ndtr((threshold - z) / s)
        out[:, which] = (none_before * (1.0 - later)).mean(axis=0)
        none_before = none_before * later
    out[:, -1] = none_before.mean(axis=0)
    return out


def level_log_likelihood(
    scale: Scale, columns: list[Latent], codes: np.ndarray, cumulative: _Function = ndtr
) -> np.ndarray:
    """Logarithms of the probabilities of these levels under every draw, (draws, cells).

    ``codes`` are positions in the levels of the scale; ``cumulative`` is as in `level_probabilities`.
    """
    z, s = columns[0].signals, columns[0].sds
    if scale.kind == "category":
        return _category_log_likelihood(scale, columns, codes)
    upper = [np.broadcast_to(each, z.shape) for each in columns[0].upper_ends(scale)]
    infinite = np.full(z.shape, np.inf)
    ends = np.stack([-infinite, *upper, infinite])
    low, high = (np.take_along_axis(ends, (codes + k)[None, None], axis=0)[0] for k in (0, 1))
    low, high = (low - z) / s, (high - z) / s
    if cumulative is ndtr:
        return log_probability(low, high)
    return np.log(np.maximum(cumulative(high) - cumulative(low), np.finfo(float).tiny))


def _category_log_likelihood(scale: Scale, columns: list[Latent], codes: np.ndarray) -> np.ndarray:
    total = np.zeros_like(columns[0].signals)
    for which, (z, s, limits, _) in enumerate(columns):
        threshold = limits[:, 1, scale.first + 2 * which][:, np.newaxis]
        is_it = log_ndtr((z - threshold) / s)
        total += np.where(
            codes == which, is_it, np.where(codes > which, log_ndtr((threshold - z) / s), 0.0)
        )
    return total


def mean_value(scale: Scale, latent: Latent) -> np.ndarray:
    """The mean of a number, a positive number or a count, clipped to the bounds."""
    z = scale.location + scale.scale * latent.signals
    s = scale.scale * latent.sds
    if scale.kind == "positive":
        z = np.exp(np.minimum(z + 0.5 * s**2, _LARGEST_EXPONENT))
    elif scale.kind == "count":
        z = _mean_count(z, s)
    return np.clip(z.mean(axis=0), *scale.bounds)


def _mean_count(z: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The mean of floor(e^y) for y ~ N(z, s^2): the sum of P(y >= log k) over k = 1, 2, ...

    From K + 1 on the sum is an integral from K + 1/2, by the midpoint rule, and that is
    E(e^y - K - 1/2)^+.
    """
    total = np.zeros_like(z)
    for k in range(1, _SUMMED + 1):
        total += ndtr((z - np.log(k)) / s)
    end = _SUMMED + 0.5
    above = (z - np.log(end)) / s
    mean = np.exp(np.minimum(z + 0.5 * s**2, _LARGEST_EXPONENT))
    return total + np.maximum(mean * ndtr(above + s) - end * ndtr(above), 0.0)


def log_density(scale: Scale, latent: Latent, values: np.ndarray) -> np.ndarray:
    """Logarithms of the density of a positive number, or the probability of a count, (draws, cells)."""
    z, s = latent.signals, latent.sds
    if scale.kind == "count":
        with np.errstate(divide="ignore"):
            ends = np.log(values), np.log(values + 1.0)
        low, high = (((each - scale.location) / scale.scale - z) / s for each in ends)
        return log_probability(low, high)
    y = scale.standard(values)
    return (
        -0.5 * ((y - z) / s) ** 2 - np.log(np.sqrt(2.0 * np.pi) * s * scale.scale) - np.log(values)
    )


def log_probability(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """log(Phi(high) - Phi(low)), also in the tails."""
    flip = low > 0
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    with np.errstate(divide="ignore", over="ignore"):
        return log_ndtr(high) + np.log1p(-np.exp(np.minimum(log_ndtr(low) - log_ndtr(high), 0.0)))


def mean_within(scale: Scale, latent: Latent, ends: np.ndarray) -> np.ndarray:
    """The mean of numbers that are known to be in an interval, with these latent ends (2, cells).

    Draws count by the probability of the interval under them.
    """
    z, s = latent.signals, latent.sds
    low, high = (ends[0] - z) / s, (ends[1] - z) / s
    probability = np.exp(log_probability(low, high))
    nodes = (np.arange(_NODES) + 0.5) / _NODES
    values = np.mean([scale.restored(z + s * between(low, high, u)) for u in nodes], axis=0)
    total = probability.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (probability * values).sum(axis=0) / total
    expected: np.ndarray = np.where(total > 0, mean, values.mean(axis=0))
    return expected


def between(low: np.ndarray, high: np.ndarray, u: Any) -> np.ndarray:
    """The u-quantile of a standard normal variable in an interval."""
    flip = low + high > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    below = ndtr(a)
    share = np.where(flip, 1.0 - u, u)
    x = ndtri(below + share * (ndtr(b) - below))
    x = np.clip(np.where(np.isfinite(x), x, b), a, b)
    quantile: np.ndarray = np.where(flip, -x, x)
    return quantile


def levels_of(
    scale: Scale, latent: np.ndarray, limits: np.ndarray, thresholds: np.ndarray = NO_THRESHOLDS
) -> np.ndarray:
    """The values of latent numbers (columns, cells) under one draw, whose limits are (2, k).

    If thresholds differ by row, ``thresholds`` (cells, L + 1) are those of the cells.
    """
    if scale.kind == "category":
        n = scale.n_latent
        is_it = latent > limits[1, scale.first : scale.first + 2 * n : 2, np.newaxis]
        first = np.where(is_it.any(axis=0), is_it.argmax(axis=0), n)
        return scale.levels[first]
    upper = limits[1, scale.first : scale.first + scale.levels.size - 1]
    if thresholds.size:
        upper = thresholds[:, 1:-1]
    return scale.levels[(latent[0][:, np.newaxis] > upper).sum(axis=1)]


def level_quantile(probabilities: np.ndarray, tail: float) -> np.ndarray:
    """The first level up to which the probability reaches ``tail``."""
    cumulative = np.cumsum(probabilities, axis=1)
    reached: np.ndarray = cumulative >= tail - 1e-12
    reached[:, -1] = True
    return reached.argmax(axis=1)


def credible_sets(probabilities: np.ndarray, level: float) -> list[list[int]]:
    """For each cell the most probable levels, which together have the probability ``level``.

    Examples
    --------
    >>> credible_sets(np.array([[0.2, 0.7, 0.1], [0.05, 0.0, 0.95]]), 0.9)
    [[1, 0], [2]]
    """
    order = np.argsort(-probabilities, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(probabilities, order, axis=1), axis=1)
    reached: np.ndarray = sums >= level - 1e-12
    reached[:, -1] = True
    sizes = reached.argmax(axis=1) + 1
    return [line[:size] for line, size in zip(order.tolist(), sizes.tolist(), strict=True)]
