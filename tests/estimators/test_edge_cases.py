"""Odd tables and settings: a finite answer or an error that names the cause."""

import numpy as np
import pytest
from sklearn.base import clone

import fillrank as fr
from fillrank.errors import FillrankError, InputError
from helpers.quick_fits import NAN, all_cells, quick, table

pytestmark = [
    pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("error::RuntimeWarning"),
]


def with_holes(X):
    X = np.array(X, dtype=float)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = NAN
    return X


def one_entry():
    X = np.full((5, 4), NAN)
    X[2, 3] = 7.0
    return X


def empty_lines():
    X = table()
    X[[0, 3, -1]] = NAN
    X[:, [0, 4, -1]] = NAN
    return X


def outlier(size):
    X = table()
    X[tuple(np.argwhere(~np.isnan(X))[0])] = size
    return X


TABLES = {
    "values of 1e150": 1e150 * table(),
    "values of 1e-150": 1e-150 * table(),
    "far from 0": table() + 1e9,
    "constant": np.full((10, 8), 4.1),
    "constant with holes": with_holes(np.full((10, 8), 4.1)),
    "huge constant": np.full((3, 4), 1e151),
    "zeros": np.zeros((10, 8)),
    "zeros with holes": with_holes(np.zeros((10, 8))),
    "one entry": one_entry(),
    "one row": table(1, 30),
    "one column": table(30, 1),
    "one full row": table(1, 30, missing=0.0),
    "1 x 1": np.array([[3.0]]),
    "2 x 2": np.array([[3.0, 1.0], [2.0, NAN]]),
    "full 2 x 2": np.array([[3.0, 1.0], [2.0, 5.0]]),
    "empty rows and columns": empty_lines(),
    "one outlier": outlier(1e6),
    "one outlier beyond single precision": outlier(1e60),
    "the same rows again": np.tile(table(4, 15), (10, 1)),
    "the same value again": with_holes(np.where(np.arange(200).reshape(20, 10) == 5, 2.0, 1.0)),
    "3 x 1000": table(3, 1000),
    "1000 x 3": table(1000, 3),
    "full 20 x 4": table(20, 4, missing=0.0),
    "integers": np.arange(30).reshape(6, 5),
    "booleans": np.random.default_rng(0).random((20, 6)) < 0.5,
    "noise-free": table(noise=0.0),
}
SETTINGS = {
    "default": {},
    "no effects": {"effects": None},
    "mean": {"effects": "mean"},
    "row effects": {"effects": "rows"},
    "column effects": {"effects": "columns"},
    "no centres": {"centres": False},
    "double precision": {"dtype": "float64"},
    "random start": {"start": "random"},
    "rank 1": {"max_rank": 1},
    "more rank than sides": {"max_rank": 40},
    "more rank than sides, random": {"max_rank": 40, "start": "random"},
    "one sweep": {"n_sweeps": 1},
    "no burn-in": {"burn_in": 0},
    "two chains": {"n_chains": 2},
}


def assert_sound(model, X):
    """Fit, ask everything, and find only finite numbers."""
    X = np.asarray(X, dtype=float)
    filled = model.fit_transform(X)
    seen = ~np.isnan(X)
    np.testing.assert_array_equal(filled[seen], X[seen])
    rows, columns = all_cells(X.shape)
    mean = model.predict(rows, columns)
    for array in (filled, mean, model.transform(X), model.singular_values_):
        assert np.isfinite(array).all()
    for kind in ("signal", "observation"):
        low, high = model.predict_interval(rows, columns, kind=kind)
        assert np.isfinite(low).all()
        assert np.isfinite(high).all()
        assert (low <= high).all()
    for name, trace in model.history_.items():
        assert trace.shape == (model.n_chains, model.n_sweeps_), name
        assert np.isfinite(trace).all(), name
    assert np.isfinite(model.noise_variance_)
    assert 0 <= model.rank_ <= min(X.shape)
    assert (np.diff(model.singular_values_) <= 0).all()
    assert model.posterior_.shape == X.shape


@pytest.mark.parametrize("name", TABLES)
def test_tables(name):
    model = quick(n_sweeps=40, keep_empty_features=True)
    assert_sound(model, TABLES[name])
    assert not np.isnan(list(model.diagnostics().rhat.values())).any()


@pytest.mark.parametrize("name", TABLES)
def test_tables_as_published(name):
    assert_sound(fr.GASR.as_published(n_sweeps=10, random_state=0, progress=False), TABLES[name])


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["constant with holes", "2 x 2", "1 x 1", "one row", "noise-free"])
def test_settings(setting, name):
    assert_sound(quick(**SETTINGS[setting]), TABLES[name])


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_on_an_ordinary_table(setting):
    assert_sound(quick(**SETTINGS[setting]), table(30, 20, rank=2))


def test_a_constant_is_predicted():
    X = with_holes(np.full((10, 8), 4.1))
    np.testing.assert_allclose(quick(n_sweeps=40).fit_transform(X), 4.1, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-9, 1.0, -1e12])
@pytest.mark.parametrize("method", [fr.GASR, fr.BPMF])
def test_intervals_of_a_constant_are_as_small_as_it_is(method, size):
    X = with_holes(np.full((10, 8), 4.1)) * size
    model = method(n_sweeps=40, random_state=0, progress=False).fit(X)
    low, high = model.predict_interval(*np.nonzero(np.isnan(X)), kind="observation")
    np.testing.assert_allclose(low, 4.1 * size, rtol=1e-5)
    np.testing.assert_allclose(high, 4.1 * size, rtol=1e-5)


@pytest.mark.parametrize("method", [fr.GASR, fr.BPMF])
def test_zeros_are_predicted_as_a_constant_of_size_1_is(method):
    X = with_holes(np.zeros((10, 8)))
    model = method(n_sweeps=40, random_state=0, progress=False).fit(X)
    cells = np.nonzero(np.isnan(X))
    for value in (model.predict(*cells), *model.predict_interval(*cells, kind="observation")):
        np.testing.assert_allclose(value, 0.0, atol=1e-5)


@pytest.mark.parametrize("value", [1e16, -1e39, 1e300, 1.7e308])
def test_a_new_value_that_is_far_too_large_is_refused(value):
    model = quick().fit(table())
    rows = np.full((2, 15), NAN)
    rows[0, :2] = 1.0, 2.0
    rows[1, :2] = 1.0, value
    for door in (model.transform, model.fold_in, model.predict):
        with pytest.raises(
            InputError, match=r"new values can be up to 1e\+15 .* Check that it is in the same unit"
        ):
            door(rows)
    assert np.isfinite(model.transform(rows[:1])).all()
    rows[1, 1] = 1e12
    filled = model.transform(rows)
    assert np.isfinite(filled).all()


def test_scale_and_offset_do_not_matter():
    """The answers follow the unit of the data; an offset costs digits, no more."""
    X = table()
    filled = quick().fit_transform(X)
    for scale in (1e150, 1e-150, 1000.0):
        np.testing.assert_allclose(quick().fit_transform(scale * X), scale * filled, rtol=1e-3)
    np.testing.assert_allclose(quick().fit_transform(X + 1e6) - 1e6, filled, atol=1e-3)


def test_variances_are_in_the_units_of_the_data():
    model = quick(units="table", noise="both")
    one, thousand = clone(model).fit(table()), model.fit(1000 * table())
    assert thousand.noise_variance_ == pytest.approx(1e6 * one.noise_variance_, rel=1e-3)
    np.testing.assert_allclose(
        thousand.singular_values_[:2], 1e3 * one.singular_values_[:2], rtol=1e-3
    )
    for name, power in (("residual_variance", 2), ("noise_variance", 2), ("a", 0), ("b", 1)):
        np.testing.assert_allclose(
            thousand.history_[name], 1e3**power * one.history_[name], rtol=1e-2, err_msg=name
        )


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, np.inf], [2.0, 3.0]]), "finite.*row 0, column 1"),
        (np.full((3, 3), NAN), "at least one value must be observed"),
        (1e200 * table(), "at most 1e\\+152 in size.*Change their unit"),
        (1e-200 * table(), "must be 0 or at least 1e-152.*Change their unit"),
    ],
)
def test_tables_that_are_refused(X, message):
    with pytest.raises(InputError, match=message):
        quick().fit(X)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "many", None, True])
@pytest.mark.parametrize("name", ["max_rank", "n_sweeps", "n_chains"])
def test_numbers_that_are_refused(name, wrong):
    with pytest.raises(InputError, match=f"{name} must be a whole number at least 1"):
        quick(**{name: wrong}).fit(table())


@pytest.mark.parametrize("wrong", [-1, 20, 25, 2.5, "some", None])
def test_burn_in_must_leave_a_sweep(wrong):
    with pytest.raises(InputError, match="burn_in must be a whole number from 0 to 19"):
        quick(burn_in=wrong).fit(table())


@pytest.mark.parametrize(
    "wrong",
    [{"effects": "all"}, {"dtype": "float16"}, {"start": "warm"}, {"sampler": "new"}, {"dtype": 4}],
)
def test_choices_that_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(InputError, match=f"{name} must be one of"):
        quick(**wrong).fit(table())


def test_the_published_sampler_has_no_effects():
    with pytest.raises(InputError, match="as_published"):
        quick(sampler="published").fit(table())


def test_an_invalid_seed_is_named_in_the_error():
    with pytest.raises(ValueError, match="cannot be used to seed"):
        quick(random_state="zero").fit(table())


def test_errors_share_a_base():
    with pytest.raises(FillrankError):
        quick().fit(np.full((3, 3), NAN))


def test_noise_free_and_fully_observed():
    _, truth = fr.synthetic(60, 40, 3, 0.0, 0.0, random_state=0)
    model = quick(n_sweeps=60).fit(truth)
    predicted = model.predict_block(np.arange(60), np.arange(40))
    assert np.abs(predicted - truth).max() < 1e-3 * truth.std()
    assert model.rank_ == 3
    assert model.noise_variance_ < 1e-6 * truth.var()


@pytest.mark.parametrize("seed", range(3))
def test_noise_free_with_missing_values(seed):
    observations, truth = fr.synthetic(60, 40, 2, 0.0, 0.3, random_state=seed)
    model = quick(n_sweeps=120).fit(observations)
    predicted = model.predict_block(np.arange(60), np.arange(40))
    assert np.sqrt(np.mean((predicted - truth) ** 2)) < 1e-3 * truth.std()
    assert model.rank_ == 2


@pytest.mark.parametrize("shape", [(1000, 3), (3, 1000)])
def test_noise_of_tables_with_a_side_of_3_is_plausible(shape):
    """Three factors beside effects can follow any three columns: sigma must not run to 0."""
    for seed in range(2):
        observations, _ = fr.synthetic(*shape, 1, 0.3, 0.2, random_state=seed)
        model = quick(n_sweeps=100, random_state=seed).fit(observations)
        assert 0.09 / 3 < model.noise_variance_ < 0.09 * 3


def test_predictions_stay_on_the_rating_scale_if_a_few_ratings_are_averaged():
    rng = np.random.default_rng(1)
    i, j = np.divmod(np.arange(800), 20)
    known = rng.random(800) < 0.6
    ratings = np.clip(np.rint(2 * (2.5 + 2 * rng.normal(size=(40, 1)) * rng.normal(size=20))), 1, 8)
    i, j, values = i[known], j[known], ratings.ravel()[known] / 2
    twice = np.append(np.arange(len(values)), [0, 1, 2])
    values = np.append(values, 4.5 - values[:3])
    data = fr.Observations.from_triplets(i[twice], j[twice], values, duplicates="mean")
    model = fr.GASR(n_sweeps=60, random_state=0, progress=False).fit(data)
    filled = model.predict(*np.divmod(np.arange(800), 20))
    assert filled.min() >= 0.5
    assert filled.max() <= 4.0
