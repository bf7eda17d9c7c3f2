import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.cli import fit_cost
from fillrank.cli.models import Settings
from fillrank.cli.options import METHODS


@pytest.fixture(scope="module")
def data():
    return fr.synthetic(200, 100, rank=1, noise=0.1, missing=0.5, random_state=0)[0]


def big(n_entries, n_rows, n_columns):
    """Entries that are only counted."""

    class Counted:
        shape = (n_rows, n_columns)

    Counted.n_entries = n_entries
    return Counted


def test_estimated_times_of_movielens(data):
    """What was measured on two processors: 28 s, 500 sweeps; within a factor of two."""
    cost = fit_cost.estimate_cost(Settings(), big(800_000, 6040, 3706), n_threads=2)
    assert 14 < cost.seconds < 56
    assert 0.5e9 < cost.n_bytes < 2e9


def test_estimated_cost_of_five_million_entries():
    """What was measured: 1.86 GB with 60 sweeps."""
    cost = fit_cost.estimate_cost(Settings(sweeps=60), big(5_000_000, 96_276, 20_000), n_threads=2)
    assert cost.n_bytes == pytest.approx(1.86e9, rel=0.5)


@pytest.mark.parametrize("method", METHODS)
def test_cost_increases_with_size_and_decreases_with_threads(data, method):
    few = fit_cost.estimate_cost(Settings(method, max_rank=5), data, 1)
    assert fit_cost.estimate_cost(Settings(method, max_rank=10), data, 1).seconds > few.seconds
    assert fit_cost.estimate_cost(Settings(method, max_rank=5), data, 2).seconds < few.seconds
    assert few.n_bytes > 8 * data.n_entries


def test_sweeps_and_chains_count_for_samplers(data):
    def seconds(**settings):
        return fit_cost.estimate_cost(Settings(**settings), data, 1).seconds

    assert seconds(sweeps=100, chains=1) < seconds(sweeps=100, chains=2) < seconds(sweeps=1000)


def test_too_little_memory_is_reported(data, monkeypatch, capsys):
    fit_cost.report_cost(Settings(), data)
    assert "available" not in capsys.readouterr().err
    monkeypatch.setattr(fit_cost, "available_memory", lambda: 1000)
    fit_cost.report_cost([Settings(), Settings("BPMF")], data, times=3)
    reported = capsys.readouterr().err
    assert reported.startswith("6 fits will take about")
    assert "Only 1 kB are available." in reported


def test_time_is_a_range_if_the_run_decides_on_its_length(data, capsys):
    fit_cost.report_cost(Settings(), data)
    assert "or up to" in capsys.readouterr().err
    fit_cost.report_cost(Settings(sweeps=500), data)
    assert "or up to" not in capsys.readouterr().err


def test_small_tables_and_levels_take_time():
    """Measured for 4,000 sweeps on one processor: 400 x 10 categories 19 s, 100 x 10 numbers 5 s."""
    rng = np.random.default_rng(0)
    words = np.array(["red", "blue", "green", "tan"])[rng.integers(4, size=(400, 10))]
    categories = fr.read(pd.DataFrame(words, columns=list("abcdefghij")))
    numbers = fr.Observations.from_matrix(rng.normal(size=(100, 10)))
    for table, seconds in ((categories, 19), (numbers, 5)):
        n_levels = fit_cost._count_levels(Settings(), table)
        assert n_levels == (4000 if table is categories else 0)
        cost = fit_cost.estimate_cost(Settings(), table, 1, n_levels)
        assert seconds / 2 < cost.most_seconds < 2 * seconds
        assert cost.seconds < cost.most_seconds / 2
