"""The figures on synthetic data: errors against the oracle, ranks, coverage of intervals.

    python benchmarks/synthetic.py errors      m = n = 500, q = 5, four missing rates, two noise levels
    python benchmarks/synthetic.py ranks       the paper's protocol: m = n = 10 q, max_rank 100
    python benchmarks/synthetic.py coverage    intervals for the signal at 50, 80, 90 and 95%
    python benchmarks/synthetic.py small       the same at 90% for tables of 40 to 1,500 entries
    python benchmarks/synthetic.py weak        the same for small tables with more noise than signal
    python benchmarks/synthetic.py tiny        intervals for observations with 3 to 20 entries

All with the default settings but for the number of sweeps and, for ranks, max_rank. The oracle error is
sigma sqrt(q (m + n - q) / N): what least squares would reach if the column space were known.
"""

import argparse
import math
import time

import numpy as np

import fillrank as fr


def _error(model, truth):
    m, n = truth.shape
    completed = model.predict_block(np.arange(m), np.arange(n))
    return math.sqrt(np.mean((completed - truth) ** 2))


def errors(seeds):
    """RMSE against the noise-free matrix, all cells, as a multiple of the oracle's."""
    print("| noise | missing | RMSE / oracle, mean (each data set) | rank found | seconds a fit |")
    print("|---|---|---|---|---|")
    for noise in (1.0, math.sqrt(5.0)):
        for missing in (0.9, 0.8, 0.5, 0.0):
            ratios, ranks, seconds = [], [], []
            for seed in range(seeds):
                data, truth = fr.synthetic(500, 500, 5, noise, missing, random_state=seed)
                started = time.perf_counter()
                model = fr.GASR(n_sweeps=200, random_state=seed, progress=False).fit(data)
                seconds.append(time.perf_counter() - started)
                oracle = noise * math.sqrt(5 * 995 / len(data))
                ratios.append(_error(model, truth) / oracle)
                ranks.append(model.rank_)
            each = ", ".join(f"{ratio:.3f}" for ratio in ratios)
            print(
                f"| {noise:.3g} | {missing:.0%} | {np.mean(ratios):.3f} ({each}) | "
                f"{sorted(set(ranks))} | {np.mean(seconds):.1f} |",
                flush=True,
            )


def ranks(seeds):
    """Recovered against true rank, fully observed, 200 sweeps."""
    print("| q | rank at noise 1 | rank at noise sqrt(q) |")
    print("|---|---|---|")
    for q in range(5, 50, 5):
        found = []
        for noise in (1.0, math.sqrt(q)):
            each = []
            for seed in range(seeds):
                data, _ = fr.synthetic(10 * q, 10 * q, q, noise, 0.0, random_state=seed)
                model = fr.GASR(max_rank=100, n_sweeps=200, random_state=seed, progress=False)
                each.append(str(model.fit(data).rank_))
            found.append(", ".join(each))
        print(f"| {q} | {found[0]} | {found[1]} |", flush=True)


def coverage(seeds):
    """The share of the cells whose noise-free value lies in its interval, over all cells."""
    levels = (0.5, 0.8, 0.9, 0.95)
    print("| m x n, q, noise, missing | " + " | ".join(f"{level:.0%}" for level in levels) + " |")
    print("|---|" + "---|" * len(levels))
    cases = [
        (500, 500, 5, 1.0, 0.9),
        (500, 500, 5, 1.0, 0.8),
        (500, 500, 5, 1.0, 0.5),
        (500, 500, 5, math.sqrt(5.0), 0.9),
        (500, 500, 5, math.sqrt(5.0), 0.5),
        (1000, 200, 10, 1.0, 0.6),
    ]
    for m, n, q, noise, missing in cases:
        shares = []
        for seed in range(seeds):
            data, truth = fr.synthetic(m, n, q, noise, missing, random_state=seed)
            model = fr.GASR(random_state=seed, progress=False).fit(data)
            rng = np.random.default_rng(seed)
            rows, columns = rng.integers(m, size=20_000), rng.integers(n, size=20_000)
            signal = truth[rows, columns]
            row = []
            for level in levels:
                low, high = model.predict_interval(rows, columns, level, "signal")
                row.append(np.mean((low <= signal) & (signal <= high)))
            shares.append(row)
        text = " | ".join(f"{100 * share:.1f}" for share in np.mean(shares, axis=0))
        print(f"| {m} x {n}, {q}, {noise:.3g}, {missing:.0%} | {text} |", flush=True)


def small(seeds):
    """Coverage of 90% intervals for the signal and the noise found, table by table."""
    print("| m x n, q, missing | entries | coverage, mean (each) | noise variance over the truth |")
    print("|---|---|---|---|")
    cases = [
        (10, 6, 1, 0.3),
        (20, 10, 2, 0.4),
        (30, 20, 2, 0.7),
        (50, 20, 2, 0.5),
        (100, 30, 3, 0.5),
    ]
    for m, n, q, missing in cases:
        shares, noise = [], []
        for seed in range(seeds):
            data, truth = fr.synthetic(m, n, q, 0.5, missing, random_state=seed)
            model = fr.GASR(n_sweeps=400, random_state=seed, progress=False).fit(data)
            rows, columns = np.divmod(np.arange(m * n), n)
            low, high = model.predict_interval(rows, columns, 0.9, "signal")
            shares.append(np.mean((low <= truth.ravel()) & (truth.ravel() <= high)))
            noise.append(model.noise_variance_ / 0.25)
        each = ", ".join(f"{100 * share:.0f}" for share in sorted(shares))
        print(
            f"| {m} x {n}, {q}, {missing:.0%} | {len(data)} | {100 * np.mean(shares):.1f} ({each}) | "
            f"{min(noise):.2f} to {max(noise):.2f} |",
            flush=True,
        )


def weak(seeds):
    """Coverage of 90% intervals for the signal, and its error, with more noise than signal.

    Two factors, so that the standard deviation of the signal is 1.41, at noise 1.5.
    """
    print("| m x n | missing | coverage, mean +- standard error | RMSE |")
    print("|---|---|---|---|")
    for m, n, missing in ((100, 20, 0.5), (100, 20, 0.8), (20, 10, 0.5), (20, 10, 0.8)):
        shares, errors = [], []
        for seed in range(seeds):
            data, truth = fr.synthetic(m, n, 2, 1.5, missing, random_state=seed)
            model = fr.GASR(random_state=seed, progress=False).fit(data)
            rows, columns = np.divmod(np.arange(m * n), n)
            low, high = model.predict_interval(rows, columns, 0.9, "signal")
            shares.append(np.mean((low <= truth.ravel()) & (truth.ravel() <= high)))
            errors.append(np.sqrt(np.mean((model.predict(rows, columns) - truth.ravel()) ** 2)))
        error = 100 * np.std(shares) / math.sqrt(seeds)
        print(
            f"| {m} x {n} | {missing:.0%} | {100 * np.mean(shares):.1f}% +- {error:.1f} | "
            f"{np.mean(errors):.3f} |",
            flush=True,
        )


def tiny(seeds):
    """Coverage of 90% intervals for observations in tables of a few entries.

    Tables of 6 x 5 cells: independent cells, or effects of rows and columns with half as much noise;
    each table has a location and a scale of its own. Hidden cells are counted.
    """
    print("| entries | independent cells | effects |")
    print("|---|---|---|")
    for n_entries in (3, 5, 8, 12, 20):
        shares = [_tiny_coverage(n_entries, seeds, additive) for additive in (False, True)]
        print(f"| {n_entries} | {shares[0]} | {shares[1]} |", flush=True)


def _tiny_coverage(n_entries, seeds, additive):
    held = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, n_entries])
        X = rng.standard_normal((6, 5))
        if additive:
            X = 0.5 * X + rng.standard_normal((6, 1)) + rng.standard_normal((1, 5))
        X = rng.normal(0, 100) + np.exp(rng.normal(0, 2)) * X
        seen, hidden = np.split(rng.permutation(30), [n_entries])
        table = np.full(30, np.nan)
        table[seen] = X.flat[seen]
        i, j = np.unravel_index(hidden, X.shape)
        model = fr.GASR(
            n_sweeps=150, value_range=None, n_threads=1, random_state=seed, progress=False
        )
        low, high = model.fit(table.reshape(6, 5)).predict_interval(i, j, 0.9)
        held.append(np.mean((low <= X[i, j]) & (X[i, j] <= high)))
    error = np.std(held) / math.sqrt(seeds)
    return f"{100 * np.mean(held):.1f}% +- {100 * error:.1f}"


WORK = {
    "errors": errors,
    "ranks": ranks,
    "coverage": coverage,
    "small": small,
    "weak": weak,
    "tiny": tiny,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=WORK)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    WORK[arguments.what](arguments.seeds)
