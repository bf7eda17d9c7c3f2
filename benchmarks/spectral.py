"""The spectral family: SoftImpute, SoftImputeALS and HASI.

    python benchmarks/spectral.py synthetic                  1000 x 1000, q = 10, noise 1, 80% missing
    python benchmarks/spectral.py ratings --data FOLDER      MovieLens 1M, one 80/20 split, rank 30
    python benchmarks/spectral.py als                        an ALS iteration over its bare products
    python benchmarks/spectral.py search [--data FOLDER]     HASI's search against the full grid

All penalties are chosen on a fifth of the training entries. For ``search``, FOLDER has MovieLens 100K,
of which only the training part u1.base is used.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import fillrank as fr
from fillrank.estimators.spectral import SpectralEstimator
from fillrank.kernels.products import product, residual
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.solvers.fit import Limits
from fillrank.solvers.soft_impute_als import soft_impute_als
from standard_data import standard_data

METHODS = {"SoftImpute": fr.SoftImpute, "SoftImputeALS": fr.SoftImputeALS, "HASI": fr.HASI}


def _timed(model, data):
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        model.fit(data)
    return time.perf_counter() - started


def synthetic(arguments):
    """RMSE against the noise-free matrix."""
    data, truth = fr.synthetic(1000, 1000, 10, 1.0, 0.8, random_state=0)
    print("| method | RMSE against the truth | rank | penalty | seconds |")
    print("|---|---|---|---|---|")
    for name in arguments.methods:
        model = METHODS[name](random_state=0, progress=False)
        seconds = _timed(model, data)
        error = model.predict_block(np.arange(1000), np.arange(1000)) - truth
        rmse = np.sqrt(np.mean(error**2))
        print(
            f"| {name} | {rmse:.3f} | {model.rank_} | {model.penalty_:.2f} | {seconds:.0f} |",
            flush=True,
        )


def ratings(arguments):
    """Test RMSE and NMAE, without any centring as in the paper, and with effects."""
    train, test = fr.datasets.load("ml-1m", path=arguments.data).split(0.2, random_state=0)
    print("| method | effects | RMSE | NMAE | rank | penalty | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.methods:
        for effects in (None, "both"):
            model = METHODS[name](max_rank=30, effects=effects, random_state=0, progress=False)
            seconds = _timed(model, train)
            scores = fr.score(test, model)
            print(
                f"| {name} | {effects} | {scores['rmse']:.4f} | {scores['nmae']:.4f} | {model.rank_} | "
                f"{model.penalty_:.1f} | {seconds:.0f} |",
                flush=True,
            )


def als(_):
    """One iteration against a residual on the entries and two sparse-times-dense products, in turns."""
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(6040 * 3706, size=815_000))
    data = fr.Observations.from_triplets(
        cells // 3706, cells % 3706, rng.standard_normal(cells.size)
    )
    problem = standard_data(data, np.dtype(np.float64))
    U, V = rng.standard_normal((6040, 30)), rng.standard_normal((3706, 30))
    bare, whole = [], []
    with one_blas_thread(), Workers(1) as workers:
        short, long = Limits(30, 5, 1e-12), Limits(30, 15, 1e-12)
        for _ in range(7):
            started = time.perf_counter()
            for _ in range(5):
                residual(problem.rows, U, V, workers)
                residual(problem.columns, V, U, workers)
                product(problem.rows, V, workers)
                product(problem.columns, U, workers)
            bare.append((time.perf_counter() - started) / 5)
            times = []
            for limits in (short, long):
                started = time.perf_counter()
                soft_impute_als(problem, 20.0, limits, workers)
                times.append(time.perf_counter() - started)
            whole.append((times[1] - times[0]) / 10)
    times = 1e3 * np.median(whole), 1e3 * np.median(bare)
    print(f"an ALS iteration {times[0]:.0f} ms, bare {times[1]:.0f} ms: {times[0] / times[1]:.2f}x")


class FullGridHASI(fr.HASI):
    """HASI with a full-tolerance fit for every penalty and beta."""

    _search = SpectralEstimator._search


# Rows, columns, rank, noise, share missing.
TABLES = (
    (60, 40, 2, 0.1, 0.5),
    (100, 80, 3, 1.0, 0.5),
    (200, 150, 3, 0.5, 0.8),
    (300, 200, 5, 1.0, 0.6),
    (300, 200, 5, 3.0, 0.6),
    (500, 400, 10, 1.0, 0.8),
)
REPEATS = 1


def _search_cases(folder):
    """(name, observations, settings) of the tables on which searches are compared."""
    for seed, table in enumerate(TABLES):
        m, n, rank, noise, missing = table
        name = f"{m} x {n}, rank {rank}, noise {noise:g}, {missing:.0%} missing"
        yield name, fr.synthetic(*table, random_state=seed)[0], {}
    if folder is None:
        return
    i, j, value = np.loadtxt(Path(folder) / "u1.base", usecols=(0, 1, 2)).T
    ratings = fr.Observations.from_triplets(i.astype(int), j.astype(int), value)
    for effects in ("both", "mean"):
        name = f"MovieLens 100K, effects {effects}"
        yield name, ratings, {"effects": effects, "max_rank": 30}


def search(arguments):
    """Time and error on the held-out entries, which are the same for both; fits in turns."""
    print("| table | full grid: error | search: error | fits | times faster |")
    print("|---|---|---|---|---|")
    for name, data, settings in _search_cases(arguments.data):
        seconds = {FullGridHASI: [], fr.HASI: []}
        chosen = {}
        for _ in range(REPEATS):
            for method in seconds:
                model = method(random_state=0, n_threads=1, progress=False, **settings)
                seconds[method].append(_timed(model, data))
                chosen[method] = model
        grid, found = (chosen[method] for method in seconds)
        errors = [
            next(
                point.validation_error
                for point in model.path_
                if (point.penalty, point.beta) == (model.penalty_, model.beta_)
            )
            for model in (grid, found)
        ]
        ratio = np.median(seconds[FullGridHASI]) / np.median(seconds[fr.HASI])
        print(
            f"| {name} | {errors[0]:.5f} | {errors[1]:.5f} | "
            f"{len(grid.path_)}, {len(found.path_)} | {ratio:.1f} |",
            flush=True,
        )


COMMANDS = {"synthetic": synthetic, "ratings": ratings, "als": als, "search": search}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("--data", help="folder of the data set")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    arguments = parser.parse_args()
    COMMANDS[arguments.what](arguments)
