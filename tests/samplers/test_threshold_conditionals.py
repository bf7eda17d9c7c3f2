"""The thresholds between ordered levels against their posterior by brute force, with planted bugs.

A check has the rate of false alarms ALARM (``reference.p_values``), shared among its p-values. Planted
bugs must be clear: a p-value below 1e-9.
"""

import numpy as np
import pytest

from fillrank.runtime import threads
from fillrank.runtime.threads import Workers
from fillrank.samplers import level_likelihood, model, threshold_steps
from fillrank.samplers.threshold_steps import EVERY, are_valid_limits
from reference.p_values import ALARM
from reference.planted import plant
from reference.threshold_conditionals import Problem, threshold_draws

ABSENT = 2  # the level in the middle of five


def _assert_no_alarm(p_values):
    assert min(p_values.values()) > ALARM / len(p_values), p_values


def test_thresholds_given_signals():
    _assert_no_alarm(threshold_draws())


def test_thresholds_next_to_a_level_without_entries():
    _assert_no_alarm(threshold_draws(ABSENT))


@pytest.mark.slow
@pytest.mark.parametrize("absent", [None, ABSENT, 1, 3])
def test_thresholds_in_long_chains(absent):
    _assert_no_alarm(threshold_draws(absent, n=20_000))


@pytest.mark.parametrize("n_threads", [2, 4])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, n_threads):
    """With many blocks of entries, each summed by one thread."""
    monkeypatch.setattr(level_likelihood, "_BLOCK", 16)
    monkeypatch.setattr(threads, "_SMALLEST_SHARE", 0)
    problem, found = Problem(n_rows=300), []
    for n in (1, n_threads):
        limits = problem.limits
        with Workers(n) as workers:
            for t in range(5):
                limits = problem.draw(limits, EVERY * t, workers)
        found.append(limits)
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != problem.limits).sum() == 6


def test_thresholds_are_drawn_in_one_sweep_of_every():
    problem = Problem()
    with Workers(1) as workers:
        moved = [problem.draw(problem.limits, t, workers) is not problem.limits for t in range(25)]
    assert np.flatnonzero(moved).tolist() == [0, 10, 20]


def test_thresholds_stay_in_their_order():
    """Also without any entry, where the posterior is the uniform prior."""
    problem = Problem()
    problem.cells[:] = -2
    columns = problem.data.columns
    columns = columns._replace(cells=np.full_like(columns.cells, -1))
    problem.data = problem.data._replace(columns=columns)
    limits, drawn = problem.limits, []
    with Workers(1) as workers:
        for t in range(400):
            limits = problem.draw(limits, EVERY * t, workers)
            assert are_valid_limits(limits)
            drawn.append(limits[1, 1])
    # The first of two uniform thresholds between -1 and 1.1 has the mean -0.3.
    assert np.mean(drawn) == pytest.approx(-0.3, abs=0.15)
    assert np.std(drawn) == pytest.approx(2.1 / np.sqrt(18.0), rel=0.2)


# The module and the function in which a bug is planted, what changes, and the level without entries.
BUGS = {
    "entries of the next levels": (
        level_likelihood, "block_sums", "starts[c : c + 3]", "starts[c + 1 : c + 4]", None
    ),
    "entries of one level only": (
        level_likelihood, "block_sums", "return under, ", "return 0.0 * under, ", None
    ),
    "bounds ignored": (
        threshold_steps, "_draw_threshold",
        "if not low < at < high:", "if not low - 3.0 < at < high + 3.0:", ABSENT,
    ),
    "no noise of the entries": (
        level_likelihood, "level_entries",
        "LevelEntries(signals, precisions", "LevelEntries(signals, np.ones(is_first.size)", None,
    ),
    "precisions in another order": (
        level_likelihood, "level_entries",
        "LevelEntries(signals, precisions", "LevelEntries(signals, precisions[::-1].copy()", None,
    ),
    "places in the order of columns": (
        level_likelihood, "level_entries",
        "noise, places,", "noise, np.where(places < 0, -1, np.cumsum(places >= 0) - 1),", None,
    ),
    "lower end of the next level forgotten": (
        threshold_steps, "draw_thresholds",
        "limits[1, c] = limits[0, c + 1] = theta", "limits[1, c] = theta", None,
    ),
    "the last threshold drawn": (
        threshold_steps, "draw_thresholds", "first + n_levels - 2", "first + n_levels - 1", None
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    module, function, old, new, absent = BUGS[name]
    plant(monkeypatch, module, function, old, new, into=(model,))
    p_values = threshold_draws(absent, n=600)
    assert min(p_values.values()) < 1e-9, p_values
