"""Recommendations by names: which rows, which columns, in which order, and as which table.

The orders themselves are compared with slow twins, by position, in tests/posterior.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

import fillrank as fr
import fillrank.completions.candidates as module
from fillrank.errors import InputError, NotSupportedError, UnknownNameError
from fillrank.posterior import low_rank
from fillrank.posterior.recommend import LeftOut, Top, seen
from helpers.fitted_models import DRAWN, METHODS, ONE_UNIT, cells_of, fitted, ratings
from helpers.quick_fits import NAN, quick, table

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")

EACH = pytest.mark.parametrize("name", METHODS)
DRAWING = pytest.mark.parametrize("name", sorted(DRAWN))
ROWS = [f"r{i}" for i in range(30)]
FILMS = [f"film {j}" for j in range(10)]


@pytest.fixture(scope="module", name="X")
def table_with_holes():
    X = table(30, 10, rank=2)
    X[4] = 1.0  # has seen everything
    X[5, 1:] = NAN  # has seen one film
    X[[7, 9], ::3] = NAN
    return X


@pytest.fixture(scope="module")
def model(X):
    return quick(n_sweeps=60, **ONE_UNIT).fit(pd.DataFrame(X, index=ROWS, columns=FILMS))


def listed(answer, row):
    """The columns for a row, in their order."""
    return [c for r, c in zip(answer["row"], answer["column"], strict=True) if r == row]


def check_best(answer, model, row, n, allowed):
    """The n best of the allowed columns by predictions, best first, with these as values."""
    got = listed(answer, row)
    means = model.predict(row, got)
    values = [v for r, v in zip(answer["row"], answer["value"], strict=True) if r == row]
    np.testing.assert_allclose(values, means, rtol=1e-5, atol=1e-6)
    assert len(got) == len(set(got)) == min(n, len(allowed))
    assert set(got) <= set(allowed)
    assert (np.diff(values) <= 1e-12).all()
    if rest := sorted(set(allowed) - set(got)):
        assert model.predict(row, rest).max() <= means.min() + 1e-6


# Rows and numbers


@EACH
def test_every_method_has_the_best_by_its_predictions(name):
    model, X = fitted(name), cells_of(name)
    answer = model.recommend(n=4)
    assert list(answer.columns) == ["row", "column", "value"]
    for row in range(20):
        check_best(answer, model, row, 4, np.flatnonzero(np.isnan(X[row])).tolist())


def missing_in(X, row):
    return [film for film, x in zip(FILMS, X[ROWS.index(row)], strict=True) if np.isnan(x)]


def test_one_row(model, X):
    answer = model.recommend("r7", n=2)
    assert answer["row"].tolist() == ["r7", "r7"]
    check_best(answer, model, "r7", 2, missing_in(X, "r7"))


def test_rows_are_in_the_requested_order_with_repetitions(model):
    answer = model.recommend(["r9", "r5", "r9", "r0"], n=1)
    assert answer["row"].tolist() == ["r9", "r5", "r9", "r0"]
    assert answer["column"][0] == answer["column"][2]
    for row in ("r9", "r5", "r0"):
        pd.testing.assert_frame_equal(
            model.recommend(row, n=1),
            answer[answer["row"] == row].drop_duplicates().reset_index(drop=True),
        )


def test_all_rows_are_those_of_the_table(model, X):
    answer = model.recommend(n=2)
    expected = [row for row in ROWS for _ in missing_in(X, row)[:2]]
    assert answer["row"].tolist() == expected
    pd.testing.assert_frame_equal(answer, model.recommend(ROWS, n=2))


def test_a_row_with_fewer_columns_than_requested(model, X):
    for n in (9, 10, 11, 10**9):
        answer = model.recommend("r5", n=n)
        check_best(answer, model, "r5", n, FILMS[1:])
    few = model.recommend(["r4", "r5"], n=100)
    assert few["row"].tolist() == ["r5"] * 9


def test_a_complete_row_gets_no_recommendations(model):
    answer = model.recommend("r4")
    assert isinstance(answer, pd.DataFrame)
    assert list(answer.columns) == ["row", "column", "value"]
    assert len(answer) == 0


def test_no_rows(model):
    assert len(model.recommend([])) == 0


def test_ten_is_the_default_number(model):
    assert len(model.recommend("r5", leave_out=None)) == 10
    assert len(model.recommend("r5")) == 9


# What is left out


def test_nothing_is_left_out(model):
    for row in ("r4", "r5", "r7"):
        check_best(model.recommend(row, n=6, leave_out=None), model, row, 6, FILMS)


def test_another_table_is_left_out(model):
    seen = fr.Observations.from_triplets(
        ["r7", "r7", "r4"], ["film 3", "film 0", "film 9"], [1, 1, 1]
    )
    answer = model.recommend(["r4", "r5", "r7"], n=10, leave_out=seen)
    check_best(answer, model, "r7", 10, sorted({*FILMS} - {"film 3", "film 0"}))
    check_best(answer, model, "r4", 10, FILMS[:9])
    check_best(answer, model, "r5", 10, FILMS)


def test_a_table_in_another_order_is_left_out_by_name(model, X):
    frame = pd.DataFrame(X, index=ROWS, columns=FILMS)
    for leave_out in (frame, frame.iloc[::-1, ::-1], frame.iloc[::-1, ::-1][FILMS]):
        pd.testing.assert_frame_equal(
            model.recommend(["r1", "r2"], leave_out=leave_out), model.recommend(["r1", "r2"])
        )
    part = frame.loc[["r2"], ["film 8", "film 2"]].fillna(1.0)
    answer = model.recommend("r2", leave_out=part)
    check_best(answer, model, "r2", 10, sorted({*FILMS} - {"film 8", "film 2"}))


def test_cells_of_an_array_are_left_out_by_position(model, X):
    pd.testing.assert_frame_equal(model.recommend(n=3, leave_out=X), model.recommend(n=3))
    with pytest.raises(InputError, match="all 30 rows"):
        model.recommend(leave_out=X[:5])


def test_what_cannot_be_left_out(model):
    with pytest.raises(
        InputError, match=r"leave_out must be one of \('seen',\), got 'all' instead"
    ):
        model.recommend(leave_out="all")
    strange = fr.Observations.from_triplets(["r1"], ["opera"], [1.0])
    with pytest.raises(UnknownNameError, match="'opera'"):
        model.recommend(leave_out=strange)
    with pytest.raises(UnknownNameError, match="'nobody'"):
        model.recommend(leave_out=fr.Observations.from_triplets(["nobody"], ["film 1"], [1.0]))


def test_columns_are_left_out_of_all_rows_beside_those_observed(model, X):
    for columns in (["film 0", "film 3"], np.array(["film 3", "film 0"]), {"film 0", "film 3"}):
        answer = model.recommend(n=10, leave_out=columns)
        for row in ROWS:
            allowed = sorted({*missing_in(X, row)} - {"film 0", "film 3"})
            check_best(answer, model, row, 10, allowed)


def test_columns_are_left_out_by_row_beside_those_observed(model, X):
    further = {"r9": ["film 0", "film 9"], "r5": "film 2", "r1": []}
    answer = model.recommend(["r5", "r7", "r9", "r5"], n=10, leave_out=further)
    rest = answer.iloc[-8:]  # the second r5
    assert rest["row"].tolist() == ["r5"] * 8
    for part, row in ((answer.iloc[:-8], "r5"), (answer, "r7"), (answer, "r9"), (rest, "r5")):
        gone = further.get(row, [])
        allowed = sorted({*missing_in(X, row)} - {*([gone] if isinstance(gone, str) else gone)})
        check_best(part, model, row, 10, allowed)


@pytest.mark.parametrize("by", ["mean", "cautious", "curious"])
def test_only_some_columns_are_candidates(model, X, by):
    only = ["film 9", "film 2", "film 3", "film 2"]
    answer = model.recommend(n=10, by=by, only=only, random_state=0)
    free = model.recommend(n=10, by=by, random_state=0)
    expected = free[free["column"].isin(only)].reset_index(drop=True)
    pd.testing.assert_frame_equal(answer, expected)
    assert len(answer) > 30


@EACH
def test_every_method_takes_candidates(name):
    model, X = fitted(name), cells_of(name)
    answer = model.recommend(n=4, only=[1, 3, 5, 7], leave_out=[3])
    for row in range(20):
        check_best(answer, model, row, 4, [j for j in (1, 5, 7) if np.isnan(X[row, j])])


def test_candidates_that_leave_nothing(model):
    assert len(model.recommend("r5", only=["film 1"], leave_out=["film 1"])) == 0
    assert len(model.recommend("r5", only=[])) == 0
    assert len(model.recommend("r5", leave_out=[])) == 9


def test_candidates_that_are_not_known(model):
    with pytest.raises(UnknownNameError, match="'opera'"):
        model.recommend(leave_out=["film 1", "opera"])
    with pytest.raises(UnknownNameError, match="'opera'"):
        model.recommend(only=["film 1", "opera"])
    with pytest.raises(UnknownNameError, match="'opera'"):
        model.recommend(leave_out={"r1": ["opera"]})
    with pytest.raises(UnknownNameError, match=r"leave_out.*'nobody'"):
        model.recommend("r1", leave_out={"r1": [], "nobody": ["film 1"]})


def test_observed_cells_need_the_entries_of_the_fit(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = fr.load(tmp_path / "model")
    for leave_out in ("seen", ["film 1"], {"r1": ["film 1"]}):
        with pytest.raises(NotSupportedError, match="leave_out=None for none"):
            loaded.recommend("r1", leave_out=leave_out)
    pd.testing.assert_frame_equal(
        loaded.recommend("r1", leave_out=None), model.recommend("r1", leave_out=None)
    )
    model.save(tmp_path / "model", with_data=True)
    pd.testing.assert_frame_equal(fr.load(tmp_path / "model").recommend(), model.recommend())


# Cautious and curious


def draws_of(model, row):
    """The signal of every draw in all columns of a row, in the data's units."""
    i = model.observations_.row_positions(row)[0]
    location, scale, _ = model.posterior_.units
    return location + scale * np.array(
        [draw.right @ draw.left[i].astype(float) for draw in model.posterior_.draws]
    )


@DRAWING
def test_cautious_is_by_a_quantile(name):
    model = fitted(name)
    for quantile in (0.1, 0.3):
        answer = model.recommend(3, n=12, by="cautious", quantile=quantile, leave_out=None)
        expected = np.quantile(draws_of(model, 3), quantile, axis=0, method="weibull")
        np.testing.assert_allclose(
            answer["value"], expected[answer["column"]], rtol=1e-4, atol=1e-5
        )
        assert (np.diff(answer["value"]) <= 0).all()
    interval = model.predict_interval(3, answer["column"], level=0.4, kind="signal")
    np.testing.assert_allclose(answer["value"], interval[0], rtol=1e-4, atol=1e-5)


@DRAWING
def test_curious_is_by_one_draw_for_each_row(name):
    model = fitted(name)
    answer = model.recommend([3] * 40, n=12, by="curious", leave_out=None, random_state=0)
    draws = draws_of(model, 3)
    used = set()
    for k in range(0, 480, 12):
        part = answer[k : k + 12]
        errors = np.abs(draws[:, part["column"]] - part["value"].to_numpy()).max(axis=1)
        assert errors.min() < 1e-4
        assert (np.diff(part["value"]) <= 0).all()
        used.add(int(errors.argmin()))
    # Of 15 draws or more, 40 tries miss 11 with a probability below 1e-10.
    assert len(used) >= 5


def test_seeds_of_curious_recommendations(model):
    ask = {"n": 3, "by": "curious"}
    first = model.recommend(random_state=0, **ask)
    pd.testing.assert_frame_equal(first, model.recommend(random_state=0, **ask))
    pd.testing.assert_frame_equal(
        first, model.recommend(random_state=np.random.default_rng(0), **ask)
    )
    assert not first.equals(model.recommend(random_state=1, **ask))
    with pytest.raises(InputError, match="random_state must be"):
        model.recommend(random_state="now", **ask)


@pytest.mark.parametrize("by", ["cautious", "curious"])
def test_observed_cells_are_left_out_in_every_order(model, X, by):
    answer = model.recommend(n=10, by=by, random_state=0)
    for row in ROWS:
        assert sorted(listed(answer, row)) == sorted(missing_in(X, row))


@pytest.mark.parametrize("name", sorted(METHODS.keys() - DRAWN))
@pytest.mark.parametrize("by", ["cautious", "curious"])
def test_methods_without_draws(name, by):
    with pytest.raises(
        NotSupportedError, match=f'by="{by}" needs them, by="mean" does not'
    ) as info:
        fitted(name).recommend(1, by=by)
    assert "GASR and BPMF have" in str(info.value)


# Kinds of tables


def test_long_tables_keep_their_column_names():
    for kind in (pd.DataFrame, pl.DataFrame):
        frame = kind({"user": list("uuvw"), "item": list("xyxy"), "rating": [1.0, 2.0, 3.0, 5.0]})
        answer = quick(**ONE_UNIT).fit(frame).recommend()
        assert type(answer) is kind
        assert list(answer.columns) == ["user", "item", "rating"]
        assert list(answer["user"]) == ["v", "w"]
        assert list(answer["item"]) == ["y", "x"]


def test_wide_tables_of_polars(X):
    frame = pl.DataFrame({"who": ROWS} | dict(zip(FILMS, X.T, strict=True))).fill_nan(None)
    answer = quick(**ONE_UNIT).fit(frame).recommend("r5", n=3)
    assert isinstance(answer, pl.DataFrame)
    assert answer.columns == ["row", "column", "value"]
    assert set(answer["column"]) <= set(FILMS[1:])


def test_names_of_an_array_are_numbers(X):
    answer = quick(**ONE_UNIT).fit(X).recommend(5, n=3)
    assert answer["row"].tolist() == [5, 5, 5]
    assert set(answer["column"]) <= set(range(1, 10))


# Ratings


def test_clipping_to_the_rating_scale_causes_no_ties():
    """Values end at 5 stars, but the order is that of what they would have been."""
    X = ratings(40, 12)
    model = quick(**ONE_UNIT).fit(X)
    free = quick(value_range=None, **ONE_UNIT).fit(X)
    for by in ("mean", "cautious", "curious"):
        ask = {"n": 12, "by": by, "random_state": 0}
        got, expected = model.recommend(**ask), free.recommend(**ask)
        assert got["column"].tolist() == expected["column"].tolist()
        np.testing.assert_allclose(got["value"], expected["value"].clip(1, 5), rtol=1e-12)
        assert got["value"].max() == 5.0
    best = model.recommend(n=2)
    assert best[best["value"] == 5.0]["row"].duplicated().any()  # there would be ties


# What is refused


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "3", None, True])
def test_wrong_numbers(model, wrong):
    with pytest.raises(InputError, match="n must be a whole number at least 1"):
        model.recommend("r1", n=wrong)


@pytest.mark.parametrize("wrong", [0, 0.5, 1, -0.1, NAN, "low"])
def test_wrong_quantiles(model, wrong):
    with pytest.raises(InputError, match=r"quantile must be above 0 and below 0\.5"):
        model.recommend("r1", by="cautious", quantile=wrong)


def test_other_refusals(model):
    with pytest.raises(InputError, match="by must be one of"):
        model.recommend("r1", by="luck")
    with pytest.raises(UnknownNameError, match="'nobody'"):
        model.recommend(["r1", "nobody"])
    with pytest.raises(NotFittedError):
        fr.GASR().recommend()


# Planted bugs


def _seen_by_place(entries, rows):
    """As if the rows asked were the first ones."""
    return _seen(entries, np.arange(len(rows)))


def _seen_by_nobody(entries, rows):
    return LeftOut(np.zeros(len(rows) + 1, np.int64), np.zeros(0, np.int32))


_seen = seen


@pytest.mark.parametrize("wrong", [_seen_by_place, _seen_by_nobody])
def test_planted_bugs_in_what_is_left_out_are_detected(wrong, model, X, monkeypatch):
    monkeypatch.setattr(module, "seen", wrong)
    with pytest.raises(AssertionError):
        check_best(model.recommend("r7", n=10), model, "r7", 10, missing_in(X, "r7"))


@pytest.mark.parametrize("bug", ["worst first", "one less", "values of others"])
def test_planted_bugs_in_the_order_are_detected(bug, model, X, monkeypatch):
    right = low_rank.best_by_mean

    def wrong(*given):
        columns, scores = right(*given)
        if bug == "worst first":
            return Top(columns[:, ::-1], scores[:, ::-1])
        if bug == "one less":
            return Top(columns[:, 1:], scores[:, 1:])
        return Top(columns, np.roll(scores, 1, axis=1))

    monkeypatch.setattr(low_rank, "best_by_mean", wrong)
    with pytest.raises(AssertionError):
        check_best(model.recommend("r5", n=4), model, "r5", 4, FILMS[1:])


def test_threads_do_not_change_a_bit(X):
    answers = []
    for n_threads in (1, 2, 4):
        fit = quick(n_threads=n_threads).fit(X)
        answers.append(
            [fit.recommend(by=by, random_state=0) for by in ("mean", "cautious", "curious")]
        )
    for other in answers[1:]:
        for got, expected in zip(other, answers[0], strict=True):
            pd.testing.assert_frame_equal(got, expected, check_exact=True)
