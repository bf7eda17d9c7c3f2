"""Values below a limit of detection: the means of the columns of a completed table.

    python benchmarks/censored.py [--tables 10] [--spread 0.3]

A table has 200 samples and 12 substances. The logarithms of the values have rank 3 and noise, and about
the standard deviation ``--spread``: with 0.3 values vary by a third of their size, with 1 over orders of
magnitude, so that small values hardly matter for a mean. 20% of the values are missing completely at
random, and each substance has a limit below which 30% of its values are: of these only "<limit" is
known. The table is completed in five ways: with these values as they are, with a half of the limit or
the limit over the square root of 2 in their place, as if they were missing, and without any model, from
the observed values alone with a half of the limit.

For each: the relative error of the column means, its mean and the largest over the columns, and the mean
with its sign; all of them averaged over the tables. "filled in" is the table that fit_transform returns.
"draws" is the mean of 20 completions: a mean of skewed values needs draws.
"""

import argparse
import warnings
from typing import NamedTuple

import numpy as np

import fillrank as fr

N_SAMPLES, N_SUBSTANCES, RANK = 200, 12, 3
NOISE = 0.4  # relative to the low-rank part
BELOW, MISSING = 0.3, 0.2
N_COMPLETIONS = 20


class Table(NamedTuple):
    """True values, the limit of each column, and which cells are missing or below the limit."""

    truth: np.ndarray
    limits: np.ndarray
    missing: np.ndarray
    below: np.ndarray


def simulate(rng, spread):
    """A table of log-normal values, whose logarithms vary by about ``spread``."""
    left = rng.standard_normal((N_SAMPLES, RANK))
    right = rng.standard_normal((N_SUBSTANCES, RANK)) / np.sqrt(RANK)
    noise = NOISE * rng.standard_normal((N_SAMPLES, N_SUBSTANCES))
    truth = np.exp(rng.uniform(-2.0, 3.0, N_SUBSTANCES) + spread * (left @ right.T + noise))
    limits = np.quantile(truth, BELOW, axis=0)
    missing = rng.random(truth.shape) < MISSING
    return Table(truth, limits, missing, (truth < limits) & ~missing)


def with_limits(table):
    """The table with what is known of each value: its lower and its upper limit."""
    known = np.where(table.missing, np.nan, table.truth)
    low, high = np.where(table.below, 0.0, known), np.where(table.below, table.limits, known)
    return fr.Observations.from_matrix(low, upper=high)


def substituted(table, share):
    """The table with a share of the limit in place of the values below it."""
    known = np.where(table.missing, np.nan, table.truth)
    return np.where(table.below, share * table.limits, known)


WAYS = {
    "below the limit": with_limits,
    "limit / 2": lambda table: substituted(table, 0.5),
    "limit / sqrt 2": lambda table: substituted(table, 0.5**0.5),
    "missing": lambda table: substituted(table, np.nan),
}


def completed_means(data, seed):
    """The column means of the filled table, and those of completions, averaged."""
    kinds = dict.fromkeys(range(N_SUBSTANCES), "positive")
    model = fr.GASR(kinds=kinds, random_state=seed, progress=False)
    filled = model.fit_transform(data)
    return {
        "filled in": np.mean(filled, axis=0),
        "draws": np.mean(model.sample_completions(N_COMPLETIONS, seed), axis=(0, 1)),
    }


def estimates(table, seed):
    """The column means in all ways, by (values below the limit, table)."""
    found = {
        (way, name): means
        for way, prepare in WAYS.items()
        for name, means in completed_means(prepare(table), seed).items()
    }
    found["limit / 2", "observed values"] = np.nanmean(substituted(table, 0.5), axis=0)
    return found


def relative_errors(means, table):
    """(mean over the columns, largest, mean with its sign) of the relative errors of column means."""
    errors = means / table.truth.mean(axis=0) - 1.0
    return np.abs(errors).mean(), np.abs(errors).max(), errors.mean()


def compare(n_tables, spread):
    """The errors of all ways, averaged over generated tables."""
    errors = {}
    for seed in range(n_tables):
        table = simulate(np.random.default_rng([11, seed]), spread)
        for way, means in estimates(table, seed).items():
            errors.setdefault(way, []).append(relative_errors(means, table))
    return {way: np.mean(each, axis=0) for way, each in errors.items()}


def main(arguments=None):
    """Print the errors in per cent."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--spread", type=float, default=0.3)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", fr.ConvergenceWarning)
    print("| values below the limit | means of | error, % | worst column, % | bias, % |")
    print("|---|---|---|---|---|")
    for (way, name), errors in compare(given.tables, given.spread).items():
        mean, worst, bias = 100 * errors
        print(f"| {way} | {name} | {mean:.1f} | {worst:.1f} | {bias:+.1f} |")


if __name__ == "__main__":
    main()
