"""Intervals in tables of a few entries: location and scale are uncertain, and intervals know it."""

import warnings

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import SmallTableWarning

QUICK = {"n_sweeps": 150, "progress": False, "n_threads": 1, "value_range": None}


def _coverage(n_entries, n_tables, additive):
    """The share of hidden cells within 90% intervals, over random 6 x 5 tables in random units."""
    held = []
    for seed in range(n_tables):
        rng = np.random.default_rng([seed, n_entries, additive])
        X = rng.standard_normal((6, 5))
        if additive:
            X = 0.5 * X + rng.standard_normal((6, 1)) + rng.standard_normal((1, 5))
        X = rng.normal(0, 100) + np.exp(rng.normal(0, 2)) * X
        seen, hidden = np.split(rng.permutation(30), [n_entries])
        table = np.full(30, np.nan)
        table[seen] = X.flat[seen]
        i, j = np.unravel_index(hidden, X.shape)
        model = fr.GASR(random_state=seed, **QUICK).fit(table.reshape(6, 5))
        low, high = model.predict_interval(i, j)
        held.append(np.mean((low <= X[i, j]) & (X[i, j] <= high)))
    return np.mean(held), np.std(held) / np.sqrt(n_tables)


@pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("n_entries", [3, 8])
def test_coverage_of_intervals(n_entries, additive):
    """At least 85%, less 3 standard errors of 40 tables: about one false alarm in 1,000."""
    share, error = _coverage(n_entries, 40, additive)
    assert share > 0.85 - 3 * error
    assert error < 0.04


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("n_entries", [3, 5, 8, 12, 20])
def test_coverage_of_intervals_over_many_tables(n_entries, additive):
    """At least 85%, less 3 standard errors of 120 tables.

    If 85% are covered exactly, there is one false alarm in 740 for each case, and one in 74 for all ten.
    """
    share, error = _coverage(n_entries, 120, additive)
    assert share > 0.85 - 3 * error
    assert error < 0.025


@pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
@pytest.mark.parametrize(("method", "fewest"), [(fr.GASR, 3), (fr.BPMF, 40)])
def test_smaller_tables_give_a_warning(method, fewest):
    X = np.full((10, 6), np.nan)
    X.flat[: fewest - 1] = np.random.default_rng(0).standard_normal(fewest - 1)
    with pytest.warns(SmallTableWarning, match=f"has {fewest - 1} entries.*need {fewest} or more"):
        method(n_sweeps=20, progress=False).fit(X)
    X.flat[fewest - 1] = 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("error", SmallTableWarning)
        method(n_sweeps=20, progress=False).fit(X)
