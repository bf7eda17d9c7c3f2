from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from fillrank.kernels.predictions import pair_values
from fillrank.posterior.low_rank import LowRankPosterior, Units, _share_out, quantiles
from fillrank.posterior.mean import mean_draw
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Draw

UNITS = Units(3.0, 2.5, None)


def make(
    n_draws=40, shape=(7, 5), width=4, seed=0, noise=(0.01, 0.3), units=UNITS, dtype="float32"
):
    rng = np.random.default_rng(seed)
    draws = [
        Draw(
            rng.standard_normal((shape[0], width)).astype(dtype),
            rng.standard_normal((shape[1], width)).astype(dtype),
            float(rng.uniform(*noise)),
        )
        for _ in range(n_draws)
    ]
    return LowRankPosterior(draws, units, mean_draw(draws))


def dense(posterior):
    """The signal of every draw (draws, rows, columns), in the data's units."""
    location, scale, _ = posterior.units
    signal = [w.left.astype(float) @ w.right.astype(float).T for w in posterior.draws]
    return location + scale * np.array(signal)


def cells(posterior):
    rows, columns = np.indices(posterior.shape)
    return rows.ravel(), columns.ravel()


@pytest.fixture
def workers():
    with Workers(1) as workers:
        yield workers


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mean(workers, dtype):
    posterior = make(dtype=dtype)
    rows, columns = cells(posterior)
    expected = dense(posterior).mean(axis=0)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(
        posterior.predict(rows, columns, workers), expected.ravel(), rtol=0, atol=tolerance
    )
    np.testing.assert_allclose(
        posterior.block(np.array([6, 0]), np.array([4, 4, 1])),
        expected[np.ix_([6, 0], [4, 4, 1])],
        atol=tolerance,
    )


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.999])
def test_signal_intervals_are_quantiles_of_the_draws(level, workers):
    posterior = make()
    low, high = posterior.interval(*cells(posterior), level, "signal", workers)
    values = dense(posterior).reshape(40, -1)
    expected = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    np.testing.assert_allclose([low, high], expected, atol=1e-5)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.999])
def test_observation_intervals_are_quantiles_of_the_mixture(level, workers):
    """And contain the intervals for the signal, however the two kinds of quantiles are estimated."""
    posterior = make()
    low, high = posterior.interval(*cells(posterior), level, "observation", workers)
    values = dense(posterior).reshape(40, -1)
    sds = UNITS.scale * np.sqrt([w.noise_variance for w in posterior.draws])

    def quantile(column, tail):
        return brentq(lambda y: norm.cdf(y, column, sds).mean() - tail, -200, 200)

    signal = posterior.interval(*cells(posterior), level, "signal", workers)
    expected = [quantile(c, (1 - level) / 2) for c in values.T]
    np.testing.assert_allclose(low, np.minimum(expected, signal[0]), atol=1e-5)
    expected = [quantile(c, (1 + level) / 2) for c in values.T]
    np.testing.assert_allclose(high, np.maximum(expected, signal[1]), atol=1e-5)


def test_observation_intervals_contain_those_of_the_signal(workers):
    """With hardly any noise, and with draws far from all others, whose quantile noise moves inwards."""
    for posterior in (make(noise=(1e-9, 1e-9)), _with_outliers(make(noise=(0.5, 4.0)))):
        for level in (0.5, 0.8, 0.9, 0.95):
            signal = posterior.interval(*cells(posterior), level, "signal", workers)
            low, high = posterior.interval(*cells(posterior), level, "observation", workers)
            assert (low <= signal[0]).all()
            assert (high >= signal[1]).all()


def _with_outliers(posterior):
    """The first eight draws are 1,000 times as large as they were."""
    draws = [draw._replace(left=1000 * draw.left) for draw in posterior.draws[:8]]
    return replace(posterior, draws=draws + posterior.draws[8:])


def test_observation_intervals_cover_simulated_observations(workers):
    """At 200,000 draws a share is known to 0.001; false alarms once in 10,000."""
    posterior = make(noise=(0.5, 4.0))
    rng = np.random.default_rng(0)
    low, high = posterior.interval(np.array([2]), np.array([3]), 0.8, "observation", workers)
    which = rng.integers(40, size=200_000)
    noise = np.array([w.noise_variance for w in posterior.draws])[which]
    observed = dense(posterior)[which, 2, 3] + 2.5 * np.sqrt(noise) * rng.standard_normal(200_000)
    assert np.mean(observed < low) == pytest.approx(0.1, abs=0.003)
    assert np.mean(observed > high) == pytest.approx(0.1, abs=0.003)


def test_a_single_draw(workers):
    posterior = make(n_draws=1, noise=(0.04, 0.04))
    rows, columns = cells(posterior)
    low, high = posterior.interval(rows, columns, 0.9, "signal", workers)
    np.testing.assert_array_equal(low, high)
    low, high = posterior.interval(rows, columns, 0.9, "observation", workers)
    np.testing.assert_allclose(high - low, 2 * 1.6448536 * 0.2 * 2.5, rtol=1e-5)


def test_everything_is_clipped_to_the_scale(workers):
    posterior = make(units=Units(3.0, 2.5, (1.0, 5.0)))
    free = replace(posterior, units=UNITS)
    rows, columns = cells(posterior)
    for kind in ("signal", "observation"):
        np.testing.assert_array_equal(
            posterior.interval(rows, columns, 0.9, kind, workers),
            np.clip(free.interval(rows, columns, 0.9, kind, workers), 1, 5),
        )
    np.testing.assert_array_equal(
        posterior.predict(rows, columns, workers),
        np.clip(free.predict(rows, columns, workers), 1, 5),
    )


def test_blocks_and_threads_do_not_change_a_bit(monkeypatch, workers):
    posterior = make(shape=(60, 50))
    rows, columns = cells(posterior)
    expected = posterior.predict(rows, columns, workers)
    intervals = posterior.interval(rows, columns, 0.9, "observation", workers)
    monkeypatch.setattr("fillrank.posterior.low_rank._BLOCK", 17)
    for n_threads in (1, 2, 4):
        with Workers(n_threads) as several:
            np.testing.assert_array_equal(posterior.predict(rows, columns, several), expected)
    np.testing.assert_array_equal(
        posterior.interval(rows, columns, 0.9, "observation", workers), intervals
    )


@pytest.mark.parametrize("value_range", [None, (1.0, 5.0)])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_predictions_have_the_bits_of_values_that_are_restored_afterwards(
    workers, value_range, index
):
    posterior = make(shape=(60, 50), width=9, units=Units(3.1, 1.7, value_range))
    rows, columns = (places.astype(index) for places in cells(posterior))
    values = np.empty(3000)
    pair_values(posterior.mean.left, posterior.mean.right, rows, columns, values)
    expected = posterior.units.restore(values)
    assert {1.0, 5.0}.issubset(expected) == (value_range is not None)
    np.testing.assert_array_equal(posterior.predict(rows, columns, workers), expected)


def test_values_are_restored_where_they_are_or_beside():
    values = np.array([-1.0, 0.0, 2.0])
    units = Units(3.0, 2.0, (1.5, 5.0))
    beside = units.restore(values)
    assert beside.tolist() == [1.5, 3.0, 5.0]
    assert values.tolist() == [-1.0, 0.0, 2.0]
    assert units.restore(values, out=values) is values
    assert values.tolist() == beside.tolist()


@pytest.mark.parametrize("n_cells", [1, 255, 256, 257, 512, 3000])
def test_threads_process_every_cell_once(n_cells):
    times = np.zeros(n_cells, dtype=int)

    def work(start, stop):
        times[start:stop] += 1

    for n_threads in (1, 2, 4):
        with Workers(n_threads) as several:
            _share_out(work, n_cells, 10_000, several)
    assert (times == 3).all()


def test_no_cells(workers):
    nothing = np.array([], dtype=np.int64)
    posterior = make()
    assert posterior.predict(nothing, nothing, workers).shape == (0,)
    assert posterior.interval(nothing, nothing, 0.9, "observation", workers)[0].shape == (0,)
    assert posterior.block(nothing, np.arange(5)).shape == (0, 5)


@pytest.mark.parametrize("n_draws", [9, 128])
def test_one_more_draw_is_in_the_interval_as_often_as_it_says(workers, n_draws):
    # Independent draws: the expectation is exact, the level of 5,000 cells is within 4 sd of it.
    rng = np.random.default_rng(1)
    values = rng.standard_normal((n_draws + 1, 5000))
    low, high = quantiles(values[:-1], (0.1, 0.9))
    inside = (low < values[-1]) & (values[-1] < high)
    assert abs(inside.mean() - 0.8) < 4 * 0.4 / np.sqrt(5000)  # false alarms: 6e-5
