"""The quantile of a mixture of Gaussians against a root finder, where it is easy and where it is not."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from fillrank.kernels.predictions import mixture_quantiles


def quantile(values, sds, probability, start):
    values = np.asarray(values, dtype=float).reshape(-1, 1)
    sds = np.broadcast_to(np.asarray(sds, dtype=float), len(values)).copy()
    out = np.empty(1)
    mixture_quantiles(values, sds, probability, np.array([float(start)]), out)
    return out[0]


def exact(values, sds, probability):
    low, high = np.min(values) - 50 * np.max(sds), np.max(values) + 50 * np.max(sds)

    def excess(x):
        return np.mean(norm.cdf(x, values, sds)) - probability

    return brentq(excess, low, high, xtol=1e-14 * max(1.0, abs(low), abs(high)), rtol=1e-15)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("probability", [1e-4, 0.05, 0.5, 0.975])
def test_random_mixtures(seed, probability):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(30) * 10.0 ** rng.uniform(-3, 3)
    sds = 10.0 ** rng.uniform(-3, 1, 30)
    got = quantile(values, sds, probability, rng.standard_normal() * 10)
    # The quantile, or what is as close in probability: between two modes it is not determined.
    assert np.mean(norm.cdf(got, values, sds)) == pytest.approx(probability, abs=1e-6)


@pytest.mark.parametrize("start", [-1e9, -50.0, 0.0, 3.0, 1e9])
def test_the_start_does_not_matter(start):
    values, sds = np.array([0.0, 1.0, 4.0]), np.array([0.5, 0.3, 1.0])
    for probability in (0.01, 0.4, 0.99):
        assert quantile(values, sds, probability, start) == pytest.approx(
            exact(values, sds, probability), abs=1e-6
        )


@pytest.mark.parametrize("sd", [1e-5, 1e-9, 1e-13])
def test_tiny_noise_gives_the_quantile_of_the_draws(sd):
    values = np.arange(11.0)
    assert quantile(values, sd, 0.5, 20.0) == pytest.approx(5.0, abs=1e-12 + 1e-6 * sd)
    assert quantile(values, sd, 0.05, 20.0) == pytest.approx(0.0, abs=2 * sd + 1e-12)
    assert quantile(values, sd, 0.95, -20.0) == pytest.approx(10.0, abs=2 * sd + 1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_equal_draws_give_the_normal_quantile(scale):
    for probability in (0.001, 0.05, 0.5, 0.9):
        expected = scale * (2.0 + 0.3 * norm.ppf(probability))
        got = quantile(np.full(50, 2.0 * scale), 0.3 * scale, probability, 2.0 * scale)
        assert got == pytest.approx(expected, rel=1e-6)


def test_one_wide_component_among_narrow_ones():
    values, sds = np.zeros(20), np.array([100.0] + [1e-4] * 19)
    for probability in (0.01, 0.02, 0.5, 0.99):
        got = quantile(values, sds, probability, 0.0)
        # Steps end at 1e-7 of the widest component.
        assert np.mean(norm.cdf(got, values, sds)) == pytest.approx(probability, abs=0.05)
        assert got == pytest.approx(exact(values, sds, probability), abs=1e-4)
