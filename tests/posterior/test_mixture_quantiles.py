"""The quantile of a mixture of normal or t distributions against a root finder."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from scipy.stats import t as student_t

from fillrank.kernels.predictions import mixture_quantiles, student


def quantile(values, sds, probability, start, degrees=np.inf):
    values = np.asarray(values, dtype=float).reshape(-1, 1)
    sds = np.broadcast_to(np.asarray(sds, dtype=float), len(values)).reshape(-1, 1)
    degrees = np.broadcast_to(np.asarray(degrees, dtype=float), len(values))
    out = np.empty(1)
    start = np.array([float(start)])
    mixture_quantiles(values, sds.copy(), student(degrees), probability, start, out)
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


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("probability", [1e-4, 0.05, 0.5, 0.975])
def test_random_mixtures_of_t_distributions(seed, probability):
    """Some of them normal."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(30) * 10.0 ** rng.uniform(-1, 1)
    sds = 10.0 ** rng.uniform(-1, 1, 30)
    degrees = np.where(rng.random(30) < 0.3, np.inf, 10.0 ** rng.uniform(0, 4, 30))
    got = quantile(values, sds, probability, rng.standard_normal() * 10, degrees)
    found = np.mean(student_t.cdf((got - values) / sds, degrees))
    assert found == pytest.approx(probability, abs=1e-6)


@pytest.mark.parametrize("degrees", [0.5, 1.0, 4.0, 999.0, 1000.0, 1e5])
@pytest.mark.parametrize("probability", [1e-4, 0.1, 0.999])
def test_equal_draws_give_the_quantile_of_t(degrees, probability):
    """Far beyond 40 scales for few degrees of freedom."""
    got = quantile(np.full(5, 2.0), 0.3, probability, 2.0, degrees)
    expected = 2.0 + 0.3 * student_t.ppf(probability, degrees)
    assert got == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("degrees", [1e-300, 1e-3, 1e8, 1e308])
def test_extreme_degrees_give_finite_quantiles(degrees):
    assert np.isfinite(quantile(np.arange(3.0), 0.3, 0.05, 0.0, degrees))


def test_many_degrees_are_a_normal_distribution():
    values, sds = np.array([0.0, 1.0, 4.0]), np.array([0.5, 0.3, 1.0])
    for probability in (0.01, 0.4, 0.99):
        found = [quantile(values, sds, probability, 0.0, degrees) for degrees in (1e6, np.inf)]
        assert found[0] == pytest.approx(found[1], rel=1e-5)
