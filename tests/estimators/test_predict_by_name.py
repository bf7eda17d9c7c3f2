import numpy as np
import pandas as pd
import polars as pl
import pytest

import fillrank as fr
from fillrank.errors import InputError, UnknownNameError
from helpers.quick_fits import NAN, all_cells, quick, table

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")

ROWS = [f"row {i}" for i in range(12)]


@pytest.fixture(scope="module")
def named():
    """A model whose rows are text and whose columns are whole numbers out of order."""
    frame = pd.DataFrame(table(12, 5), index=ROWS, columns=[30, 10, 50, 20, 40])
    return quick().fit(frame)


def test_labels_are_mapped_to_positions(named):
    by_position = named.posterior_.block(np.arange(12), np.arange(5))
    assert named.predict(["row 3", "row 0"], [50, 30]).tolist() == pytest.approx(
        [by_position[3, 2], by_position[0, 0]], rel=1e-5
    )
    np.testing.assert_allclose(
        named.predict_block(["row 7", "row 1"], [40, 10, 10]),
        by_position[np.ix_([7, 1], [4, 1, 1])],
    )


def test_a_single_label_is_broadcast(named):
    columns = [30, 10, 50, 20, 40]
    block = named.predict_block(ROWS, columns)
    np.testing.assert_allclose(named.predict("row 2", columns), block[2], rtol=1e-5)
    np.testing.assert_allclose(named.predict(ROWS, 20), block[:, 3], rtol=1e-5)
    np.testing.assert_allclose(named.predict("row 2", 20), block[2:3, 3], rtol=1e-5)
    low, high = named.predict_interval("row 2", columns)
    assert low.shape == high.shape == (5,)
    assert (low < high).all()
    assert named.predict([], []).shape == (0,)
    assert named.predict([], 20).shape == (0,)


@pytest.mark.parametrize("ask", ["predict", "predict_interval", "predict_block"])
def test_unknown_names_are_named(named, ask):
    with pytest.raises(UnknownNameError, match="'nobody'"):
        getattr(named, ask)(["row 1", "nobody"], [10, 10])
    with pytest.raises(UnknownNameError, match="99"):
        getattr(named, ask)(["row 1"], [99])
    with pytest.raises(UnknownNameError, match="pass 10"):
        getattr(named, ask)("row 1", "10")


def test_lengths_must_agree(named):
    for ask in (named.predict, named.predict_interval):
        with pytest.raises(InputError, match="2 rows and 3 columns"):
            ask(["row 1", "row 2"], [10, 20, 30])


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, NAN, "0.9", None, True, 90])
def test_levels_are_shares(named, level):
    with pytest.raises(InputError, match="level must be above 0 and below 1"):
        named.predict_interval("row 1", 10, level)
    if level is not None:
        with pytest.raises(InputError, match="level must be above 0 and below 1"):
            named.predict_missing(level)


def test_kinds_of_interval(named):
    with pytest.raises(InputError, match="one of \\('signal', 'observation'\\), got 'noise'"):
        named.predict_interval("row 1", 10, kind="noise")


def test_intervals_are_nested_and_observations_vary_more(named):
    rows, columns = np.repeat(ROWS, 5).tolist(), [30, 10, 50, 20, 40] * 12
    mean = named.predict(rows, columns)
    narrow = named.predict_interval(rows, columns, 0.5, kind="signal")
    wide = named.predict_interval(rows, columns, 0.95, kind="signal")
    noisy = named.predict_interval(rows, columns, 0.95, kind="observation")
    assert (wide[0] <= narrow[0]).all()
    assert (narrow[0] <= narrow[1]).all()
    assert (narrow[1] <= wide[1]).all()
    assert (noisy[0] < wide[0]).mean() > 0.95
    assert (noisy[1] > wide[1]).mean() > 0.95
    assert ((noisy[0] < mean) & (mean < noisy[1])).all()


def test_rows_without_columns(named):
    for lone in ("row 1", 3):
        with pytest.raises(InputError, match="got rows without columns"):
            named.predict(lone)


def test_predict_of_a_table_is_its_signal():
    X = table(40, 10, rank=1)
    model = quick(n_sweeps=60).fit(X)
    signal = model.predict(X)
    assert signal.shape == X.shape
    assert np.sqrt(np.nanmean((signal - X) ** 2)) < 0.2
    assert (signal[~np.isnan(X)] != X[~np.isnan(X)]).all()


@pytest.mark.parametrize("cells_at_once", [1, 12, 40, 10**6])
def test_missing_cells_come_once_each_whatever_the_blocks(monkeypatch, cells_at_once):
    monkeypatch.setattr("fillrank.completions.missing_cells._CELLS_AT_ONCE", cells_at_once)
    X = table(15, 6)
    X[4] = 1.0  # a row that misses nothing
    model = quick().fit(X)
    blocks = list(model.predict_missing(level=0.8))
    at_once = max(1, cells_at_once // 6)
    has_missing = np.isnan(X).any(axis=1)
    assert len(blocks) == sum(has_missing[i : i + at_once].any() for i in range(0, 15, at_once))
    whole = pd.concat(blocks, ignore_index=True)
    assert list(whole.columns) == ["row", "column", "value", "lower", "upper"]
    rows, columns = np.nonzero(np.isnan(X))
    np.testing.assert_array_equal(whole["row"], rows)
    np.testing.assert_array_equal(whole["column"], columns)
    np.testing.assert_array_equal(whole["value"], model.predict(rows, columns))
    low, high = model.predict_interval(rows, columns, 0.8, kind="observation")
    # Quantiles of one cell at a time may differ in the last bit.
    np.testing.assert_allclose(whole["lower"], low, rtol=1e-14)
    np.testing.assert_allclose(whole["upper"], high, rtol=1e-14)


def test_missing_cells_come_in_the_kind_and_names_of_the_table():
    frame = pl.DataFrame(
        {"user": ["u", "u", "v", "w"], "item": list("xyxy"), "rating": [1, 2, 3, 5]}
    )
    (missing,) = quick().fit(frame).predict_missing()
    assert isinstance(missing, pl.DataFrame)
    assert missing.columns == ["user", "item", "rating"]
    assert missing["user"].to_list() == ["v", "w"]
    assert missing["item"].to_list() == ["y", "x"]


def test_nothing_missing_gives_no_table():
    assert list(quick().fit(table(missing=0.0)).predict_missing()) == []


def test_predictions_are_consistent_across_methods():
    X = table()
    model = quick()
    filled = model.fit_transform(X)
    rows, columns = all_cells(X.shape)
    means = model.predict(rows, columns).reshape(X.shape)
    np.testing.assert_allclose(filled[np.isnan(X)], means[np.isnan(X)], rtol=1e-4, atol=1e-5)


def test_threads_do_not_change_a_bit():
    observations, _ = fr.synthetic(150, 120, rank=3, missing=0.3, random_state=0)
    rows, columns = all_cells((150, 120))
    answers = []
    for n_threads in (1, 2, 4):
        model = quick(n_threads=n_threads, n_sweeps=10, n_chains=2).fit(observations)
        answers.append(
            [
                model.predict(rows, columns),
                *model.predict_interval(rows[:300], columns[:300]),
                model.singular_values_,
                *model.history_.values(),
            ]
        )
    for other in answers[1:]:
        for got, expected in zip(other, answers[0], strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "all", True])
def test_a_wrong_number_of_threads(wrong):
    with pytest.raises(InputError, match="n_threads must be"):
        quick(n_threads=wrong).fit(table())
