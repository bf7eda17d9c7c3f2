"""The benchmark of values below a limit, with a simple model in place of GASR."""

import numpy as np
import pytest

import censored
import fillrank as fr
from censored import BELOW, N_SUBSTANCES, estimates, main, relative_errors, simulate, substituted


class SimpleModel:
    """In place of GASR: missing cells get the geometric mean of their column."""

    def __init__(self, kinds, random_state, progress):
        assert kinds == dict.fromkeys(range(N_SUBSTANCES), "positive")

    def fit_transform(self, X):
        self._filled = np.where(np.isnan(X), np.exp(np.nanmean(np.log(X), axis=0)), X)
        return self._filled

    def sample_completions(self, n, random_state):
        return [self._filled] * n


@pytest.fixture
def simple(monkeypatch):
    """Values below a limit are three quarters of it."""
    monkeypatch.setattr(fr, "GASR", SimpleModel)
    ways = censored.WAYS | {"below the limit": lambda table: substituted(table, 0.75)}
    monkeypatch.setattr(censored, "WAYS", ways)


def test_the_shares_of_cells_below_the_limit_and_missing():
    table = simulate(np.random.default_rng(0), 1.0)
    assert (table.truth > 0).all()
    assert (table.truth < table.limits).mean() == pytest.approx(BELOW, abs=0.01)
    assert not (table.below & table.missing).any()
    # 2,400 cells: a standard error of 0.008.
    assert table.missing.mean() == pytest.approx(0.2, abs=0.03)


def test_values_below_the_limit_are_not_given_away():
    table = simulate(np.random.default_rng(0), 1.0)
    given = substituted(table, 0.5)
    np.testing.assert_array_equal(np.isnan(given), table.missing)
    limits = np.broadcast_to(table.limits, given.shape)
    np.testing.assert_array_equal(given[table.below], 0.5 * limits[table.below])
    assert np.isnan(substituted(table, np.nan)[table.below]).all()


def test_both_limits_are_given(monkeypatch):
    asked = {}
    monkeypatch.setattr(
        fr.Observations, "from_matrix", lambda low, upper: asked.update(low=low, upper=upper)
    )
    table = simulate(np.random.default_rng(0), 1.0)
    censored.with_limits(table)
    low, upper = asked["low"], asked["upper"]
    assert (low[table.below] == 0).all()
    exact = ~table.below & ~table.missing
    np.testing.assert_array_equal(low[exact], upper[exact])
    assert (upper[table.below] > table.truth[table.below]).all()
    np.testing.assert_array_equal(np.isnan(upper), table.missing)


def test_relative_errors():
    table = simulate(np.random.default_rng(0), 1.0)
    factors = np.ones(N_SUBSTANCES)
    factors[:2] = 1.3, 0.9
    found = relative_errors(factors * table.truth.mean(axis=0), table)
    np.testing.assert_allclose(found, [0.4 / N_SUBSTANCES, 0.3, 0.2 / N_SUBSTANCES])


def test_all_ways_are_compared(simple, capsys):
    table = simulate(np.random.default_rng(0), 1.0)
    found = estimates(table, 0)
    assert len(found) == 2 * len(censored.WAYS) + 1
    # Leaving out small values makes means too large.
    assert relative_errors(found["missing", "draws"], table)[2] > 0.1
    main(["--tables", "2"])
    text = capsys.readouterr().out
    assert "| below the limit | draws |" in text
    assert "| limit / 2 | observed values |" in text
