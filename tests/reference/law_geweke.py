"""Geweke's joint test of GASR and BPMF with other laws of the noise of an entry.

Laplace noise has numbers as data. With a law of levels, parameters give latent numbers y, and the data
are on which side of a threshold they are: y is drawn again after a sweep, given the data and the new
parameters, so that the statistics of ``geweke`` and ``bpmf_geweke`` apply.

The hinge is a pseudo-likelihood: the potentials of both levels have the sum s(z), which is not 1. The
joint density of parameters and levels, prior times potentials, is proper all the same. Under it, levels
given parameters have the normalised potentials, and the parameters the prior times prod s(z), which is
drawn here by rejection from the prior.
"""

import sys
from typing import NamedTuple

import numpy as np

from fillrank.draws.streams import chain_key
from fillrank.noise.laws import LAWS
from fillrank.noise.two_level_hinge import MARGIN, PENALTY
from fillrank.runtime.threads import Workers
from fillrank.samplers import bpmf, gasr
from fillrank.samplers.noise_steps import NoiseModel
from fillrank.table.latent import FAR
from reference import bpmf_geweke, geweke
from reference.geweke import computed_once
from reference.prior_draws import Model, entry_noise, prior_draws, signal_at, state_of_draw
from reference.small_tables import EFFECTS, MASK, NO_LIMITS, SMALL_MASK, Table, context_of

_RANK = 2
_REFERENCE_SIZE = 25_000
_THRESHOLD = 0.3
_LEVELS = np.array([[-FAR, _THRESHOLD], [_THRESHOLD, FAR]])
_N = int(MASK.sum())
WEIGHTED = Table(MASK, weights=np.random.default_rng(9).uniform(0.3, 3.0, _N))
SMALL = Table(SMALL_MASK)


class Case(NamedTuple):
    """How a sampler takes part in the test of a law."""

    table: Table
    noise: NoiseModel
    draws: object
    signals: object
    state: object
    sweep: object
    signal: object
    stack: object
    statistics: object


def gasr_case(law, table, noise):
    """GASR with effects; a and b are fixed, and sigma is sampled if the law has it."""
    is_given = LAWS[law].of_levels
    # Large factors, so that the data say much about them.
    model = Model(5.0, 30.0, 1.0 if is_given else None, has_effects=True, noise=noise)
    options = EFFECTS._replace(noise=noise)

    def draws(rng, size):
        return prior_draws(rng, size, table, _RANK, model)

    def sweep(state, data, seed, relaxed):
        relaxed_from = 0 if relaxed else sys.maxsize
        context = context_of(options, seed, relaxed_from=relaxed_from, noise_from=0)
        return gasr.sweep(state, data, context)[0]

    def signal(state):
        alpha, beta = state.left[:, _RANK], state.right[:, _RANK + 1]
        left, right = state.left[:, :_RANK], state.right[:, :_RANK]
        return signal_at(table, left, right, state.d, alpha, beta)

    def signals(drawn):
        return signal_at(table, drawn.U, drawn.V, drawn.d, drawn.alpha, drawn.beta)

    def stack(links):
        return geweke._stack(links, model.features.both)

    def statistics(found):
        return geweke.statistics_of(found, table, model)

    return Case(table, noise, draws, signals, state_of_draw, sweep, signal, stack, statistics)


def bpmf_case(law, table, noise):
    """BPMF by entries."""
    model = bpmf_geweke.Model(noise, samples_noise=not LAWS[law].of_levels)

    def draws(rng, size):
        drawn = bpmf_geweke.prior_draws(rng, size, table, model)
        if model.samples_noise:
            return drawn
        ones = np.ones(size)
        noise_of = entry_noise(rng, table, 1.0, drawn.rows, drawn.columns, np.inf, law)
        x = bpmf_geweke._signal(drawn.U, drawn.V, table) + noise_of
        return drawn._replace(noise_variance=ones, x=x)

    def sweep(state, data, seed, _):
        context = bpmf.Context(bpmf_geweke.PRIOR, False, chain_key(seed, 0), Workers(1), noise)
        return bpmf.sweep(state, data, context)[0]

    def signal(state):
        return np.sum(state.left[table.i] * state.right[table.j], axis=1)

    def signals(drawn):
        return bpmf_geweke._signal(drawn.U, drawn.V, table)

    def statistics(found):
        return bpmf_geweke.statistics_of(found, table, model)

    state, stack = bpmf_geweke._state_of, bpmf_geweke._stack
    return Case(table, noise, draws, signals, state, sweep, signal, stack, statistics)


def _case(sampler, law):
    make = {"GASR": gasr_case, "BPMF": bpmf_case}[sampler]
    if LAWS[law].of_levels:
        return make(law, SMALL, NoiseModel(law=law))
    return make(law, WEIGHTED, NoiseModel(rows=True, columns=True, law=law))


def _sum_of_potentials(z):
    """The potentials of both levels together, relative to the largest sum, which is at the margin."""
    t = z - _THRESHOLD
    potentials = [np.exp(-PENALTY * np.maximum(0.0, MARGIN - x * t)) for x in (-1.0, 1.0)]
    return sum(potentials) / (1.0 + np.exp(-2.0 * PENALTY * MARGIN))


def _chosen(draws, places):
    """Some of the draws; those of features are tuples of arrays."""
    if isinstance(draws, np.ndarray):
        return draws[places]
    return type(draws)(*(_chosen(each, places) for each in draws))


def _joint_draws(case, rng, size):
    """Independent draws of the joint distribution."""
    if case.noise.law != "hinge":
        return case.draws(rng, size)
    n = 2 * size
    while True:
        draws = case.draws(rng, n)
        accepted = rng.random(n) < _sum_of_potentials(case.signals(draws)).prod(axis=1)
        if np.count_nonzero(accepted) >= size:
            return _chosen(draws, np.flatnonzero(accepted)[:size])
        n *= 2


def _level_statistics(y, signal):
    """Of levels, one value per draw."""
    yes, z = 1.0 * (y > _THRESHOLD), np.tanh(signal)
    return {
        "yes": yes.mean(axis=1),
        "yes with its signal": (yes * z).mean(axis=1),
        "yes of the first": yes[:, 0],
        "signal of the entries": z.mean(axis=1),
        "signal of the entries, squared": (z**2).mean(axis=1),
    }


def _statistics(case, found):
    values = case.statistics(found)
    if LAWS[case.noise.law].of_levels:
        values |= _level_statistics(found.x, case.signals(found))
    return values


@computed_once
def _expected(sampler, law):
    case = _case(sampler, law)
    values = _statistics(case, _joint_draws(case, np.random.default_rng(7), _REFERENCE_SIZE))
    return {name: (y.mean(), y.var() / y.size) for name, y in values.items()}


def _completed(rng, is_yes, signal, law):
    """Latent numbers on the side of the threshold that the levels say."""
    sign = np.where(is_yes, 1.0, -1.0)
    # By symmetry, sign (y - z) is noise above sign (threshold - z).
    above = LAWS[law].cumulative(-sign * (_THRESHOLD - signal))
    p = np.maximum(rng.random(signal.shape) * above, 1e-300)
    return signal - sign * LAWS[law].quantile(p)


def law_scores(sampler, law, *, n_chains, length, seed=0):
    """{statistic: z-score} of the chains of a sampler against independent draws."""
    case, rng = _case(sampler, law), np.random.default_rng([seed, 3])
    of_levels = LAWS[law].of_levels
    starts = _joint_draws(case, rng, n_chains)
    links, number = [], 0
    for c in range(n_chains):
        state = case.state(starts, c, number)
        state = state._replace(limits=_LEVELS if of_levels else NO_LIMITS)
        for _ in range(length):
            x = case.signal(state) + entry_noise(rng, case.table, *state.noise.cells, law)
            is_yes = x > _THRESHOLD
            data = case.table.data(x)
            if of_levels:
                data = case.table.data(np.zeros(x.size), is_yes.astype(np.int32))
            state = case.sweep(state, data, seed, c >= n_chains // 2)
            if of_levels:
                x = _completed(rng, is_yes, case.signal(state), law)
            links.append((state, x))
        number = state.sweep
    values = _statistics(case, case.stack(links))
    scores = {}
    for name, (truth, error_square) in _expected(sampler, law).items():
        means = values[name].reshape(n_chains, length).mean(axis=1)
        error_square = error_square + means.var(ddof=1) / n_chains
        scores[name] = (means.mean() - truth) / np.sqrt(error_square)
    return scores
