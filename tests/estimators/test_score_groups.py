"""Scores by column and by level against plain loops, and warnings about columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom

import fillrank as fr
from fillrank.errors import InputError, UnknownNameError
from fillrank.estimators.score import predict_test
from fillrank.estimators.score_groups import (
    GroupScores,
    add_sums,
    compute_scores,
    find_problems,
    sums_by_column,
    sums_by_level,
)
from helpers.quick_fits import quick
from helpers.small_models import DRAWN, METHODS, fitted

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
FIELDS = ["entries", "missing", "rmse", "rmse_in_sd", "mean_error", "coverage"]


def plain_scores(model, test, rows, columns, values, level=0.9):
    """The fields of a group of cells, one cell after the other."""
    train = model.observations_
    errors, relative, covered, missing = [], [], [], []
    for row, column, value in zip(rows, columns, values, strict=True):
        own = train.values[train.columns == column]
        error = model.predict(row, column)[0] - value
        errors.append(error)
        relative.append(error / own.std())
        missing.append(1 - len(own) / train.shape[0])
        if model.posterior_.has_draws:
            low, high = model.predict_interval(row, column, level)
            covered.append(low[0] <= value <= high[0])
    return [
        len(errors),
        np.mean(missing),
        np.sqrt(np.mean(np.square(errors))),
        np.sqrt(np.mean(np.square(relative))),
        np.mean(errors),
        np.mean(covered) if covered else np.nan,
    ]


@pytest.mark.parametrize("name", ["GASR", "SoftImputeALS", "M3F"])
def test_by_column(name):
    model, test = fitted(name)
    found = fr.score_by_column(test, model, level=0.8)
    assert list(found.columns) == ["column", *FIELDS]
    assert sorted(found["column"]) == sorted(set(test.columns))
    for line in found.itertuples(index=False):
        own = test.columns == line.column
        expected = plain_scores(
            model, test, test.rows[own], test.columns[own], test.values[own], level=0.8
        )
        np.testing.assert_allclose(line[1:], expected, rtol=1e-9)
    assert (np.diff(found["rmse_in_sd"]) <= 0).all()


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_by_level(name):
    model, test = fitted(name)
    found = fr.score_by_level(test, model)
    assert list(found.columns) == ["fifth", "prediction", *FIELDS]
    predicted = model.predict(test.rows, test.columns)
    order = np.argsort(predicted)
    ends = np.searchsorted(predicted[order], np.quantile(predicted, [0.2, 0.4, 0.6, 0.8]))
    parts = np.split(order, ends)
    for line, own in zip(found.itertuples(index=False), parts, strict=True):
        assert line.prediction == pytest.approx(predicted[own].mean())
        expected = plain_scores(model, test, test.rows[own], test.columns[own], test.values[own])
        np.testing.assert_allclose(line[2:], expected, rtol=1e-9)
    assert found["fifth"].tolist() == [1, 2, 3, 4, 5]


def test_equal_predictions_are_in_the_same_fifth():
    model, test = fitted("M3F")
    found = fr.score_by_level(test, model)
    predicted = model.predict(test.rows, test.columns)
    assert found["entries"].sum() == len(test)
    assert len(found) <= np.unique(predicted).size
    assert (np.diff(found["prediction"]) > 0).all()


def named_table(n_rows=80, seed=0):
    """A wide table of three columns with labels, and the same without a fifth of its cells."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=n_rows)
    table = pd.DataFrame(
        {
            "pH": 7 + 0.5 * level + 0.1 * rng.normal(size=n_rows),
            "salt": 30 - 2 * level + 0.5 * rng.normal(size=n_rows),
            "oxygen": 8 + level + 0.2 * rng.normal(size=n_rows),
        },
        index=[f"sample {i}" for i in range(n_rows)],
    )
    return table, table.mask(rng.random(table.shape) < 0.2)


@pytest.mark.parametrize("library", [pd, pl])
def test_tables_come_in_the_library_of_the_data_with_its_labels(library):
    full, holes = named_table()
    train = fr.Observations.from_table(holes)
    frame = library.DataFrame(
        {"sample": train.rows, "quantity": train.columns, "reading": train.values}
    )
    data = fr.Observations.from_table(frame, "sample", "quantity", "reading")
    model = quick().fit(data)
    for found in (fr.score_by_column(full, model), fr.score_by_level(full, model)):
        assert isinstance(found, library.DataFrame)
    assert set(fr.score_by_column(full, model)["quantity"]) == {"pH", "salt", "oxygen"}


def test_columns_without_held_out_entries_are_not_listed():
    full, holes = named_table()
    model = quick().fit(holes)
    found = fr.score_by_column(full[["pH"]], model)
    assert found["column"].tolist() == ["pH"]
    some = full.copy()
    some["salt"] = np.nan
    assert set(fr.score_by_column(some, model)["column"]) == {"pH", "oxygen"}


def test_unknown_labels_and_no_entries_are_refused():
    full, holes = named_table()
    model = quick().fit(holes)
    for score in (fr.score_by_column, fr.score_by_level):
        with pytest.raises(UnknownNameError, match="'acid'"):
            score(full.rename(columns={"pH": "acid"}), model)
        with pytest.raises(UnknownNameError, match="'sample x'"):
            score(full.rename(index={"sample 0": "sample x"}), model)
        with pytest.raises(InputError, match="at least one held-out entry"):
            score(model.observations_._select(np.zeros(0, dtype=int)), model)


def test_a_column_without_spread_has_no_relative_error_and_comes_last():
    full, holes = named_table()
    holes["pH"] = 0.1 + 0.2
    model = quick().fit(holes)
    found = fr.score_by_column(full, model)
    assert found["column"].tolist()[-1] == "pH"
    assert np.isnan(found["rmse_in_sd"].iloc[-1])
    assert found["rmse"].iloc[-1] > 0
    # The lowest fifth has only this column, the others have others.
    assert np.isfinite(fr.score_by_level(full, model)["rmse_in_sd"]).tolist() == [False] + 4 * [
        True
    ]


def test_a_model_without_its_entries_has_errors_in_units_alone(tmp_path):
    model, test = fitted("GASR")
    model.save(tmp_path / "model")
    found = fr.score_by_column(test, fr.load(tmp_path / "model"))
    own = fr.score_by_column(test, model).set_index("column").loc[found["column"]]
    assert found[["missing", "rmse_in_sd"]].isna().all(axis=None)
    np.testing.assert_array_equal(found["rmse"], own["rmse"])
    np.testing.assert_array_equal(found["coverage"], own["coverage"])
    assert (np.diff(found["rmse"]) <= 0).all()


def test_methods_without_draws_have_no_coverage():
    for name in sorted(set(METHODS) - DRAWN):
        model, test = fitted(name)
        assert fr.score_by_column(test, model)["coverage"].isna().all()


def test_sums_of_splits_are_those_of_all_their_entries():
    model, test = fitted("GASR")
    halves = test[np.arange(0, len(test), 2)], test[np.arange(1, len(test), 2)]
    sums = add_sums(sums_by_column(predict_test(half, model, 0.9), model) for half in halves)
    expected = sums_by_column(predict_test(test, model, 0.9), model)
    np.testing.assert_allclose(sums, expected, rtol=1e-12)


def test_standard_error_by_resampling():
    """Of the error in standard deviations, against the spread over samples of the same size."""
    rng = np.random.default_rng(0)
    full, holes = named_table(n_rows=2000)
    model = quick().fit(holes)
    test = fr.Observations.of(full[["pH"]])
    scores = compute_scores(sums_by_column(predict_test(test, model, 0.9), model))
    errors = model.predict(test.rows, test.columns) - test.values
    squared = np.square(
        errors / model.observations_.values[model.observations_.columns == "pH"].std()
    )
    samples = rng.choice(squared, (2000, len(squared)))
    spread = np.sqrt(samples.mean(axis=1)).std()
    assert scores.standard_error[0] == pytest.approx(spread, rel=0.1)  # 2,000 samples: 1.6%


def problems_of(model, test, level=0.9):
    scores = compute_scores(sums_by_column(predict_test(test, model, level), model), True)
    labels = model.observations_.column_labels
    return {labels[k]: text for k, text in find_problems(scores, level).items()}


def test_a_column_that_is_predicted_badly_is_named():
    full, holes = named_table(n_rows=200)
    model = quick(n_sweeps=100).fit(holes)
    assert problems_of(model, full.where(holes.isna())) == {}
    bad = full.where(holes.isna())
    bad["pH"] = 14 - bad["pH"] + 2 * np.sign(bad["pH"] - 7)  # another unit, or another instrument
    n = bad["pH"].count()
    found = problems_of(model, bad)
    assert list(found) == ["pH"]
    table = fr.score_by_column(bad, model).set_index("column").loc["pH"]
    assert found["pH"].startswith(
        "predictions are worse than the column mean (error "
        f"{table['rmse_in_sd']:.2f} standard deviations over {n} held-out values), and only "
    )
    assert found["pH"].endswith("% of these values are within their 90% intervals")
    few = bad.copy()
    few.loc[few.index[few["pH"].notna()][19:], "pH"] = np.nan  # 19 values are too few
    assert problems_of(model, few) == {}
    one_more = bad.copy()
    one_more.loc[one_more.index[one_more["pH"].notna()][20:], "pH"] = np.nan
    assert list(problems_of(model, one_more)) == ["pH"]


def made_scores(n, covered, rmse_in_sd=0.5, standard_error=0.1, accuracy=(np.nan, np.nan, np.nan)):
    one = np.ones(1)
    return GroupScores(
        np.array([3]), one, np.array([n]), one, one, rmse_in_sd * one, standard_error * one, one,
        covered / n * one, *(each * one for each in accuracy),
    )  # fmt: skip


@pytest.mark.parametrize("n", [20, 100, 1000])
def test_too_few_values_within_intervals_by_the_binomial_distribution(n):
    at = int(binom.ppf(0.001, n, 0.9))
    assert binom.cdf(at - 1, n, 0.9) < 0.001 <= binom.cdf(at, n, 0.9)
    assert find_problems(made_scores(n, at), 0.9) == {}
    text = f"only {100 * (at - 1) / n:.0f}% of {n:,} held-out values are within their 90% intervals"
    assert find_problems(made_scores(n, at - 1), 0.9) == {3: text}


def test_errors_above_1_within_chance_are_no_problem():
    assert find_problems(made_scores(50, 45, 1.19, 0.1), 0.9) == {}
    assert list(find_problems(made_scores(50, 45, 1.21, 0.1), 0.9)) == [3]
    assert find_problems(made_scores(50, np.nan, np.nan, np.nan), 0.9) == {}


def test_text_is_judged_by_its_accuracy():
    """In place of the mean of the column, the most frequent level is what predictions must beat."""
    few = (0.3, 0.51, 0.1)  # accuracy, that of the most frequent level, standard error
    text = (
        "30% of 50 held-out values are predicted correctly, fewer than by always predicting the most "
        "frequent one (51%)"
    )
    assert find_problems(made_scores(50, 45, np.nan, np.nan, few), 0.9) == {3: text}
    within_chance = (0.32, 0.51, 0.1)
    assert find_problems(made_scores(50, 45, np.nan, np.nan, within_chance), 0.9) == {}
    # Levels that are numbers have an error, which says more.
    assert find_problems(made_scores(50, 45, 0.8, 0.1, few), 0.9) == {}


def test_levels_of_a_model_without_draws():
    model, test = fitted("SoftImpute")
    sums = sums_by_level(predict_test(test, model, 0.9), model)
    assert sums.n.sum() == len(test)
    assert np.isnan(sums.covered).all()


def test_a_column_that_was_not_fitted_beside_levels():
    """It has no interval, and no levels that could be in a set."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=40)
    frame = pd.DataFrame(
        {"x": score, "y": 2 * score + 0.1, "town": np.array(["a", "b", "c"])[np.arange(40) % 3]}
    )
    data = fr.Observations.of(frame)
    hidden = data.columns == "y"
    train, test = data[np.flatnonzero(~hidden)], data[np.flatnonzero(hidden)]
    model = fr.GASR(n_sweeps=20, random_state=0, progress=False).fit(train)
    assert fr.score(test, model)["coverage"] == 0.0
