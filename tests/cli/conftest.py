import warnings
from functools import cache

import numpy as np
import pytest
from typer import testing

import fillrank as fr
from fillrank.cli.main import app
from helpers.result_files import cell, write_csv

QUICK = ("--sweeps", "20", "--max-rank", "3")


# typer makes the parser of all commands from their signatures, which takes longer than many commands.
command_of = cache(testing._get_command)


class Ran:
    """How a command ended; its words with white space evened out, for tables are wrapped."""

    def __init__(self, result):
        self.code = result.exit_code
        self.raw = result.stdout
        self.out, self.err = (" ".join(text.split()) for text in (result.stdout, result.stderr))
        self.exception = result.exception


@pytest.fixture
def fillrank(tmp_path, monkeypatch):
    """Run the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(testing, "_get_command", command_of)

    def running(*arguments, stdin=None):
        words = [str(argument) for argument in arguments]
        return Ran(testing.CliRunner().invoke(app, words, input=stdin))

    return running


@pytest.fixture
def short_runs(monkeypatch):
    """Have runs of commands that take no number of sweeps end early."""
    monkeypatch.setattr("fillrank.estimators.sampled.auto_most_sweeps", lambda n_entries: 40)


@pytest.fixture
def complete(fillrank, monkeypatch):
    """Run a short ``fillrank complete``; its plots, which take longest, are left blank."""
    monkeypatch.setattr("fillrank.cli.complete._save_plot", lambda ax, path: path.touch())
    monkeypatch.setattr(
        "fillrank.cli.complete.write_report", lambda job, model, held, path: path.touch()
    )
    return lambda *arguments: fillrank("complete", *arguments, *QUICK)


@pytest.fixture
def matrix():
    """A small matrix of rank 1 with noise; a fifth is missing, and the first cell is not."""
    rng = np.random.default_rng(0)
    X = np.outer(rng.normal(size=14), rng.normal(size=8)) + 0.1 * rng.normal(size=(14, 8))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0, 0] = 0.1 + 0.2  # 0.30000000000000004: no digit may go
    return X


@pytest.fixture
def write_wide(tmp_path, matrix):
    """Write the matrix as a wide table."""

    def writing(name="table.csv", delimiter=",", rows=None, columns=None):
        rows = rows or [f"row {i}" for i in range(len(matrix))]
        columns = columns or [f"column {j}" for j in range(matrix.shape[1])]
        lines = [["name", *columns]]
        lines += [[row, *map(cell, values)] for row, values in zip(rows, matrix, strict=True)]
        return write_csv(tmp_path / name, lines, delimiter)

    return writing


@pytest.fixture
def write_long(tmp_path, matrix):
    """Write the observed entries of the matrix as a long table."""

    def writing(name="ratings.csv", delimiter=",", header=("user", "item", "rating")):
        lines = [header]
        lines += [(f"u{i}", f"i{j}", cell(matrix[i, j])) for i, j in np.argwhere(~np.isnan(matrix))]
        return write_csv(tmp_path / name, lines, delimiter)

    return writing


@pytest.fixture
def keep(tmp_path):
    """Fit a table of the given path quickly, and keep the model."""

    def keeping(table, name="model.fillrank", method="GASR", with_data=True, **settings):
        usual = {"n_sweeps": 40, "max_rank": 2} if method == "GASR" else {"penalty": 1.0}
        model = getattr(fr, method)(random_state=0, progress=False, **(usual | settings))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(fr.read(table))
        model.save(tmp_path / name, with_data=with_data)
        return model

    return keeping
