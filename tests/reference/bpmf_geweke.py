"""Geweke's joint test of BPMF: the prior drawn directly, statistics, and chains of the sampler.

As in ``geweke``: many chains, each from its own draw of the prior, so that standard errors need no
estimate of autocorrelation.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import stats

from fillrank.draws.streams import chain_key
from fillrank.runtime.threads import Workers
from fillrank.samplers import bpmf
from reference.small_tables import SMALL_MASK, FullTable, Table

TABLE = Table(SMALL_MASK)
FULL_TABLE = FullTable(SMALL_MASK.shape)
RANK = 2
# Far from improper, so that every statistic has a variance.
PRIOR = bpmf.Hyperprior(beta=2.0, degrees=3.0, inverse_scale=1.0, noise=(4.0, 2.0))
FIXED_NOISE = 0.5
_REFERENCE_SIZE = 60_000


class Draws(NamedTuple):
    """Joint draws, the first axis of all counts them: factors, distributions, alpha and data."""

    U: np.ndarray
    V: np.ndarray
    mean_u: np.ndarray
    Lam_U: np.ndarray
    mean_v: np.ndarray
    Lam_V: np.ndarray
    alpha: np.ndarray
    x: np.ndarray


def _signal(U, V, table):
    return np.einsum("tpk,tpk->tp", U[:, table.i], V[:, table.j])


def _side_from_prior(rng, size, n, prior):
    """(vectors, mu, Lam), by scipy's Wishart and inverses."""
    Lam = stats.wishart(prior.degrees, np.eye(RANK) / prior.inverse_scale).rvs(size, rng)
    L = np.linalg.cholesky(np.linalg.inv(Lam))
    mu = np.einsum("tab,tb->ta", L, rng.standard_normal((size, RANK))) / np.sqrt(prior.beta)
    z = rng.standard_normal((size, n, RANK))
    return mu[:, None] + np.einsum("tab,tnb->tna", L, z), mu, Lam


def prior_draws(rng, size, prior, table):
    """Independent draws of everything."""
    U, mean_u, Lam_U = _side_from_prior(rng, size, table.shape[0], prior)
    V, mean_v, Lam_V = _side_from_prior(rng, size, table.shape[1], prior)
    if prior.noise is None:
        alpha = np.full(size, 1.0 / FIXED_NOISE)
    else:
        a, b = prior.noise
        alpha = rng.gamma(a, 1.0 / b, size)
    noise = rng.standard_normal((size, table.n_entries)) / np.sqrt(alpha)[:, None]
    return Draws(U, V, mean_u, Lam_U, mean_v, Lam_V, alpha, _signal(U, V, table) + noise)


def _side_statistics(name, vectors, mu, Lam, beta):
    n = vectors.shape[1]
    centred = vectors - mu[:, None]
    inverse = np.linalg.inv(Lam)
    return {
        f"log det of {name}": np.linalg.slogdet(Lam)[1],
        f"trace of {name}": np.log(np.trace(Lam, axis1=1, axis2=2)),
        f"correlation of {name}": Lam[:, 0, 1] / np.sqrt(Lam[:, 0, 0] * Lam[:, 1, 1]),
        f"mean of {name}": np.tanh(mu).mean(axis=1),
        f"mean of {name}, scaled": beta * np.einsum("ta,tab,tb->t", mu, Lam, mu),
        f"vectors of {name}": np.einsum("tna,tab,tnb->t", centred, Lam, centred) / n,
        f"first vector of {name}": np.einsum("ta,tab,tb->t", centred[:, 0], Lam, centred[:, 0]),
        f"empty or last of {name}": np.tanh(vectors[:, 2]).mean(axis=1),
        f"mean with vectors of {name}": np.einsum("ta,tab,tnb->t", mu, Lam, centred) / n,
        f"variance in {name}": np.log(np.trace(inverse, axis1=1, axis2=2)),
        f"square of vectors of {name}": np.mean(np.tanh(vectors) ** 2, axis=(1, 2)),
    }


def statistics_of(draws, prior, table):
    """Named statistics, one value per draw."""
    signal = _signal(draws.U, draws.V, table)
    e = (draws.x - signal) * np.sqrt(draws.alpha)[:, None]
    signal = np.tanh(signal)
    out = _side_statistics("rows", draws.U, draws.mean_u, draws.Lam_U, prior.beta)
    out |= _side_statistics("columns", draws.V, draws.mean_v, draws.Lam_V, prior.beta)
    out |= {
        "noise": e.mean(axis=1),
        "noise, squared": np.mean(e**2, axis=1),
        "noise with signal": np.mean(e * signal, axis=1),
        "signal": signal.mean(axis=1),
        "signal, squared": np.mean(signal**2, axis=1),
        "x, size": np.mean(np.abs(np.tanh(draws.x)), axis=1),
    }
    if prior.noise is not None:
        out |= {
            "log alpha": np.log(draws.alpha),
            "alpha": draws.alpha,
            "alpha with signal": np.log(draws.alpha) * np.mean(signal**2, axis=1),
        }
    return out


@cache
def _expected(prior, table):
    draws = prior_draws(np.random.default_rng(7), _REFERENCE_SIZE, prior, table)
    values = statistics_of(draws, prior, table)
    return {name: (y.mean(), y.var() / y.size) for name, y in values.items()}


def _distribution(mu, Lam):
    return bpmf.FactorPrior(mu, np.linalg.cholesky(Lam))


def _state_of(draws, c, sweep):
    return bpmf.State(
        draws.U[c], draws.V[c], _distribution(draws.mean_u[c], draws.Lam_U[c]),
        _distribution(draws.mean_v[c], draws.Lam_V[c]), 1.0 / draws.alpha[c], sweep,
    )  # fmt: skip


def _stack(links):
    def law(name):
        distributions = [getattr(state, name) for state, _ in links]
        return np.stack([w.mean for w in distributions]), np.stack(
            [w.T @ w.T.T for w in distributions]
        )

    return Draws(
        np.stack([s.left for s, _ in links]), np.stack([s.right for s, _ in links]),
        *law("row_law"), *law("column_law"),
        np.array([1.0 / s.noise_variance for s, _ in links]), np.stack([x for _, x in links]),
    )  # fmt: skip


def geweke_scores(joint, prior=PRIOR, *, n_chains, length, seed=0, table=TABLE):
    """{statistic: z-score} of chains of the sampler against independent draws."""
    rng = np.random.default_rng([seed, 1])
    context = bpmf.Context(prior, joint, chain_key(seed, 0), Workers(1))
    starts = prior_draws(rng, n_chains, prior, table)
    links, number = [], 0
    for c in range(n_chains):
        state = _state_of(starts, c, number)
        for _ in range(length):
            signal = np.sum(state.left[table.i] * state.right[table.j], axis=1)
            noise = np.sqrt(state.noise_variance) * rng.standard_normal(table.n_entries)
            x = signal + noise
            state, _ = bpmf.sweep(state, table.data(x), context)
            links.append((state, x))
        number = state.sweep
    scores = {}
    for name, values in statistics_of(_stack(links), prior, table).items():
        means = values.reshape(n_chains, length).mean(axis=1)
        truth, error_square = _expected(prior, table)[name]
        error_square = error_square + means.var(ddof=1) / n_chains
        scores[name] = (means.mean() - truth) / np.sqrt(error_square)
    return scores
