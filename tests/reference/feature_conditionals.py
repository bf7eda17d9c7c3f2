"""The draws of a half-sweep with features against their distributions by brute force.

Checks return {quantity: p-value}, as in ``conditionals``. The table is 5 x 4 and has two features of its
rows, in one block or in two; the model has effects and centres. A slice step is no independent draw: it
is replaced by an exact one from the density that it is given, so that this density is checked. Steps as
they are face `joint_draws`.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import integrate, stats

from fillrank.draws import streams
from fillrank.draws.streams import Address, chain_key
from fillrank.kernels.gaussian_rows import RowNoise
from fillrank.noise.precisions import PRIOR_SCALE
from fillrank.runtime.threads import Workers
from fillrank.samplers import feature_steps, gasr
from fillrank.samplers.feature_steps import STRENGTHS, Weights
from fillrank.samplers.model import Effect
from reference.conditionals import cdf_values_of_d, p_of_transform
from reference.feature_cases import make_features
from reference.joint_density import log_effects
from reference.p_values import cdf_values, ks_uniform
from reference.prior_draws import by_feature, strength_draws
from reference.small_tables import EFFECTS, MASK, Table, context_of, random_state, variance_of

OPTIONS = EFFECTS._replace(centres=True)
# The weight of a centre among the entries of its ball.
_C = 10.0
# log lambda; beyond these ends there is nothing in the cases here, and some prior.
_LOGS = np.linspace(math.log(STRENGTHS[0]), math.log(STRENGTHS[1]), 401)
_ONE = Workers(1)


def log_prior(t):
    """The density of t = log lambda, where 1 / sqrt(lambda) is half-Cauchy(0, 1)."""
    root = np.exp(-0.5 * t)
    return stats.halfcauchy.logpdf(root) + np.log(0.5 * root)


class Case(NamedTuple):
    """A half-sweep of the rows from one state, and what it has drawn in n replicates.

    Coefficients are A_k = d_k (u_k + mu_k + F b_k), then the effects; M are their centres and B the
    weights of features, before and after the half-sweep.
    """

    table: Table
    x: np.ndarray
    right: np.ndarray
    noise: float
    features: feature_steps.Features
    gamma: np.ndarray
    effect: Effect
    A_old: np.ndarray
    M_old: np.ndarray
    B_old: np.ndarray
    old_strengths: np.ndarray
    tau: np.ndarray
    M_before: np.ndarray
    A: np.ndarray
    B: np.ndarray
    strengths: np.ndarray
    M: np.ndarray
    d: np.ndarray
    effects: np.ndarray

    @property
    def r(self):
        """The number of components."""
        return self.gamma.size

    def precisions(self):
        """Those of the coefficients given their means, (n, r + 1)."""
        of_effects = np.full(len(self.tau), 1.0 / self.effect.variance)
        return np.column_stack([2.0 * self.tau, of_effects])

    def means(self):
        """M and the mean of the effects, as they are when rows and weights are drawn, (n, r + 1)."""
        return np.column_stack([self.M_before, np.full(len(self.tau), self.effect.mean)])


def _exact_steps(rng):
    """A slice step that is an independent draw, by the given density on the grid."""

    def step(_, log_density, *__):
        density = np.array([log_density(t) for t in _LOGS])
        return float(np.interp(rng.random(), cdf_values(_LOGS, _LOGS, density), _LOGS))

    return step


def half_sweeps(sizes, n):
    """`Case` of n half-sweeps, with features in blocks of these sizes."""
    rng = np.random.default_rng(3)
    table, features = Table(MASK), make_features(MASK.shape[0], sizes, 12)
    (m, _), p, r = table.shape, features.n_features, 2
    state = random_state(rng, table.shape, r, noise_variance=0.3)
    mu, effect, strengths = np.array([0.2, -0.1]), Effect(0.4, 0.09), np.array([3.0, 0.3])
    b = np.zeros((p, r + 2))
    b[:, :r], b[:, r] = 0.8 * rng.standard_normal((p, r)), 0.4 * rng.standard_normal(p)
    weights = Weights(b, strengths[: len(sizes)])
    left = state.left.copy()
    left[:, :r] = 0.6 * left[:, :r] + mu + features.values @ b[:, :r]
    left[:, r] = effect.mean + features.values @ b[:, r] + 0.3 * rng.standard_normal(m)
    x = 0.8 * rng.standard_normal(table.n_entries)
    noise = RowNoise(np.full(m, variance_of(state)), np.zeros(0), math.inf, streams.ROW_ENTRIES)
    side = gasr.Side(
        left, mu, effect, True, r, weights, features, noise, streams.ROWS, streams.ROW_SCALARS
    )
    context, entries = context_of(OPTIONS, 13), table.data(x).rows
    taus, centres, draws = [], [], []
    true_taus, true_prior = gasr._draw_taus, gasr._prior

    def spy_taus(*arguments):
        taus.append(true_taus(*arguments))
        return taus[-1]

    def spy_prior(side, centre, tau):
        centres.append(centre)
        return true_prior(side, centre, tau)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gasr, "_draw_taus", spy_taus)
        patch.setattr(gasr, "_prior", spy_prior)
        patch.setattr(feature_steps, "slice_step", _exact_steps(rng))
        for t in range(n):
            given = state._replace(sweep=t)
            drawn, d, _ = gasr._half_sweep(side, state.right, entries, given, context)
            scale = np.append(d, 1.0)
            B = drawn.weights.B[:, : r + 1] * scale
            assert not drawn.weights.B[:, r + 1].any()
            draws.append(
                (drawn.own[:, : r + 1] * scale, B, drawn.weights.strengths, drawn.centre * d, d,
                 tuple(drawn.effect))
            )  # fmt: skip
    A, B, lam, M, d, effects = (np.array(part) for part in zip(*draws, strict=True))
    old_scale = np.append(state.d, 1.0)
    return Case(
        table, x, state.right, variance_of(state), features, state.gamma, effect,
        left[:, : r + 1] * old_scale, mu * state.d, b[:, : r + 1] * old_scale, weights.strengths,
        np.array(taus), np.array(centres), A, B, lam, M, d, effects,
    )  # fmt: skip


def half_sweep_draws(sizes, n=400):
    """tau, the centres, rows, lambda, B, the centres again, d and the law of effects, in turn."""
    case = half_sweeps(sizes, n)
    F, r, gamma = case.features.values, case.r, case.gamma
    n_ball = len(F) + 1 + case.features.n_features
    old_rest = case.A_old - F @ case.B_old
    lam = by_feature(case.old_strengths, case.features)
    R_old = np.sum((old_rest[:, :r] - case.M_old) ** 2, axis=0) + _C * case.M_old**2
    R_old = R_old + lam @ case.B_old[:, :r] ** 2
    p_values = {
        f"tau_{k}": p_of_transform(case.tau[:, k], R_old[k], gamma[k], n_ball) for k in (0, 1)
    }
    rest = case.A - np.einsum("ip,tpk->tik", F, case.B)
    lam = by_feature(case.strengths, case.features)
    R = np.sum((rest[:, :, :r] - case.M[:, None]) ** 2, axis=1) + _C * case.M**2
    R = R + np.einsum("tp,tpk->tk", lam, case.B[:, :, :r] ** 2)
    p_values["d"] = ks_uniform(
        [cdf_values_of_d(case.d[:, k], R[:, k], gamma[k], n_ball) for k in range(r)]
    )
    old = np.broadcast_to(old_rest[:, :r], rest[:, :, :r].shape)
    p_values["centres before"] = ks_uniform(_places_of_centres(case.M_before, old, case.tau))
    p_values["centres after"] = ks_uniform(_places_of_centres(case.M, rest[:, :, :r], case.tau))
    p_values["rows"] = ks_uniform(_places_of_rows(case))
    p_values["lambda"] = ks_uniform(_places_of_strengths(case))
    p_values["B"] = ks_uniform(_places_of_weights(case, slice(0, r)))
    p_values["B of effects"] = ks_uniform(_places_of_weights(case, slice(r, r + 1)))
    p_values["mean of effects"] = ks_uniform(_places_of_means(case, rest[:, :, r]))
    p_values["variance of effects"] = ks_uniform(_places_of_variances(case, rest[:, :, r], lam))
    return p_values


def _places_of_centres(centre, rest, tau):
    """Places of M_k in the density exp(-tau_k (sum_i (A_ik - F_i B_k - M)^2 + c M^2)) on a grid."""
    places = []
    for k in range(tau.shape[1]):
        reach = 10.0 / np.sqrt(2.0 * tau[:, k]) + np.abs(rest[:, :, k]).max(axis=1)
        grid = reach[:, None] * np.linspace(-1, 1, 1001)
        square = np.sum((rest[:, :, k, None] - grid[:, None]) ** 2, axis=1) + _C * grid**2
        places.append(cdf_values(centre[:, k], grid, -tau[:, k, None] * square))
    return places


def _places_of_rows(case):
    """Places of each coefficient given the others, row by row: likelihood times N(M + F B, .)."""
    F, (n, m, width) = case.features.values, case.A.shape
    precisions, means = case.precisions(), case.means()
    places, current = [], np.tile(case.A_old, (n, 1, 1))
    for i in range(m):
        mine = case.table.i == i
        # The other side's effect is beyond the last of the row's own coefficients.
        factors = case.right[case.table.j[mine]]
        values = case.x[mine] - factors[:, width]
        for k in range(width):
            mean, sd = means[:, k] + F[i] @ case.B_old[:, k], precisions[:, k] ** -0.5
            reach = np.abs(case.A[:, i, k] - mean) / sd + 8.0
            grid = mean[:, None] + (reach * sd)[:, None] * np.linspace(-1, 1, 601)
            rest = values - current[:, i] @ factors[:, :width].T
            rest = rest + current[:, i, k, None] * factors[:, k]
            residual = rest[:, None] - grid[..., None] * factors[:, k]
            density = -0.5 * np.sum(residual**2, axis=-1) / case.noise
            density = density + stats.norm.logpdf(grid, mean[:, None], sd[:, None])
            places.append(cdf_values(case.A[:, i, k], grid, density))
            current[:, i, k] = case.A[:, i, k]
    return places


def _rest_of_block(case, g):
    """A less its mean and the other blocks, when block g is drawn: those before it are new ones."""
    blocks, F = [*case.features.blocks()], case.features.values
    rest = case.A - case.means()[:, None]
    for h, block in enumerate(blocks):
        if h != g:
            B = (
                case.B[:, block]
                if h < g
                else np.broadcast_to(case.B_old[block], case.B[:, block].shape)
            )
            rest = rest - np.einsum("ip,tpk->tik", F[:, block], B)
    return rest


def log_marginal(rest, F, precisions, logs):
    """log p(rest | lambda), (n, g), B integrated out: N(0, (I + F F^T / lambda) / precision_k)."""
    n, m, K = rest.shape
    whitened = np.swapaxes(rest * np.sqrt(precisions)[:, None], 1, 2).reshape(n * K, m)
    density = [
        stats.multivariate_normal(np.zeros(m), np.eye(m) + F @ F.T / lam).logpdf(whitened)
        for lam in np.exp(logs)
    ]
    return np.array(density).reshape(logs.size, n, K).sum(axis=2).T


def _places_of_strengths(case):
    places = []
    for g, block in enumerate(case.features.blocks()):
        F = case.features.values[:, block]
        density = log_marginal(_rest_of_block(case, g), F, case.precisions(), _LOGS)
        places.append(cdf_values(np.log(case.strengths[:, g]), _LOGS, density + log_prior(_LOGS)))
    return places


def _places_of_weights(case, coefficients):
    """Places of each B_jk given lambda and the other features, for some coefficients k."""
    places, precisions = [], case.precisions()
    for g, block in enumerate(case.features.blocks()):
        F, rest = case.features.values[:, block], _rest_of_block(case, g)
        for j in range(F.shape[1]):
            for k in range(case.r + 1)[coefficients]:
                drawn = case.B[:, block][:, :, k]
                others = rest[:, :, k] - np.delete(drawn, j, 1) @ np.delete(F, j, 1).T
                lam, precision = case.strengths[:, g, None], precisions[:, k, None]
                reach = np.abs(drawn[:, j, None]) + 8.0 / np.sqrt(precision)
                grid = reach * np.linspace(-1, 1, 2001)
                square = np.sum((others[:, None] - grid[..., None] * F[:, j]) ** 2, axis=-1)
                density = -0.5 * precision * (square + lam * grid**2)
                places.append(cdf_values(drawn[:, j], grid, density))
    return places


def _places_of_means(case, rest):
    """Places of the mean of the effects, given the effects without their features."""
    effect, m = case.effect, rest.shape[1]
    reach = 12.0 * math.sqrt(effect.variance / m)
    grid = rest.mean(axis=1)[:, None] + reach * np.linspace(-1, 1, 1001)
    variances = np.full(grid.shape, effect.variance)
    density = log_effects(rest[:, None], grid, variances, PRIOR_SCALE)
    return cdf_values(case.effects[:, 0], grid, density)


def _places_of_variances(case, rest, lam):
    """Places of s^2 after a step from the old one: 1/xi given that, integrated out by quadrature."""
    p, quantiles = lam.shape[1], (np.arange(100) + 0.5) / 100.0
    inverse_xi = -np.log1p(-quantiles) / (1.0 / PRIOR_SCALE**2 + 1.0 / case.effect.variance)
    logs = np.linspace(-9.0, 5.0, 401)
    v = np.exp(logs)
    prior = stats.invgamma.logpdf(v, 0.5, scale=inverse_xi[:, None]) + logs
    places = []
    for t, (mean, drawn) in enumerate(case.effects):
        given = stats.norm.logpdf(rest[t, :, None], mean, np.sqrt(v)).sum(axis=0)
        for j in range(p):
            given = given + stats.norm.logpdf(case.B[t, j, case.r], 0.0, np.sqrt(v / lam[t, j]))
        places.append(cdf_values(np.full(100, math.log(drawn)), logs, prior + given).mean())
    return places


# The density of lambda, by numerical integration over the weights.


def differences_of_density(sizes=(2,)):
    """Log densities of lambda of the first block, less those by quadrature over B: a constant."""
    rng = np.random.default_rng(4)
    features = make_features(5, sizes, 8)
    rest, precisions = rng.standard_normal((5, 3)), np.array([0.7, 2.0, 5.0])
    block = next(features.blocks())
    F, logs, seen = features.values[:, block], np.linspace(-4.0, 5.0, 10), []

    def spy(x, log_density, *_):
        seen.append([log_density(t) for t in logs])
        return x

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_steps, "slice_step", spy)
        weights = Weights(np.zeros((features.n_features, 3)), np.ones(len(sizes)))
        address = Address(chain_key(15, 0), 0, streams.ROW_SCALARS)
        root = np.diag(np.sqrt(precisions))
        feature_steps.draw_weights(weights, features, rest, root, address, _ONE)
    expected = [
        log_prior(t)
        + sum(_log_integral(rest[:, k], F, precisions[k], math.exp(t)) for k in range(3))
        for t in logs
    ]
    differences = np.array(seen[0]) - expected
    return differences - differences[0]


def _log_integral(y, F, precision, lam):
    """log of the integral over B (p,) of N(y; F B, 1/precision) N(B; 0, 1/(lambda precision))."""
    p = F.shape[1]
    centre = np.linalg.solve(F.T @ F + lam * np.eye(p), F.T @ y)
    reach = 9.0 / math.sqrt(precision * (lam + np.linalg.eigvalsh(F.T @ F)[0]))
    axes = [c + reach * np.linspace(-1, 1, 401) for c in centre]
    B = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    density = stats.norm.logpdf(y, B @ F.T, precision**-0.5).sum(axis=-1)
    density += stats.norm.logpdf(B, 0.0, (lam * precision) ** -0.5).sum(axis=-1)
    value = np.exp(density)
    for axis in reversed(axes):
        value = integrate.trapezoid(value, axis, axis=-1)
    return math.log(value)


# lambda and B together, by the steps as they are.


def joint_draws(sizes, n=1500, length=3):
    """(lambda, B) of the prior, A given them, then some steps given A: all keep their distributions.

    Lambda is no diagonal matrix here, as in BPMF.
    """
    rng = np.random.default_rng([7, *sizes])
    features = make_features(6, sizes, 9)
    root = np.array([[1.5, 0.0], [-1.0, 0.6]])
    inverse, p = np.linalg.inv(root), features.n_features
    strengths = strength_draws(rng, n, features)
    z = rng.standard_normal((n, p, 2)) / np.sqrt(by_feature(strengths, features))[..., None]
    B = z @ inverse
    A = np.einsum("ip,tpk->tik", features.values, B) + rng.standard_normal((n, 6, 2)) @ inverse
    new_B, new_strengths = B.copy(), strengths.copy()
    for c in range(n):
        weights = Weights(B[c], strengths[c])
        for t in range(length):
            address = Address(chain_key(16, 0), length * c + t, streams.ROW_SCALARS)
            rest = A[c] - features.values @ weights.B
            weights = feature_steps.draw_weights(weights, features, rest, root, address, _ONE)
        new_B[c], new_strengths[c] = weights
    ends = 2.0 / np.pi * np.arctan(np.array(STRENGTHS) ** -0.5)
    share = 2.0 / np.pi * np.arctan(new_strengths**-0.5)
    white = new_B @ root * np.sqrt(by_feature(new_strengths, features))[..., None]
    rest = (A - np.einsum("ip,tpk->tik", features.values, new_B)) @ root
    moved = np.mean(new_strengths != strengths)
    return {
        "lambda": ks_uniform((share - ends[1]) / (ends[0] - ends[1])),
        "B": ks_uniform(stats.norm.cdf(white)),
        "A": ks_uniform(stats.norm.cdf(rest)),
        "features with A": _p_of_products(features, white, rest),
        "B with lambda": _p_of_mean((np.mean(white**2, axis=(1, 2)) - 1.0) * (share[:, 0] - 0.5)),
        "all have moved": float(moved > 0.99),
    }


def _p_of_mean(y):
    z = y.mean() / (y.std(ddof=1) / math.sqrt(y.size))
    return 2.0 * stats.norm.sf(abs(z))


def _p_of_products(features, white, rest):
    """B and the part of A that it does not explain are independent."""
    return _p_of_mean(np.einsum("ip,tpk,tik->t", features.values, white, rest))
