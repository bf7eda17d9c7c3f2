"""Independent draws of everything from the prior, many at once."""

from typing import NamedTuple

import numpy as np

from fillrank.noise.precisions import DEGREES, PRIOR_SCALE
from fillrank.samplers import gasr
from fillrank.samplers.model import Effect
from fillrank.samplers.noise_steps import EQUAL_NOISE, FIRST_DEGREES, NoiseModel
from reference.small_tables import make_noise, make_state


class Model(NamedTuple):
    """The fixed parameters.

    The noise variance is fixed, or None if it is sampled; a and b likewise.
    """

    a: float | None
    b: float | None
    noise_variance: float | None
    has_effects: bool
    has_centres: bool = False
    noise: NoiseModel = EQUAL_NOISE


class Draws(NamedTuple):
    """Draws of parameters and data; the first axis counts the draws.

    U and V are without their centres mu and nu. ``degrees`` (draws, 3) are the degrees of freedom of
    the precisions of rows, of columns, and of the noise of an entry.
    """

    U: np.ndarray
    V: np.ndarray
    d: np.ndarray
    gamma: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    row_effect: np.ndarray
    column_effect: np.ndarray
    noise_variance: np.ndarray
    mu: np.ndarray
    nu: np.ndarray
    a: np.ndarray
    b: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    degrees: np.ndarray
    x: np.ndarray


def in_ball(rng, size, n, r):
    """(size, n, r): columns uniform in the unit ball of R^n."""
    g = rng.standard_normal((size, n, r))
    radius = rng.random((size, 1, r)) ** (1.0 / n)
    return radius * g / np.linalg.norm(g, axis=1, keepdims=True)


def _factors(rng, size, n, r, has_centres):
    """(factors (size, n, r), centres (size, r))."""
    if not has_centres:
        return in_ball(rng, size, n, r), np.zeros((size, r))
    ball = in_ball(rng, size, n + 1, r)
    return ball[:, :n], ball[:, n] / np.sqrt(gasr._CENTRE_WEIGHT)


def variance_draws(rng, size):
    """Squares of half-Cauchy standard deviations."""
    return (PRIOR_SCALE * rng.standard_cauchy(size)) ** 2


def _effects(rng, size, n, model):
    """(effects (size, n), [mean, variance] (size, 2))."""
    if not model.has_effects:
        return np.zeros((size, n)), np.tile([0.0, 1.0], (size, 1))
    mean = PRIOR_SCALE * rng.standard_normal(size)
    variance = variance_draws(rng, size)
    effects = mean[:, None] + np.sqrt(variance)[:, None] * rng.standard_normal((size, n))
    return effects, np.column_stack([mean, variance])


def rate_draws(rng, size, shape, model):
    """a and b; sampled as the docstring of the sampler has them."""
    if model.a is not None:
        return np.full(size, model.a), np.full(size, model.b)
    rate = 4.0 / np.sqrt(shape[0] * shape[1])
    return np.exp(gasr._LOG_A_SD * rng.standard_normal(size)), rng.gamma(2.0, 1.0 / rate, size)


def precision_draws(rng, size, n, differs):
    """(precisions (size, n), their degrees of freedom (size,))."""
    if not differs:
        return np.ones((size, n)), np.full(size, FIRST_DEGREES)
    degrees = rng.choice(DEGREES, size)
    half = 0.5 * degrees[:, None]
    return rng.gamma(half, 1.0 / half, (size, n)), degrees


def noise_draws(rng, size, table, model, variance):
    """(rows, columns, degrees (size, 3), noise of the observed entries)."""
    m, n = table.shape
    rows, row_degrees = precision_draws(rng, size, m, model.rows)
    columns, column_degrees = precision_draws(rng, size, n, model.columns)
    degrees = rng.choice(DEGREES, size) if model.robust else np.full(size, np.inf)
    degrees = np.column_stack([row_degrees, column_degrees, degrees])
    noise = entry_noise(rng, table, variance[:, None], rows, columns, degrees[:, 2, None])
    return rows, columns, degrees, noise


def entry_noise(rng, table, variance, rows, columns, degrees):
    """The noise of the observed entries: Student-t with finite ``degrees``, otherwise Gaussian."""
    precision = rows[..., table.i] * columns[..., table.j] * table.weights
    noise = rng.standard_normal(precision.shape) * np.sqrt(variance / precision)
    if np.all(np.isfinite(degrees)):
        half = np.broadcast_to(0.5 * degrees, precision.shape)
        noise /= np.sqrt(rng.gamma(half, 1.0 / half))
    return noise


def signal_at(table, U, V, d, alpha, beta):
    """The signal at the observed places, (..., entries); U and V include their centres."""
    i, j = table.i, table.j
    low_rank = np.einsum("...tk,...k,...tk->...t", U[..., i, :], d, V[..., j, :])
    return low_rank + alpha[..., i] + beta[..., j]


def prior_draws(rng, size, table, r, model):
    """``size`` independent draws from the joint distribution of parameters and data."""
    m, n = table.shape
    a, b = rate_draws(rng, size, table.shape, model)
    gamma = rng.gamma(a[:, None], 1.0 / b[:, None], (size, r))
    d = rng.exponential(1.0, (size, r)) / gamma
    U, mu = _factors(rng, size, m, r, model.has_centres)
    V, nu = _factors(rng, size, n, r, model.has_centres)
    alpha, row_effect = _effects(rng, size, m, model)
    beta, column_effect = _effects(rng, size, n, model)
    if model.noise_variance is None:
        noise_variance = variance_draws(rng, size)
    else:
        noise_variance = np.full(size, model.noise_variance)
    rows, columns, degrees, noise = noise_draws(rng, size, table, model.noise, noise_variance)
    x = signal_at(table, U + mu[:, None], V + nu[:, None], d, alpha, beta) + noise
    return Draws(
        U, V, d, gamma, alpha, beta, row_effect, column_effect, noise_variance,
        mu, nu, a, b, rows, columns, degrees, x,
    )  # fmt: skip


def noise_of_draw(draws, c):
    """The noise of draw number c, as a state has it."""
    row, column, entry = draws.degrees[c]
    return make_noise(
        draws.noise_variance[c], (draws.rows.shape[1], draws.columns.shape[1]),
        draws.rows[c], draws.columns[c], entry, (row, column),
    )  # fmt: skip


def state_of_draw(draws, c, sweep):
    """Draw number c as the state of a chain."""
    return make_state(
        draws.U[c], draws.V[c], draws.d[c], draws.gamma[c],
        a=float(draws.a[c]), b=float(draws.b[c]), noise_variance=None,
        alpha=draws.alpha[c], beta=draws.beta[c], mu=draws.mu[c], nu=draws.nu[c],
        row_effect=Effect(*draws.row_effect[c]), column_effect=Effect(*draws.column_effect[c]),
        sweep=sweep, noise=noise_of_draw(draws, c),
    )  # fmt: skip
