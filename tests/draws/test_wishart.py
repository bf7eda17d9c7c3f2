"""Wishart draws against the distributions that define them, scipy's draws, and with planted bugs."""

import math

import numpy as np
import pytest
from numba import njit
from scipy import special, stats

import fillrank.draws.wishart as module
from fillrank.draws.wishart import wishart_root
from helpers.draw_many import ALARM, ks, new_stream, z_test
from reference.planted import plant

N_DRAWS = 20_000
CASES = [(2, 1.3), (3, 3.0), (4, 57.5)]


def _factors(D, degrees, n=N_DRAWS):
    """(L, draws of T): W = L L^T is far from diagonal, with scales from 0.1 to 10."""
    rng = np.random.default_rng(D)
    root = rng.standard_normal((D, D)) * np.logspace(-1, 1, D)[:, None]
    L = np.linalg.cholesky(root @ root.T + 0.01 * np.eye(D))
    draw = module.wishart_root

    @njit
    def fill(stream, degrees, out):
        D = out.shape[1]
        for n in range(out.shape[0]):
            A = draw(stream, D, degrees)
            for i in range(D):
                for j in range(D):
                    out[n, i, j] = A[i, j]

    A = np.empty((n, D, D))
    fill(new_stream(D, degrees), degrees, A)
    return L, L @ A


def _average(draws, mean):
    """The p-value of the average of draws whose variance is taken from themselves."""
    return z_test(draws, mean, np.var(draws))


def _p_values(D, degrees):
    """p-values of T T^T under Wishart(W, degrees), by name."""
    L, T = _factors(D, degrees)
    W, Lam = L @ L.T, T @ T.transpose(0, 2, 1)
    v = np.random.default_rng(9).standard_normal(D)
    inner = np.einsum("i,nij,j->n", v, Lam, v) / (v @ W @ v)
    solved = np.linalg.solve(T, np.broadcast_to(v[:, None], (N_DRAWS, D, 1)))[..., 0]
    outer = (v @ np.linalg.solve(W, v)) / np.sum(solved**2, axis=1)
    halves = 0.5 * (degrees - np.arange(D))
    log_det = 2.0 * np.sum(np.log(np.diagonal(T, axis1=1, axis2=2) / np.diag(L)), axis=1)
    p = {
        "v' Lam v": ks(inner, stats.chi2(degrees).cdf),
        "1 / v' Lam^-1 v": ks(outer, stats.chi2(degrees - D + 1).cdf),
        "log determinant": z_test(
            log_det,
            np.sum(special.digamma(halves)) + D * math.log(2.0),
            np.sum(special.polygamma(1, halves)),
        ),
    }
    for i in range(D):
        for j in range(i + 1):
            variance = degrees * (W[i, j] ** 2 + W[i, i] * W[j, j])
            p[f"mean of Lam_{i}{j}"] = z_test(Lam[:, i, j], degrees * W[i, j], variance)
            # Cov(Lam_ij, Lam_kl) = degrees (W_ik W_jl + W_il W_jk), here with k = l = 0.
            product = (Lam[:, i, j] - degrees * W[i, j]) * (Lam[:, 0, 0] - degrees * W[0, 0])
            p[f"covariance of Lam_{i}{j} and Lam_00"] = _average(
                product, 2.0 * degrees * W[i, 0] * W[j, 0]
            )
    return p


def _smallest(p):
    """The smallest p-value, made one for all of them (Bonferroni)."""
    return min(p.values()) * len(p)


@pytest.mark.parametrize(("D", "degrees"), CASES)
def test_distribution(D, degrees):
    """False alarms: ALARM for all p-values of a case together."""
    p = _p_values(D, degrees)
    assert _smallest(p) > ALARM, p


@pytest.mark.parametrize("degrees", [0.2, 1.0, 30.5])
def test_one_dimension_is_gamma(degrees):
    L, T = _factors(1, degrees)
    law = stats.gamma(0.5 * degrees, scale=2.0 * L[0, 0] ** 2)
    assert ks(T[:, 0, 0] ** 2, law.cdf) > ALARM


@pytest.mark.parametrize(("D", "degrees"), [(2, 2.0), (3, 5.5)])
def test_correlations_as_in_draws_of_scipy(D, degrees):
    """What no test of a single diagonal sees: the angles between the axes."""
    L, T = _factors(D, degrees)
    Lam = T @ T.transpose(0, 2, 1)
    theirs = stats.wishart(degrees, L @ L.T).rvs(N_DRAWS, random_state=np.random.default_rng(3))

    def correlation(M):
        return M[:, D - 1, 0] / np.sqrt(M[:, D - 1, D - 1] * M[:, 0, 0])

    assert stats.ks_2samp(correlation(Lam), correlation(theirs)).pvalue > ALARM


@pytest.mark.parametrize("degrees", [199.5, 200.0, 6000.0])
def test_many_dimensions(degrees):
    """200: the log determinant, and v' Lam v, of 60 draws."""
    D = 200
    L, T = _factors(D, degrees, n=60)
    np.testing.assert_array_equal(T, np.tril(T))
    halves = 0.5 * (degrees - np.arange(D))
    log_det = 2.0 * np.sum(np.log(np.diagonal(T, axis1=1, axis2=2) / np.diag(L)), axis=1)
    mean = np.sum(special.digamma(halves)) + D * math.log(2.0)
    assert z_test(log_det, mean, np.sum(special.polygamma(1, halves))) > ALARM
    v = np.random.default_rng(9).standard_normal(D)
    scaled = np.sum((v @ T) ** 2, axis=1) / np.sum((v @ L) ** 2)
    assert ks(scaled, stats.chi2(degrees).cdf) > ALARM


def test_factor_is_lower_triangular_with_a_positive_diagonal():
    _, T = _factors(4, 4.0, n=100)
    np.testing.assert_array_equal(T, np.tril(T))
    assert np.all(np.diagonal(T, axis1=1, axis2=2) > 0.0)


def test_the_address_decides():
    first, again = (wishart_root(new_stream("one"), 3, 4.0) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, wishart_root(new_stream("two"), 3, 4.0))


BUGS = {
    "degrees off by one": ("wishart_root", "(degrees - i)", "(degrees - i + 1)"),
    "the same degrees for all": ("wishart_root", "(degrees - i)", "degrees"),
    "degrees ascending": ("wishart_root", "(degrees - i)", "(degrees - D + 1 + i)"),
    "rate of a gamma for that of chi^2": ("wishart_root", ", 0.5))", ", 1.0))"),
    "variance for standard deviation": ("wishart_root", "math.sqrt(gamma(", "(gamma("),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_the_distribution_catches(bug, monkeypatch):
    name, old, new = BUGS[bug]
    plant(monkeypatch, module, name, old, new)
    assert not _smallest(_p_values(3, 3.0)) > ALARM
