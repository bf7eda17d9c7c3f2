"""Geweke's joint test of the iPM3F sampler (see ``geweke`` and ``ipm3f_prior``).

Chains start with exact draws and alternate levels given parameters with one sweep given levels: every
link must have the joint distribution.
"""

from functools import cache

import numpy as np

from fillrank.draws.streams import chain_key
from fillrank.runtime.threads import Workers
from fillrank.samplers import ipm3f
from reference.ipm3f_prior import Draws, draw_levels, hinges, joint_draws, scores_at
from reference.small_tables import SMALL_MASK, Table

_REFERENCE_SIZE = 60_000
# A buffet of 4 rows has Poisson(3.1) dishes: more than 5, where the prior stops, in 1 of 10 cases. At
# these C and sigma the data say much about the features.
HYPER = ipm3f.Hyper(
    C=1.5, ell=1.0, alpha=1.5, sigma=2.0, threshold_sd=0.8, n_levels=3, max_features=5
)
ROOMY = HYPER._replace(C=0.9, alpha=0.8, sigma=1.3, max_features=12)


def _bounded(y):
    return y / (1.0 + np.abs(y))


def _mean(y):
    return y.reshape(y.shape[0], -1).mean(axis=1)


def statistics_of(draws, table, hyper):
    """Named statistics, one value per draw, none of which sees the order of the features."""
    Z, V, thresholds, y = draws
    counts = Z.sum(axis=1)
    lonely = counts == 1
    x = scores_at(table, Z, V)
    at = thresholds[:, table.i]
    score = (thresholds - hyper.threshold_mean) / hyper.threshold_sd
    loss = np.take_along_axis(hinges(x, at, hyper.ell), y[..., None] - 1, axis=-1)
    everywhere = np.einsum("tik,tjk->tij", Z, V)
    unseen = ~table.mask
    square = np.einsum("tjk,tk->tjk", V**2, lonely)
    empty = np.argmin(table.mask.sum(axis=1))
    return {
        "K": np.sum(counts > 0, axis=1),
        "K, squared": np.sum(counts > 0, axis=1) ** 2,
        "lonely features": lonely.sum(axis=1),
        "features of all rows": np.sum(counts == Z.shape[1], axis=1),
        "ones": Z.sum(axis=(1, 2)),
        "counts, squared": np.sum(counts**2, axis=1),
        "ones of the first row": Z[:, 0].sum(axis=1),
        "ones of the last row": Z[:, -1].sum(axis=1),
        "ones of the empty row": Z[:, empty].sum(axis=1),
        "first and last row": np.sum(Z[:, 0] * Z[:, -1], axis=1),
        "V, squared": _bounded(np.sum(V**2, axis=(1, 2))),
        "V of lonely features, squared": _bounded(square.sum(axis=(1, 2))),
        "V of the first column": _bounded(np.sum(V[:, 0], axis=1)),
        "V across columns": _bounded(np.sum(V[:, 0] * V[:, 1], axis=1)),
        "V across features": _bounded(np.sum(V.sum(axis=2) ** 2, axis=1)),
        "x": _mean(_bounded(x)),
        "x, size": _mean(np.abs(_bounded(x))),
        "x, unseen": _mean(_bounded(everywhere[:, unseen])),
        "x, unseen, size": _mean(np.abs(_bounded(everywhere[:, unseen]))),
        "lower thresholds": _mean(score[:, :, 0]),
        "upper thresholds": _mean(score[:, :, -1]),
        "thresholds, squared": _mean(score**2),
        "thresholds, product": _mean(score[:, :, 0] * score[:, :, -1]),
        "thresholds of the empty row": _mean(score[:, empty] ** 2),
        "thresholds with x": _mean(_bounded(x) * (at[..., 0] + at[..., -1])),
        "y": _mean(y),
        "y in the middle": _mean(y == 2),
        "y with x": _mean(_bounded(x) * (y - 2)),
        "y with thresholds": _mean((y - 2) * (at[..., 0] + at[..., -1])),
        "hinge": _mean(_bounded(loss)),
        "hinge, zero": _mean(loss == 0.0),
        "hinge with K": _mean(_bounded(loss)) * np.sum(counts > 0, axis=1),
    }


def _wide(A, capacity):
    out = np.zeros((A.shape[0], capacity))
    out[:, : A.shape[1]] = A
    return out


def state_of(Z, V, thresholds, sweep):
    """A state with the features that some row has."""
    alive = Z.any(axis=0)
    return ipm3f.State(Z[:, alive].copy(), V[:, alive].copy(), thresholds.copy(), sweep)


def _link(draws, data, context, number):
    """One sweep of every chain, given its levels: the parameters that follow."""
    capacity = context.hyper.max_features
    after = []
    for c, (Z, V, thresholds, y) in enumerate(zip(*draws, strict=True)):
        given = data._replace(rows=data.rows._replace(values=y.astype(np.int8)))
        state, _ = ipm3f.sweep(state_of(Z, V, thresholds, number + c), given, context)
        after.append((_wide(state.Z, capacity), _wide(state.V, capacity), state.thresholds))
    return [np.stack(part) for part in zip(*after, strict=True)]


@cache
def _expected(hyper):
    """{statistic: (mean, squared standard error)} from independent draws."""
    table = Table(SMALL_MASK, np.int8)
    draws = joint_draws(np.random.default_rng(7), _REFERENCE_SIZE, table, hyper)
    values = statistics_of(draws, table, hyper)
    return {name: (v.mean(), v.var() / v.size) for name, v in values.items()}


def gibbs_scores(hyper=HYPER, *, n_chains, length, seed=0):
    """{statistic: z-score} of the sampler's chains against independent draws."""
    table = Table(SMALL_MASK, np.int8)
    rng = np.random.default_rng([seed, 1])
    context = ipm3f.Context(hyper, chain_key(seed, 0), Workers(1))
    data = ipm3f.ordinal_data(table.data(np.ones(table.n_entries)))
    draws = joint_draws(rng, n_chains, table, hyper)
    links = []
    for t in range(length):
        parameters = _link(draws, data, context, t * n_chains)
        # Statistics take the levels that the sweep saw.
        links.append(statistics_of(Draws(*parameters, draws.y), table, hyper))
        draws = Draws(*parameters, draw_levels(rng, table, *parameters, hyper))
    scores = {}
    for name in links[0]:
        means = np.mean([link[name] for link in links], axis=0)
        truth, error_square = _expected(hyper)[name]
        error_square = error_square + means.var(ddof=1) / n_chains
        scores[name] = (means.mean() - truth) / np.sqrt(error_square)
    return scores
