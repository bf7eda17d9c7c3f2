"""Simulation-based calibration of GASR: ranks of the truth among posterior draws.

    python benchmarks/calibration.py [--tables 200] [--output docs/images/calibration.png]

Parameters are drawn from the prior, a table is drawn given them, and the sampler draws from the
posterior given the table. If all is right, the rank of a true value among independent posterior draws is
uniform (Talts, Betancourt, Simpson, Vehtari and Gelman 2018). The noise differs by row and by column,
and the degrees of freedom, the noise level, the effects and the factors are unknown; a and b are fixed,
because their priors have tails so heavy that some tables would exceed double precision.

A new row is drawn from the prior too, and folded in: there the prior of its coefficients is the
distribution of the fitted rows, so that its ranks are uniform only approximately.
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
from fillrank.posterior.mean import mean_draw
from fillrank.runtime.threads import Workers
from fillrank.samplers import gasr
from fillrank.samplers.gasr import Context, Options
from fillrank.samplers.model import Data, Effect, Start
from fillrank.samplers.noise_steps import NoiseModel
from fillrank.table.entries import Entries, compress, transpose

N_ROWS, N_COLUMNS, RANK, MISSING = 20, 12, 2, 0.3
A, B = 3.0, 8.0
BURN_IN, N_DRAWS, THINNING = 300, 63, 25
N_BINS = 8
NOISE = NoiseModel(rows=True, columns=True)
OPTIONS = Options(row_effects=True, column_effects=True, centres=True, noise=NOISE)


class Truth(NamedTuple):
    """Parameters from the prior, with one more row that is not fitted."""

    signal: np.ndarray
    variance: float
    row_precisions: np.ndarray
    column_precisions: np.ndarray
    row_degrees: float
    column_degrees: float

    @property
    def variances(self):
        """The noise variance of every cell."""
        return self.variance / np.outer(self.row_precisions, self.column_precisions)


def _factors(rng, n_fitted):
    """Factors with their centre from the unit ball; one more row from the distribution of the others."""
    weight = gasr._CENTRE_WEIGHT
    g = rng.standard_normal((n_fitted + 1, RANK))
    ball = g / np.linalg.norm(g, axis=0) * rng.random(RANK) ** (1.0 / (n_fitted + 1))
    centre = ball[-1] / math.sqrt(weight)
    fitted = ball[:-1] + centre
    scale = np.sqrt((ball[:-1] ** 2).mean(axis=0))
    return np.vstack([fitted, centre + scale * rng.standard_normal(RANK)])


def _effects(rng, n):
    mean, sd = rng.normal(0.0, PRIOR_SCALE), PRIOR_SCALE * abs(rng.standard_cauchy())
    return rng.normal(mean, sd, n)


def draw_truth(rng):
    """Draw parameters from the prior."""
    m, n = N_ROWS + 1, N_COLUMNS
    d = rng.exponential(1.0 / rng.gamma(A, 1.0 / B, RANK))
    left, right = _factors(rng, N_ROWS), _factors(rng, n)[:-1]
    signal = (left * d) @ right.T + _effects(rng, m)[:, None] + _effects(rng, n)
    nu_r, nu_c = rng.choice(DEGREES, 2)
    sigma = PRIOR_SCALE * abs(rng.standard_cauchy())
    rows, columns = rng.gamma(nu_r / 2, 2 / nu_r, m), rng.gamma(nu_c / 2, 2 / nu_c, n)
    return Truth(signal, sigma**2, rows, columns, nu_r, nu_c)


def _entries(X, observed):
    i, j = np.nonzero(observed)
    return compress(len(X), i, j, X[i, j])


def sample(X, observed, rng, seed):
    """States of the chain after the burn-in, thinned."""
    m, n = X.shape
    rows = _entries(X, observed)
    data = Data(rows, transpose(rows, n))
    prior = Effect(0.0, 1.0)
    start = Start(
        np.zeros(m), np.zeros(n), prior, prior, np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0)),
        1.0, np.ones(n), RANK,
    )  # fmt: skip
    state = gasr.init(start, np.dtype(np.float64), rng, NOISE)._replace(
        a=A, b=B, d=np.full(RANK, 3.0)
    )
    context = Context(OPTIONS, chain_key(seed, 0), Workers(1), relaxed_from=0, noise_from=0)
    states = []
    for t in range(BURN_IN + N_DRAWS * THINNING):
        state, _ = gasr.sweep(state, data, context)
        if t >= BURN_IN and (t - BURN_IN) % THINNING == THINNING - 1:
            states.append(state)
    return states


def quantities(truth, states, X, observed, rng):
    """(true value, posterior draws) by name."""
    m = N_ROWS
    draws = [gasr.draw(state) for state in states]
    i, j = (int(k[0]) for k in np.nonzero(~observed[:m]))
    p, q = (int(k[0]) for k in np.nonzero(observed[:m]))
    cell = lambda r, c: np.array([draw.at(np.array([r]), np.array([c]))[0] for draw in draws])  # noqa: E731
    variance = np.array([draw.noise.at(np.array([i]), np.array([j]))[0] for draw in draws])
    new, k = _fold_in(draws, X[m:], observed[m:])
    return {
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
        "cell of a new row": (truth.signal[m, k], new),
    }  # fmt: skip


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


def ranks_of_table(seed):
    """The ranks of all quantities for one table."""
    rng = np.random.default_rng([seed, 18])
    truth = draw_truth(rng)
    X = truth.signal + np.sqrt(truth.variances) * rng.standard_normal(truth.signal.shape)
    observed = rng.random(X.shape) >= MISSING
    observed[0, 0], observed[0, 1], observed[-1, 0], observed[-1, 1] = False, True, False, True
    states = sample(X[:N_ROWS], observed[:N_ROWS], rng, seed)
    found = quantities(truth, states, X, observed, rng)
    return {name: rank_of(value, draws, rng) for name, (value, draws) in found.items()}


def p_value(counts):
    """The p-value of a chi-squared test that all bins are equally probable."""
    expected = counts.sum() / counts.size
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1)


def save_histograms(counts, path):
    """Draw a histogram of ranks for each quantity, with the band that 95% of uniform ones are in."""
    figure, axes = plt.subplots(2, 4, figsize=(11, 5), layout="constrained")
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
    parser.add_argument("--output", type=Path, default=Path("docs/images/calibration.png"))
    given = parser.parse_args()
    ranks = [ranks_of_table(seed) for seed in range(given.tables)]
    counts = {
        name: np.bincount([r[name] * N_BINS // (N_DRAWS + 1) for r in ranks], minlength=N_BINS)
        for name in ranks[0]
    }
    print("| quantity | ranks in 8 bins | p-value |\n|---|---|---|")
    for name, found in counts.items():
        print(f"| {name} | {' '.join(map(str, found))} | {p_value(found):.2f} |")
    save_histograms(counts, given.output)


if __name__ == "__main__":
    main()
