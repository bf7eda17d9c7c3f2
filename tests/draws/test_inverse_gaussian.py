"""Inverse Gaussian draws against scipy's distribution, for mean / shape from 10^-10 to 10^12."""

import math

import numpy as np
import pytest
from scipy import special, stats

from fillrank.draws.inverse_gaussian import inverse_gaussian
from helpers.draw_many import ALARM, binomial, fill_inverse_gaussian, ks, new_stream, sample, z_test


@pytest.mark.parametrize("ratio", [1e-10, 1e-4, 0.1, 1.0, 10.0, 1e3, 1e6, 1e12])
@pytest.mark.parametrize("shape", [1e-8, 1.0, 1e8])
def test_distribution(ratio, shape):
    draws = sample(fill_inverse_gaussian, ratio * shape, shape)
    assert np.all(np.isfinite(draws))
    assert draws.min() > 0.0
    assert ks(draws, stats.invgauss(mu=ratio, scale=shape).cdf) > ALARM


def test_concentrated_distribution_is_nearly_normal():
    # The skewness is 3 sqrt(mean / shape) = 3e-5, far below what so many draws can show.
    draws = sample(fill_inverse_gaussian, 1.0, 1e10)
    assert ks((draws - 1.0) * 1e5, special.ndtr) > ALARM


@pytest.mark.parametrize("mean", [1e12, 1e200, math.inf])
def test_distribution_without_a_mean(mean):
    # Levy's distribution; at mean = 10^12 the two differ by 10^-6.
    draws = sample(fill_inverse_gaussian, mean, 1.0)
    assert ks(draws, stats.levy.cdf) > ALARM


def test_large_root_has_its_share():
    # P(X > mean) when mean / shape = 10^4: only the larger root is there.
    draws = sample(fill_inverse_gaussian, 1e4, 1.0, n=1_000_000)
    share = 0.5 - math.exp(2e-4 + special.log_ndtr(-0.02))
    assert binomial(np.sum(draws > 1e4), draws.size, share) > ALARM


@pytest.mark.parametrize(("mean", "shape"), [(1.0, 1e10), (2.0, 5.0), (1.0, 1.0), (3.0, 0.5)])
def test_moments(mean, shape):
    draws = sample(fill_inverse_gaussian, mean, shape)
    variance = mean**3 / shape
    assert z_test(draws, mean, variance) > ALARM
    spread = (draws - mean) ** 2
    assert z_test(spread, variance, variance**2 * (2.0 + 15.0 * mean / shape)) > ALARM


@pytest.mark.parametrize(("mean", "shape"), [(2.0, 5.0), (1e6, 1.0), (1e12, 3.0), (math.inf, 2.0)])
def test_moments_of_the_reciprocal(mean, shape):
    draws = sample(fill_inverse_gaussian, mean, shape)
    variance = 1.0 / (mean * shape) + 2.0 / shape**2
    assert z_test(1.0 / draws, 1.0 / mean + 1.0 / shape, variance) > ALARM


def test_nan_comes_out_as_nan():
    for parameters in [(math.nan, 1.0), (1.0, math.nan)]:
        assert math.isnan(inverse_gaussian(new_stream("nan"), *parameters))
