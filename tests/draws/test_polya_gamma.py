"""Polya-Gamma draws: moments, the Laplace transform, and a slow twin, for tilts from 0 to 10^6."""

import math

import numpy as np
import pytest
from scipy import stats

from fillrank.draws import polya_gamma as module
from fillrank.draws.polya_gamma import polya_gamma
from helpers.draw_many import ALARM, filler, sample, z_test
from reference.planted import plant

fill_polya_gamma = filler(polya_gamma)
# Around c = z / 2 = 1 / 0.64 the proposal changes; from 60 on a term of its share is left out.
TILTS = [0.0, 0.01, 1.0, 3.1, 3.15, 6.0, 20.0, 59.0, 61.0, 1e3, 1e6]


def _moments(z):
    """(mean, variance) in closed form."""
    if z < 0.1:  # the series, to a relative error of 1e-6
        return 0.25 - z**2 / 48.0, 1.0 / 24.0 - z**2 / 60.0
    tanh = math.tanh(0.5 * z)
    return tanh / (2.0 * z), (2.0 * tanh - z * (1.0 - tanh**2)) / (4.0 * z**3)


@pytest.mark.parametrize("z", TILTS)
def test_moments(z):
    draws = sample(fill_polya_gamma, z)
    assert draws.min() > 0.0
    mean, variance = _moments(z)
    assert z_test(draws, mean, variance) > 0.5 * ALARM
    square = (draws - mean) ** 2
    assert z_test(square, variance, square.var()) > 0.5 * ALARM


@pytest.mark.parametrize("z", [0.0, 1.0, 3.1, 8.0, 40.0])
def test_laplace_transform(z):
    """E exp(-s omega) = cosh(z / 2) / cosh(sqrt(z^2 / 4 + s / 2))."""
    draws = sample(fill_polya_gamma, z + 1e-3)  # another stream than that of the moments
    for s in (0.5, 4.0, 30.0):
        values = np.exp(-s * draws)
        expected = math.cosh(0.5 * (z + 1e-3)) / math.cosh(math.sqrt((z + 1e-3) ** 2 / 4 + s / 2))
        assert z_test(values, expected, values.var()) > ALARM / 3


def _twin(rng, z, n, n_terms=400):
    """The sum of exponentials that defines the distribution; the mean of what is cut off is added."""
    k = np.arange(1, n_terms + 1) - 0.5
    scales = 1.0 / (2.0 * math.pi**2 * (k**2 + z**2 / (4.0 * math.pi**2)))
    return rng.exponential(1.0, (n, n_terms)) @ scales + _moments(z)[0] - scales.sum()


@pytest.mark.parametrize("z", [0.0, 2.0, 3.2, 12.0])
def test_agrees_with_the_sum_of_exponentials(z):
    twin = _twin(np.random.default_rng(1), z, 10_000)
    assert stats.ks_2samp(sample(fill_polya_gamma, z, n=20_000), twin).pvalue > ALARM


def test_the_sign_of_the_tilt_does_not_matter():
    assert z_test(sample(fill_polya_gamma, -2.0), *_moments(2.0)) > ALARM


# More than 99.9% of the proposals are accepted, so that accepting all could not be seen.
BUGS = {
    "rate without the tilt": ("polya_gamma", "+ 0.5 * c * c", ""),
    "tilt not halved": ("polya_gamma", "0.5 * abs(z)", "abs(z)"),
    "not divided by four": ("polya_gamma", "0.25 * x", "0.5 * x"),
    "terms that fall too slowly": (
        "_term",
        "math.exp(-2.0 * h * h / x)",
        "math.exp(-0.4 * h * h / x)",
    ),
    "share without the second term": ("_share_above", "if c < _FAR:", "if False:"),
    "no tilt below": ("_inverse_gaussian_below", "math.exp(-0.5 * c * c * x)", "1.0"),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    function, old, new = BUGS[name]
    users = {"polya_gamma": (), "_term": ("_is_accepted", "polya_gamma")}
    users = users.get(function, ("polya_gamma",))
    plant(monkeypatch, module, function, old, new, users=users)
    draws = sample(filler(module.polya_gamma), 2.8)
    assert z_test(draws, *_moments(2.8)) < 1e-9
