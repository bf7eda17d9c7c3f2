"""SoftImpute, SoftImputeALS, HASI and RelaxedSpectral as estimators."""

import warnings

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import ConvergenceWarning, InputError, NotSupportedError

METHODS = [fr.SoftImpute, fr.SoftImputeALS, fr.HASI, fr.RelaxedSpectral]


def quick(method, **settings):
    return method(**({"random_state": 0, "progress": False, "n_threads": 1} | settings))


@pytest.fixture(scope="module")
def problem():
    return fr.synthetic(80, 60, rank=3, noise=0.5, missing=0.5, random_state=0)


@pytest.fixture(scope="module", params=METHODS)
def fitted(request, problem):
    """A model of the problem that has chosen its penalty: the longest of what is done here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return quick(request.param).fit(problem[0])


@pytest.fixture(autouse=True)
def _may_stop_early():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.mark.parametrize("effects", ["mean", None])
def test_hasi_uses_the_variance_of_the_values_as_noise_variance(effects):
    """On a full table the formula of the docstring can be solved for each singular value."""
    X = 3.0 + 20.0 * np.random.default_rng(0).normal(size=(30, 20))
    penalty, beta = 60.0, 400.0
    model = quick(fr.HASI, penalty=penalty, beta=beta, effects=effects, tolerance=1e-9).fit(X)
    centred = X - X.mean() if effects == "mean" else X
    v = np.mean(centred**2)
    y = np.linalg.svd(centred, compute_uv=False)[: model.rank_]
    s = model.singular_values_
    assert 0 < model.rank_ < 20
    np.testing.assert_allclose(s, y - (penalty * beta + v) / (beta + s), rtol=1e-6)
    value = 0.5 * np.sum((centred - _signal(model, X)) ** 2)
    value += (penalty * beta + v) * np.sum(np.log1p(s / beta))
    assert model.history_["objective"][-1] == pytest.approx(value, rel=1e-6)


def _signal(model, X):
    rows, columns = np.arange(X.shape[0]), np.arange(X.shape[1])
    return model.predict_block(rows, columns) - (X.mean() if model.effects == "mean" else 0.0)


def test_finds_the_signal(fitted, problem):
    _, truth = problem
    predicted = fitted.predict_block(np.arange(80), np.arange(60))
    assert np.sqrt(np.mean((predicted - truth) ** 2)) < 0.45 * truth.std()
    assert fitted.penalty_ > 0
    assert fitted.rank_ == fitted.singular_values_.size >= 3


def test_the_path_is_stored_and_its_best_point_used(fitted):
    best = min(fitted.path_, key=lambda point: point.validation_error)
    assert best.penalty == pytest.approx(fitted.penalty_)
    penalties = [point.penalty for point in fitted.path_]
    assert penalties == sorted(penalties, reverse=True)
    training = [p.training_error for p in fitted.path_ if p.beta == np.inf]
    assert training == sorted(training, reverse=True)


@pytest.mark.parametrize("method", METHODS)
def test_no_intervals_and_no_coverage(method, problem):
    model = quick(method, penalty=5.0, **({"beta": 3.0} if "beta" in method().get_params() else {}))
    model.fit(problem[0])
    with pytest.raises(NotSupportedError, match="GASR"):
        model.predict_interval(0, 0)
    with pytest.raises(NotSupportedError, match="GASR"):
        model.predict_missing(level=0.9)
    assert np.isnan(fr.score(problem[0], model)["coverage"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"penalty": -1.0, "beta": 1.0}, "penalty must be"),
        ({"max_rank": 0}, "max_rank must be"),
        ({"max_iterations": 0}, "max_iterations must be"),
        ({"tolerance": 0.0}, "tolerance must be"),
        ({"effects": "all"}, "effects must be"),
    ],
)
def test_bad_settings(method, settings, message, problem):
    if "beta" not in method().get_params():
        settings = {name: value for name, value in settings.items() if name != "beta"}
    with pytest.raises(InputError, match=message):
        quick(method, **settings).fit(problem[0])


def test_a_penalty_without_beta():
    with pytest.raises(InputError, match="beta must be given too"):
        quick(fr.HASI, penalty=1.0).fit(np.eye(3))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("X", [np.full((4, 3), 2.5), np.array([[1.0]]), np.diag([1.0, 2, 3])])
def test_small_tables_give_finite_answers(method, X):
    X = np.where(X == 0, np.nan, X)
    settings = {"penalty": 0.1} | ({"beta": 1.0} if "beta" in method().get_params() else {})
    assert np.isfinite(quick(method, **settings).fit_transform(X)).all()


def test_one_entry_is_too_few_to_choose_a_penalty():
    with pytest.raises(InputError, match="at least 2 entries"):
        quick(fr.SoftImpute).fit(np.array([[np.nan, 1.0]]))


def test_forms_of_the_relaxed_problem_equal_other_methods(problem):
    """P2 has SoftImpute's solution; the marginal form has HASI's objective, from a start of its own."""
    observations, _ = problem
    tight = {"tolerance": 1e-8, "max_iterations": 2000, "penalty": 6.0}
    soft = quick(fr.SoftImpute, **tight).fit(observations)
    relaxed = quick(fr.RelaxedSpectral, form="P2", **tight).fit(observations)
    np.testing.assert_allclose(
        relaxed.singular_values_, soft.singular_values_, rtol=1e-4, atol=1e-4
    )
    assert relaxed.history_["objective"][-1] == pytest.approx(
        soft.history_["objective"][-1], rel=1e-7
    )


def test_iteration_limit_warns_with_the_gap(problem):
    with pytest.warns(ConvergenceWarning, match="gap"):
        quick(fr.SoftImpute, penalty=1.0, max_iterations=2).fit(problem[0])
