"""Methods for missing values on wide tables of unlike columns: errors, coverage and time.

    python benchmarks/tables/run.py --data FOLDER [--tables a,b] [--methods GASR,mice] [--masks 5]
    python benchmarks/tables/run.py --report

FOLDER has CSV files. Observed cells are hidden (masks.py), and every method fills in the same tables in
a process of its own: those of python_methods.py, and in R mice, which is installed from Debian where R
does not have it, missMDA and softImpute, which Debian does not have. Results go to a CSV file, one line
per column; what is in it already is not run again. --report prints the tables in Markdown and draws the
pictures.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from masks import REAL, make_masks
from pictures import save_coverage, save_errors
from python_methods import PYTHON_METHODS, Filled
from r_packages import why_missing
from summary import summary
from table_results import append_results, finished, key, read_results, score
from wide_tables import read_tables

HERE = Path(__file__).parent
R_METHODS = ("mice", "missMDA", "softImpute")
METHODS = (*PYTHON_METHODS, *R_METHODS)
LIMIT = 600  # seconds for one table
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def fill_tables(method, tables, n_threads, limit):
    """Fill in tables by a method in its own process; what it filled in, with seconds, by position."""
    script = "impute.py" if method in PYTHON_METHODS else "impute.R"
    command = [sys.executable] if method in PYTHON_METHODS else ["Rscript"]
    threads = ["--threads", str(n_threads)] if method in PYTHON_METHODS else []
    with tempfile.TemporaryDirectory() as folder:
        for number, X in enumerate(tables):
            np.savetxt(Path(folder) / f"table-{number}.csv", X, delimiter=",")
        try:
            ran = subprocess.run(
                [*command, HERE / script, folder, method, *threads],
                capture_output=True,
                text=True,
                env=os.environ | dict.fromkeys(_THREADS, str(n_threads)),
                timeout=limit * len(tables),
            )
            problem = "" if ran.returncode == 0 else f"failed: {ran.stderr.strip()[-300:]}"
        except subprocess.TimeoutExpired:
            problem = f"took longer than {limit:g} s a table"
        if problem:
            print(f"{method} {problem}", file=sys.stderr)
        return _read_filled(Path(folder), len(tables))


def _read_filled(folder, n_tables):
    def read(name, number):
        path = folder / f"{name}-{number}.csv"
        return np.loadtxt(path, delimiter=",", ndmin=2) if path.exists() else None

    found = {}
    for number in range(n_tables):
        seconds = folder / f"seconds-{number}.txt"  # written last
        if seconds.exists():
            values = [read(name, number) for name in ("mean", "low", "high")]
            found[number] = Filled(*values), float(seconds.read_text())
    return found


def run_method(method, table, masks, path, given):
    """Run a method on the masks that have no results yet, and append its results."""
    done = finished(path)
    todo = [mask for mask in masks if key(table, mask, method) not in done]
    if not todo:
        return
    print(f"{table.name}, {todo[0].kind} {todo[0].share:g}: {method}", flush=True)
    holes = [np.where(mask.hidden, np.nan, table.values) for mask in todo]
    filled = fill_tables(method, holes, given.threads, given.limit)
    for number, (values, seconds) in filled.items():
        append_results(path, score(table, todo[number], method, values, seconds))


def run_all(given):
    """Run all methods that are there on all tables and masks."""
    missing = {
        method: "" if method in PYTHON_METHODS else why_missing(method) for method in given.methods
    }
    for method, why in missing.items():
        if why:
            print(f"{method} is left out: {why}")
    given.results.parent.mkdir(parents=True, exist_ok=True)
    for table in read_tables(given.data, given.tables):
        m, n = table.values.shape
        print("; ".join([f"{table.name}: {m:,} x {n}", *table.notes]), flush=True)
        for share in given.shares:
            masks = make_masks(table, share, given.masks)
            for method in given.methods:
                if not missing[method]:
                    run_method(method, table, masks, given.results, given)


def report(given):
    """Print the tables and draw the pictures."""
    results = read_results(given.results)
    print(summary(results))
    images = given.output / "images"
    images.mkdir(parents=True, exist_ok=True)
    save_errors(results, images / "tables-errors.png")
    save_coverage(results, images / "tables-coverage.png")


def _list(text):
    return text.split(",")


def main(arguments=None):
    """Run or report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with CSV files")
    parser.add_argument("--tables", type=_list, help="names without .csv; all by default")
    parser.add_argument("--methods", type=_list, default=METHODS, help=", ".join(METHODS))
    parser.add_argument("--shares", type=_list, default=["0.1", "0.3", "0.5", REAL])
    parser.add_argument("--masks", type=int, default=5, help="masks of each kind")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for one table")
    parser.add_argument("--results", type=Path, default=Path("build/tables/results.csv"))
    parser.add_argument("--report", action="store_true", help="report the results; run nothing")
    parser.add_argument("--output", type=Path, default=Path("docs"), help="has images/")
    given = parser.parse_args(arguments)
    if unknown := set(given.methods) - set(METHODS):
        parser.error(f"unknown methods {sorted(unknown)}; there are {', '.join(METHODS)}")
    if given.report:
        report(given)
    elif given.data:
        run_all(given)
    else:
        parser.error("--data FOLDER or --report is needed")


if __name__ == "__main__":
    main()
