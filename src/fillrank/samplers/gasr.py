r"""GASR by a Gaussian scale mixture: the sampler of the engine.

The model, in the letters of Song and Zhu ("Bayesian matrix completion via adaptive relaxed spectral
regularization", AAAI 2016), with two optional additions, effects and centres:

.. math::

    x_{ij} &\sim N(\alpha_i + \beta_j + \sum_k d_k (u_{ki} + \mu_k)(v_{kj} + \nu_k),\;
    \sigma^2 / (a_i b_j l_{ij} w_{ij})) \\
    (u_k, \sqrt{c} \mu_k) &\sim \text{uniform on the unit ball of } R^{m+1}, \qquad
    (v_k, \sqrt{c} \nu_k) \sim \text{uniform on the unit ball of } R^{n+1} \\
    d_k &\sim \text{Exponential(rate } \gamma_k), \qquad \gamma_k \sim \text{Gamma}(a, \text{rate } b) \\
    \alpha_i &\sim N(\bar\alpha, s_\alpha^2), \qquad \bar\alpha \sim N(0, S^2), \qquad
    s_\alpha \sim \text{half-Cauchy}(0, S), \quad \beta_j \text{ likewise}

with S = 2 standard deviations of the data. The noise level sigma, the relative precisions a_i of rows,
b_j of columns and l_ij of entries, all optional, and their priors are those of
`fillrank.noise.precisions`; w_ij are the given weights of entries. The hyperparameters of gamma (written
a and b in the paper, as here where no index follows) have the priors

.. math:: \log a \sim N(0, 1.5^2), \qquad b \sim \text{Gamma}(2, \text{rate } 4 / \sqrt{m n}),

so that b is of the size of d for a component that explains a fraction of the data's variance.

`gasr_published` estimates a, b and sigma by Monte Carlo EM instead (`monte_carlo_em`).

The centres mu_k and nu_k are the means of the factors; c = 10 makes them a priori a third of the size
of a factor's entries, which the entries of a large table outweigh. Without centres, u_k is uniform on
the unit ball of R^m, and v_k on that of R^n. Flat priors of the centres would have an infinite volume,
by which the posterior prefers components of size 0: in small noisy tables it lost the signal.

**The ball disappears.** Fix v_k, nu_k and gamma_k and drop k. With z = d u the prior of (d, z) is
proportional to :math:`e^{-\gamma d} d^{-m} 1[d \ge \|z\|]`. A centre M = d mu is one more entry of z:
with centres, read m + 1 for m and ||z||^2 + c M^2 for ||z||^2 from here on. Integrating d out leaves a
function of R = ||z||^2,

.. math:: f(R) = \int_{\sqrt R}^\infty e^{-\gamma t} t^{-m} dt, \qquad
          -f'(R) = \tfrac12 e^{-\gamma\sqrt R} R^{-(m+1)/2},

which is completely monotone, so by Bernstein's theorem a mixture of :math:`e^{-\tau R}`: given tau,
the entries of z are independent N(0, 1/(2 tau)). Given R, tau = s + g with

.. math:: p(s, g \mid R) \propto (s+g)^{-1} \; s^{-3/2} e^{-\gamma^2/(4s) - sR} \; g^{(m-1)/2} e^{-gR}

(:func:`draw_tau`), and d given R has density :math:`e^{-\gamma d} d^{-m}` on [sqrt R, inf)
(:func:`draw_d`). The scale d_k belongs to the left factor while rows are drawn and to the right one
while columns are drawn; a half-sweep is the same function for both sides.

**One sweep**

1. Draw gamma_k given d_k (:func:`draw_rates`).
2. Draw the rows (:func:`_half_sweep`), with A_k = d_k (u_k + mu_k), M_k = d_k mu_k, z_k = A_k -
M_k:

   a. tau_k given R_k;
   b. M_k given A_k and tau_k, if there are centres;
   c. A_ik for every row i and component k, and the effect of the row;
   d. lambda and B given A, if there are features;
   e. M_k again;
   f. d_k given R_k, then u_k = z_k / d_k and mu_k = M_k / d_k;
   g. the mean and variance of the effects;
   h. the precisions a_i, if the noise differs by row.

3. Draw the columns in the same way.
4. Shift the effects of both sides against each other, which does not change the signal.
5. Draw sigma^2 and the degrees of freedom of the noise.
6. Draw a and b given gamma.
7. Draw the thresholds between ordered levels, if there are any (`fillrank.samplers.threshold_steps`).

Of values of other kinds than numbers only an interval is known: such an x_ij is drawn, given the
interval, in step 2c of its row and again in that of its column.

Steps 2a to 2e have d_k integrated out. Step 2f draws it before anything conditions on it.

**Features.** F (m, p) are known features of the rows. With them, u_{ki} + mu_k becomes
u_{ki} + mu_k + F_i b_k, and the vector (u_k, sqrt(c) mu_k, sqrt(lambda) b_k) is uniform on the unit ball
of R^(m+1+p): the weights b_k are p more entries of the ball. So all of the above holds with m + p for m
and ||z||^2 + lambda ||B||^2 for ||z||^2, with B = d b. Given tau, this is the model of
`fillrank.samplers.feature_steps` with Lambda = diag(2 tau). Effects have weights, too:
alpha_i ~ N(mean + F_i b_alpha, s^2) with b_alpha ~ N(0, s^2 / lambda). Rows are drawn with their own
prior means in step 2c; in step 2d lambda is drawn before B. The same holds for the columns.
"""

import math
import sys
from typing import NamedTuple

import numpy as np

from fillrank.draws import streams
from fillrank.draws.gamma import gamma as draw_gamma
from fillrank.draws.inverse_gaussian import inverse_gaussian
from fillrank.draws.normal import normal
from fillrank.draws.slice import slice_step
from fillrank.draws.streams import Address, seek, start_stream, uniform
from fillrank.kernels.dense_rows import Dense
from fillrank.kernels.factors import scaled, singular_values, sums_about
from fillrank.kernels.gaussian_rows import Prior, RowNoise, RowSums
from fillrank.noise.precisions import PRIOR_SCALE, draw_variance
from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers
from fillrank.samplers.feature_steps import (
    WITHOUT_FEATURES,
    BothFeatures,
    Features,
    Weights,
    draw_weights,
    drawn_weights,
    explained,
    first_weights,
    share_history,
    weight_squares,
    without_explained,
)
from fillrank.samplers.model import (
    SMALLEST_NOISE,
    CompleteData,
    Data,
    Draw,
    Effect,
    Remote,
    RemoteData,
    Start,
    draw_rows,
)
from fillrank.samplers.noise_steps import (
    EQUAL_NOISE,
    NoiseModel,
    NoiseState,
    column_noise,
    draw_column_precisions,
    draw_level,
    draw_row_precisions,
    first_noise,
    noise_history,
    residual_square,
    row_noise,
)
from fillrank.samplers.threshold_steps import (
    NO_INTERVALS,
    Intervals,
    RowThresholds,
    draw_intervals,
)
from fillrank.table.entries import Entries

# Initial values of a and b, in units of the data's standard deviation.
_FIRST_A, _FIRST_B = 1.0, 1.0
# Bounds of a and, in units of the data's standard deviation, of b. Beyond them the likelihood is
# flat (many equal d: a, b -> inf, an exponential prior) or unbounded (many d = 0: b -> 0).
A_BOUNDS = (1e-2, 1e3)
B_BOUNDS = (1e-10, 1e6)
# The priors: log a ~ N(0, sd^2); b ~ Gamma(shape, rate), with this mean as a share of sqrt(m n); and the
# weight c of a centre. In small noisy tables smaller b or c shrink weak factors to zero
# (docs/defaults.md).
_LOG_A_SD = 1.5
_B_SHAPE, _B_MEAN = 2.0, 0.5
_CENTRE_WEIGHT = 10.0
# How far draws go beyond their means after the burn-in: predictions then have about twice as many
# effective draws a sweep. During the burn-in it would slow the chain down, because the size of the
# factors, and with it the noise, would change more slowly (docs/defaults.md).
RELAXATION = -0.5
# Factors start a little inside their balls, and spare components at this share of the noise.
_FIRST_NORM = 0.95
_SPARE_SCALE = 1e-2
# Lower bound of squared norms, so that a component at zero can grow again.
_SMALLEST_SQUARE = 1e-30
# The quantity that a scalar draw of a side is for.
_TAU, _CENTRE_BEFORE, _CENTRE_AFTER, _D, _EFFECT, _SHIFT = range(6)
# The quantity that a draw of the rates is for.
_RATE, _SHAPE_A, _RATE_B = range(3)


class Options(NamedTuple):
    """Which optional terms the model has, and how its noise differs."""

    row_effects: bool
    column_effects: bool
    centres: bool
    noise: NoiseModel = EQUAL_NOISE


class State(NamedTuple):
    """All that the next sweep needs.

    ``left`` (m, r + 2) holds u_k + mu_k in its first r columns, then alpha, then ones; ``right``
    (n, r + 2) holds v_k + nu_k, then ones, then beta. So left diag(d, 1, 1) right^T is the signal. The
    weights of features are b_k and b_alpha in the columns of ``left``, and likewise for ``right``.
    ``limits`` (2, k) are the ends of the intervals in which values are known to be; if they differ by
    row, they are those of an average row, and ``row_thresholds`` has them all.
    """

    left: np.ndarray
    right: np.ndarray
    d: np.ndarray
    gamma: np.ndarray
    mu: np.ndarray
    nu: np.ndarray
    row_effect: Effect
    column_effect: Effect
    a: float
    b: float
    noise: NoiseState
    row_weights: Weights
    column_weights: Weights
    limits: np.ndarray
    row_thresholds: RowThresholds
    sweep: int


class Info(NamedTuple):
    """Statistics of a sweep: the weighted sum of squared residuals, and d."""

    residual_square: float
    d: np.ndarray


class Context(NamedTuple):
    """What does not change from sweep to sweep: the model's options, the chain's key, the threads.

    From the sweep ``relaxed_from`` on, draws go beyond their means (`RELAXATION`); from the sweep
    ``noise_from`` on, the noise is sampled, and from ``rates_from`` on a and b. By default they never
    are.
    """

    options: Options
    key: np.uint64
    workers: Workers
    relaxed_from: int
    noise_from: int = sys.maxsize
    rates_from: int = sys.maxsize
    features: BothFeatures = WITHOUT_FEATURES
    intervals: Intervals = NO_INTERVALS


def _on_sphere(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """k random directions in R^n."""
    g = rng.standard_normal((n, k))
    return g / np.linalg.norm(g, axis=0)


def init(
    start: Start,
    dtype: np.dtype,
    rng: np.random.Generator,
    noise: NoiseModel = EQUAL_NOISE,
    features: BothFeatures = WITHOUT_FEATURES,
    intervals: Intervals = NO_INTERVALS,
) -> State:
    """The first state, at a guess; components that it lacks start at random, very small."""
    r, q = start.max_rank, start.s.size
    m, n = start.U.shape[0], start.V.shape[0]
    noise_variance = max(start.noise_variance, SMALLEST_NOISE)
    left, right = np.ones((m, r + 2), dtype), np.ones((n, r + 2), dtype)
    for factors, guess in ((left, start.U), (right, start.V)):
        factors[:, :q] = _FIRST_NORM * guess
        factors[:, q:r] = _FIRST_NORM * _on_sphere(rng, len(factors), r - q)
    left[:, r], right[:, r + 1] = start.row_effects, start.column_effects
    spare = np.full(r - q, _SPARE_SCALE * math.sqrt(noise_variance))
    return State(
        left,
        right,
        d=np.append(start.s, spare).astype(np.float64) / _FIRST_NORM**2,
        gamma=np.ones(r),
        mu=np.zeros(r),
        nu=np.zeros(r),
        row_effect=start.row_effect,
        column_effect=start.column_effect,
        a=_FIRST_A,
        b=_FIRST_B,
        noise=first_noise(noise_variance, m, start.column_precisions, noise),
        row_weights=first_weights(features.rows, r + 2),
        column_weights=first_weights(features.columns, r + 2),
        limits=intervals.limits,
        row_thresholds=intervals.first_row_thresholds(m),
        sweep=0,
    )


@njit
def draw_tau(stream: np.ndarray, R: float, gamma: float, m: int) -> float:
    """tau = s + g given R = ||z||^2, the precision of the scale mixture.

    (s, g) has a density proportional to (s + g)^-1 s^(-3/2) e^(-gamma^2/(4s) - sR) g^((m-1)/2) e^(-gR).
    Proposes an inverse Gaussian s and a gamma variate g, and accepts with probability g / (s + g).
    """
    while True:
        s = inverse_gaussian(stream, gamma / (2.0 * math.sqrt(R)), 0.5 * gamma * gamma)
        g = draw_gamma(stream, 0.5 * (m - 1), R)
        if uniform(stream) * (s + g) < g:
            return s + g


@njit
def draw_d(stream: np.ndarray, R: float, gamma: float, m: int) -> float:
    """d of density e^(-gamma d) d^(-m) on [sqrt R, inf), given R = ||z||^2.

    Proposes from the factor that falls faster and accepts by the other one.
    """
    rho = math.sqrt(R)
    while True:
        if gamma * rho < m - 1:
            d = rho * uniform(stream) ** (-1.0 / (m - 1))
            log_accept = -gamma * (d - rho)
        else:
            d = rho - math.log(uniform(stream)) / gamma
            log_accept = -m * math.log(d / rho)
        if math.log(uniform(stream)) < log_accept:
            return d


@njit(cache=True)
def draw_rates(key: np.uint64, sweep: int, d: np.ndarray, a: float, b: float) -> np.ndarray:
    """gamma_k | d_k ~ Gamma(a + 1, rate b + d_k)."""
    stream = start_stream(key, sweep, streams.RATES)
    gamma = np.empty_like(d)
    for k in range(d.size):
        seek(stream, _RATE, k)
        gamma[k] = draw_gamma(stream, a + 1.0, b + d[k])
    return gamma


@njit(cache=True)
def _draw_taus(address: Address, R: np.ndarray, gamma: np.ndarray, m: int) -> np.ndarray:
    """tau_k given R_k for every component (`draw_tau`)."""
    stream = start_stream(address.key, address.sweep, address.purpose)
    tau = np.empty_like(R)
    for k in range(R.size):
        seek(stream, _TAU, k)
        tau[k] = draw_tau(stream, max(R[k], _SMALLEST_SQUARE), gamma[k], m)
    return tau


@njit(cache=True)
def _draw_ds(address: Address, R: np.ndarray, gamma: np.ndarray, m: int) -> np.ndarray:
    """d_k given R_k for every component (`draw_d`)."""
    stream = start_stream(address.key, address.sweep, address.purpose)
    d = np.empty_like(R)
    for k in range(R.size):
        seek(stream, _D, k)
        d[k] = draw_d(stream, max(R[k], _SMALLEST_SQUARE), gamma[k], m)
    return d


@njit(cache=True)
def _draw_normals(quantity: int, address: Address, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Independent N(mean_k, sd_k^2)."""
    stream = start_stream(address.key, address.sweep, address.purpose)
    out = np.empty_like(mean)
    for k in range(mean.size):
        seek(stream, quantity, k)
        out[k] = mean[k] + sd[k] * normal(stream)
    return out


class EffectSums(NamedTuple):
    """Of n effects without what features explain: their sum and squares about the mean.

    ``weight_square`` is lambda ||b_alpha||^2, of ``n_weights`` weights.
    """

    n: int
    total: float
    square: float
    n_weights: int
    weight_square: float


@njit(cache=True)
def _draw_effect(
    address: Address, mean: float, variance: float, sums: EffectSums
) -> tuple[float, float]:
    """(mean, variance) of the Gaussian behind n effects, and behind their weights of features.

    The mean has prior N(0, S^2), so given the effects e_i, without what features explain, it is
    N(P^-1 sum_i e_i / s^2, P^-1) with P = 1/S^2 + n/s^2. Then s, with prior half-Cauchy(0, S), is drawn
    given sum_i (e_i - mean)^2 + lambda ||b_alpha||^2, a sum of n + p squares.
    """
    stream = start_stream(address.key, address.sweep, address.purpose)
    seek(stream, _EFFECT, 0)
    n, total = sums.n, sums.total
    precision = 1.0 / PRIOR_SCALE**2 + n / variance
    new_mean = (n * mean + total) / variance / precision + normal(stream) / math.sqrt(precision)
    shift = new_mean - mean
    about_new = sums.square - 2.0 * shift * total + n * shift * shift
    n_normal = n + sums.n_weights
    return new_mean, draw_variance(stream, variance, n_normal, about_new + sums.weight_square)


@njit(cache=True)
def _draw_b(address: Address, shape: float, rate: float) -> float:
    stream = start_stream(address.key, address.sweep, address.purpose)
    seek(stream, _RATE_B, 0)
    return draw_gamma(stream, shape, rate)


def draw_hyperparameters(
    address: Address, gamma: np.ndarray, a: float, n_cells: int
) -> tuple[float, float]:
    """(a, b) given gamma: b ~ Gamma(2 + r a, rate 4 / sqrt(m n) + sum gamma), then a by a slice step."""
    r, total, log_total = gamma.size, float(gamma.sum()), float(np.log(gamma).sum())
    b = _draw_b(address, _B_SHAPE + r * a, _B_SHAPE / (_B_MEAN * math.sqrt(n_cells)) + total)
    b = min(max(b, B_BOUNDS[0]), B_BOUNDS[1])
    low, high = (math.log(bound) for bound in A_BOUNDS)

    def log_density(t: float) -> float:
        if not low <= t <= high:
            return -math.inf
        a = math.exp(t)
        return r * (a * math.log(b) - math.lgamma(a)) + a * log_total - 0.5 * (t / _LOG_A_SD) ** 2

    return math.exp(slice_step(math.log(a), log_density, 1.0, address, _SHAPE_A)), b


class Side(NamedTuple):
    """One side of the table in a half-sweep: its factors, centres, effects and features."""

    own: np.ndarray
    centre: np.ndarray
    effect: Effect
    has_effects: bool
    effect_column: int
    weights: Weights
    features: Features
    noise: RowNoise
    kernel_purpose: int
    scalar_purpose: int


def _half_sweep(
    side: Side, other: np.ndarray, values: Entries | Dense | Remote, state: State, context: Context
) -> tuple[Side, np.ndarray, RowSums]:
    """Steps a to g of 2, or of 3: one side's factors, centres, features and effects, with d.

    Returns (side, d, sums over the entries of each row).
    """
    d, gamma, workers = state.d, state.gamma, context.workers
    (n, width), r = side.own.shape, d.size
    features, p = side.features, side.features.n_features
    n_ball = n + p + 1 if context.options.centres else n + p
    address = Address(context.key, state.sweep, side.scalar_purpose)

    # a. tau_k given R_k = ||z_k||^2 + c M_k^2 + lambda ||B_k||^2.
    A = scaled(side.own, d, workers)
    centre = d * side.centre
    weights = _scaled_weights(side.weights, d)
    shifts = explained(features, weights.B, workers)
    total, R = sums_about(without_explained(A, shifts), centre, workers)
    R = R + _CENTRE_WEIGHT * centre**2 + weight_squares(weights, features)[:r]
    tau = _draw_taus(address, R, gamma, n_ball)

    # b. M_k, the centres, given A_k and tau_k.
    if context.options.centres:
        centre = _draw_centres(_CENTRE_BEFORE, address, total + n * centre, tau, n)

    # c. A_ik, of prior N(M_k + F_i B_k, 1/(2 tau_k)), and the effects.
    relaxation = RELAXATION if state.sweep >= context.relaxed_from else 0.0
    prior = _prior(side, centre, tau)._replace(relaxation=relaxation, shifts=shifts)
    where = Address(context.key, state.sweep, side.kernel_purpose)
    sums = draw_rows(values, A, other, prior, side.noise, where, workers)

    # d. lambda and B given A.
    rest = without_explained(A, shifts)
    if p:
        weights = _draw_weights(side, weights, rest, prior, address, workers)
        rest = A - explained(features, weights.B, workers)

    # e. M_k again, and R_k about it.
    about, column = np.zeros(width), side.effect_column
    about[:r], about[column] = centre, side.effect.mean
    totals, squares = sums_about(rest, about, workers)
    of_weights = weight_squares(weights, features)
    total, R = totals[:r], squares[:r] + of_weights[:r]
    if context.options.centres:
        new = _draw_centres(_CENTRE_AFTER, address, total + n * centre, tau, n)
        shift = new - centre
        R = R - 2 * shift * total + n * shift**2 + _CENTRE_WEIGHT * new**2
        centre = new

    # f. d_k given R_k.
    d = _draw_ds(address, R, gamma, n_ball)
    A = scaled(A, 1 / d, workers)

    # g. The mean and variance of the effects.
    effect = side.effect
    if side.has_effects:
        of_effects = EffectSums(n, totals[column], squares[column], p, of_weights[column])
        effect = Effect(*_draw_effect(address, *effect, of_effects))
    weights = _scaled_weights(weights, 1 / d)
    return side._replace(own=A, centre=centre / d, effect=effect, weights=weights), d, sums


def _scaled_weights(weights: Weights, d: np.ndarray) -> Weights:
    """The weights of the factors multiplied by d; those of effects do not change."""
    B = weights.B.copy()
    B[:, : d.size] *= d
    return weights._replace(B=B)


def _draw_weights(
    side: Side,
    weights: Weights,
    rest: np.ndarray,
    prior: Prior,
    address: Address,
    workers: Workers,
) -> Weights:
    """lambda and B (`fillrank.samplers.feature_steps`), for the coefficients that are free."""
    free = prior.free
    drawn = draw_weights(
        weights._replace(B=weights.B[:, free]),
        side.features,
        np.ascontiguousarray(rest[:, free]),
        np.diag(np.sqrt(prior.precision)),
        address,
        workers,
    )
    B = np.zeros_like(weights.B)
    B[:, free] = drawn.B
    return drawn._replace(B=B)


def _draw_centres(
    quantity: int, address: Address, total: np.ndarray, tau: np.ndarray, n: int
) -> np.ndarray:
    """M_k ~ N(total_k / (n + c), 1/(2 tau_k (n + c))), for n coefficients A_ik with these totals."""
    weight = n + _CENTRE_WEIGHT
    return _draw_normals(quantity, address, total / weight, 1 / np.sqrt(2 * tau * weight))


def _prior(side: Side, centre: np.ndarray, tau: np.ndarray) -> Prior:
    """The Gaussian priors of a row's coefficients, given tau: N(centre_k, 1/(2 tau_k))."""
    free, mean, precision = np.arange(tau.size), centre, 2.0 * tau
    if side.has_effects:
        free = np.append(free, side.effect_column)
        mean = np.append(mean, side.effect.mean)
        precision = np.append(precision, 1.0 / side.effect.variance)
    return Prior(free, mean, precision)


def _row_side(state: State, context: Context) -> Side:
    options = context.options
    return Side(
        state.left,
        state.mu,
        state.row_effect,
        options.row_effects,
        state.d.size,
        state.row_weights,
        context.features.rows,
        state.row_thresholds.of_rows(row_noise(state.noise.cells, options.noise, state.limits)),
        streams.ROWS,
        streams.ROW_SCALARS,
    )


def _column_side(state: State, context: Context) -> Side:
    options = context.options
    return Side(
        state.right,
        state.nu,
        state.column_effect,
        options.column_effects,
        state.d.size + 1,
        state.column_weights,
        context.features.columns,
        state.row_thresholds.of_columns(
            column_noise(state.noise.cells, options.noise, state.limits)
        ),
        streams.COLUMNS,
        streams.COLUMN_SCALARS,
    )


def sweep(
    state: State, data: Data | CompleteData | RemoteData, context: Context
) -> tuple[State, Info]:
    """One sweep: gamma, the rows with d, the columns with d, the noise, and the hyperparameters."""
    options, key, t = context.options, context.key, state.sweep
    row_counts, column_counts = data.counts
    samples_noise = t >= context.noise_from

    # 1. gamma_k given d_k.
    state = state._replace(gamma=draw_rates(key, t, state.d, state.a, state.b))

    # 2a to 2g. The rows.
    rows, d, sums = _half_sweep(_row_side(state, context), state.right, data.rows, state, context)
    state = state._replace(
        left=rows.own, mu=rows.centre, row_effect=rows.effect, row_weights=rows.weights, d=d
    )
    where = Address(key, t, streams.NOISE)
    # 2h. Their precisions.
    if options.noise.rows and samples_noise:
        noise = draw_row_precisions(state.noise, where, row_counts, sums, context.workers)
        state = state._replace(noise=noise)

    # 3a to 3g. The columns.
    columns, d, sums = _half_sweep(
        _column_side(state, context), state.left, data.columns, state, context
    )
    state = state._replace(
        right=columns.own,
        nu=columns.centre,
        column_effect=columns.effect,
        column_weights=columns.weights,
        d=d,
    )
    # 3h. Their precisions.
    if options.noise.columns and samples_noise:
        noise = draw_column_precisions(
            state.noise, options.noise, where, column_counts, sums, context.workers
        )
        state = state._replace(noise=noise)
    info = Info(residual_square(state.noise.cells, sums), d)

    # 4. The effects of both sides against each other.
    if options.row_effects and options.column_effects:
        state = _shift_effects(state, where._replace(purpose=streams.COLUMN_SCALARS))

    # 5. The noise variance and the degrees of freedom.
    if samples_noise:
        noise = draw_level(state.noise, options.noise, where, column_counts, sums)
        state = state._replace(noise=noise)

    # 6. The hyperparameters of gamma.
    if t >= context.rates_from:
        where = where._replace(purpose=streams.RATES)
        a, b = draw_hyperparameters(where, state.gamma, state.a, math.prod(data.shape))
        state = state._replace(a=a, b=b)

    # 7. The thresholds.
    if context.intervals.are_drawn:
        limits, row_thresholds = draw_intervals(
            state,
            signal_factors(state),
            data,
            context.intervals,
            options.noise,
            where,
            context.workers,
        )
        state = state._replace(limits=limits, row_thresholds=row_thresholds)
    return state._replace(sweep=t + 1), info


def _shift_effects(state: State, where: Address) -> State:
    """Add t to the effects of the rows and their mean, and subtract it from those of the columns.

    The signal does not change, and the means have priors N(0, S^2): t ~ N((mean_c - mean_r)/2, S^2/2).
    """
    rows, columns, r = state.row_effect, state.column_effect, state.d.size
    mean = np.array([0.5 * (columns.mean - rows.mean)])
    sd = np.array([PRIOR_SCALE / math.sqrt(2.0)])
    t = float(_draw_normals(_SHIFT, where, mean, sd)[0])
    # In place: both arrays were made in this sweep.
    state.left[:, r] += t
    state.right[:, r + 1] -= t
    return state._replace(
        row_effect=rows._replace(mean=rows.mean + t),
        column_effect=columns._replace(mean=columns.mean - t),
    )


def signal_factors(state: State) -> tuple[np.ndarray, np.ndarray]:
    """(left, right) with d included in left, so that left right^T is the signal."""
    left = state.left.copy()
    left[:, : state.d.size] *= state.d.astype(left.dtype)
    return left, state.right


def draw(state: State) -> Draw:
    """The signal of a state."""
    left, right = signal_factors(state)
    row_weights = drawn_weights(_scaled_weights(state.row_weights, state.d), left.dtype)
    column_weights = drawn_weights(state.column_weights, left.dtype)
    ends = state.row_thresholds.drawn(left.dtype)
    return Draw(left, right, state.noise.cells, row_weights, column_weights, state.limits, ends)


def spectrum(drawn: Draw, options: Options) -> np.ndarray:
    """The singular values of Z without what the effects could explain.

    The model cannot distinguish Z + alpha 1^T + 1 beta^T from a Z that includes a part of the
    effects. The component of Z that is orthogonal to the all-ones directions does not depend on
    that split.
    """
    left, right = drawn.left[:, :-2], drawn.right[:, :-2]
    return singular_values(
        left,
        right,
        left.mean(axis=0, dtype=np.float64) if options.column_effects else 0.0,
        right.mean(axis=0, dtype=np.float64) if options.row_effects else 0.0,
    )


def traced(noise: NoiseModel, features: BothFeatures = WITHOUT_FEATURES) -> tuple[str, ...]:
    """The names of what `history` returns."""
    return ("residual_variance", "noise_variance", "a", "b", *noise.traced(), *features.traced())


def history(
    state: State,
    info: Info,
    n_entries: int,
    noise: NoiseModel = EQUAL_NOISE,
    features: BothFeatures = WITHOUT_FEATURES,
) -> dict[str, float]:
    """What is traced over the sweeps, in standard units."""
    values = {"residual_variance": info.residual_square / n_entries, "a": state.a, "b": state.b}
    values |= noise_history(state.noise, noise)
    values |= share_history(state.row_weights, state.column_weights, features)
    return {name: values[name] for name in traced(noise, features)}
