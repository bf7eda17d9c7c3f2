"""From draws to a verdict: probability integral transforms, KS tests, z-scores.

Keys are fixed, so a test that passes continues passing. ``ALARM`` is the rate of false alarms of
one check, that is, how often right code would fail it when its key is first chosen. The folders
samplers and kernels hold fewer than 130 checks, slow ones included: with new keys for all of them,
right code would fail one in fewer than 1 of 250 runs. A check with several scores or p-values
shares ALARM among them (Bonferroni).
"""

import numpy as np
from scipy import stats

ALARM = 3e-5


def limit_of(n_scores, degrees=np.inf):
    """What the largest of n |z| exceeds with a probability of at most ALARM (Bonferroni)."""
    return stats.t(degrees).isf(ALARM / (2 * n_scores))


def ks_uniform(places):
    """The p-value of numbers that should be uniform on (0, 1); 0 if one of them is no number."""
    if not np.all(np.isfinite(places)):
        return 0.0
    return stats.ks_1samp(np.ravel(places), stats.uniform.cdf).pvalue


def _cdf(grid, log_density):
    """The distribution function on the grid, by trapezoids; NaN where the density is 0 throughout."""
    with np.errstate(invalid="ignore"):
        density = np.exp(log_density - np.max(log_density, axis=-1, keepdims=True))
    cells = 0.5 * (density[..., 1:] + density[..., :-1]) * np.diff(grid, axis=-1)
    cdf = np.cumsum(cells, axis=-1)
    cdf = np.concatenate([np.zeros((*cdf.shape[:-1], 1)), cdf], axis=-1)
    return cdf / cdf[..., -1:]


def cdf_values(draws, grid, log_density):
    """P(X <= draw) for each draw, from a density on a grid: uniform if the distribution is right.

    ``grid`` (g,) or (n, g) ascends, ``log_density`` (g,), one distribution for all the draws, or
    (n, g), needs no normalisation.
    """
    draws, cdf = np.asarray(draws), _cdf(grid, log_density)
    if cdf.ndim == 1:
        return np.interp(draws, grid, cdf)
    grid = np.broadcast_to(grid, cdf.shape)
    return np.array([np.interp(x, g, p) for x, g, p in zip(draws, grid, cdf, strict=True)])


def batch_means(values, n_batches=40):
    """(mean, standard error) of the columns of a chain (T, q), from means of consecutive batches."""
    length = values.shape[0] // n_batches
    batches = values[: n_batches * length].reshape(n_batches, length, -1).mean(axis=1)
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(n_batches)
