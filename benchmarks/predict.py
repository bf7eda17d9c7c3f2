"""Predictions a second by names and by positions, and the error of the mean that they come from.

    python benchmarks/predict.py [--pairs N]

GASR on generated ratings of MovieLens 1M's shape, 150 sweeps of which 100 are kept as draws; then random
pairs, on two threads where nothing else is said. Everything is timed in turns in one run; medians are
printed. Names are whole numbers without wide gaps, whole numbers far apart, and text. Sums in registers,
which touch no memory, show what a second thread can bring on the machine at that moment.
"""

import argparse
import time
import warnings
from dataclasses import replace

import numpy as np
from numba import njit

import fillrank as fr
from fillrank.completion import Completion
from fillrank.posterior.metrics import rmse
from fillrank.runtime.threads import Workers

SHAPE = (6040, 3706)
N_ENTRIES = 1_000_000
REPEATS = 7
SINGLE_PAIRS = 2_000
JUDGED = 200_000


@njit(nogil=True)
def _sum_up(n):
    total = 1.0
    for k in range(n):
        total = 0.999 * total + k
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10_000_000)
    n_pairs = parser.parse_args().pairs
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.errors.ConvergenceWarning)  # so few sweeps are meant
        model = fr.GASR(n_sweeps=150, n_threads=2, random_state=0, progress=False).fit(_ratings())
    _print_error(model, rng)
    _print_rates(model, rng, n_pairs)
    _print_latency(model)


def _ratings() -> fr.Observations:
    """Stars from 1 to 5; one number in seven or so names no column, as in MovieLens 1M."""
    rng = np.random.default_rng(1)
    missing = 1 - N_ENTRIES / np.prod(SHAPE)
    scores, _ = fr.synthetic(*SHAPE, rank=10, noise=2.0, missing=missing, random_state=rng)
    rows = 1 + rng.permutation(SHAPE[0])
    columns = 1 + rng.choice(SHAPE[1] * 7 // 6, SHAPE[1], replace=False)
    stars = np.clip(np.round(3.5 + scores.values / 3), 1, 5)
    return fr.Observations.from_triplets(
        rows[scores.row_index], columns[scores.column_index], stars
    )


def _print_error(model: fr.GASR, rng: np.random.Generator) -> None:
    """How far the compressed mean is from the mean over all draws, taken one by one."""
    units = model.posterior_.units
    draws = model.recorded_draws()
    i, j = (rng.integers(n, size=JUDGED) for n in model.observations_.shape)
    values = np.array([draw.at(i, j).astype(np.float32) for draw in draws])
    exact = units.restore(values.mean(axis=0), j)
    with Workers(1) as alone:
        error = rmse(exact, model.posterior_.predict(i, j, alone)) / units.shared_scale
    spread = np.sqrt(values.var(axis=0).mean())
    print(f"{len(draws)} draws, posterior sd {spread:.4f} (standard units)")
    print(
        f"Monte Carlo error of the mean, if draws were independent: {spread / len(draws) ** 0.5:.4f}"
    )
    print(f"error of the mean in {model.posterior_.mean.left.shape[1]} factors: {error:.4f}")


def _print_rates(model: fr.GASR, rng: np.random.Generator, n_pairs: int) -> None:
    i, j = (rng.integers(n, size=n_pairs) for n in model.observations_.shape)
    with Workers(1) as one, Workers(2) as two:
        asked = {
            "positions, one thread": lambda: model.posterior_.predict(i, j, one),
            "positions, two threads": lambda: model.posterior_.predict(i, j, two),
        }
        sums = {"one": lambda: _sums(one), "two": lambda: _sums(two)}
        for kind, named in _named_otherwise(model).items():
            names = named.observations.row_labels[i], named.observations.column_labels[j]
            asked[kind] = lambda named=named, names=names: named.predict(*names)
        seconds = _in_turns(asked | sums)
    for what in asked:
        print(f"{what:24} {n_pairs / seconds[what] / 1e6:6.1f} million pairs a second")
    ratio = seconds["positions, one thread"] / seconds["positions, two threads"]
    print(f"two threads over one: {ratio:.2f}; of sums {seconds['one'] / seconds['two']:.2f}")


def _sums(workers: Workers) -> None:
    workers.for_rows(lambda start, stop: _sum_up((stop - start) * 10**6), 10**6 * np.arange(65))


def _named_otherwise(model: fr.GASR) -> dict[str, Completion]:
    """The same result with its names as they are, far apart, and as text."""
    apart = [10**9 * labels for labels in _labels(model)]
    text = [np.array([f"name {k}" for k in labels], dtype=object) for labels in _labels(model)]
    kinds = {"whole numbers": _labels(model), "numbers far apart": apart, "text": text}
    return {kind: _with_names(model.completion_, *labels) for kind, labels in kinds.items()}


def _labels(model: fr.GASR) -> tuple[np.ndarray, np.ndarray]:
    return model.observations_.row_labels, model.observations_.column_labels


def _with_names(completion: Completion, rows: np.ndarray, columns: np.ndarray) -> Completion:
    named = replace(completion.observations, row_labels=rows, column_labels=columns)
    return replace(completion, observations=named)


def _in_turns(asked: dict) -> dict[str, float]:
    """Median seconds of each, after one run that may compile."""
    seconds = {what: [] for what in asked}
    for _ in range(REPEATS + 1):
        for what, ask in asked.items():
            start = time.perf_counter()
            ask()
            seconds[what].append(time.perf_counter() - start)
    return {what: float(np.median(taken[1:])) for what, taken in seconds.items()}


def _print_latency(model: fr.GASR) -> None:
    row, column = (int(labels[0]) for labels in _labels(model))
    seconds = []
    for _ in range(SINGLE_PAIRS):
        start = time.perf_counter()
        model.predict(row, column)
        seconds.append(time.perf_counter() - start)
    print(f"one pair by its names: {1e6 * np.median(seconds):.0f} microseconds")


if __name__ == "__main__":
    main()
