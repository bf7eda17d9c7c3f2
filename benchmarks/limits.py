"""Where completion works and where it ends: signal-to-noise ratio by missing cells by size of the table.

    python benchmarks/limits.py [--quick] [--results FILE] [--picture FILE]

Each table is generated: a mean for each column, three factors whose sum has the variance 1, and
Gaussian noise. The signal-to-noise ratio is the variance of the sum of the factors over that of the
noise. GASR is fitted with its default settings. Errors are those of missing cells against the value
without noise, so that a perfect method has the error 0. Coverage is that of 90% intervals, for the
signal and for observations.

The column mean is that of the observed entries. The oracle is told the noise level, the column means
and the factors of all columns, and estimates those of the rows by their posterior mean; or it is told
the factors of all rows and estimates the columns. Each is a lower bound, on average over tables, of the
error of any method that is told neither, and the larger one is reported: the floor.

Each table is one line of the results, written when it is done; a command that was interrupted continues
where it stopped. --quick measures the two smaller sizes with one table each, in about a minute.
"""

import argparse
import json
import math
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

import fillrank as fr

N_FACTORS = 3
# The number of tables for each size: large tables vary less, and take longer.
SIZES = {(30, 20): 8, (100, 40): 4, (400, 100): 2}
QUICK_SIZES = {(30, 20): 1, (100, 40): 1}
MISSING = (0.2, 0.5, 0.8, 0.95)
RATIOS = (0.3, 1.0, 3.0, 10.0)
LEVEL = 0.9


class Cell(NamedTuple):
    """A table of the grid."""

    n_rows: int
    n_columns: int
    missing: float
    ratio: float
    seed: int

    @property
    def noise(self):
        """The standard deviation of the noise."""
        return 1.0 / math.sqrt(self.ratio)


class Table(NamedTuple):
    """A generated table, with all of its values and what it is made of."""

    complete: np.ndarray
    seen: np.ndarray
    means: np.ndarray
    row_factors: np.ndarray
    column_factors: np.ndarray

    @property
    def values(self):
        """The values that are observed, NaN elsewhere."""
        return np.where(self.seen, self.complete, np.nan)

    @property
    def signal(self):
        """The values without noise."""
        return self.means + self.row_factors @ self.column_factors.T


def grid(sizes):
    """All tables, small ones first."""
    return [
        Cell(m, n, missing, ratio, seed)
        for (m, n), n_tables in sizes.items()
        for missing in MISSING
        for ratio in RATIOS
        for seed in range(n_tables)
    ]


def simulate(cell):
    """A table with at least one entry in each column."""
    m, n = cell.n_rows, cell.n_columns
    rng = np.random.default_rng([m, n, round(100 * cell.missing), cell.seed])
    means = rng.standard_normal(n)
    A = rng.standard_normal((m, N_FACTORS))
    B = rng.standard_normal((n, N_FACTORS)) / math.sqrt(N_FACTORS)
    order = rng.random((m, n))
    order[rng.integers(m, size=n), np.arange(n)] = -1.0
    seen = order.ravel().argsort().argsort().reshape(m, n) < round((1 - cell.missing) * m * n)
    complete = means + A @ B.T + cell.noise * rng.standard_normal((m, n))
    return Table(complete, seen, means, A, B)


def posterior_means(values, design, prior, noise):
    """design @ the posterior mean of the coefficients of each column of values, given the design.

    The coefficients have independent Gaussian priors around 0 with the variances ``prior``.
    """
    predicted = np.empty(values.shape)
    for j, column in enumerate(values.T):
        seen = np.isfinite(column)
        X = design[seen]
        precision = X.T @ X / noise**2 + np.diag(1.0 / np.asarray(prior))
        predicted[:, j] = design @ np.linalg.solve(precision, X.T @ column[seen] / noise**2)
    return predicted


def oracle_predictions(table, noise):
    """The predictions of the oracle that is told the columns, and of the one that is told the rows."""
    ones = np.ones((len(table.values), 1))
    told_columns = (
        table.means
        + posterior_means(
            (table.values - table.means).T, table.column_factors, np.ones(N_FACTORS), noise
        ).T
    )
    prior = [1.0] + N_FACTORS * [1.0 / N_FACTORS]
    told_rows = posterior_means(table.values, np.hstack([ones, table.row_factors]), prior, noise)
    return told_columns, told_rows


def measure(cell):
    """Fit one table: squared errors of the missing cells, coverage and rank."""
    table = simulate(cell)
    rows, columns = np.nonzero(~table.seen)
    signal = table.signal[rows, columns]

    def squared_error(predicted):
        return float(np.mean((predicted[rows, columns] - signal) ** 2))

    def coverage(kind, values):
        low, high = model.predict_interval(rows, columns, LEVEL, kind)
        return float(np.mean((low <= values) & (values <= high)))

    started = time.perf_counter()
    method = fr.GASR(random_state=cell.seed, n_threads=1, progress=False)
    model = method.fit(table.values)
    seconds = time.perf_counter() - started
    told_columns, told_rows = oracle_predictions(table, cell.noise)
    column_means = np.broadcast_to(np.nanmean(table.values, axis=0), table.values.shape)
    return cell._asdict() | {
        "model": float(np.mean((model.predict(rows, columns) - signal) ** 2)),
        "column_mean": squared_error(column_means),
        "told_columns": squared_error(told_columns),
        "told_rows": squared_error(told_rows),
        "signal_coverage": coverage("signal", signal),
        "observation_coverage": coverage("observation", table.complete[rows, columns]),
        "rank": int(model.rank_),
        "seconds": round(seconds, 2),
    }


def read_results(path):
    """The lines of an earlier run; one that was cut off is measured again."""
    results = []
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            results.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return {Cell(*(result[name] for name in Cell._fields)): result for result in results}


def run(cells, path):
    """Measure what the results do not have yet."""
    done = read_results(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as lines:
        for cell in cells:
            if cell not in done:
                done[cell] = measure(cell)
                lines.write("\n" + json.dumps(done[cell]))
                lines.flush()
    return [done[cell] for cell in cells]


class Summary(NamedTuple):
    """The tables of one cell of the grid together."""

    to_column_mean: float
    to_floor: float
    signal_coverage: float
    observation_coverage: float
    ranks: tuple[int, ...]


def summarise(results):
    """A Summary for each (rows, columns, missing, ratio)."""
    groups = defaultdict(list)
    for result in results:
        key = result["n_rows"], result["n_columns"], result["missing"], result["ratio"]
        groups[key].append(result)
    return {key: _summary(group) for key, group in groups.items()}


def _summary(group):
    def error(name):
        return math.sqrt(np.mean([result[name] for result in group]))

    def mean(name):
        return float(np.mean([result[name] for result in group]))

    floor = max(error("told_columns"), error("told_rows"))
    return Summary(
        error("model") / error("column_mean"),
        error("model") / floor,
        mean("signal_coverage"),
        mean("observation_coverage"),
        tuple(sorted(result["rank"] for result in group)),
    )


def markdown(summaries):
    """The table of docs/limits.md."""
    lines = [
        "| table | missing | entries | signal / noise | error / column mean | error / floor | "
        "coverage, signal | coverage, observations | rank |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (m, n, missing, ratio), summary in summaries.items():
        lines.append(
            f"| {m} x {n} | {missing:.0%} | {round((1 - missing) * m * n):,} | {ratio:g} | "
            f"{summary.to_column_mean:.2f} | {summary.to_floor:.2f} | {summary.signal_coverage:.0%} | "
            f"{summary.observation_coverage:.0%} | {_range(summary.ranks)} |"
        )
    return "\n".join(lines)


def _range(ranks):
    return f"{ranks[0]}" if ranks[0] == ranks[-1] else f"{ranks[0]} to {ranks[-1]}"


def draw(summaries, path):
    """Maps of the error relative to the column mean, and of the signal's coverage, for each size."""
    sizes = sorted({key[:2] for key in summaries})
    figure = Figure(figsize=(3.4 * len(sizes), 6.2), layout="constrained")
    axes = figure.subplots(2, len(sizes), squeeze=False)
    for (m, n), (upper, lower) in zip(sizes, axes.T, strict=True):
        part = [[summaries[m, n, missing, ratio] for ratio in RATIOS] for missing in MISSING]
        errors = np.array([[summary.to_column_mean for summary in line] for line in part])
        coverage = 100 * np.array([[summary.signal_coverage for summary in line] for line in part])
        _map(upper, errors, "{:.2f}", {"cmap": "viridis_r", "vmin": 0.0, "vmax": 1.1})
        _map(lower, coverage, "{:.0f}", {"cmap": "PuOr", "vmin": 80, "vmax": 100})
        upper.set_title(f"{m} x {n}: error / column mean")
        lower.set_title("coverage, signal, in %")
        lower.set_xlabel("signal-to-noise ratio")
    for ax in axes[:, 0]:
        ax.set_ylabel("missing")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _map(ax, values, form, colours):
    image = ax.imshow(values, aspect="auto", **colours)
    ax.set_xticks(range(len(RATIOS)), [f"{ratio:g}" for ratio in RATIOS])
    ax.set_yticks(range(len(MISSING)), [f"{missing:.0%}" for missing in MISSING])
    for (i, j), value in np.ndenumerate(values):
        red, green, blue, _ = image.to_rgba(value)
        dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
        ax.text(j, i, form.format(value), ha="center", va="center", color="w" if dark else "k")


def main(given=None):
    """Measure the grid, print the table of the docs and draw the maps."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--results", type=Path, default=Path("build/limits.jsonl"))
    parser.add_argument("--picture", type=Path, default=Path("build/limits.png"))
    arguments = parser.parse_args(given)
    cells = grid(QUICK_SIZES if arguments.quick else SIZES)
    results = run(cells, arguments.results)
    summaries = summarise(results)
    print(markdown(summaries))
    print(f"\nseconds in fits: {sum(result['seconds'] for result in results):.0f}")
    draw(summaries, arguments.picture)


if __name__ == "__main__":
    main()
