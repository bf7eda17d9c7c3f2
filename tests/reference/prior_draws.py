"""Independent draws of everything from the prior, many at once."""

from typing import NamedTuple

import numpy as np

from fillrank.samplers.state import Effect
from reference.small_tables import make_state


class Model(NamedTuple):
    """The fixed parameters; an effect's prior is None where there are no effects."""

    a: float
    b: float
    noise_variance: float
    effect_prior: tuple[float, float] | None


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
    x: np.ndarray


def in_ball(rng, size, n, r):
    """(size, n, r): columns uniform in the unit ball of R^n."""
    g = rng.standard_normal((size, n, r))
    radius = rng.random((size, 1, r)) ** (1.0 / n)
    return radius * g / np.linalg.norm(g, axis=1, keepdims=True)


def _effects(rng, size, n, prior):
    """(effects (size, n), [mean, variance] (size, 2))."""
    if prior is None:
        return np.zeros((size, n)), np.tile([0.0, 1.0], (size, 1))
    shape, rate = prior
    mean = rng.standard_normal(size)
    variance = rate / rng.gamma(shape, size=size)
    effects = mean[:, None] + np.sqrt(variance)[:, None] * rng.standard_normal((size, n))
    return effects, np.column_stack([mean, variance])


def signal_at(table, U, V, d, alpha, beta):
    """The signal at the observed places, (..., entries)."""
    i, j = table.i, table.j
    low_rank = np.einsum("...tk,...k,...tk->...t", U[..., i, :], d, V[..., j, :])
    return low_rank + alpha[..., i] + beta[..., j]


def prior_draws(rng, size, table, r, model):
    """``size`` independent draws from the joint law of parameters and data."""
    m, n = table.shape
    gamma = rng.gamma(model.a, 1.0 / model.b, (size, r))
    d = rng.exponential(1.0, (size, r)) / gamma
    U, V = in_ball(rng, size, m, r), in_ball(rng, size, n, r)
    alpha, row_effect = _effects(rng, size, m, model.effect_prior)
    beta, column_effect = _effects(rng, size, n, model.effect_prior)
    noise = rng.standard_normal((size, table.n_entries))
    x = signal_at(table, U, V, d, alpha, beta) + np.sqrt(model.noise_variance) * noise
    return Draws(U, V, d, gamma, alpha, beta, row_effect, column_effect, x)


def state_of_draw(draws, c, model, sweep):
    """Draw number c as the state of a chain."""
    return make_state(
        draws.U[c], draws.V[c], draws.d[c], draws.gamma[c],
        a=model.a, b=model.b, noise_variance=model.noise_variance,
        alpha=draws.alpha[c], beta=draws.beta[c],
        row_effect=Effect(*draws.row_effect[c]), column_effect=Effect(*draws.column_effect[c]),
        sweep=sweep,
    )  # fmt: skip
