r"""GASR by a Gaussian scale mixture: the sampler of the engine.

The model, in the letters of Song and Zhu ("Bayesian matrix completion via adaptive relaxed spectral
regularization", AAAI 2016), with two optional additions, effects and centres:

.. math::

    x_{ij} &\sim N(\alpha_i + \beta_j + \sum_k d_k (u_{ki} + \mu_k)(v_{kj} + \nu_k),\; \sigma^2) \\
    u_k &\sim \text{uniform on the unit ball of } R^m, \qquad
    v_k \sim \text{uniform on the unit ball of } R^n \\
    d_k &\sim \text{Exponential(rate } \gamma_k), \qquad \gamma_k \sim \text{Gamma}(a, \text{rate } b) \\
    \alpha_i &\sim N(\bar\alpha, s_\alpha^2), \qquad \bar\alpha \sim N(0, S^2), \qquad
    s_\alpha \sim \text{half-Cauchy}(0, S), \quad \beta_j \text{ likewise} \\
    \sqrt{d_k} \mu_k, \; \sqrt{d_k} \nu_k &\sim \text{flat}

with S = 2 standard deviations of the data. The noise level sigma is estimated by Monte Carlo EM
(`monte_carlo_em`). In small tables, where it is not well known, it is sampled after the burn-in,
with sigma ~ half-Cauchy(0, S).

The centres are flat on the scale that both sides share. If mu_k and nu_k themselves were flat, the
posterior would be improper at d_k = 0, and unused components would drift there. So (d, mu, nu) has
a factor d from the centres.

**The ball disappears.** Fix v_k, nu_k and gamma_k and drop k. With z = d u the prior of (d, z) is
proportional to :math:`e^{-\gamma d} d^{-m} 1[d \ge \|z\|]`. A centre M = d mu does not change this:
the Jacobian of M cancels the factor d of its prior. Integrating d out leaves a function of
R = ||z||^2,

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

   a. tau_k given R_k = ||z_k||^2;
   b. M_k given A_k and tau_k, if there are centres;
   c. A_ik for every row i and component k, and the effect of the row;
   d. M_k again;
   e. d_k given R_k, then u_k = z_k / d_k and mu_k = M_k / d_k;
   f. the mean and variance of the effects.

3. Draw the columns in the same way.
4. Draw sigma^2, if it is sampled.

Steps 2a to 2d have d_k integrated out. Step 2e draws it before anything conditions on it.
"""

import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fillrank.draws import streams
from fillrank.draws.gamma import gamma as draw_gamma
from fillrank.draws.inverse_gaussian import inverse_gaussian
from fillrank.draws.normal import normal
from fillrank.draws.streams import Address, seek, start_stream, uniform
from fillrank.kernels.dense_rows import Dense
from fillrank.kernels.factors import scaled, singular_values, sums_about
from fillrank.kernels.gaussian_rows import Prior
from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import (
    LARGEST_ENTRY,
    LARGEST_SIGNAL,
    SMALLEST_NOISE,
    CompleteData,
    Data,
    Draw,
    Effect,
    Remote,
    RemoteData,
    Start,
    draw_rows,
    largest_entries,
)
from fillrank.table.entries import Entries

# Initial values of a and b, in units of the data's standard deviation.
_FIRST_A, _FIRST_B = 1.0, 1.0
# Bounds of a and, in units of the data's standard deviation, of b. Beyond them the likelihood is
# flat (many equal d: a, b -> inf, an exponential prior) or unbounded (many d = 0: b -> 0).
A_BOUNDS = (1e-2, 1e3)
B_BOUNDS = (1e-6, 1e6)
# How far draws go beyond their means after the burn-in: predictions then have about twice as many
# effective draws a sweep. During the burn-in it would slow the chain down, because the size of the
# factors, and with it the noise, would change more slowly (docs/defaults.md).
RELAXATION = -0.5
# Factors start a little inside their balls, and spare components at this share of the noise.
_FIRST_NORM = 0.95
_SPARE_SCALE = 1e-2
# The scale S of the priors of the effects' means and of all standard deviations, in units of the
# data's standard deviation. In a table of few entries that unit itself is uncertain, so S is above
# 1.
_PRIOR_SCALE = 2.0
# Lower bound of squared norms, so that a component at zero can grow again.
_SMALLEST_SQUARE = 1e-30
# The quantity that a scalar draw of a side is for.
_TAU, _CENTRE_BEFORE, _CENTRE_AFTER, _D, _EFFECT = range(5)


class Options(NamedTuple):
    """Which optional terms the model has."""

    row_effects: bool
    column_effects: bool
    centres: bool


class State(NamedTuple):
    """All that the next sweep needs.

    ``left`` (m, r + 2) holds u_k + mu_k in its first r columns, then alpha, then ones; ``right``
    (n, r + 2) holds v_k + nu_k, then ones, then beta. So left diag(d, 1, 1) right^T is the signal.
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
    noise_variance: float
    sweep: int


class Info(NamedTuple):
    """Statistics of a sweep: the sum of squared residuals, and d."""

    residual_square: float
    d: np.ndarray


class Context(NamedTuple):
    """What does not change from sweep to sweep: the model's options, the chain's key, the threads.

    From the sweep ``relaxed_from`` on, draws go beyond their means (`RELAXATION`); from the sweep
    ``noise_from`` on, the noise variance is sampled. By default it never is.
    """

    options: Options
    key: np.uint64
    workers: Workers
    relaxed_from: int
    noise_from: int = sys.maxsize


def _on_sphere(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """k random directions in R^n."""
    g = rng.standard_normal((n, k))
    return g / np.linalg.norm(g, axis=0)


def init(start: Start, dtype: np.dtype, rng: np.random.Generator) -> State:
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
        noise_variance=noise_variance,
        sweep=0,
    )


@njit
def draw_tau(stream: np.ndarray, R: float, gamma: float, m: int) -> float:
    """The precision tau of the scale mixture, given R = ||z||^2 (see the module's docstring)."""
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
        seek(stream, 0, k)
        gamma[k] = draw_gamma(stream, a + 1.0, b + d[k])
    return gamma


@njit(cache=True)
def _draw_taus(address: Address, R: np.ndarray, gamma: np.ndarray, m: int) -> np.ndarray:
    stream = start_stream(address.key, address.sweep, address.purpose)
    tau = np.empty_like(R)
    for k in range(R.size):
        seek(stream, _TAU, k)
        tau[k] = draw_tau(stream, max(R[k], _SMALLEST_SQUARE), gamma[k], m)
    return tau


@njit(cache=True)
def _draw_ds(address: Address, R: np.ndarray, gamma: np.ndarray, m: int) -> np.ndarray:
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


@njit
def draw_variance(stream: np.ndarray, variance: float, n: int, square: float) -> float:
    """A step to a new variance v, given n normal variables of mean 0 with this sum of squares.

    sqrt(v) ~ half-Cauchy(0, S), which is v | xi ~ InverseGamma(1/2, 1/xi) and
    xi ~ InverseGamma(1/2, 1/S^2) (Wand, Ormerod, Padoan and Fruehwirth, Bayesian Analysis 6, 2011).
    So 1/xi | v ~ Gamma(1, rate 1/S^2 + 1/v) and v | xi ~ InverseGamma((n + 1)/2, 1/xi + square/2).
    """
    inverse_xi = draw_gamma(stream, 1.0, 1.0 / _PRIOR_SCALE**2 + 1.0 / variance)
    return (inverse_xi + 0.5 * square) / draw_gamma(stream, 0.5 * (n + 1), 1.0)


@njit(cache=True)
def _draw_effect(
    address: Address, mean: float, variance: float, n: int, total: float, square: float
) -> tuple[float, float]:
    """(mean, variance) of the Gaussian behind n effects with sum and square about ``mean``.

    The mean has prior N(0, S^2), the standard deviation half-Cauchy(0, S).
    """
    stream = start_stream(address.key, address.sweep, address.purpose)
    seek(stream, _EFFECT, 0)
    precision = 1.0 / _PRIOR_SCALE**2 + n / variance
    new_mean = (n * mean + total) / variance / precision + normal(stream) / math.sqrt(precision)
    shift = new_mean - mean
    about_new = square - 2.0 * shift * total + n * shift * shift
    return new_mean, draw_variance(stream, variance, n, about_new)


@njit(cache=True)
def _draw_noise(address: Address, variance: float, n: int, square: float) -> float:
    """sigma^2 given n residuals with this sum of squares; sigma ~ half-Cauchy(0, S)."""
    stream = start_stream(address.key, address.sweep, address.purpose)
    return draw_variance(stream, variance, n, square)


class Side(NamedTuple):
    """One side of the table in a half-sweep: its factors, centres and effects."""

    own: np.ndarray
    centre: np.ndarray
    effect: Effect
    has_effects: bool
    effect_column: int
    kernel_purpose: int
    scalar_purpose: int


def _half_sweep(
    side: Side, other: np.ndarray, values: Entries | Dense | Remote, state: State, context: Context
) -> tuple[Side, np.ndarray, float]:
    """Steps 2 and 3: one side's factors, centres and effects, with d.

    Returns (side, d, sum of squared residuals).
    """
    d, gamma, workers = state.d, state.gamma, context.workers
    (n, width), r = side.own.shape, d.size
    address = Address(context.key, state.sweep, side.scalar_purpose)

    # a. tau_k given R_k.
    A = scaled(side.own, d, workers)
    centre = d * side.centre
    total, R = sums_about(A, centre, workers)
    tau = _draw_taus(address, R, gamma, n)

    # b. The centres M_k.
    if context.options.centres:
        centre = _draw_normals(
            _CENTRE_BEFORE, address, centre + total / n, 1 / np.sqrt(2 * tau * n)
        )

    # c. The rows' coefficients A_ik and effects.
    relaxation = RELAXATION if state.sweep >= context.relaxed_from else 0.0
    prior = _prior(side, centre, tau)._replace(relaxation=relaxation)
    where = Address(context.key, state.sweep, side.kernel_purpose)
    square = draw_rows(values, A, other, prior, state.noise_variance, where, workers)

    # d. The centres again.
    about, column = np.zeros(width), side.effect_column
    about[:r], about[column] = centre, side.effect.mean
    totals, squares = sums_about(A, about, workers)
    total, R = totals[:r], squares[:r]
    if context.options.centres:
        shift = _draw_normals(_CENTRE_AFTER, address, total / n, 1 / np.sqrt(2 * tau * n))
        R = R - 2 * shift * total + n * shift**2
        centre = centre + shift

    # e. d_k given R_k.
    d = _draw_ds(address, R, gamma, n)
    A = scaled(A, 1 / d, workers)

    # f. The mean and variance of the effects.
    effect = side.effect
    if side.has_effects:
        effect = Effect(*_draw_effect(address, *effect, n, totals[column], squares[column]))
    return side._replace(own=A, centre=centre / d, effect=effect), d, square


def _prior(side: Side, centre: np.ndarray, tau: np.ndarray) -> Prior:
    """The Gaussian priors of a row's coefficients, given tau: N(centre_k, 1/(2 tau_k))."""
    free, mean, precision = np.arange(tau.size), centre, 2.0 * tau
    if side.has_effects:
        free = np.append(free, side.effect_column)
        mean = np.append(mean, side.effect.mean)
        precision = np.append(precision, 1.0 / side.effect.variance)
    return Prior(free, mean, precision)


def sweep(
    state: State, data: Data | CompleteData | RemoteData, context: Context
) -> tuple[State, Info]:
    """One sweep: gamma, the rows with d, the columns with d, and sigma^2 if it is sampled."""
    r = state.d.size
    options = context.options

    # 1. The rates.
    gamma = draw_rates(context.key, state.sweep, state.d, state.a, state.b)
    state = state._replace(gamma=gamma)

    # 2. The rows.
    rows = Side(
        state.left,
        state.mu,
        state.row_effect,
        options.row_effects,
        r,
        streams.ROWS,
        streams.ROW_SCALARS,
    )
    rows, d, _ = _half_sweep(rows, state.right, data.rows, state, context)
    state = state._replace(left=rows.own, mu=rows.centre, row_effect=rows.effect, d=d)

    # 3. The columns.
    columns = Side(
        state.right,
        state.nu,
        state.column_effect,
        options.column_effects,
        r + 1,
        streams.COLUMNS,
        streams.COLUMN_SCALARS,
    )
    columns, d, square = _half_sweep(columns, state.left, data.columns, state, context)
    state = state._replace(right=columns.own, nu=columns.centre, column_effect=columns.effect, d=d)

    # 4. The noise variance, if it is sampled.
    if state.sweep >= context.noise_from:
        where = Address(context.key, state.sweep, streams.NOISE)
        noise = _draw_noise(where, state.noise_variance, data.n_entries, square)
        state = state._replace(noise_variance=max(noise, SMALLEST_NOISE))
    return state._replace(sweep=state.sweep + 1), Info(square, d)


def signal_factors(state: State) -> tuple[np.ndarray, np.ndarray]:
    """(left, right) with d included in left, so that left right^T is the signal."""
    left = state.left.copy()
    left[:, : state.d.size] *= state.d.astype(left.dtype)
    return left, state.right


def draw(state: State) -> Draw:
    """The signal of a state."""
    return Draw(*signal_factors(state), state.noise_variance)


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


def history(state: State, info: Info, n_entries: int) -> dict[str, float]:
    """What is traced over the sweeps, in standard units."""
    return {
        "residual_variance": info.residual_square / n_entries,
        "noise_variance": state.noise_variance,
        "a": state.a,
        "b": state.b,
    }


# Smallest variance of effects in a valid state. Rounding may take a factor out of the unit ball by
# the first of these, and by the second times the size of its centre.
_SMALLEST_VARIANCE = 1e-20
_BEYOND, _ROUNDING = 1e-2, 1e-6


def is_valid_state(state: State, infos: Sequence[Info]) -> bool:
    """Whether a chain can continue from a state that was read from a file.

    All numbers are known to be finite. The state must satisfy the constraints of the model; the
    other bounds are far beyond what occurs in standard units, and within them rejection samplers
    end soon.
    """
    r = state.d.size
    own, other = largest_entries(state.left), largest_entries(state.right)
    signal = own * other * np.append(state.d, [1.0, 1.0])
    return (
        bool((state.d >= 0).all() and (state.gamma > 0).all())
        and all(_are_small(values) for values in (state.d, state.mu, state.nu, own, other))
        and bool((signal <= LARGEST_SIGNAL).all())
        and _is_in_ball(state.left[:, :r], state.mu)
        and _is_in_ball(state.right[:, :r], state.nu)
        and A_BOUNDS[0] <= state.a <= A_BOUNDS[1]
        and B_BOUNDS[0] <= state.b <= B_BOUNDS[1]
        and all(map(_is_valid_effect, (state.row_effect, state.column_effect)))
        and SMALLEST_NOISE <= state.noise_variance <= 1.0 / SMALLEST_NOISE
        and all(_is_valid_info(info, r) for info in infos)
    )


def _is_in_ball(factors: np.ndarray, centres: np.ndarray) -> bool:
    """Whether every factor, without its centre, is within the unit ball."""
    norms = np.linalg.norm(factors - centres, axis=0)
    rounding = _ROUNDING * np.sqrt(len(factors)) * np.abs(centres)
    return bool((norms <= 1.0 + _BEYOND + rounding).all())


def _is_valid_info(info: Info, r: int) -> bool:
    return (
        info.d.dtype == np.float64
        and info.d.shape == (r,)
        and bool((info.d >= 0).all())
        and _are_small(info.d)
        and 0 <= info.residual_square <= LARGEST_SIGNAL
    )


def _is_valid_effect(effect: Effect) -> bool:
    return (
        abs(effect.mean) <= LARGEST_ENTRY and _SMALLEST_VARIANCE <= effect.variance <= LARGEST_ENTRY
    )


def _are_small(array: np.ndarray) -> bool:
    return bool((np.abs(array) <= LARGEST_ENTRY).all())
