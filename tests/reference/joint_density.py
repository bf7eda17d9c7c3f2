"""The model, written down once: the log density of everything, and of the effects."""

import numpy as np
from scipy import stats


def _in_ball(U):
    """0 where every column of U (..., m, r) lies in the unit ball, -inf elsewhere."""
    inside = np.all(np.sum(U**2, axis=-2) <= 1.0 + 1e-12, axis=-1)
    return np.where(inside, 0.0, -np.inf)


def log_joint(x, table, U, V, d, gamma, a, b, noise_variance, alpha=None, beta=None):
    """log p(x, U, V, d, gamma | a, b, sigma^2) up to a constant; leading axes are broadcast.

    x_ij ~ N(alpha_i + beta_j + sum_k d_k u_ki v_kj, sigma^2), u_k and v_k uniform in their balls,
    d_k ~ Exp(gamma_k), gamma_k ~ Gamma(a, rate b).
    """
    residual = x
    for k in range(d.shape[-1]):
        residual = residual - d[..., k, None] * U[..., table.i, k] * V[..., table.j, k]
    if alpha is not None:
        residual = residual - alpha[..., table.i] - beta[..., table.j]
    likelihood = -0.5 * np.sum(residual**2, axis=-1) / noise_variance
    with np.errstate(invalid="ignore", divide="ignore"):
        scales = np.where(d >= 0.0, np.log(gamma) - gamma * d, -np.inf).sum(axis=-1)
        rates = ((a - 1.0) * np.log(gamma) - b * gamma).sum(axis=-1)
    return likelihood + scales + rates + _in_ball(U) + _in_ball(V)


def log_variance(variance, scale):
    """log p(variance) of a half-Cauchy standard deviation."""
    sd = np.sqrt(variance)
    return stats.halfcauchy.logpdf(sd, scale=scale) - np.log(2.0 * sd)


def log_effects(effects, mean, variance, scale):
    """log p(effects, mean, variance): N(mean, variance), N(0, S^2) and a half-Cauchy(0, S) sd."""
    given = stats.norm.logpdf(effects, np.expand_dims(mean, -1), np.sqrt(variance)[..., None])
    hyper = stats.norm.logpdf(mean, scale=scale) + log_variance(variance, scale)
    return given.sum(axis=-1) + hyper
