"""Kinds and units are chosen by the complete table, also for fits without held-out entries."""

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.cli import models
from fillrank.runtime import progress
from helpers.result_files import cell, write_csv

N = 60
NAMES = ["level", "size", "visits", "smoker"]


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch):
    """Notes that an earlier test has shown would not be shown again."""
    monkeypatch.setattr(progress, "_reported", set())


@pytest.fixture
def fits(monkeypatch):
    """The models that commands fit, in order, with few sweeps."""
    found, right = [], models.fit

    def fit(settings, *arguments, **options):
        found.append(right(settings._replace(sweeps=10), *arguments, **options))
        return found[-1]

    monkeypatch.setattr(models, "fit", fit)
    return found


@pytest.fixture
def table(tmp_path):
    """Without its held-out entries, a table would have other kinds of columns.

    The only visit is held out, without which visits are positive numbers; and so is the only smoker.
    """
    rng = np.random.default_rng(0)
    size = rng.normal(size=N)
    X = np.column_stack([size, 2 * size + 5, 2 + np.rint(20 * np.exp(1.5 * size)), np.zeros(N)])
    X[0, 0] = np.nan
    path = write_csv(tmp_path / "t.csv", lines_of(X))
    _, held = fr.read(path).split(0.1, random_state=0)
    rows = dict(zip(held.columns.tolist(), held.rows.tolist(), strict=True))
    X[rows["visits"], 2] = 1.0
    X[rows["smoker"], 3] = 1.0
    return write_csv(path, lines_of(X))


def lines_of(X):
    return [NAMES, *([cell(value) for value in row] for row in X)]


EXPECTED = ("number", "number", "count", "yes_no")


def test_alone_the_training_entries_suggest_other_kinds(table):
    train, _ = fr.read(table).split(0.1, random_state=0)
    model = fr.GASR(n_sweeps=10, progress=False).fit(train)
    assert tuple(model.posterior_.column_kinds) == ("number", "number", "positive", "number")


def test_both_fits_of_complete_have_the_same_kinds(complete, table, fits):
    ran = complete(table)
    assert ran.code == 0, ran.err
    assert [tuple(model.posterior_.column_kinds) for model in fits] == [EXPECTED] * 2
    assert (ran.err + ran.out).count("Columns of counts: visits") == 1
    assert "positive numbers" not in ran.err + ran.out


def test_so_do_the_fits_of_evaluate_and_compare(fillrank, table, fits):
    ran = fillrank("evaluate", table, "--folds", "3")
    assert ran.code == 0, ran.err
    ran = fillrank("compare", table, "--methods", "GASR", "--splits", "2")
    assert ran.code == 0, ran.err
    of_table = [tuple(model.posterior_.column_kinds) for model in fits if model.n_features_in_ == 4]
    assert of_table == [EXPECTED] * 5


def test_a_given_kind_needs_its_levels_in_the_table_only(fillrank, table, fits):
    ran = fillrank("evaluate", table, "--hold-out", "0.1", "--kind", "smoker=yes_no")
    assert ran.code == 0, ran.err
    assert fits[0].posterior_.column_kinds[3] == "yes_no"
    assert fits[0].posterior_.level_values(3).tolist() == [0.0, 1.0]


def test_units_and_the_scale_of_ratings_are_those_of_the_table():
    rng = np.random.default_rng(0)
    stars = rng.integers(2, 5, (20, 6)).astype(float)
    stars[3, 4] = 5.0
    data = fr.Observations.of(stars)
    train = data[np.flatnonzero(data.values < 5)]
    settings = models.Settings(sweeps=10, max_rank=2)
    model = models.fit(settings, train, progress=False, table=data)
    assert model.posterior_.units.value_range == (2.0, 5.0)
    assert models.fit(settings, train, progress=False).posterior_.units.value_range == (2.0, 4.0)


@pytest.mark.parametrize("units", ["auto", "table"])
@pytest.mark.parametrize("likelihood", ["auto", "gaussian", "ordered"])
def test_the_choices_of_a_table_are_those_of_its_own_fit(units, likelihood):
    """The settings that stand for them give the same model."""
    answers = np.random.default_rng(0).integers(1, 6, (60, 4))
    data = fr.Observations.of(pd.DataFrame(answers, columns=list("abcd")))
    settings = models.Settings(sweeps=5, max_rank=2, units=units, likelihood=likelihood)
    own = models.fit(settings, data, progress=False)
    same = models.fit(settings, data, progress=False, table=data)
    np.testing.assert_array_equal(*(each.completion_.predict_table() for each in (own, same)))
