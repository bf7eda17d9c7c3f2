"""What all runners share: the problem that they are given, the clock, and the file that they leave.

A runner is a script that fits one method in its own environment:

    python run_NAME.py PROBLEM.npz RESULT.json --rank 30 --threads 2 --iterations 100 --seed 0

PROBLEM.npz has the training and the test entries as positions and values, and the shape of the table.
RESULT.json has a curve of the test RMSE over the seconds that the method itself took, the seconds of
one iteration, and the memory that the fit added. This module needs numpy alone: peers have no fillrank.
"""

import argparse
import json
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

# The scale of ratings: all predictions are kept within it.
LOW, HIGH = 1.0, 5.0
# The test RMSE to reach: what SMURFF was said to have after 100 sweeps.
TARGET = 0.846
# Where a peer cannot be watched it is fitted anew for each of these numbers of iterations.
FITS = (1, 2, 5, 10, 20, 40)
_MEMORY = Path("/proc/self")


class Entries(NamedTuple):
    """Entries of a table: positions and values."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray


class Problem(NamedTuple):
    """What to fit, how, and where to leave what came of it."""

    train: Entries
    test: Entries
    shape: tuple[int, int]
    rank: int
    threads: int
    iterations: int
    seed: int
    variant: str
    result: Path


def write_entries(path, train, test, shape):
    """Leave the entries for the runners."""
    parts = {"train": train, "test": test}
    arrays = {f"{part}_{name}": a for part, e in parts.items() for name, a in e._asdict().items()}
    np.savez(path, shape=np.array(shape), **arrays)


def read_problem(arguments=None):
    """The problem that the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", type=Path)
    parser.add_argument("result", type=Path)
    for name in ("rank", "threads", "iterations", "seed"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--variant", default="")
    given = vars(parser.parse_args(arguments))
    with np.load(given.pop("problem")) as arrays:
        train, test = (
            Entries(*(arrays[f"{part}_{name}"] for name in Entries._fields))
            for part in ("train", "test")
        )
        m, n = arrays["shape"].tolist()
    return Problem(train, test, (m, n), **given)


class Clock:
    """Seconds of the method's own work: it stands still while predictions are scored."""

    def __init__(self):
        self._start = time.perf_counter()

    @property
    def seconds(self):
        """How long the method has worked."""
        return time.perf_counter() - self._start

    @contextmanager
    def paused(self):
        """Not counted."""
        began = time.perf_counter()
        yield
        self._start += time.perf_counter() - began


class Memory:
    """The memory that a fit adds at its peak, in MB; None where the system does not say."""

    def __init__(self):
        self._before = None
        if (_MEMORY / "clear_refs").exists():
            (_MEMORY / "clear_refs").write_text("5")  # the peak is now what is in use
            self._before = self._read("VmRSS")

    def added(self):
        """How far the peak since then is above what was in use."""
        return None if self._before is None else self._read("VmHWM") - self._before

    def _read(self, name):
        lines = (_MEMORY / "status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


class Curve:
    """Test errors over the seconds of work.

    A method that samples is scored by the average of its predictions so far, kept within the scale.
    """

    def __init__(self, test):
        self._test = test
        self._sum = np.zeros(len(test.values))
        self._n = 0
        self.points = []

    def average(self, iteration, seconds, predictions):
        """A point by the average of these predictions and all before."""
        self._sum += predictions
        self._n += 1
        self.point(iteration, seconds, self._sum / self._n)

    def point(self, iteration, seconds, predictions):
        """A point by these predictions."""
        error = np.clip(predictions, LOW, HIGH) - self._test.values
        rmse = float(np.sqrt(np.mean(error**2)))
        self.points.append({"iteration": iteration, "seconds": seconds, "test_rmse": rmse})


def first_as_good(points, target=TARGET):
    """The first point of a curve that is as good as the target, or None."""
    return next((point for point in points if point["test_rmse"] <= target), None)


class Work(NamedTuple):
    """The seconds of each iteration; before the first and after the last; and of the first use."""

    iterations: list
    start: float | None = None
    finish: float = 0.0
    first_use: float | None = None


def fit_again_and_again(problem, fit, predict):
    """The curve and the seconds of iterations of a method that cannot be watched.

    ``fit(n)`` gives a model after n iterations; an iteration takes the difference of two fits.
    """
    curve = Curve(problem.test)
    counts = [n for n in FITS if n <= problem.iterations]
    for n in counts:
        clock = Clock()
        model = fit(n)
        curve.point(n, clock.seconds, predict(model))
    seconds = [point["seconds"] for point in curve.points]
    return curve, Work((np.diff(seconds) / np.diff(counts)).tolist())


def write_result(problem, version, curve, work, memory):
    """Leave the result; ``memory`` in MB, as `Memory.added` has it."""
    low, median, high = np.quantile(work.iterations, [0.1, 0.5, 0.9]).tolist()
    result = {
        "version": version,
        "curve": curve.points,
        "seconds_per_iteration": {"median": median, "low": low, "high": high},
        "start_seconds": work.start,
        "finish_seconds": work.finish,
        "first_use_seconds": work.first_use,
        "memory_mb": memory,
    }
    problem.result.write_text(json.dumps(result, indent=1), encoding="utf-8")
