"""Scores of recommendations on held-out entries, against slow twins and by hand."""

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError, UnknownNameError
from fillrank.estimators import score_ranking as module
from helpers.fitted_models import DRAWN, METHODS, cells_of, fit, fitted
from helpers.quick_fits import NAN, quick
from reference.planted import plant
from reference.ranking_twin import measure, rank_candidates, relevant_cells

MEASURES = ("precision", "recall", "ndcg", "mrr", "hit_rate", "catalogue_coverage")

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")


def held_out_of(name, seed=1):
    """Values in missing cells of a method's table, of which some rows have none."""
    X = cells_of(name)
    rng = np.random.default_rng(seed)
    test = np.where(np.isnan(X), rng.choice(X[~np.isnan(X)], X.shape), NAN)
    test[rng.random(X.shape) < 0.3] = NAN
    test[[2, 11]] = NAN
    return X, test


def as_entries(test):
    i, j = np.nonzero(~np.isnan(test))
    return fr.Observations.from_triplets(i, j, test[i, j])


def lists_of(model, n_rows, n, **order):
    answer = model.recommend(n=n, **order)
    return [answer[answer["row"] == i]["column"].tolist() for i in range(n_rows)]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_against_the_twin(name):
    model, (X, test) = fitted(name), held_out_of(name)
    n_rows, n_columns = X.shape
    for k, relevant in ((1, "above_mean"), (3, "all"), (5, 3.0), (40, "above_mean")):
        if relevant == 3.0:
            relevant = float(np.nanquantile(test, 0.4))  # also exactly at a value
        good = relevant_cells(X, test, relevant)
        expected = measure(lists_of(model, n_rows, n_columns), good, k, n_columns)
        left_out = sum(1 for row, cells in zip(test, good, strict=True)
                       if not cells and not np.isnan(row).all())  # fmt: skip
        found = fr.score_ranking(as_entries(test), model, k, relevant=relevant)
        assert found.pop("rows_left_out") == left_out
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_cautious_and_curious_lists(name):
    model, (X, test) = fitted(name), held_out_of(name)
    good = relevant_cells(X, test, "all")
    order = {"by": "cautious", "quantile": 0.3}
    expected = measure(lists_of(model, len(X), 12, **order), good, 2, 12)
    found = fr.score_ranking(as_entries(test), model, 2, relevant="all", **order)
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    curious = [
        fr.score_ranking(as_entries(test), model, 2, by="curious", random_state=seed)
        for seed in (0, 0, 1, 2)
    ]
    assert curious[0] == curious[1]
    assert curious[2] != curious[0] or curious[3] != curious[0]


def check_popular(X, test, model):
    counts = np.tile((~np.isnan(X)).sum(axis=0), (len(X), 1))
    good = relevant_cells(X, test, "above_mean")
    expected = measure(rank_candidates(counts, ~np.isnan(X)), good, 3, X.shape[1])
    found = fr.score_ranking(as_entries(test), model, 3, by="popular")
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_the_most_popular_columns_of_the_fitted_table():
    X, test = held_out_of("GASR")
    check_popular(X, test, fitted("GASR"))
    X, test = held_out_of("M3F")
    check_popular(X, test, fitted("M3F"))


def test_rows_by_hand():
    """Stars of three people; the means of their fitted stars are 3, 3 and 4."""
    train = pd.DataFrame(
        {"a": [5, 1, 4], "b": [1, 5, NAN], "c": [3, 3, NAN], "d": [NAN] * 3, "e": [NAN] * 3},
        index=["Ana", "Ben", "Cem"],
    )
    train.loc["Cem", ["b", "d"]] = [4, 4]
    train = train.astype(float)
    test = pd.DataFrame(
        {"user": ["Ana", "Ana", "Ben", "Cem"], "film": list("dede"), "stars": [4, 3, 2, 4]}
    )
    model = quick(units="table").fit(train)
    by_mean = fr.score_ranking(test, model, k=1)
    assert (by_mean["rows"], by_mean["rows_left_out"]) == (1, 2)  # 4 stars of Ana above 3
    stars = fr.score_ranking(test, model, k=3, relevant=4)
    assert (stars["rows"], stars["rows_left_out"]) == (2, 1)
    assert stars["hit_rate"] == stars["recall"] == 1.0
    # Ana has two candidates, of which one is good; Cem has c and e.
    assert stars["precision"] == 0.5
    assert fr.score_ranking(test, model, k=9, relevant="all")["rows"] == 3


def test_a_row_without_fitted_entries_is_compared_with_the_mean_of_all():
    X = cells_of("GASR")
    X[3] = NAN
    test = np.full(X.shape, NAN)
    test[3, :2] = np.nanmean(X) + 0.01, np.nanmean(X) - 0.01
    model = fit("GASR", X)
    found = fr.score_ranking(as_entries(test), model, k=12)
    assert found["precision"] == pytest.approx(1 / 12)
    assert found["recall"] == 1.0


def test_entries_of_fitted_cells_do_not_count():
    X, test = held_out_of("GASR")
    model = fitted("GASR")
    both = np.where(np.isnan(X), test, X)
    expected = fr.score_ranking(as_entries(test), model, relevant="all")
    assert fr.score_ranking(as_entries(both), model, relevant="all") == expected
    with pytest.raises(InputError, match="cell that was not fitted"):
        fr.score_ranking(as_entries(X), model)


def test_blocks_and_threads_do_not_change_a_bit(monkeypatch):
    _, test = held_out_of("GASR")
    model = fitted("GASR")
    expected = fr.score_ranking(as_entries(test), model, 3)
    for n_threads, at_once in ((1, 7), (2, 1), (4, 30)):
        monkeypatch.setattr(module, "_AT_ONCE", at_once)
        other = model.completion_.with_settings(n_threads=n_threads)
        found = fr.score_ranking(as_entries(test), other, 3)
        assert found == pytest.approx(expected, rel=1e-14)


def test_what_is_refused(tmp_path):
    model, (_, test) = fitted("GASR"), held_out_of("GASR")
    test = as_entries(test)
    for wrong, message in (
        ({"k": 0}, "k must be a whole number at least 1"),
        ({"by": "luck"}, "by must be one of"),
        ({"relevant": "good"}, 'relevant must be "above_mean", "all" or a number'),
        ({"relevant": NAN}, "relevant must be"),
        ({"relevant": 1e9}, "no held-out entry is relevant: the largest of their values is"),
        ({"by": "cautious", "quantile": 0.7}, "quantile must be"),
    ):
        with pytest.raises(InputError, match=message):
            fr.score_ranking(test, model, **wrong)
    with pytest.raises(UnknownNameError, match="99"):
        fr.score_ranking(fr.Observations.from_triplets([99], [0], [1.0]), model)
    with pytest.raises(NotSupportedError, match='by="curious" needs them'):
        fr.score_ranking(as_entries(held_out_of("M3F")[1]), fitted("M3F"), by="curious")
    model.save(tmp_path / "model")
    with pytest.raises(NotSupportedError, match="with_data=True"):
        fr.score_ranking(test, fr.load(tmp_path / "model"))


def test_names_of_the_measures():
    _, test = held_out_of("GASR")
    found = fr.score_ranking(as_entries(test), fitted("GASR"))
    assert tuple(found) == (*MEASURES, "rows", "rows_left_out")


def check_everything():
    for name in ("GASR", "M3F"):
        test_every_method_against_the_twin(name)
        X, test = held_out_of(name)
        check_popular(X, test, fitted(name))
    test_entries_of_fitted_cells_do_not_count()


@pytest.mark.parametrize(
    ("function", "right", "wrong"),
    [
        ("_best", "seen(completion.observations.by_row(), rows)",
         "seen(completion.observations.by_row(), rows[::-1])"),
        ("_best", "data.column_index, minlength", "data.row_index, minlength"),
        ("_held_out", "cells.columns[is_relevant][order]", "cells.columns[is_relevant][::-1]"),
        ("_held_out", "is_new & _are_relevant", "_are_relevant"),
        ("_are_relevant", "values > ", "values < "),
        ("_row_means", "sums / np.maximum(counts, 1)", "sums"),
    ],
)  # fmt: skip
def test_planted_bugs_are_detected(function, right, wrong, monkeypatch):
    plant(monkeypatch, module, function, right, wrong)
    with pytest.raises((AssertionError, IndexError, ValueError)):
        check_everything()
