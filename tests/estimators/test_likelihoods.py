"""Laplace noise, the logistic link and the hinge, from fit to model files.

What the samplers do with them is tested in tests/samplers/test_law_geweke.py.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError, ReadError
from fillrank.noise.laws import LAWS
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import CompleteData
from fillrank.storage.array_file import read, write

NAMES = ["laplace", "logistic", "hinge"]
LEVELS = ["logistic", "hinge"]
METHODS = {"GASR": fr.GASR, "BPMF": fr.BPMF}
SHORT = {"n_sweeps": 20, "max_rank": 2, "random_state": 0, "progress": False, "n_threads": 1}
ALONE = Workers(1)
every_likelihood = pytest.mark.parametrize("likelihood", NAMES)
every_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        yield


def table(likelihood, missing=0.3, shape=(30, 12)):
    """Numbers, or zeros and ones, with NaN where the value is missing."""
    rng = np.random.default_rng(0)
    X = np.outer(rng.normal(size=shape[0]), rng.normal(size=shape[1])) + rng.laplace(0, 0.2, shape)
    if likelihood in LEVELS:
        X = 1.0 * (X > 0.1)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def fitted(likelihood, method="GASR", missing=0.3, **changes):
    model = METHODS[method](likelihood=likelihood, **(SHORT | changes))
    return model.fit(table(likelihood, missing))


def predictions(model):
    """Of all cells: what is predicted, and intervals."""
    shape = model.observations_.shape
    rows, columns = (each.ravel() for each in np.indices(shape))
    parts = [model.predict(rows, columns, statistic=each) for each in ("auto", "mean")]
    return np.array([*parts, *model.predict_interval(rows, columns, kind="observation")])


@every_likelihood
@every_method
def test_the_same_bits_on_any_number_of_threads(likelihood, method):
    expected = predictions(fitted(likelihood, method))
    for n_threads in (2, 4):
        found = predictions(fitted(likelihood, method, n_threads=n_threads))
        np.testing.assert_array_equal(found, expected)


@every_likelihood
@every_method
def test_model_files_have_the_likelihood(likelihood, method, tmp_path):
    model = fitted(likelihood, method)
    assert model.likelihood_ == likelihood
    model.save(tmp_path / "model.fillrank")
    again = fr.load(tmp_path / "model.fillrank")
    assert again.posterior.low_rank.law == likelihood
    assert again.record.likelihood == likelihood
    expected = predictions(model)
    shape = model.observations_.shape
    rows, columns = (each.ravel() for each in np.indices(shape))
    np.testing.assert_array_equal(again.predict(rows, columns), expected[0])
    found = again.predict_interval(rows, columns, kind="observation")
    np.testing.assert_array_equal(found, expected[2:])
    new = table(likelihood)[:3]
    np.testing.assert_array_equal(
        again.fold_in(new).predict_table(), model.fold_in(new).predict_table()
    )


def test_files_of_gaussian_noise_do_not_name_it(tmp_path):
    fitted("gaussian").save(tmp_path / "model.fillrank")
    assert "likelihood_" not in read(tmp_path / "model.fillrank", "model").about["parts"]


@pytest.mark.parametrize(("of", "forged"), [("laplace", "hinge"), ("hinge", "laplace")])
def test_a_forged_likelihood_is_refused(of, forged, tmp_path):
    """Kernels would read intervals that numbers do not have."""
    path = tmp_path / "model.fillrank"
    fitted(of).save(path)
    content = read(path, "model")
    content.about["parts"]["likelihood_"] = forged
    write(path, content)
    with pytest.raises(ReadError, match=f"its likelihood, {forged}"):
        fr.load(path)


@every_likelihood
@every_method
def test_a_run_can_be_resumed_and_continued(likelihood, method, tmp_path):
    settings = {"n_sweeps": 40, "burn_in": 10}
    expected = predictions(fitted(likelihood, method, **settings))
    longer = fitted(likelihood, method, n_sweeps=25, burn_in=10).run_longer(15)
    np.testing.assert_array_equal(predictions(longer), expected)
    folder = tmp_path / "run"
    fitted(likelihood, method, n_sweeps=25, burn_in=10, checkpoint=folder)
    resumed = fitted(likelihood, method, checkpoint=folder, **settings)
    np.testing.assert_array_equal(predictions(resumed), expected)


@every_likelihood
def test_a_checkpoint_of_another_likelihood_is_refused(likelihood, tmp_path):
    data = table("logistic")
    fr.GASR(**SHORT, checkpoint=tmp_path / "run").fit(data)
    with pytest.raises(fr.FillrankError, match="likelihood"):
        fr.GASR(likelihood=likelihood, **SHORT, checkpoint=tmp_path / "run").fit(data)


@every_likelihood
@every_method
def test_complete_tables(likelihood, method):
    """Their entries have weights of their own, so they are not drawn as products of arrays."""
    model = fitted(likelihood, method, missing=0.0)
    data = model._swept(
        model._standard(model.observations_, model._run_state.model), model._run_state.model
    )
    assert not isinstance(data, CompleteData)
    assert np.isfinite(predictions(model)).all()


@every_likelihood
def test_what_follows_a_fit(likelihood):
    """Completed tables, scores, new rows and columns, new entries, ArviZ."""
    X = table(likelihood)
    model = fitted(likelihood, n_chains=2)
    draws = model.sample_completions(2)
    if likelihood in LEVELS:
        assert set(np.unique(draws)) == {0.0, 1.0}
    score = fr.score(fr.Observations.from_matrix(X), model)
    assert np.isfinite(score["log_score"])
    assert model.fold_in(X[:2]).predict_table().shape == (2, 12)
    assert model.fold_in(X[:, :2], axis="columns").predict_table().shape == (30, 2)
    more = model.update(pd.DataFrame({"row": [0], "column": [3], "value": [1.0]}))
    assert np.isfinite(more.predict_table()).all()
    tree = model.to_arviz()
    group = "constant_data" if likelihood in LEVELS else "posterior"
    assert "noise_variance" in tree[group]


def test_probabilities_of_two_levels_have_the_link():
    """Averages of 1 / (1 + exp(threshold - z)) over the draws."""
    model = fitted("logistic")
    posterior = model.completion_.posterior
    z = posterior._latent(np.array([3, 4]), np.array([5, 5]), 0, posterior.low_rank.draws)
    threshold = z.limits[:, 1, 0][:, np.newaxis]
    expected = (1.0 / (1.0 + np.exp(threshold - z.signals))).mean(axis=0)
    found = np.asarray(model.predict_proba([3, 4], 5))
    np.testing.assert_allclose(found[:, 1], expected, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert set(model.predict_set([3, 4], 5, level=0.999)[0]) == {0.0, 1.0}


def test_levels_may_be_words():
    X = table("logistic")
    frame = pd.DataFrame(np.where(X == 1, "yes", "no"), columns=[f"c{j}" for j in range(12)])
    frame = frame.mask(np.isnan(X))
    model = fr.GASR(likelihood="logistic", **SHORT).fit(frame)
    filled = model.transform(frame)
    assert set(np.unique(filled.to_numpy().astype(str))) == {"no", "yes"}
    numbers = fitted("logistic").predict([3], [5])
    assert model.predict([3], ["c5"])[0] == ("yes" if numbers[0] == 1 else "no")


@every_method
def test_settings_that_cannot_work_together(method):
    make = METHODS[method]
    X, B = table("laplace"), table("logistic")
    cases = [
        ({"likelihood": "laplace", "robust": True}, X, "robust"),
        ({"likelihood": "logistic", "robust": True}, B, "robust"),
        ({"likelihood": "hinge", "units": "columns"}, B, "units"),
        ({"likelihood": "logistic", "noise": "rows"}, B, "noise"),
        ({"likelihood": "logistic"}, X, "two, such as 0 and 1; got .* different values"),
        ({"likelihood": "laplace", "bounds": {0: (-1, 1)}}, X, "bounds"),
        ({"likelihood": "hinge", "kinds": {0: "yes_no"}}, B, "kinds"),
        ({"likelihood": "cauchy"}, X, "likelihood"),
    ]  # fmt: skip
    for settings, data, message in cases:
        with pytest.raises(InputError, match=message):
            make(**SHORT, **settings).fit(data)
    limits = pd.DataFrame({f"c{j}": ["<0.5", *map(str, 1.0 + np.arange(20) / 7)] for j in range(3)})
    with pytest.raises(InputError, match="exact numbers"):
        make(likelihood="laplace", **SHORT).fit(limits)


@pytest.mark.parametrize("likelihood", LEVELS)
def test_weights_of_levels_are_refused(likelihood):
    B = table(likelihood)
    weights = np.where(np.isnan(B), np.nan, 2.0)
    with pytest.raises(
        NotSupportedError, match=f'likelihood="{likelihood}" cannot use the weights'
    ):
        fr.GASR(likelihood=likelihood, **SHORT).fit(B, weights=weights)
    new = fr.Observations.from_matrix(B[:2], weights=weights[:2])
    with pytest.raises(
        NotSupportedError, match=f'likelihood="{likelihood}" cannot use the weights'
    ):
        fitted(likelihood).fold_in(new)


def test_weights_of_laplace_noise_are_used():
    X = table("laplace")
    plain = fitted("laplace").predict([3], [5])
    weights = np.where(np.isnan(X), np.nan, np.random.default_rng(1).uniform(0.2, 3, X.shape))
    weighted = fr.GASR(likelihood="laplace", **SHORT).fit(X, weights=weights)
    assert weighted.predict([3], [5]) != plain


@every_likelihood
def test_samplers_that_have_gaussian_noise_only(likelihood):
    data = table(likelihood)
    with pytest.raises(InputError, match=f'published sampler.*likelihood="{likelihood}"'):
        fr.GASR.as_published(likelihood=likelihood).fit(data)
    with pytest.raises(InputError, match="row_draws='entries'"):
        fr.BPMF(likelihood=likelihood, row_draws="joint").fit(data)
    with pytest.raises(InputError, match="noise_precision"):
        fr.BPMF(likelihood=likelihood, noise_precision=2.0).fit(data)
    with pytest.raises(NotSupportedError, match=f'cluster.*likelihood="{likelihood}"'):
        fr.GASR(likelihood=likelihood).fit(data, client=object())


# Parameters of generated tables.


def _signal(rng, shape, size):
    left, right = rng.normal(size=(shape[0], 2)), rng.normal(size=(2, shape[1]))
    return size * left @ right / np.sqrt(2.0)


@every_method
def test_laplace_noise_is_recovered(method):
    """sigma, the coverage, and smaller errors than with Gaussian noise, by a wide margin."""
    rng = np.random.default_rng(4)
    Z = _signal(rng, (150, 30), 1.0)
    X = Z + rng.laplace(0.0, 0.5, Z.shape)
    missing = rng.random(X.shape) < 0.3
    i, j = np.nonzero(missing)
    errors, scores = {}, {}
    for likelihood in ("gaussian", "laplace"):
        model = METHODS[method](
            likelihood=likelihood, noise="one", max_rank=4, n_sweeps=250, n_chains=1,
            random_state=0, progress=False, n_threads=1,
        ).fit(np.where(missing, np.nan, X))  # fmt: skip
        errors[likelihood] = np.mean((model.predict(i, j) - Z[missing]) ** 2)
        scores[likelihood] = model.completion_.posterior.log_density(i, j, X[missing], ALONE).mean()
    assert errors["laplace"] < 0.9 * errors["gaussian"]
    assert scores["laplace"] > scores["gaussian"] + 0.03
    # The variance is 2 s^2 = 0.5. The sd of its estimate from 3,150 entries is 2 / sqrt(N) of it, and
    # the factors take up 400 degrees of freedom.
    assert model.noise_variance_ == pytest.approx(0.5, abs=0.1)
    low, high = model.predict_interval(i, j, level=0.9, kind="observation")
    inside = np.count_nonzero((low < X[missing]) & (X[missing] < high))
    assert stats.binomtest(inside, i.size, 0.9).pvalue > 1e-4


@every_method
def test_two_levels_are_recovered(method):
    """Calibrated probabilities with the logistic link; the hinge predicts as many levels."""
    rng = np.random.default_rng(5)
    Z = _signal(rng, (150, 40), 2.0) - 0.7
    B = 1.0 * (rng.random(Z.shape) < 1.0 / (1.0 + np.exp(-Z)))
    missing = rng.random(B.shape) < 0.3
    i, j = np.nonzero(missing)
    truth, hits = B[missing], {}
    for likelihood in ("hinge", "logistic"):
        model = METHODS[method](
            likelihood=likelihood, max_rank=4, n_sweeps=250, n_chains=1, random_state=0,
            progress=False, n_threads=1,
        ).fit(np.where(missing, np.nan, B))  # fmt: skip
        hits[likelihood] = model.predict(i, j) == truth
    p = model.predict(i, j, statistic="mean")
    edges = np.array([0.0, 0.15, 0.35, 0.65, 0.85, 1.0])
    place = np.digitize(p, edges[1:-1])
    for k in range(5):
        mine = place == k
        z = (truth[mine] - p[mine]).sum() / np.sqrt((p * (1 - p))[mine].sum())
        assert abs(z) < 4.5, (k, z)  # 5e-6 each; the factors that cells share widen it a little
    # Both predict the same cells, so that the difference has the error of those where they differ.
    difference = hits["hinge"].astype(float) - hits["logistic"]
    error = np.sqrt(np.sum(difference**2))
    assert abs(difference.sum()) < 4.0 * error
    # More than half of what the true signal gains over the more frequent level.
    most_frequent = max(truth.mean(), 1.0 - truth.mean())
    oracle = np.mean((Z[missing] > 0) == truth)
    assert hits["hinge"].mean() > 0.5 * (most_frequent + oracle)


def test_the_rank_is_that_of_the_signal():
    rng = np.random.default_rng(6)
    Z = _signal(rng, (200, 40), 2.5)
    B = 1.0 * (rng.random(Z.shape) < 1.0 / (1.0 + np.exp(-Z)))
    B[rng.random(B.shape) < 0.2] = np.nan
    model = fr.GASR(
        likelihood="logistic", n_sweeps=200, n_threads=1, random_state=0, progress=False
    )
    assert model.fit(B).rank_ == 2
    assert model.noise_variance_ == pytest.approx(LAWS["logistic"].variance)
