"""V given Z, and rows that were not there at fit, against brute force."""

import itertools

import numpy as np
from scipy import stats

from fillrank.draws.streams import chain_key
from fillrank.noise.hinge import Working
from fillrank.runtime.threads import Workers
from fillrank.samplers import ipm3f
from reference.ipm3f_gibbs_conditionals import chi2_p
from reference.ipm3f_gibbs_geweke import HYPER
from reference.ipm3f_prior import hinges
from reference.p_values import ks_uniform
from reference.small_tables import SMALL_MASK, Table

_KEY = chain_key(31, 0)


def _frame(hyper):
    return ipm3f.Context(hyper, _KEY, Workers(1))


def weights_of_columns_p(n=1500):
    """The p-value of V, whitened by the precision that loops over the entries give."""
    rng = np.random.default_rng(3)
    # A prior that weighs as much as the data.
    hyper = HYPER._replace(sigma=0.5)
    table = Table(SMALL_MASK, np.int8)
    data = ipm3f.ordinal_data(table.data(np.ones(table.n_entries)))
    Z = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    working = Working(rng.gamma(2.0, 1.0, table.n_entries), rng.normal(size=table.n_entries))
    precision = np.array([np.eye(2) / hyper.sigma**2 for _ in range(3)])
    weighted = np.zeros((3, 2))
    for i, j, w, y in zip(table.i, table.j, *working, strict=True):
        precision[j] += w * np.outer(Z[i], Z[i])
        weighted[j] += w * y * Z[i]
    places = []
    for sweep in range(n):
        state = ipm3f.State(Z, np.zeros((3, 2)), np.zeros((4, 2)), sweep)
        V = ipm3f._draw_columns(state, data, working, _frame(hyper))
        for j in range(3):
            e = V[j] - np.linalg.solve(precision[j], weighted[j])
            places.append(stats.norm.cdf(np.linalg.cholesky(precision[j]).T @ e))
    return ks_uniform(places)


def _state():
    """Five rows with two features."""
    Z = np.array([[1, 1], [1, 0], [1, 1], [1, 0], [0, 1]], dtype=float)
    V = np.array([[1.5, -0.5], [-1.0, 0.7], [0.4, 1.2]])
    return ipm3f.State(Z, V, np.zeros((5, 2)), 0)


def _distribution_of_bits(state, levels, hyper):
    """{bits: probability} of one new row with levels in all columns, thresholds integrated out."""
    counts, n_rows = state.Z.sum(axis=0), state.Z.shape[0] + 1
    grid = np.linspace(-8.0, 8.0, 801)
    law = {}
    for bits in itertools.product([0.0, 1.0], repeat=counts.size):
        share = np.where(np.array(bits) == 1.0, counts / n_rows, 1.0 - counts / n_rows)
        weight = np.prod(share)
        lower, upper = np.meshgrid(grid, grid, indexing="ij")
        thresholds = np.stack([lower, upper], axis=-1)
        density = -0.5 * np.sum(
            ((thresholds - hyper.threshold_mean) / hyper.threshold_sd) ** 2, axis=-1
        )
        for x, level in zip(state.V @ bits, levels, strict=True):
            loss = hinges(np.full(lower.shape, x), thresholds, hyper.ell)[..., level - 1]
            density -= hyper.C * loss
        law[bits] = weight * np.exp(density).sum()
    total = sum(law.values())
    return {bits: weight / total for bits, weight in law.items()}


def new_rows_p(n=4000, length=30):
    """The p-value of the bits of n equal new rows after ``length`` sweeps."""
    state, levels = _state(), np.array([3, 1, 3], dtype=np.int8)
    table = Table(np.ones((n, 3), dtype=bool), np.int8)
    entries = table.data(np.tile(levels, n)).rows
    new = ipm3f.init_rows(n, state, HYPER)
    for _ in range(length):
        new = ipm3f.sweep_rows(new, entries, state, _frame(HYPER))
    return chi2_p([tuple(bits) for bits in new.Z], _distribution_of_bits(state, levels, HYPER))
