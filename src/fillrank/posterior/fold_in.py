"""Rows that were not there at fit: their coefficients given the other side's factors.

Under each kept draw a new row is a Gaussian regression on the columns' factors. Its prior is the
Gaussian that the draw's own rows form, component by component.
"""

import numpy as np
from numba import njit

from fillrank.data.entries import Entries
from fillrank.kernels.gaussian_rows import Prior
from fillrank.kernels.sums import sums_about
from fillrank.posterior.posterior import Posterior
from fillrank.run.recorder import Draw

_SMALLEST_VARIANCE = 1e-30


@njit(nogil=True, cache=True)
def _regress_rows(entries, factors, prior, noise_variance, own):
    """Posterior means of the free coefficients of every row, in place."""
    free = prior.free
    for i in range(own.shape[0]):
        # Scaled by prior sds, so that components of any size leave the system well conditioned.
        precision = np.eye(free.size)
        right_hand = np.zeros(free.size)
        scaled = np.empty(free.size)
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            f = factors[entries.indices[t]]
            e = float(entries.values[t])
            for k in range(f.size):
                e -= own[i, k] * f[k]
            for p in range(free.size):
                scaled[p] = f[free[p]] / np.sqrt(noise_variance * prior.precision[p])
            for p in range(free.size):
                right_hand[p] += scaled[p] * e / np.sqrt(noise_variance)
                for q in range(free.size):
                    precision[p, q] += scaled[p] * scaled[q]
        step = np.linalg.solve(precision, right_hand)
        for p in range(free.size):
            own[i, free[p]] += step[p] / np.sqrt(prior.precision[p])


def _empirical_prior(left: np.ndarray, fixed: int) -> Prior:
    """Mean and precision of every column of ``left`` but the fixed one, over its rows."""
    m, width = left.shape
    mean = sums_about(left, np.zeros(width))[0] / m
    variance = np.maximum(sums_about(left, mean)[1] / m, _SMALLEST_VARIANCE)
    free = np.delete(np.arange(width), fixed)
    return Prior(free, mean[free], 1.0 / variance[free])


def fold_in_rows(draw: Draw, entries: Entries) -> np.ndarray:
    """The expected left factors of new rows under one draw, given their entries (standard units)."""
    width = draw.left.shape[1]
    prior = _empirical_prior(draw.left, fixed=width - 1)
    own = np.ones((entries.pointers.size - 1, width))
    own[:, prior.free] = prior.mean
    _regress_rows(entries, draw.right.astype(np.float64), prior, draw.noise_variance, own)
    return own


def complete_rows(posterior: Posterior, entries: Entries, columns: np.ndarray) -> np.ndarray:
    """Posterior means of new rows in the given columns (positions at fit): a matrix.

    ``entries`` holds the rows' values in the data's units, and positions within ``columns``.
    """
    location, scale, _ = posterior.units
    standard = Entries(
        entries.pointers, columns[entries.indices], (entries.values - location) / scale
    )
    total = np.zeros((entries.pointers.size - 1, columns.size))
    for draw in posterior.draws:
        total += fold_in_rows(draw, standard) @ draw.right[columns].T
    return posterior.units.restore(total / len(posterior.draws))
