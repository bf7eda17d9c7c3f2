"""New rows and columns of fitted models, by names and for every method.

Seeds are fixed. Where chance decides, what is allowed is said to be exceeded at the rate of
`reference.p_values.ALARM` or less.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import fillrank as fr
import fillrank.completions.alignment as alignment
import fillrank.completions.new_rows as module
from fillrank.errors import InputError, NotSupportedError, UnknownNameError
from fillrank.posterior import low_rank
from helpers.fitted_models import DRAWN, METHODS, ORDINAL, cells_of, fitted, new_rows
from helpers.quick_fits import NAN, all_cells, quick, table
from reference.p_values import limit_of
from reference.planted import plant

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")

EACH = pytest.mark.parametrize("name", METHODS)
DRAWING = pytest.mark.parametrize("name", sorted(DRAWN))
NAMES = [f"c{j}" for j in range(8)]
PEOPLE = [f"p{i}" for i in range(30)]
CHAINS = [*sorted(DRAWN), "IPM3F gibbs"]


def new_columns(name):
    """Three columns that were not there at fit, the last without an entry."""
    cells = cells_of(name, n_columns=3, seed=1)
    cells[:, 2] = NAN
    return cells


def block_of(model):
    """All predictions of a model, by its names."""
    data = model.observations_
    return model.predict_block(data.row_labels, data.column_labels)


def numbers_of(model):
    """All the numbers that answers come from."""
    posterior = model.posterior_
    if hasattr(posterior, "scorers"):
        parts = posterior.scorers
    else:
        parts = [(*w[:2], *w.noise) for w in (*posterior.draws, posterior.mean)]
    return [np.array(array, dtype=float) for part in parts for array in part]


def same_numbers(one, other):
    pairs = zip(numbers_of(one), numbers_of(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.fixture(scope="module")
def named():
    """A model of 30 people and the columns c0 to c7."""
    model = quick(n_sweeps=60, units="table", noise="both")
    return model.fit(pd.DataFrame(table(30, 8), index=PEOPLE, columns=NAMES))


@pytest.fixture(scope="module")
def strangers():
    """Five new rows in those columns, as an array."""
    return table(5, 8, seed=3)


# Every method


@EACH
def test_rows_are_filled_as_transform_does(name):
    model, X = fitted(name), new_rows(name)
    new = model.fold_in(X)
    assert isinstance(new, fr.Completion)
    assert new.observations_.shape == (3, 12)
    holes = np.isnan(X)
    rows, columns = np.nonzero(holes)
    expected = new.predict(rows, columns)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(model.transform(X)[holes], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(block_of(new)[holes], expected, rtol=1e-4, atol=1e-5)


@EACH
def test_fold_in_does_not_change_the_model(name):
    model = fitted(name)
    before, observations, settings = numbers_of(model), model.observations_, vars(model).copy()
    new = model.fold_in(new_rows(name))
    if name not in ORDINAL:
        model.fold_in(new_columns(name), axis="columns")
    assert new is not model
    assert vars(model) == settings
    assert model.observations_ is observations
    for got, expected in zip(numbers_of(model), before, strict=True):
        np.testing.assert_array_equal(got, expected)


@EACH
def test_a_copy_of_a_known_row_is_predicted_like_it(name):
    """Neither rows nor columns nor units go astray: other rows are predicted otherwise."""
    model, X = fitted(name), cells_of(name)
    known, copies = block_of(model), block_of(model.fold_in(X))
    assert np.mean((copies - known) ** 2) < 0.15 * known.var()
    if name not in ORDINAL:
        copies = block_of(model.fold_in(X, axis="columns"))
        assert np.mean((copies - known) ** 2) < 0.15 * known.var()


@EACH
def test_columns(name):
    model, X = fitted(name), new_columns(name)
    if name in ORDINAL:
        with pytest.raises(NotSupportedError, match="new columns need a new fit"):
            model.fold_in(X, axis="columns")
        return
    new = model.fold_in(X, axis="columns")
    assert new.observations_.shape == (20, 3)
    assert new.observations.shape[1] == 3
    assert np.isfinite(block_of(new)).all()
    (missing,) = new.predict_missing()
    assert len(missing) == np.isnan(X).sum()


@EACH
def test_new_rows_support_all_queries(name, tmp_path):
    X = new_rows(name)
    new = fitted(name).fold_in(X)
    (missing,) = new.predict_missing()
    rows, columns = np.nonzero(np.isnan(X))
    np.testing.assert_array_equal(missing["row"], rows)
    np.testing.assert_array_equal(missing["column"], columns)
    np.testing.assert_array_equal(missing["value"], new.predict(rows, columns))
    best = new.recommend(2, n=12)
    assert sorted(best["column"]) == list(range(12))  # nothing of this row was seen
    assert len(new.recommend(0, n=12)) == np.isnan(X[0]).sum()
    new.save(tmp_path / "new", with_data=True)
    again = fr.load(tmp_path / "new")
    assert same_numbers(again, new)
    np.testing.assert_array_equal(again.recommend(2, n=12)["value"], best["value"])
    if name in DRAWN:
        low, high = new.predict_interval(rows, columns)
        assert (low < high).all()
        for completed in new.sample_completions(2):
            np.testing.assert_array_equal(completed[~np.isnan(X)], X[~np.isnan(X)])
    else:
        for ask in (lambda: new.predict_interval(0, 0), new.sample_completions):
            with pytest.raises(NotSupportedError):
                ask()


def check_further_rows(name):
    model, X = fitted(name), cells_of(name, n_rows=2, seed=2)
    once = model.fold_in(X[:1])
    again = once.fold_in(X)
    assert same_numbers(again, model.fold_in(X))
    np.testing.assert_array_equal(once.transform(X), model.transform(X))
    assert same_numbers(again.fold_in(X[:1]), once)


@EACH
def test_further_rows_equal_those_folded_into_the_fit(name):
    """What was folded in before has taught nothing: one row would say that all are like it."""
    check_further_rows(name)


@pytest.mark.parametrize("name", ["GASR", "BPMF", "SoftImpute", "IPM3F gibbs"])
def test_a_prior_from_folded_in_rows_is_detected(name, monkeypatch):
    monkeypatch.setattr(module, "source_of", lambda model, axis: model.posterior)
    with pytest.raises(AssertionError):
        check_further_rows(name)


@EACH
def test_further_columns_equal_those_folded_into_the_fit(name):
    if name in ORDINAL:
        return
    model, X = fitted(name), cells_of(name, n_columns=2, seed=2)
    once = model.fold_in(X[:, :1], axis="columns")
    assert same_numbers(once.fold_in(X, axis="columns"), model.fold_in(X, axis="columns"))


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"IPM3F gibbs"}))
def test_blocks_of_rows_give_the_same(name, monkeypatch):
    """But for IPM3F with draws, whose chance depends on the place of a row in its block."""
    model, X = fitted(name), cells_of(name, n_rows=17, seed=2)
    whole = model.transform(X)
    for rows_at_once in (1, 2, 7, 16):
        monkeypatch.setattr(module, "_ROWS_AT_ONCE", rows_at_once)
        # The products of linear algebra may round otherwise for another number of rows.
        np.testing.assert_allclose(model.transform(X), whole, rtol=1e-12, atol=1e-12)


@EACH
def test_rows_do_not_depend_on_other_new_rows(name):
    model, X = fitted(name), cells_of(name, n_rows=6, seed=2)
    together, fewer = block_of(model.fold_in(X)), block_of(model.fold_in(X[:4]))
    np.testing.assert_allclose(together[:4], fewer, rtol=1e-12, atol=1e-12)


# Names


def test_names_are_found_in_any_order_and_number(named, strangers):
    whole = np.full((5, 8), NAN)
    whole[:, [6, 1, 3]] = strangers[:, [6, 1, 3]]
    expected = named.fold_in(pd.DataFrame(whole, columns=NAMES))
    part = pd.DataFrame(strangers[:, [6, 1, 3]], columns=["c6", "c1", "c3"], index=list("vwxyz"))
    got = named.fold_in(part)
    assert got.observations_.shape == (5, 8)
    assert list(got.observations_.column_labels) == NAMES
    np.testing.assert_allclose(block_of(got), block_of(expected), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        got.predict("y", ["c0", "c7"]), expected.predict(3, ["c0", "c7"]), rtol=1e-5
    )
    with pytest.raises(UnknownNameError, match="'p0'"):
        got.predict("p0", "c0")


def test_new_columns_are_found_by_the_names_of_their_rows(named):
    values = table(30, 2, seed=5)[:4]
    new = named.fold_in(
        pd.DataFrame(values, index=["p7", "p2", "p29", "p0"], columns=["new", "newer"]),
        axis="columns",
    )
    whole = np.full((30, 2), NAN)
    whole[[7, 2, 29, 0]] = values
    expected = named.fold_in(whole, axis="columns")
    assert list(new.observations_.row_labels) == PEOPLE
    np.testing.assert_allclose(block_of(new), block_of(expected), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        new.predict(["p3", "p4"], "newer"), expected.predict(["p3", "p4"], 1), rtol=1e-5
    )
    assert new.feature_names is None


@pytest.mark.parametrize("columns", [["c0", "zzz"], ["x", "zzz"]])
def test_unknown_columns(named, columns):
    with pytest.raises(
        UnknownNameError, match=r"'zzz'.*columns that the model was fitted on: leave others out"
    ) as info:
        named.fold_in(pd.DataFrame(table(3, 2), columns=columns))
    assert "New rows can have values only in columns" in str(info.value)


def test_unknown_rows_of_new_columns(named):
    triplets = fr.Observations.from_triplets(["p1", "nobody"], ["new", "new"], [1.0, 2.0])
    with pytest.raises(UnknownNameError, match=r"'nobody'.*columns can have values only in rows"):
        named.fold_in(triplets, axis="columns")


def as_sparse(X):
    """What is not stored is missing."""
    return sp.csr_array(np.nan_to_num(X))


@pytest.mark.parametrize("form", [np.asarray, as_sparse])
def test_arrays_are_matched_by_position(named, strangers, form):
    X = form(strangers)
    frame = pd.DataFrame(strangers, columns=NAMES)
    np.testing.assert_array_equal(block_of(named.fold_in(X)), block_of(named.fold_in(frame)))
    with pytest.raises(InputError, match=r"all 8 columns, in their order; got 5. Pad it with NaN"):
        named.fold_in(X[:, :5])
    with pytest.raises(InputError, match="all 30 rows, in their order; got 5"):
        named.fold_in(X, axis="columns")


def test_matching_by_position_instead_of_label_is_detected(monkeypatch):
    monkeypatch.setattr(alignment, "WITHOUT_LABELS", (*alignment.WITHOUT_LABELS, "wide"))
    with pytest.raises(AssertionError):
        test_integer_labels_are_not_positions()


def test_integer_labels_are_not_positions():
    """A model of an array has the names 0, 1, ...: a table with them in another order is no array."""
    X = table(30, 6, rank=2)
    model = quick(units="table", noise="both").fit(X)
    new = table(4, 6, rank=2, seed=1)
    turned = [3, 0, 5, 1, 4, 2]
    expected = model.fold_in(new)
    for given in (
        pd.DataFrame(new[:, turned], columns=turned),
        fr.Observations.from_table(pd.DataFrame(new[:, turned], columns=turned)),
    ):
        np.testing.assert_allclose(block_of(model.fold_in(given)), block_of(expected), rtol=1e-5)
        np.testing.assert_allclose(model.predict(given), block_of(expected)[:, turned], rtol=1e-5)
    text = pd.DataFrame(new, columns=list("abcdef"))
    np.testing.assert_array_equal(block_of(model.fold_in(text)), block_of(expected))


def test_labels_are_not_positions_after_an_array_was_folded_in(named, strangers):
    new = named.fold_in(strangers)
    with pytest.raises(UnknownNameError, match="'a'"):
        new.fold_in(pd.DataFrame(strangers, columns=list("abcdefgh")))


def test_a_wrong_axis_and_no_table(named, strangers):
    with pytest.raises(InputError, match="axis must be one of"):
        named.fold_in(strangers, axis="both")
    with pytest.raises(InputError, match=r"Use read\('new.csv'\)"):
        named.fold_in("new.csv")


# Kinds of tables

LONG = {"user": ["Zoe", "Zoe", "Max"], "item": ["c1", "c6", "c2"], "rating": [1.0, 0.5, -1.0]}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_long_tables(named, kind):
    new = named.fold_in(kind(LONG))
    (missing,) = new.predict_missing(level=0.9)
    assert type(missing) is kind
    assert list(missing.columns) == ["user", "item", "rating", "lower", "upper"]
    assert list(missing["user"]) == ["Zoe"] * 6 + ["Max"] * 7
    assert list(missing["item"])[:6] == ["c0", "c2", "c3", "c4", "c5", "c7"]
    best = new.recommend("Max", n=2)
    assert type(best) is kind
    assert list(best["user"]) == ["Max", "Max"]
    (completed,) = new.sample_completions(1)
    assert type(completed) is kind


def test_wide_tables(named, strangers):
    index = pd.Index(list("vwxyz"), name="who")
    new = named.fold_in(pd.DataFrame(strangers, index=index, columns=NAMES))
    (completed,) = new.sample_completions(1)
    assert completed.index.equals(index)
    assert list(completed.columns) == NAMES
    frame = pl.DataFrame({"who": list("vwxyz")} | dict(zip(NAMES, strangers.T, strict=True)))
    (completed,) = named.fold_in(frame.fill_nan(None)).sample_completions(1)
    assert isinstance(completed, pl.DataFrame)
    assert completed.columns == ["who", *NAMES]
    assert completed["who"].to_list() == list("vwxyz")


def test_a_table_with_some_columns_is_completed_in_all(named):
    """A completed row has all columns that are known, whichever it came with."""
    new = named.fold_in(pd.DataFrame([[0.3, -0.2]], index=["Zoe"], columns=["c5", "c2"]))
    (completed,) = new.sample_completions(1)
    assert list(completed.columns) == NAMES
    assert completed.loc["Zoe", ["c5", "c2"]].tolist() == [0.3, -0.2]


# Uncertainty


@DRAWING
def test_a_row_without_entries_has_the_widest_intervals(name):
    X = new_rows(name)
    low, high = fitted(name).fold_in(X).predict_interval(*all_cells((3, 12)), kind="signal")
    width = (high - low).reshape(3, 12)
    assert (width[2] > width[0]).all()
    assert np.mean(width[2] > 1.5 * width[0]) > 0.8  # some columns hardly vary
    spread = block_of(fitted(name)).std(axis=0)
    assert (width[2] > 1.5 * spread).all()  # 90% of a normal law are 3.3 standard deviations


def test_observations_of_new_rows_vary_more(named, strangers):
    new = named.fold_in(strangers)
    cells = np.repeat(np.arange(5), 8), NAMES * 5
    low, high = new.predict_interval(*cells, kind="signal")
    lower, higher = new.predict_interval(*cells, kind="observation")
    assert (higher - lower >= high - low).all()
    # Independent noise adds its variance: 90% of a normal distribution are 3.29 standard deviations.
    expected = np.sqrt((high - low) ** 2 + 3.29**2 * named.noise_variance_)
    assert np.mean(higher - lower) == pytest.approx(np.mean(expected), rel=0.1)
    assert np.mean(higher - lower) > 1.05 * np.mean(high - low)


def test_new_columns_of_new_rows(named):
    """Both without entries: the draws of the one share no chance with those of the other.

    Over 30 draws a correlation has a standard deviation of 0.19, and the mean of 20 one of 0.041.
    """
    assert abs(shared_chance(named)) < 0.041 * limit_of(1)


def test_shared_random_numbers_are_detected(named, monkeypatch):
    right = low_rank.fold_in_rows
    monkeypatch.setattr(
        low_rank, "fold_in_rows", lambda *given, **more: right(*given[:4], 0, given[5], **more)
    )  # the seed 0 for both sides
    assert shared_chance(named) > 0.4


def shared_chance(model):
    """The mean correlation over the draws of the first factors of the i-th row and i-th column."""
    rows, columns = np.full((21, 8), NAN), np.full((21, 21), NAN)
    rows[20, 0], columns[20, 20] = 0.1, 0.1
    both = model.fold_in(rows).fold_in(columns, axis="columns")
    left, right = (
        np.array([getattr(draw, side)[:20, 0] for draw in both.posterior_.draws])
        for side in ("left", "right")
    )
    z = [(part - part.mean(axis=0)) / part.std(axis=0) for part in (left, right)]
    return np.mean(z[0] * z[1])


# What a model of new rows is not


@pytest.mark.parametrize("name", CHAINS)
def test_new_rows_have_no_run(name):
    new = fitted(name).fold_in(new_rows(name))
    asks = [new.diagnostics]
    if name in DRAWN:
        asks += [new.to_arviz]
    for ask in asks:
        with pytest.raises(
            NotSupportedError, match=r"model of new rows.* use the one that it came"
        ):
            ask()


def test_limits_of_new_rows_and_columns_together(named, strangers):
    columns = pd.DataFrame([[0.1]], index=[2], columns=["new"])
    both = named.fold_in(strangers).fold_in(columns, axis="columns")
    assert block_of(both).shape == (5, 1)
    for ask in (both.fold_in, both.transform):
        with pytest.raises(
            NotSupportedError, match=r"new columns and rows cannot take further rows"
        ):
            ask(np.ones((1, 1)))
    with pytest.raises(NotSupportedError, match="cannot take further columns"):
        both.fold_in(columns, axis="columns")


def test_limits_of_new_rows_from_a_file(named, strangers, tmp_path):
    named.fold_in(strangers).save(tmp_path / "new")
    loaded = fr.load(tmp_path / "new")
    with pytest.raises(NotSupportedError, match="Give them to the model that it came from"):
        loaded.fold_in(strangers)
    with pytest.raises(NotSupportedError, match="further rows"):
        loaded.transform(strangers)
    assert loaded.fold_in(strangers, axis="columns").observations_.shape == (5, 8)
    named.save(tmp_path / "all")
    assert same_numbers(fr.load(tmp_path / "all").fold_in(strangers), named.fold_in(strangers))


def test_threads_do_not_change_a_bit():
    X, new = table(60, 40, rank=2), table(300, 40, rank=2, seed=1)
    first = None
    for n_threads in (1, 2, 4):
        model = quick(n_threads=n_threads).fit(X)
        rows, columns = model.fold_in(new), model.fold_in(new[:60, :9], axis="columns")
        got = [*numbers_of(rows), *numbers_of(columns), model.transform(new)]
        got += [*rows.predict_interval(7, np.arange(40)), *rows.sample_completions(2)]
        first = first or got
        for one, other in zip(first, got, strict=True):
            np.testing.assert_array_equal(one, other)


# Coverage


@pytest.fixture(scope="module")
def splits():
    """Six fits of 60 x 45 out of 90 x 65, and the table with holes and the signal of all of it."""
    made = []
    for seed in range(6):
        data, truth = fr.synthetic(90, 65, 2, 0.5, 0.4, random_state=seed)
        X = np.full(truth.shape, NAN)
        X[data.row_index, data.column_index] = data.values
        X, truth = 7 + 2 * X, 7 + 2 * truth
        frame = pd.DataFrame(X[:60, :45])
        made.append((quick(n_sweeps=200, random_state=seed).fit(frame), X, truth))
    return made


def coverage(splits, axis):
    """The share of the cells of new rows (or columns) whose signal is in its 90% interval."""
    shares = []
    for model, X, truth in splits:
        if axis == "rows":
            new = pd.DataFrame(X[60:, :45], index=range(60, 90))
            rows, columns = np.arange(60, 90), np.arange(45)
        else:
            new = pd.DataFrame(X[:60, 45:], columns=range(45, 65))
            rows, columns = np.arange(60), np.arange(45, 65)
        i, j = np.repeat(rows, columns.size), np.tile(columns, rows.size)
        model = model.fold_in(new.iloc[::-1, ::-1], axis=axis)
        low, high = model.predict_interval(i, j, 0.9, "signal")
        shares.append(np.mean((low <= truth[i, j]) & (truth[i, j] <= high)))
    return np.mean(shares)


# From fit to fit the share varies by 0.024 for rows and 0.030 for columns, the mean of six by 0.010 and
# 0.012; thirty other fits had 0.91. What is allowed is that 0.01 and 4.2 of these.
TOLERANCE = {"rows": 0.052, "columns": 0.061}
AXES = pytest.mark.parametrize("axis", TOLERANCE)


@AXES
def test_coverage_of_intervals(splits, axis):
    assert coverage(splits, axis) == pytest.approx(0.9, abs=TOLERANCE[axis])


@AXES
def test_entries_at_wrong_positions_are_detected(splits, axis, monkeypatch):
    plant(monkeypatch, module, "_reindex", "positions[entries.indices]", "entries.indices")
    assert coverage(splits, axis) < 0.9 - 2 * TOLERANCE[axis]


@AXES
def test_forgotten_units_are_detected(splits, axis, monkeypatch):
    monkeypatch.setattr(low_rank, "standardise_new", lambda values, location, scale: values)
    assert coverage(splits, axis) < 0.9 - 2 * TOLERANCE[axis]


@AXES
def test_intervals_without_posterior_variance_are_detected(splits, axis, monkeypatch):
    """As if a row were known once the draws of the columns are."""
    right = low_rank.fold_in_rows

    def wrong(draws, *given, **more):
        expected = [right([draw], *given, **more)[1] for draw in draws]
        return expected, right(draws, *given, **more)[1]

    monkeypatch.setattr(low_rank, "fold_in_rows", wrong)
    assert coverage(splits, axis) < 0.9 - 2 * TOLERANCE[axis]
