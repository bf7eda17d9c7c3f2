import numpy as np
import pytest

from fillrank.kernels.ordinal import Scorer
from fillrank.posterior.levels import FitRowsByMargin, LevelPosterior
from fillrank.runtime.threads import Workers

LEVELS = np.array([1.0, 2.0, 5.0])


def scorer(seed, m=6, n=5, k=2):
    rng = np.random.default_rng(seed)
    thresholds = np.sort(rng.standard_normal((m, 2)), axis=1)
    return Scorer(rng.standard_normal((m, k)), rng.standard_normal((n, k)), thresholds)


def level_of(x, thresholds):
    """By counting: the levels are those of the thresholds that are reached."""
    return LEVELS[sum(x >= threshold for threshold in thresholds)]


CELLS = np.repeat(np.arange(6), 5), np.tile(np.arange(5), 6)


def test_one_scorer():
    s = scorer(0)
    posterior = LevelPosterior([s], LEVELS, FitRowsByMargin(1.0))
    expected = [
        [level_of(s.left[i] @ s.right[j], s.thresholds[i]) for j in range(5)] for i in range(6)
    ]
    assert len(np.unique(expected)) == 3
    np.testing.assert_array_equal(posterior.block(np.arange(6), np.arange(5)), expected)
    with Workers(1) as workers:
        np.testing.assert_array_equal(posterior.predict(*CELLS, workers), np.ravel(expected))
        np.testing.assert_array_equal(
            posterior.average_prediction(*CELLS, workers), np.ravel(expected)
        )
    assert posterior.shape == (6, 5)
    assert posterior.units.value_range == (1.0, 5.0)


def test_scores_and_thresholds_are_averaged_and_so_are_levels():
    scorers = [scorer(seed, k=2 + seed) for seed in range(3)]
    posterior = LevelPosterior(scorers, LEVELS, FitRowsByMargin(1.0))
    with Workers(1) as workers:
        predicted = posterior.predict(*CELLS, workers)
        means = posterior.average_prediction(*CELLS, workers)
    for p, (i, j) in enumerate(zip(*CELLS, strict=True)):
        x = np.mean([s.left[i] @ s.right[j] for s in scorers])
        assert predicted[p] == level_of(x, np.mean([s.thresholds[i] for s in scorers], axis=0))
        each = [level_of(s.left[i] @ s.right[j], s.thresholds[i]) for s in scorers]
        assert means[p] == pytest.approx(np.mean(each))
    assert not np.array_equal(predicted, means)


def test_the_same_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("fillrank.runtime.threads._SMALLEST_SHARE", 1)
    posterior = LevelPosterior([scorer(0), scorer(1)], LEVELS, FitRowsByMargin(1.0))
    rows, columns = np.tile(CELLS[0], 50), np.tile(CELLS[1], 50)
    answers = []
    for n_threads in (1, 2, 4):
        with Workers(n_threads) as workers:
            answers.append(posterior.predict(rows, columns, workers))
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])
