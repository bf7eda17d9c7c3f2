"""The tests of this folder can fail: each mistake here is small, likely, and caught."""

import math

import numpy as np
import pytest
from numba import njit
from scipy import special, stats

from fillrank.draws.normal import EDGE, _try_layer, normal
from fillrank.draws.streams import next_bits, uniform
from helpers.draw_many import (
    ALARM,
    chi2,
    fill_gamma,
    fill_normal,
    fill_truncated_normal,
    filler,
    ks,
    sample,
    z_test,
)


@njit
def _exponential_without_acceptance(stream, a):
    alpha = 0.5 * (a + math.sqrt(a * a + 4.0))
    return a - math.log(uniform(stream)) / alpha


@njit
def _uniform_without_acceptance(stream, low, high):
    return low + uniform(stream) * (high - low)


@njit
def _smaller_root_always(stream, mean, shape):
    y = mean * normal(stream) ** 2 / shape
    return 2.0 * mean / (2.0 + y + math.sqrt(y * (y + 4.0)))


@njit
def _ziggurat_without_wedges(stream):
    return _try_layer(next_bits(stream))[1]


fill_exponential_without_acceptance = filler(_exponential_without_acceptance)
fill_uniform_without_acceptance = filler(_uniform_without_acceptance)
fill_smaller_root_always = filler(_smaller_root_always)
fill_ziggurat_without_wedges = filler(_ziggurat_without_wedges)


@pytest.mark.parametrize("shape", [0.5, 3.0, 50.0])
def test_gamma_rate_off_by_three_percent(shape):
    draws = sample(fill_gamma, shape, 2.0 * 1.03)
    assert ks(draws, stats.gamma(shape, scale=0.5).cdf) < ALARM


def test_gamma_scale_taken_for_rate():
    assert ks(sample(fill_gamma, 3.0, 0.5), stats.gamma(3.0, scale=0.5).cdf) < ALARM


@pytest.mark.parametrize("a", [0.5, 2.0, 5.0])
def test_truncated_normal_without_acceptance_one_sided(a):
    def cdf(x):
        return 1.0 - special.ndtr(-x) / special.ndtr(-a)

    assert ks(sample(fill_truncated_normal, 0.0, 1.0, a, math.inf), cdf) > ALARM
    assert ks(sample(fill_exponential_without_acceptance, a), cdf) < ALARM


@pytest.mark.parametrize(("low", "high"), [(-0.3, 0.6), (0.5, 0.6), (3.0, 3.1)])
def test_truncated_normal_without_acceptance_on_an_interval(low, high):
    def cdf(x):
        return (special.ndtr(x) - special.ndtr(low)) / (special.ndtr(high) - special.ndtr(low))

    assert ks(sample(fill_truncated_normal, 0.0, 1.0, low, high), cdf) > ALARM
    assert ks(sample(fill_uniform_without_acceptance, low, high), cdf) < ALARM


@pytest.mark.parametrize("ratio", [0.1, 1.0, 1e2])
def test_inverse_gaussian_with_the_smaller_root_only(ratio):
    draws = sample(fill_smaller_root_always, ratio, 1.0)
    assert ks(draws, stats.invgauss(mu=ratio).cdf) < ALARM


def test_normal_with_variance_off_by_one_percent():
    draws = sample(fill_normal, n=1_000_000)
    assert z_test(draws**2, 1.0, 2.0) > ALARM
    assert z_test(1.01 * draws**2, 1.0, 2.0) < ALARM


def test_ziggurat_without_wedges():
    draws = np.abs(sample(fill_ziggurat_without_wedges, n=8_000_000))
    ends = np.append(EDGE[:0:-1], np.inf)
    counts, _ = np.histogram(draws, bins=ends)
    assert chi2(counts, np.diff(2.0 * special.ndtr(ends))) < ALARM
