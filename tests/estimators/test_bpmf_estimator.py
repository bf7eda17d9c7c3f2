"""BPMF as an estimator: what it shares with GASR is tested there."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import fillrank as fr
from fillrank.errors import ConvergenceWarning, InputError
from helpers.quick_fits import SHORT, table

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
X = table()


def quick(**changes):
    return fr.BPMF(**(SHORT | {"max_rank": 3} | changes))


@pytest.mark.parametrize("row_draws", ["entries", "joint"])
@pytest.mark.parametrize("start", ["spectral", "random"])
def test_finds_the_signal_with_calibrated_intervals(row_draws, start):
    """90% intervals hold 86 to 96% of 4,800 cells (spare factors widen them), errors are small."""
    data, truth = fr.synthetic(80, 60, rank=2, noise=0.5, missing=0.4, random_state=0)
    model = fr.BPMF(
        max_rank=6, n_sweeps=300, row_draws=row_draws, start=start, random_state=0, progress=False
    ).fit(data)
    rows, columns = np.repeat(np.arange(80), 60), np.tile(np.arange(60), 80)
    error = model.predict(rows, columns) - truth.ravel()
    oracle = 0.5 * np.sqrt(2 * (80 + 60 - 2) / len(data))
    assert np.sqrt(np.mean(error**2)) < 1.3 * oracle
    low, high = model.predict_interval(rows, columns, kind="signal")
    assert 0.86 < np.mean((low < truth.ravel()) & (truth.ravel() < high)) < 0.96
    assert model.noise_variance_ == pytest.approx(0.25, rel=0.1)
    assert model.rank_ == 2
    assert model.diagnostics().converged


def test_a_fixed_precision_is_in_the_units_of_the_data():
    model = quick(noise_precision=4.0).fit(100.0 * X)
    assert model.noise_variance_ == pytest.approx(0.25)
    np.testing.assert_allclose(model.history_["noise_variance"], 0.25)


def test_units_do_not_matter():
    plain, scaled = quick().fit(X), quick().fit(1024.0 * X)
    np.testing.assert_array_equal(
        scaled.predict([0, 1], [2, 3]), 1024.0 * plain.predict([0, 1], [2, 3])
    )


def test_as_published():
    model = fr.BPMF.as_published(n_sweeps=10, random_state=0, progress=False)
    settings = (model.noise_precision, model.burn_in, model.row_draws, model.inverse_scale)
    assert settings == (2.0, 0, "joint", 1.0)
    assert clone(model).get_params() == model.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X)
    assert len(model.posterior_.draws) == 10


def test_same_seed_same_bits_on_any_number_of_threads():
    data, _ = fr.synthetic(150, 120, rank=2, noise=0.5, missing=0.4, random_state=0)
    models = [quick(n_threads=n).fit(data) for n in (1, 2, 4)]
    cells = np.arange(100), np.arange(100)
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict(*cells), models[0].predict(*cells))


def test_new_rows_are_filled_in():
    data, truth = fr.synthetic(120, 30, rank=2, noise=0.1, missing=0.2, random_state=0)
    whole = np.full((120, 30), np.nan)
    whole[data.row_index, data.column_index] = data.values
    model = quick(n_sweeps=200).fit(whole[:100])
    filled = model.transform(whole[100:])
    missing = np.isnan(whole[100:])
    error = (filled - truth[100:])[missing]
    assert np.sqrt(np.mean(error**2)) < 0.25
    np.testing.assert_array_equal(filled[~missing], whole[100:][~missing])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise_precision": 0.0}, 'noise_precision must be "sampled" or above 0, got 0.0'),
        ({"noise_precision": "high"}, "noise_precision must be"),
        ({"row_draws": "both"}, "row_draws must be one of"),
        ({"start": "hasi"}, "start must be one of"),
        ({"inverse_scale": -1}, "inverse_scale must be above 0"),
        ({"max_rank": 0}, "max_rank must be a whole number"),
        ({"n_chains": 0}, "n_chains must be"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(InputError, match=message):
        quick(**settings).fit(X)


def test_two_chains():
    model = quick(n_chains=2, n_sweeps=40).fit(X)
    assert model.history_["residual_variance"].shape == (2, 40)
    assert next(iter(model.diagnostics().rhat)) == "residual_variance"
