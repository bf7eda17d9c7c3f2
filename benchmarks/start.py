"""What the spectral start costs, in sweeps of the chain that begins there.

    python benchmarks/start.py [--data FOLDER] [--threads 2]

On MovieLens 1M (or, without --data, on random entries of its shape), with row and column effects and at
most 30 factors. Starts and sweeps are timed in turns in one run and printed as a ratio of medians, with
the share of the effects in the start, and the memory that the start takes beside the entries.
"""

import argparse
import time
import tracemalloc
from functools import partial

import numpy as np

import fillrank as fr
from fillrank.draws.streams import chain_key
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.samplers.gasr import Context, Options, init, sweep
from fillrank.solvers.starts import spectral_start, start_effects
from speed import random_ratings
from standard_data import standard_data

OPTIONS = Options(row_effects=True, column_effects=True, centres=True)
MAX_RANK = 30
SWEEPS = 5


def seconds(work):
    """How long a call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(data, workers, repeats):
    """Time starts, their effects and sweeps in turns; medians and deciles are printed."""

    def start():
        return spectral_start(data, MAX_RANK, OPTIONS, workers, np.random.default_rng(0))

    state = init(start(), np.dtype(np.float32), np.random.default_rng(0))
    context = Context(OPTIONS, chain_key(0, 0), workers, relaxed_from=0)

    def sweeps():
        now = state
        for _ in range(SWEEPS):
            now, _ = sweep(now, data, context)

    jobs = {
        "start": start,
        "effects": partial(start_effects, data, OPTIONS, workers),
        "sweep": sweeps,
    }
    sweeps()
    times = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            times[name].append(seconds(job) / (SWEEPS if name == "sweep" else 1))
    for name, each in times.items():
        low, middle, high = np.quantile(each, [0.1, 0.5, 0.9])
        print(f"{name:<30} {1e3 * middle:8.1f} ms  ({1e3 * low:.1f} to {1e3 * high:.1f})")
    median = {name: float(np.median(each)) for name, each in times.items()}
    print(f"{'start / sweep':<30} {median['start'] / median['sweep']:8.1f}")
    print(f"{'effects / start':<30} {median['effects'] / median['start']:8.2f}")

    tracemalloc.start()
    start()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    numbers = sum(data.shape) * MAX_RANK
    print(f"{'bytes, for each factor entry':<30} {peak / numbers:8.1f}")
    print(f"{'bytes, for each table entry':<30} {peak / data.n_entries:8.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder with ratings.dat of MovieLens 1M")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    if arguments.data:
        ratings, _ = fr.datasets.load("ml-1m", path=arguments.data).split(0.2, random_state=0)
    else:
        ratings = random_ratings()
    print(ratings)
    data = standard_data(ratings, np.dtype(np.float32))
    with one_blas_thread(), Workers(arguments.threads) as workers:
        measure(data, workers, arguments.repeats)


if __name__ == "__main__":
    main()
