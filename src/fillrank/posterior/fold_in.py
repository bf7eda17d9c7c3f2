"""Rows that were not there at fit: their coefficients given the other side's factors.

Under each kept draw a new row is a Gaussian regression on the columns' factors. Its prior is the
Gaussian N(mean, L L^T) that the draw's own rows form; with coefficients mean + L w, w ~ N(0, I).
"""

import numpy as np
from numba import njit

from fillrank.data.entries import Entries
from fillrank.posterior.posterior import Posterior
from fillrank.samplers.draw import Draw


@njit(nogil=True, cache=True)
def _regress_rows(entries, factors, noise_variance, out):
    """Posterior means of w in x_j ~ N(w . f_j, noise variance), w ~ N(0, I), for every row."""
    width = factors.shape[1]
    for i in range(out.shape[0]):
        precision = np.eye(width)
        right_hand = np.zeros(width)
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            f = factors[entries.indices[t]] / np.sqrt(noise_variance)
            x = entries.values[t] / np.sqrt(noise_variance)
            for p in range(width):
                right_hand[p] += f[p] * x
                for q in range(width):
                    precision[p, q] += f[p] * f[q]
        out[i] = np.linalg.solve(precision, right_hand)


def _empirical_law(left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(mean, L) of the rows of ``left``: their covariance is L L^T.

    Correlations are shrunk towards 0 as if there were as many further rows as columns, without any: a
    few rows would else confine new ones to their own span. A constant column stays constant.
    """
    m, width = left.shape
    left = left.astype(np.float64)
    mean = left.mean(axis=0)
    sd = left.std(axis=0)
    sd[sd <= 1e-12 * np.abs(mean)] = 0.0  # a constant differs from its mean by rounding alone
    scaled = np.divide(left - mean, sd, out=np.zeros_like(left), where=sd > 0)
    correlation = scaled.T @ scaled / (m + width)
    np.fill_diagonal(correlation, 1.0)
    return mean, sd[:, None] * np.linalg.cholesky(correlation)


def fold_in_rows(draw: Draw, entries: Entries) -> np.ndarray:
    """The expected left factors of new rows under one draw, given their entries (standard units)."""
    mean, L = _empirical_law(draw.left)
    factors = draw.right.astype(np.float64)
    rest = entries._replace(values=entries.values - (factors @ mean)[entries.indices])
    w = np.empty((entries.pointers.size - 1, mean.size))
    _regress_rows(rest, factors @ L, draw.noise_variance, w)
    return mean + w @ L.T


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
