"""SoftImpute with absolute, logistic and ordered losses: optimal, and certified to be."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fillrank.solvers import soft_impute_absolute as absolute_module
from fillrank.solvers import soft_impute_losses as losses_module
from fillrank.solvers.fit import Limits
from helpers.loss_cases import KINDS, TIGHT, data_of, dense, first_loss, largest, solve, table
from reference import loss_twins

EVERY_LOSS = pytest.mark.parametrize("kind", KINDS)
LEVELS = pytest.mark.parametrize("kind", ["logistic", "ordered"])


@pytest.fixture(autouse=True)
def one_blas_thread():
    """As in a fit: small blocks are slow on several threads if the machine is busy."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="module")
def solutions():
    """(X, penalty, fit, thresholds) of each loss."""
    found = {}
    with threadpool_limits(1, user_api="blas"):
        for kind in KINDS:
            X = table(kind)
            penalty = 0.3 * largest(kind, X)
            found[kind] = (X, penalty, *solve(kind, X, penalty))
    return found


@EVERY_LOSS
def test_the_gap_closes(kind, solutions):
    X, penalty, fit, thresholds = solutions[kind]
    assert fit.converged
    assert -1e-12 <= fit.violation <= 1e-7
    assert 0 < fit.factors.s.size < 9
    value = loss_twins.objective(kind, X, dense(fit.factors), penalty, thresholds)
    assert fit.objectives[-1] == pytest.approx(value, rel=1e-12)


@EVERY_LOSS
def test_an_independent_minimiser_finds_the_same(kind, solutions):
    X, penalty, fit, thresholds = solutions[kind]
    twin = loss_twins.minimise(kind, X, penalty, thresholds)
    values = [
        loss_twins.objective(kind, X, Z, penalty, thresholds) for Z in (dense(fit.factors), twin)
    ]
    assert values[0] <= values[1] * (1 + 1e-7)
    assert values[1] <= values[0] * (1 + (1e-3 if kind == "laplace" else 1e-6))
    if kind != "laplace":  # which is not strictly convex
        seen = ~np.isnan(X)
        np.testing.assert_allclose(dense(fit.factors)[seen], twin[seen], atol=0.01)


@LEVELS
def test_conditions_for_a_minimum(kind, solutions):
    """||G||_2 <= lambda and -<G, Z> = lambda ||Z||_*."""
    X, penalty, fit, thresholds = solutions[kind]
    Z, G, seen = dense(fit.factors), np.zeros(X.shape), ~np.isnan(X)
    G[seen] = loss_twins.slopes(kind, X[seen], Z[seen], thresholds)
    assert np.linalg.norm(G, 2) <= penalty * (1 + 1e-5)
    assert -np.sum(G * Z) == pytest.approx(penalty * fit.factors.s.sum(), rel=1e-5)


@LEVELS
def test_the_objective_never_rises(kind, solutions):
    objectives = np.array(solutions[kind][2].objectives)
    assert objectives.size > 5
    assert (np.diff(objectives) <= 1e-13 * objectives[0]).all()


@EVERY_LOSS
def test_the_mode_of_the_posterior_in_balls(kind, solutions):
    """d_k ~ Exp(penalty) and vectors uniform in balls: no point nearby has a higher log posterior.

    In the factors of the decomposition, the log posterior is minus the objective of P2.
    """
    X, penalty, fit, thresholds = solutions[kind]
    rng, (U, s, V) = np.random.default_rng(0), fit.factors
    seen = ~np.isnan(X)

    def log_posterior(d, alpha, beta):
        total = loss_twins.loss(kind, X[seen], ((alpha * d) @ beta.T)[seen], thresholds).sum()
        return -float(total + penalty * d.sum())

    best = log_posterior(s, U, V)
    for size in np.repeat([1e-4, 1e-2, 0.3], 200):
        d = np.abs(s + size * rng.normal(size=s.size))
        alpha, beta = (side + size * rng.normal(size=side.shape) for side in (U, V))
        alpha, beta = (side / np.maximum(np.linalg.norm(side, axis=0), 1) for side in (alpha, beta))
        assert log_posterior(d, alpha, beta) <= best + 1e-6 * abs(best)


@EVERY_LOSS
@pytest.mark.parametrize("most", [1, 3, 20])
def test_the_bound_of_an_early_iterate_holds(kind, most):
    """The gap is at least the distance from the minimum, for the thresholds of the iterate."""
    X = table(kind, seed=3)
    penalty = 0.2 * largest(kind, X)
    early, thresholds = solve(kind, X, penalty, Limits(100, most, 1e-12))
    value = loss_twins.objective(kind, X, dense(early.factors), penalty, thresholds)
    assert early.objectives[-1] == pytest.approx(value)
    twin = loss_twins.minimise(kind, X, penalty, thresholds)
    smallest = loss_twins.objective(kind, X, twin, penalty, thresholds)
    assert smallest < value
    assert value * (1 - early.violation) <= smallest
    assert early.violation < 1.5


def test_thresholds_are_those_of_the_joint_minimum(solutions):
    """F is convex in Z and the thresholds: no others, with the best Z for them, have a lower F."""
    X, penalty, fit, thresholds = solutions["ordered"]
    for shift in ([0.2, 0, 0], [0, -0.2, 0], [0, 0, 0.2], [0.1, 0.1, 0.1]):
        other = thresholds + shift
        Z = loss_twins.minimise("ordered", X, penalty, other)
        assert loss_twins.objective("ordered", X, Z, penalty, other) > fit.objectives[-1]


@EVERY_LOSS
@pytest.mark.parametrize("times", [1 + 1e-9, 10.0])
def test_zero_from_the_largest_penalty_on(kind, times):
    X = table(kind)
    fit, _ = solve(kind, X, times * largest(kind, X))
    assert fit.factors.s.size == 0
    assert fit.converged
    assert fit.reason.startswith("Z = 0 is optimal")


@LEVELS
def test_not_zero_below_it(kind):
    X = table(kind)
    fit, _ = solve(kind, X, 0.99 * largest(kind, X))
    assert fit.factors.s.size == 1


@EVERY_LOSS
def test_transposed_and_permuted_tables(kind, solutions):
    X, penalty, fit, thresholds = solutions[kind]
    rows, columns = (
        np.random.default_rng(0).permutation(12),
        np.random.default_rng(1).permutation(9),
    )
    other, others = solve(kind, X[rows][:, columns].T, penalty)
    assert other.objectives[-1] == pytest.approx(fit.objectives[-1], rel=1e-6)
    np.testing.assert_allclose(others, thresholds, atol=1e-2)
    if kind != "laplace":
        np.testing.assert_allclose(
            dense(other.factors).T, dense(fit.factors)[rows][:, columns], atol=0.02
        )


@EVERY_LOSS
def test_a_warm_start_takes_fewer_iterations_to_the_same(kind, solutions):
    X, penalty, fit, _ = solutions[kind]
    again, _ = solve(kind, X, penalty, start=fit.factors)
    assert again.objectives[-1] == pytest.approx(fit.objectives[-1], rel=1e-6)
    assert len(again.objectives) <= len(fit.objectives)


def test_offsets_are_part_of_the_signal():
    """Offsets from a matrix of low rank that is added to Z: the same loss at Z less the offsets."""
    X = table("logistic")
    data = data_of(X)
    offsets = np.random.default_rng(0).normal(size=data.x.size)
    shifted = data._replace(offsets=offsets)
    loss = first_loss("logistic", data)
    penalty = 0.5 * losses_module.largest_loss_penalty(shifted, loss, losses_module.Workers(1))
    fit, _ = losses_module.soft_impute_loss(shifted, loss, penalty, TIGHT, losses_module.Workers(1))
    Z, seen = dense(fit.factors), ~np.isnan(X)
    value = (
        loss_twins.loss("logistic", X[seen], Z[seen] + offsets).sum()
        + penalty * fit.factors.s.sum()
    )
    assert fit.objectives[-1] == pytest.approx(value)
    assert fit.converged


def test_outliers_hardly_change_absolute_fits():
    X = table("laplace", 30, 20, missing=0.2)
    i, j = np.argwhere(~np.isnan(X))[7]
    values = [X[i, j], 50.0, 5000.0]
    fits = []
    for value in values:
        X[i, j] = value
        fits.append(dense(solve("laplace", X, 3.0, TIGHT._replace(tolerance=1e-6))[0].factors))
    assert np.abs(fits[2] - fits[1]).max() < 0.02
    assert np.abs(fits[1] - fits[0]).max() < 1.5


# Bugs that the certificate detects


def plant_weak_threshold(monkeypatch, module):
    right = module.soft_threshold
    monkeypatch.setattr(module, "soft_threshold", lambda W, lam, *rest: right(W, 0.9 * lam, *rest))


def plant_lost_factor(monkeypatch, module):
    right = module.soft_threshold

    def wrong(*arguments):
        step = right(*arguments)
        q = step.factors.s.size - 1
        U, s, V = step.factors
        return step._replace(factors=module.Factors(U[:, :q], s[:q], V[:, :q]))

    monkeypatch.setattr(module, "soft_threshold", wrong)


@EVERY_LOSS
@pytest.mark.parametrize("plant", [plant_weak_threshold, plant_lost_factor])
def test_planted_bugs_leave_a_gap(kind, plant, monkeypatch):
    X = table(kind)
    penalty = 0.3 * largest(kind, X)
    plant(monkeypatch, absolute_module if kind == "laplace" else losses_module)
    fit, _ = solve(kind, X, penalty, Limits(100, 500, 1e-7))
    assert not fit.converged
    assert fit.violation > 1e-3


@LEVELS
def test_a_wrong_slope_leaves_a_gap(kind, monkeypatch):
    """The step goes to the wrong place, and the bound is computed with the right slopes."""
    right = losses_module._step

    def wrong(problem, loss, at, guess):
        return right(problem, loss, (at[0], 1.1 * at[1]), guess)

    monkeypatch.setattr(losses_module, "_step", wrong)
    X = table(kind)
    fit, _ = solve(kind, X, 0.3 * largest(kind, X), Limits(100, 300, 1e-7))
    assert not fit.converged
    assert fit.violation > 1e-3
