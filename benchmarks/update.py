"""New entries of known rows: learnt by update, or by a fit of everything.

    python benchmarks/update.py synthetic                  300 x 100, rank 5
    python benchmarks/update.py ratings --data FOLDER      MovieLens 100K, a tenth of the users

Errors and the coverage of 90% intervals are those of further cells of the rows that got new entries. In
the synthetic tables truth and intervals are of the signal; in ratings, of ratings that no model has
seen.
"""

import argparse
import time
import warnings

import numpy as np

import fillrank as fr
from fillrank.posterior.metrics import coverage, rmse


def _header(first):
    names = ("before", "update", "refit")
    errors = " | ".join(f"RMSE, {name}" for name in names)
    shares = " | ".join(f"coverage, {name}" for name in names)
    print(f"| {first} | {errors} | {shares} | seconds, update | refit |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)


def _line(name, rows):
    """The means over repetitions of (three errors, three coverages, two times)."""
    errors, shares, seconds = np.split(np.mean(rows, axis=0), [3, 6])
    cells = [f"{error:.4f}" for error in errors] + [f"{100 * share:.1f}" for share in shares]
    cells += [f"{time:.2f}" for time in seconds]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def _compare(old, more, whole, cells, kind, seed, arguments):
    """Errors, coverages and times of a model of the old entries, its update, and a refit."""
    rows, columns, truth = cells
    before = fr.GASR(random_state=seed, n_threads=arguments.threads, progress=False).fit(old)
    before.update(more)  # compiles
    started = time.perf_counter()
    after = before.update(more)
    updated = time.perf_counter()
    refit = fr.GASR(random_state=seed, n_threads=arguments.threads, progress=False).fit(whole)
    times = updated - started, time.perf_counter() - updated
    models = before, after, refit
    errors = [rmse(truth, model.predict(rows, columns)) for model in models]
    intervals = [model.predict_interval(rows, columns, 0.9, kind) for model in models]
    return [*errors, *(coverage(truth, *interval) for interval in intervals), *times]


def _synthetic_case(n_old, n_more, seed, arguments):
    """Rank 5, noise 1, 60% missing; the first 30 of 300 rows have few entries, and get more."""
    m, n, n_few = 300, 100, 30
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((m, 5)) @ rng.standard_normal((n, 5)).T
    X = truth + rng.standard_normal(truth.shape)
    order = rng.random(X.shape).argsort(axis=1).argsort(axis=1)
    few = np.arange(m)[:, np.newaxis] < n_few
    is_old = np.where(few, order < n_old, order < 0.4 * n)
    is_more = few & ~is_old & (order < n_old + n_more)
    rows, columns = np.nonzero(few & ~is_old & ~is_more)
    old, more, whole = (np.where(mask, X, np.nan) for mask in (is_old, is_more, is_old | is_more))
    cells = rows, columns, truth[rows, columns]
    return _compare(old, more, whole, cells, "signal", seed, arguments)


def synthetic(arguments):
    """With 5 or 20 entries of a row at fit, and 1, 5 or 20 new ones."""
    _header("entries of a row, new ones")
    for n_old in (5, 20):
        for n_more in (1, 5, 20):
            rows = [
                _synthetic_case(n_old, n_more, seed, arguments) for seed in range(arguments.seeds)
            ]
            _line(f"{n_old}, {n_more}", rows)


def _ratings_case(data, share_old, seed, arguments):
    """A tenth of the users with 30 ratings or more: a third is held out, some are old, the rest new."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(data.row_index)
    candidates = np.flatnonzero(counts >= 30)
    chosen = rng.choice(candidates, len(candidates) // 10, replace=False)
    mine, u = np.isin(data.row_index, chosen), rng.random(len(data))
    test = mine & (u > 2 / 3)
    is_old = ~mine | (u < share_old)
    # A film or a user without entries at fit is not known.
    known = np.isin(data.column_index, data.column_index[is_old])
    known &= np.isin(data.row_index, data.row_index[is_old])
    is_more, test = mine & ~is_old & ~test & known, test & known
    old, more, whole = (
        fr.Observations.from_triplets(data.rows[mask], data.columns[mask], data.values[mask])
        for mask in (is_old, is_more, is_old | is_more)
    )
    cells = data.rows[test], data.columns[test], data.values[test]
    return _compare(old, more, whole, cells, "observation", seed, arguments)


def ratings(arguments):
    """MovieLens 100K, with 5% or a third of the ratings of these users at fit."""
    data = fr.datasets.load("ml-100k", path=arguments.data)
    _header("share of ratings at fit")
    for share in (0.05, 1 / 3):
        rows = [_ratings_case(data, share, seed, arguments) for seed in range(arguments.seeds)]
        _line(f"{100 * share:.0f}%, of 67%", rows)


WORK = {"synthetic": synthetic, "ratings": ratings}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=WORK)
    parser.add_argument("--data", help="folder with the published files")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int)
    warnings.simplefilter("ignore", fr.ConvergenceWarning)
    given = parser.parse_args()
    WORK[given.what](given)
