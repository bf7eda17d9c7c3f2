"""The kernels of the published sampler against twins that take the paper's printed sums."""

import numpy as np
import pytest

from fillrank.draws.streams import ROW_SCALARS, ROWS, Address, chain_key
from fillrank.kernels.products import residual
from fillrank.kernels.published import ball_rows, published_scales
from fillrank.runtime.threads import Workers
from fillrank.samplers.gasr import signal_factors
from reference.p_values import ALARM, ks_uniform
from reference.row_twins import ball_rows_twin, published_scales_twin
from reference.small_tables import random_state, table_and_values, variance_of

KEY = chain_key(6, 0)
TOLERANCE = {np.float64: 1e-10, np.float32: 2e-4}


def _problem(dtype, noise_variance, seed=0, shape=(8, 7), r=3):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < 0.6
    mask[2] = False
    X = rng.standard_normal(shape).astype(dtype)
    _, data = table_and_values(mask, X, dtype)
    return mask, X, data, random_state(rng, shape, r, dtype, noise_variance=noise_variance)


def _ball_rows(entries, state, where):
    own, squares = state.left.copy(), np.empty(state.left.shape[0])
    ball_rows(entries, own, state.right, state.d, variance_of(state), where, squares)
    return own, squares


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("noise_variance", [0.01, 1.0, 100.0])
def test_ball_rows(noise_variance, dtype):
    """Row by row, each component given the ones before; the fixed columns are left alone.

    The effect columns of ``left`` and ``right`` are 0 and 1 here, so the signal is that of U and V.
    """
    mask, X, data, state = _problem(dtype, noise_variance)
    r = state.d.size
    for sweep in range(5):
        where = Address(KEY, sweep, ROWS)
        own, squares = _ball_rows(data.rows, state, where)
        U, V = state.left[:, :r].astype(float), state.right[:, :r].astype(float)
        expected = ball_rows_twin(X.astype(float), mask, U, V, state.d, noise_variance, where)
        tolerance = TOLERANCE[dtype]
        np.testing.assert_allclose(own[:, :r], expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(own[:, r:], state.left[:, r:])
        e = np.where(mask, X - (expected * state.d) @ V.T, 0.0)
        np.testing.assert_allclose(
            squares, np.sum(e**2, axis=1), rtol=10 * tolerance, atol=tolerance
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("noise_variance", [0.01, 1.0, 100.0])
def test_published_scales(noise_variance, dtype):
    mask, X, data, state = _problem(dtype, noise_variance, seed=1)
    r, tolerance = state.d.size, TOLERANCE[dtype]
    U, V = state.left[:, :r].astype(float), state.right[:, :r].astype(float)
    for sweep in range(5):
        where = Address(KEY, sweep, ROW_SCALARS)
        e = residual(data.rows, *signal_factors(state), Workers(1)).values
        d = state.d.copy()
        published_scales(
            data.rows, state.left, state.right, d, state.gamma, noise_variance, where, e
        )
        expected = published_scales_twin(
            X.astype(float), mask, U, V, state.d, state.gamma, noise_variance, where
        )
        np.testing.assert_allclose(d, expected, rtol=tolerance, atol=tolerance)
        left_over = (X - (U * d) @ V.T)[mask]
        np.testing.assert_allclose(e, left_over, rtol=tolerance, atol=10 * tolerance)


def test_scale_of_a_component_without_data_has_its_prior():
    """u_k = 0 on all observed rows: d_k ~ Exp(gamma_k)."""
    _, _, data, state = _problem(np.float64, 0.5)
    left = state.left.copy()
    left[:, 0] = 0.0
    drawn = []
    for sweep in range(2000):
        d, e = state.d.copy(), data.rows.values.copy()
        where = Address(KEY, sweep, ROW_SCALARS)
        published_scales(data.rows, left, state.right, d, state.gamma, 0.5, where, e)
        drawn.append(d[0])
    assert ks_uniform(np.exp(-state.gamma[0] * np.array(drawn))) > ALARM


@pytest.mark.parametrize("silent", ["empty row", "d = 0"])
def test_row_without_data_is_uniform(silent):
    """u_ki is uniform on [-rho, rho], given the other rows."""
    _, _, data, state = _problem(np.float64, 0.5)
    r, row, places = state.d.size, 2, []
    if silent == "d = 0":
        state = state._replace(d=np.zeros(r))
        row = 0
    for sweep in range(1500):
        own, _ = _ball_rows(data.rows, state, Address(KEY, sweep, ROWS))
        before, after = state.left[:, :r], own[:, :r]
        others = np.sum(after[:row] ** 2, axis=0) + np.sum(before[row + 1 :] ** 2, axis=0)
        places.append(0.5 + 0.5 * after[row] / np.sqrt(1.0 - others))
    assert ks_uniform(places) > ALARM
