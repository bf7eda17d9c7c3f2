"""Monte Carlo EM: the equation for a, the fixed point of (a, b), and the edges."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from fillrank.samplers.gasr import A_BOUNDS, B_BOUNDS
from fillrank.samplers.monte_carlo_em import (
    SMALLEST_NOISE,
    estimate_noise,
    estimate_rates,
    solve_shape,
)


def _gap(a):
    """log a - psi(a), by its expansion where the difference cancels."""
    if a > 1e4:
        return 1 / (2 * a) + 1 / (12 * a**2) - 1 / (120 * a**4)
    return math.log(a) - special.digamma(a)


@pytest.mark.parametrize("s", np.logspace(-8, math.log10(500), 40))
def test_shape_solves_its_equation(s):
    """log a - psi(a) = s, and the root is the one between 1/(2s) and 1/s."""
    a = solve_shape(s)
    assert 0.5 / s < a < 1.0 / s
    root = optimize.brentq(
        lambda log_a: _gap(math.exp(log_a)) - s, math.log(0.4 / s), math.log(1.1 / s), xtol=1e-15
    )
    # Where the difference log a - psi(a) is taken, it has 16 digits of log a, not of s.
    rounding = 1e-10 + 4e-16 * abs(math.log(a)) / s if s >= 1e-6 else 1e-12
    assert a == pytest.approx(math.exp(root), rel=rounding)
    assert _gap(a) == pytest.approx(s, rel=2 * rounding)


def test_shape_is_the_maximum_likelihood_of_gamma_draws():
    gammas = stats.gamma.rvs(2.3, scale=0.4, size=20_000, random_state=1)
    shape, _, scale = stats.gamma.fit(gammas, floc=0)
    a = solve_shape(math.log(gammas.mean()) - np.log(gammas).mean())
    assert a == pytest.approx(shape, rel=1e-6)
    assert gammas.mean() / a == pytest.approx(scale, rel=1e-6)


def _lomax_maximum(d):
    """The maximum-likelihood (a, b): a(b) in closed form, then a search over log b."""

    def shape(b):
        return d.size / np.log1p(d / b).sum()

    def loss(log_b):
        b = math.exp(log_b)
        a = shape(b)
        return -d.size * math.log(a / b) + (a + 1.0) * np.log1p(d / b).sum()

    found = optimize.minimize_scalar(
        loss, bounds=(-6, 6), method="bounded", options={"xatol": 1e-9}
    )
    b = math.exp(found.x)
    return shape(b), b


def _lomax_log_likelihood(a, b, d):
    return stats.lomax.logpdf(d, a, scale=b).sum()


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.2), (1.5, 2.0), (3.0, 1.0)])
def test_iteration_ends_at_the_maximum_of_the_lomax_likelihood(a, b):
    """gamma integrated out, d ~ Lomax(a, b): EM climbs its likelihood to the top."""
    d = stats.lomax.rvs(a, scale=b, size=3000, random_state=3)
    at, likelihood = (1.0, 1.0), -math.inf
    for step in range(4000):
        new = estimate_rates(*at, d)
        if step < 50:
            now = _lomax_log_likelihood(*new, d)
            assert now >= likelihood - 1e-8 * abs(now)
            likelihood = now
        done = max(abs(x / y - 1.0) for x, y in zip(at, new, strict=True)) < 1e-12
        at = new
        if done:
            break
    assert at == pytest.approx(_lomax_maximum(d), rel=1e-4)


def _objective(a, b, mean_gamma, mean_log_gamma):
    """Q per component, as a function of the expectations of gamma and log gamma."""
    return a * math.log(b) - special.gammaln(a) + a * mean_log_gamma - b * mean_gamma


@pytest.mark.parametrize("start", [(1.0, 1.0), (0.05, 10.0), (30.0, 0.01)])
def test_step_maximises_its_objective(start):
    """With the draws frozen, Q does not fall, and no (a, b) near the new one is better."""
    d = stats.lomax.rvs(0.8, scale=0.5, size=100, random_state=4)
    a0, b0 = start
    mean_gamma = np.mean((a0 + 1.0) / (b0 + d))
    mean_log = np.mean(special.digamma(a0 + 1.0) - np.log(b0 + d))
    a, b = estimate_rates(a0, b0, d)
    best = _objective(a, b, mean_gamma, mean_log)
    assert best >= _objective(a0, b0, mean_gamma, mean_log)
    for da in (0.99, 1.0, 1.01):
        for db in (0.99, 1.0, 1.01):
            assert best >= _objective(a * da, b * db, mean_gamma, mean_log)


def test_expectations_are_those_of_gamma_given_d():
    """The M step from E[gamma | d] equals the one from very many draws of gamma | d."""
    rng = np.random.default_rng(6)
    d = np.array([0.1, 0.5, 3.0, 20.0])
    gammas = rng.gamma(2.5, 1.0 / (0.7 + d), size=(200_000, d.size))
    a = solve_shape(math.log(gammas.mean()) - np.log(gammas).mean())
    # The averages of 800,000 draws are good to 0.2%, and a moves no faster than they do.
    assert estimate_rates(1.5, 0.7, d) == pytest.approx((a, a / gammas.mean()), rel=0.02)


EDGES = {
    "all equal": np.full(10, 2.0),
    "equal and tiny": np.full(10, 1e-12),
    "zeros": np.zeros(10),
    "huge": np.full(10, 1e12),
    "zeros and one": np.append(np.zeros(20), 5.0),
    "one": np.array([3.0]),
    "apart": np.array([1e-15, 1.0, 1e9]),
    "smallest numbers": np.full(5, 1e-300),
}


@pytest.mark.parametrize("d", EDGES.values(), ids=EDGES.keys())
@pytest.mark.parametrize(
    "start", [(1.0, 1.0), (A_BOUNDS[0], B_BOUNDS[0]), (A_BOUNDS[1], B_BOUNDS[1])]
)
def test_bounds_hold_at_the_edges(d, start):
    """No NaN, and a and b within their bounds, however long the iteration."""
    at = start
    for _ in range(300):
        at = estimate_rates(*at, d)
        assert A_BOUNDS[0] <= at[0] <= A_BOUNDS[1]
        assert B_BOUNDS[0] <= at[1] <= B_BOUNDS[1]


def test_equal_scales_lead_to_the_exponential_prior():
    """a and b grow without end while a/b goes to 1/d."""
    a, b = 1.0, 1.0
    for _ in range(3000):
        a, b = estimate_rates(a, b, np.full(20, 4.0))
    assert a > 100.0
    assert a / b == pytest.approx(0.25, rel=0.02)


def test_noise_is_the_mean_square():
    assert estimate_noise(np.array([8.0, 12.0]), 5) == 2.0
    assert estimate_noise(np.zeros(3), 5) == SMALLEST_NOISE
