import numpy as np
import pytest

from fillrank.runtime.threads import Workers
from fillrank.solvers.fit import Limits
from fillrank.solvers.m3f import first_scorer, largest_penalty, m3f, penalty_path
from reference.small_tables import Table


def levels(shape=(20, 15), seed=0):
    rng = np.random.default_rng(seed)
    table = Table(rng.random(shape) < 0.7, np.int8)
    scores = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    return table.data(np.clip(np.rint(scores[table.i, table.j] + 3), 1, 5))


@pytest.mark.parametrize(("share", "is_zero"), [(1.05, True), (0.9, False)])
def test_from_the_largest_penalty_on_the_scores_are_zero(share, is_zero):
    data = levels()
    with Workers(1) as workers:
        penalty = share * largest_penalty(data, 5, workers)
        start = first_scorer(data.shape, 5, 4, np.random.default_rng(1))
        fit = m3f(data, 5, penalty, Limits(4, 3000, 1e-7), workers, start)
    size = np.linalg.norm(fit.scorer.left @ fit.scorer.right.T)
    assert (size < 1e-2) == is_zero, size


def test_penalties_fall():
    data = levels()
    with Workers(1) as workers:
        path = penalty_path(data, 5, workers)
        assert path[0] < largest_penalty(data, 5, workers)
    assert np.all(np.diff(path) < 0)
    np.testing.assert_allclose(np.diff(np.log10(path)), -0.125)


@pytest.mark.parametrize("shape", [(1, 8), (8, 1), (2, 2)])
def test_thin_tables(shape):
    data = levels(shape)
    with Workers(1) as workers:
        assert np.isfinite(penalty_path(data, 5, workers)).all()
