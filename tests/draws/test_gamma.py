"""Gamma draws against scipy's distribution: shapes from 0.01 to 10^6, rates from 10^-12 to 10^12."""

import math

import numpy as np
import pytest
from scipy import special, stats

from fillrank.draws.gamma import SMALLEST, gamma
from helpers.draw_many import ALARM, binomial, fill_gamma, ks, new_stream, sample, z_test

SHAPES = [0.01, 0.1, 0.5, 0.999, 1.0, 1.5, 3.0, 50.0, 1e6]
RATES = [1e-12, 0.3, 1e12]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_distribution(shape, rate):
    draws = sample(fill_gamma, shape, rate)
    assert np.all(np.isfinite(draws))
    assert draws.min() >= SMALLEST
    assert ks(draws, stats.gamma(shape, scale=1.0 / rate).cdf) > ALARM


@pytest.mark.parametrize("rate", RATES)
def test_only_draws_below_the_smallest_number_are_raised_to_it(rate):
    draws = sample(fill_gamma, 0.01, rate)
    share = special.gammainc(0.01, SMALLEST * rate)
    assert 5e-4 < share < 2e-3
    assert binomial(np.sum(draws == SMALLEST), draws.size, share) > ALARM


@pytest.mark.parametrize("shape", [0.5, 1.0, 4.0, 1e6])
def test_moments(shape):
    draws = sample(fill_gamma, shape, 2.0)
    mean, variance = shape / 2.0, shape / 4.0
    assert z_test(draws, mean, variance) > ALARM
    spread = (draws - mean) ** 2
    assert z_test(spread, variance, variance**2 * (2.0 + 6.0 / shape)) > ALARM


@pytest.mark.parametrize("shape", [0.1, 0.5, 4.0])
def test_moments_of_the_logarithm(shape):
    draws = sample(fill_gamma, shape, 2.0)
    mean, variance = special.digamma(shape) - math.log(2.0), special.polygamma(1, shape)
    assert z_test(np.log(draws), mean, variance) > ALARM


def test_nan_comes_out_as_nan():
    for parameters in [(math.nan, 1.0), (0.5, math.nan), (2.0, math.nan)]:
        assert math.isnan(gamma(new_stream("nan"), *parameters))
