"""Geweke's joint test of BPMF: the prior drawn directly, statistics, and chains of the sampler.

As in ``geweke``: many chains, each from its own draw of the prior, so that standard errors need no
estimate of autocorrelation.
"""

from typing import NamedTuple

import numpy as np
from scipy import stats

from fillrank.draws.streams import chain_key
from fillrank.kernels.gaussian_rows import NO_LIMITS
from fillrank.runtime.threads import Workers
from fillrank.samplers import bpmf
from fillrank.samplers.feature_steps import Weights
from fillrank.samplers.noise_steps import EQUAL_NOISE, NoiseModel
from fillrank.samplers.threshold_steps import NO_ROW_THRESHOLDS
from reference.feature_cases import NONE, Sides
from reference.geweke import (
    computed_once,
    noise_statistics,
    normal_scores,
    stack_noise,
    stack_weights,
    strength_statistics,
)
from reference.prior_draws import (
    FeatureDraws,
    by_feature,
    entry_noise,
    explained,
    noise_draws,
    noise_of_draw,
    strength_draws,
    variance_draws,
)
from reference.small_tables import SMALL_MASK, FullTable, Table

TABLE = Table(SMALL_MASK)
FULL_TABLE = FullTable(SMALL_MASK.shape)
RANK = 2
# Far from improper, so that every statistic has a variance.
PRIOR = bpmf.Hyperprior(beta=2.0, degrees=3.0, inverse_scale=1.0)
FIXED_NOISE = 0.5


class Model(NamedTuple):
    """What the noise is: how it differs, and whether it is sampled; and the features."""

    noise: NoiseModel = EQUAL_NOISE
    samples_noise: bool = True
    features: Sides = NONE


SAMPLED = Model()
_REFERENCE_SIZE = 60_000


class Draws(NamedTuple):
    """Joint draws, the first axis of all counts them: factors, distributions, noise and data."""

    U: np.ndarray
    V: np.ndarray
    mean_u: np.ndarray
    Lam_U: np.ndarray
    mean_v: np.ndarray
    Lam_V: np.ndarray
    noise_variance: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    degrees: np.ndarray
    row_weights: FeatureDraws
    column_weights: FeatureDraws
    x: np.ndarray


def _signal(U, V, table):
    return np.einsum("tpk,tpk->tp", U[:, table.i], V[:, table.j])


def _side_from_prior(rng, size, n, prior, features):
    """(vectors, mu, Lam, weights of features), by scipy's Wishart and inverses."""
    Lam = stats.wishart(prior.degrees, np.eye(RANK) / prior.inverse_scale).rvs(size, rng)
    L = np.linalg.cholesky(np.linalg.inv(Lam))
    mu = np.einsum("tab,tb->ta", L, rng.standard_normal((size, RANK))) / np.sqrt(prior.beta)
    z = rng.standard_normal((size, n, RANK))
    vectors = mu[:, None] + np.einsum("tab,tnb->tna", L, z)
    strengths = strength_draws(rng, size, features)
    z = rng.standard_normal((size, features.n_features, RANK))
    B = np.einsum("tab,tpb->tpa", L, z) / np.sqrt(by_feature(strengths, features))[..., None]
    return vectors + explained(features, B), mu, Lam, FeatureDraws(B, strengths)


def prior_draws(rng, size, table, model):
    """Independent draws of everything."""
    (m, n), (rows_of, columns_of) = table.shape, model.features.both
    U, mean_u, Lam_U, row_weights = _side_from_prior(rng, size, m, PRIOR, rows_of)
    V, mean_v, Lam_V, column_weights = _side_from_prior(rng, size, n, PRIOR, columns_of)
    variance = variance_draws(rng, size) if model.samples_noise else np.full(size, FIXED_NOISE)
    rows, columns, degrees, noise = noise_draws(rng, size, table, model.noise, variance)
    return Draws(
        U, V, mean_u, Lam_U, mean_v, Lam_V, variance, rows, columns, degrees, row_weights,
        column_weights, _signal(U, V, table) + noise,
    )  # fmt: skip


def _feature_statistics(name, weights, features, centred, Lam):
    """sqrt(lambda) b of a feature is N(0, Lam^-1), as a centred vector is."""
    b = np.sqrt(by_feature(weights.strengths, features))[..., None] * weights.B
    along = np.einsum("ip,tik->tpk", features.values, centred)
    squares = np.einsum("tpa,tab,tpb->tp", b, Lam, b)
    share = 1.0 / (1.0 + by_feature(weights.strengths, features))
    out = strength_statistics(name, weights.strengths) | {
        f"weights of {name}": np.tanh(b).mean(axis=(1, 2)),
        f"weights of {name}, squared": squares.mean(axis=1),
        f"first weight of {name}, squared": squares[:, 0],
        f"weights of {name} with vectors": np.einsum("tpa,tab,tpb->t", b, Lam, along),
        f"weights of {name} with their share": np.mean(squares * (share - 0.5), axis=1),
        f"weights of {name} with Lambda": np.mean(squares, axis=1) * np.linalg.slogdet(Lam)[1],
    }
    if features.n_features > 1:
        out[f"weights of {name} with each other"] = np.einsum(
            "ta,tab,tb->t", b[:, 0], Lam, b[:, -1]
        )
    return out


def _side_statistics(name, vectors, mu, Lam, beta, weights, features):
    n = vectors.shape[1]
    centred = vectors - mu[:, None] - explained(features, weights.B)
    more = _feature_statistics(name, weights, features, centred, Lam) if features.ends else {}
    inverse = np.linalg.inv(Lam)
    return more | {
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


def statistics_of(draws, table, model):
    """Named statistics, one value per draw."""
    signal = _signal(draws.U, draws.V, table)
    precision = draws.rows[:, table.i] * draws.columns[:, table.j] * table.weights
    e = (draws.x - signal) * np.sqrt(precision / draws.noise_variance[:, None])
    noise = noise_statistics(draws, table, model.noise, e)
    if model.noise.draws_by_entry:  # normal scores, since e^2 may have no variance
        e = normal_scores(e, draws.degrees[:, 2, None], model.noise.law)
    signal = np.tanh(signal)
    rows_of, columns_of = model.features.both
    out = _side_statistics(
        "rows", draws.U, draws.mean_u, draws.Lam_U, PRIOR.beta, draws.row_weights, rows_of
    )
    out |= _side_statistics(
        "columns", draws.V, draws.mean_v, draws.Lam_V, PRIOR.beta, draws.column_weights, columns_of
    )
    out |= noise | {
        "noise": e.mean(axis=1),
        "noise, squared": np.mean(e**2, axis=1),
        "noise with signal": np.mean(e * signal, axis=1),
        "signal": signal.mean(axis=1),
        "signal, squared": np.mean(signal**2, axis=1),
        "x, size": np.mean(np.abs(np.tanh(draws.x)), axis=1),
    }
    if model.samples_noise:
        log_variance = np.log(draws.noise_variance)
        out |= {
            "log noise variance": log_variance,
            "noise variance": draws.noise_variance / (1.0 + draws.noise_variance),
            "noise variance with signal": log_variance * np.mean(signal**2, axis=1),
        }
    return out


@computed_once
def _expected(table, model):
    draws = prior_draws(np.random.default_rng(7), _REFERENCE_SIZE, table, model)
    values = statistics_of(draws, table, model)
    return {name: (y.mean(), y.var() / y.size) for name, y in values.items()}


def _distribution(mu, Lam):
    return bpmf.FactorPrior(mu, np.linalg.cholesky(Lam))


def _state_of(draws, c, sweep):
    return bpmf.State(
        draws.U[c], draws.V[c], _distribution(draws.mean_u[c], draws.Lam_U[c]),
        _distribution(draws.mean_v[c], draws.Lam_V[c]), noise_of_draw(draws, c),
        Weights(draws.row_weights.B[c], draws.row_weights.strengths[c]),
        Weights(draws.column_weights.B[c], draws.column_weights.strengths[c]), NO_LIMITS,
        NO_ROW_THRESHOLDS, sweep,
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
        np.array([s.noise.cells.variance for s, _ in links]),
        *stack_noise([s.noise for s, _ in links]),
        stack_weights([s.row_weights for s, _ in links]),
        stack_weights([s.column_weights for s, _ in links]), np.stack([x for _, x in links]),
    )  # fmt: skip


def geweke_scores(joint, model=SAMPLED, *, n_chains, length, seed=0, table=TABLE, law=None):
    """{statistic: z-score} of chains of the sampler against independent draws.

    With ``law``, those are draws of this model, and statistics that it does not have are left out.
    """
    rng = np.random.default_rng([seed, 1])
    context = bpmf.Context(
        PRIOR, joint, chain_key(seed, 0), Workers(1), model.noise, model.samples_noise,
        model.features.both,
    )  # fmt: skip
    starts = prior_draws(rng, n_chains, table, model)
    links, number = [], 0
    for c in range(n_chains):
        state = _state_of(starts, c, number)
        for _ in range(length):
            signal = np.sum(state.left[table.i] * state.right[table.j], axis=1)
            x = signal + entry_noise(rng, table, *state.noise.cells)
            state, _ = bpmf.sweep(state, table.data(x), context)
            links.append((state, x))
        number = state.sweep
    scores, found = {}, statistics_of(_stack(links), table, model)
    for name, (truth, error_square) in _expected(table, law or model).items():
        means = found[name].reshape(n_chains, length).mean(axis=1)
        error_square = error_square + means.var(ddof=1) / n_chains
        scores[name] = (means.mean() - truth) / np.sqrt(error_square)
    return scores
