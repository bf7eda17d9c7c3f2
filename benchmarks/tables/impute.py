"""The runner of the methods in Python: fills in all tables of a folder.

    python impute.py FOLDER METHOD [--threads 2]

FOLDER has the tables table-0.csv, table-1.csv, ...: numbers without labels, "nan" for missing values. Of
each it leaves mean-0.csv, the filled table; low-0.csv and high-0.csv, if the method has intervals; and
last seconds-0.txt, the time of the fit and the predictions. impute.R does the same for methods in R.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from python_methods import GASR_SETTINGS, PYTHON_METHODS


def fill_folder(folder, method, n_threads):
    """Fill in the tables of a folder, one after the other."""
    fill = PYTHON_METHODS[method]
    if method in GASR_SETTINGS:
        _compile(fill, n_threads)
    for path in sorted(Path(folder).glob("table-*.csv")):
        number = path.stem.removeprefix("table-")
        X = np.loadtxt(path, delimiter=",", ndmin=2)
        start = time.perf_counter()
        filled = fill(X, n_threads)
        seconds = time.perf_counter() - start
        for name, values in filled._asdict().items():
            if values is not None:
                np.savetxt(path.with_name(f"{name}-{number}.csv"), values, delimiter=",")
        path.with_name(f"seconds-{number}.txt").write_text(f"{seconds}\n")


def _compile(fill, n_threads):
    """Fit a tiny table first: compilation is not counted."""
    X = np.random.default_rng(0).standard_normal((30, 6))
    X[::3, 0] = np.nan
    fill(X, n_threads)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("method", choices=PYTHON_METHODS)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    fill_folder(given.folder, given.method, given.threads)
