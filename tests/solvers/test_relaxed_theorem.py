"""The theorem of docs/theorem.md in numbers, through the functions that print its tables."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fillrank.runtime.threads import Workers
from fillrank.solvers.fit import Factors, Limits
from fillrank.solvers.relaxed_spectral import Components, components_of

_PATH = Path(__file__).parents[2] / "benchmarks" / "theorem.py"
_SPEC = importlib.util.spec_from_file_location("theorem", _PATH)
theorem = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(theorem)
ONE = Workers(1)


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield


def decompositions(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        m, n, r = rng.integers(2, 9, size=3)
        yield theorem.random_components(rng, m, n, r)


def singular_values(parts):
    s = np.zeros(parts.d.size)
    found = np.linalg.svd(theorem.matrix_of(parts), compute_uv=False)[: s.size]
    s[: found.size] = found
    return s


# Majorisation


def test_smallest_d_dominate_the_tails():
    for parts in decompositions(2000):
        s, d = singular_values(parts), np.sort(parts.d)
        for j in range(1, d.size + 1):
            assert d[:j].sum() >= s[d.size - j :].sum() - 1e-12


def test_every_subset_dominates():
    """All subsets of components, not only the smallest."""
    for parts in decompositions(50):
        s, r = singular_values(parts), parts.d.size
        for bits in range(1, 2**r):
            members = [k for k in range(r) if bits >> k & 1]
            assert parts.d[members].sum() >= s[r - len(members) :].sum() - 1e-12


@pytest.mark.parametrize("g", [np.log1p, np.sqrt, np.tanh, lambda x: np.minimum(x, 0.3)])
def test_concave_penalties_are_no_lower_on_d(g):
    for parts in decompositions(1000):
        assert g(parts.d).sum() >= g(singular_values(parts)).sum() - 1e-12


def test_weighted_penalties_are_no_lower_on_d():
    rng = np.random.default_rng(1)
    for parts in decompositions(1000):
        gamma = rng.exponential(size=parts.d.size)
        assert gamma @ parts.d >= np.sort(gamma) @ singular_values(parts) - 1e-12


def test_vectors_outside_their_balls_are_detected():
    """The inequality can fail: the slack of decompositions that break a constraint is negative."""
    broken = 0
    for parts in decompositions(200):
        outside = parts._replace(alpha=3 * parts.alpha)
        broken += theorem.smallest_slack(outside) < -1e-6
    assert broken > 100


def test_convex_penalties_are_not_covered():
    """Two equal components: sum d^2 = 2, and 4 for their one singular value. Concavity is needed."""
    vectors = np.array([[1.0, 0.0]] * 2)
    parts = Components(np.ones(2), vectors, vectors)
    assert np.sum(parts.d**2) == pytest.approx(2.0)
    assert np.sum(singular_values(parts) ** 2) == pytest.approx(4.0)


def test_optimal_vectors_of_P2_need_not_be_orthonormal():  # noqa: N802
    """diag(3, 1) with d = (2, 2): the same Z and the same sum, at an angle of 60 degrees."""
    c, s = np.sqrt(0.75), 0.5
    vectors = np.array([[c, s], [c, -s]])
    parts = Components(np.array([2.0, 2.0]), vectors, vectors)
    np.testing.assert_allclose(theorem.matrix_of(parts), np.diag([3.0, 1.0]), atol=1e-15)
    assert parts.d.sum() == pytest.approx(4.0)
    assert theorem.largest_cosine(vectors) == pytest.approx(0.5)
    # But a strictly concave penalty tells them apart.
    assert np.log1p(parts.d).sum() > np.log1p([3.0, 1.0]).sum() + 0.1


# Absolute loss


def robust_case(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, 2)) @ rng.standard_normal((2, 6)) + rng.standard_t(2, (8, 6))
    return X, rng.random((8, 6)) < 0.7, rng


@pytest.fixture(scope="module", params=[0, 1, 2])
def robust(request):
    """(X, mask, rng, Z, W) with the optimum of P1 and its dual."""
    X, mask, rng = robust_case(request.param)
    return X, mask, rng, *theorem.absolute_loss_optimum(X, mask, 1.0)


def components(Z):
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    return components_of(Factors(U, s, Vt.T), s.size)


def test_robust_P1_is_certified_and_P2_reaches_it(robust):  # noqa: N802
    X, mask, _, Z, W = robust
    assert np.abs(W).max() <= 1
    assert not W[~mask].any()
    assert np.linalg.norm(W, 2) <= 1 + 1e-14
    best = np.abs(X - Z)[mask].sum() + np.linalg.norm(Z, "nuc")
    bound = (W * X)[mask].sum()
    assert 0 <= best - bound <= 1e-8 * best
    assert theorem.absolute_loss_relaxed(X, mask, components(Z), 1.0) == pytest.approx(
        best, rel=1e-12
    )
    assert 0 < np.linalg.matrix_rank(Z, 1e-6) < 6


def test_robust_P2_is_never_below_the_dual(robust):  # noqa: N802
    X, mask, rng, Z, W = robust
    bound = (W * X)[mask].sum()
    best = components(Z)
    for _ in range(1000):
        for point in (theorem.random_components(rng, 8, 6, 6), theorem.nudged(best, rng)):
            assert theorem.absolute_loss_relaxed(X, mask, point, 1.0) >= bound
    parts = theorem.absolute_loss_descent(X, mask, 1.0, rng)
    value = theorem.absolute_loss_relaxed(X, mask, parts, 1.0)
    assert bound <= value <= bound * (1 + 1e-5)
    for vectors in (parts.alpha, parts.beta):
        assert np.linalg.norm(vectors, axis=1).max() <= 1 + 1e-12


def test_robust_bound_is_broken_outside_the_balls(robust):
    """With vectors twice as long as allowed P2 falls below: the bound is not an empty one."""
    X, mask, _, Z, W = robust
    parts = components(Z)
    cheap = Components(parts.d / 4, 2 * parts.alpha, 2 * parts.beta)
    assert theorem.absolute_loss_relaxed(X, mask, cheap, 1.0) < (W * X)[mask].sum() - 0.1


@pytest.mark.parametrize("kind", ["logistic", "ordered"])
def test_P2_of_losses_of_levels_is_P1(kind):  # noqa: N802
    case = theorem.CASES[0]._replace(m=12, n=9, observed=0.7)
    data, loss = theorem.levels_of(case, kind)
    penalty = 0.3 * theorem.largest_loss_penalty(data, loss, ONE)
    fit, loss = theorem.soft_impute_loss(data, loss, penalty, Limits(9, 20_000, 1e-9), ONE)
    parts = theorem.loss_descent(data, loss, penalty, np.random.default_rng(0), ONE)
    P2 = theorem.loss_relaxed(data, loss, parts, penalty, ONE)
    assert fit.objectives[-1] == pytest.approx(P2, rel=1e-8)
    assert parts.d.sum() == pytest.approx(fit.factors.s.sum(), rel=1e-5)
