"""M3F against slow twins, finite differences, closed forms and its dual certificate."""

import numpy as np
import pytest
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from fillrank.kernels import ordinal
from fillrank.kernels.ordinal import Scorer
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers import m3f as module
from fillrank.solvers import margin as saddles
from fillrank.solvers.fit import Limits
from fillrank.solvers.m3f import first_scorer, fit_rows, m3f
from fillrank.table.entries import Entries
from helpers.soft_impute_cases import ONE, data_of
from reference.margin_errors import mean_absolute_error
from reference.max_margin_twins import (
    duality_gap,
    gradient_twin,
    hinge_twin,
    margins,
    objective_twin,
    slope_twin,
    slopes_twin,
)
from reference.planted import plant

TIGHT = Limits(max_rank=100, max_iterations=5_000, tolerance=1e-7)
PENALTY = 1.5


@pytest.fixture(autouse=True)
def one_blas_thread():
    """As in a fit: the bits of long dot products depend on BLAS's threads."""
    with threadpool_limits(1, user_api="blas"):
        yield


def table(m=16, n=11, n_levels=5, missing=0.4, noise=0.5, seed=0):
    """Levels 1 to L of low-rank scores with noise, cut at quantiles; missing cells are NaN."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 2)) @ rng.standard_normal((2, n))
    X += noise * rng.standard_normal((m, n))
    cuts = np.quantile(X, np.arange(1, n_levels) / n_levels)
    Y = 1.0 + np.searchsorted(cuts, X)
    Y[rng.random((m, n)) < missing] = np.nan
    return Y


def table_with_empties():
    """As above, with a row and a column without entries."""
    Y = table()
    Y[3], Y[:, 7] = np.nan, np.nan
    return Y


def levels_of(Y):
    """The table as the solver takes it."""
    return Data(*(side._replace(values=side.values.astype(np.int8)) for side in data_of(Y)))


def some_scorer(Y, n_levels=5, rank=3, seed=1):
    """Scores of the thresholds' size, so that all pieces of the hinge occur."""
    rng = np.random.default_rng(seed)
    U, V = (rng.standard_normal((size, rank)) for size in Y.shape)
    return Scorer(U, V, rng.standard_normal((Y.shape[0], n_levels - 1)))


def problem_of(Y, scorer):
    shapes = tuple(block.shape for block in scorer)
    return module._Factorisation(levels_of(Y), PENALTY, ONE, shapes), module._joined(*scorer)


def solved(Y, penalty=PENALTY, rank=11, n_levels=5, seed=0, limits=TIGHT):
    start = first_scorer(Y.shape, n_levels, rank, np.random.default_rng(seed))
    return m3f(levels_of(Y), n_levels, penalty, limits, ONE, start)


# The objective and its gradient


@pytest.mark.parametrize("z", [-3.0, -1e-9, 0.0, 1e-9, 0.3, 1.0 - 1e-9, 1.0, 1.5])
def test_the_smooth_hinge(z):
    h, slope = ordinal.smooth_hinge(z)
    assert h == pytest.approx(hinge_twin(z), abs=1e-15)
    assert slope == pytest.approx(slope_twin(z), abs=1e-15)


def check_against_twins(n_levels=5):
    Y = table_with_empties() if n_levels == 5 else table(n_levels=n_levels)
    scorer = some_scorer(Y, n_levels)
    problem, x = problem_of(Y, scorer)
    J, gradient = problem.value_and_gradient(x)
    assert pytest.approx(objective_twin(Y, scorer, PENALTY), rel=1e-13) == J
    for got, twin in zip(problem.scorer(gradient), gradient_twin(Y, scorer, PENALTY), strict=True):
        np.testing.assert_allclose(got, twin, atol=1e-12)
    G = ordinal.slopes(problem.data.rows, scorer, ONE).values
    np.testing.assert_allclose(G, slopes_twin(Y, scorer)[0][~np.isnan(Y)], atol=1e-12)


@pytest.mark.parametrize("n_levels", [2, 3, 5])
def test_agrees_with_reference_versions(n_levels):
    check_against_twins(n_levels)


def check_finite_differences():
    Y, step = table(), 1e-6
    scorer = some_scorer(Y)
    # J is quadratic between the kinks of h'; a step moves no margin as far as 1e-5.
    assert all(min(abs(z), abs(z - 1)) > 1e-5 for *_, z in margins(Y, scorer))
    problem, x = problem_of(Y, scorer)
    central = np.empty_like(x)
    for p in range(x.size):
        e = step * (np.arange(x.size) == p)
        up, down = problem.value_and_gradient(x + e)[0], problem.value_and_gradient(x - e)[0]
        central[p] = (up - down) / (2 * step)
    blocks = problem.scorer(problem.value_and_gradient(x)[1]), problem.scorer(central)
    for got, difference in zip(*blocks, strict=True):
        assert np.linalg.norm(got - difference) < 1e-7 * np.linalg.norm(got)


def test_finite_differences():
    check_finite_differences()


def test_two_levels_are_the_binary_soft_margin():
    Y = table(n_levels=2)
    scorer = some_scorer(Y, 2)
    problem, x = problem_of(Y, scorer)
    sign = np.where(Y == 2, 1.0, -1.0)
    decision = scorer.left @ scorer.right.T - scorer.thresholds
    loss = np.vectorize(hinge_twin)(sign * decision)[~np.isnan(Y)].sum()
    penalty = 0.5 * PENALTY * (np.sum(scorer.left**2) + np.sum(scorer.right**2))
    assert problem.value_and_gradient(x)[0] == pytest.approx(loss + penalty, rel=1e-13)


# Solutions


@pytest.mark.parametrize("n_levels", [2, 5])
@pytest.mark.parametrize("penalty", [0.5, 3.0])
def test_the_dual_certificate(penalty, n_levels):
    """Together they make the solution global: feasible in theta, in the ball, no gap."""
    Y = table(n_levels=n_levels)
    fit = solved(Y, penalty, n_levels=n_levels)
    assert fit.converged
    G, d_theta = slopes_twin(Y, fit.scorer)
    assert np.abs(d_theta).max() < 1e-5
    assert np.linalg.norm(G, 2) <= penalty * (1 + 1e-4)
    assert abs(duality_gap(Y, fit.scorer, penalty)) < 1e-5


def test_the_certificate_is_missed_with_too_low_a_rank():
    Y = table()
    fit = solved(Y, 0.5, rank=1)
    assert fit.converged
    assert np.linalg.norm(slopes_twin(Y, fit.scorer)[0], 2) > 1.2 * 0.5
    assert duality_gap(Y, fit.scorer, 0.5) > 0.05


def test_starts_agree_if_the_rank_is_large_enough():
    Y = table()
    fits = [solved(Y, seed=seed) for seed in range(4)]
    J = [fit.objectives[-1] for fit in fits]
    np.testing.assert_allclose(J, J[0], rtol=1e-9)
    X = [fit.scorer.left @ fit.scorer.right.T for fit in fits]
    np.testing.assert_allclose(X, np.broadcast_to(X[0], np.shape(X)), atol=1e-3)


def test_the_factors_are_balanced():
    """A stationary J has lambda U^T U = U^T G V = lambda V^T V."""
    U, V, _ = solved(table()).scorer
    np.testing.assert_allclose(U.T @ U, V.T @ V, atol=1e-5)


def check_thresholds_are_ordered():
    assert (np.diff(solved(table()).scorer.thresholds, axis=1) >= 0).all()


def test_thresholds_are_ordered():
    check_thresholds_are_ordered()


def test_ordered_thresholds_have_no_larger_objective():
    Y = table()
    for seed in range(5):
        scorer = some_scorer(Y, seed=seed)
        tidy = module._tidied(scorer, np.zeros(16, dtype=bool))
        assert objective_twin(Y, tidy, PENALTY) < objective_twin(Y, scorer, PENALTY)


def largest_penalty(Y, rank=11):
    """||G||_2 at X = 0 with the best thresholds, and these with factors 0."""
    none = first_scorer(Y.shape, 5, rank, np.random.default_rng(0))
    none = none._replace(left=0 * none.left, right=0 * none.right)
    none = m3f(levels_of(Y), 5, 1e6, TIGHT, ONE, none).scorer
    return np.linalg.norm(slopes_twin(Y, none)[0], 2), none


def test_largest_useful_penalty():
    Y = table()
    largest, _ = largest_penalty(Y)
    sizes = [np.abs(solved(Y, c * largest).scorer.left).max() for c in (1.02, 0.98)]
    assert sizes[0] < 1e-6 < 1e-2 < sizes[1]


# Saddles


def check_that_saddles_are_left():
    """J is stationary where the factors are 0; the minimum at each penalty is found from there."""
    Y = table()
    _, scorer = largest_penalty(Y)
    for penalty in (3.0, 1.0):
        fit = m3f(levels_of(Y), 5, penalty, TIGHT, ONE, scorer)
        assert fit.converged
        assert (np.diff(fit.objectives) <= 1e-12 * fit.objectives[0]).all()
        assert fit.objectives[-1] == pytest.approx(solved(Y, penalty).objectives[-1], rel=1e-8)
        scorer = fit.scorer


def test_solver_escapes_saddles():
    check_that_saddles_are_left()


def grown_at(problem, scorer, penalty):
    return saddles.with_new_components(problem.data, penalty, problem.workers, scorer)


def check_new_components():
    Y, penalty = table(), 1.0
    _, saddle = largest_penalty(Y)
    some = m3f(levels_of(Y), 5, 3.0, TIGHT, ONE, saddle).scorer
    for scorer, rank in ((saddle, 0), (some, 4)):
        problem = problem_of(Y, scorer)[0]
        P, _, Q = saddles.components(scorer.left, scorer.right)
        assert P.shape[1] == rank
        W = slopes_twin(Y, scorer)[0]
        W = W - P @ (P.T @ W)
        excess = np.linalg.svd(W - (W @ Q) @ Q.T, compute_uv=False) - penalty
        excess = excess[excess > 2e-2]
        grown = grown_at(problem, scorer, penalty)
        gain = objective_twin(Y, scorer, penalty) - objective_twin(Y, grown, penalty)
        assert gain > 0.98 * np.sum(excess**2) / 8
        assert saddles.components(grown.left, grown.right).s.size == rank + excess.size


def test_new_components_lower_the_objective_as_much_as_they_should():
    check_new_components()


def check_a_component_that_random_vectors_hardly_see():
    """The largest singular value is just above the penalty; of 11 random columns all are far below."""
    Y = table(200, 150, missing=0.6, noise=2.0)
    largest, saddle = largest_penalty(Y, rank=3)
    problem = problem_of(Y, saddle)[0]
    assert grown_at(problem, saddle, largest / 1.03) is not None
    assert grown_at(problem, saddle, largest) is None


def test_a_component_that_is_nearly_orthogonal_to_random_vectors():
    check_a_component_that_random_vectors_hardly_see()


def test_there_are_no_new_components_at_the_minimum_or_without_free_components():
    Y = table()
    for penalty, rank in ((3.0, 11), (0.1, 1)):
        scorer = solved(Y, penalty, rank).scorer
        problem = problem_of(Y, scorer)[0]
        assert grown_at(problem, scorer, penalty) is None


def test_the_objective_falls_and_is_that_of_the_scorer():
    Y = table()
    problem, x = problem_of(Y, some_scorer(Y))
    found = module._minimise(problem, x, 1.0, Limits(3, 40, 0.0))
    assert len(found.objectives) == 40
    assert (np.diff(found.objectives) < 0).all()
    J = objective_twin(Y, problem.scorer(found.x), PENALTY)
    assert found.objectives[-1] == pytest.approx(J, rel=1e-12)


def check_rows_and_columns_without_entries():
    Y = table_with_empties()
    fit = solved(Y)
    U, V, theta = fit.scorer
    assert not U[3].any()
    assert not V[7].any()
    np.testing.assert_allclose(theta[3], np.delete(theta, 3, 0).mean(axis=0), rtol=1e-12)
    dense = Y[np.arange(16) != 3][:, np.arange(11) != 7]
    assert fit.objectives[-1] == pytest.approx(solved(dense).objectives[-1], rel=1e-8)


def test_rows_and_columns_without_entries():
    check_rows_and_columns_without_entries()


def test_rows_of_one_level_have_finite_thresholds():
    Y = table()
    Y[0], Y[1], Y[2] = 5.0, 1.0, np.nan
    Y[2, 4] = 3.0
    fit = solved(Y, penalty=0.5)
    assert fit.converged
    U, V, theta = fit.scorer
    X = U[:3] @ V.T
    # The loss of these rows can be 0, and nothing pulls a threshold further than that needs.
    assert (theta[0] <= X[0].min() - 1 + 1e-6).all()
    assert (theta[1] >= X[1].max() + 1 - 1e-6).all()
    assert np.abs(theta[:3]).max() < 6
    levels = 1 + (X[:, :, None] >= theta[:3, None, :]).sum(axis=2)
    assert (levels[0] == 5).all()
    assert (levels[1] == 1).all()
    assert levels[2, 4] == 3


def test_unseen_entries_are_predicted():
    whole = table(90, 70, missing=0.0, noise=0.3)
    seen = np.random.default_rng(5).random(whole.shape) < 0.5
    fit = solved(np.where(seen, whole, np.nan), 3.0, rank=5, limits=Limits(5, 300, 1e-5))
    rest = levels_of(np.where(seen, np.nan, whole))
    error = mean_absolute_error(rest.rows, fit.scorer)
    assert error < 0.5 * np.abs(whole[~seen] - 3).mean()


# New rows


def test_new_rows_equal_those_of_the_fit():
    Y = table()
    fit = solved(Y)
    new = fit_rows(levels_of(Y).rows, fit.scorer, PENALTY, ONE)
    np.testing.assert_allclose(new.left, fit.scorer.left, atol=1e-5)
    assert objective_twin(Y, new, PENALTY) == pytest.approx(fit.objectives[-1], rel=1e-9)


def test_a_new_row_is_the_minimum_of_its_own_problem():
    Y, fitted = table(), some_scorer(table())
    V = fitted.right
    new = fit_rows(levels_of(Y).rows, fitted, PENALTY, ONE)

    def own(x, i):
        return objective_twin(Y[[i]], Scorer(x[None, :3], V, x[None, 3:]), PENALTY)

    for i in (0, 5):
        found = np.append(new.left[i], new.thresholds[i])
        best = minimize(own, np.zeros(7), (i,), "BFGS", options={"gtol": 1e-7})
        assert own(found, i) == pytest.approx(best.fun, rel=1e-9)
        np.testing.assert_allclose(new.left[i], best.x[:3], atol=1e-4)


def test_new_rows_without_entries():
    Y = table_with_empties()
    fitted = some_scorer(Y)
    new = fit_rows(levels_of(Y).rows, fitted, PENALTY, ONE)
    assert not new.left[3].any()
    np.testing.assert_allclose(new.thresholds[3], fitted.thresholds.mean(axis=0))
    nothing = Entries(np.zeros(3, dtype=np.int64), np.zeros(0, np.int32), np.zeros(0, np.int8))
    none = fit_rows(nothing, fitted, PENALTY, ONE)
    np.testing.assert_array_equal(none.thresholds, np.tile(fitted.thresholds.mean(axis=0), (2, 1)))


def test_a_new_row_does_not_depend_on_the_others():
    Y = table(60, 40)
    fitted = some_scorer(Y)
    whole = fit_rows(levels_of(Y).rows, fitted, PENALTY, ONE)
    alone = fit_rows(levels_of(Y[7:8]).rows, fitted, PENALTY, ONE)
    np.testing.assert_array_equal(alone.left[0], whole.left[7])
    np.testing.assert_array_equal(alone.thresholds[0], whole.thresholds[7])


# How it runs


def test_why_it_stops():
    Y = table()
    fit = solved(Y, limits=Limits(11, 1_000, 1e-4))
    assert fit.converged
    assert fit.violation <= 1e-4
    assert fit.reason.startswith("the relative gradient is below 0.0001 after ")
    again = m3f(levels_of(Y), 5, PENALTY, Limits(11, 3, 1e-4), ONE, fit.scorer)
    assert again.converged
    assert again.objectives[-1] <= fit.objectives[-1]
    short = solved(Y, limits=Limits(11, 3, 1e-4))
    assert not short.converged
    assert short.reason.startswith("the limit of 3 iterations was reached at a relative gradient")
    at_saddle = m3f(levels_of(Y), 5, 1.0, Limits(11, 1, 1e-4), ONE, largest_penalty(Y)[1])
    assert not at_saddle.converged
    assert at_saddle.violation <= 1e-4
    assert at_saddle.reason == (
        "the limit of 1 iteration was reached where further components would help"
    )
    exact = solved(Y, limits=Limits(11, 100_000, 0.0))
    assert not exact.converged
    assert exact.violation < 1e-6
    assert exact.reason.startswith("rounding leaves nothing to gain after ")


def test_the_unit_of_the_violation_bounds_the_gradient_in_the_thresholds():
    """It is reached where every entry pulls every threshold of its row the same way."""
    Y = np.where(np.isnan(table()), np.nan, 5.0)
    scorer = some_scorer(Y)
    scorer = scorer._replace(thresholds=np.full((16, 4), 100.0))
    rows = levels_of(Y).rows
    steepest = np.linalg.norm(ordinal.row_gradients(rows, scorer, ONE).thresholds)
    assert module._steepest(rows, 5) == pytest.approx(steepest, rel=1e-12)


def test_the_same_bits_for_any_number_of_threads():
    Y = table(200, 150, missing=0.6)
    data = levels_of(Y)
    start = first_scorer(Y.shape, 5, 4, np.random.default_rng(0))
    fits, rows = [], []
    for n_threads in (1, 2, 4):
        with Workers(n_threads) as workers:
            fits.append(m3f(data, 5, 4.0, Limits(4, 20, 0.0), workers, start))
            rows.append(fit_rows(data.rows, fits[0].scorer, 4.0, workers))
    for fit, new in zip(fits[1:], rows[1:], strict=True):
        assert fit.objectives == fits[0].objectives
        for got, one in zip((*fit.scorer, *new), (*fits[0].scorer, *rows[0]), strict=True):
            np.testing.assert_array_equal(got, one)


def test_first_scorer():
    scorer = first_scorer((4_000, 3_000), 4, 2, np.random.default_rng(0))
    np.testing.assert_array_equal(scorer.thresholds, np.tile([-1.0, 0.0, 1.0], (4_000, 1)))
    # 8,000 and 6,000 normals: 5 standard errors of a standard deviation, both true but 1 in 10^6.
    assert scorer.left.std() == pytest.approx(0.1, rel=5 / np.sqrt(2 * 8_000))
    assert scorer.right.std() == pytest.approx(0.1, rel=5 / np.sqrt(2 * 6_000))


# Planted bugs

BOTH = ("_slope_of", "_row_gradients", "_column_gradients")
BUGS = {
    "a level on the wrong side of its threshold": (
        check_against_twins,
        ("direction_of", "r + 1 >= level", "r + 1 > level", BOTH),
    ),
    "all directions turned": (
        check_against_twins,
        (
            "direction_of",
            "1.0 if r + 1 >= level else -1.0",
            "-1.0 if r + 1 >= level else 1.0",
            BOTH,
        ),
    ),
    "a kink: the slope of the hinge that is not smooth": (
        check_finite_differences,
        ("smooth_hinge", "min(max(z - 1.0, -1.0), 0.0)", "-1.0 if z < 1.0 else 0.0", BOTH),
    ),
    "a jump at z = 0": (
        check_finite_differences,
        ("smooth_hinge", "+ max(-z, 0.0)", "+ max(-2.0 * z, 0.0)", BOTH),
    ),
    "no gradient in the thresholds": (
        check_finite_differences,
        ("_row_gradients", "d_thresholds[r] += T * slope", "d_thresholds[r] += 0.0", ()),
    ),
    "a gradient in the thresholds without their direction": (
        check_finite_differences,
        ("_row_gradients", "d_thresholds[r] += T * slope", "d_thresholds[r] += slope", ()),
    ),
    "one row's thresholds for all rows of a column": (
        check_finite_differences,
        ("_column_gradients", "scorer.thresholds[i]", "scorer.thresholds[0]", ()),
    ),
    "the columns' gradient uphill": (
        check_finite_differences,
        ("_column_gradients", "(d_right[j], G,", "(d_right[j], -G,", ()),
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_in_the_kernels_are_caught(monkeypatch, bug):
    check, (name, old, new, users) = BUGS[bug]
    plant(monkeypatch, ordinal, name, old, new, users)
    with pytest.raises(AssertionError):
        check()


def test_a_penalty_on_one_side_only_is_caught(monkeypatch):
    right = module._Factorisation.value_and_gradient

    def one_sided(problem, x):
        J, gradient = right(problem, x)
        V = problem.scorer(x).right
        problem.scorer(gradient).right[:] -= PENALTY * V
        return J - 0.5 * PENALTY * np.vdot(V, V), gradient

    monkeypatch.setattr(module._Factorisation, "value_and_gradient", one_sided)
    check_finite_differences()  # they cannot see it: value and gradient agree
    with pytest.raises(AssertionError):
        check_against_twins()


@pytest.mark.parametrize(
    ("check", "name", "old", "new"),
    [
        (
            check_rows_and_columns_without_entries,
            "_tidied",
            "thresholds[~empty].mean",
            "thresholds.mean",
        ),
        (
            check_thresholds_are_ordered,
            "_tidied",
            "np.sort(scorer.thresholds, axis=1)",
            "+scorer[2]",
        ),
    ],
)
def test_planted_bugs_in_the_solver_are_caught(monkeypatch, check, name, old, new):
    plant(monkeypatch, module, name, old, new)
    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize(
    ("check", "name", "old", "new"),
    [
        (check_that_saddles_are_left, "with_new_components", "n_free == 0", "n_free >= 0"),
        (check_new_components, "with_new_components", "(s[new] - penalty) /", "s[new] *"),
        (check_new_components, "with_new_components", "* weights\n    V", "* -weights\n    V"),
        (
            check_a_component_that_random_vectors_hardly_see,
            "with_new_components",
            "tolerance=_ROUGH_TOLERANCE",
            "above=least",
        ),
        (check_new_components, "_project_out", "block - basis @ (basis.T @ block)", "block"),
    ],
)
def test_planted_bugs_at_saddles_are_caught(monkeypatch, check, name, old, new):
    into = (module,) if name == "with_new_components" else ()
    plant(monkeypatch, saddles, name, old, new, into=into)
    with pytest.raises(AssertionError):
        check()
