"""The search for a penalty and beta, with fits whose errors are given by a table."""

import math

import numpy as np

from fillrank.solvers.beta_search import refit_best, walk_betas
from fillrank.solvers.fit import Factors, Fit

BETAS = [3.0, 2.0, 1.0]


def fit_with(error):
    """A fit that carries its error as its violation."""
    return Fit(Factors(np.zeros((1, 0)), np.zeros(0), np.zeros((1, 0))), (1.0,), error, True, "")


def errors(fit):
    return 0.0, fit.violation


def settings_tried(table):
    """The settings that are tried if row p of the table has the errors at inf and the betas."""
    penalties = np.arange(len(table), 0, -1.0)
    columns = [math.inf, *BETAS]

    def solve(penalty, beta, start):
        return fit_with(table[len(table) - int(penalty)][columns.index(beta)])

    points = list(walk_betas(penalties, solve, lambda first: BETAS, errors))
    return [(len(table) - int(p.penalty), columns.index(p.beta)) for p, _ in points]


def test_betas_end_at_the_first_rise():
    assert settings_tried([[5, 4, 6, 1]]) == [(0, 0), (0, 1), (0, 2)]


def test_a_beta_that_failed_twice_in_a_row_is_dropped():
    tried = settings_tried([[5, 4, 6, 1], [4, 3, 5, 1], [3, 2, 1, 0]])
    assert [at for at in tried if at[0] == 2] == [(2, 0), (2, 1)]
    tried = settings_tried([[5, 4, 6, 1], [4, 3, 2, 5], [3, 2, 4, 0], [2, 1.5, 1, 0]])
    assert (3, 2) in tried


def test_path_ends_after_three_rises_or_a_clear_one():
    rows = [[1, 2, 2, 2], *([1.01 + 0.001 * k, 2, 2, 2] for k in range(5))]
    assert max(p for p, _ in settings_tried(rows)) == 3
    assert max(p for p, _ in settings_tried([[1, 2, 2, 2], [1.06, 2, 2, 2], rows[0]])) == 1


def test_the_best_after_refits_is_chosen():
    rough = {4.0: 1.0, 3.0: 1.01, 2.0: 1.02, 1.0: 1.03}
    full = {4.0: 1.5, 3.0: 1.3, 2.0: 1.4, 1.0: 0.1}
    points = walk_betas(
        np.array(list(rough)), lambda p, *_: fit_with(rough[p]), lambda first: [], errors
    )
    refitted = []

    def refit(penalty, beta, start):
        refitted.append(penalty)
        return fit_with(full[penalty])

    found = refit_best(points, refit, errors)
    assert refitted == [4.0, 3.0, 2.0]  # three at most
    assert (found.point.penalty, found.point.validation_error) == (3.0, 1.3)
    assert found.point in found.tried
    assert found.point.n_iterations == 2
