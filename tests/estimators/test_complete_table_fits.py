"""Fits of complete tables: sweeps use matrix products, and results are as for other tables."""

import numpy as np
import pytest

import fillrank as fr
from fillrank.estimators import sampled
from fillrank.samplers.model import CompleteData, Data
from helpers.quick_fits import all_cells, table

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
COMMON = {"max_rank": 3, "burn_in": 5, "progress": False, "random_state": 0}
METHODS = pytest.mark.parametrize("method", [fr.GASR, fr.BPMF])
# More than one block of rows and of columns, and enough cells for several threads.
SHAPE = (300, 140)


def _fitted(method, X, n_sweeps=15, **changes):
    return method(**(COMMON | {"n_sweeps": n_sweeps} | changes)).fit(X)


@pytest.mark.parametrize(
    ("method", "missing", "kind"),
    [
        (fr.GASR, 0.0, CompleteData),
        (fr.BPMF, 0.0, CompleteData),
        (fr.GASR, 0.1, Data),
        (fr.GASR.as_published, 0.0, Data),
    ],
    ids=["GASR", "BPMF", "GASR, holes", "as published"],
)
def test_which_sweeps_use_complete_data(monkeypatch, method, missing, kind):
    execute, seen = sampled.execute, []

    def watched(run, data, *rest):
        seen.append(type(data))
        return execute(run, data, *rest)

    monkeypatch.setattr(sampled, "execute", watched)
    _fitted(method, table(missing=missing)).run_longer(1)
    assert seen == [kind, kind]


@pytest.mark.parametrize("shape", [(1, 12), (12, 1), (2, 2)])
@METHODS
def test_the_smallest_tables(method, shape):
    """A single row gets an empty twin, so that the table is no longer full."""
    X = np.random.default_rng(0).standard_normal(shape)
    model = _fitted(method, X, max_rank=1)
    assert np.all(np.isfinite(model.predict(*all_cells(shape))))


@METHODS
def test_more_factors_than_columns(method):
    """The data leave most directions to the prior."""
    X = table(30, 6, missing=0.0)
    model = _fitted(method, X, max_rank=20)
    assert np.sqrt(np.mean((model.predict(*all_cells(X.shape)) - X.ravel()) ** 2)) < 0.3


@METHODS
def test_a_table_without_noise(method):
    X = table(60, 40, rank=2, noise=0.0, missing=0.0)
    # With units by column, noise below 0.03 of a standard deviation is not distinguished.
    model = _fitted(method, X, n_sweeps=60, burn_in=40, units="table", noise="both")
    error = model.predict(*all_cells(X.shape)) - X.ravel()
    assert np.sqrt(np.mean(error**2)) < 1e-3 * X.std()


@METHODS
def test_threads_do_not_change_a_bit(method):
    X = table(*SHAPE, missing=0.0)
    first, *others = (_fitted(method, X, n_threads=n_threads) for n_threads in (1, 2, 4))
    for other in others:
        np.testing.assert_array_equal(first.posterior_.mean.left, other.posterior_.mean.left)
        np.testing.assert_array_equal(first.posterior_.mean.right, other.posterior_.mean.right)
        assert first.noise_variance_ == other.noise_variance_


@METHODS
def test_run_longer_equals_a_longer_run(method):
    X = table(*SHAPE, missing=0.0)
    model, longer = _fitted(method, X, 10).run_longer(6), _fitted(method, X, 16)
    np.testing.assert_array_equal(model.posterior_.mean.left, longer.posterior_.mean.left)
    assert model.noise_variance_ == longer.noise_variance_
