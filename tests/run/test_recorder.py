from itertools import islice

import numpy as np
import pytest

from fillrank.run import recorder
from fillrank.run.chains import run
from fillrank.run.recorder import Recorder
from fillrank.samplers.gasr import signal_factors
from helpers.small_runs import OPTIONS, sampler_of, small_chains, small_data

DATA = small_data()


def record(n_sweeps, burn_in=3, n_chains=1, options=OPTIONS):
    """A recorder after some sweeps, and the states after each of these."""
    sampler = sampler_of(options=options)
    kept = Recorder(sampler, DATA, burn_in, np.random.default_rng(0))
    states = []
    steps = run(small_chains(DATA, n_chains), DATA, sampler, n_adapt=burn_in)
    for step in islice(steps, n_sweeps):
        kept.take(step)
        states.append(step.states)
    return kept, states


def assert_stored_after(kept, states, sweeps):
    """The stored draws of the first chain are those after the given sweeps (counted from 1)."""
    n_chains = len(states[0])
    draws = kept.draws[::n_chains]
    assert len(draws) == len(sweeps)
    for draw, sweep in zip(draws, sweeps, strict=True):
        left, right = signal_factors(states[sweep - 1][0])
        np.testing.assert_array_equal(draw.left, left)
        np.testing.assert_array_equal(draw.right, right)
        assert draw.noise.variance == states[sweep - 1][0].noise.cells.variance


def test_draws_after_the_burn_in_are_stored():
    kept, states = record(10)
    assert_stored_after(kept, states, range(4, 11))
    assert kept.n_recorded == 7


@pytest.mark.parametrize("n_chains", [1, 2])
def test_few_draws_evenly_spaced(monkeypatch, n_chains):
    monkeypatch.setattr(recorder, "MOST_DRAWS", 8 * n_chains)
    kept, states = record(67, burn_in=3, n_chains=n_chains)
    assert kept.thinning == 16
    assert_stored_after(kept, states, [3 + 16, 3 + 32, 3 + 48, 3 + 64])
    kept, states = record(30, burn_in=3, n_chains=n_chains)
    assert_stored_after(kept, states, [3 + 4 * k for k in range(1, 7)])
    assert kept.spectra.shape == (n_chains, 6, 2)
    assert kept.n_recorded == 27  # probes are not thinned


@pytest.mark.parametrize("n_sweeps", range(4, 80, 7))
def test_never_more_than_allowed_and_never_fewer_than_half(monkeypatch, n_sweeps):
    monkeypatch.setattr(recorder, "MOST_DRAWS", 8)
    kept, _ = record(n_sweeps)
    assert len(kept.draws) < 8
    assert len(kept.draws) >= min(n_sweeps - 3, 3)


def test_memory_bounds_the_number_too(monkeypatch):
    kept, _ = record(4)
    size = kept.draws[0].nbytes
    monkeypatch.setattr(recorder, "MOST_BYTES", 4 * size)
    kept, states = record(20, burn_in=3)
    assert_stored_after(kept, states, [3 + 8, 3 + 16])
    monkeypatch.setattr(recorder, "MOST_BYTES", 1)
    assert len(record(20)[0].draws) == 1


def test_probes_are_predictions_of_the_same_cells():
    kept, states = record(8, n_chains=2)
    rows, columns = kept._probe_rows, kept._probe_columns
    for chain in range(2):
        for t in range(5):
            left, right = signal_factors(states[3 + t][chain])
            dense = left.astype(float) @ right.astype(float).T
            np.testing.assert_allclose(kept.probes[chain, t], dense[rows, columns], atol=1e-5)


def test_history_is_of_all_sweeps():
    kept, states = record(9, n_chains=2)
    history = kept.history()
    assert list(history) == ["residual_variance", "noise_variance", "a", "b"]
    for chain in range(2):
        for name in ("a", "b"):
            assert history[name][chain].tolist() == [getattr(s[chain], name) for s in states]
        noise = [s[chain].noise.cells.variance for s in states]
        assert history["noise_variance"][chain].tolist() == noise
    # The residual after a sweep is that of the state it ends in.
    left, right = signal_factors(states[-1][1])
    rows = np.repeat(np.arange(DATA.shape[0]), np.diff(DATA.rows.pointers))
    signal = (left.astype(float) @ right.T)[rows, DATA.rows.indices]
    assert history["residual_variance"][1, -1] == pytest.approx(
        np.mean((DATA.rows.values - signal) ** 2), rel=1e-4
    )


@pytest.mark.parametrize(("row_effects", "column_effects"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_spectra_exclude_what_effects_could_explain(row_effects, column_effects):
    options = OPTIONS._replace(row_effects=bool(row_effects), column_effects=bool(column_effects))
    kept, states = record(6, options=options)
    for t, spectrum in enumerate(kept.spectra[0]):
        state = states[3 + t][0]
        Z = (state.left[:, :2] * state.d) @ state.right[:, :2].T.astype(float)
        if row_effects:
            Z = Z - Z.mean(axis=1, keepdims=True)
        if column_effects:
            Z = Z - Z.mean(axis=0)
        np.testing.assert_allclose(spectrum, np.linalg.svd(Z)[1][:2], rtol=1e-4, atol=1e-6)
