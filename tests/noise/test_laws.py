"""The laws of the noise of an entry: their distributions, and their auxiliary variables.

Each test of a distribution raises a false alarm at the rate ``p_values.ALARM``. Planted bugs must be
clear: a p-value below 1e-9.
"""

import math

import numpy as np
import pytest
from numba import njit
from scipy import integrate, stats
from scipy.special import ndtri

from fillrank.draws.normal import normal
from fillrank.draws.streams import chain_key, seek, start_stream
from fillrank.kernels.entry_laws import distribution
from fillrank.noise import laplace, logistic, two_level_hinge
from fillrank.noise.laws import LAWS
from fillrank.noise.two_level_hinge import MARGIN, PENALTY, TwoLevelHinge
from reference.p_values import ALARM, cdf_values, ks_uniform
from reference.planted import plant

KEY = chain_key(11, 0)
every_law = pytest.mark.parametrize("name", LAWS)
OF_LEVELS = [name for name, law in LAWS.items() if law.of_levels]
T = np.array([-30.0, -4.0, -1.0, -0.999, -0.1, 0.0, 0.3, 1.0, 1.001, 2.5, 12.0])


@every_law
def test_the_quantile_is_the_inverse_of_the_distribution_function(name):
    law, p = LAWS[name], np.array([1e-12, 1e-3, 0.2, 0.5, 0.7, 0.999])
    np.testing.assert_allclose(law.cumulative(law.quantile(p)), p, rtol=1e-12)
    assert (np.diff(law.cumulative(T)) > 0).all()
    np.testing.assert_allclose(law.cumulative(T) + law.cumulative(-T), 1.0, rtol=1e-12)


@every_law
def test_variance(name):
    """The integral of 2 t P(noise > t), twice."""
    law = LAWS[name]
    tail = integrate.quad(lambda t: 4.0 * t * float(law.cumulative(np.float64(-t))), 0, 60)[0]
    assert law.variance == pytest.approx(tail, rel=1e-3)


@every_law
def test_small_signals_are_hidden_as_by_gaussian_noise(name):
    """The information about z at 0: of a level 4 f(0)^2; of a number the integral of f'^2 / f."""
    law, h = LAWS[name], 1e-5
    if law.of_levels:
        density = (law.cumulative(np.array(h)) - law.cumulative(np.array(-h))) / (2.0 * h)
        assert law.resolved == pytest.approx(1.0 / (4.0 * density**2), rel=1e-6)
    elif law.log_density is not None:
        t = np.linspace(-40.0, 40.0, 400_000)
        slope = np.diff(law.log_density(t)) / np.diff(t)
        weight = np.diff(law.cumulative(t))
        assert law.resolved == pytest.approx(1.0 / np.sum(slope**2 * weight), rel=1e-3)


def test_density_of_laplace_noise_and_its_compiled_twin():
    law, compiled = LAWS["laplace"], LAWS["laplace"].compiled

    @njit
    def both(compiled, t):
        return distribution(compiled, t)

    np.testing.assert_allclose(law.log_density(T), stats.laplace.logpdf(T), rtol=1e-12)
    for t in T:
        below, density = both(compiled, t)
        assert below == pytest.approx(stats.laplace.cdf(t), rel=1e-12)
        assert density == pytest.approx(stats.laplace.pdf(t), rel=1e-12)


@pytest.mark.parametrize("t", T)
def test_probabilities_of_the_hinge_are_normalised_potentials(t):
    yes, no = (math.exp(-PENALTY * max(0.0, MARGIN - x * t)) for x in (1.0, -1.0))
    expected = yes / (yes + no)
    assert float(LAWS["hinge"].cumulative(np.float64(t))) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("e", [-6.0, -0.4, 0.1, 2.0])
def test_the_mixture_is_laplace_noise(e):
    def integrand(variance):
        return stats.norm.pdf(e, 0.0, math.sqrt(variance)) * stats.expon.pdf(variance, scale=2.0)

    total = integrate.quad(integrand, 0.0, 200.0, limit=400)[0]
    assert total == pytest.approx(stats.laplace.pdf(e), rel=1e-5)


@njit
def _weights(law, draw, square, stream, out):
    for t in range(out.size):
        seek(stream, t, 0)
        out[t] = draw(law, math.inf, square, stream)


@pytest.mark.parametrize("e", [1e-2, 0.5, 1.0, 30.0])
def test_weights_of_laplace_noise(e):
    drawn = np.empty(5000)
    stream = start_stream(KEY, int(100 * e), 0)
    _weights(LAWS["laplace"].compiled, laplace.laplace_weight, e * e, stream, drawn)
    assert stats.ks_1samp(drawn, stats.invgauss(mu=1.0 / e).cdf).pvalue > ALARM


def test_a_residual_of_zero_has_a_finite_weight():
    drawn = np.empty(20_000)
    stream = start_stream(KEY, 0, 1)
    _weights(LAWS["laplace"].compiled, laplace.laplace_weight, 0.0, stream, drawn)
    assert drawn.max() <= laplace.LARGEST_WEIGHT
    inside = drawn[drawn < laplace.LARGEST_WEIGHT]
    assert ks_uniform(stats.levy.cdf(inside) / stats.levy.cdf(laplace.LARGEST_WEIGHT)) > ALARM


# One entry with the signal z ~ N(MEAN, 1 / PRECISION): auxiliary variables given z, then z given them.
N, MEAN, PRECISION, VALUE, THRESHOLD = 50_000, -0.4, 0.3, 0.7, 0.2
GRID = np.linspace(-14.0, 14.0, 8001)


@njit
def _number_step(law, draw, z, stream):
    for i in range(z.size):
        seek(stream, i, 0)
        w = draw(law, math.inf, (VALUE - z[i]) ** 2, stream)
        p = PRECISION + w
        z[i] = (PRECISION * MEAN + w * VALUE) / p + normal(stream) / math.sqrt(p)


@njit
def _level_step(law, draw, z, x, stream):
    for i in range(z.size):
        seek(stream, i, 0)
        w, above = draw(law, x * (z[i] - THRESHOLD), stream)
        p = PRECISION + w
        y = z[i] + x * above
        z[i] = (PRECISION * MEAN + w * y) / p + normal(stream) / math.sqrt(p)


def _log_potential(name, x):
    """log p(x | z) on the grid; of a number if x is 0."""
    if x == 0.0:
        return LAWS[name].log_density(GRID - VALUE)
    t = x * (GRID - THRESHOLD)
    if name == "hinge":
        return -PENALTY * np.maximum(0.0, MARGIN - t)
    return np.log(LAWS[name].cumulative(t))


def _p_value_of_a_step(name, draw, x=0.0, law=None):
    """Whether a step from the exact posterior leads to it; and that it moves."""
    log_density = -0.5 * PRECISION * (GRID - MEAN) ** 2 + _log_potential(name, x)
    cdf = np.cumsum(np.exp(log_density - log_density.max()))
    z = np.interp(np.random.default_rng(0).random(N) * cdf[-1], cdf, GRID)
    before, stream = z.copy(), start_stream(KEY, 5, 2)
    law = LAWS[name].compiled if law is None else law
    if x:
        _level_step(law, draw, z, x, stream)
    else:
        _number_step(law, draw, z, stream)
    assert np.corrcoef(before, z)[0, 1] < 0.9
    return ks_uniform(cdf_values(z, GRID, log_density))


CASES = {
    "laplace": (laplace, "laplace_weight", 0.0),
    "logistic, yes": (logistic, "logistic_working", 1.0),
    "logistic, no": (logistic, "logistic_working", -1.0),
    "hinge, yes": (two_level_hinge, "hinge_working", 1.0),
    "hinge, no": (two_level_hinge, "hinge_working", -1.0),
}


@pytest.mark.parametrize("case", CASES)
def test_a_step_leaves_the_posterior_of_the_signal_invariant(case):
    module, function, x = CASES[case]
    assert _p_value_of_a_step(case.split(",")[0], getattr(module, function), x) > ALARM


def test_the_penalty_and_the_margin_are_those_of_the_hinge():
    """The invariance above is for C = ell = 1, where C for C^2 would not be seen."""
    C, ell, w_of = 3.0, 0.4, two_level_hinge.hinge_working
    law = TwoLevelHinge(C, ell)
    log_density = -0.5 * PRECISION * (GRID - MEAN) ** 2
    log_density -= C * np.maximum(0.0, ell - (GRID - THRESHOLD))
    cdf = np.cumsum(np.exp(log_density - log_density.max()))
    z = np.interp(np.random.default_rng(2).random(N) * cdf[-1], cdf, GRID)
    _level_step(law, w_of, z, 1.0, start_stream(KEY, 6, 2))
    assert ks_uniform(cdf_values(z, GRID, log_density)) > ALARM


BUGS = {
    "wrong shape": ("laplace", "(stream, mean, 1.0)", "(stream, mean, 2.0)"),
    "square for its root": ("laplace", "1.0 / math.sqrt(square)", "1.0 / square"),
    "missing 1/2": ("logistic, yes", "0.5 / omega", "1.0 / omega"),
    "margin added": ("logistic, no", "omega - margin", "omega + margin"),
    "wrong c": ("hinge, yes", "0.5 * law.C", "law.C"),
    "weight without c^2": ("hinge, no", "c * c * reciprocal, ", "c * reciprocal, "),
    "no margin": ("hinge, yes", "law.ell - margin", "-margin"),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    case, old, new = BUGS[name]
    module, function, x = CASES[case]
    plant(monkeypatch, module, function, old, new)
    assert _p_value_of_a_step(case.split(",")[0], getattr(module, function), x) < 1e-9


@pytest.mark.parametrize("name", OF_LEVELS)
def test_probabilities_far_from_the_threshold(name):
    """Not NaN, and the one of the logistic link is in the ratio of its odds."""
    far = LAWS[name].cumulative(np.array([-1e12, -700.0, 700.0, 1e12]))
    np.testing.assert_allclose(far, [0.0, 0.0, 1.0, 1.0], atol=1e-200)
    assert np.isfinite(LAWS[name].quantile(np.array([1e-300]))).all()
    assert not np.isclose(float(ndtri(0.9)), float(LAWS[name].quantile(np.array(0.9))))
