"""iPM3F against slow twins, other optimisers and closed forms."""

import numpy as np
import pytest

import fillrank.solvers.ipm3f as solver
from fillrank.kernels.hinge_rows import Corners, solve
from fillrank.runtime.threads import Workers
from fillrank.solvers.fit import Limits
from fillrank.solvers.ipm3f import Hyper, first_state
from helpers.ipm3f_checks import (
    HYPER,
    LIMITS,
    ONE,
    blocks,
    bound_scores,
    data_of,
    middle_state,
    table,
)
from reference.ipm3f_twins import bound_twin, factor_twin, factor_value, features_twin
from reference.margin_errors import mean_absolute_error
from reference.p_values import limit_of


@pytest.mark.parametrize("check", LIMITS, ids=lambda check: check.__name__)
def test_updates_and_objective_equal_those_of_reference_versions(check):
    assert check() < LIMITS[check]


def test_a_single_update_of_the_factors_is_nearly_at_the_minimum():
    Y, mask = table()
    data, state = middle_state(Y, mask)
    state = solver.update_factors(state, data, HYPER, ONE)
    for j in np.flatnonzero(mask.any(axis=0)):
        w, dual = factor_twin(j, state, Y, mask, HYPER)
        assert factor_value(state.Lam[j], j, state, Y, mask, HYPER) < 1.01 * dual
        np.testing.assert_allclose(state.Lam[j], w, atol=0.1)


def test_the_bound_is_below_the_expectation_and_equal_to_it_for_the_first_feature():
    """False alarms: at most ALARM."""
    scores = bound_scores()
    assert abs(scores[0]) < limit_of(scores.size)
    assert np.all(scores < limit_of(scores.size))


def test_the_bound_is_the_best_of_its_family():
    g = np.array([[4.0, 1.5], [2.0, 3.0], [6.0, 1.0]])
    twins = [bound_twin(g, k) for k in (1, 2, 3)]
    np.testing.assert_allclose(solver.sticks_of(g).L, twins, rtol=1e-8)


def test_one_stick_is_a_conjugate_beta():
    Y, mask = table()
    _, state = middle_state(Y, mask, n_features=1)
    n1 = state.psi.sum()
    n0 = state.psi.shape[0] - n1
    g = solver.update_sticks(state, HYPER).g
    np.testing.assert_allclose(g, [[HYPER.alpha + n1, 1.0 + n0]], rtol=1e-14)


def _by_sorting(target, weight, slope, corners):
    """The solution by trying all pieces and corners, left to right."""
    for place in np.unique(corners.positions):
        if target - weight * slope < place:
            return target - weight * slope
        slope += corners.rises[corners.positions == place].sum()
        if target - weight * slope <= place:
            return place
    return target - weight * slope


def test_the_search_through_corners_with_ties():
    rng = np.random.default_rng(5)
    at_corners = 0
    for _ in range(2000):
        n = rng.integers(0, 12)
        # Whole numbers, exact in floating point: many corners coincide, many solutions are corners.
        corners = Corners(rng.integers(-3, 4, n).astype(float), rng.integers(1, 3, n).astype(float))
        target, weight, slope = (float(x) for x in rng.integers((-9, 1, -9), (10, 3, 1)))
        expected = _by_sorting(target, weight, slope, corners)
        at_corners += expected in corners.positions
        assert solve(target, weight, slope, corners, n) == expected
    assert 500 < at_corners < 1500


def test_a_feature_that_starts_exactly_at_a_corner():
    """psi = 0 at a corner: the hinge is off there, but on for all psi > 0."""
    Y, mask = np.array([[1]]), np.array([[True]])
    data = data_of(Y, mask)
    state = first_state(data, 2, 1, HYPER, np.random.default_rng(0))
    state = state._replace(
        psi=np.zeros((1, 1)), Lam=np.full((1, 1), 10.0), thresholds=np.full((1, 1), HYPER.ell)
    )
    new = solver.update_features(state, data.rows, HYPER, ONE)
    twin = features_twin(state, solver.sticks_of(state.g), Y, mask, HYPER)
    np.testing.assert_allclose(new.psi, twin, rtol=1e-9)
    assert new.psi[0, 0] < 0.01


def test_empty_rows_and_columns_follow_their_priors():
    Y, mask = table()
    data, state = middle_state(Y, mask)
    for update in blocks(data, HYPER, ONE).values():
        state = update(state)
    sticks = solver.sticks_of(middle_state(Y, mask)[1].g)
    np.testing.assert_array_equal(state.Lam[1], 0.0)
    np.testing.assert_allclose(state.thresholds[2], solver.threshold_means(5, HYPER.ell))
    np.testing.assert_allclose(state.psi[2], 1 / (1 + np.exp(sticks.L - sticks.e)))


def test_two_levels_need_one_threshold():
    Y, mask = table((30, 20), n_levels=2)
    data = data_of(Y, mask)
    start = first_state(data, 2, 3, HYPER, np.random.default_rng(0))
    np.testing.assert_array_equal(start.thresholds, 0.0)
    fit, _ = solver.ipm3f(data, HYPER, Limits(3, 30, 1e-4), ONE, start)
    assert mean_absolute_error(data.rows, fit.scorer) < 0.1


def _large_fit(workers, max_iterations=4):
    Y, mask = table((150, 90), observed=0.7)
    data = data_of(Y, mask)
    start = first_state(data, 5, 6, HYPER, np.random.default_rng(0))
    return solver.ipm3f(data, HYPER, Limits(6, max_iterations, 1e-3), workers, start)


def test_threads_do_not_change_a_bit():
    fits = []
    for n_threads in (1, 2, 4):
        with Workers(n_threads) as workers:
            fits.append(_large_fit(workers))
    (fit, state), *others = fits
    for other_fit, other in others:
        assert other_fit.objectives == fit.objectives
        for a, b in zip(state, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_fit_stops_when_the_objective_has_converged():
    fit, _ = _large_fit(ONE, max_iterations=500)
    decreases = -np.diff(fit.objectives) / fit.objectives[:-1]
    assert fit.converged
    assert "tolerance" in fit.reason
    assert fit.violation == decreases[-solver.CALM :].max() < 1e-3
    assert np.all(np.convolve(decreases < 1e-3, np.ones(solver.CALM), "valid")[:-1] < solver.CALM)


def test_a_fit_that_reaches_its_limit_is_reported():
    fit, _ = _large_fit(ONE, max_iterations=4)
    assert not fit.converged
    assert "max_iterations" in fit.reason
    assert len(fit.objectives) == 4


def test_held_out_levels_are_predicted():
    Y, _ = table((150, 90))
    seen = np.random.default_rng(9).random(Y.shape) < 0.5
    data, held_out = data_of(Y, seen), data_of(Y, ~seen).rows
    start = first_state(data, 5, 6, HYPER, np.random.default_rng(0))
    fit, _ = solver.ipm3f(data, HYPER, Limits(6, 30, 1e-3), ONE, start)
    guess = np.abs(held_out.values - np.median(Y)).mean()
    assert mean_absolute_error(held_out, fit.scorer) < 0.5 * guess


def test_new_rows_are_independent_and_fitted_as_well_as_old_ones():
    Y, mask = table((150, 90), observed=0.7)
    data = data_of(Y, mask)
    fit, state = _large_fit(ONE, max_iterations=30)
    scorer = solver.fit_rows(data.rows, state, HYPER, ONE)
    theirs = mean_absolute_error(data.rows, fit.scorer)
    assert mean_absolute_error(data.rows, scorer) < 1.2 * theirs
    alone = solver.fit_rows(data_of(Y[7:8], mask[7:8]).rows, state, HYPER, ONE)
    np.testing.assert_array_equal(alone.left[0], scorer.left[7])
    np.testing.assert_array_equal(alone.thresholds[0], scorer.thresholds[7])


def test_effective_features_count_those_that_a_row_has():
    psi = np.array([[1.0, 0.0, 0.5], [0.2, 0.0, 0.5]])
    assert solver.effective_features(psi) == pytest.approx(1.0 + 0.0 + 0.75)


def test_the_usual_settings():
    assert solver.usual_hyper(0.1) == Hyper(0.1, 9.0, 3.0, 1.0, 13.5)
    np.testing.assert_array_equal(solver.threshold_means(5, 9.0), [-27.0, -9.0, 9.0, 27.0])
