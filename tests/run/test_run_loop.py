from contextlib import contextmanager
from itertools import islice

import numpy as np
import pytest

from fillrank.errors import NumericalError
from fillrank.run import loop
from fillrank.run.chains import EM_WINDOW, run
from fillrank.run.loop import Plan, execute, start_run
from fillrank.samplers import gasr
from fillrank.samplers.monte_carlo_em import estimate_noise, estimate_rates
from helpers.small_runs import interrupted_after, sampler_of, small_chains, small_data

DATA = small_data()


def go(plan, n_chains=1, sweep=gasr.sweep, show=False, check_convergence=lambda recorder: ""):
    chains, rng = small_chains(DATA, n_chains), np.random.default_rng(0)
    sampler = sampler_of(sweep)
    run = start_run(chains, DATA, sampler, plan, rng)
    return execute(run, DATA, sampler, plan, show, check_convergence=check_convergence)


def test_all_sweeps_are_done():
    outcome = go(Plan(17, 5, 5, until_enough=False))
    assert outcome.run.n_sweeps == 17
    assert outcome.stop_reason == "all 17 sweeps done"
    assert not outcome.interrupted
    assert outcome.run.recorder.n_recorded == 12
    assert len(outcome.run.recorder.draws) == 12
    assert outcome.run.recorder.history()["a"].shape == (1, 17)


def test_stops_when_there_are_enough_draws(monkeypatch):
    asked = []

    def added_error(probes):
        asked.append(probes.shape[1])
        return 0.1 if len(asked) < 3 else 0.5 * loop.ENOUGH

    monkeypatch.setattr(loop, "added_error", added_error)
    monkeypatch.setattr(loop, "_CHECK_EVERY", 4)
    monkeypatch.setattr(loop, "_FEWEST_DRAWS", 8)
    outcome = go(Plan(100, 5, 5, until_enough=True))
    assert asked == [8, 12, 16]
    assert outcome.run.n_sweeps == 21
    assert outcome.stop_reason.startswith("the Monte Carlo error enlarges the error of predictions")
    assert outcome.stop_reason.endswith(f"less than {100 * loop.ENOUGH:g}% after 21 sweeps")


def test_progress_has_the_likely_number_of_sweeps(monkeypatch):
    told = []

    @contextmanager
    def make_progress(enabled, unit, about):
        assert (enabled, unit, about) == (True, "sweep", True)
        yield lambda done, total, note: told.append((done, total))

    monkeypatch.setattr(loop, "make_progress", make_progress)
    monkeypatch.setattr(loop, "added_error", lambda probes: 4.0 * loop.ENOUGH)
    monkeypatch.setattr(loop, "_CHECK_EVERY", 4)
    monkeypatch.setattr(loop, "_FEWEST_DRAWS", 8)
    monkeypatch.setattr(loop, "_FEWEST_TO_ESTIMATE", 8)
    monkeypatch.setattr(loop, "_USUAL_DRAWS", 20)
    go(Plan(60, 5, 5, until_enough=True), show=True)
    totals = dict(told)
    assert totals[1] == totals[12] == 5 + 20
    assert totals[13] == totals[16] == 5 + 4 * 8
    assert totals[17] == 5 + 4 * 12
    assert totals[60] == 60
    assert all(done <= total <= 60 for done, total in told)


def test_the_limit_reports_how_far_it_got(monkeypatch):
    monkeypatch.setattr(loop, "added_error", lambda probes: 0.123)
    outcome = go(Plan(12, 5, 5, until_enough=True))
    assert outcome.run.n_sweeps == 12
    assert "limit of 12 sweeps" in outcome.stop_reason
    assert outcome.stop_reason.endswith("by 12%")
    assert outcome.reached_limit


def test_it_continues_until_it_has_converged(monkeypatch):
    monkeypatch.setattr(loop, "added_error", lambda probes: 0.0)
    monkeypatch.setattr(loop, "_CHECK_EVERY", 4)
    monkeypatch.setattr(loop, "_FEWEST_DRAWS", 8)
    plan = Plan(100, 5, 5, until_enough=True)
    outcome = go(plan, check_convergence=lambda recorder: "no" if recorder.n_recorded < 20 else "")
    assert outcome.run.n_sweeps == 25
    assert not outcome.reached_limit
    outcome = go(plan._replace(n_sweeps=30), check_convergence=lambda recorder: "no")
    assert outcome.run.n_sweeps == 30
    assert outcome.reached_limit


def test_long_runs_are_checked_less_often(monkeypatch):
    monkeypatch.setattr(loop, "_CHECK_RARELY_FROM", 12)
    monkeypatch.setattr(loop, "_CHECK_RARELY_EVERY", 6)
    monkeypatch.setattr(loop, "_CHECK_EVERY", 2)
    monkeypatch.setattr(loop, "_FEWEST_DRAWS", 8)
    asked = [n for n in range(30) if loop._is_time_to_check(n)]
    assert asked == [8, 10, 12, 18, 24]


def test_a_fixed_number_of_sweeps_never_stops_early(monkeypatch):
    monkeypatch.setattr(loop, "added_error", lambda probes: 0.0)
    monkeypatch.setattr(loop, "_CHECK_EVERY", 1)
    monkeypatch.setattr(loop, "_FEWEST_DRAWS", 1)
    assert go(Plan(12, 5, 5, until_enough=False)).run.n_sweeps == 12


def failing(how):
    """The sampler's sweep, which fails at the seventh."""

    def sweep(state, data, context):
        state, info = gasr.sweep(state, data, context)
        return how(state, info) if state.sweep == 7 else (state, info)

    return sweep


def with_infinite_noise(state):
    cells = state.noise.cells._replace(variance=np.inf)
    return state._replace(noise=state.noise._replace(cells=cells))


def singular(state, info):
    raise np.linalg.LinAlgError("Singular matrix")


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        (singular, "Singular matrix"),
        (lambda state, info: 1 / 0, "division by zero"),
        (lambda state, info: (state, info._replace(residual_square=np.nan)), "not finite"),
        (lambda state, info: (with_infinite_noise(state), info), "not finite"),
    ],
)
def test_a_sweep_that_fails_is_reported(how, cause):
    with pytest.raises(
        NumericalError, match=rf"sweep 7 of the sampler failed: .*{cause}\. Look for"
    ):
        go(Plan(17, 5, 5, until_enough=False), sweep=failing(how))


def test_interrupted_while_sampling():
    whole = go(Plan(20, 5, 5, until_enough=False))
    outcome = go(Plan(20, 5, 5, until_enough=False), sweep=interrupted_after(9))
    assert outcome.interrupted
    assert outcome.run.n_sweeps == 9
    assert outcome.stop_reason == "interrupted after 9 of at most 20 sweeps"
    assert outcome.run.recorder.history()["a"].shape == (1, 9)
    assert outcome.run.recorder.spectra.shape == (1, 4, 2)
    for got, expected in zip(outcome.run.recorder.draws, whole.run.recorder.draws, strict=False):
        np.testing.assert_array_equal(got.left, expected.left)


def test_interrupted_while_burning_in_stores_the_last_state():
    outcome = go(Plan(20, 15, 15, until_enough=False), sweep=interrupted_after(9))
    ended = go(Plan(9, 8, 15, until_enough=False))
    (draw,) = outcome.run.recorder.draws
    np.testing.assert_array_equal(draw.left, ended.run.recorder.draws[-1].left)
    assert outcome.run.n_sweeps == 9
    assert outcome.run.recorder.n_recorded == 0
    assert outcome.run.recorder.probes.shape[:2] == (1, 0)


def test_interrupted_in_the_second_of_two_chains():
    """The first chain's half of a step is lost, not kept without its partner."""
    outcome = go(Plan(20, 2, 2, until_enough=False), n_chains=2, sweep=interrupted_after(11))
    assert outcome.run.n_sweeps == 5
    assert outcome.run.recorder.history()["a"].shape == (2, 5)
    assert len(outcome.run.recorder.draws) == 6


def test_interrupted_before_the_first_sweep_ends():
    with pytest.raises(KeyboardInterrupt):
        go(Plan(20, 5, 5, until_enough=False), sweep=interrupted_after(0))


def test_interrupted_while_recording(monkeypatch):
    """Ctrl-C can come while a draw is being kept: what belongs together stays together."""
    from fillrank.samplers import gasr

    count = 0
    singular_values = gasr.singular_values

    def interrupted(*factors_and_centres):
        nonlocal count
        count += 1
        if count > 3:
            raise KeyboardInterrupt
        return singular_values(*factors_and_centres)

    monkeypatch.setattr(gasr, "singular_values", interrupted)
    outcome = go(Plan(20, 5, 5, until_enough=False))
    assert outcome.interrupted
    assert outcome.run.n_sweeps == 8
    assert len(outcome.run.recorder.draws) == 3
    assert outcome.run.recorder.spectra.shape[1] == 3
    assert outcome.run.recorder.n_recorded == 3
    assert outcome.run.recorder.history()["a"].shape == (1, 8)


def test_chains_share_the_estimated_hyperparameters():
    """So that they sample from the same posterior, and their agreement means something."""
    history = go(Plan(12, 5, 5, until_enough=False), n_chains=3).run.recorder.history()
    for name in ("a", "b", "noise_variance"):
        assert (history[name] == history[name][0]).all(), name
        assert history[name][0, -1] != history[name][0, 0]


def test_chains_do_not_depend_on_their_number():
    one, three = (
        go(Plan(12, 5, 0, until_enough=False), n_chains=n).run.recorder.history() for n in (1, 3)
    )
    for name, trace in three.items():
        assert trace.shape == (3, 12)
        np.testing.assert_array_equal(trace[0], one[name][0])
    assert len(set(three["residual_variance"][:, -1])) == 3


def test_hyperparameters_are_estimated_by_the_paper_s_schedule():
    chains = small_chains(DATA)
    steps = list(islice(run(chains, DATA, sampler_of(), n_adapt=11), 30))
    noise = [step.states[0].noise.cells.variance for step in steps]
    changes = [t + 1 for t in range(1, 30) if noise[t] != noise[t - 1]]
    assert changes == [EM_WINDOW, 2 * EM_WINDOW]
    squares = np.array([step.infos[0].residual_square for step in steps[:5]])
    assert noise[4] == estimate_noise(squares, DATA.n_entries)
    d = np.array([step.states[0].d for step in steps[:5]])
    start = chains[0].state
    assert (steps[4].states[0].a, steps[4].states[0].b) == estimate_rates(start.a, start.b, d)
