"""The hinge as a scale mixture of Gaussians: the identity, the draws, and what they say of scores.

Each test of a distribution raises a false alarm at the rate ``p_values.ALARM``.
"""

import numpy as np
import pytest
from numba import njit
from scipy import integrate

from fillrank.draws.streams import chain_key, start_stream
from fillrank.kernels.hinge_rows import hinge_losses
from fillrank.kernels.ordinal import Scorer
from fillrank.noise import hinge as likelihood
from fillrank.noise.hinge import Hinge, Working, augment_rows, reciprocal_lambda
from fillrank.table.entries import Entries
from reference.ipm3f_gibbs_conditionals import (
    HINGE,
    LEVELS,
    SCORES,
    entries_of_equal_rows,
    log_mixture,
    threshold_cdf_values,
)
from reference.ipm3f_prior import hinges
from reference.p_values import ALARM, cdf_values, ks_uniform

KEY = chain_key(8, 0)


@pytest.mark.parametrize("zeta", [-20.0, -1.0, -1e-3, 0.0, 0.3, 4.0, 30.0])
@pytest.mark.parametrize("C", [0.05, 1.0, 3.0])
def test_the_mixture_is_the_hinge(zeta, C):
    """With lambda = s^2 the integrand is smooth; its bulk lies about s^2 = c |zeta|."""
    middle = np.sqrt(0.5 * C * abs(zeta))

    def integrand(s):
        return 2.0 * s * np.exp(log_mixture(s * s, zeta, C)) / np.sqrt(2.0 * np.pi)

    pieces = [(max(middle - 12.0, 1e-12), middle), (middle, middle + 12.0)]
    total = sum(integrate.quad(integrand, a, b, limit=400)[0] for a, b in pieces if a < b)
    assert total == pytest.approx(np.exp(-C * max(0.0, zeta)), rel=1e-6)


@njit
def _fill(stream, c, zeta, out):
    for t in range(out.size):
        out[t] = reciprocal_lambda(stream, c, zeta)


@pytest.mark.parametrize("zeta", [-9.0, -0.2, 0.0, 0.5, 25.0])
@pytest.mark.parametrize("C", [0.1, 1.5])
def test_distribution_of_lambda(zeta, C):
    drawn = np.empty(5000)
    _fill(start_stream(KEY, int(10 * C + abs(zeta)), 0), 0.5 * C, zeta, drawn)
    # In s = sqrt(lambda), where the density is bounded.
    grid = np.linspace(1e-6, np.sqrt(0.5 * C * abs(zeta)) + 8.0, 20_001)
    log_density = np.log(grid) + log_mixture(grid**2, zeta, C)
    assert ks_uniform(cdf_values(drawn**-0.5, grid, log_density)) > ALARM


def test_distribution_of_the_thresholds_given_lambda():
    for places in threshold_cdf_values(likelihood, n=3000):
        assert ks_uniform(places) > ALARM / len(HINGE.threshold_mean)


def _exact_thresholds(rng, n, grid):
    """Draws of each threshold from prior times hinge loss, lambda integrated out; the log densities."""
    densities = []
    for r, rho in enumerate(HINGE.threshold_mean):
        T = np.where(r + 1 >= LEVELS, 1.0, -1.0)
        zeta = HINGE.ell - T * (grid[:, None] - SCORES)
        loss = HINGE.C * np.maximum(0.0, zeta).sum(axis=1)
        densities.append(-0.5 * ((grid - rho) / HINGE.threshold_sd) ** 2 - loss)
    cdfs = [np.cumsum(np.exp(d - d.max())) for d in densities]
    drawn = [np.interp(rng.random(n) * cdf[-1], cdf, grid) for cdf in cdfs]
    return np.stack(drawn, axis=1), densities


def test_a_pass_leaves_the_distribution_of_the_thresholds_invariant():
    """From the distribution with lambda integrated out, one pass must lead to it; and it must move."""
    n = 20_000
    grid = np.linspace(-15.0, 15.0, 6001)
    before, densities = _exact_thresholds(np.random.default_rng(0), n, grid)
    entries, scorer = entries_of_equal_rows(n, before.copy())
    working = Working(np.empty(entries.values.size), np.empty(entries.values.size))
    augment_rows(entries, scorer, HINGE, KEY, 0, working, 0, n)
    for r, density in enumerate(densities):
        after = scorer.thresholds[:, r]
        assert ks_uniform(cdf_values(after, grid, density)) > ALARM / len(densities)
        assert np.corrcoef(before[:, r], after)[0, 1] < 0.8


def test_working_responses_are_the_mixture_in_x():
    """-(w/2)(y - x)^2 and the sum of the mixture's exponents differ by a constant in x."""
    rng = np.random.default_rng(1)
    thresholds, reciprocals = rng.normal(0, 3, 3), rng.gamma(1.0, 2.0, 3)
    x = np.linspace(-7.0, 7.0, 9)
    for level in (1, 2, 3, 4):
        w, y = likelihood._working(level, thresholds, reciprocals, HINGE)
        T = np.where(np.arange(1, 4) >= level, 1.0, -1.0)
        zeta = HINGE.ell - T * (thresholds - x[:, None])
        exponent = log_mixture(1.0 / reciprocals, zeta, HINGE.C).sum(axis=1)
        np.testing.assert_allclose(np.ptp(exponent + 0.5 * w * (y - x) ** 2), 0.0, atol=1e-10)


def _random_problem():
    rng = np.random.default_rng(4)
    sizes = np.array([3, 0, 5, 1, 4])
    pointers = np.concatenate([[0], np.cumsum(sizes)])
    indices = np.concatenate([np.sort(rng.choice(6, s, replace=False)) for s in sizes])
    entries = Entries(pointers, indices.astype(np.int32), rng.integers(1, 5, 13).astype(np.int8))
    scorer = Scorer(rng.normal(size=(5, 2)), rng.normal(size=(6, 2)), rng.normal(size=(5, 3)))
    return entries, scorer


def _pass(entries, scorer, ranges):
    scorer = scorer._replace(thresholds=scorer.thresholds.copy())
    working = Working(np.full(13, np.nan), np.full(13, np.nan))
    for start, stop in ranges:
        augment_rows(entries, scorer, HINGE, KEY, 3, working, start, stop)
    return scorer.thresholds, *working


def test_rows_can_be_drawn_in_any_partition():
    """The same bits for any ranges of rows; an empty row draws its thresholds too."""
    entries, scorer = _random_problem()
    whole = _pass(entries, scorer, [(0, 5)])
    parts = _pass(entries, scorer, [(3, 5), (0, 2), (2, 3)])
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.all(whole[0] != scorer.thresholds)
    assert np.isfinite(np.concatenate([part.ravel() for part in whole])).all()


def test_scores_on_the_margin():
    """zeta = 0 everywhere: lambda has Levy's distribution, and nothing overflows."""
    hinge = Hinge(1.0, 1.0, np.zeros(1), 1.0)
    entries = Entries(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, np.int8))
    scorer = Scorer(np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1)))
    working = Working(np.empty(1), np.empty(1))
    augment_rows(entries, scorer, hinge, KEY, 0, working, 0, 1)
    assert np.isfinite([*working.weights, *working.responses, *scorer.thresholds[0]]).all()


def test_loss():
    entries, scorer = _random_problem()
    losses = np.full(5, np.nan)
    hinge_losses(entries, scorer, 1.7, losses, 0, 5)
    i = np.repeat(np.arange(5), np.diff(entries.pointers))
    x = np.sum(scorer.left[i] * scorer.right[entries.indices], axis=1)
    every = hinges(x, scorer.thresholds[i], 1.7)
    expected = np.bincount(i, every[np.arange(13), entries.values - 1], minlength=5)
    np.testing.assert_allclose(losses, expected, rtol=1e-12)
