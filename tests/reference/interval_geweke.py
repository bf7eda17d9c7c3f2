"""Geweke's joint test of GASR and BPMF on tables of which some values are known by intervals.

The columns have numbers, ordered levels (two columns of one scale), yes or no, and numbers that are
known by an interval below a limit and in a range. Parameters give latent numbers y, and these give the
data: a number, or the interval in which it is. A sweep has the data only: y is drawn again after it,
given the data and the new parameters. So parameters and y have the joint law in every link, and the
statistics of ``geweke`` and ``bpmf_geweke`` apply, with those of levels and thresholds.
"""

import sys
from typing import NamedTuple

import numpy as np
import pytest
from scipy import special

import reference.prior_draws
from fillrank.draws.streams import chain_key
from fillrank.runtime.threads import Workers
from fillrank.samplers import bpmf, gasr, threshold_steps
from fillrank.samplers.noise_steps import NoiseModel
from fillrank.samplers.threshold_steps import Intervals
from fillrank.table.latent import FAR
from reference import bpmf_geweke, geweke
from reference.geweke import computed_once
from reference.prior_draws import Model, entry_noise, prior_draws, signal_at, state_of_draw
from reference.small_tables import EFFECTS, Table, context_of

_RANK = 2
_REFERENCE_SIZE = 60_000
_MASK = np.array(
    [[1, 1, 1, 1, 1], [1, 1, 0, 1, 1], [0, 0, 0, 0, 0], [0, 1, 1, 1, 1], [1, 0, 1, 1, 0],
     [1, 1, 1, 0, 1], [0, 1, 0, 1, 1], [1, 1, 1, 1, 0]],
    dtype=bool,
)  # fmt: skip
TABLE = Table(_MASK, weights=np.random.default_rng(3).uniform(0.4, 2.5, int(_MASK.sum())))
_ORDERED, _YES_NO, _CENSORED = (1, 2), 3, 4
_PLACES = {
    "ordered levels": np.isin(TABLE.j, _ORDERED),
    "yes or no": TABLE.j == _YES_NO,
    "censored values": TABLE.j == _CENSORED,
}
# The ends of the thresholds of five levels, that of two, the limit below which a value is not known, and
# the range in which it is not.
_ENDS, _MIDDLE, _LIMIT, _RANGE = (-1.5, 1.5), 0.2, -0.3, (0.5, 2.0)
_FIRST_ORDERED, _FIRST_YES_NO, _FIRST_CENSORED = 0, 5, 7
_SCALES = np.array([(_FIRST_ORDERED, 5)])
FIXED = np.array([_YES_NO])
COLUMNS = NoiseModel(columns=True, fixed=FIXED)
# With larger factors and a given variance the data say much about the signal. The precisions of rows and
# columns are given, too, so that they may differ as much as those of so few degrees of freedom.
_RATE, _VARIANCE, _GIVEN_DEGREES = 30.0, 0.05, 2.0
BOTH = NoiseModel(rows=True, columns=True, fixed=FIXED)


def limits_of(theta):
    """The ends (2, 9) of all intervals, for the two thresholds that are drawn."""
    ordered = [_ENDS[0], *theta, _ENDS[1]]
    low = [-FAR, *ordered, -FAR, _MIDDLE, -FAR, _RANGE[0]]
    high = [*ordered, FAR, _MIDDLE, FAR, _LIMIT, _RANGE[1]]
    return np.array([low, high])


def thresholds_of(limits):
    """The two that are drawn."""
    return limits[1, _FIRST_ORDERED + 1 : _FIRST_ORDERED + 3]


def _threshold_draws(rng, size):
    """Two ordered uniform numbers."""
    return np.sort(rng.uniform(*_ENDS, (size, 2)), axis=1)


def cells_of(y, theta):
    """The numbers of the intervals of latent numbers y (..., entries); -1 for those that are seen."""
    cells = np.full(y.shape, -1, dtype=np.int32)
    j = TABLE.j
    ordered = np.isin(j, _ORDERED)
    ends = [np.full(theta.shape[:-1], _ENDS[0]), theta[..., 0], theta[..., 1]]
    ends.append(np.full(theta.shape[:-1], _ENDS[1]))
    levels = sum((y > end[..., None]).astype(np.int32) for end in ends)
    cells[..., ordered] = _FIRST_ORDERED + levels[..., ordered]
    cells[..., j == _YES_NO] = _FIRST_YES_NO + (y > _MIDDLE)[..., j == _YES_NO]
    below, within = y <= _LIMIT, (y > _RANGE[0]) & (y <= _RANGE[1])
    known = np.where(below, _FIRST_CENSORED, np.where(within, _FIRST_CENSORED + 1, -1))
    cells[..., j == _CENSORED] = known[..., j == _CENSORED]
    return cells


def _in_intervals(rng, mean, sd, limits):
    """Normal variables in intervals, by logarithms of the distribution function."""
    low, high = (limits - mean) / sd
    flip = low + high > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    below, above, u = special.log_ndtr(a), special.log_ndtr(b), rng.random(mean.shape)
    x = special.ndtri_exp(above + np.log(u + (1.0 - u) * np.exp(below - above)))
    return mean + sd * np.where(flip, -1.0, 1.0) * np.clip(x, a, b)


def _sd(variance, rows, columns):
    """The standard deviations of the noise of entries (..., entries)."""
    return np.sqrt(variance / (rows[..., TABLE.i] * columns[..., TABLE.j] * TABLE.weights))


def _completed(rng, x, cells, signal, noise, limits):
    """The data with latent numbers where an interval is known."""
    known, sd = cells >= 0, _sd(noise.variance, noise.rows, noise.columns)
    y = x.copy()
    y[known] = _in_intervals(rng, signal[known], sd[known], limits[:, cells[known]])
    return y


def _noise_statistics(draws, signal):
    """Of the noise of entries of each kind, one value per draw."""
    sd = _sd(draws.noise_variance[:, None], draws.rows, draws.columns)
    e, z, out = (draws.x - signal) / sd, np.tanh(signal), {}
    scale = {"row": np.log(draws.rows[:, TABLE.i]), "column": np.log(draws.columns[:, TABLE.j])}
    for kind, mine in _PLACES.items():
        out |= {
            f"noise of {kind}": e[:, mine].mean(axis=1),
            f"noise of {kind}, squared": np.mean(e[:, mine] ** 2, axis=1),
            f"noise of {kind} with the signal": np.mean((e * z)[:, mine], axis=1),
            f"signal of {kind}, squared": np.mean(z[:, mine] ** 2, axis=1),
        }
        for name, logarithm in scale.items():
            product = (e**2 - 1.0) * logarithm
            out[f"noise of {kind} with the {name}"] = product[:, mine].mean(axis=1)
    return out


def _statistics(theta, cells, draws, signal):
    """Of levels, thresholds and noise, one value per draw."""
    y, noise_variance = draws.x, draws.noise_variance
    place = (theta - _ENDS[0]) / (_ENDS[1] - _ENDS[0])
    ordered = cells[:, np.isin(TABLE.j, _ORDERED)]
    shares = {c: np.mean(ordered == _FIRST_ORDERED + c, axis=1) for c in range(5)}
    large = noise_variance / (1.0 + noise_variance)
    latent = np.tanh(y[:, np.isin(TABLE.j, _ORDERED)]).mean(axis=1)
    of_censored = cells[:, TABLE.j == _CENSORED]
    out = {
        "first threshold": place[:, 0],
        "second threshold": place[:, 1],
        "thresholds, squared": (place**2).sum(axis=1),
        "thresholds with each other": place[:, 0] * place[:, 1],
        "thresholds with the noise": (place[:, 1] - place[:, 0]) * large,
        "thresholds with latent numbers": (place.sum(axis=1) - 1.0) * latent,
        "middle level with its width": (place[:, 1] - place[:, 0]) * shares[2],
        "second level with its width": place[:, 0] * shares[1],
        "yes": np.mean(cells[:, TABLE.j == _YES_NO] == _FIRST_YES_NO + 1, axis=1),
        "yes with its latent number": np.tanh(np.abs(y[:, TABLE.j == _YES_NO])).mean(axis=1),
        "below the limit": np.mean(of_censored == _FIRST_CENSORED, axis=1),
        "in the range": np.mean(of_censored == _FIRST_CENSORED + 1, axis=1),
    }
    out |= {f"level {c}": share for c, share in shares.items()}
    return out | _noise_statistics(draws, signal)


class _Sampler(NamedTuple):
    """How a sampler takes part: draws of its prior, states, its sweep, and its statistics."""

    name: str
    model: object
    draws: object
    signals: object
    state: object
    sweep: object
    signal: object
    stack: object
    statistics: object


def gasr_sampler(noise, variance=None):
    """GASR with effects; a and b are fixed, and with a variance all of the noise is."""
    model = Model(5.0, _RATE, variance, has_effects=True, noise=noise)
    options, noise_from = EFFECTS._replace(noise=noise), 0 if variance is None else sys.maxsize

    def draws(rng, size):
        with pytest.MonkeyPatch.context() as patch:
            if variance is not None:
                patch.setattr(reference.prior_draws, "DEGREES", np.array([_GIVEN_DEGREES]))
            return prior_draws(rng, size, TABLE, _RANK, model)

    def sweep(state, data, intervals, seed, relaxed):
        relaxed_from = 0 if relaxed else sys.maxsize
        context = context_of(
            options, seed, relaxed_from=relaxed_from, noise_from=noise_from, intervals=intervals
        )
        return gasr.sweep(state, data, context)[0]

    def signal(state):
        r, alpha, beta = _RANK, state.left[:, _RANK], state.right[:, _RANK + 1]
        return signal_at(TABLE, state.left[:, :r], state.right[:, :r], state.d, alpha, beta)

    def signals(draws):
        return signal_at(TABLE, draws.U, draws.V, draws.d, draws.alpha, draws.beta)

    def stack(links):
        return geweke._stack(links, model.features.both)

    def statistics(found):
        return geweke.statistics_of(found, TABLE, model)

    return _Sampler("GASR", model, draws, signals, state_of_draw, sweep, signal, stack, statistics)


def bpmf_sampler(noise, joint):
    """BPMF with sampled noise."""
    model = bpmf_geweke.Model(noise)

    def draws(rng, size):
        return bpmf_geweke.prior_draws(rng, size, TABLE, model)

    def sweep(state, data, intervals, seed, relaxed):
        context = bpmf.Context(
            bpmf_geweke.PRIOR, joint, chain_key(seed, 0), Workers(1), noise, intervals=intervals
        )
        return bpmf.sweep(state, data, context)[0]

    def signal(state):
        return np.sum(state.left[TABLE.i] * state.right[TABLE.j], axis=1)

    def signals(draws):
        return bpmf_geweke._signal(draws.U, draws.V, TABLE)

    def statistics(found):
        return bpmf_geweke.statistics_of(found, TABLE, model)

    state, stack = bpmf_geweke._state_of, bpmf_geweke._stack
    return _Sampler("BPMF", model, draws, signals, state, sweep, signal, stack, statistics)


_SAMPLERS = {
    "GASR": lambda: gasr_sampler(COLUMNS),
    "GASR, noise by row": lambda: gasr_sampler(BOTH),
    "GASR, given noise": lambda: gasr_sampler(BOTH, _VARIANCE),
    "BPMF by entries": lambda: bpmf_sampler(COLUMNS, joint=False),
    "BPMF jointly": lambda: bpmf_sampler(BOTH, joint=True),
}
NAMES = tuple(_SAMPLERS)


@computed_once
def _expected(name):
    """{statistic: (mean, squared standard error)} from independent draws."""
    sampler, rng = _SAMPLERS[name](), np.random.default_rng(7)
    draws = sampler.draws(rng, _REFERENCE_SIZE)
    theta = _threshold_draws(rng, _REFERENCE_SIZE)
    cells = cells_of(draws.x, theta)
    values = sampler.statistics(draws)
    values |= _statistics(theta, cells, draws, sampler.signals(draws))
    expected = {each: (y.mean(), y.var() / y.size) for each, y in values.items()}
    # Degrees of freedom that are given have no variance.
    return {each: found for each, found in expected.items() if found[1] > 1e-20}


def interval_scores(name, *, n_chains, length, seed=0):
    """{statistic: z-score} of the chains of a sampler against independent draws.

    In the second half of the chains GASR carries its draws beyond their means.
    """
    sampler, rng = _SAMPLERS[name](), np.random.default_rng([seed, 2])
    starts, thetas = sampler.draws(rng, n_chains), _threshold_draws(rng, n_chains)
    links, more, number = [], [], 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threshold_steps, "EVERY", 1)
        for c in range(n_chains):
            state = sampler.state(starts, c, number)._replace(limits=limits_of(thetas[c]))
            for _ in range(length):
                x = sampler.signal(state) + entry_noise(rng, TABLE, *state.noise.cells)
                cells = cells_of(x, thresholds_of(state.limits))
                data = TABLE.data(np.where(cells < 0, x, np.nan), cells)
                intervals = Intervals(state.limits, _SCALES)
                state = sampler.sweep(state, data, intervals, seed, c >= n_chains // 2)
                signal, noise = sampler.signal(state), state.noise.cells
                y = _completed(rng, x, cells, signal, noise, state.limits)
                links.append((state, y))
                more.append((thresholds_of(state.limits), cells))
            number = state.sweep
    found = sampler.stack(links)
    values = sampler.statistics(found)
    theta, cells = (np.array(each) for each in zip(*more, strict=True))
    values |= _statistics(theta, cells, found, sampler.signals(found))
    scores, expected = {}, _expected(name)
    for each, (truth, error_square) in expected.items():
        means = values[each].reshape(n_chains, length).mean(axis=1)
        error_square = error_square + means.var(ddof=1) / n_chains
        scores[each] = (means.mean() - truth) / np.sqrt(error_square)
    return scores
