"""Multiple imputation on tables with a known truth: do 95% intervals hold it?

    python benchmarks/imputation.py            GASR
    python benchmarks/imputation.py --bpmf     BPMF as well

A table has 200 people and 12 columns as of a survey: two traits, noise, and 35% of the cells missing
completely at random. Its people are new in each of the simulations, the columns stay the same. Three
numbers are asked for, whose truth is that of the law of the people: the mean of column 0, the slope of
its regression on column 1, and their correlation, through Fisher's z. They are answered from

    the table without holes, which nobody has;
    the people of whom both columns are known;
    the table filled with posterior means, as if it had been complete;
    the table filled with one draw, likewise;
    ten completions, pooled by Rubin's rules with the degrees of freedom of Barnard and Rubin.

For each: the share of intervals that hold the truth; the mean of the standard errors (SE), as a multiple
of that from the table without holes; and the bias, as a multiple of the estimates' standard deviation.
"""

import argparse
import math
import warnings
from typing import NamedTuple

import numpy as np
from scipy import stats

import fillrank as fr

N_PEOPLE, N_COLUMNS, N_TRAITS = 200, 12, 2
MISSING = 0.35
NOISE = 0.6
N_COMPLETIONS = 10
LEVEL = 0.95


class Estimate(NamedTuple):
    """A number, its squared standard error, and the degrees of freedom of that."""

    value: float
    variance: float
    degrees: float


class Law(NamedTuple):
    """Where people come from: means of the columns, and loadings (columns, traits)."""

    means: np.ndarray
    loadings: np.ndarray


def law():
    """Columns around 3, with a standard deviation of about 1, as answers from 1 to 5 have."""
    rng = np.random.default_rng(2024)
    loadings = rng.uniform(0.3, 0.8, (N_COLUMNS, N_TRAITS)) * rng.choice([-1, 1], (N_COLUMNS, 1))
    loadings[:2] = [[0.8, 0.2], [0.6, 0.5]]
    loadings[::3, 1] *= -1
    return Law(rng.uniform(2.5, 3.5, N_COLUMNS), loadings)


def truth(law):
    """The mean of column 0, its slope on column 1, and Fisher's z of their correlation."""
    covariance = law.loadings @ law.loadings.T + NOISE**2 * np.eye(N_COLUMNS)
    (a, b), (_, d) = covariance[:2, :2]
    return np.array([law.means[0], b / d, math.atanh(b / math.sqrt(a * d))])


def simulate(law, rng):
    """A table without holes, and which of its cells are missing."""
    traits = rng.standard_normal((N_PEOPLE, N_TRAITS))
    X = law.means + traits @ law.loadings.T + NOISE * rng.standard_normal((N_PEOPLE, N_COLUMNS))
    return X, rng.random(X.shape) < MISSING


def analyse(X, known_means=None):
    """The three estimates from a table without holes: what one would do with any table.

    The mean has ``known_means`` to itself, if people are known of whom the other column is not.
    """
    y, x = X[:, 0], X[:, 1]
    n = len(y)
    own = y if known_means is None else known_means
    mean = Estimate(own.mean(), own.var(ddof=1) / len(own), len(own) - 1)
    line = stats.linregress(x, y)
    slope = Estimate(line.slope, line.stderr**2, n - 2)
    z = Estimate(math.atanh(line.rvalue), 1.0 / (n - 3), math.inf)
    return mean, slope, z


def pool(estimates):
    """By Rubin's rules."""
    values, variances, degrees = zip(*estimates, strict=True)
    pooled = fr.pool(values, variances, degrees[0])
    return Estimate(pooled.estimate, pooled.variance, pooled.df)


def answers(X, missing, model):
    """The three estimates in all ways, by their names."""
    holes = np.where(missing, np.nan, X)
    model.fit(holes)
    completions = [analyse(table) for table in model.sample_completions(N_COMPLETIONS)]
    means = model.predict_block(np.arange(N_PEOPLE), np.arange(N_COLUMNS))
    both, own = ~missing[:, :2].any(axis=1), ~missing[:, 0]
    return {
        "without holes": analyse(X),
        "known people": analyse(X[both], X[own, 0]),
        "posterior means": analyse(np.where(missing, means, X)),
        "one draw": completions[0],
        "ten, pooled": tuple(map(pool, zip(*completions, strict=True))),
    }


def show(name, estimates, whole, target):
    """A line of the table, from Estimates (simulations, 3, 3)."""
    value, variance, degrees = np.moveaxis(estimates, 2, 0)
    half = stats.t(degrees).ppf(0.5 + 0.5 * LEVEL) * np.sqrt(variance)
    held = (np.abs(value - target) <= half).mean(axis=0)
    errors = np.sqrt(variance).mean(axis=0) / np.sqrt(whole[:, :, 1]).mean(axis=0)
    bias = (value.mean(axis=0) - target) / value.std(axis=0)
    cells = [
        f"{100 * h:.1f} | {ratio:.2f} | {b:+.2f}"
        for h, ratio, b in zip(held, errors, bias, strict=True)
    ]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def compare(name, make_model, arguments):
    """Print the table of one method."""
    people, results = law(), {}
    for seed in range(arguments.tables):
        X, missing = simulate(people, np.random.default_rng([7, seed]))
        for way, estimates in answers(X, missing, make_model(seed)).items():
            results.setdefault(way, []).append(estimates)
    error = 100 * math.sqrt(LEVEL * (1 - LEVEL) / arguments.tables)
    print(f"\n{name}, {arguments.tables} tables: a share of 95 has a standard error of {error:.1f}")
    print("| from | mean: % held | SE | bias | slope: % held | SE | bias "
          "| correlation: % held | SE | bias |")  # fmt: skip
    print("|---" * 10 + "|")
    whole = np.array(results["without holes"])
    for way, estimates in results.items():
        show(way, np.array(estimates), whole, truth(people))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--sweeps", type=int, default=300)
    parser.add_argument("--bpmf", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore", fr.ConvergenceWarning)
    run = {"n_sweeps": given.sweeps, "n_threads": 1, "progress": False}
    compare("GASR", lambda seed: fr.GASR(random_state=seed, **run), given)
    if given.bpmf:
        compare("BPMF", lambda seed: fr.BPMF(random_state=seed, **run), given)
