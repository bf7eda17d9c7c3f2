"""New rows and columns: completed by a model that does not know them, or by a fit of everything.

    python benchmarks/fold_in.py synthetic                  300 x 100, 100 x 300 and 50 further rows
    python benchmarks/fold_in.py small                      the same beside 5 to 60 rows
    python benchmarks/fold_in.py ratings --data FOLDER      MovieLens 100K, a tenth of a side new
    python benchmarks/fold_in.py speed                      a model of the shape of MovieLens 1M

Errors are those of cells that were not given. In the synthetic tables truth and intervals are of the
signal; in ratings, of half of the ratings of the new users (or movies), the other half being given.
"""

import argparse
import time
import warnings

import numpy as np

import fillrank as fr
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.posterior.mean import mean_draw
from fillrank.posterior.metrics import coverage, rmse
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.samplers.model import Draw, Noise
from fillrank.table.entries import compress
from fillrank.table.units import Units

# A name that no user and no movie has.
_NOBODY = -1


def _header(first):
    print(
        f"| {first} | RMSE, fold-in | RMSE, refit | RMSE, no entries | coverage, fold-in | refit |"
    )
    print("|---|---|---|---|---|---|", flush=True)


def _line(name, rows):
    """The means over repetitions of (three errors, two coverages)."""
    errors, shares = np.split(np.mean(rows, axis=0), [3])
    cells = [f"{error:.4f}" for error in errors] + [f"{100 * share:.1f}" for share in shares]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def _judge(value, predictions, intervals):
    """The errors of predictions, and the shares of values in their intervals."""
    errors = [rmse(value, predicted) for predicted in predictions]
    return errors + [coverage(value, *interval) for interval in intervals]


def _gasr(seed, arguments):
    return fr.GASR(random_state=seed, n_threads=arguments.threads, progress=False)


def _compare_synthetic(shape, n_given, seed, arguments):
    """Rank 5 (or less), noise 1; the last 50 rows are new, with some of their entries."""
    m, n, q = shape
    n_new = 50
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((m + n_new, q)) @ rng.standard_normal((n, q)).T
    X = truth + rng.standard_normal(truth.shape)
    X[rng.random(X.shape) < 0.6] = np.nan
    X[m:][np.isfinite(X[m:]).cumsum(axis=1) > n_given] = np.nan
    known = _gasr(seed, arguments).fit(X[:m])
    whole = _gasr(seed, arguments).fit(X)
    new = known.fold_in(np.vstack([X[m:], np.full(n, np.nan)]))
    rows, columns = np.nonzero(np.isnan(X[m:]))
    asked = (new, rows), (whole, rows + m), (new, n_new)
    return _judge(
        truth[m + rows, columns],
        [model.predict(names, columns) for model, names in asked],
        [model.predict_interval(names, columns, 0.9, "signal") for model, names in asked[:2]],
    )


def synthetic(arguments):
    """Rank 5, noise 1, 60% missing; with at most 5, 20 or all entries of the 50 new rows."""
    _header("table, entries of a new row")
    for m, n in ((300, 100), (100, 300)):
        for n_given in (5, 20, n):
            rows = [
                _compare_synthetic((m, n, 5), n_given, seed, arguments)
                for seed in range(arguments.seeds)
            ]
            _line(f"{m} x {n}, {'all' if n_given == n else n_given}", rows)


def small(arguments):
    """Few rows at fit: 40 columns, rank 2."""
    _header("rows at fit, entries of a new row")
    for m in (5, 10, 20, 60):
        for n_given in (3, 40):
            rows = [
                _compare_synthetic((m, 40, 2), n_given, seed, arguments)
                for seed in range(4 * arguments.seeds)
            ]
            _line(f"{m}, {'all' if n_given == 40 else n_given}", rows)


def _part(data, chosen):
    """Some of the entries, under their names."""
    return fr.Observations.from_triplets(
        data.rows[chosen], data.columns[chosen], data.values[chosen]
    )


def _with_nobody(given, axis):
    """The same and a new user, or movie, of whom nothing is known."""
    row, column = given.rows[0], given.columns[0]
    row, column = (_NOBODY, column) if axis == "rows" else (row, _NOBODY)
    return fr.Observations.from_triplets(
        np.append(given.rows, row),
        np.append(given.columns, column),
        np.append(given.values, np.nan),
    )


def _choose(index, rng):
    """Which entries belong to a tenth of those that have 20 entries or more."""
    counts = np.bincount(index)
    candidates = np.flatnonzero(counts >= 20)
    return np.isin(index, rng.choice(candidates, len(candidates) // 10, replace=False))


def _compare_ratings(data, axis, seed, arguments):
    """A tenth of the users, or of the movies, is new; half of their ratings are given."""
    rng = np.random.default_rng(seed)
    own, other = data.row_index, data.column_index
    if axis == "columns":
        own, other = other, own
    is_new, given = _choose(own, rng), rng.random(len(data)) < 0.5
    known = np.isin(other, other[~is_new])  # of what only the new ones have, nothing can be known
    given &= is_new & known
    test = is_new & ~given & known & np.isin(own, own[given])
    model = _gasr(seed, arguments).fit(_part(data, ~is_new))
    whole = _gasr(seed, arguments).fit(_part(data, ~is_new | given))
    new = model.fold_in(_with_nobody(_part(data, given), axis), axis)
    cells = data.rows[test], data.columns[test]
    blank = (_NOBODY, cells[1]) if axis == "rows" else (cells[0], _NOBODY)
    return _judge(
        data.values[test],
        [new.predict(*cells), whole.predict(*cells), new.predict(*blank)],
        [one.predict_interval(*cells, 0.9, "observation") for one in (new, whole)],
    )


def ratings(arguments):
    """MovieLens 100K: intervals are for the ratings themselves."""
    data = fr.datasets.load("ml-100k", path=arguments.data)
    _header("new")
    for axis, name in (("rows", "users"), ("columns", "movies")):
        rows = [_compare_ratings(data, axis, seed, arguments) for seed in range(arguments.seeds)]
        _line(name, rows)


def speed(arguments):
    """Seconds of the processor and of the clock, for 128 made-up draws of 6,040 x 3,706, 32 factors."""
    rng = np.random.default_rng(0)
    signal = rng.standard_normal((6040, 32)), 0.2 * rng.standard_normal((3706, 32))
    draws = []
    for _ in range(128):
        left, right = (
            (X + 0.2 * X.std() * rng.standard_normal(X.shape)).astype(np.float32) for X in signal
        )
        draws.append(Draw(left, right, Noise.equal(0.7, (len(left), len(right)))))
    print("| new rows | entries of each | processor | clock |")
    print("|---|---|---|---|")
    with one_blas_thread(), Workers(arguments.threads or 2) as workers:
        posterior = LowRankPosterior(draws, Units.equal(0.0, 1.0, 3706, None), mean_draw(draws))
        one = compress(1, np.zeros(1, int), np.zeros(1, int), np.zeros(1))
        posterior.fold_in(one, "rows", workers)
        for n_rows, n_each in ((1, 20), (1000, 20), (1000, 100)):
            columns = rng.permuted(np.tile(np.arange(3706), (n_rows, 1)), axis=1)[:, :n_each]
            values = rng.standard_normal(columns.size)
            entries = compress(
                n_rows, np.repeat(np.arange(n_rows), n_each), columns.ravel(), values
            )
            started = time.process_time(), time.perf_counter()
            posterior.fold_in(entries, "rows", workers)
            processor, clock = time.process_time() - started[0], time.perf_counter() - started[1]
            print(f"| {n_rows:,} | {n_each} | {processor:.2f} s | {clock:.2f} s |", flush=True)


WORK = {"synthetic": synthetic, "small": small, "ratings": ratings, "speed": speed}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=WORK)
    parser.add_argument("--data", help="folder with the published files")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int)
    warnings.simplefilter("ignore", fr.errors.ConvergenceWarning)
    given = parser.parse_args()
    WORK[given.what](given)
