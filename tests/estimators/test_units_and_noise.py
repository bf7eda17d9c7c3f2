"""Units by column and noise by row and column: what is chosen, what is said, and the answers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import fillrank as fr
from fillrank.errors import InputError
from fillrank.estimators import gasr as gasr_estimator
from fillrank.solvers import starts
from fillrank.table.units import choose_units, column_statistics, column_units
from helpers.quick_fits import NAN, SHORT, all_cells, quick

pytestmark = [
    pytest.mark.usual_trial,
    pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning"),
]
SAMPLERS = pytest.mark.parametrize("method", [fr.GASR, fr.BPMF])


def alike(n_rows=40, n_columns=6, seed=0, noise=0.3):
    """Two factors and noise: columns of similar mean and standard deviation, a fifth missing."""
    rng = np.random.default_rng(seed)
    angles = np.linspace(0, np.pi, n_columns, endpoint=False)
    X = rng.normal(size=(n_rows, 2)) @ np.array([np.cos(angles), np.sin(angles)])
    X += noise * rng.normal(size=X.shape)
    X[rng.random(X.shape) < 0.2] = NAN
    return X


def of(X):
    return fr.Observations.from_matrix(X)


def test_column_statistics():
    X = alike()
    X[:, 2] = NAN
    X[:, 4] = 7.0
    count, mean, sd = column_statistics(of(X))
    np.testing.assert_array_equal(count, np.sum(~np.isnan(X), axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        np.testing.assert_allclose(mean, np.nanmean(X, axis=0), rtol=1e-12)
        np.testing.assert_allclose(sd, np.nanstd(X, axis=0), rtol=1e-12, atol=1e-15)
    # Neither large values nor a large mean lose the digits of the deviations.
    _, _, large = column_statistics(of(1e150 * X))
    np.testing.assert_allclose(large, 1e150 * sd, rtol=1e-12, atol=1e135)
    _, _, shifted = column_statistics(of(X + 2.0**30))
    np.testing.assert_allclose(shifted[:2], sd[:2], rtol=1e-6)
    largest = np.nextafter(np.inf, 0.0)
    np.testing.assert_allclose(column_statistics(of([[largest], [largest]])).mean, largest)


def test_units_of_columns():
    X = alike()
    X[:, 2], X[:, 4], X[:, 5] = NAN, -7.0, 0.0
    left, kept = (column_units(of(X), None, keep_empty) for keep_empty in (False, True))
    assert np.isnan(left.location[2])
    assert (kept.location[2], kept.scale[2]) == (0.0, 1.0)
    # Predictions of a constant differ from it by rounding, up to a million standard deviations away.
    for units in (left, kept):
        restored = units.restore(np.array([-1e3, 1e3]), 4)
        np.testing.assert_allclose(restored, -7.0, rtol=1e-8)
        np.testing.assert_allclose(units.restore(np.array([-1e3, 1e3]), 5), 0.0, atol=1e-140)
    with pytest.raises(InputError, match="Change their unit first"):
        column_units(of(1e160 * alike()), None, keep_empty=False)


@pytest.mark.parametrize(
    ("change", "by_column", "reason"),
    [
        (lambda X: X, False, "alike in mean and standard deviation"),
        (lambda X: X * [1, 1, 1, 1, 1, 8], True, "the standard deviations of the columns range"),
        (lambda X: X + np.array([0, 0, 0, 0, 0, 50]), True, "the means of the columns range"),
        (lambda X: X * [0, 0, 0, 0, 0, 1], False, "too few columns vary"),
        (lambda X: X * [1, 1, 1, 1, 1, 0] + [0, 0, 0, 0, 0, 1e6], True, "the means of the columns"),
        (lambda X: X * [0, 0, 0, 0, 0, 1] + [1e6, 0, 0, 0, 0, 0], True, "the means of the columns"),
        (lambda X: X[:4] * [1, 1, 1, 1, 1, 8], False, "too few columns vary"),
        (lambda X: np.clip(np.rint(X + 3), 1, 5), False, "ratings"),
    ],
    ids=["alike", "sd", "mean", "constant", "far constant", "far constants", "few rows", "ratings"],
)
def test_whether_columns_have_their_own_units(change, by_column, reason):
    X = change(alike(60))
    choice = choose_units(of(X))
    assert choice.by_column is by_column
    assert reason in choice.reason
    model = quick(n_sweeps=4).fit(X)
    assert model.units_ == ("columns" if by_column else "table")
    what = "Each column has its own unit" if by_column else "All columns have one unit"
    assert model.notes_[0] == f"{what}: {choice.reason}."
    # The noise of columns with their own units differs by column; that of ratings is tried out.
    assert model.noise_ in (("columns",) if by_column else ("columns", "both"))


@pytest.mark.parametrize(
    ("n_rows", "spread", "most", "fewest"),
    [(5, 2.5, 6, 0), (5, 60.0, 200, 190), (40, 6.0, 200, 190)],
)
def test_chance_does_not_give_columns_their_own_units(n_rows, spread, most, fewest):
    """Of 200 tables; the rate of false alarms is 1% for a table, and more than 6 of 200 have 0.4%."""
    rng = np.random.default_rng(n_rows)
    scales = np.append(np.ones(39), spread)
    tables = [rng.normal(0, scales, (n_rows, 40)) for _ in range(200)]
    assert fewest <= sum(choose_units(of(X)).by_column for X in tables) <= most


def test_long_tables_and_sparse_matrices_have_one_unit():
    unlike = of(alike() * [1, 1, 1, 1, 1, 1e3])
    long = fr.Observations.from_triplets(unlike.rows, unlike.columns, unlike.values)
    assert not choose_units(long).by_column
    model = quick(n_sweeps=4).fit(long)
    assert (model.units_, model.noise_) == ("table", "both")
    assert quick(n_sweeps=4, units="columns").fit(long).units_ == "columns"


@SAMPLERS
def test_the_unit_of_a_column_changes_that_column_only(method):
    """To the bit for a power of two, with which standard units are the same numbers."""
    X, factor = alike(), np.array([1.0, 1024.0, 1.0, 1.0, 2.0**-20, 1.0])
    settings = SHORT | {"units": "columns", "noise": "columns"}
    one, other = method(**settings).fit(X), method(**settings).fit(factor * X)
    cells = all_cells(X.shape)
    scale = factor[cells[1]]
    np.testing.assert_array_equal(other.predict(*cells), scale * one.predict(*cells))
    for kind in ("signal", "observation"):
        bounds = (each.predict_interval(*cells, kind=kind) for each in (one, other))
        for expected, got in zip(*bounds, strict=True):
            np.testing.assert_allclose(got, scale * expected, rtol=1e-12)
    tables = [each.sample_completions(1)[0] for each in (one, other)]
    expected, got = (np.asarray(each, dtype=float) for each in tables)
    np.testing.assert_allclose(got, factor * expected, rtol=1e-12)
    assert other.noise_variance_ == one.noise_variance_


def test_any_unit_and_origin_of_a_column():
    """Chains differ after some sweeps, by rounding, but have the same posterior."""
    X = alike(80)
    factor, shift = np.array([1, 1e3, 1, 1, 1, 1]), np.array([0, 0, 0, 1e6, 0, 0])
    model = quick(n_sweeps=400, n_chains=2)
    one, other = clone(model).set_params(units="columns").fit(X), model.fit(factor * X + shift)
    assert other.units_ == "columns"
    cells = np.nonzero(np.isnan(X))
    at = cells[1]
    back = (other.predict(*cells) - shift[at]) / factor[at]
    # Monte Carlo errors of two runs of some 100 effective draws: 0.14 of a posterior standard deviation.
    low, high = one.predict_interval(*cells, level=0.683, kind="signal")
    assert np.sqrt(np.mean(((back - one.predict(*cells)) / (0.5 * (high - low))) ** 2)) < 0.4
    widths = np.array([np.subtract(*other.predict_interval(*cells)[::-1]) / factor[at]])
    np.testing.assert_allclose(
        widths.mean(), np.subtract(*one.predict_interval(*cells)[::-1]).mean(), rtol=0.15
    )


@SAMPLERS
def test_constant_and_empty_columns(method):
    X = alike() * [1, 1, 1, 1, 1, 100]
    X[:, 2] = NAN
    X[~np.isnan(X[:, 3]), 3] = 1234.5
    frame = pd.DataFrame(X, columns=list("abcdef"))
    for keep_empty in (False, True):
        model = method(**SHORT, keep_empty_features=keep_empty)
        filled = model.fit_transform(frame)
        np.testing.assert_allclose(filled["d"], 1234.5, rtol=1e-9)
        low, high = model.predict_interval(frame.index, "d", kind="observation")
        np.testing.assert_allclose([low, high], 1234.5, rtol=1e-9)
        assert (filled["c"].notna() if keep_empty else filled["c"].isna()).all()
        assert filled.drop(columns="c").notna().all(axis=None)
        outcome = "filled with 0" if keep_empty else "left empty"
        assert f"Columns without any value are {outcome}: c." in model.notes_
        assert "Constant columns are filled with their constant: d." in model.notes_


@SAMPLERS
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("units", "rows"), ("units", None), ("noise", "cells"), ("noise", True), ("robust", "yes"),
        ("robust", None), ("keep_empty_features", 2),
    ],
)  # fmt: skip
def test_bad_settings(method, name, value):
    with pytest.raises(InputError, match=name):
        method(**SHORT | {name: value}).fit(alike())


def test_settings_that_exclude_each_other():
    with pytest.raises(InputError, match="one unit, one noise level and no features"):
        fr.GASR.as_published(noise="both", progress=False).fit(alike())
    with pytest.raises(InputError, match="noise_precision is that of all entries"):
        fr.BPMF(noise_precision=2.0, noise="rows", progress=False).fit(alike())
    with pytest.raises(InputError, match="row_draws='entries'"):
        fr.BPMF(robust=True, row_draws="joint", progress=False).fit(alike())


@pytest.mark.parametrize("has_row_noise", [False, True])
def test_row_noise_is_chosen_by_held_out_entries(has_row_noise):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 20))
    level = np.where(rng.random((120, 1)) < 0.5, 0.1, 2.0) if has_row_noise else 0.7
    X += level * rng.normal(size=X.shape)
    X[rng.random(X.shape) < 0.2] = NAN
    model = quick(units="table").fit(X)
    assert model.noise_ == ("both" if has_row_noise else "columns")
    what = "by row and by column" if has_row_noise else "by column"
    assert f"The noise differs {what}: with row noise the log density" in model.notes_[-1]
    if has_row_noise:
        precisions = np.log(model.posterior_.draws[-1].noise.rows)
        assert np.corrcoef(precisions, -np.log(level[:, 0]))[0, 1] > 0.5


def test_tiny_tables_are_not_tried_out():
    for X in (np.ones((1, 1)), alike(3)[:, :3]):
        model = quick().fit(X)
        assert model.noise_ == "columns"


@SAMPLERS
@pytest.mark.parametrize("settings", [{"noise": "both"}, {"noise": "both", "robust": True}])
@pytest.mark.parametrize("units", ["table", "columns"])
def test_the_same_bits_on_any_number_of_threads(method, settings, units):
    models = [
        method(**SHORT | settings | {"units": units, "n_threads": n}).fit(alike())
        for n in (1, 2, 4)
    ]
    for other in models[1:]:
        for draw, twin in zip(models[0].posterior_.draws, other.posterior_.draws, strict=True):
            for part, same in zip((*draw[:2], *draw.noise), (*twin[:2], *twin.noise), strict=True):
                np.testing.assert_array_equal(part, same)


@SAMPLERS
@pytest.mark.parametrize("units", ["table", "columns"])
def test_a_run_with_noise_and_units_is_made_longer(method, units, tmp_path):
    model = method(**SHORT | {"noise": "both", "robust": True, "units": units, "burn_in": 5})
    expected = clone(model).set_params(n_sweeps=30).fit(alike())
    saved = clone(model).set_params(checkpoint=tmp_path / "run").fit(alike())
    resumed = clone(saved).set_params(n_sweeps=30).fit(alike())
    cells = all_cells(alike().shape)
    for longer in (model.fit(alike()).run_longer(10), resumed):
        assert longer.n_sweeps_ == 30
        assert (longer.units_, longer.noise_) == (units, "both")
        for name, trace in expected.history_.items():
            np.testing.assert_array_equal(longer.history_[name], trace)
        np.testing.assert_array_equal(longer.predict(*cells), expected.predict(*cells))
        for kind in ("signal", "observation"):
            np.testing.assert_array_equal(
                longer.predict_interval(*cells, kind=kind),
                expected.predict_interval(*cells, kind=kind),
            )


def test_a_note_if_max_rank_is_reached():
    observations, _ = fr.synthetic(60, 40, rank=4, noise=0.1, missing=0.3, random_state=0)
    few, enough = (quick(n_sweeps=60, max_rank=k).fit(observations) for k in (2, 8))
    note = "All 2 factors that max_rank allows are stronger than the noise: raise it."
    assert note in few.notes_
    assert not any("max_rank" in note for note in enough.notes_)


def test_large_tables_have_the_usual_start(monkeypatch):
    """Arrays of all cells of a large sparse table would take too much memory."""
    monkeypatch.setattr(starts, "_MOST_CELLS", 10)
    monkeypatch.setattr(starts, "_as_array", None)
    model = quick(units="columns").fit(alike())
    assert model.units_ == "columns"
    assert gasr_estimator.column_noise_start is starts.column_noise_start
