"""Measures of ranking by hand, against slow twins, and of lists in random order."""

import math

import numpy as np
import pytest

from fillrank.posterior import ranking
from fillrank.posterior.ranking import add_sums, most_popular, sum_measures
from fillrank.posterior.recommend import LeftOut, TopQuery
from fillrank.runtime.threads import Workers
from reference.p_values import limit_of
from reference.planted import plant
from reference.ranking_twin import measure, rank_candidates

N_COLUMNS = 17


def as_left_out(columns):
    each = [np.array(sorted(one), dtype=np.int64) for one in columns]
    return LeftOut(np.cumsum([0, *(one.size for one in each)]), np.concatenate(each))


def test_two_rows_by_hand():
    """The lists (3, 1, 0) and (2, 4), where {1, 4} and {2} are relevant; k is 3."""
    columns = np.array([[3, 1, 0], [2, 4, -1]])
    found = sum_measures(columns, as_left_out([{4, 1}, {2}]), 5).measures()
    second = 1 / math.log2(3)
    assert found == pytest.approx(
        {
            "precision": (1 / 3 + 1 / 2) / 2,
            "recall": (1 / 2 + 1) / 2,
            "ndcg": (second / (1 + second) + 1) / 2,
            "mrr": (1 / 2 + 1) / 2,
            "hit_rate": 1.0,
            "catalogue_coverage": 1.0,
        }
    )


def test_lists_without_a_hit_and_perfect_lists():
    columns = np.array([[0, 1]])
    worst = sum_measures(columns, as_left_out([{2, 3}]), 8).measures()
    assert worst.pop("catalogue_coverage") == 0.25
    assert set(worst.values()) == {0.0}
    best = sum_measures(columns, as_left_out([{1, 0, 5}]), 8).measures()
    assert best["recall"] == pytest.approx(2 / 3)  # three are relevant, and the list has two
    assert best["precision"] == best["ndcg"] == best["mrr"] == best["hit_rate"] == 1.0


def random_lists(seed, k, n_rows=40):
    """(lists as the library has them, lists as the twin has them, relevant columns)."""
    rng = np.random.default_rng(seed)
    fitted = rng.random((n_rows, N_COLUMNS)) < rng.choice([0.2, 0.9], n_rows)[:, np.newaxis]
    fitted[:, 0] = False
    lists = rank_candidates(rng.integers(0, 4, fitted.shape), fitted)
    columns = np.full((n_rows, k), -1)
    for row, each in zip(columns, lists, strict=True):
        row[: len(each)] = each[:k]
    relevant = [
        {int(j) for j in rng.choice(each, rng.integers(1, len(each) + 1), replace=False)}
        for each in lists
    ]
    return columns, lists, relevant


def check_against_twin(seed, k):
    columns, lists, relevant = random_lists(seed, k, n_rows=3 if seed % 2 else 40)
    half = len(columns) // 3
    parts = [
        ranking.sum_measures(columns[part], as_left_out(relevant[part]), N_COLUMNS)
        for part in (slice(half), slice(half, None))
    ]
    found = add_sums(parts)
    expected = measure(lists, relevant, k, N_COLUMNS)
    assert found.n_rows == expected.pop("rows")
    assert found.measures() == pytest.approx(expected, rel=1e-12)


def check_seeds(k):
    for seed in range(10):
        check_against_twin(seed, k)


@pytest.mark.parametrize("k", [1, 3, N_COLUMNS])
def test_against_the_twin(k):
    check_seeds(k)


@pytest.mark.parametrize(
    ("function", "right", "wrong"),
    [
        ("sum_measures", "np.arange(2, k + 2)", "np.arange(1, k + 1) + 2"),
        ("sum_measures", "np.minimum(n_relevant, k)", "k"),
        ("sum_measures", "argmax(axis=1) + 1", "argmax(axis=1) + 2"),
        ("sum_measures", "(columns >= 0).sum(axis=1)", "k"),
        ("sum_measures", "n_hits / n_relevant", "n_hits / np.minimum(n_relevant, k)"),
        ("sum_measures", "columns[columns >= 0]", "columns"),
        ("_are_relevant", "rows[:, np.newaxis] + columns", "columns"),
    ],
)
def test_planted_bugs_are_detected(function, right, wrong, monkeypatch):
    plant(monkeypatch, ranking, function, right, wrong)
    with pytest.raises(AssertionError):
        check_seeds(3)


def test_random_order_has_the_expected_measures():
    """Means over lists in random order, against their expectations; z-scores share one alarm."""
    rng = np.random.default_rng(0)
    n, k, n_relevant, n_rows = 15, 4, 3, 20_000
    columns = rng.permuted(np.tile(np.arange(n), (n_rows, 1)), axis=1)[:, :k]
    relevant = [{1, 5, 7}] * n_rows
    found = sum_measures(columns, as_left_out(relevant), n).measures()
    each = [
        sum_measures(columns[[i]], as_left_out(relevant[:1]), n).measures() for i in range(2000)
    ]
    discounts = 1 / np.log2(np.arange(2, k + 2))
    # The probability that the first p - 1 are misses, and that the p-th is the first hit.
    misses = np.cumprod([1.0, *((n - n_relevant - p) / (n - p) for p in range(k))])
    expected = {
        "precision": n_relevant / n,
        "recall": k / n,
        "ndcg": n_relevant / n * discounts.sum() / discounts[:n_relevant].sum(),
        "mrr": np.sum((misses[:-1] - misses[1:]) / np.arange(1, k + 1)),
        "hit_rate": 1 - misses[-1],
    }
    for name, value in expected.items():
        error = np.std([one[name] for one in each]) / math.sqrt(n_rows)
        assert abs(found[name] - value) < limit_of(len(expected)) * error
    assert found["catalogue_coverage"] == 1.0


def test_the_most_popular_columns_without_those_left_out():
    popularity = np.array([2, 7, 7, 0, 9])
    query = TopQuery(np.array([3, 0, 3]), as_left_out([{4}, set(), {1, 2, 4, 0}]), 3)
    with Workers(2) as workers:
        top = most_popular(popularity, query, workers)
    np.testing.assert_array_equal(top.columns, [[1, 2, 0], [4, 1, 2], [3, -1, -1]])
