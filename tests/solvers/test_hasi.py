import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.certificates import largest_penalty
from fillrank.solvers.fit import Completed, Factors, Limits, no_factors, residuals
from fillrank.solvers.hasi import (
    Lomax,
    _majorise,
    _Problem,
    active_violation,
    hasi,
    remainder_violation,
)
from fillrank.solvers.soft_impute import soft_impute
from fillrank.table.entries import compress

ONE = Workers(1)
FULL = Limits(max_rank=50, max_iterations=2000, tolerance=1e-7)


@pytest.fixture(autouse=True)
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def data_of(X, mask):
    i, j = np.nonzero(mask)
    m, n = X.shape
    return Data(compress(m, i, j, X[i, j]), compress(n, j, i, X[i, j]))


def table(m=30, n=20, observed=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3)) @ rng.standard_normal((3, n)) + rng.standard_normal((m, n))
    return X, rng.random((m, n)) < observed


def svd_of(Z, tolerance=1e-12):
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    q = int(np.sum(s > tolerance * s[0]))
    return Factors(U[:, :q], s[:q], Vt[:q].T)


def dense(factors):
    return (factors.U * factors.s) @ factors.V.T


def slow_objective(X, mask, Z, law):
    s = np.linalg.svd(Z, compute_uv=False)
    return 0.5 * np.sum((X - Z)[mask] ** 2) + (law.a + 1) * np.sum(np.log1p(s / law.b))


def slow_step(X, mask, Z, law):
    """Fill the missing cells, threshold all singular values, with weights for all of them."""
    omega = (law.a + 1) / (law.b + np.linalg.svd(Z, compute_uv=False))
    U, y, Vt = np.linalg.svd(np.where(mask, X, Z), full_matrices=False)
    return (U * np.maximum(y - omega, 0)) @ Vt


def setting(X, mask, share=0.2):
    data = data_of(X, mask)
    return data, share * largest_penalty(data, ONE)


# Steps


@pytest.mark.parametrize("beta", [100.0, 1.0, 0.05])
@pytest.mark.parametrize("shape", [(30, 20), (20, 30)])
def test_a_step_is_that_of_the_slow_twin(shape, beta):
    X, mask = table(*shape)
    data, penalty = setting(X, mask)
    law = Lomax(penalty * beta, beta)
    problem = _Problem(data, law, 20, ONE)
    point = problem.at(soft_impute(data, penalty, FULL, ONE).factors, np.zeros((shape[1], 0)))
    for _ in range(3):
        new = problem.step(point, Completed(point.R, point.Z, ONE))
        expected = slow_step(X, mask, dense(point.Z), law)
        np.testing.assert_allclose(dense(new.Z), expected, atol=0.05 * point.active_violation)
        assert pytest.approx(slow_objective(X, mask, dense(new.Z), law), rel=1e-12) == new.F
        point = new


@pytest.mark.parametrize("beta", [100.0, 10.0, 1.0, 0.1])
@pytest.mark.parametrize("observed", [0.3, 0.7])
def test_objective_never_rises_and_weights_ascend(beta, observed):
    X, mask = table(observed=observed)
    data, penalty = setting(X, mask)
    law = Lomax(penalty * beta, beta)
    start = soft_impute(data, penalty, FULL, ONE).factors
    objectives = []
    for point, _ in zip(_majorise(_Problem(data, law, 20, ONE), start), range(100), strict=False):
        objectives.append(point.F)
        assert (np.diff(point.Z.s) <= 0).all()
        assert (np.diff(law.weights(point.Z.s)) >= 0).all()
        assert (law.weights(point.Z.s) <= law.largest_weight).all()
    assert (np.diff(objectives) <= 1e-13 * objectives[0]).all()
    assert objectives[-1] < objectives[0]


def test_extrapolation_leads_where_plain_steps_lead():
    X, mask = table(observed=0.6)
    data, penalty = setting(X, mask, 0.3)
    law = Lomax(penalty * 10, 10.0)
    start = soft_impute(data, penalty, FULL, ONE).factors
    fit = hasi(data, penalty, 10.0, FULL, ONE, start)
    Z = dense(start)
    for _ in range(1000):
        Z = slow_step(X, mask, Z, law)
    np.testing.assert_allclose(dense(fit.factors), Z, atol=1e-6)
    assert len(fit.objectives) < 200


# Limits and closed forms


@pytest.mark.parametrize("observed", [0.4, 1.0])
def test_large_beta_is_soft_impute(observed):
    X, mask = table(observed=observed)
    data, penalty = setting(X, mask)
    expected = dense(soft_impute(data, penalty, FULL._replace(tolerance=1e-12), ONE).factors)
    got = dense(hasi(data, penalty, 1e8, FULL, ONE, no_factors(data)).factors)
    np.testing.assert_allclose(got, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("beta", [50.0, 3.0, 0.5])
def test_full_table_has_the_closed_form(beta):
    """From above, s falls to the larger root of s^2 + (b - y) s + a + 1 - b y = 0, or to 0."""
    X, mask = table(observed=1.0)
    data, penalty = setting(X, mask, 0.1)
    a, b = penalty * beta, beta
    y = np.linalg.svd(X, compute_uv=False)
    inside = (y + b) ** 2 - 4 * (a + 1)
    root = np.where(inside > 0, ((y - b) + np.sqrt(np.maximum(inside, 0))) / 2, 0)
    expected = np.maximum(root, 0)
    fit = hasi(data, penalty, beta, FULL._replace(tolerance=1e-9), ONE, svd_of(X))
    assert fit.converged, fit.reason
    s = np.zeros(20)
    s[: fit.factors.s.size] = fit.factors.s
    np.testing.assert_allclose(s, expected, atol=1e-7)
    assert 0 < fit.factors.s.size < 20


@pytest.mark.parametrize("times", [0.99, 1.01])
def test_zero_is_a_fixed_point_above_the_norm(times):
    """Iff ||P_Omega(X)||_2 <= (a + 1) / b = penalty + 1 / beta."""
    X, mask = table()
    data = data_of(X, mask)
    beta = 0.5
    penalty = times * largest_penalty(data, ONE) - 1 / beta
    fit = hasi(data, penalty, beta, FULL, ONE, no_factors(data))
    assert (fit.factors.s.size == 0) == (times > 1)
    if times > 1:
        assert fit.converged
        assert fit.violation == 0.0
        assert len(fit.objectives) == 1


# Certificates


def conditions(X, mask, factors, law):
    """(worst violation on the factors, excess of the remainder), from dense matrices."""
    U, s, V = factors
    R = np.where(mask, X - dense(factors), 0)
    omega = (law.a + 1) / (law.b + s)
    on_factors = np.abs(np.diag(U.T @ R @ V) - omega) / omega
    M = (np.eye(len(U)) - U @ U.T) @ R @ (np.eye(len(V)) - V @ V.T)
    return on_factors.max(), np.linalg.norm(M, 2) / ((law.a + 1) / law.b) - 1


@pytest.mark.parametrize("beta", [100.0, 3.0, 0.3])
@pytest.mark.parametrize(("shape", "observed"), [((30, 20), 0.5), ((20, 30), 0.7), ((80, 60), 0.3)])
def test_fixed_point_conditions_hold(shape, observed, beta):
    X, mask = table(*shape, observed)
    data, penalty = setting(X, mask, 0.3)
    fit = hasi(data, penalty, beta, FULL._replace(tolerance=1e-5), ONE)
    assert fit.converged, fit.reason
    assert fit.violation <= 1e-5
    on_factors, excess = conditions(X, mask, fit.factors, Lomax(penalty * beta, beta))
    assert on_factors <= 1e-5
    assert excess <= 1e-5
    for block in (fit.factors.U, fit.factors.V):
        np.testing.assert_allclose(block.T @ block, np.eye(fit.factors.s.size), atol=1e-10)


def test_remainder_is_measured():
    X, mask = table()
    data = data_of(X, mask)
    factors = svd_of(X)
    factors = Factors(factors.U[:, :2], factors.s[:2], factors.V[:, :2])
    R = residuals(data, factors, ONE)
    law = Lomax(1.0, 1.0)
    _, excess = conditions(X, mask, factors, law)
    assert remainder_violation(R, factors, law.largest_weight, ONE) == pytest.approx(
        excess, rel=1e-6
    )
    assert remainder_violation(R, factors, 1e6, ONE) == 0.0


def planted(name, data, penalty, beta, solution):
    """(factors, residual) of a solver with a bug."""
    U, s, V = solution
    law = Lomax(penalty * beta, beta)
    if name == "a for a + 1":
        solution = hasi(data, penalty - 1 / beta, beta, FULL, ONE).factors
    elif name == "the same weight for all":
        solution = soft_impute(data, law.largest_weight, FULL, ONE).factors
    elif name == "weights of the step before":
        omega = np.sort(law.weights(s))[::-1]
        solution = Factors(U, s + law.weights(s) - omega, V)
    elif name == "last factor lost":
        solution = Factors(U[:, :-1], s[:-1], V[:, :-1])
    elif name == "vectors slightly turned":
        solution = svd_of(dense(solution) + 1e-3 * s[0] * np.outer(U[:, 0], V[:, 1]))
    R = residuals(data, solution, ONE)
    if name == "residual of another Z":
        R = residuals(data, solution._replace(s=0.999 * s), ONE)
    return solution, R


@pytest.mark.parametrize(
    "name",
    [
        "a for a + 1",
        "the same weight for all",
        "weights of the step before",
        "last factor lost",
        "vectors slightly turned",
        "residual of another Z",
    ],
)
def test_the_certificate_catches(name):
    X, mask = table(60, 50)
    beta = 2.0
    data, penalty = setting(X, mask, 0.25)
    law = Lomax(penalty * beta, beta)
    fit = hasi(data, penalty, beta, FULL, ONE)
    assert fit.converged
    assert fit.factors.s.size >= 3
    for bug, low, high in ((None, 0.0, 1e-6), (name, 1e-3, np.inf)):
        Z, R = planted(bug, data, penalty, beta, fit.factors)
        violation = max(
            active_violation(R, Z, law.weights(Z.s), ONE),
            remainder_violation(R, Z, law.largest_weight, ONE),
        )
        assert low <= violation <= high


# Behaviour


def test_start_is_soft_impute_with_half_of_the_iterations():
    X, mask = table()
    data, penalty = setting(X, mask)
    limits = Limits(20, 30, 1e-12)
    start = soft_impute(data, penalty, limits._replace(max_iterations=15), ONE).factors
    expected = hasi(data, penalty, 5.0, limits._replace(max_iterations=15), ONE, start)
    got = hasi(data, penalty, 5.0, limits, ONE)
    assert got.objectives == expected.objectives
    assert len(got.objectives) == 16
    assert not got.converged
    assert "15 iterations" in got.reason


def test_a_solution_is_recognised():
    X, mask = table()
    data, penalty = setting(X, mask)
    fit = hasi(data, penalty, 5.0, FULL, ONE)
    again = hasi(data, penalty, 5.0, FULL, ONE, fit.factors)
    assert len(again.objectives) == 1
    assert again.converged


def test_rank_limit_is_respected_and_reported():
    X, mask = table(observed=0.8)
    data, penalty = setting(X, mask, 0.05)
    fit = hasi(data, penalty, 20.0, Limits(2, 2000, 1e-6), ONE, svd_of(X))
    assert fit.factors.s.size == 2
    assert not fit.converged
    assert fit.violation > 0.1
    assert "max_rank" in fit.reason


def test_all_zeros_and_empty_rows():
    X, mask = table()
    zeros = data_of(np.zeros_like(X), mask)
    assert hasi(zeros, 1.0, 1.0, FULL, ONE).factors.s.size == 0
    mask[[0, 7]] = False
    mask[:, 3] = False
    data, penalty = setting(X, mask)
    fit = hasi(data, penalty, 5.0, FULL, ONE)
    np.testing.assert_allclose(dense(fit.factors)[[0, 7]], 0, atol=1e-6)
    np.testing.assert_allclose(dense(fit.factors)[:, 3], 0, atol=1e-6)


def test_threads_do_not_change_a_bit():
    X, mask = table(150, 120, 0.6)
    data, penalty = setting(X, mask, 0.3)
    fits = []
    for n_threads in (1, 2):
        with Workers(n_threads) as workers:
            fits.append(hasi(data, penalty, 5.0, Limits(20, 20, 1e-6), workers))
    assert fits[0].objectives == fits[1].objectives
    np.testing.assert_array_equal(fits[0].factors.U, fits[1].factors.U)
