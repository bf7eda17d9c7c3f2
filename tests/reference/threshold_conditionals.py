"""Draws of thresholds between ordered levels against their posterior on a grid, given the signals.

Checks return {quantity: p-value}, as in ``conditionals``.
"""

import math

import numpy as np
from scipy.special import ndtr

from fillrank.draws.streams import COLUMN_ENTRIES, NOISE, Address, chain_key
from fillrank.kernels.gaussian_rows import RowNoise
from fillrank.runtime.threads import Workers
from fillrank.samplers import threshold_steps
from fillrank.samplers.model import Data
from fillrank.samplers.threshold_steps import EVERY, Intervals
from fillrank.table.entries import compress, transpose
from fillrank.table.latent import FAR
from reference.p_values import cdf_values, ks_uniform

_KEY = chain_key(17, 0)
_N_GRID = 401
# The first interval of each scale, and its thresholds: of five, four and two levels.
SCALES = {"five": (0, (-1.0, -0.2, 0.3, 1.1)), "four": (5, (-0.8, 0.1, 0.9)), "two": (9, (0.2,))}
# How many sweeps apart the draws are that are compared: there they are nearly independent.
_APART = 4


def limits_of(scales):
    """The ends (2, k) of all intervals."""
    parts = [(np.append(-FAR, theta), np.append(theta, FAR)) for _, theta in scales.values()]
    return np.hstack([np.array(part) for part in parts])


class Problem:
    """A table with a column of numbers and two columns for each scale; signals and noise are given.

    Parameters
    ----------
    absent : int or None
        A level of the first scale that has no entries.
    n_rows : int
    """

    def __init__(self, absent=None, n_rows=14):
        rng = np.random.default_rng(4)
        scale_of = [None, "five", "five", "four", "four", "two"]
        n = len(scale_of)
        self.own, self.other = rng.standard_normal((n, 2)), rng.standard_normal((n_rows, 2))
        variances, roots = rng.uniform(0.3, 1.2, n), np.sqrt(rng.gamma(3.0, 1.0 / 3.0, n_rows))
        weights = rng.uniform(0.5, 2.0, (n_rows, n))
        self.limits = limits_of(SCALES)
        self.noise = RowNoise(variances, roots, np.inf, COLUMN_ENTRIES, self.limits)
        self.Z = self.other @ self.own.T
        self.sd = np.sqrt(variances / (roots[:, None] ** 2 * weights))
        Y = self.Z + self.sd * rng.standard_normal(self.Z.shape)
        self.cells = np.full(Y.shape, -1, dtype=np.int32)
        for j, name in enumerate(scale_of):
            if name is not None:
                first, theta = SCALES[name]
                self.cells[:, j] = first + np.searchsorted(theta, Y[:, j])
        mask = rng.random(Y.shape) < 0.85
        if absent is not None:
            mask &= self.cells != absent
        i, j = np.nonzero(mask)
        self.cells[~mask] = -2  # not observed
        rows = compress(n_rows, i, j, Y[i, j], weights[i, j], self.cells[i, j])
        self.data = Data(rows, transpose(rows, n))
        scales = np.array([(first, len(theta) + 1) for first, theta in SCALES.values()])[:2]
        self.intervals = Intervals(self.limits, scales)

    def draw(self, limits, sweep, workers):
        """Limits with new thresholds."""
        return threshold_steps.draw_thresholds(
            limits, self.intervals, self.data, (self.own, self.other), self.noise,
            Address(_KEY, sweep, NOISE), workers,
        )  # fmt: skip

    def log_likelihood(self, cell, low, high):
        """Of the entries of a level, at arrays of its ends; -inf where they are in the wrong order."""
        found = np.zeros(np.broadcast_shapes(np.shape(low), np.shape(high)))
        with np.errstate(divide="ignore", invalid="ignore"):
            for i, j in np.argwhere(self.cells == cell):
                z, s = self.Z[i, j], self.sd[i, j]
                found = found + np.log(ndtr((high - z) / s) - ndtr((low - z) / s))
        return np.where(
            low < high, np.nan_to_num(found, nan=-math.inf, neginf=-math.inf), -math.inf
        )


def _marginal(log_density, axis):
    """The logarithm of a density on a grid of two thresholds, summed over one of them."""
    density = np.exp(log_density - log_density.max())
    with np.errstate(divide="ignore"):
        return np.log(density.sum(axis=axis))


def posteriors(problem):
    """{threshold: (grid, logarithm of its marginal density)} of the thresholds that are drawn."""
    first, theta = SCALES["five"]
    grid = np.linspace(theta[0], theta[-1], _N_GRID)
    two, three = np.meshgrid(grid, grid, indexing="ij")
    both = problem.log_likelihood(first + 1, theta[0], two)
    both = both + problem.log_likelihood(first + 2, two, three)
    both = both + problem.log_likelihood(first + 3, three, theta[-1])
    found = {f"five, {c}": (grid, _marginal(both, 2 - c)) for c in (1, 2)}
    first, theta = SCALES["four"]
    one = np.linspace(theta[0], theta[-1], 20 * _N_GRID)
    density = problem.log_likelihood(first + 1, theta[0], one)
    found["four, 1"] = one, density + problem.log_likelihood(first + 2, one, theta[-1])
    return found


def threshold_draws(absent=None, n=2500):
    """A chain of threshold steps alone: the marginals of the thresholds, and what must not change."""
    problem = Problem(absent)
    limits, drawn = problem.limits, []
    with Workers(1) as workers:
        for t in range(_APART * n):
            limits = problem.draw(limits, EVERY * t, workers)
            drawn.append(limits)
    drawn = np.array(drawn)
    fixed = np.ones(limits.shape, dtype=bool)
    fixed[1, [1, 2, 6]] = fixed[0, [2, 3, 7]] = False
    p_values = {
        "others": float((drawn[:, fixed] == problem.limits[fixed]).all()),
        "joined": float((drawn[:, 1, [1, 2, 6]] == drawn[:, 0, [2, 3, 7]]).all()),
    }
    for name, (grid, density) in posteriors(problem).items():
        scale, c = name.split(", ")
        values = drawn[_APART - 1 :: _APART, 1, SCALES[scale][0] + int(c)]
        p_values[name] = ks_uniform(cdf_values(values, grid, density))
    return p_values
