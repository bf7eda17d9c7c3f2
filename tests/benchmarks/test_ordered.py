"""The benchmark of ordered levels, on generated ratings."""

import numpy as np
import pytest

import fillrank as fr
import ordered
from features import random_splits
from ordered import (
    Answers,
    Model,
    answer_by_levels,
    answer_by_numbers,
    compare,
    half_levels,
    level_probabilities,
    open_ends,
    score_answers,
)

LEVELS = np.arange(1.0, 6.0)
EDGES = half_levels(LEVELS)


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    signal = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
    values = np.clip(np.rint(3 + signal + 0.5 * rng.standard_normal(signal.shape)), 1, 5)
    return fr.Observations.from_matrix(np.where(rng.random(values.shape) < 0.4, np.nan, values))


@pytest.fixture(scope="module")
def fitted(ratings):
    train, test = ratings.split(0.2, random_state=0)
    return fr.GASR(n_sweeps=150, random_state=0, progress=False).fit(train), test


def test_probabilities_of_levels_are_those_of_the_density(fitted):
    model, test = fitted
    rows, columns = test.rows[:50], test.columns[:50]
    found = level_probabilities(model, rows, columns, EDGES)
    np.testing.assert_allclose(found.sum(axis=0), 1.0)
    grid = np.linspace(-0.5, 0.5, 201)
    density = np.array(
        [
            [np.exp(model.log_density(rows, columns, np.full(50, level + x))) for x in grid]
            for level in LEVELS
        ]
    )
    shares = np.trapezoid(density, grid, axis=1)
    np.testing.assert_allclose(found, shares / shares.sum(axis=0), rtol=2e-3, atol=1e-6)


def test_cells_without_entries_have_probabilities(fitted):
    model, test = fitted
    found = level_probabilities(model, ["nobody", test.rows[0]], [test.columns[0], 1000], EDGES)
    np.testing.assert_allclose(found.sum(axis=0), 1.0)


def test_open_ends_have_all_that_is_beyond_them(fitted):
    model, test = fitted
    cells = test.rows, test.columns
    np.testing.assert_array_equal(EDGES, [0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
    closed, found = (
        level_probabilities(model, *cells, e(LEVELS)) for e in (half_levels, open_ends)
    )
    ratio = found / closed
    np.testing.assert_allclose(ratio[1], ratio[3])
    assert (ratio[[0, 4]] >= ratio[2] - 1e-9).all()


def test_blocks_do_not_matter(fitted, monkeypatch):
    model, test = fitted
    cells = test.rows, test.columns
    expected = level_probabilities(model, *cells, EDGES)
    monkeypatch.setattr(ordered, "_BLOCK", 7)
    np.testing.assert_allclose(level_probabilities(model, *cells, EDGES), expected)


def test_answers_of_a_gaussian_model(fitted):
    model, test = fitted
    found = answer_by_numbers(model, test, LEVELS)
    scores = score_answers(found, test.values, LEVELS)
    assert set(found.mode) | set(found.median) <= set(LEVELS)
    assert scores[0] == pytest.approx(fr.score(test, model)["rmse"])
    frequencies = np.unique(test.values, return_counts=True)[1] / len(test)
    assert scores[2] > frequencies.max()
    assert scores[3] > frequencies @ np.log(frequencies)


def test_scores():
    values = np.array([1.0, 2.0, 5.0, 4.0])
    answers = Answers(
        values + 0.5,
        values - 1,
        np.array([1.0, 2.0, 5.0, 3.0]),
        np.log([0.5, 0.5, 0.25, 0.5]),
        (np.array([1.0, 1.0, 1.0, 1.0]), np.array([2.0, 2.5, 4.0, 5.0])),
    )
    found = score_answers(answers, values, LEVELS)
    np.testing.assert_allclose(found, [0.5, 0.25, 0.75, -1.25 * np.log(2), 0.75, 13 / 4])


class LevelModel:
    """A fitted model whose answers are all 3."""

    def __init__(self):
        self.asked = []

    def predict(self, rows, columns, statistic, unknown):
        self.asked.append(statistic)
        return np.full(len(rows), 3.0)

    def log_density(self, rows, columns, values, unknown):
        return np.full(len(rows), np.log(0.2))

    def predict_interval(self, rows, columns, level, unknown):
        return np.full(len(rows), 1.0), np.full(len(rows), 5.0)


def test_answers_of_an_ordered_model(fitted):
    model, test = LevelModel(), fitted[1]
    scores = score_answers(answer_by_levels(model, test, LEVELS), test.values, LEVELS)
    assert model.asked == ["mean", "median", "mode"]
    np.testing.assert_allclose(scores[2:], [np.mean(test.values == 3), np.log(0.2), 1.0, 5.0])


@pytest.mark.filterwarnings("ignore::fillrank.ConvergenceWarning")
def test_models_alternate(ratings, capsys):
    models = {
        "one": Model({"n_sweeps": 30}, {"one": answer_by_numbers}),
        "other": Model({"n_sweeps": 30, "noise": "one"}, {"other": answer_by_numbers}),
    }
    ordered.compile_kernels(models)
    features = np.arange(60.0)[:, np.newaxis], np.arange(40.0)[:, np.newaxis]
    compare(random_splits(ratings, 0.2, features), models, ("none", "given"), range(2))
    lines = [line.split(" | ")[:3] for line in capsys.readouterr().out.splitlines()[2:]]
    fits = [(name.removeprefix("| "), given) for name, given, split in lines if split.isdigit()]
    assert fits[:4] == fits[4:][::-1]
    assert [split for *_, split in lines[8:]] == ["mean"] * 4 + ["std"] * 4
