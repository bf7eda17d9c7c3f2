"""New entries of known rows and columns: as fold_in of the same rows, and nothing else changes.

Seeds are fixed.
"""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError, UnknownNameError
from fillrank.posterior import low_rank
from fillrank.table import entries
from helpers.fitted_models import fitted
from helpers.quick_fits import NAN, quick, table
from reference.planted import plant

COLUMNS = [f"c{j}" for j in range(15)]
ROWS = [f"r{i}" for i in range(30)]


def frame(seed=0, **changes):
    X = table(
        **({"n_rows": 30, "n_columns": 15, "rank": 2, "missing": 0.5, "seed": seed} | changes)
    )
    return pd.DataFrame(X, index=ROWS, columns=COLUMNS)


pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")


@pytest.fixture(scope="module")
def model():
    return quick(units="table", noise="both", n_sweeps=60).fit(frame()).completion_


def more_of(X, cells, value=0.7):
    """A long table of new values of cells (row, column)."""
    rows, columns = zip(*cells, strict=True)
    return fr.Observations.from_triplets(rows, columns, np.linspace(value, 2 * value, len(cells)))


def unseen(X, row, n):
    return [(row, column) for column in X.columns[X.loc[row].isna()][:n]]


def all_entries(X, more):
    X = X.copy()
    for row, column, value in zip(more.rows, more.columns, more.values, strict=True):
        X.loc[row, column] = value
    return X


def spread(model, row):
    low, high = model.predict_interval(row, COLUMNS, kind="signal")
    return (high - low).mean()


def test_an_updated_row_is_the_same_row_folded_in(model):
    """In a table with the rows that have new entries only, draws also have the same positions."""
    X = frame()
    more = more_of(X, unseen(X, "r2", 3) + unseen(X, "r20", 2))
    updated = model.update(more)
    folded = model.fold_in(all_entries(X, more).loc[["r2", "r20"]])
    for w, v in zip(updated.posterior_.draws, folded.posterior_.draws, strict=True):
        np.testing.assert_array_equal(w.left[[2, 20]], v.left)
        np.testing.assert_array_equal(w.noise.rows[[2, 20]], v.noise.rows)
    for row in ("r2", "r20"):
        np.testing.assert_allclose(
            updated.predict(row, COLUMNS), folded.predict(row, COLUMNS), rtol=1e-4, atol=1e-5
        )
        for one, other in zip(
            updated.predict_interval(row, COLUMNS),
            folded.predict_interval(row, COLUMNS),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    for one, other in zip(
        updated.posterior_.blocks.rows, folded.posterior_.blocks.rows, strict=True
    ):
        np.testing.assert_array_equal(one.values[[2, 20]], other.values)


def test_nothing_else_changes(model):
    X = frame()
    updated = model.update(more_of(X, unseen(X, "r2", 3)))
    others = [row for row in ROWS if row != "r2"]
    np.testing.assert_array_equal(
        updated.predict_block(others, COLUMNS), model.predict_block(others, COLUMNS)
    )
    i, j = np.repeat(others, 15), COLUMNS * 29
    np.testing.assert_array_equal(updated.predict_interval(i, j), model.predict_interval(i, j))
    assert updated.rank_ == model.rank_
    assert updated.diagnostics().reason == model.diagnostics().reason
    assert len(model.observations_) + 3 == len(updated.observations_)
    assert not np.array_equal(updated.predict("r2", COLUMNS), model.predict("r2", COLUMNS))
    assert updated.row_noise_[3] == pytest.approx(model.row_noise_[3])


def test_a_new_entry_narrows_the_intervals_of_its_row(model):
    """Of the row with the fewest entries."""
    X = frame()
    row = X.notna().sum(axis=1).idxmin()
    columns = [column for _, column in unseen(X, row, 8)]
    expected = fr.Observations.from_triplets([row] * 8, columns, model.predict(row, columns))
    assert spread(model.update(expected), row) < 0.8 * spread(model, row)


def test_new_values_replace_old_ones(model):
    X = frame()
    column = X.columns[X.loc["r4"].notna()][0]
    more = fr.Observations.from_triplets(["r4"], [column], [9.0])
    updated = model.update(more)
    assert len(updated.observations_) == len(model.observations_)
    data = updated.observations_
    where = (data.rows == "r4") & (data.columns == column)
    assert data.values[where].tolist() == [9.0]
    folded = model.fold_in(all_entries(X, more).loc[["r4"]])
    np.testing.assert_array_equal(
        updated.posterior_.draws[0].left[4], folded.posterior_.draws[0].left[0]
    )


def test_two_updates(model):
    X = frame()
    cells = unseen(X, "r2", 4)
    more = more_of(X, cells)
    first, second = (
        fr.Observations.from_triplets(more.rows[part], more.columns[part], more.values[part])
        for part in (slice(2), slice(2, 4))
    )
    twice = model.update(first).update(second)
    once = model.update(more)
    assert len(twice.observations_) == len(once.observations_)
    # The row itself is among the rows that are its prior, so that the order matters a little.
    difference = twice.predict("r2", COLUMNS) - once.predict("r2", COLUMNS)
    assert np.abs(difference).max() < 0.2 * spread(once, "r2")


@pytest.mark.parametrize("units", ["table", "columns"])
def test_columns_that_learn(units):
    X = frame()
    X *= np.linspace(1, 100, 15)
    model = quick(units=units, noise="columns", n_sweeps=60).fit(X).completion_
    cells = [(row, "c3") for row in X.index[X["c3"].isna()][:6]]
    more = more_of(X, cells, value=20.0)
    updated = model.update(more, axis="columns")
    others = [column for column in COLUMNS if column != "c3"]
    np.testing.assert_array_equal(
        updated.predict_block(ROWS, others), model.predict_block(ROWS, others)
    )
    assert not np.array_equal(updated.predict(ROWS, "c3"), model.predict(ROWS, "c3"))
    np.testing.assert_array_equal(
        updated.posterior_.units.scale, model.posterior_.units.scale
    )  # those of the fit
    if units == "table":
        folded = model.fold_in(all_entries(X, more)[["c3"]], axis="columns")
        np.testing.assert_array_equal(
            updated.posterior_.draws[1].right[3], folded.posterior_.draws[1].right[0]
        )


def test_the_mean_and_the_draws_agree(model):
    """Of rows and of columns; the mean is in another basis than the draws."""
    X = frame()
    updated = model.update(more_of(X, unseen(X, "r2", 3)))
    average = np.mean([w.left[2] @ w.right.T for w in updated.posterior_.draws], axis=0)
    mean = updated.posterior_.mean.left[2] @ updated.posterior_.mean.right.T
    assert np.abs(average - mean).max() < 0.5


def test_weights(model):
    X = frame()
    more = more_of(X, unseen(X, "r2", 3))
    weighted = dataclasses.replace(more, weights=np.full(3, 1e6))
    exact = model.update(weighted)
    assert exact.observations_.weights.max() == 1e6
    assert exact.observations_.weights.min() == 1.0
    near, far = (
        np.abs(each.predict("r2", more.columns) - more.values).mean()
        for each in (exact, model.update(more))
    )
    assert near < far


def test_given_features_stay():
    X = frame()
    features = pd.DataFrame({"x": np.random.default_rng(0).standard_normal(30)}, index=ROWS)
    model = quick(units="table", noise="both").fit(X, row_features=features)
    more = more_of(X, unseen(X, "r2", 3))
    updated = model.update(more)
    folded = model.fold_in(all_entries(X, more).loc[["r2"]], row_features=features)
    np.testing.assert_array_equal(
        updated.posterior_.draws[1].left[2], folded.posterior_.draws[1].left[0]
    )
    values = updated.posterior_.blocks.rows[0].values
    np.testing.assert_array_equal(values, model.posterior_.blocks.rows[0].values)
    # A person of whom only features were known, and then the first entries.
    zoe = pd.DataFrame({"x": [0.3]}, index=["Zoe"])
    new = model.fold_in(row_features=zoe)
    first = fr.Observations.from_triplets(["Zoe"] * 2, ["c1", "c2"], [1.0, 0.5])
    learnt = new.update(first)
    direct = model.fold_in(first, row_features=zoe)
    np.testing.assert_array_equal(learnt.posterior_.draws[1].left, direct.posterior_.draws[1].left)


def test_rows_that_were_folded_in(model):
    """Their prior is that of the fit, not of the few new rows."""
    new = table(3, 15, rank=2, seed=5)
    labelled = pd.DataFrame(new, index=list("xyz"), columns=COLUMNS)
    folded = model.fold_in(labelled)
    more = more_of(labelled, unseen(labelled, "x", 2))
    updated = folded.update(more)
    direct = model.fold_in(all_entries(labelled, more))
    np.testing.assert_array_equal(
        updated.posterior_.draws[0].left[0], direct.posterior_.draws[0].left[0]
    )
    with pytest.raises(NotSupportedError, match="has new rows only"):
        folded.update(more, axis="columns")


def test_arrays_have_all_rows_and_columns():
    X = table(30, 15, rank=2, missing=0.5)
    model = quick(units="table", noise="both").fit(X)
    more = np.full(X.shape, NAN)
    more[3, np.isnan(X[3])] = 0.5
    updated = model.update(more)
    assert len(updated.observations_) == len(model.observations_) + np.isfinite(more).sum()
    with pytest.raises(InputError, match="must have all 30 rows"):
        model.update(more[:5])


def test_a_solver_can_be_updated():
    model = fitted("SoftImpute").completion_
    X = np.full(model.observations_.shape, NAN)
    X[2] = 3.0
    updated = model.update(X)
    assert (
        np.abs(updated.predict(2, range(12)) - 3.0).mean()
        < np.abs(model.predict(2, range(12)) - 3.0).mean()
    )
    np.testing.assert_array_equal(updated.predict(3, range(12)), model.predict(3, range(12)))


def test_errors(model, tmp_path):
    X = frame()
    more = more_of(X, unseen(X, "r2", 2))
    with pytest.raises(UnknownNameError, match=r"'Zoe'.*fold_in completes new ones"):
        model.update(fr.Observations.from_triplets(["Zoe"], ["c1"], [1.0]))
    with pytest.raises(UnknownNameError, match=r"'x'.*fold_in"):
        model.update(fr.Observations.from_triplets(["r1"], ["x"], [1.0]))
    with pytest.raises(InputError, match="axis must be one of"):
        model.update(more, axis="both")
    with pytest.raises(NotSupportedError, match="by a new fit only"):
        fitted("M3F").update(np.where(np.eye(20, 12) > 0, 3.0, NAN))


def test_a_model_without_its_entries(model, tmp_path):
    X = frame()
    without = dataclasses.replace(
        model,
        observations=fr.Observations.without_entries(
            model.observations_.row_labels,
            model.observations_.column_labels,
            model.observations_.origin,
        ),
    )
    with pytest.raises(NotSupportedError, match="with_data=True"):
        without.update(more_of(X, unseen(X, "r2", 2)))


def test_forgotten_old_entries_are_detected(model, monkeypatch):
    """A planted bug: rows by one of their entries alone."""
    plant(
        monkeypatch, entries, "places_in_rows",
        "sizes = pointers[rows + 1] - first", "sizes = np.ones(len(rows), int)",
    )  # fmt: skip
    X = frame()
    more = more_of(X, unseen(X, "r2", 3))
    folded = model.fold_in(all_entries(X, more).loc[["r2"]])
    wrong = model.update(more).posterior_.draws[0].left[2]
    assert np.abs(wrong - folded.posterior_.draws[0].left[0]).max() > 1e-3


def test_a_mean_in_another_basis_is_detected(model, monkeypatch):
    monkeypatch.setattr(
        low_rank,
        "_spliced_mean",
        lambda mean, new, positions, axis: low_rank._spliced(mean, new, positions, axis),
    )
    X = frame()
    posterior = model.posterior_
    turn = np.eye(15, dtype="f4") + 0.5 * np.eye(15, k=1, dtype="f4")
    left, right = posterior.mean[:2]
    mean = posterior.mean._replace(left=left @ np.linalg.inv(turn).T, right=right @ turn)
    other = dataclasses.replace(model, posterior=dataclasses.replace(posterior, mean=mean))
    more = more_of(X, unseen(X, "r2", 3))
    wrong = other.update(more).predict("r2", COLUMNS)
    folded = other.fold_in(all_entries(X, more).loc[["r2"]]).predict("r2", COLUMNS)
    assert np.abs(wrong - folded).max() > 0.01
    monkeypatch.undo()
    right = other.update(more).predict("r2", COLUMNS)
    np.testing.assert_allclose(right, folded, rtol=1e-4, atol=1e-5)
