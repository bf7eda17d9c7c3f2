"""Ratings of people who use the scale in different ways: fits with thresholds by row."""

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import InputError

SETTINGS = {"likelihood": "ordered", "n_sweeps": 300, "random_state": 0, "progress": False}
pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")


def ratings(m=150, n=50, spread=0.5, seed=0):
    """(ratings, thresholds): people have thresholds of their own around those of the table."""
    rng = np.random.default_rng(seed)
    i, j = np.nonzero(rng.random((m, n)) < 0.5)
    Z = rng.normal(0, 0.8, (m, 2)) @ rng.normal(0, 0.8, (2, n))
    thresholds = np.array([-1.2, -0.4, 0.4, 1.2]) + rng.normal(0, spread, (m, 4))
    thresholds.sort(axis=1)
    y = Z[i, j] + rng.normal(0, 0.4, i.size)
    levels = 1 + (y[:, None] > thresholds[i]).sum(axis=1)
    return fr.Observations.from_triplets(i, j, levels.astype(float)), thresholds


@pytest.fixture(scope="module")
def fitted():
    data, thresholds = ratings()
    train, test = data.split(test_fraction=0.2, random_state=0)
    return fr.GASR(**SETTINGS).fit(train), test, thresholds


def stored_thresholds(model):
    return np.array([draw.row_thresholds[:, 1:-1] for draw in model.posterior_.low_rank.draws])


def test_thresholds_of_people_are_recovered(fitted):
    model, _, thresholds = fitted
    found = stored_thresholds(model).mean(axis=0)
    for c in range(4):
        assert np.corrcoef(found[:, c], thresholds[:, c])[0, 1] > 0.6


def test_they_predict_better_than_common_thresholds(fitted):
    """By 0.1 in the log score, ten times the standard error of the difference."""
    model, test, _ = fitted
    train, _ = ratings()[0].split(test_fraction=0.2, random_state=0)
    common = fr.GASR(thresholds="table", **SETTINGS).fit(train)
    assert common.posterior_.low_rank.draws[0].row_thresholds.size == 0
    by_row, by_table = (fr.score(test, each) for each in (model, common))
    assert by_row["log_score"] > by_table["log_score"] + 0.1
    assert by_row["accuracy"] > by_table["accuracy"]


def test_bpmf_has_them_too(fitted):
    model, test, thresholds = fitted
    train, _ = ratings()[0].split(test_fraction=0.2, random_state=0)
    other = fr.BPMF(**SETTINGS).fit(train)
    found = stored_thresholds(other).mean(axis=0)
    assert np.corrcoef(found[:, 0], thresholds[:, 0])[0, 1] > 0.6
    assert fr.score(test, other)["log_score"] > fr.score(test, model)["log_score"] - 0.05


def test_files_have_them(fitted, tmp_path):
    model, test, _ = fitted
    model.save(tmp_path / "a.fillrank")
    loaded = fr.load(tmp_path / "a.fillrank")
    rows, columns = test.rows, test.columns
    np.testing.assert_array_equal(
        loaded.log_density(rows, columns, test.values),
        model.log_density(rows, columns, test.values),
    )


def test_new_rows_have_thresholds_of_their_own(fitted):
    """Two people with the same order of preferences; one of them never says 1 or 5."""
    model, _, _ = fitted
    best = model.predict(0, list(range(50)), statistic="mean").argsort()[:40]
    names = np.repeat(["open", "careful"], 40)
    levels = np.repeat([1.0, 5.0], 20)
    values = np.concatenate([levels, np.where(levels == 1.0, 2.0, 4.0)])
    new = model.fold_in(fr.Observations.from_triplets(names, np.tile(best, 2), values))
    rest = np.setdiff1d(np.arange(50), best)
    extremes = {
        name: np.mean([new.predict_proba(name, j).to_numpy()[0, [0, 4]].sum() for j in rest])
        for name in ("open", "careful")
    }
    assert extremes["open"] > extremes["careful"] + 0.3
    assert new.posterior_.low_rank.draws[0].row_thresholds.shape == (2, 6)


def test_a_row_without_entries_has_those_of_other_rows(fitted):
    model, _, _ = fitted
    levels = np.arange(1.0, 6.0)
    cells = ["nobody"] * 5, [3] * 5
    unknown = np.exp(model.log_density(*cells, levels, unknown="prior"))
    average = model.predict_proba(list(range(150)), 3).to_numpy().mean(axis=0)
    np.testing.assert_allclose(unknown, average, atol=0.1)


def test_new_columns_use_those_of_the_rows(fitted):
    model, _, _ = fitted
    rows = np.arange(100)
    values = model.predict(rows, [7] * 100)
    new = model.fold_in(
        fr.Observations.from_triplets(rows, np.full(100, "copy"), values), axis="columns"
    )
    again = new.predict(np.arange(100, 150), ["copy"] * 50, statistic="mean")
    expected = model.predict(np.arange(100, 150), [7] * 50, statistic="mean")
    assert np.corrcoef(again, expected)[0, 1] > 0.8
    assert new.posterior_.low_rank.draws[0].row_thresholds.shape == (150, 6)


def test_update_draws_them_again(fitted):
    model, _, _ = fitted
    known = model.observations_.columns[model.observations_.rows == 3]
    columns = np.setdiff1d(np.arange(50), known)
    more = fr.Observations.from_triplets(
        np.full(columns.size, 3), columns, np.full(columns.size, 5.0)
    )
    updated = model.update(more)
    before, after = (each.posterior_.low_rank.draws[0].row_thresholds for each in (model, updated))
    assert (before[3, 1:-1] != after[3, 1:-1]).all()
    np.testing.assert_array_equal(np.delete(before, 3, axis=0), np.delete(after, 3, axis=0))


def test_completions_and_recommendations(fitted):
    model, _, _ = fitted
    table = model.sample_completions(1)[0]
    assert set(np.unique(table)) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    for by in ("mean", "cautious", "curious"):
        assert len(model.recommend(3, n=4, by=by)) == 4


def test_any_number_of_threads_gives_the_same_bits():
    data, _ = ratings(m=60, n=30)
    one, two = (fr.GASR(**SETTINGS | {"n_sweeps": 40}, n_threads=n).fit(data) for n in (1, 2))
    np.testing.assert_array_equal(stored_thresholds(one), stored_thresholds(two))


def test_a_resumed_run_is_the_same(tmp_path):
    data, _ = ratings(m=60, n=30)
    short = SETTINGS | {"n_sweeps": 60}
    whole = fr.GASR(**short, burn_in=20).fit(data)
    part = short | {"n_sweeps": 33}
    fr.GASR(**part, burn_in=20, checkpoint=tmp_path / "run").fit(data)
    resumed = fr.GASR(**short, burn_in=20, checkpoint=tmp_path / "run").fit(data)
    np.testing.assert_array_equal(stored_thresholds(whole), stored_thresholds(resumed))


def test_three_levels_have_thresholds_by_row_and_two_have_not():
    data, _ = ratings(m=60, n=30)
    three = fr.Observations.from_triplets(data.rows, data.columns, np.clip(data.values, 2, 4))
    two = fr.Observations.from_triplets(data.rows, data.columns, (data.values > 3) * 1.0)
    short = SETTINGS | {"n_sweeps": 40}
    assert stored_thresholds(fr.GASR(**short).fit(three)).shape[2] == 2
    assert fr.GASR(**short).fit(two).posterior_.low_rank.draws[0].row_thresholds.size == 0
    with pytest.raises(InputError, match="at least three levels"):
        fr.GASR(thresholds="rows", **short).fit(two)


def test_thresholds_by_row_need_ratings():
    with pytest.raises(InputError, match="thresholds by row are for ratings"):
        fr.GASR(thresholds="rows", n_sweeps=20, progress=False).fit(ratings(m=30, n=20)[0])
    with pytest.raises(InputError, match="thresholds"):
        fr.GASR(thresholds="columns", likelihood="ordered").fit(ratings(m=30, n=20)[0])
