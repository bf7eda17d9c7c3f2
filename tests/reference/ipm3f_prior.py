"""Exact draws of all that iPM3F knows: the buffet, V, thresholds, and levels on top.

The hinge's pseudo-likelihood is no distribution of the levels, but

    p(Z, V, theta, y) ~ IBP(Z) N(V) N(theta) prod_ij exp(-C hinge(y_ij; x_ij, theta_i))

is a distribution of everything together, since there are finitely many y. Its parameters have the
prior times prod_ij g_ij, g = sum over y of exp(-C hinge(y)), which is bounded: so rejection draws
them exactly. Tables of all sizes K are held in ``capacity`` columns, with zeros in those to spare.
"""

from typing import NamedTuple

import numpy as np

_BATCH = 100_000


class Draws(NamedTuple):
    """Z (size, m, capacity), V (size, n, capacity), thresholds (size, m, L - 1), y (size, entries)."""

    Z: np.ndarray
    V: np.ndarray
    thresholds: np.ndarray
    y: np.ndarray


def buffets(rng, size, n_rows, alpha, capacity):
    """About ``size`` draws from the IBP given that there are at most ``capacity`` dishes.

    Row i takes an old dish with probability m_k / i and then Poisson(alpha / i) new ones.
    """
    Z = np.zeros((size, n_rows, capacity))
    K = np.zeros(size, dtype=int)
    slots = np.arange(capacity)
    for i in range(n_rows):
        share = Z.sum(axis=1) / (i + 1)
        Z[:, i] = rng.random((size, capacity)) < share
        new = rng.poisson(alpha / (i + 1), size)
        Z[:, i] += (slots >= K[:, None]) & (slots < (K + new)[:, None])
        K += new
    fits = capacity >= K
    return Z[fits]


def hinges(x, thresholds, ell):
    """The all-threshold hinge of every level, (..., L), for scores (...) and thresholds (..., L - 1)."""
    n_levels = thresholds.shape[-1] + 1
    out = np.zeros((*x.shape, n_levels))
    for level in range(1, n_levels + 1):
        for r in range(1, n_levels):
            T = 1 if r >= level else -1
            out[..., level - 1] += np.maximum(0.0, ell - T * (thresholds[..., r - 1] - x))
    return out


def scores_at(table, Z, V):
    """x of the observed entries, (size, entries)."""
    return np.einsum("tpk,tpk->tp", Z[:, table.i], V[:, table.j])


def draw_levels(rng, table, Z, V, thresholds, hyper):
    """Levels 1..L of the observed entries, given the parameters."""
    loss = hinges(scores_at(table, Z, V), thresholds[:, table.i], hyper.ell)
    weights = np.cumsum(np.exp(-hyper.C * loss), axis=-1)
    places = rng.random(weights.shape[:-1])[..., None] * weights[..., -1:]
    return 1 + np.sum(places >= weights, axis=-1)


def _proposals(rng, table, hyper):
    m, n = table.shape
    Z = buffets(rng, _BATCH, m, hyper.alpha, hyper.max_features)
    V = hyper.sigma * rng.standard_normal((Z.shape[0], n, hyper.max_features))
    V *= Z.any(axis=1)[:, None, :]
    noise = rng.standard_normal((Z.shape[0], m, hyper.n_levels - 1))
    return Z, V, hyper.threshold_mean + hyper.threshold_sd * noise


def _accepted(rng, table, hyper, Z, V, thresholds):
    """Which proposals to keep: with probability prod g / bound."""
    loss = hinges(scores_at(table, Z, V), thresholds[:, table.i], hyper.ell)
    g = np.exp(-hyper.C * loss).sum(axis=-1)
    assert hyper.n_levels == 3, "the bound of g is for three levels"
    bound = 1.0 + 2.0 * np.exp(-2.0 * hyper.C * hyper.ell)
    assert np.all(g <= bound * (1 + 1e-12))
    return rng.random(g.shape[0]) < np.prod(g / bound, axis=1)


def joint_draws(rng, size, table, hyper):
    """Independent draws of parameters and levels."""
    parts, n = [], 0
    while n < size:
        proposed = _proposals(rng, table, hyper)
        kept = _accepted(rng, table, hyper, *proposed)
        parts.append([part[kept] for part in proposed])
        n += int(kept.sum())
    Z, V, thresholds = (np.concatenate(part)[:size] for part in zip(*parts, strict=True))
    return Draws(Z, V, thresholds, draw_levels(rng, table, Z, V, thresholds, hyper))
