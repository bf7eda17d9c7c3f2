"""Geweke's joint distribution test ("Getting it right", JASA 99, 2004).

Two ways to draw parameters and data together must give the same distribution: independent draws from the
prior with data on top, and a chain that alternates data given parameters with one sweep of the
sampler given data. Here the second way consists of many chains, each from its own draw of the prior:
if the sweep is right, every link has the joint law, and the chains are independent, so that the
standard errors need no estimate of autocorrelation. (A sweep that fails to move something is not
caught by this, but elsewhere.)
"""

import sys
from functools import wraps

import numpy as np
from scipy import special

from fillrank.noise.laws import LAWS
from fillrank.noise.precisions import DEGREES
from fillrank.samplers import gasr
from reference.prior_draws import (
    Draws,
    FeatureDraws,
    by_feature,
    entry_noise,
    explained,
    prior_draws,
    signal_at,
    state_of_draw,
)
from reference.small_tables import context_of

_REFERENCE_SIZE = 100_000


def computed_once(function):
    """Remember results by the text of the arguments: a noise with fixed columns has no hash."""
    found = {}

    @wraps(function)
    def once(*arguments):
        key = repr(arguments)
        if key not in found:
            # The arguments are kept, so that no other object takes the place that is in the text.
            found[key] = arguments, function(*arguments)
        return found[key][1]

    return once


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


def normal_scores(e, degrees, law="gaussian"):
    """Numbers of Student's distribution, or of a law, as standard normal ones in the same place."""
    if law != "gaussian":
        return special.ndtri(np.clip(LAWS[law].cumulative(e), 1e-12, 1 - 1e-12))
    return special.ndtri(np.clip(special.stdtr(degrees, e), 1e-12, 1 - 1e-12))


def _precision_statistics(name, precisions, degrees, counts):
    """Of one side of the noise; ``counts`` are the numbers of entries behind each precision."""
    place = np.log(degrees / DEGREES[0]) / np.log(DEGREES[-1] / DEGREES[0])
    half = 0.5 * degrees[:, None]
    score = special.gammainc(half, half * precisions)
    fewest = score[:, np.argmin(counts)]
    return {
        f"degrees of {name}": place,
        f"degrees of {name}, squared": place**2,
        f"lowest degrees of {name}": 1.0 * (degrees == DEGREES[0]),
        f"precision of {name}": _mean(precisions),
        f"log precision of {name}": _mean(np.log(precisions)),
        f"precision of {name} in its place": _mean(score),
        f"precision of {name} in its place, squared": _mean(score**2),
        f"precision of {name} of fewest entries": fewest,
        f"precision of {name} with its degrees": _mean(score) * place,
        f"size of the precisions of {name}": _mean(score) ** 2,
    }


def noise_statistics(draws, table, model, e):
    """Of precisions and degrees of freedom; e are residuals in units of their scale."""
    out = {}
    if model.rows:
        counts = table.mask.sum(axis=1)
        out |= _precision_statistics("rows", draws.rows, draws.degrees[:, 0], counts)
        out["noise with row precision"] = _mean(_bounded(e**2) * np.log(draws.rows[:, table.i]))
    free = np.delete(np.arange(table.shape[1]), model.fixed)
    if model.columns and free.size:
        counts, columns = table.mask.sum(axis=0)[free], draws.columns[:, free]
        out |= _precision_statistics("columns", columns, draws.degrees[:, 1], counts)
        out["noise with column precision"] = _mean(
            _bounded(e**2) * np.log(draws.columns[:, table.j])
        )
    if model.robust:
        degrees = draws.degrees[:, 2]
        place = np.log(degrees / DEGREES[0]) / np.log(DEGREES[-1] / DEGREES[0])
        out |= {
            "degrees of entries": place,
            "degrees of entries, squared": place**2,
            "lowest degrees of entries": 1.0 * (degrees == DEGREES[0]),
            "large noise": _mean(np.abs(e) > 3.0),
            "large noise with its degrees": _mean(np.abs(e) > 3.0) * place,
            "small noise": _mean(np.abs(e) < 0.3),
        }
    return out


def strength_statistics(name, strengths):
    """Of the strengths of one side's blocks: 1 / (1 + lambda) is a share of the variance."""
    share = 1.0 / (1.0 + strengths)
    out = {
        f"share of {name}": _mean(share),
        f"share of {name}, squared": _mean(share**2),
        f"log strength of {name}": _mean(np.log(strengths)),
        f"log strength of {name}, squared": _mean(np.log(strengths) ** 2),
    }
    if strengths.shape[1] > 1:
        out[f"shares of {name}, first less last"] = share[:, 0] - share[:, -1]
        out[f"shares of {name}, first with last"] = share[:, 0] * share[:, -1]
    return out


def _feature_statistics(name, weights, features, U, place_d):
    """Of one side; the entries of sqrt(lambda) b are coordinates of a ball, as those of u."""
    r = U.shape[2]
    roots = np.sqrt(by_feature(weights.strengths, features))[..., None]
    b = roots * weights.B[:, :, :r]
    along = np.einsum("ip,tik->tpk", features.values, U)
    share = 1.0 / (1.0 + by_feature(weights.strengths, features))[..., None]
    out = strength_statistics(name, weights.strengths) | {
        f"weights of {name}": _mean(b),
        f"weights of {name}, squared": _mean(b**2),
        f"first weight of {name}, squared": _mean(b[:, 0] ** 2),
        f"weights of {name} with u": _mean(b * along),
        f"weights of {name} with their share": _mean(b**2 * (share - 0.5)),
        f"u of {name} with the share": _mean(along**2 * (share - 0.5)),
        f"weights of {name} with d": _mean(b**2) * (_mean(place_d) - 0.5),
    }
    if features.n_features > 1:
        out[f"weights of {name} with each other"] = _mean(b[:, 0] * b[:, -1])
    return out


def _effect_weight_statistics(name, b, strengths, variance, features):
    """Of the weights b (draws, p) of effects: N(0, variance / lambda)."""
    z = b * np.sqrt(by_feature(strengths, features) / variance[:, None])
    share = 1.0 / (1.0 + by_feature(strengths, features))
    return {
        f"weights of {name}": _mean(z),
        f"weights of {name}, squared": _mean(z**2),
        f"weights of {name} with their share": _mean(z**2 * (share - 0.5)),
        f"weights of {name} with their variance": _mean(z**2) * _bounded(np.log(variance)),
    }


def statistics_of(draws, table, model):
    """Named statistics, one value per draw, all with a variance."""
    U, V, d, gamma = draws.U, draws.V, draws.d, draws.gamma
    m, n, r = U.shape[1], V.shape[1], d.shape[1]
    square_u, square_v = np.sum(U**2, axis=1), np.sum(V**2, axis=1)
    rows_of, columns_of = model.features.both
    row_weights, column_weights = draws.row_weights, draws.column_weights
    n_more = 0
    if model.has_centres:
        square_u = square_u + gasr._CENTRE_WEIGHT * draws.mu**2
        square_v = square_v + gasr._CENTRE_WEIGHT * draws.nu**2
        n_more = 1
    square_u = square_u + _weight_squares(row_weights, rows_of)[:, :r]
    square_v = square_v + _weight_squares(column_weights, columns_of)[:, :r]
    # Uniform on (0, 1), as are the next two.
    place_u = square_u ** (0.5 * (m + n_more + rows_of.n_features))
    place_v = square_v ** (0.5 * (n + n_more + columns_of.n_features))
    place_d = np.exp(-gamma * d)
    row_shifts = explained(rows_of, row_weights.B)
    column_shifts = explained(columns_of, column_weights.B)
    left = U + draws.mu[:, None] + row_shifts[:, :, :r]
    right = V + draws.nu[:, None] + column_shifts[:, :, :r]
    Z = np.einsum("tik,tk,tjk->tij", left, d, right)
    signal = signal_at(table, left, right, d, draws.alpha, draws.beta)
    scale = np.sqrt(draws.noise_variance)[:, None]
    precision = draws.rows[:, table.i] * draws.columns[:, table.j] * table.weights
    e = (draws.x - signal) / scale * np.sqrt(precision)
    noise = noise_statistics(draws, table, model.noise, e)
    if model.noise.draws_by_entry:  # normal scores, since e^2 may have no variance
        e = normal_scores(e, draws.degrees[:, 2, None], model.noise.law)
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
    out |= noise
    if model.a is None:
        out |= {
            "log a": np.log(draws.a),
            "log a, squared": np.log(draws.a) ** 2,
            "b": draws.b,
            "b, squared": draws.b**2,
            "a with b": np.log(draws.a) * draws.b,
            "a with gamma": np.log(draws.a) * _mean(_bounded(gamma)),
            "gamma in its place": _mean(
                special.gammainc(draws.a[:, None], draws.b[:, None] * gamma)
            ),
        }
        for name in ("gamma", "gamma, squared", "log gamma", "log d", "gamma with d"):
            del out[name]  # of heavy tails
        out["log gamma, bounded"] = _mean(_bounded(np.log(gamma)))
    if model.has_centres:
        root = np.sqrt(gasr._CENTRE_WEIGHT)
        place_mu, place_nu = root * draws.mu, root * draws.nu
        out |= {
            "centre of u": _mean(place_mu),
            "centre of u, squared": _mean(place_mu**2),
            "centre of v": _mean(place_nu),
            "centre of v, squared": _mean(place_nu**2),
            "centre of u with u": _mean(place_mu * U.mean(axis=1)),
            "centre of v with v": _mean(place_nu * V.mean(axis=1)),
            "centres of u and v": _mean(place_mu * place_nu),
            "centre of u with d": _mean(place_mu**2 * (place_d - 0.5)),
        }
    if model.noise_variance is None:
        out["log noise variance"] = np.log(draws.noise_variance)
        out["noise variance"] = _bounded(draws.noise_variance)
    if model.has_effects:
        rows, columns = table.mask.sum(axis=1), table.mask.sum(axis=0)
        alpha, beta = draws.alpha - row_shifts[:, :, r], draws.beta - column_shifts[:, :, r + 1]
        out |= _effect_statistics("row effects", alpha, draws.row_effect, rows)
        out |= _effect_statistics("column effects", beta, draws.column_effect, columns)
    sides = {
        "rows": (row_weights, rows_of, U, r, draws.row_effect),
        "columns": (column_weights, columns_of, V, r + 1, draws.column_effect),
    }
    for name, (weights, features, factors, column, effect) in sides.items():
        if features.ends:
            out |= _feature_statistics(name, weights, features, factors, place_d)
        if features.ends and model.has_effects:
            out |= _effect_weight_statistics(
                f"effects of {name}", weights.B[:, :, column], weights.strengths, effect[:, 1],
                features,
            )  # fmt: skip
    return out


def _weight_squares(weights, features):
    """sum_j lambda_j B_jk^2, (draws, K)."""
    return np.einsum("tp,tpk->tk", by_feature(weights.strengths, features), weights.B**2)


def _one_chain(sweep, state, table, context, rng, length, links):
    """Alternate data and sweeps, and append (parameters, data) after each sweep to ``links``."""
    r = state.d.size
    for _ in range(length):
        alpha, beta = state.left[:, r], state.right[:, r + 1]
        signal = signal_at(table, state.left[:, :r], state.right[:, :r], state.d, alpha, beta)
        x = signal + entry_noise(rng, table, *state.noise.cells)
        state, _ = sweep(state, table.data(x), context)
        links.append((state, x))
    return state.sweep


def stack_weights(weights):
    """The weights of features of some states, one after the other."""
    return FeatureDraws(
        np.stack([each.B for each in weights]), np.stack([each.strengths for each in weights])
    )


def _stack(links, features):
    states = [state for state, _ in links]
    r = states[0].d.size
    row_weights = stack_weights([s.row_weights for s in states])
    column_weights = stack_weights([s.column_weights for s in states])
    left = np.stack([s.left for s in states])
    right = np.stack([s.right for s in states])
    mu, nu = np.stack([s.mu for s in states]), np.stack([s.nu for s in states])
    return Draws(
        left[:, :, :r] - mu[:, None] - explained(features.rows, row_weights.B)[:, :, :r],
        right[:, :, :r] - nu[:, None] - explained(features.columns, column_weights.B)[:, :, :r],
        np.stack([s.d for s in states]), np.stack([s.gamma for s in states]),
        left[:, :, r], right[:, :, r + 1],
        np.array([s.row_effect for s in states]), np.array([s.column_effect for s in states]),
        np.array([s.noise.cells.variance for s in states]),
        mu, nu, np.array([s.a for s in states]), np.array([s.b for s in states]),
        *stack_noise([s.noise for s in states]), row_weights, column_weights,
        np.stack([x for _, x in links]),
    )  # fmt: skip


def stack_noise(noises):
    """(rows, columns, degrees (draws, 3)) of the noise of some states."""
    return (
        np.stack([noise.cells.rows for noise in noises]),
        np.stack([noise.cells.columns for noise in noises]),
        np.array(
            [(noise.row_degrees, noise.column_degrees, noise.cells.degrees) for noise in noises]
        ),
    )


@computed_once
def _expected(table, r, model):
    """{statistic: (mean, squared standard error)} from independent draws."""
    draws = prior_draws(np.random.default_rng(7), _REFERENCE_SIZE, table, r, model)
    values = statistics_of(draws, table, model)
    return {name: (y.mean(), y.var() / y.size) for name, y in values.items()}


def geweke_scores(sweep, table, r, model, options, *, n_chains, length, seed=0):
    """{statistic: z-score} of the chains of ``sweep`` against independent draws.

    The first half of the chains draws afresh, the other half carries its draws beyond their means.
    """
    rng = np.random.default_rng([seed, 1])
    noise_from = 0 if model.noise_variance is None else sys.maxsize
    rates_from = 0 if model.a is None else sys.maxsize
    context = context_of(
        options, seed, relaxed_from=n_chains * length // 2, noise_from=noise_from,
        rates_from=rates_from, features=model.features.both,
    )  # fmt: skip
    starts = prior_draws(rng, n_chains, table, r, model)
    links, number = [], 0
    for c in range(n_chains):
        state = state_of_draw(starts, c, number, model.features)
        number = _one_chain(sweep, state, table, context, rng, length, links)
    chains = statistics_of(_stack(links, model.features.both), table, model)
    expected = _expected(table, r, model)
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
