import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import fillrank as fr
from fillrank.errors import InputError, UnknownNameError
from helpers.quick_fits import NAN, quick, table

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")

NAMES = [f"c{j}" for j in range(6)]


def stored(X):
    """The cells that are not NaN as a sparse array, zeros included."""
    rows, columns = np.nonzero(~np.isnan(X))
    return sp.coo_array((X[rows, columns], (rows, columns)), shape=X.shape)


def test_observed_values_are_unchanged():
    X = table()
    filled = quick().fit_transform(X)
    seen = ~np.isnan(X)
    np.testing.assert_array_equal(filled[seen], X[seen])
    assert np.isfinite(filled).all()


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_a_stored_zero_is_a_value_and_what_is_not_stored_is_missing(form):
    X = table()
    X[0, ~np.isnan(X[0])] = 0.0
    model = quick()
    filled = model.fit_transform(stored(X).asformat(form))
    assert len(model.observations_) == np.sum(~np.isnan(X))
    # The columns of a sparse matrix, such as ratings, have one unit.
    np.testing.assert_array_equal(filled, quick(units="table", noise="both").fit_transform(X))
    assert (filled[0, ~np.isnan(X[0])] == 0.0).all()
    assert (filled[np.isnan(X)] != 0.0).all()


def test_masked_cells_are_missing():
    X = table()
    masked = np.ma.masked_array(np.where(np.isnan(X), 1e6, X), mask=np.isnan(X))
    np.testing.assert_array_equal(quick().fit_transform(masked), quick().fit_transform(X))
    np.testing.assert_array_equal(quick().fit(X).transform(masked), quick().fit(X).transform(X))


def test_pandas_with_an_index():
    X = table(10, 6)
    frame = pd.DataFrame(X, index=pd.Index(list("abcdefghij"), name="who"), columns=NAMES)
    filled = quick().fit_transform(frame)
    pd.testing.assert_frame_equal(
        filled, pd.DataFrame(quick().fit_transform(X), index=frame.index, columns=frame.columns)
    )


def test_polars_with_a_label_column():
    X = table(10, 6)
    frame = pl.DataFrame({"who": list("abcdefghij")} | dict(zip(NAMES, X.T, strict=True)))
    frame = frame.with_columns(pl.col(NAMES).fill_nan(None))
    filled = quick().fit_transform(frame)
    assert isinstance(filled, pl.DataFrame)
    assert filled.columns == frame.columns
    assert filled["who"].to_list() == list("abcdefghij")
    np.testing.assert_array_equal(filled[NAMES].to_numpy(), quick().fit_transform(X))


def test_long_tables_give_wide_ones_of_their_kind():
    frame = pl.DataFrame(
        {"user": ["u", "u", "v", "w"], "item": list("xyxy"), "rating": [1, 2, 3, 4]}
    )
    filled = quick().fit_transform(frame)
    assert isinstance(filled, pl.DataFrame)
    assert filled.columns == ["user", "x", "y"]


def test_transform_of_a_table_finds_columns_by_name():
    """Two tables with a label column, which scikit-learn's own comparison of columns does not see."""
    X = table(30, 6, rank=2)
    frame = pl.DataFrame({"who": [f"r{i}" for i in range(30)]} | dict(zip(NAMES, X.T, strict=True)))
    frame = frame.with_columns(pl.col(NAMES).fill_nan(None))
    model = quick().fit(frame)
    turned = frame.select(["who", *NAMES[::-1]])
    expected = model.transform(frame)
    got = model.transform(turned)
    assert got.columns == turned.columns
    np.testing.assert_allclose(got[NAMES].to_numpy(), expected[NAMES].to_numpy(), rtol=1e-6)
    with pytest.raises(UnknownNameError, match="zzz"):
        model.transform(frame.rename({"c3": "zzz"}))


def test_transform_of_some_columns_only():
    X = table(30, 6, rank=1)
    model = quick().fit(fr.Observations.from_table(pd.DataFrame(X, columns=NAMES)))
    part = fr.Observations.from_table(pd.DataFrame(X[:, [4, 1]], columns=["c4", "c1"]))
    whole = np.full((30, 6), NAN)
    whole[:, [4, 1]] = X[:, [4, 1]]
    expected = model.predict(fr.Observations.from_table(pd.DataFrame(whole, columns=NAMES)))
    np.testing.assert_allclose(model.predict(part), expected[:, [4, 1]])


def test_transform_of_new_rows_is_close_to_the_truth():
    observations, truth = fr.synthetic(150, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    X = np.full(truth.shape, NAN)
    X[observations.row_index, observations.column_index] = observations.values
    model = quick(n_sweeps=100, dtype="float64").fit(X[:100])
    filled = model.transform(X[100:])
    missing = np.isnan(X[100:])
    error = np.sqrt(np.mean((filled - truth[100:])[missing] ** 2))
    assert error < 0.1
    np.testing.assert_array_equal(filled[~missing], X[100:][~missing])
    # Of a row of which nothing is known, the mean over the rows is expected.
    nothing = model.predict(np.vstack([X[100], np.full(30, NAN)]))[1]
    means = model.predict_block(np.arange(100), np.arange(30)).mean(axis=0)
    np.testing.assert_allclose(nothing, means, atol=1e-12)


@pytest.mark.parametrize("kind", [int, np.int8, bool, np.float32])
def test_other_types_of_number(kind):
    X = (np.arange(60).reshape(10, 6) % 7 > 2).astype(kind)
    filled = quick().fit_transform(X)
    assert filled.dtype == np.float64
    np.testing.assert_array_equal(filled, X.astype(float))


def test_predicted_ratings_are_clipped_to_the_scale():
    rng = np.random.default_rng(0)
    X = np.clip(np.rint(3 + 3 * np.outer(rng.normal(size=40), rng.normal(size=20))), 1, 5)
    X[rng.random(X.shape) < 0.3] = NAN
    missing = np.isnan(X)
    free = quick(value_range=None).fit_transform(X)
    assert free[missing].min() < 1 < 5 < free[missing].max()
    assert quick().fit(X).posterior_.units.value_range == (1.0, 5.0)
    for value_range in ("auto", (1, 5), np.array([1.0, 5.0])):
        model = quick(value_range=value_range)
        filled = model.fit_transform(X)
        np.testing.assert_allclose(filled[missing], np.clip(free, 1, 5)[missing])
        low, high = model.predict_interval([0], np.arange(20), kind="observation")
        assert low.min() >= 1
        assert high.max() <= 5
    narrow = quick(value_range=(2, 4)).fit_transform(X)
    assert narrow[missing].min() == 2
    np.testing.assert_array_equal(narrow[~missing], X[~missing])


def test_measurements_have_no_scale():
    assert quick().fit(table()).posterior_.units.value_range is None


@pytest.mark.parametrize("wrong", [(5, 1), (1, 1), (1, NAN), 5, "many", (1, 2, 3), (None, 5)])
def test_a_wrong_range_is_refused_before_the_run(wrong, monkeypatch):
    monkeypatch.setattr("fillrank.estimators.sampled.execute", None)
    with pytest.raises(InputError, match="value_range must be"):
        quick(value_range=wrong).fit(table())


def mixed_frame():
    """Numbers, categories, dates and limits with missing values, and two columns that are not fitted."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=40)
    frame = pd.DataFrame(
        {
            "x": z,
            "town": np.where(z > 0.3, "Bern", "Chur"),
            "who": [f"p{i}" for i in range(40)],
            "grade": pd.Categorical(np.where(z > 0, "high", "low"), ["low", "high"], ordered=True),
            "lead": [f"{value:.2f}" if value > 0.5 else "<0.5" for value in np.exp(z)],
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.rint(10 * z), unit="D"),
            "ok": pd.array(z > 0.1, dtype="boolean"),
            "remark": [f"remark {i}" for i in range(40)],
        }
    )
    for name in ("x", "town", "grade", "day", "ok"):
        frame.loc[rng.random(40) < 0.2, name] = None
    return frame


def test_a_table_of_mixed_columns_comes_back_in_its_types():
    frame = mixed_frame()
    filled = quick().fit_transform(frame)
    expected = frame.dtypes.astype(str).to_dict() | {"lead": "float64"}
    assert filled.dtypes.astype(str).to_dict() == expected
    assert list(filled) == list(frame)
    assert filled.notna().all(axis=None)
    for name in frame.columns.drop("lead"):
        seen = frame[name].notna()
        pd.testing.assert_series_equal(filled.loc[seen, name], frame.loc[seen, name])
    assert (filled["lead"][frame["lead"] == "<0.5"] <= 0.5).all()


def test_new_rows_of_mixed_columns():
    frame = mixed_frame()
    model = quick().fit(frame)
    new = frame.head(2).assign(who=["q1", "q2"])
    filled = model.transform(new)
    assert filled["who"].tolist() == ["q1", "q2"]
    assert filled.notna().all(axis=None)
    assert set(filled["town"]) <= {"Bern", "Chur"}


def test_a_bootstrap_sample_keeps_its_index():
    frame = mixed_frame().drop(columns=["who", "remark"])
    sample = frame.sample(40, replace=True, random_state=0)
    filled = quick().fit_transform(sample)
    assert filled.index.equals(sample.index)
    assert filled.notna().all(axis=None)
