"""SoftImpute and SoftImpute-ALS: one problem, one solution."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fillrank.runtime.threads import Workers
from fillrank.solvers.certificates import largest_penalty
from fillrank.solvers.fit import Limits
from fillrank.solvers.soft_impute import soft_impute
from fillrank.solvers.soft_impute_als import soft_impute_als
from helpers.soft_impute_cases import (
    ONE,
    R_PACKAGE,
    TIGHT,
    data_of,
    dense,
    gap,
    objective,
    shrunk,
    step,
    table,
)

BOTH = pytest.mark.parametrize("solve", [soft_impute, soft_impute_als])


@pytest.fixture(autouse=True)
def one_blas_thread():
    """As in a fit: small blocks are slow on several threads if the machine is busy."""
    with threadpool_limits(1, user_api="blas"):
        yield


def check_factors(factors):
    """Orthonormal, positive and descending."""
    q = factors.s.size
    for side in (factors.U, factors.V):
        np.testing.assert_allclose(side.T @ side, np.eye(q), atol=1e-12)
    assert (factors.s > 0).all()
    assert (np.diff(factors.s) <= 0).all()


def check_never_rises(objectives):
    assert (np.diff(objectives) <= 1e-14 * objectives[0]).all()


# Closed forms


@pytest.mark.parametrize("shape", [(20, 13), (13, 20), (70, 90)])
def test_one_iteration_solves_a_full_table(shape):
    X = table(*shape, missing=0.0)
    penalty = 0.3 * np.linalg.norm(X, 2)
    fit = soft_impute(data_of(X), penalty, Limits(100, 1, 1e-8), ONE)
    np.testing.assert_allclose(dense(fit.factors), shrunk(X, penalty), atol=1e-9)
    assert fit.converged
    assert fit.reason == "the duality gap is below 1e-08 of the objective after 1 iteration"


def test_als_on_a_full_table():
    X = table(missing=0.0)
    penalty = 0.2 * np.linalg.norm(X, 2)
    fit = soft_impute_als(data_of(X), penalty, TIGHT._replace(tolerance=1e-11), ONE)
    np.testing.assert_allclose(dense(fit.factors), shrunk(X, penalty), atol=1e-5)


@BOTH
@pytest.mark.parametrize("times", [1 + 1e-9, 2.0])
def test_zero_from_the_largest_penalty_on(solve, times):
    X = table()
    data = data_of(X)
    largest = largest_penalty(data, ONE)
    warm = soft_impute(data, 0.5 * largest, TIGHT, ONE).factors
    for start in (None, warm):
        fit = solve(data, times * largest, TIGHT, ONE, start)
        assert fit.factors.s.size == 0
        assert fit.factors.U.shape == (24, 0)
        assert fit.converged
        assert fit.violation == 0.0
        assert fit.reason == f"Z = 0 is optimal: the penalty is at least {largest:.6g}"
        assert fit.objectives == (pytest.approx(0.5 * np.nansum(X**2)),)


@BOTH
def test_not_zero_below_it(solve):
    data = data_of(table())
    fit = solve(data, 0.99 * largest_penalty(data, ONE), TIGHT, ONE)
    assert fit.factors.s.size == 1
    assert fit.converged


@BOTH
def test_all_zeros(solve):
    fit = solve(data_of(np.zeros((5, 4))), 0.0, TIGHT, ONE)
    assert fit.factors.s.size == 0
    assert fit.converged


@BOTH
def test_no_penalty(solve):
    """f can be 0 up to rounding; of the many such Z one is found."""
    X = table(12, 9)
    fit = solve(data_of(X), 0.0, Limits(9, 3000, 1e-6), ONE)
    assert fit.converged
    assert max(fit.objectives) < 1e-20 * np.nansum(X**2)
    assert solve(data_of(X), 0.0, Limits(2, 50, 1e-6), ONE).factors.s.size == 2


# The solution


@BOTH
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("share", [0.6, 0.2])
def test_the_gap_closes(solve, share, seed):
    X = table(seed=seed)
    data = data_of(X)
    penalty = share * largest_penalty(data, ONE)
    fit = solve(data, penalty, TIGHT, ONE)
    Z = dense(fit.factors)
    check_factors(fit.factors)
    check_never_rises(fit.objectives)
    assert fit.converged
    assert abs(gap(X, Z, penalty)) < 2e-9
    assert fit.violation == pytest.approx(gap(X, Z, penalty), abs=1e-11)
    assert fit.objectives[-1] == pytest.approx(objective(X, Z, penalty), rel=1e-12)
    assert f"below 1e-09 of the objective after {len(fit.objectives)} iterations" in fit.reason
    np.testing.assert_allclose(step(X, Z, penalty), Z, atol=1e-3)


@pytest.mark.parametrize("share", [0.5, 0.15])
@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (40, 8)])
def test_both_find_the_same(shape, share):
    data = data_of(table(*shape))
    penalty = share * largest_penalty(data, ONE)
    limits = TIGHT._replace(tolerance=1e-10)
    one, other = (solve(data, penalty, limits, ONE) for solve in (soft_impute, soft_impute_als))
    assert one.objectives[-1] == pytest.approx(other.objectives[-1], rel=1e-10)
    np.testing.assert_allclose(dense(one.factors), dense(other.factors), atol=1e-5)
    assert one.factors.s.size == other.factors.s.size


@BOTH
@pytest.mark.parametrize("case", R_PACKAGE["cases"], ids=lambda case: f"{case['penalty']:g}")
def test_as_the_r_package(solve, case):
    """The figures are those of softImpute 1.4-3 on R 4.2.2; settings in softimpute_r.json."""
    X = np.array(R_PACKAGE["observed"], dtype=float)
    fit = solve(data_of(X), case["penalty"], TIGHT._replace(max_rank=14), ONE)
    assert fit.objectives[-1] == pytest.approx(case["objective"], rel=1e-8)
    np.testing.assert_allclose(fit.factors.s, case["singular_values"], atol=1e-4)
    np.testing.assert_allclose(dense(fit.factors), case["completed"], atol=1e-4)


def test_largest_penalty_as_the_r_package():
    X = np.array(R_PACKAGE["observed"], dtype=float)
    assert largest_penalty(data_of(X), ONE) == pytest.approx(R_PACKAGE["penalty_max"], rel=1e-8)


# What must not matter


@BOTH
def test_order_of_rows_and_columns_and_sides(solve):
    X = table()
    penalty = 0.3 * np.linalg.norm(np.nan_to_num(X), 2)
    Z = dense(solve(data_of(X), penalty, TIGHT, ONE).factors)
    rng = np.random.default_rng(1)
    i, j = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
    permuted = dense(solve(data_of(X[i][:, j]), penalty, TIGHT, ONE).factors)
    np.testing.assert_allclose(permuted, Z[i][:, j], atol=1e-5)
    transposed = dense(solve(data_of(X.T), penalty, TIGHT, ONE).factors)
    np.testing.assert_allclose(transposed, Z.T, atol=1e-5)


@BOTH
@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
def test_the_unit_of_the_data(solve, unit):
    X = table()
    penalty = 0.3 * np.linalg.norm(np.nan_to_num(X), 2)
    fit = solve(data_of(X), penalty, TIGHT, ONE)
    other = solve(data_of(unit * X), unit * penalty, TIGHT, ONE)
    assert len(fit.objectives) == len(other.objectives)
    np.testing.assert_allclose(dense(other.factors) / unit, dense(fit.factors), atol=1e-8)


@BOTH
def test_empty_rows_and_columns_stay_zero(solve):
    X = table()
    X[[0, 5]] = np.nan
    X[:, [16]] = np.nan
    Z = dense(solve(data_of(X), 2.0, TIGHT, ONE).factors)
    np.testing.assert_allclose(Z[[0, 5]], 0.0, atol=1e-6)
    np.testing.assert_allclose(Z[:, 16], 0.0, atol=1e-6)
    assert np.linalg.norm(Z) > 1


@BOTH
def test_a_warm_path_ends_where_cold_fits_do(solve):
    data = data_of(table())
    largest = largest_penalty(data, ONE)
    start = None
    for share in (1.1, 0.7, 0.4, 0.2):
        warm = solve(data, share * largest, TIGHT, ONE, start)
        cold = solve(data, share * largest, TIGHT, ONE)
        np.testing.assert_allclose(dense(warm.factors), dense(cold.factors), atol=1e-5)
        assert warm.objectives[-1] == pytest.approx(cold.objectives[-1], rel=1e-8)
        start = warm.factors
    again = solve(data, share * largest, TIGHT._replace(tolerance=1e-8), ONE, start)
    assert len(again.objectives) <= 0.5 * len(cold.objectives)


@BOTH
def test_the_number_of_threads_does_not_change_a_bit(solve):
    data = data_of(table(150, 120, missing=0.5))
    fits = []
    for n_threads in (1, 2):
        with Workers(n_threads) as workers:
            fits.append(solve(data, 8.0, Limits(20, 10, 1e-6), workers))
    np.testing.assert_array_equal(dense(fits[0].factors), dense(fits[1].factors))
    assert fits[0].objectives == fits[1].objectives


# Limits


@BOTH
def test_a_rank_limit_ends_at_a_stationary_point(solve):
    X = table(40, 30, rank=5)
    data = data_of(X)
    penalty = 0.1 * largest_penalty(data, ONE)
    fit = solve(data, penalty, Limits(2, 5000, 1e-7), ONE)
    Z = dense(fit.factors)
    assert fit.factors.s.size == 2
    assert fit.converged
    assert fit.reason.startswith("at the rank limit of 2 ")
    assert fit.violation == pytest.approx(gap(X, Z, penalty), rel=1e-9)
    assert fit.violation > 0.1
    check_never_rises(fit.objectives)
    # Stationary: the residual is lambda U V^T on Z's row and column spaces.
    R = np.where(np.isnan(X), 0.0, X - Z)
    U, _, V = fit.factors
    np.testing.assert_allclose(R @ V, penalty * U, atol=1e-4 * penalty)
    np.testing.assert_allclose(R.T @ U, penalty * V, atol=1e-4 * penalty)


@BOTH
def test_a_rank_limit_at_the_solution_closes_the_gap(solve):
    data = data_of(table())
    penalty = 0.4 * largest_penalty(data, ONE)
    free = solve(data, penalty, TIGHT, ONE)
    q = free.factors.s.size
    fit = solve(data, penalty, TIGHT._replace(max_rank=q, tolerance=1e-7), ONE)
    assert fit.converged
    assert fit.violation < 1e-4
    np.testing.assert_allclose(dense(fit.factors), dense(free.factors), atol=1e-3)


@BOTH
def test_a_start_beyond_the_rank_limit_is_cut(solve):
    data = data_of(table())
    start = solve(data, 0.5, TIGHT._replace(tolerance=1e-4), ONE).factors
    assert start.s.size > 2
    assert solve(data, 0.5, Limits(2, 3, 1e-4), ONE, start).factors.s.size == 2


@BOTH
def test_the_limit_of_iterations(solve):
    X = table()
    fit = solve(data_of(X), 0.5, Limits(17, 7, 1e-12), ONE)
    assert not fit.converged
    assert len(fit.objectives) == 7
    assert fit.violation == pytest.approx(gap(X, dense(fit.factors), 0.5), rel=1e-9)
    figure = f"{fit.violation:.2g}"
    assert fit.reason == f"the limit of 7 iterations was reached at a relative gap of {figure}"


def test_momentum_saves_iterations():
    """200 x 150, rank 5, 70% missing: at Y = Z_t alone it takes more than 101 iterations, here 70."""
    data = data_of(table(200, 150, rank=5, missing=0.7, noise=0.5))
    penalty = 0.1 * largest_penalty(data, ONE)
    fit = soft_impute(data, penalty, Limits(150, 90, 1e-6), ONE)
    assert fit.converged
    check_never_rises(fit.objectives)
