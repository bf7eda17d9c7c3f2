"""GASR as published starts where its authors' program does, in the data's own units."""

import numpy as np
import pytest

import fillrank as fr
from fillrank.samplers import gasr_published
from fillrank.samplers.gasr import B_BOUNDS
from fillrank.samplers.gasr_published import published_start
from fillrank.samplers.model import SMALLEST_NOISE
from fillrank.samplers.monte_carlo_em import adapt
from reference.small_tables import PLAIN, Table, context_of, dense_signal, variance_of

SHAPE = (400, 300)


def start(scale, shape=SHAPE, max_rank=20, seed=0):
    data = Table(np.zeros(shape, dtype=bool)).data(np.zeros(0))
    rng = np.random.default_rng(seed)
    return published_start(data, scale, max_rank, np.dtype(np.float64), rng)


@pytest.mark.parametrize("scale", [1.0, 3.7, 1e-3, 1e4])
def test_hyperparameters_in_the_units_of_the_data(scale):
    state = start(scale)
    assert variance_of(state) * scale**2 == pytest.approx(1.0)
    assert (state.a, state.b * scale) == pytest.approx((100.0, 100.0))


def test_factors_are_uniform_on_0_to_1_and_scaled_to_a_norm():
    state = start(1.0)
    assert not state.d.any()
    for factors in (state.left, state.right):
        entries = factors[:, :20]
        np.testing.assert_allclose(np.linalg.norm(entries, axis=0), 0.9)
        assert entries.min() > 0
        # Of U(0, 1): mean over root mean square sqrt(3)/2, and the largest is sqrt(3) of the latter.
        root_mean_square = np.sqrt(np.mean(entries**2, axis=0))
        assert entries.mean() / root_mean_square.mean() == pytest.approx(np.sqrt(0.75), rel=0.01)
        assert (entries / root_mean_square).max() == pytest.approx(np.sqrt(3.0), rel=0.1)


@pytest.mark.parametrize("scale", [1e-152, 1e-20, 1e20, 1e152])
def test_values_out_of_proportion_to_the_start(scale):
    state = start(scale)
    assert SMALLEST_NOISE <= variance_of(state) <= 1 / SMALLEST_NOISE
    assert B_BOUNDS[0] <= state.b <= B_BOUNDS[1]


@pytest.mark.parametrize("change", [lambda X: X, lambda X: 3.0 * X, lambda X: X + 20.0])
def test_a_fit_starts_there_whatever_its_values(change):
    observations, _ = fr.synthetic(30, 20, 2, 0.5, 0.3, random_state=0)
    X = fr.Observations.from_triplets(
        observations.rows, observations.columns, change(observations.values)
    )
    model = fr.GASR.as_published(n_sweeps=4, max_rank=3, random_state=0, progress=False).fit(X)
    assert model.posterior_.units.location[0] == 0.0
    for name, value in (("noise_variance", 1.0), ("a", 100.0), ("b", 100.0)):
        np.testing.assert_allclose(
            model.history_[name], value
        )  # there is no estimate before the fifth


def test_the_units_of_the_engine_do_not_matter():
    """The same chain in the data's own units and in others, with estimates of the hyperparameters.

    The units are a power of 2 apart, so that rounding is the same.
    """
    scale, shape = 4.0, (12, 9)
    rng = np.random.default_rng(3)
    mask = rng.random(shape) < 0.7
    values = 3.0 + rng.standard_normal(mask.sum())
    signals = []
    for unit in (1.0, scale):
        data, context = Table(mask).data(values / unit), context_of(PLAIN)
        state = published_start(data, unit, 4, np.dtype(np.float64), np.random.default_rng(0))
        for _ in range(3):
            infos = []
            for _ in range(5):
                state, info = gasr_published.sweep(state, data, context)
                infos.append(info)
            state = adapt(state, infos, data.n_entries)
        signals.append(unit * dense_signal(state))
    np.testing.assert_allclose(signals[0], signals[1], rtol=1e-9)
