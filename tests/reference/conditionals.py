"""Every conditional draw of the samplers against its distribution by brute force.

Each check returns {quantity: p-value}. A draw is turned into its place P(X <= draw) in the
distribution that the joint density gives on a grid (see ``p_values.cdf_values``); the places must
be uniform. Replicates come from one starting point and differ in their sweep number.
"""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from fillrank.draws import streams
from fillrank.draws.streams import Address, chain_key
from fillrank.kernels.gaussian_rows import RowNoise
from fillrank.noise.precisions import PRIOR_SCALE, draw_noise_variance
from fillrank.samplers import gasr
from fillrank.samplers.feature_steps import NO_FEATURES, first_weights
from fillrank.samplers.model import Effect
from reference.joint_density import log_effects, log_joint
from reference.p_values import cdf_values, ks_uniform
from reference.small_tables import (
    EFFECTS,
    PLAIN,
    SMALL_MASK,
    Table,
    context_of,
    dense_signal,
    random_state,
    variance_of,
)

# The weight of a centre among the entries of its ball.
_C = 10.0


def small_problem(seed=3):
    """(table, x, state): 4 x 3, two components, seven entries, an empty row."""
    rng = np.random.default_rng(seed)
    table = Table(SMALL_MASK)
    state = random_state(rng, table.shape, 2)
    noise = math.sqrt(variance_of(state)) * rng.standard_normal(table.n_entries)
    return table, dense_signal(state)[table.i, table.j] + noise, state


# The published sampler: gamma, d, then u row by row, then v.


def _cdf_values_under_joint(x, table, state, parts, name, at, drawn, grid):
    """Places of draws of one number, ``parts[name][:, at]``, given all the other ``parts``."""
    shape = (drawn.size, grid.size)
    full = {
        key: np.broadcast_to(value[:, None], (*shape, *value.shape[1:]))
        for key, value in parts.items()
    }
    full[name] = full[name].copy()
    full[name][(slice(None), slice(None), *at)] = grid
    density = log_joint(x, table, **full, a=state.a, b=state.b, noise_variance=variance_of(state))
    return cdf_values(drawn, grid, density)


def published_conditionals(sweep, n=300):
    """gamma_k, d_k, u_ki and v_kj, each given all the others, over n sweeps from one state."""
    table, x, state = small_problem()
    data, context, r = table.data(x), context_of(PLAIN, 11), state.d.size
    after = [sweep(state._replace(sweep=t), data, context)[0] for t in range(n)]
    new = {
        "gamma": np.stack([s.gamma for s in after]),
        "d": np.stack([s.d for s in after]),
        "U": np.stack([s.left[:, :r] for s in after]),
        "V": np.stack([s.right[:, :r] for s in after]),
    }
    old = {"gamma": state.gamma, "d": state.d, "U": state.left[:, :r], "V": state.right[:, :r]}
    parts = {name: np.tile(value, (n, *[1] * value.ndim)) for name, value in old.items()}
    grids = {"gamma": np.linspace(1e-6, 15, 801), "d": np.linspace(0, 6, 801)}
    grids["U"] = grids["V"] = np.linspace(-1, 1, 801)
    p_values = {}
    for name in ("gamma", "d", "U", "V"):
        places = []
        for at in np.ndindex(old[name].shape):
            drawn = new[name][(slice(None), *at)]
            places.append(
                _cdf_values_under_joint(x, table, state, parts, name, at, drawn, grids[name])
            )
            parts[name][(slice(None), *at)] = drawn
        p_values[name] = ks_uniform(places)
    return p_values


# The mixture sampler: tau | R, d | R.


def mixture_transform(R, gamma, M):
    """log f(R), f(R) = int_{sqrt R}^inf e^(-gamma t) t^(-M) dt, by quadrature in y = log(t/rho)."""
    rho = math.sqrt(R)

    def integrand(y):
        return math.exp(-gamma * rho * math.expm1(y) - (M - 1) * y)

    top = min(60.0 / (M - 1), math.log1p(60.0 / (gamma * rho)))  # nothing is left beyond
    value, _ = integrate.quad(integrand, 0.0, top, epsabs=0, epsrel=1e-11, limit=200)
    return -gamma * rho - (M - 1) * math.log(rho) + math.log(value)


def p_of_transform(tau, R, gamma, M):
    """The p-value of E[e^(-tau t) | R] = f(R + t)/f(R), at three t (Bonferroni).

    It holds because the density of tau given R is e^(-tau R) mu(dtau) / f(R), with f the transform
    of mu.
    """
    p_values = []
    for t in (0.3 * R / M, R / M, 4.0 * R / M):  # tau is about M / (2 R)
        expected = math.exp(mixture_transform(R + t, gamma, M) - mixture_transform(R, gamma, M))
        y = np.exp(-tau * t)
        z = (y.mean() - expected) / (y.std(ddof=1) / math.sqrt(y.size))
        p_values.append(2.0 * stats.norm.sf(abs(z)))
    return min(1.0, 3.0 * min(p_values))


def cdf_values_of_d(d, R, gamma, M):
    """Places in the distribution e^(-gamma d) d^(-M) on [sqrt R, inf); R is a number or one per draw.

    On the scale y = log(d / sqrt R), whose density is e^(-gamma sqrt R e^y - (M - 1) y).
    """
    rho = np.sqrt(R)
    top = np.max(np.minimum(45.0 / (M - 1), np.log1p(45.0 / (gamma * rho))))
    y = np.linspace(0.0, top, 2001)
    return cdf_values(np.log(d / rho), y, -gamma * rho[..., None] * np.exp(y) - (M - 1) * y)


MIXTURE_CASES = [(1.0, 1.0, 5), (0.3, 4.0, 4), (9.0, 3.0, 3), (1e-4, 2.0, 2), (4.0, 0.5, 40)]


def mixture_draws(n=20_000):
    """tau and d given R, for several (R, gamma, M); with gamma sqrt(R) < M - 1 and beyond."""
    key, p_values = chain_key(12, 0), {}
    for case, (R, gamma, M) in enumerate(MIXTURE_CASES):
        address = Address(key, case, streams.ROW_SCALARS)
        tau = gasr._draw_taus(address, np.full(n, R), np.full(n, gamma), M)
        d = gasr._draw_ds(address, np.full(n, R), np.full(n, gamma), M)
        p_values[f"tau, R={R}, gamma={gamma}, M={M}"] = p_of_transform(tau, R, gamma, M)
        p_values[f"d, R={R}, gamma={gamma}, M={M}"] = ks_uniform(cdf_values_of_d(d, R, gamma, M))
    return p_values


def half_sweep_draws(options, n=1000):
    """A half-sweep of the rows from one state: tau, centres, rows, d, each given the ones before.

    A row's A_ik has the prior N(M_k, 1/(2 tau_k)). With centres, M_k has the prior N(0, 1/(2 tau_k c))
    with c = 10, and is drawn before and after the rows; it is one more entry of the ball, in the
    distributions of tau and d as well.
    """
    table, x, state = small_problem()
    entries, context, r, m = (
        table.data(x).rows,
        context_of(options, 13),
        state.d.size,
        table.shape[0],
    )
    right, noise = state.right, variance_of(state)
    mu = np.array([0.3, -0.2]) if options.centres else np.zeros(r)
    left = state.left.copy()
    left[:, :r] += mu
    taus, priors, draws, ds = [], [], [], []
    true_taus, true_prior = gasr._draw_taus, gasr._prior

    def spy_taus(*arguments):
        taus.append(true_taus(*arguments))
        return taus[-1]

    def spy_prior(side, centre, tau):
        priors.append(centre)
        return true_prior(side, centre, tau)

    side = gasr.Side(
        left, mu, Effect(0.0, 1.0), False, r, first_weights(NO_FEATURES, r + 2), NO_FEATURES,
        _equal_noise(noise, m), streams.ROWS, streams.ROW_SCALARS,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gasr, "_draw_taus", spy_taus)
        patch.setattr(gasr, "_prior", spy_prior)
        for t in range(n):
            drawn, d, _ = gasr._half_sweep(side, right, entries, state._replace(sweep=t), context)
            draws.append((drawn.own[:, :r] * d, drawn.centre * d))
            ds.append(d)
    tau, before, d = np.array(taus), np.array(priors), np.array(ds)
    A, after = np.stack([a for a, _ in draws]), np.stack([c for _, c in draws])
    A_old, M = left[:, :r] * state.d, m + 1 if options.centres else m

    R_old = np.sum((A_old - mu * state.d) ** 2, axis=0) + _C * (mu * state.d) ** 2
    R_new = np.sum((A - after[:, None]) ** 2, axis=1) + _C * after**2
    p_values = {
        f"tau_{k}": p_of_transform(tau[:, k], R_old[k], state.gamma[k], M) for k in range(r)
    }
    places = [cdf_values_of_d(d[:, k], R_new[:, k], state.gamma[k], M) for k in range(r)]
    p_values["d"] = ks_uniform(places)
    p_values["rows"] = ks_uniform(
        _cdf_values_of_rows(x, table, right, noise, A_old, A, tau, before)
    )
    if options.centres:
        p_values["centre before"] = ks_uniform(
            _cdf_values_of_centres(before, np.tile(A_old, (n, 1, 1)), tau)
        )
        p_values["centre after"] = ks_uniform(_cdf_values_of_centres(after, A, tau))
    return p_values


def _cdf_values_of_centres(centre, A, tau):
    """Places of M_k in the density exp(-tau_k (sum_i (A_ik - M)^2 + c M^2)) on a grid."""
    places = []
    for k in range(tau.shape[1]):
        reach = 10.0 / np.sqrt(2.0 * tau[:, k]) + np.abs(A[:, :, k]).max(axis=1)
        grid = reach[:, None] * np.linspace(-1, 1, 2001)
        square = np.sum((A[:, :, k, None] - grid[:, None]) ** 2, axis=1) + _C * grid**2
        places.append(cdf_values(centre[:, k], grid, -tau[:, k, None] * square))
    return places


def _equal_noise(variance, m):
    return RowNoise(np.full(m, variance), np.zeros(0), math.inf, streams.ROW_ENTRIES)


def _cdf_values_of_rows(x, table, right, noise, A_old, A, tau, centre):
    """Places of each A_ik given the others, row by row, under likelihood times N(M, 1/(2 tau))."""
    n, (m, r) = A.shape[0], A_old.shape
    places, current = [], np.tile(A_old, (n, 1, 1))
    for i in range(m):
        mine = table.i == i
        factors, values = right[table.j[mine], :r], x[mine]
        for k in range(r):
            sd = 1.0 / np.sqrt(2.0 * tau[:, k])
            reach = np.abs(A[:, i, k] - centre[:, k]) / sd + 8.0
            grid = centre[:, k, None] + (reach * sd)[:, None] * np.linspace(-1, 1, 801)
            rest = values - np.einsum("tk,jk->tj", current[:, i], factors)
            rest = rest + current[:, i, k, None] * factors[:, k]
            residual = rest[:, None] - grid[..., None] * factors[:, k]
            density = -0.5 * np.sum(residual**2, axis=-1) / noise
            density -= tau[:, k, None] * (grid - centre[:, k, None]) ** 2
            places.append(cdf_values(A[:, i, k], grid, density))
            current[:, i, k] = A[:, i, k]
    return places


# The distributions behind the effects.

EFFECT_CASES = {
    "spread out": (np.array([1.5, 2.5, 1.9, 3.0, 2.2]), Effect(1.0, 0.5)),
    "all but equal": (1e-4 * np.array([1.0, -2.0, 3.0, 1.0]), Effect(0.0, 1e-6)),
}


def effect_draws(n=4000):
    """The mean given the effects and the old variance; then the variance."""
    key, p_values = chain_key(14, 0), {}
    for name, (effects, effect) in EFFECT_CASES.items():
        deviation = effects - effect.mean
        total, square = float(deviation.sum()), float(np.sum(deviation**2))
        sums = gasr.EffectSums(effects.size, total, square, 0, 0.0)
        means = [
            gasr._draw_effect(Address(key, t, streams.ROW_SCALARS), *effect, sums)[0]
            for t in range(n)
        ]
        sd = math.sqrt(effect.variance / effects.size)
        grid = effects.mean() + 12.0 * sd * np.linspace(-1, 1, 2001)
        variances = np.full(grid.size, effect.variance)
        density = log_effects(effects, grid, variances, PRIOR_SCALE)
        p_values[f"mean, {name}"] = ks_uniform(cdf_values(means, grid, density))
        p_values[f"variance, {name}"] = _variance_draws(effects, key, n)
    return p_values


def _variance_draws(deviations, key, n):
    """The p-value of one step from variances of the right distribution, which must be invariant."""
    square = float(np.sum(deviations**2))
    typical = math.log(square / deviations.size)
    logs = typical + np.linspace(-8.0, 30.0, 8001)
    zeros, variances = np.zeros(logs.size), np.exp(logs)
    prior = log_effects(deviations, zeros, variances, PRIOR_SCALE)
    density = prior + logs  # that of the mean, at 0, is a constant
    rng = np.random.default_rng(16)
    cdf = cdf_values(logs, logs, density)
    before = np.exp(np.interp(rng.random(n), cdf, logs))
    after = [
        draw_noise_variance(Address(key, t, streams.NOISE), before[t], deviations.size, square)
        for t in range(n)
    ]
    return ks_uniform(cdf_values(np.log(after), logs, density))


def effect_coefficients(n=500):
    """alpha_i given everything else, after a half-sweep of the rows of the model with effects."""
    table, x, state = small_problem()
    r = state.d.size
    effect = Effect(0.4, 0.09)
    beta = np.array([0.3, -0.2, 0.1])
    left, right = state.left.copy(), state.right.copy()
    left[:, r], right[:, r + 1] = 0.2, beta
    entries, context = table.data(x).rows, context_of(EFFECTS, 15)
    noise = _equal_noise(variance_of(state), table.shape[0])
    side = gasr.Side(
        left, np.zeros(r), effect, True, r, first_weights(NO_FEATURES, r + 2), NO_FEATURES,
        noise, streams.ROWS, streams.ROW_SCALARS,
    )  # fmt: skip
    after = [
        gasr._half_sweep(side, right, entries, state._replace(sweep=t), context) for t in range(n)
    ]
    own, d = np.stack([drawn.own for drawn, _, _ in after]), np.stack([d for _, d, _ in after])
    grid = effect.mean + 8.0 * math.sqrt(effect.variance) * np.linspace(-1, 1, 801)
    places = []
    for i in range(table.shape[0]):
        alpha = np.tile(own[:, None, :, r], (1, grid.size, 1))
        alpha[:, :, i] = grid
        density = log_joint(
            x, table, own[:, None, :, :r], right[None, None, :, :r], d[:, None], state.gamma,
            state.a, state.b, variance_of(state), alpha, beta,
        )  # fmt: skip
        density = density + stats.norm.logpdf(grid, effect.mean, math.sqrt(effect.variance))
        places.append(cdf_values(own[:, i, r], grid, density))
    return {"alpha": ks_uniform(places)}
