import math

import numpy as np
import pytest

from fillrank.run.loop import ENOUGH, Plan, added_error, likely_sweeps


def test_independent_draws():
    """n independent draws enlarge the variance by v/n: sqrt(1 + 1/n) - 1."""
    probes = np.random.default_rng(0).standard_normal((1, 400, 2000))
    assert added_error(probes) == pytest.approx(math.sqrt(1 + 1 / 400) - 1, rel=0.1)
    probes = np.random.default_rng(0).standard_normal((4, 100, 2000))
    assert added_error(probes) == pytest.approx(math.sqrt(1 + 1 / 400) - 1, rel=0.1)


def test_correlated_draws_count_for_less():
    """An AR(1) chain with coefficient 0.8 needs nine draws for one."""
    rng = np.random.default_rng(0)
    x = np.empty((1, 2000, 500))
    x[:, 0] = rng.standard_normal((1, 500))
    for t in range(1, 2000):
        x[:, t] = 0.8 * x[:, t - 1] + 0.6 * rng.standard_normal((1, 500))
    assert added_error(x) == pytest.approx(math.sqrt(1 + 9 / 2000) - 1, rel=0.15)


def test_chains_that_disagree_are_not_enough():
    probes = np.random.default_rng(0).standard_normal((2, 200, 50))
    probes[1] += 2.0
    assert added_error(probes) > 0.02


def test_scale_and_level_do_not_matter():
    probes = np.random.default_rng(0).standard_normal((1, 100, 50))
    assert added_error(1e-12 * probes + 1e-9) == pytest.approx(added_error(probes), rel=1e-3)


def test_constant_predictions_have_no_error():
    assert added_error(np.ones((1, 100, 5))) == 0.0


def test_too_few_draws():
    assert added_error(np.zeros((1, 1, 5))) == math.inf
    assert added_error(np.zeros((1, 0, 5))) == math.inf


class Recorded:
    """The draws of a run so far."""

    def __init__(self, probes, burn_in=50):
        self.probes, self.burn_in, self.n_recorded = probes, burn_in, probes.shape[1]


AUTO = Plan(2000, 50, 50, until_enough=True)


def test_the_number_of_sweeps_is_given_or_estimated():
    nothing = Recorded(np.zeros((2, 0, 10)))
    assert likely_sweeps(nothing, Plan(300, 50, 50, until_enough=False)) == 300
    assert 100 < likely_sweeps(nothing, AUTO) < 1000
    assert likely_sweeps(nothing, AUTO._replace(n_sweeps=120)) == 120


def test_the_likely_number_of_sweeps_is_that_of_the_stopping_rule():
    """An AR(1) chain with coefficient 0.9 needs 19 draws for one: about 19 / (2 * ENOUGH) in all."""
    rng = np.random.default_rng(0)
    x = np.empty((2, 6000, 400))
    x[:, 0] = rng.standard_normal((2, 400))
    for t in range(1, x.shape[1]):
        x[:, t] = 0.9 * x[:, t - 1] + math.sqrt(0.19) * rng.standard_normal((2, 400))
    plan = AUTO._replace(n_sweeps=10_000)
    ended = next(n for n in range(400, 6000, 100) if added_error(x[:, :n]) < ENOUGH)
    assert ended == pytest.approx(19 / (2 * ENOUGH) / 2, rel=0.2)
    for n in (500, 1000):
        assert likely_sweeps(Recorded(x[:, :n]), plan) == pytest.approx(50 + ended, rel=0.2)


def test_the_likely_end_is_a_check_after_the_present_sweep():
    few = np.random.default_rng(0).standard_normal((2, 100, 50))
    assert likely_sweeps(Recorded(few), AUTO) == 50 + 125  # enough, but not yet ended
    far_apart = few + 100.0 * np.arange(2)[:, np.newaxis, np.newaxis]
    assert likely_sweeps(Recorded(far_apart), AUTO) == 2000
    constant = np.ones((2, 450, 5))
    assert likely_sweeps(Recorded(constant), AUTO) == 50 + 500
