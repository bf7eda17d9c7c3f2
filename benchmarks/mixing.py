"""Effective draws of held-out predictions, a sweep and a second, by how far draws are carried.

    python benchmarks/mixing.py [--data FOLDER]

GASR on synthetic tables and, with --data, on MovieLens 100K and 1M in FOLDER; every setting in turn. The
effective draws of 200 cells chosen at random are given as their median and their 5% quantile, in
shares of the sweeps after the burn-in; "tails" are those of the 5% and 95% quantiles, the fewer of both.
Errors are on a tenth of the training entries that was kept back: no test entry is looked at.
"""

import argparse
import time
import warnings

import numpy as np
from arviz_stats.base import array_stats

import fillrank as fr
from fillrank.samplers import gasr

RELAXATIONS = (0.0, -0.3, -0.5, -0.7)
SWEEPS, BURN_IN = 450, 50


def tables(folder):
    """(name, training entries, held-out entries) of each table."""
    for rank, missing in ((5, 0.8), (10, 0.9)):
        data, _ = fr.synthetic(500, 500, rank, noise=1.0, missing=missing, random_state=0)
        yield f"500 x 500, q = {rank}, {100 * missing:.0f}% missing", *data.split(0.1, 1)
    for name in ("ml-100k", "ml-1m") if folder else ():
        train, _ = fr.datasets.load(name, path=f"{folder}/{name}").split(0.2, random_state=0)
        yield name, *train.split(0.1, 1)


def effective(draws):
    """Effective draws of the mean of one quantity, in shares of the draws."""
    return float(array_stats.ess(draws[None], chain_axis=0, draw_axis=1, method="mean")) / len(
        draws
    )


def in_tails(draws):
    """The same of its 5% and 95% quantiles, the smaller of both."""
    return min(effective((draws < np.quantile(draws, q)).astype(float)) for q in (0.05, 0.95))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder with ml-100k and ml-1m")
    warnings.simplefilter("ignore")
    print("| table | relaxation | a sweep: median (5%) | tails | a second | RMSE held out |")
    print("|---|---|---|---|---|---|")
    for name, train, held_out in tables(parser.parse_args().data):
        for relaxation in RELAXATIONS:
            gasr.RELAXATION = relaxation
            model = fr.GASR(
                max_rank=30, n_sweeps=BURN_IN, burn_in=BURN_IN - 1, random_state=0, progress=False
            ).fit(train)
            started = time.perf_counter()
            model.run_longer(SWEEPS - BURN_IN)
            seconds = time.perf_counter() - started
            cells = model.traces_.probes[0].T
            shares = [effective(draws) for draws in cells]
            tails = np.median([in_tails(draws) for draws in cells])
            per_second = np.median(shares) * (SWEEPS - BURN_IN) / seconds
            print(
                f"| {name} | {relaxation:g} | {np.median(shares):.2f} ({np.quantile(shares, 0.05):.2f}) "
                f"| {tails:.2f} | {per_second:.0f} | {fr.score(held_out, model)['rmse']:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
