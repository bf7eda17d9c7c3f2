"""What a Dask cluster costs: on the processors of this machine, and by a model on up to 1,000 workers.

    python benchmarks/cluster.py [--entries 2e7] [--rank 30] [--sweeps 6] [--rounds 3] [--most-workers 4]
    python benchmarks/cluster.py --chains 1
    python benchmarks/cluster.py --simulate-only

Generated ratings of the shape of the Netflix Prize, as benchmarks/scale.py has them. Sweeps are timed
within the public fit, from a random start and without features, without the first; the figures are
medians. A cluster advances its chains in parallel, so the time of a sweep is that from the end of one
sweep of all chains to the end of the next, by the number of chains.

- Overhead: two local workers of one thread each against two threads, in turns. Both use two processors;
  the difference is what travels, and Dask.
- Workers: the time of a sweep with 1, 2, ... local workers, each with one thread. More of them than
  there are processors cannot be faster: they show what a worker more costs.
- Handing out: the same on a table so small that nothing else takes time.

From these come the constants of a model of a sweep on W workers, which is printed for tables of 10^9 to
10^11 entries: see `Machine` and `sweep_seconds`.
"""

import argparse
import math
import os
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from distributed import Client, LocalCluster

import fillrank as fr
from scale import FILE, GASR, write_ratings

SMALL = 20_000
WORKERS = (10, 30, 100, 300, 1000)
ENTRIES = (1e9, 1e10, 1e11)
NUMBER = 4  # bytes


# Measured


class Ends:
    """When each sweep of a chain has ended; chains may be in different threads."""

    def __init__(self):
        self.times = []

    def note(self, what):
        if what == "sweep":
            self.times.append(time.perf_counter())


def sweep_times(data, client=None, **settings):
    """Seconds of the sweeps of a fit, without the first, on threads or on a cluster."""
    model = GASR(progress=False, random_state=0, start="random", missingness=False, **settings)
    model.watch = Ends()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data, client=client)
    n_chains = model.n_chains
    return (np.diff(model.watch.times[n_chains - 1 :: n_chains]) / n_chains).tolist()


def on_workers(n_workers, data, **settings):
    """The same on local workers of one thread each."""
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        # Once before: compiles, or loads what has been compiled.
        sweep_times(data, client, **settings | {"n_sweeps": 2})
        return sweep_times(data, client, **settings)


def measure(arguments):
    """Time everything in turns; what is needed of it for the model."""
    with tempfile.TemporaryDirectory() as folder:
        data, small = (
            _ratings(Path(folder), round(n_entries)) for n_entries in (arguments.entries, SMALL)
        )
    settings = {
        "max_rank": arguments.rank, "n_sweeps": arguments.sweeps, "n_chains": arguments.chains,
    }  # fmt: skip
    counts = range(1, arguments.most_workers + 1)
    threads = {n: [] for n in (1, 2)}
    workers, tiny = {n: [] for n in counts}, {n: [] for n in counts}
    for _ in range(arguments.rounds):
        for n in threads:
            threads[n] += sweep_times(data, n_threads=n, **settings)
        for n in counts:
            workers[n] += on_workers(n, data, **settings)
            tiny[n] += on_workers(n, small, **settings)
    return tuple(
        {n: float(np.median(times)) for n, times in each.items()}
        for each in (threads, workers, tiny)
    ), data


def _ratings(folder, n_entries):
    write_ratings(folder / FILE, n_entries)
    return fr.read(folder / FILE)


def report(threads, workers, tiny, data):
    """Print what was measured."""
    m, n = data.shape
    print(f"{len(data):,} entries, {m:,} x {n:,}\n")
    print("| | seconds a sweep | against two threads | small table, ms |")
    print("|---|---:|---:|---:|")
    for count, seconds in threads.items():
        print(f"| {count} threads | {seconds:.3g} | {seconds / threads[2]:.2f} | |")
    for count, seconds in workers.items():
        handing = f"{1000 * tiny[count]:.0f}"
        print(f"| {count} workers | {seconds:.3g} | {seconds / threads[2]:.2f} | {handing} |")


# The model


class Machine(NamedTuple):
    """The constants of a cluster.

    Attributes
    ----------
    factor : float
        Seconds for an entry and factor in a half-sweep, on one thread.
    record : float
        Seconds of the client's one thread for a row or column and pair of factors, once a sweep.
    handing, each : float
        Seconds to hand out a half-sweep: once, and for each worker.
    bandwidth : float
        Bytes a second over any link.
    threads : int
        Of each worker.
    """

    factor: float = 6.25e-10
    record: float = 4e-10
    handing: float = 17e-3
    each: float = 4e-3
    bandwidth: float = 1.25e9
    threads: int = 8


class Cost(NamedTuple):
    """Seconds of a sweep."""

    compute: float
    travel: float
    handing: float
    client: float


class Size(NamedTuple):
    """A table."""

    entries: float
    rows: float
    columns: float
    width: int


def size_for(entries, rank):
    """A table with 200 entries a row, and as many columns for its rows as catalogues have."""
    rows = entries / 200
    return Size(entries, rows, 40 * math.sqrt(rows), rank + 2)


def sweep_cost(size, n_workers, machine):
    """A sweep of two half-sweeps.

    The factors of the other side go to the scheduler, on to a worker, and from there from worker to
    worker in rounds, in each of which, at best, twice as many have them. The factors of a worker's own
    rows go to it over the scheduler, and come back the same way.
    """
    bytes_of_all = NUMBER * size.width * (size.rows + size.columns)
    hops = 2 + math.ceil(math.log2(n_workers)) + 4
    return Cost(
        2 * machine.factor * size.entries * size.width / (n_workers * machine.threads),
        hops * bytes_of_all / machine.bandwidth,
        2 * (machine.handing + machine.each * n_workers),
        machine.record * size.width**2 * (size.rows + size.columns),
    )


def simulate(rank, machine):
    """Print the model for tables and clusters that are not here."""
    print(f"\n{machine.threads} threads a worker, {machine.bandwidth / 1e9:g} GB/s, rank {rank}\n")
    print(
        "| entries | rows x columns | workers | compute | travel | handing out | client | a sweep |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for entries in ENTRIES:
        size = size_for(entries, rank)
        for n_workers in WORKERS:
            cost = sweep_cost(size, n_workers, machine)
            figures = " | ".join(f"{seconds:.3g} s" for seconds in (*cost, sum(cost)))
            print(
                f"| {entries:.0e} | {size.rows:.0e} x {size.columns:.0e} | {n_workers} | {figures} |"
            )


def constants(threads, tiny, data, rank):
    """A machine as it was measured; of the network nothing can be measured here."""
    work = 2 * len(data) * (rank + 2)
    # More workers than processors wait for each other, which real ones do not.
    slopes = [after - before for before, after in pairwise(list(tiny.values())[: os.cpu_count()])]
    each = max(float(np.median(slopes)), 0.0) / 2 if slopes else Machine().each
    return Machine(factor=threads[1] / work, handing=max(tiny[1] / 2 - each, 0.0), each=each)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=float, default=2e7)
    parser.add_argument("--rank", type=int, default=30)
    parser.add_argument("--sweeps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most-workers", type=int, default=4)
    parser.add_argument("--chains", type=int, default=2, help="of each fit (default: 2)")
    parser.add_argument("--simulate-only", action="store_true")
    arguments = parser.parse_args()
    machine = Machine()
    if not arguments.simulate_only:
        (threads, workers, tiny), data = measure(arguments)
        report(threads, workers, tiny, data)
        machine = constants(threads, tiny, data, arguments.rank)
        print(f"\n{machine}")
    simulate(arguments.rank, machine)


if __name__ == "__main__":
    main()
