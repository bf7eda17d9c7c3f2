r"""GASR by a Gaussian scale mixture: the sampler of the engine.

The model, in the letters of Song and Zhu ("Bayesian matrix completion via adaptive relaxed spectral
regularization", AAAI 2016), with two additions that can be switched off, effects and centres:

.. math::

    x_{ij} &\sim N(\alpha_i + \beta_j + \sum_k d_k (u_{ki} + \mu_k)(v_{kj} + \nu_k),\; \sigma^2) \\
    u_k &\sim \text{uniform on the unit ball of } R^m, \qquad
    v_k \sim \text{uniform on the unit ball of } R^n \\
    d_k &\sim \text{Exponential(rate } \gamma_k), \qquad \gamma_k \sim \text{Gamma}(a, \text{rate } b) \\
    \alpha_i &\sim N(\bar\alpha, s_\alpha^2), \qquad \bar\alpha \sim N(0, S^2), \qquad
    s_\alpha \sim \text{half-Cauchy}(0, S), \quad \beta_j \text{ likewise} \\
    \sqrt{d_k} \mu_k, \; \sqrt{d_k} \nu_k &\sim \text{flat}

with S = 2 standard deviations of the data. The noise level sigma is estimated by Monte Carlo EM
(`hyperparameters`); in small tables, where it is not well known, it is then sampled as well, with
sigma ~ half-Cauchy(0, S).

The centres are flat on the scale that both sides share: were mu_k and nu_k themselves flat, the
posterior would be improper at d_k = 0, and idle components would drift there. So (d, mu, nu) has a
factor d from the centres.

**The ball disappears.** Fix v_k, nu_k and gamma_k and drop k. With z = d u the prior of (d, z) is
proportional to :math:`e^{-\gamma d} d^{-m} 1[d \ge \|z\|]`. A centre M = d mu leaves that as it is: its
change of variables takes the factor d that its prior brought. Integrating d out leaves a function of
R = ||z||^2,

.. math:: f(R) = \int_{\sqrt R}^\infty e^{-\gamma t} t^{-m} dt, \qquad
          -f'(R) = \tfrac12 e^{-\gamma\sqrt R} R^{-(m+1)/2},

which is completely monotone, so by Bernstein's theorem a mixture of :math:`e^{-\tau R}`: given tau, the
entries of z are independent N(0, 1/(2 tau)). Given R, tau = s + g with

.. math:: p(s, g \mid R) \propto (s+g)^{-1} \; s^{-3/2} e^{-\gamma^2/(4s) - sR} \; g^{(m-1)/2} e^{-gR}

(:func:`draw_tau`), and d given R has density :math:`e^{-\gamma d} d^{-m}` on [sqrt R, inf)
(:func:`draw_d`). The scale d_k sits on the left factor while rows are drawn and on the right one while
columns are drawn; a half-sweep is the same function for both sides.
"""

import math
from typing import NamedTuple

import numpy as np

from fillrank.draws import streams
from fillrank.draws.gamma import gamma as draw_gamma
from fillrank.draws.inverse_gaussian import inverse_gaussian
from fillrank.draws.normal import normal
from fillrank.draws.streams import seek, start_stream, uniform
from fillrank.kernels.dense_rows import Dense
from fillrank.kernels.gaussian_rows import Address, Prior
from fillrank.kernels.remote import Remote
from fillrank.kernels.sums import scaled, sums_about
from fillrank.runtime.kernel_cache import njit
from fillrank.samplers.rows import draw_rows
from fillrank.samplers.state import (
    SMALLEST_NOISE,
    Data,
    Effect,
    Frame,
    FullData,
    Info,
    RemoteData,
    State,
    relaxation,
)
from fillrank.table.entries import Entries

# The scale S of the priors of the effects' means and of all standard deviations, in units of the data's
# standard deviation. That unit is itself unknown in a table of few entries, so S is above 1.
_PRIOR_SCALE = 2.0
# Squared norms below this are taken as this: a component must be able to come back.
_SMALLEST_SQUARE = 1e-30
# Within the scalar draws of a side, which quantity a draw is for.
_TAU, _CENTRE_BEFORE, _CENTRE_AFTER, _D, _EFFECT = range(5)


@njit
def draw_tau(stream, R, gamma, m):
    """The precision tau of the scale mixture, given R = ||z||^2 (see the module's docstring)."""
    while True:
        s = inverse_gaussian(stream, gamma / (2.0 * math.sqrt(R)), 0.5 * gamma * gamma)
        g = draw_gamma(stream, 0.5 * (m - 1), R)
        if uniform(stream) * (s + g) < g:
            return s + g


@njit
def draw_d(stream, R, gamma, m):
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
def draw_rates(key, sweep, d, a, b):
    """gamma_k | d_k ~ Gamma(a + 1, rate b + d_k)."""
    stream = start_stream(key, sweep, streams.RATES)
    gamma = np.empty_like(d)
    for k in range(d.size):
        seek(stream, 0, k)
        gamma[k] = draw_gamma(stream, a + 1.0, b + d[k])
    return gamma


@njit(cache=True)
def _draw_taus(address, R, gamma, m):
    stream = start_stream(address.key, address.sweep, address.purpose)
    tau = np.empty_like(R)
    for k in range(R.size):
        seek(stream, _TAU, k)
        tau[k] = draw_tau(stream, max(R[k], _SMALLEST_SQUARE), gamma[k], m)
    return tau


@njit(cache=True)
def _draw_ds(address, R, gamma, m):
    stream = start_stream(address.key, address.sweep, address.purpose)
    d = np.empty_like(R)
    for k in range(R.size):
        seek(stream, _D, k)
        d[k] = draw_d(stream, max(R[k], _SMALLEST_SQUARE), gamma[k], m)
    return d


@njit(cache=True)
def _draw_normals(quantity, address, mean, sd):
    """Independent N(mean_k, sd_k^2)."""
    stream = start_stream(address.key, address.sweep, address.purpose)
    out = np.empty_like(mean)
    for k in range(mean.size):
        seek(stream, quantity, k)
        out[k] = mean[k] + sd[k] * normal(stream)
    return out


@njit
def draw_variance(stream, variance, n, square):
    """A step to a new variance v, given n normal variables of mean 0 with this sum of squares.

    sqrt(v) ~ half-Cauchy(0, S), which is v | xi ~ InverseGamma(1/2, 1/xi) and
    xi ~ InverseGamma(1/2, 1/S^2) (Wand, Ormerod, Padoan and Fruehwirth, Bayesian Analysis 6, 2011).
    So 1/xi | v ~ Gamma(1, rate 1/S^2 + 1/v) and v | xi ~ InverseGamma((n + 1)/2, 1/xi + square/2).
    """
    inverse_xi = draw_gamma(stream, 1.0, 1.0 / _PRIOR_SCALE**2 + 1.0 / variance)
    return (inverse_xi + 0.5 * square) / draw_gamma(stream, 0.5 * (n + 1), 1.0)


@njit(cache=True)
def _draw_effect(address, mean, variance, n, total, square):
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
def _draw_noise(address, variance, n, square):
    """sigma^2 given n residuals with this sum of squares; sigma ~ half-Cauchy(0, S)."""
    stream = start_stream(address.key, address.sweep, address.purpose)
    return draw_variance(stream, variance, n, square)


class Side(NamedTuple):
    """One side of the table, as a half-sweep sees it: its factors, centres and effects."""

    own: np.ndarray
    centre: np.ndarray
    effect: Effect
    has_effects: bool
    effect_column: int
    kernel_purpose: int
    scalar_purpose: int


def _half_sweep(
    side: Side, other: np.ndarray, values: Entries | Dense | Remote, state: State, frame: Frame
) -> tuple[Side, np.ndarray, float]:
    """Draw one side's factors, centres and effects, and d: (side, d, sum of squared residuals)."""
    d, gamma, workers = state.d, state.gamma, frame.workers
    (n, width), r = side.own.shape, d.size
    address = Address(frame.key, state.sweep, side.scalar_purpose)

    A = scaled(side.own, d, workers)
    centre = d * side.centre
    total, R = sums_about(A, centre, workers)
    tau = _draw_taus(address, R, gamma, n)
    if frame.options.centres:
        centre = _draw_normals(
            _CENTRE_BEFORE, address, centre + total / n, 1 / np.sqrt(2 * tau * n)
        )

    prior = _prior(side, centre, tau)._replace(
        relaxation=relaxation(state.sweep, frame.relaxed_from)
    )
    where = Address(frame.key, state.sweep, side.kernel_purpose)
    square = draw_rows(values, A, other, prior, state.noise_variance, where, workers)

    about, column = np.zeros(width), side.effect_column
    about[:r], about[column] = centre, side.effect.mean
    totals, squares = sums_about(A, about, workers)
    total, R = totals[:r], squares[:r]
    if frame.options.centres:
        shift = _draw_normals(_CENTRE_AFTER, address, total / n, 1 / np.sqrt(2 * tau * n))
        R = R - 2 * shift * total + n * shift**2
        centre = centre + shift
    d = _draw_ds(address, R, gamma, n)
    A = scaled(A, 1 / d, workers)

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


def sweep(state: State, data: Data | FullData | RemoteData, frame: Frame) -> tuple[State, Info]:
    """One sweep: gamma, the rows with d, the columns with d, and sigma^2 if it is sampled."""
    r = state.d.size
    options = frame.options
    gamma = draw_rates(frame.key, state.sweep, state.d, state.a, state.b)
    state = state._replace(gamma=gamma)

    rows = Side(
        state.left,
        state.mu,
        state.row_effect,
        options.row_effects,
        r,
        streams.ROWS,
        streams.ROW_SCALARS,
    )
    rows, d, _ = _half_sweep(rows, state.right, data.rows, state, frame)
    state = state._replace(left=rows.own, mu=rows.centre, row_effect=rows.effect, d=d)

    columns = Side(
        state.right,
        state.nu,
        state.column_effect,
        options.column_effects,
        r + 1,
        streams.COLUMNS,
        streams.COLUMN_SCALARS,
    )
    columns, d, square = _half_sweep(columns, state.left, data.columns, state, frame)
    state = state._replace(right=columns.own, nu=columns.centre, column_effect=columns.effect, d=d)
    if state.sweep >= frame.noise_from:
        where = Address(frame.key, state.sweep, streams.NOISE)
        noise = _draw_noise(where, state.noise_variance, data.n_entries, square)
        state = state._replace(noise_variance=max(noise, SMALLEST_NOISE))
    return state._replace(sweep=state.sweep + 1), Info(square, d)
