"""Simulation-based calibration of GASR: ranks of the truth among posterior draws.

    python benchmarks/calibration.py [--tables 200] [--output docs/images/calibration.png]
    python benchmarks/calibration.py --features [--tables 200] [--output FILE]
    python benchmarks/calibration.py --kinds [--tables 200] [--output FILE]

Parameters are drawn from the prior, a table is drawn given them, and the sampler draws from the
posterior given the table. If all is right, the rank of a true value among independent posterior draws is
uniform (Talts, Betancourt, Simpson, Vehtari and Gelman 2018). The noise differs by row and by column,
and the degrees of freedom, the noise level, the effects and the factors are unknown; a and b are fixed,
because their priors have tails so heavy that some tables would exceed double precision.

A new row is drawn from the prior too, and folded in: there the prior of its coefficients is the
distribution of the fitted rows, so that its ranks are uniform only approximately.

With ``--features`` rows and columns have features, in two blocks and in one, whose weights and strengths
are unknown as well. No row is folded in then.

With ``--kinds`` the columns have numbers, positive numbers, ordered levels, yes or no, counts and
categories: two columns of each kind. How values follow from latent numbers is given, but for two of the
thresholds between five ordered levels.
"""

import argparse
import math
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import chi2

from fillrank.draws.streams import chain_key
from fillrank.noise.precisions import DEGREES, PRIOR_SCALE
from fillrank.posterior.fold_in import fold_in_rows
from fillrank.posterior.kind_predictions import levels_of
from fillrank.posterior.mean import mean_draw
from fillrank.runtime.threads import Workers
from fillrank.samplers import gasr
from fillrank.samplers.feature_steps import (
    STRENGTHS,
    WITHOUT_FEATURES,
    BothFeatures,
    Features,
    join_blocks,
)
from fillrank.samplers.gasr import Context, Options
from fillrank.samplers.model import Data, Effect, Start
from fillrank.samplers.noise_steps import FIXED_VARIANCE, NoiseModel
from fillrank.samplers.threshold_steps import NO_INTERVALS, Intervals
from fillrank.table.entries import Entries, compress, some_rows, transpose
from fillrank.table.latent import FAR, Coding, Scale, encode

N_ROWS, N_COLUMNS, RANK, MISSING = 20, 12, 2, 0.3
A, B = 3.0, 8.0
BURN_IN, N_DRAWS, THINNING = 300, 63, 25
N_BINS = 8
NOISE = NoiseModel(rows=True, columns=True)
OPTIONS = Options(row_effects=True, column_effects=True, centres=True, noise=NOISE)


# The features of each block of the rows, and of the columns.
ROW_BLOCKS, COLUMN_BLOCKS = (3, 2), (2,)
IMAGE = Path("docs/images/calibration.png")
FEATURES_IMAGE = Path("docs/images/calibration_features.png")
KINDS_IMAGE = Path("docs/images/calibration_kinds.png")
# The draws with kinds are as many sweeps apart: thresholds are drawn in one sweep of ten.
KINDS_BURN_IN, KINDS_THINNING = 1000, 50
KINDS = ("number", "positive", "ordered", "yes_no", "count", "category")


class Truth(NamedTuple):
    """Parameters from the prior, with one more row that is not fitted.

    ``strengths`` are those of the blocks of the rows' features, then of the columns'; ``explained`` is
    the part of the signal of the first cell that the features of its row explain through the factors.
    """

    signal: np.ndarray
    variance: float
    row_precisions: np.ndarray
    column_precisions: np.ndarray
    row_degrees: float
    column_degrees: float
    strengths: tuple[float, ...] = ()
    explained: float = 0.0

    @property
    def variances(self):
        """The noise variance of every cell."""
        return self.variance / np.outer(self.row_precisions, self.column_precisions)


def _block(rng, n, p):
    """Features of n rows: centred and orthogonal, with rows of mean squared norm 1."""
    raw = rng.standard_normal((n, p))
    P, s, _ = np.linalg.svd(raw - raw.mean(axis=0), full_matrices=False)
    return P * s * math.sqrt(n) / np.linalg.norm(s)


def draw_features(rng):
    """Features of the rows and of the columns."""
    return BothFeatures(
        *(
            join_blocks({str(g): _block(rng, n, p) for g, p in enumerate(sizes)}, np.dtype(float))
            for n, sizes in ((N_ROWS, ROW_BLOCKS), (N_COLUMNS, COLUMN_BLOCKS))
        )
    )


def _strengths(rng, features):
    """lambda of each block: 1 / sqrt(lambda) is half-Cauchy(0, 1), within the bounds of the sampler."""
    low, high = sorted(2.0 / np.pi * np.arctan(bound**-0.5) for bound in STRENGTHS)
    return np.tan(0.5 * np.pi * rng.uniform(low, high, len(features.ends))) ** -2.0


class _Side(NamedTuple):
    """Features of a side with their strengths, by block and by feature."""

    features: Features
    strengths: np.ndarray

    @property
    def by_feature(self):
        return np.repeat(self.strengths, np.diff([0, *self.features.ends]))

    def explained(self, weights):
        """F b with a row of zeros for the one that is not fitted."""
        return np.vstack([self.features.values @ weights, np.zeros((1, weights.shape[1]))])


def _factors(rng, n_fitted, side):
    """(factors, what features explain of them).

    Factors with their centre and weights are from the unit ball; one more row is from the distribution
    of the others.
    """
    weight, p = gasr._CENTRE_WEIGHT, side.features.n_features
    g = rng.standard_normal((n_fitted + 1 + p, RANK))
    ball = g / np.linalg.norm(g, axis=0) * rng.random(RANK) ** (1.0 / len(g))
    centre = ball[n_fitted] / math.sqrt(weight)
    fitted = ball[:n_fitted] + centre
    scale = np.sqrt((ball[:n_fitted] ** 2).mean(axis=0))
    factors = np.vstack([fitted, centre + scale * rng.standard_normal(RANK)])
    if p == 0:
        return factors, np.zeros_like(factors)
    explained = side.explained(ball[n_fitted + 1 :] / np.sqrt(side.by_feature)[:, None])
    return factors + explained, explained


def _effects(rng, n, side):
    mean, sd = rng.normal(0.0, PRIOR_SCALE), PRIOR_SCALE * abs(rng.standard_cauchy())
    effects = rng.normal(mean, sd, n)
    p = side.features.n_features
    if p == 0:
        return effects
    weights = sd / np.sqrt(side.by_feature) * rng.standard_normal(p)
    return effects + side.explained(weights[:, None])[:n, 0]


def draw_truth(rng, features, n=N_COLUMNS, fixed=()):
    """Draw parameters from the prior; some of the n columns can have fixed noise."""
    m = N_ROWS + 1
    rows, columns = (_Side(each, _strengths(rng, each)) for each in features)
    d = rng.exponential(1.0 / rng.gamma(A, 1.0 / B, RANK))
    left, explained = _factors(rng, N_ROWS, rows)
    right = _factors(rng, n, columns)[0][:-1]
    signal = (left * d) @ right.T + _effects(rng, m, rows)[:, None] + _effects(rng, n, columns)
    nu_r, nu_c = rng.choice(DEGREES, 2)
    sigma = PRIOR_SCALE * abs(rng.standard_cauchy())
    a_i, b_j = rng.gamma(nu_r / 2, 2 / nu_r, m), rng.gamma(nu_c / 2, 2 / nu_c, n)
    b_j[list(fixed)] = sigma**2 / FIXED_VARIANCE
    strengths = (*rows.strengths.tolist(), *columns.strengths.tolist())
    # The share of the signal of a cell that features of its row explain.
    of_features = float((explained[0] * d) @ right[0])
    return Truth(signal, sigma**2, a_i, b_j, nu_r, nu_c, strengths, of_features)


def _entries(X, observed):
    i, j = np.nonzero(observed)
    return compress(len(X), i, j, X[i, j])


class Length(NamedTuple):
    """How long a chain is, and how many sweeps its draws are apart."""

    burn_in: int = BURN_IN
    thinning: int = THINNING


USUAL_LENGTH = Length()


def sample(
    rows,
    n,
    rng,
    seed,
    features=WITHOUT_FEATURES,
    noise=NOISE,
    intervals=NO_INTERVALS,
    length=USUAL_LENGTH,
):
    """States of the chain after the burn-in, thinned, for the entries of a table of n columns."""
    m, options = rows.pointers.size - 1, OPTIONS._replace(noise=noise)
    data = Data(rows, transpose(rows, n))
    prior = Effect(0.0, 1.0)
    start = Start(
        np.zeros(m), np.zeros(n), prior, prior, np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0)),
        1.0, np.ones(n), RANK,
    )  # fmt: skip
    state = gasr.init(start, np.dtype(np.float64), rng, noise, features, intervals)._replace(
        a=A, b=B, d=np.full(RANK, 3.0)
    )
    context = Context(
        options, chain_key(seed, 0), Workers(1), relaxed_from=0, noise_from=0, features=features,
        intervals=intervals,
    )  # fmt: skip
    burn_in, thinning = length
    states = []
    for t in range(burn_in + N_DRAWS * thinning):
        state, _ = gasr.sweep(state, data, context)
        if t >= burn_in and (t - burn_in) % thinning == thinning - 1:
            states.append(state)
    return states


def quantities(truth, states, X, observed, rng, features):
    """(true value, posterior draws) by name."""
    m = N_ROWS
    draws = [gasr.draw(state) for state in states]
    i, j = (int(k[0]) for k in np.nonzero(~observed[:m]))
    p, q = (int(k[0]) for k in np.nonzero(observed[:m]))
    cell = lambda r, c: np.array([draw.at(np.array([r]), np.array([c]))[0] for draw in draws])  # noqa: E731
    variance = np.array([draw.noise.at(np.array([i]), np.array([j]))[0] for draw in draws])
    found = {
        "noise level": (truth.variances[i, j], variance),
        "degrees of freedom, rows": (truth.row_degrees, [s.noise.row_degrees for s in states]),
        "degrees of freedom, columns": (
            truth.column_degrees, [s.noise.column_degrees for s in states],
        ),
        "missing cell, signal": (truth.signal[i, j], cell(i, j)),
        "observed cell, signal": (truth.signal[p, q], cell(p, q)),
        "missing cell, observation": (
            X[i, j], cell(i, j) + np.sqrt(variance) * rng.standard_normal(len(draws)),
        ),
    }  # fmt: skip
    if features.rows.ends:
        return found | _feature_quantities(truth, states, features)
    new, k = _fold_in(draws, X[m:], observed[m:])
    return found | {"cell of a new row": (truth.signal[m, k], new)}


def _feature_quantities(truth, states, features):
    """The strengths, and what the features of the first row explain of its first cell."""
    drawn = np.array([[*s.row_weights.strengths, *s.column_weights.strengths] for s in states])
    names = [f"strength, rows, block {g + 1}" for g in range(len(ROW_BLOCKS))]
    names += [f"strength, columns, block {g + 1}" for g in range(len(COLUMN_BLOCKS))]
    F, r = features.rows.values[0], RANK
    explained = [F @ s.row_weights.B[:, :r] * s.d @ s.right[0, :r] for s in states]
    return {name: (truth.strengths[g], drawn[:, g]) for g, name in enumerate(names)} | {
        "explained by features": (truth.explained, explained)
    }


def _fold_in(draws, x, observed):
    """Draws of a missing cell of a new row, and its column."""
    k = int(np.nonzero(~observed[0])[0][0])
    columns = np.nonzero(observed[0])[0]
    entries = Entries(np.array([0, columns.size]), columns.astype(np.int32), x[0, columns])
    folded, _ = fold_in_rows(draws, mean_draw(draws), entries, Workers(1))
    return np.array([draw.at(np.array([0]), np.array([k]))[0] for draw in folded]), k


def rank_of(value, draws, rng):
    """How many draws are below the true value; equal ones count at random."""
    draws = np.asarray(draws)
    ties = int((draws == value).sum())
    return int((draws < value).sum()) + int(rng.integers(ties + 1))


def ranks_of_table(seed, has_features):
    """The ranks of all quantities for one table."""
    rng = np.random.default_rng([seed, 18])
    features = draw_features(rng) if has_features else WITHOUT_FEATURES
    truth = draw_truth(rng, features)
    X = truth.signal + np.sqrt(truth.variances) * rng.standard_normal(truth.signal.shape)
    observed = rng.random(X.shape) >= MISSING
    observed[0, 0], observed[0, 1], observed[-1, 0], observed[-1, 1] = False, True, False, True
    states = sample(_entries(X[:N_ROWS], observed[:N_ROWS]), N_COLUMNS, rng, seed, features)
    found = quantities(truth, states, X, observed, rng, features)
    return {name: rank_of(value, draws, rng) for name, (value, draws) in found.items()}


# Columns of different kinds


def _coding():
    """How values follow from latent numbers, with two columns of each kind, and the first thresholds."""
    scales, low, high = [], [], []
    for kind in 2 * KINDS:
        ends = {"ordered": [-2.0, -0.7, 0.7, 2.0], "yes_no": [0.5], "category": [0.5, 0.0]}.get(
            kind, []
        )
        n_levels = len(ends) + 1 if ends else 0
        location, scale = {"positive": (0.5, 0.2), "count": (2.0, 0.2)}.get(kind, (0.0, 1.0))
        bounds = (0.0 if kind in ("positive", "count") else -np.inf, np.inf)
        levels = np.arange(float(n_levels))
        scales.append(Scale(kind, levels, location, scale, len(low), bounds))
        if kind == "category":
            for end in ends:
                low, high = [*low, -FAR, end], [*high, end, FAR]
        elif ends:
            low, high = [*low, -FAR, *ends], [*high, *ends, FAR]
    n = len(scales)
    first_latent = np.append(0, np.cumsum([each.n_latent for each in scales]))
    return Coding(tuple(scales), np.arange(n), first_latent, np.array([low, high]), np.arange(n))


def _draw_limits(rng, coding):
    """The limits with thresholds of the prior: those between the first and the last are uniform."""
    limits = coding.limits.copy()
    for first, n_levels in coding.drawn_scales().tolist():
        inner = np.arange(first + 1, first + n_levels - 2)
        ends = limits[1, first], limits[1, first + n_levels - 2]
        limits[1, inner] = limits[0, inner + 1] = np.sort(rng.uniform(*ends, inner.size))
    return limits


def _values(coding, Y, limits):
    """The values of latent numbers Y (rows, latent columns)."""
    parts = []
    for j, scale in enumerate(coding.scales):
        own = Y[:, coding.first_latent[j] : coding.first_latent[j + 1]].T
        parts.append(levels_of(scale, own, limits) if scale.has_levels else scale.restored(own[0]))
    return np.column_stack(parts)


def _kind_quantities(truth, limits, X, states, coding, rng):
    """(true value, posterior draws) by name: of the first row, whose first columns are missing."""
    draws, first = [gasr.draw(state) for state in states], np.zeros(1, dtype=int)
    found = {"degrees of freedom, columns": (
        truth.column_degrees, [s.noise.column_degrees for s in states]
    )}  # fmt: skip
    for j, kind in enumerate(KINDS):
        q, scale = int(coding.first_latent[j]), coding.scales[j]
        latent = np.arange(q, q + scale.n_latent)
        signal = np.array([draw.at(0 * latent, latent) for draw in draws])
        sd = np.sqrt([draw.noise.at(0 * latent, latent) for draw in draws])
        drawn = signal + sd * rng.standard_normal(signal.shape)
        found[f"{kind}, signal"] = truth.signal[0, q], signal[:, 0]
        if kind in ("number", "ordered", "count"):
            found[f"{kind}, noise level"] = truth.variances[0, q], sd[:, 0] ** 2
        values = [
            levels_of(scale, y[:, None], draw.limits)[0]
            if scale.has_levels
            else scale.restored(y)[0]
            for y, draw in zip(drawn, draws, strict=True)
        ]
        found[f"{kind}, observation"] = X[first[0], j], values
    threshold = coding.scales[2].first + 1
    found["a threshold"] = limits[1, threshold], [draw.limits[1, threshold] for draw in draws]
    return found


def _kind_fold_in(states, coding, entries):
    """The posterior of a new row: its draws."""
    coded, limits = encode(coding, entries, None)
    n = coding.n_level_intervals
    draws = [gasr.draw(state) for state in states]
    draws = [draw._replace(limits=draw.limits[:, :n]) for draw in draws]
    return fold_in_rows(draws, mean_draw(draws), coded, Workers(1), limits=limits)[0]


def kind_ranks_of_table(seed):
    """The ranks of all quantities for one table of columns of different kinds."""
    rng, coding = np.random.default_rng([seed, 19]), _coding()
    noise = NOISE._replace(fixed=coding.fixed_columns())
    truth = draw_truth(rng, WITHOUT_FEATURES, coding.n_latent, noise.fixed.tolist())
    limits = _draw_limits(rng, coding)
    Y = truth.signal + np.sqrt(truth.variances) * rng.standard_normal(truth.signal.shape)
    X = _values(coding, Y, limits)
    observed = rng.random(X.shape) >= MISSING
    observed[[0, -1], : len(KINDS)], observed[[0, -1], len(KINDS) :] = False, True
    entries = _entries(X, observed)
    rows, ends = encode(coding, some_rows(entries, np.arange(N_ROWS)), None)
    intervals, length = (
        Intervals(ends, coding.drawn_scales()),
        Length(KINDS_BURN_IN, KINDS_THINNING),
    )
    states = sample(
        rows, coding.n_latent, rng, seed, noise=noise, intervals=intervals, length=length
    )
    found = _kind_quantities(truth, limits, X, states, coding, rng)
    new = _kind_fold_in(states, coding, some_rows(entries, np.array([N_ROWS])))
    for j in (0, 2):
        q = coding.first_latent[j : j + 1]
        signal = [draw.at(np.zeros(1, dtype=int), q)[0] for draw in new]
        found[f"{KINDS[j]}, cell of a new row"] = truth.signal[N_ROWS, q[0]], signal
    return {name: rank_of(value, draws, rng) for name, (value, draws) in found.items()}


def p_value(counts):
    """The p-value of a chi-squared test that all bins are equally probable."""
    expected = counts.sum() / counts.size
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1)


def save_histograms(counts, path):
    """Draw a histogram of ranks for each quantity, with the band that 95% of uniform ones are in."""
    n_lines = -(-len(counts) // 4)
    figure, axes = plt.subplots(n_lines, 4, figsize=(11, 2.5 * n_lines), layout="constrained")
    for axis, (name, found) in zip(axes.flat, counts.items(), strict=False):
        expected = found.sum() / found.size
        spread = 1.96 * math.sqrt(expected * (1 - 1 / found.size))
        axis.axhspan(expected - spread, expected + spread, color="0.9")
        axis.bar(np.arange(found.size), found, width=0.9)
        axis.set(title=name, xticks=[], xlabel="rank of the truth")
    for axis in axes.flat[len(counts) :]:
        axis.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    """Run, print a table and draw the histograms."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--features", action="store_true", help="rows and columns have features")
    parser.add_argument(
        "--kinds", action="store_true", help="columns have different kinds of values"
    )
    parser.add_argument("--output", type=Path, help="the file of the histograms")
    given = parser.parse_args()
    if given.kinds:
        ranks = [kind_ranks_of_table(seed) for seed in range(given.tables)]
    else:
        ranks = [ranks_of_table(seed, given.features) for seed in range(given.tables)]
    counts = {
        name: np.bincount([r[name] * N_BINS // (N_DRAWS + 1) for r in ranks], minlength=N_BINS)
        for name in ranks[0]
    }
    print("| quantity | ranks in 8 bins | p-value |\n|---|---|---|")
    for name, found in counts.items():
        print(f"| {name} | {' '.join(map(str, found))} | {p_value(found):.2f} |")
    image = KINDS_IMAGE if given.kinds else FEATURES_IMAGE if given.features else IMAGE
    save_histograms(counts, given.output or image)


if __name__ == "__main__":
    main()
