from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import norm
from scipy.stats import t as student_t

from fillrank.errors import InputError
from fillrank.kernels.predictions import pair_values
from fillrank.posterior.low_rank import LowRankPosterior, _share_out
from fillrank.posterior.mean import mean_draw
from fillrank.posterior.predictive import quantiles
from fillrank.posterior.recommend import TopQuery, nothing_left_out
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Draw, Noise
from fillrank.table.entries import Entries
from fillrank.table.units import Units

UNITS = Units.equal(3.0, 2.5, 5, None)


def make(n_draws=40, shape=(7, 5), width=4, seed=0, noise=(0.01, 0.3), units=None, dtype="float32"):
    rng = np.random.default_rng(seed)
    draws = [
        Draw(
            rng.standard_normal((shape[0], width)).astype(dtype),
            rng.standard_normal((shape[1], width)).astype(dtype),
            Noise.equal(float(rng.uniform(*noise)), shape),
        )
        for _ in range(n_draws)
    ]
    units = units or Units.equal(3.0, 2.5, shape[1], None)
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
    sds = UNITS.shared_scale * np.sqrt([w.noise.variance for w in posterior.draws])

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
    noise = np.array([w.noise.variance for w in posterior.draws])[which]
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
    posterior = make(units=Units.equal(3.0, 2.5, 5, (1.0, 5.0)))
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
    posterior = make(shape=(60, 50), width=9, units=Units.equal(3.1, 1.7, 50, value_range))
    rows, columns = (places.astype(index) for places in cells(posterior))
    values = np.empty(3000)
    pair_values(posterior.mean.left, posterior.mean.right, rows, columns, values)
    expected = posterior.units.restore(values, columns)
    assert {1.0, 5.0}.issubset(expected) == (value_range is not None)
    np.testing.assert_array_equal(posterior.predict(rows, columns, workers), expected)


def test_values_are_restored_where_they_are_or_beside():
    values = np.array([-1.0, 0.0, 2.0])
    units = Units.equal(3.0, 2.0, 3, (1.5, 5.0))
    beside = units.restore(values, slice(None))
    assert beside.tolist() == [1.5, 3.0, 5.0]
    assert values.tolist() == [-1.0, 0.0, 2.0]
    assert units.restore(values, slice(None), out=values) is values
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


# Noise by cell and units by column, against plain loops over draws and cells.


def uneven(degrees=(np.inf, 3.0, 5.5), value_range=None, seed=1):
    """Twelve draws whose noise differs by row and column, and columns with their own units."""
    posterior = make(n_draws=12, seed=seed)
    rng = np.random.default_rng(seed)
    m, n = posterior.shape
    draws = [
        draw._replace(
            noise=Noise(draw.noise.variance, rng.gamma(2, 0.5, m), rng.gamma(2, 0.5, n), nu)
        )
        for draw, nu in zip(posterior.draws, np.resize(degrees, 12), strict=True)
    ]
    units = Units(rng.normal(0, 100, n), 10.0 ** rng.uniform(-2, 2, n), value_range)
    return LowRankPosterior(draws, units, mean_draw(draws))


def parts_of(posterior, i, j):
    """(value, scale, degrees) of a new observation of a cell under every draw, in its units."""
    location, scale = posterior.units.location[j], posterior.units.scale[j]
    for w in posterior.draws:
        value = location + scale * float(w.left[i].astype(float) @ w.right[j])
        variance = w.noise.variance / (w.noise.rows[i] * w.noise.columns[j])
        yield value, scale * np.sqrt(variance), w.noise.degrees


EACH_NOISE = pytest.mark.parametrize("degrees", [(np.inf,), (4.0,), (np.inf, 3.0, 5.5)])


@EACH_NOISE
def test_intervals_with_noise_by_cell_and_units_by_column(degrees, workers):
    posterior = uneven(degrees)
    rows, columns = cells(posterior)
    low, high = posterior.interval(rows, columns, 0.8, "observation", workers)
    inner = posterior.interval(rows, columns, 0.8, "signal", workers)
    for p, (i, j) in enumerate(zip(rows, columns, strict=True)):
        values, scales, nus = np.array([*parts_of(posterior, i, j)]).T

        def excess(x, tail, values=values, scales=scales, nus=nus):
            return np.mean(student_t.cdf((x - values) / scales, nus)) - tail

        ends = values.min() - 1e3 * scales.max(), values.max() + 1e3 * scales.max()
        tails = np.quantile(values, [0.1, 0.9], method="weibull")
        tolerance = 1e-5 * posterior.units.scale[j]
        np.testing.assert_allclose([inner[0][p], inner[1][p]], tails, atol=tolerance)
        expected = min(brentq(excess, *ends, args=(0.1,)), tails[0])
        np.testing.assert_allclose(low[p], expected, atol=tolerance)
        expected = max(brentq(excess, *ends, args=(0.9,)), tails[1])
        np.testing.assert_allclose(high[p], expected, atol=tolerance)


@EACH_NOISE
def test_log_density_with_noise_by_cell_and_units_by_column(degrees, workers):
    posterior = uneven(degrees)
    rows, columns = cells(posterior)
    rng = np.random.default_rng(0)
    at = posterior.predict(rows, columns, workers)
    at += posterior.units.scale[columns] * rng.standard_normal(at.size)
    found = posterior.log_density(rows, columns, at, workers)
    for p, (i, j) in enumerate(zip(rows, columns, strict=True)):
        terms = [
            student_t.logpdf((at[p] - value) / scale, nu) - np.log(scale)
            for value, scale, nu in parts_of(posterior, i, j)
        ]
        assert found[p] == pytest.approx(logsumexp(terms) - np.log(12), abs=1e-5)


def test_predictions_with_units_by_column(workers):
    posterior = uneven(value_range=(-50.0, 120.0))
    rows, columns = cells(posterior)
    expected = [
        np.clip(np.mean([value for value, _, _ in parts_of(posterior, i, j)]), -50, 120)
        for i, j in zip(rows, columns, strict=True)
    ]
    np.testing.assert_allclose(posterior.predict(rows, columns, workers), expected, rtol=1e-5)
    block = posterior.block(np.array([6, 0]), np.array([4, 4, 1]))
    wanted = np.reshape(expected, posterior.shape)[np.ix_([6, 0], [4, 4, 1])]
    np.testing.assert_allclose(block, wanted, rtol=1e-5)


@pytest.mark.parametrize("degrees", [(np.inf,), (5.0,)])
def test_imputations_with_noise_by_cell_and_units_by_column(degrees):
    """Over 3,000 seeds; standard errors of mean squares are known, false alarms once in 10,000."""
    posterior = uneven(degrees)
    rows = np.array([posterior.imputations(1, seed).row(0, 2) for seed in range(3000)])
    for j in range(5):
        value, scale, nu = next(parts_of(posterior, 2, j))
        below = student_t.cdf((rows[:, j] - value) / scale, nu)
        # Uniform numbers: their mean and mean square are those of U(0, 1).
        assert below.mean() == pytest.approx(1 / 2, abs=4.5 * np.sqrt(1 / 12 / 3000))
        assert np.mean(below**2) == pytest.approx(1 / 3, abs=4.5 * np.sqrt(4 / 45 / 3000))


def test_columns_that_share_a_unit():
    assert Units.equal(3.0, 2.0, 4, None).are_shared
    assert Units.equal(3.0, 2.0, 4, None).shared_scale == 2.0
    for location, scale in (([0.0, 1.0], [2.0, 2.0]), ([0.0, 0.0], [2.0, 3.0])):
        units = Units(np.array(location), np.array(scale), None)
        assert not units.are_shared
        assert units.shared_scale == 1.0


@pytest.mark.parametrize("by", ["mean", "cautious", "curious"])
def test_the_best_columns_are_by_values_in_the_units_of_the_data(by, workers):
    posterior = uneven()
    rows = np.arange(7)
    rng = np.random.default_rng(3)
    query = TopQuery(rows, nothing_left_out(7), 5, by, 0.2, rng)
    top = posterior.top(query, workers)
    values = dense(posterior)
    if by == "mean":
        expected = values.mean(axis=0)
    elif by == "cautious":
        expected = np.quantile(values, 0.2, axis=0, method="weibull")
    else:
        expected = values[np.random.default_rng(3).integers(12, size=7), rows]
    np.testing.assert_array_equal(top.columns, np.argsort(-expected, axis=1))
    np.testing.assert_allclose(top.scores, -np.sort(-expected, axis=1), rtol=1e-4)


def column_entries(values):
    """Entries of new columns in the first rows."""
    pointers = np.cumsum([0] + [len(each) for each in values])
    indices = np.concatenate([np.arange(len(each)) for each in values]).astype(np.int32)
    return Entries(pointers, indices, np.concatenate(values))


def test_new_columns_have_their_own_units(workers):
    posterior = uneven()
    values = [np.array([1.0, 2.0, 6.0]), np.array([500.0, 900.0])]
    new = posterior.fold_in(column_entries(values), "columns", workers)
    np.testing.assert_allclose(new.units.location, [3.0, 700.0])
    np.testing.assert_allclose(new.units.scale, [values[0].std(), 200.0])
    far = [values[0], 1e6 * values[1]]
    scaled = posterior.fold_in(column_entries(far), "columns", workers)
    cell = np.array([4]), np.array([1])
    one, other = (each.predict(*cell, workers) for each in (new, scaled))
    np.testing.assert_allclose(other, 1e6 * one)


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0]])
def test_new_columns_without_a_unit_are_refused(values, workers):
    entries = column_entries([np.array([1.0, 2.0]), np.array(values)])
    with pytest.raises(InputError, match="two different values"):
        uneven().fold_in(entries, "columns", workers)
