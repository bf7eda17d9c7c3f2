"""Cross-validation over entries: the splitter, and scikit-learn's tools on top of it."""

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    check_cv,
    cross_val_score,
    cross_validate,
    train_test_split,
)

import fillrank as fr
from fillrank.errors import InputError
from fillrank.estimators import splits
from helpers.quick_fits import SHORT, quick, table
from reference.p_values import limit_of
from reference.planted import plant

pytestmark = [
    pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning"),
]

SOLVER = {"progress": False, "n_threads": 1, "random_state": 0}


def ratings(n_rows=40, n_columns=20):
    """Stars from 1 to 5 under names of text: 560 entries."""
    scores, _ = fr.synthetic(n_rows, n_columns, rank=1, noise=0.3, missing=0.3, random_state=0)
    rows, columns = [f"u{i}" for i in scores.rows], [f"m{j}" for j in scores.columns]
    stars = np.clip(np.rint(2 * scores.values + 3), 1, 5)
    return fr.Observations.from_triplets(rows, columns, stars)


def cells(observations):
    """The entries as a set of (row name, column name, value)."""
    return set(
        zip(
            observations.rows.tolist(),
            observations.columns.tolist(),
            observations.values.tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("n_splits", [2, 3, 7])
def test_each_entry_is_tested_once_and_sets_are_of_one_size(n_splits):
    data = ratings()
    tested = []
    for train, test in fr.EntryKFold(n_splits, random_state=0).split(data):
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(data)))
        tested.append(test)
    assert sorted(np.concatenate(tested)) == list(range(len(data)))
    sizes = [len(test) for test in tested]
    assert len(sizes) == n_splits
    assert max(sizes) - min(sizes) <= 1


def test_as_many_sets_as_entries():
    data = fr.Observations.from_triplets([0, 1, 2], [0, 0, 0], [1.0, 2.0, 4.0])
    assert [len(test) for _, test in fr.EntryKFold(3).split(data)] == [1, 1, 1]
    with pytest.raises(InputError, match="at most the number of entries, 3, got 4"):
        fr.EntryKFold(4).split(data)


def sets(data, random_state):
    return [test.tolist() for _, test in fr.EntryKFold(random_state=random_state).split(data)]


def test_an_int_gives_the_same_sets_and_a_generator_other_ones_each_time():
    data = ratings()
    assert sets(data, 1) == sets(data, 1)
    assert sets(data, 1) != sets(data, 2)
    assert sets(data, None) != sets(data, None)
    for make in (np.random.default_rng, np.random.RandomState):
        source = make(5)
        first, second = sets(data, source), sets(data, source)
        assert first != second
        assert first == sets(data, make(5))


def neighbours_together(n_entries=3000, n_splits=5, n_seeds=20):
    """How often neighbouring entries are in one set, less what chance makes of it: a z-score.

    Pairs that begin with even positions; within a permutation these counts are close to independent,
    and their variance is below that of a binomial.
    """
    together = total = 0
    for seed in range(n_seeds):
        number = splits._sets(n_entries, n_splits, seed)
        together += np.sum(number[::2] == number[1::2])
        total += n_entries // 2
    chance = (n_entries / n_splits - 1) / (n_entries - 1)
    return (together - total * chance) / np.sqrt(total * chance * (1 - chance))


def test_sets_are_random():
    assert abs(neighbours_together()) < limit_of(1)


@pytest.mark.parametrize(
    "by_order",
    ["np.arange(n_entries) % n_splits", "np.arange(n_entries) * n_splits // n_entries"],
    ids=["every fifth", "blocks"],
)
def test_sets_that_follow_the_order_are_detected(monkeypatch, by_order):
    right = "np.random.default_rng(seed).permutation(np.arange(n_entries) % n_splits)"
    plant(monkeypatch, splits, "_sets", right, by_order)
    assert abs(neighbours_together()) > limit_of(1)


def test_parts_have_all_labels_in_order():
    data = ratings()
    for train, test in fr.EntryKFold(4, random_state=0).split(data):
        parts = data[train], data[test]
        assert cells(parts[0]) | cells(parts[1]) == cells(data)
        assert not cells(parts[0]) & cells(parts[1])
        for part in parts:
            assert part.shape == data.shape
            place = part.row_index * data.shape[1] + part.column_index
            assert (np.diff(place) > 0).all()


def test_selecting_entries_keeps_their_order_and_all_labels():
    data = ratings()
    part = data[[7, 2, 31]]
    np.testing.assert_array_equal(part.values, data.values[[2, 7, 31]])
    assert part.rows.tolist() == data.rows[[2, 7, 31]].tolist()
    assert part.shape == data.shape
    assert cells(data[np.arange(len(data), dtype=np.uint16)]) == cells(data)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ([-1, 0], "from 0 to 559; got -1 to 0"),
        ([3, 560], "from 0 to 559; got 3 to 560"),
        ([4, 9, 4], "position 4 is repeated"),
        ([], "list of positions"),
        (3, "list of positions"),
        ([1.0], "list of positions"),
        ([[1, 2]], "list of positions"),
        (np.ones(560, dtype=bool), r"flatnonzero\(mask\)"),
        ((np.arange(3), ...), r"use cv=fr\.EntryKFold"),
    ],
)
def test_invalid_selections_of_entries(key, message):
    data = ratings()
    assert len(data) == 560
    with pytest.raises(InputError, match=message):
        data[key]


@pytest.mark.parametrize("X", [table(), pd.DataFrame(table()), sp.eye_array(4), [[1.0, 2.0]]])
def test_only_observations_can_be_split_by_entries(X):
    with pytest.raises(InputError, match=r"use fr.Observations.of\(X\)"):
        fr.EntryKFold().split(X)


@pytest.mark.parametrize("n_splits", [1, 0, 2.0, "5", None])
def test_wrong_numbers_of_sets(n_splits):
    with pytest.raises(InputError, match="n_splits must be a whole number at least 2"):
        fr.EntryKFold(n_splits)


def test_more_sets_than_entries():
    data = fr.Observations.from_matrix([[1.0, 2.0], [3.0, np.nan]])
    with pytest.raises(InputError, match="n_splits must be at most the number of entries, 3"):
        fr.EntryKFold(5).split(data)


def test_splitter_interface_of_scikit_learn():
    cv = fr.EntryKFold(4, random_state=3)
    assert check_cv(cv) is cv
    assert cv.get_n_splits() == cv.get_n_splits(ratings()) == 4
    assert repr(cv) == "EntryKFold(n_splits=4, random_state=3)"
    assert sets(ratings(), 3) == [
        t.tolist() for _, t in fr.EntryKFold(random_state=3).split(ratings())
    ]
    assert fr.EntryKFold().get_n_splits() == 5


@pytest.mark.parametrize("ask", [5, None, KFold(3, shuffle=True)], ids=["5", "default", "KFold"])
def test_splitters_of_rows_are_refused(ask):
    """They would count rows and pick as many entries: most would never be used."""
    with pytest.raises(InputError, match=r"use cv=fr\.EntryKFold"):
        cross_val_score(fr.SoftImpute(penalty=1.0, **SOLVER), ratings(), cv=ask)


def test_train_test_split_of_rows_is_refused():
    with pytest.raises(InputError, match=r"observations.split\(\)"):
        train_test_split(ratings())


def test_scores_are_those_of_a_loop():
    data, cv = ratings(), fr.EntryKFold(3, random_state=0)
    model = fr.SoftImpute(penalty=1.0, **SOLVER)
    expected = [
        -fr.score(data[test], model.fit(data[train]))["rmse"] for train, test in cv.split(data)
    ]
    np.testing.assert_allclose(cross_val_score(model, data, cv=cv), expected, rtol=1e-12)
    assert len(set(expected)) == 3


METHODS = {
    "GASR": quick(),
    "published": fr.GASR.as_published(**SHORT),
    "BPMF": fr.BPMF(**SHORT),
    "SoftImpute": fr.SoftImpute(**SOLVER),
    "SoftImputeALS": fr.SoftImputeALS(**SOLVER),
    "HASI": fr.HASI(penalty=1.0, beta=1.0, **SOLVER),
    "RelaxedSpectral": fr.RelaxedSpectral(penalty=1.0, beta=1.0, **SOLVER),
    "M3F": fr.M3F(penalty=1.0, max_rank=2, **SOLVER),
    "IPM3F": fr.IPM3F(penalty=1.0, max_rank=3, **SOLVER),
    "IPM3F gibbs": fr.IPM3F(penalty=1.0, max_rank=3, inference="gibbs", n_sweeps=20, **SOLVER),
}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_does_better_than_the_mean(method):
    data = ratings()
    scores = cross_val_score(METHODS[method], data, cv=fr.EntryKFold(2, random_state=0))
    assert (scores > -data.values.std()).all()
    assert (scores < 0).all()


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_several_processes_give_the_same_result(kind):
    data = ratings()
    data = fr.Observations.of(
        kind({"user": data.rows, "item": data.columns, "rating": data.values})
    )
    assert pickle.loads(pickle.dumps(data)).origin == data.origin
    cv = fr.EntryKFold(2, random_state=0)
    alone, together = (
        cross_validate(fr.BPMF(**SHORT), data, cv=cv, n_jobs=n_jobs, return_estimator=True)
        for n_jobs in (None, 2)
    )
    np.testing.assert_array_equal(alone["test_score"], together["test_score"])
    # What comes back from a process has all of its names, and answers in the kind of table it knew.
    model = together["estimator"][0]
    assert model.predict("u3", "m5") == alone["estimator"][0].predict("u3", "m5")
    assert isinstance(next(model.predict_missing()), kind)


def test_large_tables_reach_processes_as_shared_memory():
    """Beyond a megabyte joblib hands on arrays that cannot be written to."""
    data, _ = fr.synthetic(500, 400, rank=1, noise=0.1, missing=0.2, random_state=0)
    model = fr.SoftImputeALS(penalty=5.0, max_rank=2, max_iterations=5, **SOLVER)
    cv = fr.EntryKFold(2, random_state=0)
    assert data.values.nbytes > 1e6
    alone, together = (cross_val_score(model, data, cv=cv, n_jobs=n_jobs) for n_jobs in (None, 2))
    np.testing.assert_array_equal(alone, together)


def test_a_search_finds_the_penalty_and_fits_again_on_all():
    data = ratings()
    penalties = [0.01, 2.0, 1000.0]
    search = GridSearchCV(
        fr.SoftImpute(**SOLVER), {"penalty": penalties}, cv=fr.EntryKFold(3, random_state=0)
    ).fit(data)
    assert search.best_params_ == {"penalty": 2.0}
    assert Counter(search.cv_results_["rank_test_score"].tolist()) == Counter([1, 2, 3])
    best = search.best_estimator_
    assert cells(best.observations_) == cells(data)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    again = fr.SoftImpute(penalty=2.0, **SOLVER).fit(data)
    assert best.predict("u1", "m2") == again.predict("u1", "m2")
    np.testing.assert_array_equal(search.predict(data), again.predict(data))
    assert search.score(data) == -fr.score(data, again)["rmse"]
