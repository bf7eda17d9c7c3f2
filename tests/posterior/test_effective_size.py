"""All quantities at once have what ArviZ finds for each."""

import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats

from fillrank.posterior import effective_size
from fillrank.posterior.effective_size import rhat_and_ess


def autoregressive(n_chains, n_draws, phi, n_quantities=12, seed=0):
    """Draws x[t] = phi x[t - 1] + noise; of a negative phi they are antithetic."""
    x = np.random.default_rng(seed).standard_normal((n_chains, n_draws, n_quantities))
    for t in range(1, n_draws):
        x[:, t] += phi * x[:, t - 1]
    return x


def one_by_one(traces):
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [
            (
                # rhat() itself asks for two chains, but splits any number of them.
                array_stats._rhat(array_stats._split_chains(traces[..., q])),
                array_stats.ess(traces[..., q], chain_axis=0, draw_axis=1, method="mean"),
            )
            for q in range(traces.shape[-1])
        ]
    return np.array(found, dtype=float).T


def assert_same(traces):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rhat_and_ess(traces)
    np.testing.assert_allclose(found, one_by_one(traces), rtol=1e-8, atol=0)
    return found


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9, 0.99, 1.0, -0.3, -0.9, -0.99])
@pytest.mark.parametrize("n_chains", [1, 2, 3, 4])
def test_same_as_arviz(n_chains, phi):
    for n_draws in [*range(4, 24), 63, 64, 65, 200, 501]:
        assert_same(autoregressive(n_chains, n_draws, phi, seed=n_draws))


@pytest.mark.parametrize("n_chains", [2, 3, 4])
def test_rhat_is_what_arviz_offers_to_users(n_chains):
    traces = autoregressive(n_chains, 101, 0.7)
    rhat, _ = rhat_and_ess(traces)
    expected = array_stats.rhat(traces, chain_axis=0, draw_axis=1, method="split")
    np.testing.assert_allclose(rhat, expected, rtol=1e-8)


@pytest.mark.parametrize("n_draws", [4, 9, 100])
def test_constants(n_draws):
    """Nothing moves, chains stand still apart, one of them moves, or it is lost in rounding."""
    x = autoregressive(3, n_draws, 0.5, n_quantities=5)
    x[..., 0] = 3.0
    x[..., 1] = np.arange(3.0)[:, np.newaxis]
    x[:2, :, 2] = 1.0
    x[..., 3] *= 1e-17
    rhat, ess = assert_same(x)
    assert rhat[1] == np.inf
    assert ess[0] == ess[3] == 3 * (n_draws - n_draws % 2)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_units(scale, shift):
    assert_same(scale * (autoregressive(2, 90, 0.6) + shift))


def test_values_with_ties():
    assert_same(np.round(autoregressive(2, 150, 0.6)))


def test_a_drift_and_chains_apart():
    x = autoregressive(2, 300, 0.2)
    assert_same(x + np.linspace(0, 5, 300)[:, np.newaxis])
    x[1] += 3.0
    rhat, _ = assert_same(x)
    assert rhat.min() > 1.5


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_spoils_its_own_quantity_alone(bad):
    good = autoregressive(2, 50, 0.2, n_quantities=3)
    spoilt = good.copy()
    spoilt[1, 7, 1] = bad
    found, expected = np.array(rhat_and_ess(spoilt)), np.array(rhat_and_ess(good))
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_array_equal(found[:, [0, 2]], expected[:, [0, 2]])


@pytest.mark.parametrize("block", [1, 1000, 2500])
def test_blocks_change_nothing(monkeypatch, block):
    x = autoregressive(3, 100, 0.8, n_quantities=20)
    expected = rhat_and_ess(x)
    monkeypatch.setattr(effective_size, "_BLOCK", block)
    np.testing.assert_allclose(rhat_and_ess(x), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_layout(dtype):
    x = autoregressive(2, 60, 0.4).astype(dtype)
    expected = rhat_and_ess(np.ascontiguousarray(x))
    np.testing.assert_array_equal(rhat_and_ess(np.asfortranarray(x)), expected)
