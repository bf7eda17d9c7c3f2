"""The steps of SoftImpute-ALS against their definitions, and bugs that the certificate must catch."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fillrank.solvers import soft_impute as soft_impute_module
from fillrank.solvers import soft_impute_als as als
from fillrank.solvers.certificates import duality_gap
from fillrank.solvers.fit import Limits
from helpers.soft_impute_cases import ONE, TIGHT, data_of, dense, objective, table

PENALTY = 1.5


@pytest.fixture(autouse=True)
def one_blas_thread():
    """As in a fit: small blocks are slow on several threads if the machine is busy."""
    with threadpool_limits(1, user_api="blas"):
        yield


def sides(X, rank=6, seed=0):
    """Some Z from both sides, with the data."""
    rng = np.random.default_rng(seed)
    data = data_of(X)
    U, V = (np.linalg.qr(rng.standard_normal((size, rank))).Q for size in X.shape)
    D2 = np.linspace(4.0, 0.1, rank)
    return data, als._side(data.rows, U, D2, V, ONE), als._side(data.columns, V, D2, U, ONE)


def test_a_half_step_is_a_ridge_regression():
    X = table()
    _, _, columns = sides(X)
    A = columns.other * np.sqrt(columns.D2)
    Z = (columns.other * columns.D2) @ columns.own.T
    filled = np.where(np.isnan(X), Z, X)
    B = np.linalg.solve(A.T @ A + PENALTY * np.eye(A.shape[1]), A.T @ filled).T
    V, D2, U = als._half_step(columns, PENALTY, ONE)
    np.testing.assert_allclose((U * D2) @ V.T, A @ B.T, atol=1e-12)
    for side in (U, V):
        np.testing.assert_allclose(side.T @ side, np.eye(6), atol=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_objective_falls_in_each_half_step(seed):
    X = table(seed=seed)
    data, rows, columns = sides(X, seed=seed)
    last = objective(X, (rows.own * rows.D2) @ rows.other.T, PENALTY)
    for _ in range(20):
        V, D2, U = als._half_step(columns, PENALTY, ONE)
        middle = objective(X, (U * D2) @ V.T, PENALTY)
        U, D2, V = als._half_step(als._side(data.rows, U, D2, V, ONE), PENALTY, ONE)
        columns = als._side(data.columns, V, D2, U, ONE)
        end = objective(X, (U * D2) @ V.T, PENALTY)
        assert als._objective(columns, PENALTY) == pytest.approx(end, rel=1e-12)
        assert end <= middle <= last
        last = end


def test_the_final_step_gives_exact_zeros_and_no_larger_objective():
    X = table()
    data, _, columns = sides(X)
    for _ in range(10):
        columns = als._iteration(data, columns, 5.0, ONE)
    final = als._final(data, columns, 5.0, ONE)
    assert final.s.size < columns.D2.size
    assert (columns.D2 > 0).all()
    assert objective(X, dense(final), 5.0) <= als._objective(columns, 5.0)


def test_a_start_is_filled_up_without_a_change_of_z():
    data = data_of(table())
    start = als.soft_impute_als(data, 4.0, TIGHT._replace(tolerance=1e-4), ONE).factors
    first = als._first(data, 4.0, 9, start, ONE)
    np.testing.assert_allclose((first.other * first.D2) @ first.own.T, dense(start), atol=1e-12)
    np.testing.assert_allclose(first.other.T @ first.other, np.eye(9), atol=1e-12)
    assert (first.D2 > 0).all()


# Planted bugs


def plant_new_d2(monkeypatch):
    """Shrink by the new D^2: the fixed points of that are others."""

    def half_step(side, penalty, workers):
        own, D2, Q = als._thin_svd(als._filled_times(side, workers))
        return als.Factors(own, D2 * D2 / (D2 + penalty), side.other @ Q)

    monkeypatch.setattr(als, "_half_step", half_step)


def plant_stale_residual(monkeypatch):
    """Do not refresh the residual between the half steps' sides."""
    refresh = als._side
    kept = {}

    def side(entries, own, D2, other, workers):
        fresh = refresh(entries, own, D2, other, workers)
        return fresh._replace(residual=kept.setdefault(entries.values.ctypes.data, fresh.residual))

    monkeypatch.setattr(als, "_side", side)


def plant_no_fill(monkeypatch):
    """Forget V D^2, as if the missing cells were zeros."""
    monkeypatch.setattr(
        als, "_filled_times", lambda side, workers: als.product(side.residual, side.other, workers)
    )


@pytest.mark.parametrize("plant", [plant_new_d2, plant_stale_residual, plant_no_fill])
def test_bugs_in_als_leave_a_gap(plant, monkeypatch):
    data = data_of(table())
    limits = Limits(17, 500, 1e-6)
    assert als.soft_impute_als(data, PENALTY, limits, ONE).converged
    plant(monkeypatch)
    with np.errstate(all="ignore"):
        fit = als.soft_impute_als(data, PENALTY, limits, ONE)
    assert not fit.converged
    assert duality_gap(data, fit.factors, PENALTY, ONE) > 1e-3


@pytest.mark.parametrize("times", [1.1, 0.99])
def test_a_wrong_shrinkage_in_soft_impute_leaves_a_gap(times, monkeypatch):
    data = data_of(table())
    limits = Limits(17, 300, 1e-6)
    assert soft_impute_module.soft_impute(data, PENALTY, limits, ONE).converged
    right = soft_impute_module._shrunk

    def wrong(problem, *rest):
        step = right(problem._replace(penalty=times * problem.penalty), *rest)
        return step._replace(point=soft_impute_module._point(problem, step.point.factors))

    monkeypatch.setattr(soft_impute_module, "_shrunk", wrong)
    fit = soft_impute_module.soft_impute(data, PENALTY, limits, ONE)
    assert not fit.converged
    assert fit.violation > 1e-3
