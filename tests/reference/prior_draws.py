"""Independent draws of everything from the prior, many at once."""

from typing import NamedTuple

import numpy as np

from fillrank.samplers.model import Effect
from reference.small_tables import make_state


class Model(NamedTuple):
    """The fixed parameters.

    ``prior_scale`` is S, the scale of the half-Cauchy priors of standard deviations. The noise variance
    is fixed, or None if it is sampled.
    """

    a: float
    b: float
    noise_variance: float | None
    has_effects: bool
    prior_scale: float


class Draws(NamedTuple):
    """Draws of parameters and data; the first axis counts the draws."""

    U: np.ndarray
    V: np.ndarray
    d: np.ndarray
    gamma: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    row_effect: np.ndarray
    column_effect: np.ndarray
    noise_variance: np.ndarray
    x: np.ndarray


def in_ball(rng, size, n, r):
    """(size, n, r): columns uniform in the unit ball of R^n."""
    g = rng.standard_normal((size, n, r))
    radius = rng.random((size, 1, r)) ** (1.0 / n)
    return radius * g / np.linalg.norm(g, axis=1, keepdims=True)


def _variances(rng, size, scale):
    """Squares of half-Cauchy standard deviations."""
    return (scale * rng.standard_cauchy(size)) ** 2


def _effects(rng, size, n, model):
    """(effects (size, n), [mean, variance] (size, 2))."""
    if not model.has_effects:
        return np.zeros((size, n)), np.tile([0.0, 1.0], (size, 1))
    mean = model.prior_scale * rng.standard_normal(size)
    variance = _variances(rng, size, model.prior_scale)
    effects = mean[:, None] + np.sqrt(variance)[:, None] * rng.standard_normal((size, n))
    return effects, np.column_stack([mean, variance])


def signal_at(table, U, V, d, alpha, beta):
    """The signal at the observed places, (..., entries)."""
    i, j = table.i, table.j
    low_rank = np.einsum("...tk,...k,...tk->...t", U[..., i, :], d, V[..., j, :])
    return low_rank + alpha[..., i] + beta[..., j]


def prior_draws(rng, size, table, r, model):
    """``size`` independent draws from the joint distribution of parameters and data."""
    m, n = table.shape
    gamma = rng.gamma(model.a, 1.0 / model.b, (size, r))
    d = rng.exponential(1.0, (size, r)) / gamma
    U, V = in_ball(rng, size, m, r), in_ball(rng, size, n, r)
    alpha, row_effect = _effects(rng, size, m, model)
    beta, column_effect = _effects(rng, size, n, model)
    if model.noise_variance is None:
        noise_variance = _variances(rng, size, model.prior_scale)
    else:
        noise_variance = np.full(size, model.noise_variance)
    noise = rng.standard_normal((size, table.n_entries))
    x = signal_at(table, U, V, d, alpha, beta) + np.sqrt(noise_variance)[:, None] * noise
    return Draws(U, V, d, gamma, alpha, beta, row_effect, column_effect, noise_variance, x)


def state_of_draw(draws, c, model, sweep):
    """Draw number c as the state of a chain."""
    return make_state(
        draws.U[c], draws.V[c], draws.d[c], draws.gamma[c],
        a=model.a, b=model.b, noise_variance=draws.noise_variance[c],
        alpha=draws.alpha[c], beta=draws.beta[c],
        row_effect=Effect(*draws.row_effect[c]), column_effect=Effect(*draws.column_effect[c]),
        sweep=sweep,
    )  # fmt: skip
