"""Student's t distribution against scipy."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student_t

from fillrank.kernels import student_t as module
from fillrank.kernels.student_t import t_constants, t_distribution
from reference.planted import plant

POINTS = np.concatenate([np.linspace(-60, 60, 401), np.linspace(-1, 1, 101), [-1e5, 1e5]])
DEGREES = [0.1, 0.5, 1.0, 2.0, 3.3, 4.0, 30.0, 200.0, 999.0, 1000.0, 1e4, 1e6]


def errors(degrees):
    """The largest errors of the distribution function and of the density."""
    constant = t_constants(np.array([degrees]))[0]
    found = np.array([t_distribution(t, degrees, constant) for t in POINTS])
    expected = student_t.cdf(POINTS, degrees), student_t.pdf(POINTS, degrees)
    return np.abs(found.T - expected).max(axis=1)


@pytest.mark.parametrize("degrees", DEGREES)
def test_distribution_and_density(degrees):
    cdf, density = errors(degrees)
    assert cdf < (1e-12 if degrees < 1000 else 2e-8)
    assert density < 1e-9


@pytest.mark.parametrize("degrees", [1.0, 4.0, 50.0])
def test_the_lower_tail_has_a_small_relative_error(degrees):
    constant = t_constants(np.array([degrees]))[0]
    for t in (-3.0, -30.0, -1e4):
        found, _ = t_distribution(t, degrees, constant)
        assert found == pytest.approx(student_t.cdf(t, degrees), rel=1e-9)


def test_infinite_degrees_have_the_constant_of_the_normal_density():
    assert t_constants(np.array([np.inf]))[0] == pytest.approx(norm.pdf(0.0))


@pytest.mark.parametrize("degrees", [1e-300, 1e-3, 1.0, 1e7])
@pytest.mark.parametrize("t", [0.0, 1e-300, 1e200, np.inf, -np.inf])
def test_extreme_arguments_give_finite_numbers(degrees, t):
    found = t_distribution(t, degrees, t_constants(np.array([degrees]))[0])
    assert np.isfinite(found).all()
    assert 0.0 <= found[0] <= 1.0


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        ("_fraction", "m * (b - m) * x", "m * (b + m) * x"),
        ("t_distribution", "0.5 * (degrees + 1.0)", "0.5 * degrees"),
        ("t_distribution", "tail = 0.5 - 0.5 *", "tail = 0.5 + 0.5 *"),
        ("t_distribution", "1.0 - 2.0 / (8.0 * degrees + 3.0)", "1.0"),
    ],
)
def test_planted_bugs_are_detected(monkeypatch, function, old, new):
    monkeypatch.setattr(module, "t_distribution", module.t_distribution.py_func)
    plant(monkeypatch, module, function, old, new)
    monkeypatch.setitem(globals(), "t_distribution", module.t_distribution)
    assert max(errors(degrees)[0] for degrees in (4.0, 1000.0)) > 2e-8
