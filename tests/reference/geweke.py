"""Geweke's joint distribution test ("Getting it right", JASA 99, 2004).

Two ways to draw parameters and data together must give the same distribution: independent draws from the
prior with data on top, and a chain that alternates data given parameters with one sweep of the
sampler given data. Here the second way consists of many chains, each from its own draw of the prior:
if the sweep is right, every link has the joint law, and the chains are independent, so that the
standard errors need no estimate of autocorrelation. (A sweep that fails to move something is not
caught by this, but elsewhere.)
"""

import sys
from functools import cache

import numpy as np

from reference.prior_draws import Draws, prior_draws, signal_at, state_of_draw
from reference.small_tables import Table, context_of

_REFERENCE_SIZE = 100_000


def _bounded(y):
    return y / (1.0 + np.abs(y))


def _mean(y):
    """The average over all axes but the first."""
    return y.reshape(y.shape[0], -1).mean(axis=1)


def _effect_statistics(name, effects, law, counts):
    """``counts`` are the numbers of entries behind each effect."""
    mean, variance = law[:, 0], law[:, 1]
    score = (effects - mean[:, None]) / np.sqrt(variance)[:, None]
    return {
        f"log variance of {name}": np.log(variance),
        f"mean of {name}": mean,
        f"square of the mean of {name}": mean**2,
        f"variance of {name}": _bounded(variance),
        f"{name}": _mean(score),
        f"{name}, squared": _mean(score**2),
        f"{name}, averaged, squared": effects.shape[1] * _mean(score) ** 2,
        f"{name} of fewest entries": _bounded(score[:, np.argmin(counts)] ** 2),
    }


def statistics_of(draws, table, model):
    """Named statistics, one value per draw, all with a variance."""
    U, V, d, gamma = draws.U, draws.V, draws.d, draws.gamma
    m, n, r = U.shape[1], V.shape[1], d.shape[1]
    place_u = np.linalg.norm(U, axis=1) ** m  # uniform on (0, 1), as are the next two
    place_v = np.linalg.norm(V, axis=1) ** n
    place_d = np.exp(-gamma * d)
    Z = np.einsum("tik,tk,tjk->tij", U, d, V)
    signal = signal_at(table, U, V, d, draws.alpha, draws.beta)
    scale = np.sqrt(draws.noise_variance)[:, None]
    e = (draws.x - signal) / scale
    low_rank = Z[:, table.i, table.j] / scale
    relative = _bounded(Z / scale[:, :, None])
    q = min(m, n)
    out = {
        "d": _mean(_bounded(d)),
        "log d": _mean(np.log(d)),
        "gamma": _mean(gamma),
        "gamma, squared": _mean(gamma**2),
        "log gamma": _mean(np.log(gamma)),
        "d given gamma": _mean(place_d),
        "d given gamma, squared": _mean(place_d**2),
        "gamma with d": _mean(_bounded(d) * gamma),
        "radius of u": _mean(place_u),
        "radius of u, squared": _mean(place_u**2),
        "radius of v": _mean(place_v),
        "radius of v, squared": _mean(place_v**2),
        "radii of u and v": _mean((place_u - 0.5) * (place_v - 0.5)),
        "radius of u with d": _mean((place_u - 0.5) * (place_d - 0.5)),
        "radius of v with d": _mean((place_v - 0.5) * (place_d - 0.5)),
        "u": _mean(U),
        "v": _mean(V),
        "u of the first row": _mean(U[:, 0] ** 2),
        "u of the empty row": _mean(U[:, np.argmin(table.mask.sum(axis=1))] ** 2),
        "v of the last column": _mean(V[:, -1] ** 2),
        "u with v": _mean(U[:, :q] * V[:, :q]),
        "z": _mean(relative),
        "z, size": _mean(np.abs(relative)),
        "x": _mean(np.tanh(draws.x)),
        "x, size": _mean(np.abs(_bounded(draws.x))),
        "noise": _mean(e),
        "noise, squared": _mean(e**2),
        "noise with z": _mean(e * _bounded(low_rank)),
    }
    if r > 1:
        out["u with u"] = np.einsum("ti,ti->t", U[:, :, 0], U[:, :, 1])
        out["v with v"] = np.einsum("tj,tj->t", V[:, :, 0], V[:, :, 1])
        out["angles, squared"] = out["u with u"] ** 2 + out["v with v"] ** 2
        out["product of angles"] = out["u with u"] * out["v with v"]
    if model.noise_variance is None:
        out["log noise variance"] = np.log(draws.noise_variance)
        out["noise variance"] = _bounded(draws.noise_variance)
    if model.has_effects:
        rows, columns = table.mask.sum(axis=1), table.mask.sum(axis=0)
        out |= _effect_statistics("row effects", draws.alpha, draws.row_effect, rows)
        out |= _effect_statistics("column effects", draws.beta, draws.column_effect, columns)
    return out


def _one_chain(sweep, state, table, context, rng, length, links):
    """Alternate data and sweeps, and append (parameters, data) after each sweep to ``links``."""
    r = state.d.size
    noise = rng.standard_normal((length, table.n_entries))
    for t in range(length):
        alpha, beta = state.left[:, r], state.right[:, r + 1]
        signal = signal_at(table, state.left[:, :r], state.right[:, :r], state.d, alpha, beta)
        x = signal + np.sqrt(state.noise_variance) * noise[t]
        state, _ = sweep(state, table.data(x), context)
        links.append((state, x))
    return state.sweep


def _stack(links):
    states = [state for state, _ in links]
    r = states[0].d.size
    left = np.stack([s.left for s in states])
    right = np.stack([s.right for s in states])
    return Draws(
        left[:, :, :r], right[:, :, :r],
        np.stack([s.d for s in states]), np.stack([s.gamma for s in states]),
        left[:, :, r], right[:, :, r + 1],
        np.array([s.row_effect for s in states]), np.array([s.column_effect for s in states]),
        np.array([s.noise_variance for s in states]),
        np.stack([x for _, x in links]),
    )  # fmt: skip


@cache
def _expected(mask, shape, r, model):
    """{statistic: (mean, squared standard error)} from independent draws."""
    table = Table(np.frombuffer(mask, dtype=bool).reshape(shape))
    draws = prior_draws(np.random.default_rng(7), _REFERENCE_SIZE, table, r, model)
    values = statistics_of(draws, table, model)
    return {name: (y.mean(), y.var() / y.size) for name, y in values.items()}


def geweke_scores(sweep, table, r, model, options, *, n_chains, length, seed=0):
    """{statistic: z-score} of the chains of ``sweep`` against independent draws.

    The first half of the chains draws afresh, the other half carries its draws beyond their means.
    """
    rng = np.random.default_rng([seed, 1])
    noise_from = 0 if model.noise_variance is None else sys.maxsize
    context = context_of(options, seed, relaxed_from=n_chains * length // 2, noise_from=noise_from)
    starts = prior_draws(rng, n_chains, table, r, model)
    links, number = [], 0
    for c in range(n_chains):
        state = state_of_draw(starts, c, model, number)
        number = _one_chain(sweep, state, table, context, rng, length, links)
    chains = statistics_of(_stack(links), table, model)
    expected = _expected(table.mask.tobytes(), table.shape, r, model)
    scores = {}
    for name, values in chains.items():
        means = values.reshape(n_chains, length).mean(axis=1)
        truth, error_square = expected[name]
        error_square = error_square + means.var(ddof=1) / n_chains
        scores[name] = (means.mean() - truth) / np.sqrt(error_square)
    return scores


def worst(scores):
    """(name, |z|) of the statistic that is furthest off; NaN counts as infinitely far."""
    sizes = {name: abs(z) if np.isfinite(z) else np.inf for name, z in scores.items()}
    name = max(sizes, key=sizes.get)
    return name, sizes[name]
