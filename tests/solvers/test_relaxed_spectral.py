import numpy as np
import pytest
from scipy.optimize import brentq
from threadpoolctl import threadpool_limits

import fillrank.solvers.relaxed_spectral as module
from fillrank.kernels.component_descent import Shift, shifted_sums, shrunken_factor
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.certificates import duality_gap, largest_penalty
from fillrank.solvers.fit import Factors, Limits, no_factors
from fillrank.solvers.hasi import Lomax, hasi
from fillrank.solvers.relaxed_spectral import (
    Components,
    Fixed,
    Problem,
    components_of,
    descend,
    factors_of,
    relaxed_marginal,
    relaxed_spectral,
    sweep,
)
from fillrank.solvers.soft_impute import soft_impute
from fillrank.table.entries import compress

ONE = Workers(1)
FULL = Limits(max_rank=50, max_iterations=3000, tolerance=1e-10)
MASKS = [((20, 15), 0.5, 0.2), ((15, 20), 0.7, 0.05), ((60, 50), 0.3, 0.3), ((40, 8), 0.5, 0.1)]


@pytest.fixture(autouse=True)
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def data_of(X, mask):
    i, j = np.nonzero(mask)
    m, n = X.shape
    return Data(compress(m, i, j, X[i, j]), compress(n, j, i, X[i, j]))


def table(shape=(20, 15), observed=0.5, seed=0):
    rng = np.random.default_rng(seed)
    m, n = shape
    X = rng.standard_normal((m, 3)) @ rng.standard_normal((3, n)) + rng.standard_normal((m, n))
    return X, rng.random((m, n)) < observed


def setting(shape=(20, 15), observed=0.5, share=0.2, seed=0):
    data = data_of(*table(shape, observed, seed))
    return data, share * largest_penalty(data, ONE)


def random_parts(shape, r, seed=0):
    rng = np.random.default_rng(seed)
    alpha, beta = rng.standard_normal((r, shape[0])), rng.standard_normal((r, shape[1]))
    alpha, beta = (x / np.linalg.norm(x, axis=1)[:, np.newaxis] for x in (alpha, beta))
    return Components(rng.exponential(size=r), alpha, beta)


def dense(parts):
    return (parts.alpha.T * parts.d) @ parts.beta


# Kernels


def slow_factor(c, h, kappa):
    """The same minimum by bisection of sum h^2 / (c t + kappa)^2 = 1."""
    if np.linalg.norm(h) <= kappa:
        return np.zeros_like(h)
    used = h != 0
    c, g = c[used], h[used]
    high = 2 * np.linalg.norm(g) / c.min() + 1
    t = brentq(lambda t: np.sum(g**2 / (c * t + kappa) ** 2) - 1, 0, high, xtol=1e-15, rtol=1e-14)
    z = np.zeros_like(h)
    z[used] = g * t / (c * t + kappa)
    return z


@pytest.mark.parametrize("kappa", [1e-8, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("spread", [0.0, 1.0, 6.0])
def test_small_problem_against_bisection(kappa, spread):
    rng = np.random.default_rng(0)
    for _ in range(20):
        c = np.exp(spread * rng.standard_normal(12))
        h = rng.standard_normal(12) * np.sqrt(c)
        c[3] = h[3] = 0.0
        z = shrunken_factor(c, h, kappa)
        np.testing.assert_allclose(z, slow_factor(c, h, kappa), rtol=1e-9, atol=1e-12)
        if z.any():
            gradient = c * z - h + kappa * z / np.linalg.norm(z)
            assert np.abs(gradient).max() < 1e-11 * np.abs(h).max()


def test_small_problem_by_hand():
    h = np.array([3.0, 4.0])
    np.testing.assert_allclose(shrunken_factor(np.ones(2), h, 2.0), h * (1 - 2 / 5))
    np.testing.assert_allclose(shrunken_factor(np.array([2.0, 1.0]), h, 0.0), [1.5, 4.0])
    assert not shrunken_factor(np.ones(2), h, 5.0).any()
    assert not shrunken_factor(np.zeros(2), np.zeros(2), 0.0).any()


def test_shifted_sums_against_dense():
    X, mask = table()
    rng = np.random.default_rng(1)
    left, right, factor = rng.standard_normal((20, 2)), rng.standard_normal((15, 2)), rng.random(15)
    data = data_of(X, mask)
    c, h = shifted_sums(data.rows, Shift(left, right), factor, ONE)
    E = np.where(mask, X - left @ right.T, 0)
    np.testing.assert_allclose(data.rows.values, E[mask], atol=1e-13)
    np.testing.assert_allclose(c, mask @ factor**2, atol=1e-13)
    np.testing.assert_allclose(h, E @ factor, atol=1e-12)


def slow_sweep(X, mask, parts, gamma):
    """The sweep with dense matrices, each residual from scratch."""
    d, alpha, beta = (part.copy() for part in parts)
    for k in range(d.size):
        for own, other, table_, seen in ((alpha, beta, X, mask), (beta, alpha, X.T, mask.T)):
            others = np.delete(np.arange(d.size), k)
            Z = (own[others].T * d[others]) @ other[others]
            R = np.where(seen, table_ - Z, 0)
            z = slow_factor(seen @ other[k] ** 2, R @ other[k], gamma[k])
            d[k] = np.linalg.norm(z)
            own[k] = z / d[k] if d[k] else 0
    return Components(d, alpha, beta)


@pytest.mark.parametrize("shape", [(20, 15), (7, 12)])
def test_sweep_against_slow_twin(shape):
    """Two sweeps; the residual stays that of the components on both sides, also where some die."""
    X, mask = table(shape)
    gamma = np.array([0.5, 1.0, 4.0, 8.0, 30.0])
    parts = random_parts(shape, 5)
    expected = slow_sweep(X, mask, slow_sweep(X, mask, parts, gamma), gamma)
    residual = data_of(X - dense(parts), mask)
    for _ in range(2):
        sweep(residual, parts, gamma, ONE)
    for got, wanted in zip(parts, expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-10)
    assert parts.d[4] == 0.0
    assert parts.d[0] > 0.0
    true = data_of(X - dense(parts), mask)
    np.testing.assert_allclose(residual.rows.values, true.rows.values, atol=1e-12)
    np.testing.assert_allclose(residual.columns.values, true.columns.values, atol=1e-12)


def test_components_and_factors():
    parts = random_parts((9, 7), 4)
    parts.d[2] = 0.0
    factors = factors_of(parts)
    assert factors.s.size == 3
    np.testing.assert_allclose((factors.U * factors.s) @ factors.V.T, dense(parts), atol=1e-12)
    back = components_of(factors, 5)
    np.testing.assert_allclose(dense(back), dense(parts), atol=1e-12)
    nothing = Factors(np.zeros((9, 0)), np.zeros(0), np.zeros((7, 0)))
    assert factors_of(components_of(nothing, 2)).s.size == 0


# P2: Theorem 1


@pytest.mark.parametrize(("shape", "observed", "share"), MASKS)
def test_P2_is_P1(shape, observed, share):  # noqa: N802
    data, penalty = setting(shape, observed, share)
    P1 = soft_impute(data, penalty, FULL, ONE)
    P2 = relaxed_spectral(data, penalty, FULL, ONE)
    assert P2.converged, P2.reason
    assert P2.objectives[-1] == pytest.approx(P1.objectives[-1], rel=1e-8)
    assert duality_gap(data, P2.factors, penalty, ONE) <= 1e-10
    Z1, Z2 = ((f.U * f.s) @ f.V.T for f in (P1.factors, P2.factors))
    np.testing.assert_allclose(Z1, Z2, atol=1e-3 * np.abs(Z1).max())


@pytest.mark.parametrize(("shape", "observed", "share"), MASKS)
def test_sum_of_d_is_the_nuclear_norm(shape, observed, share):
    """From the components that were reached, which are not a singular value decomposition."""
    data, penalty = setting(shape, observed, share)
    r = min(shape)
    problem = Problem(data, Fixed(np.full(r, penalty)), penalty, False, ONE)
    parts, fit = descend(problem, components_of(no_factors(data), r), FULL)
    s = np.linalg.svd(dense(parts), compute_uv=False)
    assert parts.d.sum() == pytest.approx(s.sum(), rel=1e-8)
    np.testing.assert_allclose(fit.factors.s, s[: fit.factors.s.size], rtol=1e-8, atol=1e-10)
    value = 0.5 * np.sum((data.rows.values - _values(parts, data)) ** 2) + penalty * parts.d.sum()
    assert fit.objectives[-1] == pytest.approx(value, rel=1e-12)
    for vectors in (parts.alpha, parts.beta):
        assert np.linalg.norm(vectors, axis=1).max() <= 1 + 1e-12


def _values(parts, data):
    rows = np.repeat(np.arange(data.shape[0]), np.diff(data.rows.pointers))
    return dense(parts)[rows, data.rows.indices]


def test_P2_from_any_start():  # noqa: N802
    data, penalty = setting()
    best = relaxed_spectral(data, penalty, FULL, ONE).objectives[-1]
    for seed in range(3):
        start = factors_of(random_parts((20, 15), 15, seed))
        fit = relaxed_spectral(data, penalty, FULL, ONE, start)
        assert fit.objectives[-1] == pytest.approx(best, rel=1e-10)
        assert (np.diff(fit.objectives) <= 1e-13 * fit.objectives[0]).all()


def test_P2_with_too_few_components_is_reported():  # noqa: N802
    data, penalty = setting(share=0.05)
    fit = relaxed_spectral(data, penalty, Limits(2, 3000, 1e-8), ONE)
    assert fit.factors.s.size == 2
    assert not fit.converged
    assert fit.violation > 0.01
    assert "max_rank" in fit.reason


def test_P2_at_a_large_penalty_is_zero():  # noqa: N802
    data, penalty = setting(share=1.01)
    fit = relaxed_spectral(data, penalty, FULL, ONE)
    assert fit.factors.s.size == 0
    assert fit.converged
    zeros = data_of(np.zeros((6, 5)), np.ones((6, 5), dtype=bool))
    assert relaxed_spectral(zeros, 1.0, FULL, ONE).converged


def test_few_sweeps_are_not_enough():
    data, penalty = setting()
    fit = relaxed_spectral(data, penalty, Limits(15, 3, 1e-12), ONE)
    assert len(fit.objectives) == 4
    assert not fit.converged
    assert "3 sweeps" in fit.reason


# P3


def test_gammas_go_against_d():
    rng = np.random.default_rng(0)
    d, gamma = rng.random(6), rng.random(6)
    weights = Fixed(gamma).weights(d)
    np.testing.assert_array_equal(np.sort(weights), np.sort(gamma))
    assert (np.diff(weights[np.argsort(-d)]) >= 0).all()
    for _ in range(50):
        assert Fixed(gamma).value(d) <= rng.permutation(gamma) @ d + 1e-12


@pytest.mark.parametrize("orthonormalise", [True, False])
def test_P3_on_a_full_table(orthonormalise):  # noqa: N802
    """Against weighted thresholding; sweeps alone may end a little above, never below."""
    X, mask = table(observed=1.1)
    data, gamma = data_of(X, mask), np.random.default_rng(1).uniform(0.5, 8, 15)
    y, g = np.linalg.svd(X, compute_uv=False), np.sort(gamma)
    s = np.maximum(y - g, 0)
    best = 0.5 * np.sum((y - s) ** 2) + g @ s
    for seed in range(3):
        problem = Problem(data, Fixed(gamma), None, orthonormalise, ONE)
        _, fit = descend(problem, random_parts(X.shape, 15, seed), Limits(15, 500, 1e-7))
        assert best * (1 - 1e-12) <= fit.objectives[-1] <= best * (1 + 1e-3)
        assert (np.diff(fit.objectives) <= 1e-13 * fit.objectives[0]).all()
        if orthonormalise:
            assert fit.converged, fit.reason
            assert fit.objectives[-1] == pytest.approx(best, rel=1e-10)
            np.testing.assert_allclose(fit.factors.s, s[s > 0], atol=1e-5)


@pytest.mark.parametrize(("shape", "observed", "share"), MASKS)
def test_P3_conditions(shape, observed, share):  # noqa: N802
    """R v_k = gamma_k u_k at the solution, and nothing left over above the next gamma."""
    data, penalty = setting(shape, observed, share)
    X, mask = table(shape, observed)
    gamma = penalty * np.linspace(0.8, 1.6, min(shape))
    fit = relaxed_spectral(data, gamma, Limits(50, 3000, 1e-6), ONE)
    assert fit.converged, fit.reason
    U, s, V = fit.factors
    R = np.where(mask, X - (U * s) @ V.T, 0)
    np.testing.assert_allclose(R @ V, U * gamma[: s.size], atol=1e-5 * penalty)
    np.testing.assert_allclose(R.T @ U, V * gamma[: s.size], atol=1e-5 * penalty)
    assert np.linalg.norm(R, 2) <= gamma[min(s.size, gamma.size - 1)] * (1 + 1e-5)


def test_P3_with_equal_gammas_is_P2():  # noqa: N802
    data, penalty = setting()
    one = relaxed_spectral(data, penalty, FULL, ONE)
    two = relaxed_spectral(data, np.full(15, penalty), FULL._replace(tolerance=1e-7), ONE)
    assert two.objectives[-1] == pytest.approx(one.objectives[-1], rel=1e-10)


# gamma integrated out


@pytest.mark.parametrize("beta", [100.0, 10.0])
@pytest.mark.parametrize(("shape", "observed", "share"), MASKS)
def test_marginal_form_is_HASI(shape, observed, share, beta):  # noqa: N802
    data, penalty = setting(shape, observed, max(share, 0.1))
    limits = Limits(50, 3000, 1e-6)
    start = soft_impute(data, penalty, limits, ONE).factors
    one = hasi(data, penalty, beta, limits, ONE, start)
    two = relaxed_marginal(data, penalty * beta, beta, limits, ONE, start)
    assert one.converged, one.reason
    assert two.converged, two.reason
    assert two.objectives[0] == pytest.approx(one.objectives[0], rel=1e-12)
    assert two.objectives[-1] == pytest.approx(one.objectives[-1], rel=1e-8)
    assert (np.diff(two.objectives) <= 1e-13 * two.objectives[0]).all()
    # The end of one is an end of the other.
    again = hasi(data, penalty, beta, limits, ONE, two.factors)
    assert again.objectives[-1] == pytest.approx(two.objectives[-1], rel=1e-10)


def test_sweeps_alone_come_no_lower():
    """From vectors that are not orthonormal and are never made so: slower, to the same minimum."""
    data, penalty = setting((60, 50), 0.5, 0.3)
    best = hasi(data, penalty, 10.0, Limits(50, 3000, 1e-7), ONE).objectives[-1]
    problem = Problem(data, Lomax(penalty * 10, 10.0), None, False, ONE)
    _, fit = descend(problem, random_parts((60, 50), 8), Limits(50, 400, 1e-7))
    assert best * (1 - 1e-10) <= fit.objectives[-1] <= best * (1 + 1e-2)
    assert (np.diff(fit.objectives) <= 1e-13 * fit.objectives[0]).all()


def test_marginal_form_starts_as_HASI_does():  # noqa: N802
    data, penalty = setting()
    limits = Limits(15, 40, 1e-9)
    start = soft_impute(data, penalty, limits._replace(max_iterations=20), ONE).factors
    expected = relaxed_marginal(
        data, penalty * 5, 5.0, limits._replace(max_iterations=20), ONE, start
    )
    assert relaxed_marginal(data, penalty * 5, 5.0, limits, ONE).objectives == expected.objectives


def test_threads_do_not_change_a_bit():
    data, penalty = setting((150, 120), 0.6, 0.2)
    fits = []
    for n_threads in (1, 2):
        with Workers(n_threads) as workers:
            fits.append(relaxed_spectral(data, penalty, Limits(20, 10, 1e-9), workers))
    assert fits[0].objectives == fits[1].objectives
    np.testing.assert_array_equal(fits[0].factors.V, fits[1].factors.V)


def test_empty_rows_and_columns():
    X, mask = table()
    mask[[0, 5]] = False
    mask[:, 2] = False
    data = data_of(X, mask)
    fit = relaxed_spectral(data, 2.0, FULL, ONE)
    assert fit.converged
    assert not fit.factors.U[[0, 5]].any() or np.abs(fit.factors.U[[0, 5]]).max() < 1e-12
    assert np.abs(fit.factors.V[2]).max() < 1e-12


# Bugs that the certificates must see


def _half_price(c, h, kappa):
    return shrunken_factor(c, h, 0.5 * kappa)


def _no_cross_term(c, h, kappa):
    return shrunken_factor(c, 0.9 * h, kappa)


def _forgotten_shift(residual, shift, factor, workers):
    shift.own[:, 1] = 0.0
    return shifted_sums(residual, shift, factor, workers)


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("shrunken_factor", _half_price),
        ("shrunken_factor", _no_cross_term),
        ("shifted_sums", _forgotten_shift),
        ("_seed", lambda *_: None),
    ],
)
@pytest.mark.parametrize("form", ["P2", "P3", "marginal"])
def test_the_certificate_catches(monkeypatch, name, bug, form):
    """On the solver as it is the certificate holds; with a bug planted it stays open."""
    data, penalty = setting((30, 20), 0.6, 0.2)
    limits = Limits(20, 300, 1e-6)
    start = soft_impute(data, penalty, limits, ONE).factors
    one_factor = Factors(start.U[:, :1], start.s[:1], start.V[:, :1])

    def solve():
        if form == "marginal":
            return relaxed_marginal(data, penalty * 100, 100.0, limits, ONE, one_factor)
        gamma = penalty * np.linspace(1, 1.1, 20) if form == "P3" else penalty
        return relaxed_spectral(data, gamma, limits, ONE, one_factor)

    fit = solve()
    assert fit.converged, fit.reason
    monkeypatch.setattr(module, name, bug)
    fit = solve()
    assert not fit.converged
    assert fit.violation > 1e-3
