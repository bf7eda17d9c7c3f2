"""GASR beside SMURFF with Macau's prior: cell lines by drugs, with features of the cell lines.

    python benchmarks/macau.py --data FOLDER/dream7 [--splits 5]

The splits are those of features.py. SMURFF gets the four blocks of features standardised and side by
side, each divided by the root of its number of features; it runs in its own environment.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import fillrank as fr
from features import dream7

_LIMIT = 1800  # seconds for one run of SMURFF
_PEERS = Path(__file__).parent / "peers"
sys.path.insert(0, str(_PEERS))
from environments import DEFAULT_FOLDER, environment  # noqa: E402


def standardised(block):
    """Columns of mean 0 and standard deviation 1, of total variance 1."""
    deviations = block.std(axis=0)
    used = block[:, deviations > 0]
    return (used - used.mean(axis=0)) / used.std(axis=0) / np.sqrt(used.shape[1])


def rmse(values, predictions):
    """The root mean squared error."""
    return float(np.sqrt(np.mean((values - predictions) ** 2)))


def macau(command, problem, seed, plain):
    """The test error of SMURFF."""
    train, test = problem.train, problem.test
    features = np.hstack([standardised(block) for block in problem.row_features.values()])
    with tempfile.TemporaryDirectory() as folder:
        path, result = Path(folder) / "problem.npz", Path(folder) / "result.npy"
        np.savez(
            path,
            rows=train.row_index,
            columns=train.column_index,
            values=train.values,
            shape=train.shape,
            test_rows=test.row_index,
            test_columns=test.column_index,
            features=features,
        )
        words = [path, result, "--seed", str(seed)] + ["--plain"] * plain
        subprocess.run([command, _PEERS / "run_macau.py", *words], check=True, timeout=_LIMIT)
        return rmse(test.values, np.load(result))


def ours(problem, seed, **settings):
    """The test error of GASR."""
    given = settings.pop("given")
    model = fr.GASR(random_state=seed, progress=False, **settings)
    model.fit(problem.train, row_features=problem.row_features if given else None)
    test = problem.test
    rows, columns = test.row_labels[test.row_index], test.column_labels[test.column_index]
    return rmse(test.values, model.predict(rows, columns, unknown="prior"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--splits", type=int, default=5)
    arguments = parser.parse_args()
    found = environment("smurff", DEFAULT_FOLDER)
    if found.command is None:
        sys.exit(found.missing)
    split = dream7(arguments.data)
    methods = {
        "GASR": lambda p, seed: ours(p, seed, given=True),
        "GASR without features": lambda p, seed: ours(p, seed, given=False, missingness=False),
        "SMURFF, Macau": lambda p, seed: macau(found.command, p, seed, plain=False),
        "SMURFF without features": lambda p, seed: macau(found.command, p, seed, plain=True),
    }
    errors = {name: [] for name in methods}
    for number in range(arguments.splits):
        problem = split(number)
        for name, run in methods.items():
            errors[name].append(run(problem, number))
        print(number, *(f"{name}: {found[-1]:.4f}" for name, found in errors.items()), flush=True)
    print("| method | RMSE | sd over splits |\n|---|---|---|")
    for name, values in errors.items():
        print(f"| {name} | {np.mean(values):.4f} | {np.std(values):.4f} |")


if __name__ == "__main__":
    main()
