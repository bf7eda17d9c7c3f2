"""The steps of the noise and of the hyperparameters against their distributions by brute force.

Checks return {quantity: p-value}, as in ``conditionals``, or {statistic: z-score}, as in ``geweke``.
"""

import math

import numpy as np
import pytest
from scipy import stats

from fillrank.draws import streams
from fillrank.draws.streams import Address, chain_key
from fillrank.kernels.gaussian_rows import RowSums
from fillrank.noise import precisions
from fillrank.noise.precisions import DEGREES, PRIOR_SCALE
from fillrank.samplers import gasr, noise_steps
from fillrank.samplers.noise_steps import NoiseModel
from reference.geweke import noise_statistics
from reference.joint_density import log_variance
from reference.p_values import cdf_values, ks_uniform
from reference.prior_draws import (
    Model,
    entry_noise,
    noise_draws,
    rate_draws,
    variance_draws,
)
from reference.small_tables import MASK, Table, make_noise, random_state

_KEY = chain_key(31, 0)
_LOGS = np.linspace(-12.0, 8.0, 4001)


def _where(t, purpose=streams.NOISE):
    return Address(_KEY, t, purpose)


# Precisions given residuals.


def precision_conditionals(n=2500, resolution=0.8):
    """a_i and b_j given all residuals, where the entries have weights and the last row none."""
    rng = np.random.default_rng(1)
    mask = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 0]], dtype=bool)
    e, w = rng.standard_normal(mask.shape), rng.uniform(0.5, 2.0, mask.shape) * mask
    state = make_noise(0.4, mask.shape, [0.5, 2.0, 1.0, 1.0], [0.3, 1.0, 3.0], law=(4.0, 7.0))
    cells = state.cells
    model = NoiseModel(rows=True, columns=True, resolution=resolution)
    row_sums = RowSums((w * e**2) @ cells.columns, np.zeros(0), np.zeros(0))
    column_sums = RowSums(cells.rows @ (w * e**2), np.zeros(0), np.zeros(0))
    rows, columns = [], []
    for t in range(n):
        drawn = noise_steps.draw_row_precisions(state, _where(t), mask.sum(axis=1), row_sums)
        rows.append(drawn.cells.rows)
        drawn = noise_steps.draw_column_precisions(
            state, model, _where(t), mask.sum(axis=0), column_sums
        )
        columns.append(drawn.cells.columns)
    a, b = cells.rows[:, np.newaxis], cells.columns
    places = {
        "rows": _places_of_precisions(rows, e, w * b, mask, cells.variance, 4.0, 0.0),
        "columns": _places_of_precisions(
            columns, e.T, (w * a).T, mask.T, cells.variance, 7.0, resolution
        ),
    }
    return {name: ks_uniform(values) for name, values in places.items()}


def _places_of_precisions(drawn, e, others, mask, variance, degrees, resolution):
    """Places under prior times likelihood, entry by entry, on a grid of log a_i."""
    drawn, places = np.array(drawn), []
    a = np.exp(_LOGS)
    for i in range(e.shape[0]):
        density = stats.gamma.logpdf(a, 0.5 * degrees, scale=2.0 / degrees) + _LOGS
        for j in np.flatnonzero(mask[i]):
            sd = np.sqrt(variance / (a * others[i, j]))
            density = density + stats.norm.logpdf(e[i, j], scale=sd)
            density = density - 0.5 * a * resolution**2 / variance
        places.append(cdf_values(np.log(drawn[:, i]), _LOGS, density))
    return places


# Degrees of freedom on the grid.


def degrees_of_freedom(n=3000):
    """nu given precisions: a chi-squared test of its places on the grid."""
    p_values = {}
    for degrees, size in [(4.5, 6), (30.0, 40), (1000.0, 3)]:
        rng = np.random.default_rng(int(degrees))
        given = rng.gamma(0.5 * degrees, 2.0 / degrees, size)
        total, log_total = float(given.sum()), float(np.log(given).sum())
        drawn = [precisions.draw_degrees(_where(t), 1, size, total, log_total) for t in range(n)]
        log_p = [stats.gamma.logpdf(given, 0.5 * v, scale=2.0 / v).sum() for v in DEGREES]
        p = np.exp(np.array(log_p) - np.max(log_p))
        counts = np.array([np.sum(np.array(drawn) == v) for v in DEGREES])
        assert counts.sum() == n
        p_values[f"{size} precisions of {degrees} degrees"] = _chi_squared(counts, p / p.sum())
    return p_values


def _chi_squared(counts, probabilities):
    """The p-value of counts, neighbours being joined until ten of each are expected."""
    expected = counts.sum() * probabilities
    group = (np.cumsum(expected) // 10.0).astype(int)
    joined, observed = np.bincount(group, expected), np.bincount(group, counts)
    joined, observed = joined[joined > 0], observed[joined > 0]
    joined[-2:], observed[-2:] = joined[-2:].sum() / 2, observed[-2:].sum() / 2
    return stats.chisquare(observed, joined * observed.sum() / joined.sum()).pvalue


# The scale that sigma^2 shares with the precisions of a side.


def common_scale(n=3000):
    """A step from the density in t = log c, by quadrature, must leave it as it is."""
    p_values = {}
    cases = [("two", np.array([0.4, 1.3]), 0.0), ("resolution", np.array([0.8, 1.0, 0.6]), 1.5)]
    for name, base, resolved in cases:
        variance, degrees, t = 1.7, 4.0, np.linspace(-12.0, 8.0, 4001)
        c = np.exp(t)
        density = log_variance(variance * c, PRIOR_SCALE) + (base.size + 1) * t - resolved / c
        for a in base:
            density = density + stats.gamma.logpdf(a * c, 0.5 * degrees, scale=2.0 / degrees)
        cdf = cdf_values(t, t, density)
        before = np.interp(np.random.default_rng(2).random(n), cdf, t)
        after = [
            x
            + math.log(
                precisions.draw_common_scale(
                    _where(k), 4, base * math.exp(x), degrees,
                    variance * math.exp(x) / PRIOR_SCALE**2, resolved * math.exp(-x),
                )
            )
            for k, x in enumerate(before)
        ]  # fmt: skip
        assert np.mean(np.array(after) != before) > 0.99
        p_values[name] = ks_uniform(cdf_values(after, t, density))
    return p_values


# sigma^2 with unequal precisions, and the scale that it shares with the rows', as a sweep draws them.

_COUNTS, _SQUARES = np.array([2, 3, 1]), np.array([1.0, 0.4, 2.0])
_COLUMNS, _RESOLUTION = np.array([0.2, 1.0, 6.0]), 0.5


def _sums():
    return RowSums(_SQUARES, np.zeros(0), np.zeros(0))


def level_draws(n=3000):
    """A step from sigma^2 of the right distribution, by quadrature; the columns stay as they are."""
    model = NoiseModel(columns=True, resolution=_RESOLUTION)
    logs = np.linspace(-12.0, 16.0, 8001)
    square = _COLUMNS @ (_SQUARES + _RESOLUTION**2 * _COUNTS)
    density = log_variance(np.exp(logs), PRIOR_SCALE) + logs - 0.5 * _COUNTS.sum() * logs
    density = density - 0.5 * square * np.exp(-logs)
    before = np.interp(np.random.default_rng(5).random(n), cdf_values(logs, logs, density), logs)
    after = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise_steps, "_draw_column_side", lambda state, *_: state)
        for t, x in enumerate(before):
            state = make_noise(math.exp(x), (2, 3), None, _COLUMNS)
            state = noise_steps.draw_level(state, model, _where(t), _COUNTS, _sums())
            after.append(math.log(state.cells.variance))
    return {"sigma^2": ks_uniform(cdf_values(after, logs, density))}


def row_scale_draws(n=3000):
    """The scale of sigma^2 and the rows' precisions, where sigma^2 is not drawn by itself."""
    model = NoiseModel(rows=True, columns=False, resolution=_RESOLUTION)
    base, variance, degrees, t = np.array([0.4, 1.3]), 0.6, 4.0, np.linspace(-12.0, 8.0, 4001)
    c = np.exp(t)
    density = log_variance(variance * c, PRIOR_SCALE) + (base.size + 1) * t
    density = density - 0.5 * _RESOLUTION**2 * (_COLUMNS @ _COUNTS) / (variance * c)
    for a in base:
        density = density + stats.gamma.logpdf(a * c, 0.5 * degrees, scale=2.0 / degrees)
    before = np.interp(np.random.default_rng(6).random(n), cdf_values(t, t, density), t)
    after, ratios = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise_steps, "draw_noise_variance", lambda _, variance, *__: variance)
        for k, x in enumerate(before):
            state = make_noise(
                variance * math.exp(x), (2, 3), base * math.exp(x), _COLUMNS, law=(degrees, degrees)
            )
            cells = noise_steps.draw_level(state, model, _where(k), _COUNTS, _sums()).cells
            after.append(math.log(cells.variance / variance))
            ratios.append(cells.variance / cells.rows - variance / base)
    return {
        "scale": ks_uniform(cdf_values(after, t, density)),
        "noise unchanged": float(np.abs(ratios).max() < 1e-12),
    }


# All steps of the noise together, without a signal.


def noise_scores(model, n=1500, length=2, seed=0):
    """{statistic: z-score} of how precisions, degrees and sigma^2 change in a cycle of the steps.

    The parameters of each chain come from the prior, and data from the parameters before each cycle. So
    parameters and data have the same distribution before and after it. With a resolution f the prior has
    the factor exp(-sum_j b_j n_j f^2 / (2 sigma^2)), over columns whose noise is not fixed: draws are
    accepted with that probability.
    """
    rng = np.random.default_rng([seed, 5])
    table = Table(MASK, weights=np.random.default_rng(6).uniform(0.3, 3.0, int(MASK.sum())))
    counts = table.mask.sum(axis=1), table.mask.sum(axis=0)
    before, after, residuals = [], [], []
    for c, start in enumerate(_prior(rng, n, table, model)):
        state = start
        for t in range(length):
            e = entry_noise(rng, table, *state.cells)
            drawn = _student_weights(rng, table, state.cells, e)
            before.append(state)
            residuals.append(e)
            state = _cycle(state, model, table, e, drawn, _where(length * c + t), counts)
            after.append(state)
    e, scores = np.array(residuals), {}
    free = np.delete(np.arange(table.shape[1]), model.fixed)
    old, new = (_statistics(states, e, table, model) for states in (before, after))
    for name in old:
        change = (new[name] - old[name]).reshape(n, length).mean(axis=1)
        if not free.size and not change.any():  # sigma^2 has no meaning then
            continue
        scores[name] = change.mean() / (change.std(ddof=1) / math.sqrt(n))
    return scores


def _student_weights(rng, table, cells, e):
    """l given the residuals; ones for Gaussian noise."""
    if math.isinf(cells.degrees):
        return np.ones(e.size)
    precision = cells.rows[table.i] * cells.columns[table.j] * table.weights / cells.variance
    rate = 0.5 * (cells.degrees + precision * e**2)
    return rng.gamma(0.5 * (cells.degrees + 1.0), 1.0 / rate)


def _cycle(state, model, table, e, drawn, where, counts):
    """The steps of a sweep after the half-sweeps of rows and of columns, given weights ``drawn``."""
    (m, n), (rows, columns) = table.shape, counts
    square = drawn * table.weights * e**2
    if model.rows:
        q = np.bincount(table.i, square * state.cells.columns[table.j], m)
        sums = RowSums(q, np.zeros(0), np.zeros(0))
        state = noise_steps.draw_row_precisions(state, where, rows, sums)
    q = np.bincount(table.j, square * state.cells.rows[table.i], n)
    weights = np.bincount(table.j, drawn, n), np.bincount(table.j, np.log(drawn), n)
    sums = RowSums(q, *weights)
    if model.columns:
        state = noise_steps.draw_column_precisions(state, model, where, columns, sums)
    return noise_steps.draw_level(state, model, where, columns, sums)


def _prior(rng, size, table, model):
    """Some noise of the prior."""
    variance = variance_draws(rng, 4 * size)
    rows, columns, degrees, _ = noise_draws(rng, 4 * size, table, model, variance)
    counts, free = table.mask.sum(axis=0), np.delete(np.arange(table.shape[1]), model.fixed)
    factor = np.exp(-0.5 * model.resolution**2 * (columns[:, free] @ counts[free]) / variance)
    kept = np.flatnonzero(rng.random(4 * size) < factor)[:size]
    assert kept.size == size
    return [
        make_noise(
            variance[c], table.shape, rows[c], columns[c], degrees[c, 2], tuple(degrees[c, :2])
        )
        for c in kept
    ]


class _Stacked:
    """Noise of many states, as `noise_statistics` takes it."""

    def __init__(self, states):
        self.variance = np.array([s.cells.variance for s in states])
        self.rows = np.stack([s.cells.rows for s in states])
        self.columns = np.stack([s.cells.columns for s in states])
        self.degrees = np.array(
            [(s.row_degrees, s.column_degrees, s.cells.degrees) for s in states]
        )


def _statistics(states, e, table, model):
    draws = _Stacked(states)
    precision = draws.rows[:, table.i] * draws.columns[:, table.j] * table.weights
    relative = e * np.sqrt(precision / draws.variance[:, None])
    log_variance_ = np.log(draws.variance)
    size = np.abs(relative)
    return noise_statistics(draws, table, model, relative) | {
        "log noise variance": log_variance_,
        "log noise variance, squared": log_variance_**2,
        "noise variance": draws.variance / (1.0 + draws.variance),
        "noise, size": np.mean(size / (1.0 + size), axis=1),
        "noise with its variance": log_variance_ * np.mean(size / (1.0 + size), axis=1),
    }


# a and b given gamma.


def hyperparameter_draws(n=2000):
    """A step from the prior of (a, b), gamma: all must keep their distributions."""
    p_values = {}
    for r in (1, 4):
        p_values |= {f"{name}, r = {r}": p for name, p in _hyperparameter_draws(n, r).items()}
    return p_values


def _hyperparameter_draws(n, r, shape=(6, 5)):
    rng = np.random.default_rng(r)
    a, b = rate_draws(rng, 2 * n, shape, Model(None, None, None, False))
    inside = (a > gasr.A_BOUNDS[0]) & (a < gasr.A_BOUNDS[1])
    a, b = a[inside][:n], b[inside][:n]
    gamma = np.maximum(rng.gamma(a[:, None], 1.0 / b[:, None], (n, r)), 1e-300)
    new_a, new_b, n_cells = a.copy(), b.copy(), math.prod(shape)
    for t in range(3):
        for c in range(n):
            where = _where(3 * c + t, streams.RATES)
            new_a[c], new_b[c] = gasr.draw_hyperparameters(where, gamma[c], new_a[c], n_cells)
    ends = stats.norm.cdf(np.log(gasr.A_BOUNDS) / 1.5)
    place = (stats.norm.cdf(np.log(new_a) / 1.5) - ends[0]) / (ends[1] - ends[0])
    return {
        "a": ks_uniform(place),
        "b": ks_uniform(stats.gamma.cdf(new_b, 2.0, scale=math.sqrt(n_cells) / 4.0)),
        "gamma": ks_uniform(stats.gamma.cdf(gamma[:, 0], new_a, scale=1.0 / new_b)),
    }


# The shift of the effects.


def _shifted(state, t):
    """The state with shifted effects; the step changes its arrays in place."""
    copied = state._replace(left=state.left.copy(), right=state.right.copy())
    return gasr._shift_effects(copied, _where(t, streams.COLUMN_SCALARS))


def effect_shifts(n=3000):
    """The density of the shift, by quadrature; and how far the signal and the effects change."""
    rng = np.random.default_rng(4)
    state = random_state(rng, (5, 4), 2)
    state.left[:, 2], state.right[:, 3] = rng.standard_normal(5), rng.standard_normal(4)
    means = (1.5, -0.7)
    effects = [
        e._replace(mean=mean)
        for e, mean in zip((state.row_effect, state.column_effect), means, strict=True)
    ]
    state = state._replace(row_effect=effects[0], column_effect=effects[1])
    after = [_shifted(state, t) for t in range(n)]
    shifts = np.array([s.row_effect.mean - means[0] for s in after])
    grid = np.linspace(-12.0, 12.0, 4001)
    density = stats.norm.logpdf(means[0] + grid, scale=PRIOR_SCALE)
    density = density + stats.norm.logpdf(means[1] - grid, scale=PRIOR_SCALE)
    scale = np.append(state.d, [1.0, 1.0])
    signal = (state.left * scale) @ state.right.T
    change = max(np.abs((s.left * scale) @ s.right.T - signal).max() for s in after)
    for s, shift in zip(after, shifts, strict=True):
        moved = np.abs(s.left[:, 2] - state.left[:, 2] - shift).max()
        moved += abs(s.column_effect.mean - means[1] + shift)
        change = max(change, moved)
    return {"shift": ks_uniform(cdf_values(shifts, grid, density)), "change": float(change < 1e-12)}
