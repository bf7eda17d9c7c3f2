"""Intervals in tables of a few entries: location and scale are uncertain, and intervals know it."""

import warnings

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import SmallTableWarning

QUICK = {"n_sweeps": 150, "progress": False, "n_threads": 1, "value_range": None}


CASES = [(3, False), (3, True), (8, False), (8, True)]


def _shares(n_entries, n_tables, additive):
    """The share of hidden cells within 90% intervals, in random 6 x 5 tables in random units."""
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
    return held


def _coverage(*arguments):
    """The mean of the shares, and its standard error."""
    held = _shares(*arguments)
    return np.mean(held), np.std(held) / np.sqrt(len(held))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
@pytest.mark.parametrize(("n_entries", "additive"), CASES)
def test_coverage_of_intervals(n_entries, additive):
    """At least 85%, less 3 standard errors of 60 tables: about one false alarm in 1,000."""
    share, error = _coverage(n_entries, 60, additive)
    assert share > 0.85 - 3 * error
    assert error < 0.04


@pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
def test_coverage_of_intervals_of_a_few_tables():
    """At least 85%, less 3 standard errors of 48 tables: one false alarm in 740, as with many.

    Each case alone has 12: less 4.02 standard errors, for one false alarm in 1,000 by Student's
    distribution with 11 degrees of freedom. The errors are those of tables, for the cells of one
    succeed or fail together: their binomial error would be too small.
    """
    held = np.array([_shares(n_entries, 12, additive) for n_entries, additive in CASES])
    error = held.std() / np.sqrt(held.size)
    assert held.mean() > 0.85 - 3 * error
    assert error < 0.04
    errors = held.std(axis=1, ddof=1) / np.sqrt(12)
    assert (held.mean(axis=1) > 0.85 - 4.02 * errors).all()


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
