"""BPMF: errors and mixing; its speed beside SMURFF's is measured by benchmarks/peers.

    python benchmarks/bpmf.py synthetic                  500 x 500, q = 5, noise 1, against the oracle
    python benchmarks/bpmf.py ratings --data FOLDER      MovieLens 1M, one 80/20 split, rank 30
    python benchmarks/bpmf.py mixing --data FOLDER       joint draws of rows against entry by entry

FOLDER holds ratings.dat of MovieLens 1M.
"""

import argparse
import time

import numpy as np
from arviz_stats.base import array_stats

import fillrank as fr
from fillrank.draws.streams import chain_key
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.samplers import bpmf
from standard_data import standard_data


def synthetic(_):
    """RMSE against the noise-free matrix, over the oracle's; noise sampled."""
    print("| missing | RMSE / oracle of 3 data sets | mean | ranks |")
    print("|---|---|---|---|")
    for missing in (0.0, 0.5, 0.8, 0.9):
        ratios, ranks = [], []
        for seed in range(3):
            data, truth = fr.synthetic(500, 500, 5, 1.0, missing, random_state=seed)
            model = fr.BPMF(max_rank=30, n_sweeps=200, random_state=seed, progress=False).fit(data)
            error = model.predict_block(np.arange(500), np.arange(500)) - truth
            ratios.append(np.sqrt(np.mean(error**2)) / np.sqrt(5 * 995 / len(data)))
            ranks.append(model.rank_)
        each = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        print(f"| {missing:.0%} | {each} | {np.mean(ratios):.3f} | {ranks} |", flush=True)


def ratings(arguments):
    """Test errors: as its authors have it, with the noise sampled, and with all defaults."""
    train, test = fr.datasets.load("ml-1m", path=arguments.data).split(0.2, random_state=0)
    hundred = {"max_rank": 30, "n_sweeps": 100, "burn_in": 0}
    methods = {
        "as published": fr.BPMF.as_published(random_state=0, progress=False),
        "100 sweeps, all averaged": fr.BPMF(**hundred, random_state=0, progress=False),
        "defaults": fr.BPMF(random_state=0, progress=False),
    }
    print("| BPMF | RMSE | NMAE | coverage | noise variance | sweeps | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name, model in methods.items():
        started = time.perf_counter()
        model.fit(train)
        seconds = time.perf_counter() - started
        scores = fr.score(test, model)
        print(
            f"| {name} | {scores['rmse']:.4f} | {scores['nmae']:.4f} | {scores['coverage']:.3f} | "
            f"{model.noise_variance_:.3f} | {model.n_sweeps_} | {seconds:.0f} |",
            flush=True,
        )


def _frames(rank, workers):
    prior = bpmf.Hyperprior(2.0, float(rank), 0.1)
    return {
        name: bpmf.Context(prior, name == "joint", chain_key(0, 0), workers)
        for name in ("joint", "entries")
    }


def mixing(arguments):
    """Time a sweep and count effective draws of 200 predictions, both ways in turns."""
    tables = {
        "synthetic": fr.synthetic(500, 500, 5, 1.0, 0.8, random_state=0)[0],
        "ratings": fr.datasets.load("ml-1m", path=arguments.data),
    }
    print("| table | rank | draws | ms a sweep | effective draws a sweep | a second |")
    print("|---|---|---|---|---|---|")
    for table, rank in (("synthetic", 5), ("synthetic", 30), ("ratings", 10), ("ratings", 30)):
        data = standard_data(tables[table], np.dtype("float32"))
        rng = np.random.default_rng(0)
        cells = [rng.integers(size, size=200) for size in data.shape]
        start = bpmf.init(data.shape, rank, 0.5, np.dtype("float32"), rng)
        with one_blas_thread(), Workers(arguments.threads) as workers:
            frames = _frames(rank, workers)
            states = dict.fromkeys(frames, start)
            seconds, traces = {name: [] for name in frames}, {name: [] for name in frames}
            for _ in range(300):
                for name, context in frames.items():
                    started = time.perf_counter()
                    states[name], _ = bpmf.sweep(states[name], data, context)
                    seconds[name].append(time.perf_counter() - started)
                    traces[name].append(bpmf.draw(states[name]).at(*cells))
        for name in frames:
            trace = np.array(traces[name][100:]).T[:, None]
            ess = [array_stats.ess(t, chain_axis=0, draw_axis=1, method="mean") for t in trace]
            share, time_each = np.median(ess) / trace.shape[-1], np.median(seconds[name])
            print(
                f"| {table} | {rank} | {name} | {1e3 * time_each:.1f} | {share:.2f} | "
                f"{share / time_each:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    what = {"synthetic": synthetic, "ratings": ratings, "mixing": mixing}
    parser.add_argument("what", choices=what)
    parser.add_argument("--data", help="folder with ratings.dat")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    what[arguments.what](arguments)
