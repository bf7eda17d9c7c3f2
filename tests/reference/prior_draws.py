"""Independent draws of everything from the prior, many at once."""

from typing import NamedTuple

import numpy as np

from fillrank.noise.laws import LAWS
from fillrank.noise.precisions import DEGREES, PRIOR_SCALE
from fillrank.samplers import gasr
from fillrank.samplers.feature_steps import STRENGTHS, Weights
from fillrank.samplers.model import Effect
from fillrank.samplers.noise_steps import EQUAL_NOISE, FIRST_DEGREES, FIXED_VARIANCE, NoiseModel
from reference.feature_cases import NONE, Sides
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
    features: Sides = NONE


class FeatureDraws(NamedTuple):
    """Weights (draws, p, K) of the features of one side, and strengths (draws, blocks)."""

    B: np.ndarray
    strengths: np.ndarray


class Draws(NamedTuple):
    """Draws of parameters and data; the first axis counts the draws.

    U and V are without their centres mu and nu, and without what features explain; the weights are
    those of the factors, then of effects. ``degrees`` (draws, 3) are the degrees of freedom of the
    precisions of rows, of columns, and of the noise of an entry.
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
    row_weights: FeatureDraws
    column_weights: FeatureDraws
    x: np.ndarray


def in_ball(rng, size, n, r):
    """(size, n, r): columns uniform in the unit ball of R^n."""
    g = rng.standard_normal((size, n, r))
    radius = rng.random((size, 1, r)) ** (1.0 / n)
    return radius * g / np.linalg.norm(g, axis=1, keepdims=True)


def strength_draws(rng, size, features):
    """(size, blocks): 1 / sqrt(lambda) half-Cauchy, within the bounds of lambda."""
    low, high = (2.0 / np.pi * np.arctan(np.array(STRENGTHS) ** -0.5))[::-1]
    place = rng.uniform(low, high, (size, len(features.ends)))
    return np.tan(0.5 * np.pi * place) ** -2.0


def by_feature(strengths, features):
    """The strength of the block of each feature, (..., p)."""
    return np.repeat(strengths, np.diff([0, *features.ends]), axis=-1)


def _factors(rng, size, n, r, has_centres, features):
    """(factors (size, n, r), centres (size, r), weights (size, p, r), strengths)."""
    p, n_more = features.n_features, int(has_centres)
    ball = in_ball(rng, size, n + n_more + p, r)
    strengths = strength_draws(rng, size, features)
    weights = ball[:, n + n_more :] / np.sqrt(by_feature(strengths, features))[..., None]
    centre = ball[:, n] / np.sqrt(gasr._CENTRE_WEIGHT) if has_centres else np.zeros((size, r))
    return ball[:, :n], centre, weights, strengths


def variance_draws(rng, size):
    """Squares of half-Cauchy standard deviations."""
    return (PRIOR_SCALE * rng.standard_cauchy(size)) ** 2


def _effects(rng, size, n, model, features, strengths):
    """(effects (size, n), [mean, variance] (size, 2), weights (size, p))."""
    p = features.n_features
    if not model.has_effects:
        return np.zeros((size, n)), np.tile([0.0, 1.0], (size, 1)), np.zeros((size, p))
    mean = PRIOR_SCALE * rng.standard_normal(size)
    variance = variance_draws(rng, size)
    sd = np.sqrt(variance)[:, None]
    weights = sd / np.sqrt(by_feature(strengths, features)) * rng.standard_normal((size, p))
    effects = mean[:, None] + sd * rng.standard_normal((size, n))
    if p:
        effects = effects + weights @ features.values.T
    return effects, np.column_stack([mean, variance]), weights


def _weights(of_factors, of_effects, column, strengths):
    """Those of the factors and of effects, in the columns that a state has them in."""
    size, p, r = of_factors.shape
    B = np.zeros((size, p, r + 2))
    B[:, :, :r], B[:, :, r + column] = of_factors, of_effects
    return FeatureDraws(B, strengths)


def explained(features, B):
    """F B, (draws, n, K)."""
    if not features.ends:
        return np.zeros((len(B), 1, B.shape[2]))
    return np.einsum("ip,tpk->tik", features.values, B)


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
    columns[:, model.fixed] = variance[:, None] / FIXED_VARIANCE
    degrees = rng.choice(DEGREES, size) if model.robust else np.full(size, np.inf)
    degrees = np.column_stack([row_degrees, column_degrees, degrees])
    noise = entry_noise(
        rng, table, variance[:, None], rows, columns, degrees[:, 2, None], model.law
    )
    return rows, columns, degrees, noise


def entry_noise(rng, table, variance, rows, columns, degrees, law="gaussian"):
    """The noise of the observed entries: Gaussian, Student-t with finite ``degrees``, or of a law."""
    precision = rows[..., table.i] * columns[..., table.j] * table.weights
    if law != "gaussian":
        scale = np.sqrt(variance / precision)
        return scale * LAWS[law].quantile(rng.uniform(1e-15, 1.0, precision.shape))
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
    rows_of, columns_of = model.features.both
    U, mu, row_b, row_strengths = _factors(rng, size, m, r, model.has_centres, rows_of)
    V, nu, column_b, column_strengths = _factors(rng, size, n, r, model.has_centres, columns_of)
    alpha, row_effect, of_alpha = _effects(rng, size, m, model, rows_of, row_strengths)
    beta, column_effect, of_beta = _effects(rng, size, n, model, columns_of, column_strengths)
    if model.noise_variance is None:
        noise_variance = variance_draws(rng, size)
    else:
        noise_variance = np.full(size, model.noise_variance)
    rows, columns, degrees, noise = noise_draws(rng, size, table, model.noise, noise_variance)
    left = U + mu[:, None] + explained(rows_of, row_b)
    right = V + nu[:, None] + explained(columns_of, column_b)
    x = signal_at(table, left, right, d, alpha, beta) + noise
    return Draws(
        U, V, d, gamma, alpha, beta, row_effect, column_effect, noise_variance,
        mu, nu, a, b, rows, columns, degrees, _weights(row_b, of_alpha, 0, row_strengths),
        _weights(column_b, of_beta, 1, column_strengths), x,
    )  # fmt: skip


def noise_of_draw(draws, c):
    """The noise of draw number c, as a state has it."""
    row, column, entry = draws.degrees[c]
    return make_noise(
        draws.noise_variance[c], (draws.rows.shape[1], draws.columns.shape[1]),
        draws.rows[c], draws.columns[c], entry, (row, column),
    )  # fmt: skip


def state_of_draw(draws, c, sweep, features=NONE):
    """Draw number c as the state of a chain."""
    row_weights, column_weights = (
        Weights(each.B[c], each.strengths[c]) for each in (draws.row_weights, draws.column_weights)
    )
    r = draws.d.shape[1]
    shifts = [
        explained(side, each.B[None, :, :r])[0]
        for side, each in zip(features.both, (row_weights, column_weights), strict=True)
    ]
    return make_state(
        draws.U[c] + shifts[0], draws.V[c] + shifts[1], draws.d[c], draws.gamma[c],
        a=float(draws.a[c]), b=float(draws.b[c]), noise_variance=None,
        alpha=draws.alpha[c], beta=draws.beta[c], mu=draws.mu[c], nu=draws.nu[c],
        row_effect=Effect(*draws.row_effect[c]), column_effect=Effect(*draws.column_effect[c]),
        sweep=sweep, noise=noise_of_draw(draws, c), weights=(row_weights, column_weights),
    )  # fmt: skip
