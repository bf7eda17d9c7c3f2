"""How far iPM3F is from what it should be, as numbers: 0, or a rounding error, unless there is a bug."""

from functools import partial

import numpy as np

import fillrank.solvers.ipm3f as solver
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.ipm3f import Hyper, first_state
from fillrank.table.entries import compress
from reference.ipm3f_twins import (
    factor_twin,
    factor_value,
    features_twin,
    objective_twin,
    threshold_values,
)

ONE = Workers(1)
# A margin and a weight at which, on small tables, some hinges are active and some are not.
HYPER = Hyper(C=0.7, ell=1.5, alpha=2.0, sigma=1.3, threshold_sd=2.0)


def data_of(Y, mask):
    i, j = np.nonzero(mask)
    y = Y[i, j].astype(np.int8)
    m, n = Y.shape
    return Data(compress(m, i, j, y), compress(n, j, i, y))


def table(shape=(9, 7), n_levels=5, observed=0.6, seed=0):
    """(levels, mask) of a table with structure, whose third row and second column are empty."""
    rng = np.random.default_rng(seed)
    m, n = shape
    scores = rng.integers(0, 2, (m, 3)) @ rng.standard_normal((3, n))
    scores += 0.3 * rng.standard_normal(shape)
    cuts = np.quantile(scores, np.arange(1, n_levels) / n_levels)
    mask = rng.random(shape) < observed
    mask[2], mask[:, 1] = False, False
    return 1 + np.searchsorted(cuts, scores), mask


def middle_state(Y, mask, seed=0, n_features=3, n_levels=5, hyper=HYPER):
    """(data, state) where nothing is at its start or at a minimum, nor the thresholds in order."""
    rng = np.random.default_rng([seed, 1])
    data = data_of(Y, mask)
    state = first_state(data, n_levels, n_features, hyper, rng)
    return data, state._replace(
        thresholds=state.thresholds + rng.standard_normal(state.thresholds.shape),
        g=rng.uniform(1.0, 6.0, state.g.shape),
    )


def blocks(data, hyper, workers):
    """The four updates by name, each from state to state."""
    return {
        "factors": partial(solver.update_factors, data=data, hyper=hyper, workers=workers),
        "features": partial(solver.update_features, rows=data.rows, hyper=hyper, workers=workers),
        "sticks": partial(solver.update_sticks, hyper=hyper),
        "thresholds": partial(
            solver.update_thresholds, rows=data.rows, hyper=hyper, workers=workers
        ),
    }


def objective_error():
    Y, mask = table()
    data, state = middle_state(Y, mask)
    ours, twin = solver.objective(state, data, HYPER, ONE), objective_twin(state, Y, mask, HYPER)
    return abs(ours / twin - 1.0)


def features_error():
    Y, mask = table()
    data, state = middle_state(Y, mask)
    new = solver.update_features(state, data.rows, HYPER, ONE)
    twin = features_twin(state, solver.sticks_of(state.g), Y, mask, HYPER)
    return np.max(np.abs(new.psi - twin))


def thresholds_error():
    """How much better than ours the best of a fine grid is, over all thresholds."""
    Y, mask = table()
    data, state = middle_state(Y, mask)
    new = solver.update_thresholds(state, data.rows, HYPER, ONE).thresholds
    worst = 0.0
    for (i, r), theta in np.ndenumerate(new):
        value = partial(threshold_values, i, r + 1, state=state, Y=Y, mask=mask, hyper=HYPER)
        grid = np.concatenate([theta + np.linspace(-1e-3, 1e-3, 201), np.linspace(-15, 15, 3001)])
        worst = max(worst, value(np.array([theta]))[0] - value(grid).min())
    return worst


def factors_error():
    """The largest gap between a column's objective and the twin's dual, as a share of it."""
    Y, mask = table()
    data, state = middle_state(Y, mask)
    for _ in range(60):
        state = solver.update_factors(state, data, HYPER, ONE)
    gaps = []
    for j in np.flatnonzero(mask.any(axis=0)):
        _, dual = factor_twin(j, state, Y, mask, HYPER)
        gaps.append(factor_value(state.Lam[j], j, state, Y, mask, HYPER) / dual - 1.0)
    return np.max(np.abs(gaps))


def duals_error():
    """How far Lam_j is from -variance sum_i b_i psi_i, after many updates."""
    Y, mask = table()
    data, state = middle_state(Y, mask)
    for _ in range(60):
        state = solver.update_factors(state, data, HYPER, ONE)
    Lam = np.zeros_like(state.Lam)
    for j, i, b in zip(*np.nonzero(mask.T), state.duals, strict=True):
        Lam[j] -= HYPER.sigma**2 * b * state.psi[i]
    return np.max(np.abs(Lam - state.Lam))


def sticks_error():
    """What the best of many small moves of g still gains, as a share of the objective."""
    Y, mask = table()
    _, state = middle_state(Y, mask)
    for _ in range(5):
        state = solver.update_sticks(state, HYPER)
    here = objective_twin(state, Y, mask, HYPER)
    gain = 0.0
    for place in np.ndindex(state.g.shape):
        for factor in (0.97, 1.03):
            g = state.g.copy()
            g[place] *= factor
            gain = max(gain, here - objective_twin(state._replace(g=g), Y, mask, HYPER))
    return gain / here


def worst_rise(n_iterations=8):
    """The largest relative rise of the objective by one block. Below 0 if all of them lower it."""
    rises = []
    for seed, hyper in enumerate((HYPER, HYPER._replace(C=0.05), HYPER._replace(C=5.0))):
        Y, mask = table(seed=seed)
        data, state = middle_state(Y, mask, seed, hyper=hyper)
        old = solver.objective(state, data, hyper, ONE)
        for _ in range(n_iterations):
            for update in blocks(data, hyper, ONE).values():
                state = update(state)
                new = solver.objective(state, data, hyper, ONE)
                rises.append((new - old) / abs(old))
                old = new
    return max(rises)


def bound_scores():
    """z-scores of L_k against E log(1 - pi_k) from draws, for k = 1, ..., K: L_k minus the mean."""
    rng = np.random.default_rng(3)
    g = np.array([[4.0, 1.5], [2.0, 3.0], [6.0, 1.0], [1.0, 2.0]])
    nu = rng.beta(g[:, 0], g[:, 1], (200_000, 4))
    draws = np.log1p(-np.cumprod(nu, axis=1))
    error = draws.std(axis=0) / np.sqrt(draws.shape[0])
    return (solver.sticks_of(g).L - draws.mean(axis=0)) / error


# What right code stays below.
LIMITS = {
    objective_error: 1e-7,
    features_error: 1e-9,
    thresholds_error: 1e-12,
    factors_error: 1e-6,
    duals_error: 1e-6,
    sticks_error: 1e-12,
    worst_rise: 1e-10,
}
