"""The Gaussian half-sweep against its slow twin, and the sums and products around it."""

import numpy as np
import pytest
from scipy import stats

from fillrank.draws.streams import ROWS, Address, chain_key
from fillrank.kernels.factors import sums_about
from fillrank.kernels.gaussian_rows import Prior, align_rows, gaussian_rows
from fillrank.kernels.products import product, residual
from fillrank.runtime.threads import Workers
from reference.p_values import ALARM, ks_uniform
from reference.row_twins import gaussian_rows_twin
from reference.small_tables import table_and_values

ADDRESS = Address(chain_key(5, 0), 3, ROWS)
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-4}


def _problem(dtype, seed=0, shape=(11, 9), width=6):
    """(mask, X, entries, own, other), with an empty row and a full one."""
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < 0.5
    mask[0], mask[-1] = True, False
    X = rng.standard_normal(shape).astype(dtype)
    _, data = table_and_values(mask, X, dtype)
    own = rng.standard_normal((shape[0], width)).astype(dtype)
    other = rng.standard_normal((shape[1], width)).astype(dtype)
    return mask, X, data.rows, own, other


PRIORS = {
    "all free": Prior(np.arange(6), np.linspace(-1, 1, 6), np.array([2.0, 1, 5, 0.5, 3, 10])),
    "one held": Prior(np.array([0, 1, 2, 3, 5]), np.full(5, 0.3), np.full(5, 2.0)),
    "only one free": Prior(np.array([4]), np.array([-0.7]), np.array([1.5])),
    "weak and strong": Prior(np.arange(6), np.zeros(6), np.array([1e-9, 1e9, 1, 1, 1, 1])),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("noise_variance", [0.3, 20.0])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS.keys())
def test_agrees_with_the_twin(prior, noise_variance, dtype):
    mask, X, entries, own, other = _problem(dtype)
    expected, expected_squares = gaussian_rows_twin(
        X, mask, own, other, prior, noise_variance, ADDRESS
    )
    squares = np.full(own.shape[0], np.nan)
    gaussian_rows(
        entries, own, align_rows(other), prior, noise_variance, ADDRESS, squares, 0, own.shape[0]
    )
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(own, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(squares, expected_squares, rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_free", [1, 2, 16, 17])
@pytest.mark.parametrize("width", [17, 24])
def test_rows_of_every_length_agree_with_the_twin(width, n_free, dtype):
    """Vectors have eight lanes: rows of 0 to 26 entries end in every place of one."""
    rng = np.random.default_rng(width)
    mask = np.tri(27, 26, -1, dtype=bool)
    X = rng.standard_normal(mask.shape).astype(dtype)
    _, data = table_and_values(mask, X, dtype)
    own, other = (rng.standard_normal((n, width)).astype(dtype) for n in mask.shape)
    free = rng.choice(width, n_free, replace=False)
    prior = Prior(free, rng.standard_normal(n_free), rng.uniform(0.5, 5.0, n_free))
    expected, expected_squares = gaussian_rows_twin(X, mask, own, other, prior, 0.3, ADDRESS)
    squares = np.empty(len(own))
    gaussian_rows(data.rows, own, align_rows(other), prior, 0.3, ADDRESS, squares, 0, len(own))
    tolerance = 10 * TOLERANCE[dtype]
    np.testing.assert_allclose(own, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(squares, expected_squares, rtol=10 * tolerance, atol=tolerance)


def test_rows_outside_the_range_are_unchanged():
    """Only the rows from start to stop are drawn, with the bits that they have in any range."""
    _, _, entries, own, other = _problem(np.float64)
    whole, part, squares = own.copy(), own.copy(), np.full(own.shape[0], np.nan)
    prior = PRIORS["all free"]
    gaussian_rows(
        entries, whole, align_rows(other), prior, 0.3, ADDRESS, squares.copy(), 0, own.shape[0]
    )
    gaussian_rows(entries, part, align_rows(other), prior, 0.3, ADDRESS, squares, 4, 8)
    np.testing.assert_array_equal(part[4:8], whole[4:8])
    np.testing.assert_array_equal(part[:4], own[:4])
    np.testing.assert_array_equal(part[8:], own[8:])
    np.testing.assert_array_equal(np.isnan(squares), [True] * 4 + [False] * 4 + [True] * 3)


def test_empty_row_draws_from_its_prior():
    """N(mean, 1/precision) for each coefficient."""
    _, _, entries, own, other = _problem(np.float64)
    prior, empty, drawn = PRIORS["all free"], own.shape[0] - 1, []
    for sweep in range(2000):
        address = ADDRESS._replace(sweep=sweep)
        gaussian_rows(
            entries,
            own,
            align_rows(other),
            prior,
            0.3,
            address,
            np.empty(own.shape[0]),
            empty,
            empty + 1,
        )
        drawn.append(own[empty].copy())
    scores = (np.array(drawn) - prior.mean) * np.sqrt(prior.precision)
    assert ks_uniform(stats.norm.cdf(scores)) > ALARM


def test_row_draws_lead_to_the_joint_distribution_of_a_row():
    """Repeated draws of one row converge to N(P^-1 h, P^-1), P = F'F/s2 + diag(p), h = F'x/s2 + p m.

    Moments of 8,000 draws, every fifth kept after the first ten.
    """
    rng = np.random.default_rng(4)
    noise, prior = 0.5, Prior(np.arange(2), np.array([0.5, -0.5]), np.array([1.0, 2.0]))
    mask, X = np.ones((1, 4), dtype=bool), rng.standard_normal((1, 4))
    _, data = table_and_values(mask, X)
    other, own = rng.standard_normal((4, 2)), np.zeros((1, 2))
    drawn, factors = [], align_rows(other)
    for sweep in range(40_010):
        gaussian_rows(
            data.rows, own, factors, prior, noise, ADDRESS._replace(sweep=sweep), np.empty(1), 0, 1
        )
        if sweep >= 10 and sweep % 5 == 0:
            drawn.append(own[0].copy())
    P = other.T @ other / noise + np.diag(prior.precision)
    mean = np.linalg.solve(P, other.T @ X[0] / noise + prior.precision * prior.mean)
    white = (np.array(drawn) - mean) @ np.linalg.cholesky(P)
    n = white.shape[0]
    z = np.append(white.mean(axis=0), np.mean(white[:, 0] * white[:, 1])) * np.sqrt(n)
    z = np.append(z, (np.mean(white**2, axis=0) - 1.0) * np.sqrt(n / 2.0))
    # Neighbours are correlated a little: by less than 0.1 here, which the factor 1.2 covers.
    assert np.abs(z).max() < 1.2 * stats.norm.isf(ALARM / (2 * z.size)), z


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_residual_and_product(dtype):
    mask, X, entries, own, other = _problem(dtype)
    tolerance = TOLERANCE[dtype]
    e = residual(entries, own, other, Workers(1)).values
    expected = (X.astype(float) - own.astype(float) @ other.astype(float).T)[mask]
    np.testing.assert_allclose(e, expected, rtol=tolerance, atol=tolerance)
    filled = np.where(mask, X, 0.0).astype(float)
    np.testing.assert_allclose(
        product(entries, other, Workers(1)), filled @ other, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_about(dtype):
    block = np.random.default_rng(1).standard_normal((50, 4)).astype(dtype)
    centre = np.array([0.2, -1.0, 3.0])
    first, second = sums_about(block, centre, Workers(1))
    deviation = block[:, :3].astype(float) - centre
    np.testing.assert_allclose(first, deviation.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(second, np.sum(deviation**2, axis=0), rtol=1e-12)
