"""GASR and BPMF beside the peers that a user would pick instead, in one run on the same entries.

    python benchmarks/peers/run.py --data FOLDER/ml-1m [--threads 2] [--repeats 3] [--output docs]

Every method runs in a process and an environment of its own (environments.py makes them), one after the
other, and all of them again for each repeat, with another seed. Results go to build/peers/results;
the measured part of docs/benchmarks.md and its pictures are written anew.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from contract import Entries, write_entries
from environments import DEFAULT_FOLDER, environment
from methods import METHODS, OURS
from page import Setting, measured, replace_measured
from plots import save_bars, save_curves

import fillrank as fr

HERE = Path(__file__).parent
DID_NOT_RUN = "did not run to its end"
LIMIT = 4 * 3600  # seconds for one method
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Asked(NamedTuple):
    """What all runners are asked, and the folder of their results."""

    rank: int
    threads: int
    folder: Path


def write_problem(data, path):
    """An 80/20 split of MovieLens 1M, for Python and for R; what it is, in words."""
    ratings = fr.datasets.load("ml-1m", path=data)
    parts = [
        Entries(part.row_index, part.column_index, part.values)
        for part in ratings.split(0.2, random_state=0)
    ]
    write_entries(path, *parts, ratings.shape)
    with path.with_suffix(".csv").open("w", encoding="utf-8") as table:
        table.write("part,row,column,value\n")
        for name, entries in zip(("train", "test"), parts, strict=True):
            np.savetxt(table, np.column_stack(entries), fmt=f"{name},%d,%d,%g")
    counts = [len(part.values) for part in parts]
    return f"MovieLens 1M, {counts[0]:,} entries to fit and {counts[1]:,} to test"


def run_once(name, command, asked, seed):
    """Run a method in its own process; its result, or None."""
    method = METHODS[name]
    problem = asked.folder / ("problem.csv" if method.script.endswith(".R") else "problem.npz")
    stem = f"{name.lower().replace(',', '').replace(' ', '-')}-{seed}"
    result, log = asked.folder / f"{stem}.json", asked.folder / f"{stem}.log"
    result.unlink(missing_ok=True)
    numbers = {
        "rank": asked.rank,
        "threads": asked.threads,
        "iterations": method.iterations,
        "seed": seed,
    }
    words = [word for key, value in numbers.items() for word in (f"--{key}", str(value))]
    call = [command, HERE / method.script, problem, result, *words, "--variant", method.variant]
    threads = dict.fromkeys(_THREADS, str(asked.threads))
    with log.open("w", encoding="utf-8") as said:
        try:
            code = subprocess.run(
                call,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=os.environ | threads,
                timeout=LIMIT,
            ).returncode
        except subprocess.TimeoutExpired as late:
            said.write(f"\n{late}\n")
            code = None
    if code != 0 or not result.exists():
        print(f"{name} {DID_NOT_RUN}: see {log}", file=sys.stderr)
        return None
    return json.loads(result.read_text("utf-8"))


def run_all(asked, environments, repeats):
    """All methods in turns; and why some are missing, by name."""
    found = {name: environment(method.peer, environments) for name, method in METHODS.items()}
    missing = {name: each.missing for name, each in found.items() if each.command is None}
    rounds = []
    for seed in range(repeats):
        results = {}
        for name in [name for name in METHODS if name not in missing]:
            print(f"round {seed + 1} of {repeats}: {name}", flush=True)
            if result := run_once(name, found[name].command, asked, seed):
                results[name] = result
            elif name == OURS:
                sys.exit("All others are compared with it: nothing was written.")
            else:
                missing[name] = DID_NOT_RUN
        rounds.append(results)
    kept = [name for name in METHODS if name not in missing]
    return [{name: results[name] for name in kept} for results in rounds], missing


def main():
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder with ratings.dat of MovieLens 1M")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--environments", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--output", type=Path, default=Path("docs"), help="has benchmarks.md")
    given = parser.parse_args()
    asked = Asked(30, given.threads, given.environments / "results")
    asked.folder.mkdir(parents=True, exist_ok=True)
    entries = write_problem(given.data, asked.folder / "problem.npz")
    rounds, missing = run_all(asked, given.environments, given.repeats)
    setting = Setting(entries, asked.rank, asked.threads)
    page = given.output / "benchmarks.md"
    new = measured(rounds, missing, setting)
    page.write_text(replace_measured(page.read_text("utf-8"), new), encoding="utf-8")
    save_curves(rounds, given.output / "images" / "benchmarks-curves.png")
    save_bars(rounds, given.output / "images" / "benchmarks-iterations.png")
    print(new)


if __name__ == "__main__":
    main()
