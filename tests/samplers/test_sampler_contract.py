"""The contract that every sampler fulfils: the run loop and checkpoints rely on it.

The samplers are those that estimators hand to the run loop, with the data of a small table.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest

from fillrank.draws.streams import chain_key
from fillrank.estimators import ipm3f, sampled
from fillrank.runtime.threads import Workers
from helpers.fitted_models import METHODS, cells_of

SETTINGS = {
    "GASR": {},
    "GASR as published": {},
    "GASR float64": {},
    "GASR complete": {},
    "BPMF": {"row_draws": "entries"},
    "BPMF joint": {"row_draws": "joint"},
    "BPMF complete": {},
    "IPM3F gibbs": {},
}
EVERY_SAMPLER = pytest.mark.parametrize("name", SETTINGS)


class Handed(NamedTuple):
    """What an estimator hands to the run loop."""

    chain: object
    data: object
    sampler: object


class _StopError(Exception):
    """Ends a fit before its first sweep."""


@pytest.fixture
def hand(monkeypatch):
    """A function that returns what the estimator of a name hands to the run loop."""

    def of(name):
        handed = []

        def execute(run, data, sampler, *_, **__):
            handed.append(Handed(run.chains[0], data, sampler))
            raise _StopError

        for module in (sampled, ipm3f):
            monkeypatch.setattr(module, "execute", execute)
        method = name.removesuffix(" joint").removesuffix(" complete")
        cells = cells_of(method)
        if name.endswith("complete"):
            cells = np.nan_to_num(cells, nan=1.0)
        with pytest.raises(_StopError):
            METHODS[method]().set_params(**SETTINGS[name]).fit(cells)
        return handed[0]

    return of


def advance(handed, n_sweeps, n_threads=1, key=None):
    """The states and infos of a chain over some sweeps, with the start before them."""
    state, context = handed.chain.state, handed.chain.context
    states, infos = [state], []
    with Workers(n_threads) as workers:
        context = context._replace(workers=workers)
        if key is not None:
            context = context._replace(key=key)
        for _ in range(n_sweeps):
            state, info = handed.sampler.sweep(state, handed.data, context)
            states.append(state)
            infos.append(info)
    return states, infos


def numbers(value):
    """All numbers of a state or an info, flat."""
    if isinstance(value, tuple):
        return np.concatenate([numbers(each) for each in value]) if value else np.empty(0)
    return np.ravel(np.asarray(value)).astype(np.float64)


def of_gauss(state):
    """The state with 1 for the infinite degrees of freedom of Gaussian noise."""
    if not hasattr(state, "noise") or state.noise.cells.degrees < math.inf:
        return state
    cells = state.noise.cells._replace(degrees=1.0)
    return state._replace(noise=state.noise._replace(cells=cells))


def layout(value):
    """The types and dtypes of a state."""
    if isinstance(value, tuple):
        return type(value), tuple(layout(each) for each in value)
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim
    return type(value)


@EVERY_SAMPLER
def test_a_sweep_does_not_change_its_arguments(name, hand):
    handed = hand(name)
    before = numbers(handed.chain.state)
    by_row = np.array(handed.data.rows.values)
    advance(handed, 2)
    np.testing.assert_array_equal(numbers(handed.chain.state), before)
    np.testing.assert_array_equal(handed.data.rows.values, by_row)


@EVERY_SAMPLER
def test_a_sweep_is_a_function_of_state_data_and_key(name, hand):
    handed = hand(name)
    (*_, once), _ = advance(handed, 3)
    (*_, again), _ = advance(handed, 3)
    (*_, other), _ = advance(handed, 3, key=chain_key(1, 7))
    np.testing.assert_array_equal(numbers(once), numbers(again))
    assert numbers(other).shape != numbers(once).shape or (numbers(other) != numbers(once)).any()


@EVERY_SAMPLER
def test_the_number_of_threads_changes_no_bit(name, hand):
    handed = hand(name)
    (*_, one), infos = advance(handed, 3)
    for n_threads in (2, 4):
        (*_, more), more_infos = advance(handed, 3, n_threads)
        np.testing.assert_array_equal(numbers(more), numbers(one))
        np.testing.assert_array_equal(numbers(tuple(more_infos)), numbers(tuple(infos)))


@EVERY_SAMPLER
def test_sweeps_are_counted_and_states_have_one_type(name, hand):
    states, infos = advance(hand(name), 3)
    assert [state.sweep for state in states] == [0, 1, 2, 3]
    assert {layout(state) for state in states[1:]} == {layout(states[1])}
    assert all(np.isfinite(numbers(each)).all() for each in (*map(of_gauss, states), *infos))


@EVERY_SAMPLER
def test_draws_are_what_the_state_says(name, hand):
    handed = hand(name)
    states, _ = advance(handed, 2)
    draw = handed.sampler.draw(states[-1])
    m, n = handed.data.shape
    rows, columns = (index.ravel() for index in np.indices((m, n)))
    signal = (np.asarray(draw.left, np.float64) @ np.asarray(draw.right, np.float64).T).ravel()
    np.testing.assert_allclose(draw.at(rows, columns), signal, rtol=1e-5, atol=1e-5)
    assert draw.nbytes >= draw.left.nbytes + draw.right.nbytes
    spectrum = handed.sampler.spectrum(draw)
    assert (spectrum >= 0).all()
    assert (np.diff(spectrum) <= 0).all()


@EVERY_SAMPLER
def test_history_traces_finite_numbers(name, hand):
    handed = hand(name)
    states, infos = advance(handed, 2)
    traced = handed.sampler.history(states[-1], infos[-1], handed.data.n_entries)
    assert all(math.isfinite(value) for value in traced.values())
    if handed.sampler.resumption is not None:
        assert tuple(traced) == handed.sampler.resumption.traced


@EVERY_SAMPLER
def test_a_chain_can_resume_from_its_own_states_only(name, hand):
    handed = hand(name)
    if handed.sampler.resumption is None:
        pytest.skip("supports no checkpoints")
    info, _, is_valid_state, _ = handed.sampler.resumption
    states, infos = advance(handed, 3)
    assert all(isinstance(each, info) for each in infos)
    assert all(is_valid_state(state, ()) for state in states[1:])
    huge = states[-1]._replace(left=states[-1].left * 1e20)
    assert not is_valid_state(huge, ())


@EVERY_SAMPLER
def test_estimates_of_hyperparameters_leave_the_factors_alone(name, hand):
    handed = hand(name)
    if handed.sampler.adapt is None:
        pytest.skip("samples its hyperparameters")
    states, infos = advance(handed, 5)
    adapted = handed.sampler.adapt(states[-1], infos, handed.data.n_entries)
    assert layout(adapted) == layout(states[-1])
    np.testing.assert_array_equal(adapted.left, states[-1].left)
    np.testing.assert_array_equal(adapted.right, states[-1].right)
    assert (numbers(adapted) != numbers(states[-1])).any()
