"""What holds for every sweep with features, whatever is drawn: GASR and BPMF."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fillrank.draws.streams import chain_key
from fillrank.runtime.threads import Workers
from fillrank.samplers import bpmf, gasr
from fillrank.samplers.feature_steps import first_weights
from fillrank.samplers.gasr import Context, Options
from fillrank.samplers.valid_states import is_valid_gasr_state
from reference.feature_cases import make_sides
from reference.small_tables import FullTable, Table, dense_signal, parts_of, random_state

ALL = Options(row_effects=True, column_effects=True, centres=True)
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
FULL = pytest.mark.parametrize("full", [False, True], ids=["missing cells", "complete"])
METHODS = pytest.mark.parametrize("method", [gasr, bpmf], ids=["GASR", "BPMF"])
ROUNDING = {np.float64: 1e-11, np.float32: 2e-3}
RANK = 3


@pytest.fixture(autouse=True)
def one_thread_of_linear_algebra():
    """As estimators have it."""
    with threadpool_limits(1):
        yield


class Problem:
    """A table with features of both sides, in two blocks each, and a first state."""

    def __init__(self, method, shape, dtype, full):
        rng = np.random.default_rng(1)
        self.mask = np.ones(shape, bool) if full else rng.random(shape) < 0.6
        table = FullTable(shape, dtype) if full else Table(self.mask, dtype)
        self.X = rng.standard_normal(shape).astype(dtype)
        self.data = table.data(self.X[table.i, table.j])
        self.features = make_sides(shape, (3, 2), (2, 1), dtype=dtype).both
        self.method = method
        if method is bpmf:
            self.state = bpmf.init(shape, RANK, 0.5, np.dtype(dtype), rng, features=self.features)
        else:
            weights = [first_weights(side, RANK + 2) for side in self.features]
            self.state = random_state(rng, shape, RANK, dtype, weights=weights)

    def context(self, workers=None):
        """Everything is sampled."""
        key, workers = chain_key(4, 0), workers or Workers(1)
        if self.method is bpmf:
            prior = bpmf.Hyperprior(2.0, float(RANK), 0.1)
            return bpmf.Context(prior, False, key, workers, features=self.features)
        return Context(ALL, key, workers, 2, 1, 1, self.features)

    def chain(self, n, workers=None):
        """(state, info) after each of n sweeps."""
        state, context = self.state, self.context(workers)
        for _ in range(n):
            state, info = self.method.sweep(state, self.data, context)
            yield state, info


@FULL
@DTYPES
def test_factors_and_weights_stay_in_their_balls(dtype, full):
    problem = Problem(gasr, (14, 9), dtype, full)
    for state, _ in problem.chain(100):
        assert is_valid_gasr_state(state, [], problem.features)
        sides = (
            (state.left, state.mu, state.row_weights, problem.features.rows),
            (state.right, state.nu, state.column_weights, problem.features.columns),
        )
        for factors, centre, weights, features in sides:
            b = weights.B[:, :RANK]
            explained = features.values.astype(float) @ b
            lam = np.repeat(weights.strengths, np.diff([0, *features.ends]))
            rest = factors[:, :RANK] - explained - centre
            square = np.sum(rest**2, axis=0) + 10.0 * centre**2 + lam @ b**2
            # A part that features explain costs the digits that the sum has lost.
            lost = 1.0 + np.abs(centre) + np.abs(explained).max(axis=0)
            assert np.all(square <= 1.0 + ROUNDING[dtype] * lost)


@FULL
@DTYPES
@METHODS
def test_reported_square_is_that_of_the_state(method, dtype, full):
    problem = Problem(method, (14, 9), dtype, full)
    for state, info in problem.chain(30):
        signal = state.left @ state.right.T if method is bpmf else dense_signal(state)
        square = np.sum(((problem.X - signal)[problem.mask]) ** 2)
        assert info.residual_square == pytest.approx(square, rel=10 * ROUNDING[dtype])


@METHODS
def test_sweeps_change_all_weights_and_not_their_input(method):
    problem = Problem(method, (14, 9), np.float64, False)
    (before, _), (after, _) = problem.chain(2)
    kept = [np.copy(part) for part in parts_of(before)]
    again, _ = method.sweep(before, problem.data, problem.context())
    for old, part in zip(kept, parts_of(before), strict=True):
        np.testing.assert_array_equal(old, part)
    for part, same in zip(parts_of(after), parts_of(again), strict=True):
        np.testing.assert_array_equal(part, same)
    pairs = ((after.row_weights, before.row_weights), (after.column_weights, before.column_weights))
    for side, (new, old) in enumerate(pairs):
        assert (new.strengths != old.strengths).all()
        moved = new.B != old.B
        if method is gasr:  # the other side's effect is not drawn here
            assert not moved[:, RANK + 1 - side].any()
            moved = np.delete(moved, RANK + 1 - side, axis=1)
        assert moved.all()


@FULL
@METHODS
def test_threads_do_not_change_a_bit(method, full):
    outcomes = []
    for n_threads in (1, 2, 4):
        with Workers(n_threads) as workers:
            *_, last = Problem(method, (600, 400), np.float32, full).chain(4, workers)
        outcomes.append(parts_of(last))
    for other in outcomes[1:]:
        for part, first in zip(other, outcomes[0], strict=True):
            np.testing.assert_array_equal(part, first)
