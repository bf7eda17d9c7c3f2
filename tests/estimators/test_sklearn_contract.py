import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import fillrank as fr
from helpers.quick_fits import REFUSED_CHECKS, quick, table

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")


@parametrize_with_checks([quick()], expected_failed_checks=lambda _: REFUSED_CHECKS)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_clone_and_parameters():
    model = quick(effects="rows", value_range=(1, 5), max_rank=3)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert set(model.get_params()) >= {
        "max_rank", "n_sweeps", "burn_in", "n_chains", "n_threads", "effects", "centres", "start",
        "dtype", "value_range", "random_state", "progress", "sampler",
    }  # fmt: skip
    assert again.set_params(max_rank=2).max_rank == 2


def test_as_published_is_a_set_of_parameters():
    model = fr.GASR.as_published(n_sweeps=7)
    assert (model.sampler, model.n_sweeps, model.burn_in, model.effects) == (
        "published", 7, 0, None,
    )  # fmt: skip
    assert clone(model).get_params() == model.get_params()


def test_in_a_pipeline():
    X = table()
    filled = make_pipeline(StandardScaler(), quick()).fit_transform(X)
    assert filled.shape == X.shape
    assert np.isfinite(filled).all()
    scores = make_pipeline(quick(), PCA(2)).fit_transform(X)
    assert scores.shape == (20, 2)


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output(library, kind):
    X = table()
    model = quick().set_output(transform=library)
    for filled in (model.fit_transform(X), model.transform(X)):
        assert isinstance(filled, kind)
        assert filled.shape == X.shape
        assert list(filled.columns) == [f"x{j}" for j in range(15)]
        seen = ~np.isnan(X)
        np.testing.assert_array_equal(filled.to_numpy()[seen], X[seen])


def test_feature_names_out_are_the_columns():
    frame = pd.DataFrame(table(8, 3), columns=["a", "b", "c"])
    assert quick().fit(frame).get_feature_names_out().tolist() == ["a", "b", "c"]


def test_same_seed_same_result_and_generators_are_seeds():
    X = table()
    first, again = (quick().fit_transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = quick(random_state=1).fit_transform(X)
    assert (other[np.isnan(X)] != first[np.isnan(X)]).all()
    made = [quick(random_state=np.random.default_rng(5)).fit_transform(X) for _ in range(2)]
    np.testing.assert_array_equal(*made)


@pytest.mark.parametrize("ask", ["predict", "predict_interval", "predict_block"])
def test_not_fitted(ask):
    with pytest.raises(NotFittedError):
        getattr(quick(), ask)([0], [0])


def test_predict_missing_of_an_unfitted_model_fails_at_once():
    with pytest.raises(NotFittedError):
        quick().predict_missing()


def test_fit_does_not_change_the_input():
    X = table()
    before = X.copy()
    quick().fit_transform(X)
    np.testing.assert_array_equal(X, before)
    assert np.isnan(before).any()
