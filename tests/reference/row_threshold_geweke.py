"""Geweke's joint test of GASR and BPMF on a table of ratings whose thresholds differ by row.

As in ``interval_geweke``: parameters give latent numbers, and these give levels; a sweep has the levels
only. The thresholds have a joint prior with the order of those of every row as a condition, so that
independent draws come from rejection.
"""

import numpy as np
import pytest

from fillrank.samplers import threshold_steps
from fillrank.samplers.noise_steps import NoiseModel
from fillrank.samplers.threshold_steps import Intervals, RowThresholds
from fillrank.table.latent import FAR
from reference import interval_geweke
from reference.geweke import computed_once
from reference.interval_geweke import _in_intervals
from reference.prior_draws import entry_noise
from reference.small_tables import Table

_MASK = np.array(
    [[1, 1, 1, 1, 0], [1, 0, 1, 1, 1], [0, 1, 1, 0, 1], [1, 1, 0, 1, 1], [0, 0, 0, 0, 0]],
    dtype=bool,
)
TABLE = Table(_MASK, weights=np.random.default_rng(5).uniform(0.5, 2.0, int(_MASK.sum())))
_M = len(_MASK)
# The first and the last of the means of three thresholds are fixed.
_ENDS = -1.0, 1.0
_REFERENCE_SIZE, _BATCH = 20_000, 500_000
_PRIOR_SCALE = 2.0
NOISE = NoiseModel(columns=True)


def threshold_draws(rng, size):
    """Independent draws of (means (size, 3), variances (size, 3), ends (size, m, 5)), by rejection."""
    parts, found = [], 0
    while found < size:
        means = np.full((_BATCH, 3), _ENDS[0])
        means[:, 1], means[:, 2] = rng.uniform(*_ENDS, _BATCH), _ENDS[1]
        sds = _PRIOR_SCALE * np.abs(rng.standard_cauchy((_BATCH, 3)))
        rows = []
        for _ in range(_M):
            row = means + sds * rng.standard_normal(means.shape)
            ascending = (np.diff(row, axis=1) > 0).all(axis=1)
            means, sds, rows = means[ascending], sds[ascending], [*rows, row]
            rows = [each[ascending] for each in rows]
        parts.append((means, sds**2, np.stack(rows, axis=1)))
        found += len(means)
    means, variances, inner = (np.concatenate(each)[:size] for each in zip(*parts, strict=True))
    outer = np.full((size, _M, 1), FAR)
    return means, variances, np.concatenate([-outer, inner, outer], axis=2)


def levels_of(y, ends):
    """The levels 0 to 3 of latent numbers y (..., entries)."""
    return (y[..., None] > ends[..., TABLE.i, 1:-1]).sum(axis=-1).astype(np.int32)


def _limits_of(means):
    return np.array([np.append(-FAR, means), np.append(means, FAR)])


def _statistics(thresholds, levels, y):
    """Of thresholds and levels, one value per draw."""
    means, variances, ends = thresholds
    inner, sds = ends[:, :, 1:-1], np.sqrt(variances)
    bounded = np.tanh(inner)
    width = np.tanh(inner[:, TABLE.i, 1] - inner[:, TABLE.i, 0])
    out = {"mean": means[:, 1], "mean, squared": means[:, 1] ** 2}
    for c in range(3):
        out |= {
            f"sd {c}": sds[:, c] / (1.0 + sds[:, c]),
            f"threshold {c}": bounded[:, :, c].mean(axis=1),
            f"threshold {c}, squared": np.mean(bounded[:, :, c] ** 2, axis=1),
            f"threshold {c} of the row without entries": bounded[:, -1, c],
            f"threshold {c} with latent numbers": np.mean(
                bounded[:, TABLE.i, c] * np.tanh(y), axis=1
            ),
        }
    for c in range(4):
        out[f"level {c}"] = np.mean(levels == c, axis=1)
        out[f"level {c} with a width"] = np.mean((levels == c) * width, axis=1)
    return out


def _sampler(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interval_geweke, "TABLE", TABLE)
        made = {
            "GASR": lambda: interval_geweke.gasr_sampler(NOISE),
            "BPMF": lambda: interval_geweke.bpmf_sampler(NOISE, joint=False),
            "BPMF jointly": lambda: interval_geweke.bpmf_sampler(NOISE, joint=True),
        }
        return made[name]()


NAMES = ("GASR", "BPMF", "BPMF jointly")


@computed_once
def _expected(name):
    """{statistic: (mean, squared standard error)} from independent draws."""
    sampler, rng = _sampler(name), np.random.default_rng(8)
    draws, thresholds = sampler.draws(rng, _REFERENCE_SIZE), threshold_draws(rng, _REFERENCE_SIZE)
    values = sampler.statistics(draws)
    values |= _statistics(thresholds, levels_of(draws.x, thresholds[2]), draws.x)
    return {each: (y.mean(), y.var() / y.size) for each, y in values.items()}


def row_threshold_scores(name, *, n_chains, length, seed=0):
    """{statistic: z-score} of the chains of a sampler against independent draws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interval_geweke, "TABLE", TABLE)
        patch.setattr(threshold_steps, "EVERY", 1)
        return _scores(name, n_chains, length, seed)


def _scores(name, n_chains, length, seed):
    sampler, rng = _sampler(name), np.random.default_rng([seed, 3])
    starts, thresholds = sampler.draws(rng, n_chains), threshold_draws(rng, n_chains)
    links, more, number = [], [], 0
    for c in range(n_chains):
        means, variances, ends = (each[c] for each in thresholds)
        state = sampler.state(starts, c, number)._replace(
            limits=_limits_of(means), row_thresholds=RowThresholds(ends, variances)
        )
        for _ in range(length):
            x = sampler.signal(state) + entry_noise(rng, TABLE, *state.noise.cells)
            levels = levels_of(x, state.row_thresholds.ends)
            data = TABLE.data(np.full(x.shape, np.nan), levels)
            intervals = Intervals(state.limits, by_row=True)
            state = sampler.sweep(state, data, intervals, seed, c >= n_chains // 2)
            y = _latent_numbers(rng, sampler, state, levels)
            links.append((state, y))
            new = state.row_thresholds
            more.append((state.limits[1, :-1], new.variances, new.ends, levels, y))
        number = state.sweep
    values = sampler.statistics(sampler.stack(links))
    means, variances, ends, levels, y = (np.array(each) for each in zip(*more, strict=True))
    values |= _statistics((means, variances, ends), levels, y)
    scores = {}
    for each, (truth, error_square) in _expected(name).items():
        of_chains = values[each].reshape(n_chains, length).mean(axis=1)
        error_square = error_square + of_chains.var(ddof=1) / n_chains
        scores[each] = (of_chains.mean() - truth) / np.sqrt(error_square)
    return scores


def _latent_numbers(rng, sampler, state, levels):
    """y given the levels and all parameters."""
    ends, noise = state.row_thresholds.ends, state.noise.cells
    sd = interval_geweke._sd(noise.variance, noise.rows, noise.columns)
    limits = np.array([ends[TABLE.i, levels], ends[TABLE.i, levels + 1]])
    return _in_intervals(rng, sampler.signal(state), sd, limits)
