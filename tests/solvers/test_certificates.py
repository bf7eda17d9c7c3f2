from itertools import pairwise

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fillrank.runtime.threads import Workers
from fillrank.solvers.certificates import (
    StoppingRule,
    change,
    duality_gap,
    largest_penalty,
    relative_change,
)
from fillrank.solvers.fit import Factors, Limits, no_factors
from fillrank.solvers.soft_impute import soft_impute
from helpers.soft_impute_cases import ONE, TIGHT, data_of, dense, gap, table


@pytest.fixture(autouse=True)
def one_blas_thread():
    """As in a fit: small blocks are slow on several threads if the machine is busy."""
    with threadpool_limits(1, user_api="blas"):
        yield


def some_factors(m, n, rank, seed=0):
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((size, rank))).Q for size in (m, n))
    return Factors(U, np.sort(rng.random(rank))[::-1] + 0.1, V)


@pytest.mark.parametrize("shape", [(3, 2), (12, 7), (90, 120), (300, 200)])
@pytest.mark.parametrize("rank", [1, 2])
def test_largest_penalty_is_the_norm(shape, rank):
    X = table(*shape, rank=rank, missing=0.6, noise=1.0)
    expected = np.linalg.norm(np.nan_to_num(X), 2)
    assert largest_penalty(data_of(X), ONE) == pytest.approx(expected, rel=1e-9)


def test_largest_penalty_of_pure_noise():
    """No singular value stands out: the hardest case."""
    X = table(400, 300, noise=100.0, missing=0.9)
    with Workers(2) as workers:
        norm = largest_penalty(data_of(X), workers)
    assert norm == pytest.approx(np.linalg.norm(np.nan_to_num(X), 2), rel=1e-9)


@pytest.mark.parametrize("penalty", [0.1, 1.0, 10.0])
def test_gap_by_its_definition(penalty):
    X = table(30, 20)
    data = data_of(X)
    for factors in (no_factors(data), some_factors(30, 20, 4)):
        expected = gap(X, dense(factors), penalty)
        assert expected > 0
        assert duality_gap(data, factors, penalty, ONE) == pytest.approx(expected, rel=1e-9)


def test_gap_bounds_the_distance_to_the_minimum():
    data = data_of(table())
    minimum = soft_impute(data, 1.0, TIGHT, ONE).objectives[-1]
    for n_iterations in (1, 3, 10, 30):
        fit = soft_impute(data, 1.0, Limits(17, n_iterations, 1e-12), ONE)
        value = fit.objectives[-1]
        assert duality_gap(data, fit.factors, 1.0, ONE) == pytest.approx(fit.violation)
        assert value - minimum <= fit.violation * value + 1e-12 * value


def test_a_stationary_point_of_low_rank_has_a_gap():
    """Z's singular vectors are R's there, at lambda: the norm must be looked for elsewhere."""
    X = table(60, 40, rank=4, missing=0.0)
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    penalty = 0.5 * s[2]
    factors = Factors(U[:, :1], s[:1] - penalty, Vt[:1].T.copy())
    expected = gap(X, dense(factors), penalty)
    assert expected > 0.1
    assert duality_gap(data_of(X), factors, penalty, ONE) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_gap_of_zeros_is_zero(penalty):
    data = data_of(np.zeros((4, 3)))
    assert duality_gap(data, no_factors(data), penalty, ONE) == 0.0


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e-11])
def test_small_changes_are_seen(size):
    old = some_factors(30, 20, 3)
    rng = np.random.default_rng(1)
    Z = dense(old) + size * rng.standard_normal((30, 1)) @ rng.standard_normal((1, 20))
    U, s, Vt = np.linalg.svd(Z)
    new = Factors(U[:, :4], s[:4], Vt[:4].T)
    expected = np.linalg.norm(dense(new) - dense(old))
    assert change(old, new) == pytest.approx(expected, rel=1e-3)
    assert relative_change(old, new) == pytest.approx(expected / np.linalg.norm(old.s), rel=1e-3)


def test_change_from_and_to_zero():
    some = some_factors(5, 4, 2)
    zero = Factors(np.zeros((5, 0)), np.zeros(0), np.zeros((4, 0)))
    assert change(zero, some) == pytest.approx(np.linalg.norm(some.s))
    assert change(some, zero) == pytest.approx(np.linalg.norm(some.s))
    assert relative_change(zero, zero) == 0.0
    assert relative_change(zero, some) == np.inf


def test_checks_thin_out_but_the_last_iteration_has_one():
    rule = StoppingRule(data_of(table()), 1.0, Limits(5, 1003, 1e-5), ONE)
    due = [t for t in range(1, 1004) if rule.is_due(t)]
    assert due[0] == 5
    assert due[-1] == 1003
    assert len(due) < 40
    assert all(b <= 1.2 * a + 1 for a, b in pairwise(due))
