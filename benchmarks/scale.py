"""What a sweep costs in time and a fit in memory, with 1 to 100 million entries; by rank and threads.

    python benchmarks/scale.py [--entries 1e6 1e7 1e8] [--rank 30] [--sweeps 3]
    python benchmarks/scale.py --ranks 10 30 50 100 200

Generated ratings from 1 to 5 of the shape of the Netflix Prize: 480,000 x 17,770 with 100 million
entries. With fewer entries there are fewer rows in proportion, so that a row has 208 at all sizes, and
columns by the square root: were they to shrink in proportion too, there would be fewer cells than
entries at 1 million. Both sides are as skewed as there (a row has 96 entries in the middle, a column a
tenth of the mean). The Parquet file is in no order: every batch of it has all rows.

Each size is read and fitted in a process of its own, which has compiled its kernels before. "Bytes an
entry" are those of the highest peak, from the file to the fitted model, less the process before it
read, less factors and kept draws. A sweep is timed within the public fit.

With --ranks: sweeps of GASR and BPMF on 1 million entries, from a random start, on one thread and on
two, in turns.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fillrank as fr
from fillrank.table.entries import iter_blocks

FULL = 100_000_000
FULL_ROWS, FULL_COLUMNS = 480_000, 17_770
ROW_SPREAD, COLUMN_SPREAD = 1.25, 2.15  # of the logarithms: medians of 0.46 and 0.1 of the means
TRUE_RANK = 10
AT_ONCE = 1_000_000  # entries to generate together
FILE = "ratings.parquet"
LIMIT = 6 * 3600  # seconds for one size


# Ratings


def shape_for(n_entries):
    share = n_entries / FULL
    return round(FULL_ROWS * share), round(FULL_COLUMNS * math.sqrt(share))


def write_ratings(path, n_entries):
    """Distinct cells, a class of columns at a time, each in random order."""
    rng = np.random.default_rng(0)
    m, n = shape_for(n_entries)
    active, popular = rng.lognormal(0, ROW_SPREAD, m), rng.lognormal(0, COLUMN_SPREAD, n)
    tastes = Tastes(rng, m, n)
    names = 3 + 5 * rng.permutation(m).astype(np.int32), 1 + rng.permutation(n).astype(np.int32)
    schema = pa.schema([("user", pa.int32()), ("movie", pa.int32()), ("rating", pa.int8())])
    n_classes = max(1, n_entries // AT_ONCE)
    wanted = np.clip(active * n_entries / active.sum(), 1, n / 4)
    wanted *= n_entries / wanted.sum()
    with pq.ParquetWriter(path, schema) as writer:
        for part in np.array_split(rng.permutation(n), n_classes):
            share = wanted * popular[part].sum() / popular.sum()
            rows, places = distinct_cells(rng, share, popular[part])
            columns = part[places]
            ratings = tastes.ratings(rng, rows, columns)
            arrays = (names[0][rows], names[1][columns], ratings)
            writer.write_table(pa.table(arrays, schema=schema))


def distinct_cells(rng, wanted, popular):
    """About ``wanted`` cells in each row, the popular columns first, in random order."""
    m, n = wanted.size, popular.size
    counts = np.minimum(np.floor(wanted + rng.random(m)), n // 2).astype(np.int64)
    ends = np.cumsum(popular) / popular.sum()
    taken, missing = np.zeros((m, n), bool), counts
    for attempt in range(8):  # again for what came twice; at last whatever the popularity
        rows = np.repeat(np.arange(m), missing)
        points = rng.random(rows.size)
        columns = np.searchsorted(ends, points) if attempt < 4 else (points * n).astype(np.int64)
        taken[rows, np.minimum(columns, n - 1)] = True
        missing = counts - taken.sum(axis=1)
    return np.divmod(rng.permutation(np.flatnonzero(taken)), n)


class Tastes:
    """Effects of both sides, a few factors and noise; a rating is the nearest star."""

    def __init__(self, rng, m, n):
        self.row_effects, self.column_effects = 0.45 * rng.standard_normal(m), rng.normal(0, 0.5, n)
        self.left = rng.standard_normal((m, TRUE_RANK), np.float32)
        self.right = rng.standard_normal((n, TRUE_RANK), np.float32)

    def ratings(self, rng, rows, columns):
        stars = np.empty(rows.size, np.int8)
        for part in iter_blocks(rows.size):
            i, j = rows[part], columns[part]
            score = 3.6 + self.row_effects[i] + self.column_effects[j] + rng.normal(0, 0.8, i.size)
            score += 0.15 * np.einsum("tk,tk->t", self.left[i], self.right[j])
            stars[part] = np.clip(np.rint(score), 1, 5)
        return stars


# One size, in a process of its own


def memory(what):
    """VmRSS or VmHWM of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"this system does not tell {what}")


class Watch:
    """When a fit had its data ready, had its start, and had taken each sweep; and the peak till then."""

    def __init__(self):
        self.times, self.peaks = {}, {}
        self._last = time.perf_counter()

    def note(self, what):
        now = time.perf_counter()
        self.times.setdefault(what, []).append(now - self._last)
        self.peaks[what] = memory("VmHWM")
        self._last = now


class Watched:
    """A sampled method that tells its watch how far it is."""

    watch: Watch

    def _first_chain(self, *arguments):
        self.watch.note("prepare")
        chain = super()._first_chain(*arguments)
        self.watch.note("start")
        return chain

    def _sampler(self, model):
        sampler = super()._sampler(model)

        def sweep(*arguments):
            self.watch.note("between")
            result = sampler.sweep(*arguments)
            self.watch.note("sweep")
            return result

        return sampler._replace(sweep=sweep)


class GASR(Watched, fr.GASR):
    """GASR, watched."""


class BPMF(Watched, fr.BPMF):
    """BPMF, watched."""


def fit(method, data, **settings):
    model = method(progress=False, random_state=0, **settings)
    model.watch = Watch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data)
    model.watch.note("keep")
    return model


def warm_up(method, rank):
    """Compile, and load the library that reads Parquet."""
    with tempfile.TemporaryDirectory() as folder:
        write_ratings(Path(folder) / FILE, 10_000)
        data = fr.read(Path(folder) / FILE)
    fit(method, data, max_rank=rank, n_sweeps=3, n_threads=2)


def one_size(path, rank, n_sweeps):
    """Read and fit; print what it took as JSON."""
    warm_up(GASR, rank)
    before = memory("VmRSS")
    started = time.perf_counter()
    data = fr.read(path)
    loading, loaded = time.perf_counter() - started, memory("VmHWM")
    model = fit(GASR, data, max_rank=rank, n_sweeps=n_sweeps, n_threads=2)
    factors = 4 * sum(data.shape) * (rank + 2)
    draws = sum(draw.nbytes for draw in model.recorded_draws())
    kept = [model.posterior_.mean, *model.posterior_.draws]
    draws += sum(draw.left.nbytes + draw.right.nbytes for draw in kept)
    told = {
        "entries": len(data),
        "shape": data.shape,
        "before": before,
        "loading": loading,
        "times": model.watch.times,
        "peaks": {"load": loaded} | model.watch.peaks,
        "factors": 2 * factors,
        "draws": draws,
    }
    print(json.dumps(told))


def in_child(*arguments):
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=LIMIT)
    return json.loads(done.stdout)


def show_size(told):
    n, (m, columns) = told["entries"], told["shape"]
    sweep = float(np.median(told["times"]["sweep"]))
    print(f"\n{n:,} entries, {m:,} x {columns:,}: {n / m:.0f} a row, {n / columns:.0f} a column")
    seconds = {what: told["times"][what][0] for what in ("prepare", "start")}
    print(
        f"  read in {told['loading']:.1f} s, prepared in {seconds['prepare']:.1f} s, "
        f"start in {seconds['start']:.1f} s; a sweep {sweep:.3f} s, {1e9 * sweep / n:.1f} ns an entry"
    )
    print(
        f"  peak {max(told['peaks'].values()) / 1e6:,.0f} MB, of which {told['before'] / 1e6:,.0f} "
        f"before reading, factors (before and after a sweep) {told['factors'] / 1e6:,.0f}, draws "
        f"{told['draws'] / 1e6:,.0f}"
    )
    with_factors, with_draws = ("start", "sweep", "keep"), ("sweep", "keep")
    for what in ("load", "prepare", *with_factors):
        more = told["peaks"][what] - told["before"]
        more -= told["factors"] * (what in with_factors) + told["draws"] * (what in with_draws)
        print(f"  peak till the end of {what + ':':<9} {more / n:5.1f} bytes an entry")
    return sweep / n


def sizes(entries, rank, n_sweeps):
    costs = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        for n_entries in entries:
            write_ratings(path, round(n_entries))
            costs.append(show_size(in_child("--read", path, "--rank", rank, "--sweeps", n_sweeps)))
    print(f"\ntime per entry, largest over smallest: {max(costs) / min(costs):.2f}")


# Ranks and threads


def ranks(which, n_sweeps):
    with tempfile.TemporaryDirectory() as folder:
        write_ratings(Path(folder) / FILE, 1_000_000)
        data = fr.read(Path(folder) / FILE)
    print(data)
    for method in (GASR, BPMF):
        for rank in which:
            warm_up(method, rank)
            times = {1: [], 2: []}
            for _ in range(3):
                for n_threads, taken in times.items():
                    model = fit(
                        method,
                        data,
                        max_rank=rank,
                        start="random",
                        n_sweeps=n_sweeps,
                        n_threads=n_threads,
                    )
                    taken += model.watch.times["sweep"]
            one, two = (float(np.median(taken)) for taken in times.values())
            print(
                f"{method.__name__} rank {rank:>3}: {1e3 * two:7.1f} ms a sweep on two threads, "
                f"{1e9 * two / len(data) / rank:.2f} ns an entry and rank; one thread {one / two:.2f}x"
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entries", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    parser.add_argument("--rank", type=int, default=30)
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--ranks", type=int, nargs="+")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        one_size(given.read, given.rank, given.sweeps)
    elif given.ranks:
        ranks(given.ranks, given.sweeps)
    else:
        sizes(given.entries, given.rank, given.sweeps)


if __name__ == "__main__":
    main()
