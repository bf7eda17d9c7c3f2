import subprocess
import sys
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fillrank as fr
from fillrank.errors import InputError
from fillrank.features.times import times
from fillrank.table.times import looks_like_times
from helpers.processes import LIMIT

DAYS = np.arange("2024-01-15", "2025-06-01", dtype="datetime64[D]")


def part(features, name):
    """The terms of a kernel."""
    return features.values[:, [term.startswith(name) for term in features.names]]


def matern(distance, scale):
    ratio = np.sqrt(3) * np.abs(distance) / scale
    return (1 + ratio) * np.exp(-ratio)


def test_the_trend_has_nearly_the_exact_kernel():
    x = np.arange(400.0)
    features = times(x)
    scales = 399 / np.array([4, 16, 64])
    # The features leave out the constant cosine: its squared weight is the spectral density at 0.
    constant = np.mean(4 * scales / np.sqrt(3)) / (2 * features.basis.reach)
    K = features.values @ features.values.T + constant
    distance = x[:, None] - x
    exact = np.mean([matern(distance, scale) for scale in scales], axis=0)
    # The cosines have 95% of the variance. At the ends of the span the longest scale is not exact.
    assert np.abs(K - exact).max() < 0.1
    middle = slice(80, 320)
    assert np.abs(K - exact)[middle, middle].max() < 0.05
    assert np.ptp(np.diag(K)[middle]) < 0.02


def test_scales_are_not_below_a_few_steps():
    features = times(np.arange(10))
    assert len(features.names) == 9
    ratio = np.diff(np.log(np.abs(features.basis.weights)))
    assert (ratio < -0.1).all()  # a smooth kernel: each cosine has a smaller weight than the last
    assert times(["2024-01-01", "2024-01-02"]).values.shape == (2, 1)


def test_periods_have_variance_one():
    features = times(DAYS)
    for name in ("7D", "365.25D"):
        np.testing.assert_allclose((part(features, name) ** 2).sum(axis=1), 1)


def test_weekday_effects_are_in_the_span_of_the_harmonics():
    week = part(times(DAYS), "7D")
    assert week.shape[1] == 6
    effects = np.array([5.0, 1, 0, 2, -3, 10, 7])
    wanted = (effects - effects.mean())[(DAYS - DAYS[0]).astype(int) % 7]
    found = np.linalg.lstsq(week, wanted, rcond=None)[0]
    np.testing.assert_allclose(week @ found, wanted, atol=1e-9)


def test_new_times_have_the_same_terms():
    features = times(DAYS)
    np.testing.assert_array_equal(features.at(DAYS).values, features.values)
    np.testing.assert_array_equal(np.asarray(features), features.values)
    some = features.at(["2024-03-01", "2025-01-01 12:00", "2030-01-01", "2040-01-01"])
    assert len(some) == 4
    first = np.flatnonzero(np.datetime64("2024-03-01") == DAYS)[0]
    np.testing.assert_array_equal(features.values[first], some.values[0])
    trend = part(some, "trend")
    np.testing.assert_array_equal(trend[2], trend[3])
    assert (part(some, "365.25D")[2] != part(some, "365.25D")[3]).any()


def test_trends_end_without_a_jump_or_a_bend():
    features = times(np.arange(100.0))
    end = features.basis.origin + features.basis.reach
    before, at, after = features.at([end - 0.01, end, end + 50]).values
    np.testing.assert_array_equal(at, after)
    np.testing.assert_allclose(before, at, atol=1e-4)


@pytest.mark.parametrize(
    "labels",
    [
        DAYS.astype("datetime64[ns]"),
        DAYS.astype(date),
        DAYS.astype(str),
        [f"{day} 00:00" for day in DAYS],
        [f"{day}T00:00:00.000Z" for day in DAYS],
        [datetime.combine(day, datetime.min.time(), UTC) for day in DAYS.astype(date)],
        pd.DatetimeIndex(DAYS),
        pd.DatetimeIndex(DAYS).tz_localize("Asia/Tokyo"),
        pl.Series(DAYS),
    ],
    ids=["ns", "dates", "text", "minutes", "zone", "utc", "pandas", "tokyo", "polars"],
)
def test_all_kinds_of_dates_are_the_same(labels):
    assert looks_like_times(labels)
    np.testing.assert_array_equal(times(labels).values, times(DAYS).values)


def test_periods_that_give_nothing_are_left_out():
    def periods_of(labels, periods=None):
        return {name.split()[0] for name in times(labels, periods).names} - {"trend"}

    assert periods_of(DAYS) == {"7D", "365.25D"}
    assert periods_of(DAYS[:100]) == {"7D"}
    assert periods_of(DAYS[::7]) == {"365.25D"}
    assert periods_of(DAYS[0] + np.arange(80) * np.timedelta64(1, "h")) == {"1D"}
    assert periods_of(np.arange(20)) == set()
    assert periods_of(np.arange(20), [1, 5, 21]) == {"5"}
    assert periods_of(DAYS, [timedelta(days=30)]) == {"30"}


def test_order_and_repeats_do_not_matter():
    order = np.random.default_rng(0).integers(0, len(DAYS), 900)
    order[:2] = 0, len(DAYS) - 1  # the span stays
    repeated = times(np.concatenate([DAYS, DAYS[order]]))
    np.testing.assert_array_equal(repeated.values[: len(DAYS)], times(DAYS).values)
    np.testing.assert_array_equal(repeated.values[len(DAYS) :], times(DAYS).values[order])


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        (["2024-01-01", "soon"], "'soon'"),
        (["2024-01-01", "2024-02-30"], "'2024-02-30'"),
        (["2024-01-01", None], "None"),
        ([pd.Timestamp("2024-01-01"), pd.NaT], "NaT"),
        (np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"), "None"),
        ([1.0, float("nan")], "nan"),
        (["20240101", "20240102"], "'20240101'"),
        ([True, False], "True"),
        (["2024-01-01", "2024-01-01"], "got 1"),
    ],
)
def test_what_is_not_a_time_is_named(labels, named):
    with pytest.raises(InputError, match=named):
        times(labels)


@pytest.mark.parametrize("period", ["7", "D7", ".D", "0D", "-1D", 7, "", "x"])
def test_periods_of_dates_are_lengths_of_time(period):
    with pytest.raises(InputError, match=r'such as "1D"'):
        times(DAYS, [period])


def test_periods_of_numbers_are_numbers():
    for period in ("7D", 0, -1, float("nan")):
        with pytest.raises(InputError, match="a number above 0"):
            times([1, 2, 3], [period])
    with pytest.raises(InputError, match="a list"):
        times(DAYS, "7D")


def test_new_times_are_of_the_fitted_kind():
    with pytest.raises(InputError, match="must be numbers, as at the fit, got '2024-01-01'"):
        times([1, 2, 3]).at(["2024-01-01"])
    with pytest.raises(InputError, match="must be dates, as at the fit, got"):
        times(DAYS).at([3])


@pytest.mark.parametrize(
    "labels", [[], [2023, 2024], ["a", "2024-05-01"], ["2024"], ["0815-12"], ["NaT"], [None]]
)
def test_other_labels_do_not_look_like_times(labels):
    assert not looks_like_times(labels)


def test_the_function_is_found_also_after_its_module():
    assert fr.features.times is times
    code = "import fillrank.features.times, fillrank as fr; fr.features.times([1, 2])"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LIMIT)


def test_the_package_itself_imports_no_features():
    code = "import sys, fillrank; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LIMIT)
