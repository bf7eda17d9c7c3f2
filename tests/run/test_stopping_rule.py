import math

import numpy as np
import pytest

from fillrank.run.loop import added_error


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
