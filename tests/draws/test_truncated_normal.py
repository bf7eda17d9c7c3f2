"""Truncated normal draws: in the bulk, far in the tail, on slivers, and never outside."""

import math

import numpy as np
import pytest
from scipy import special

from fillrank.draws.truncated_normal import truncated_normal
from helpers.draw_many import ALARM, fill_truncated_normal, ks, new_stream, sample, z_test

INF = math.inf


def _cdf(x, mean, sd, low, high):
    """The exact cdf; in logarithms in the tails, so that it has all digits even at 1000 sd."""
    if mean > high:
        return 1.0 - _cdf(-x, -mean, sd, -high, -low)
    a, b, z = ((point - mean) / sd for point in (low, high, x))
    if a <= 0.0:
        return (special.ndtr(z) - special.ndtr(a)) / (special.ndtr(b) - special.ndtr(a))
    log_tail = special.log_ndtr(-a)
    return np.expm1(special.log_ndtr(-z) - log_tail) / np.expm1(special.log_ndtr(-b) - log_tail)


def _draws(*case):
    draws = sample(fill_truncated_normal, *case)
    _, _, low, high = case
    assert draws.min() >= low
    assert draws.max() <= high
    return draws


# (low, high) for N(0, 1): each branch, both sides of each switch between them.
INTERVALS = [
    (-INF, INF),
    (-1.0, INF),
    (0.0, INF),
    (0.44, INF),
    (0.46, INF),
    (2.0, INF),
    (8.0, INF),
    (38.0, INF),
    (1000.0, INF),
    (-0.5, 0.7),
    (-1.2, 1.3),
    (-1.3, 1.3),
    (-3.0, 2.0),
    (-0.001, 8.0),
    (0.0, 2.0),
    (0.0, 3.0),
    (0.3, 1.5),
    (0.3, 1.7),
    (0.6, 1.6),
    (0.6, 1.8),
    (3.0, 3.4),
    (3.0, 3.5),
    (3.0, 3.0001),
    (38.0, 38.03),
    (38.0, 38.05),
    (1000.0, 1000.001),
    (1000.0, 1000.01),
]


@pytest.mark.parametrize(("low", "high"), INTERVALS)
@pytest.mark.parametrize("mirrored", [False, True])
def test_distribution(low, high, mirrored):
    if mirrored:
        low, high = -high, -low
    case = (0.0, 1.0, low, high)
    assert ks(_draws(*case), lambda x: _cdf(x, *case)) > ALARM


@pytest.mark.parametrize(
    "case",
    [
        (5.0, 2.0, 4.0, 7.5),
        (-3.0, 0.01, -3.005, INF),
        (1e6, 1e3, -INF, 999_000.0),
        (-7.0, 1e-8, -7.0 + 2e-8, -7.0 + 1e-7),
        (2.0, 1e5, -INF, 1e5),
    ],
)
def test_distribution_at_other_means_and_scales(case):
    assert ks(_draws(*case), lambda x: _cdf(x, *case)) > ALARM


@pytest.mark.parametrize("distance", [38.0, 1e3, 1e10, 1e100])
def test_far_tail_is_exponential_and_has_all_digits(distance):
    # distance * (X - low) / sd is nearly Exp(1): the two distributions differ by less than 1 /
    # distance^2.
    right = _draws(-distance, 1.0, 0.0, INF)
    assert ks(distance * right, lambda t: -np.expm1(-t)) > ALARM
    left = _draws(3.0 * distance, 3.0, -INF, 0.0)
    assert ks(-distance * left / 3.0, lambda t: -np.expm1(-t)) > ALARM


@pytest.mark.parametrize(
    "case",
    [
        (0.0, 1.0, 0.0, 1e-12),
        (0.0, 1.0, -4e-13, 6e-13),
        (0.0, 1.0, 1.0, 1.0 + 1e-12),
        (-38.0, 1.0, 0.0, 1e-12),
        (1000.0, 1.0, -1e-12, 0.0),
        (0.0, 1e9, -3.0, 5.0),
        (7.0, 1e300, 2.0, 3.0),
        (0.0, 1e308, 1.0, 1.0 + 1e-12),
        (-7.0, INF, 2.0, 3.0),
    ],
)
def test_sliver_is_uniform(case):
    # Each density is flat to 1e-8. Near 1 a sliver has 4500 numbers: the steps do not show.
    _, _, low, high = case
    assert ks((_draws(*case) - low) / (high - low), lambda u: u) > ALARM


@pytest.mark.parametrize(("distance", "width"), [(1e12, 1e-12), (1e12, 3e-12), (1e150, 1e-150)])
def test_sliver_far_out_is_a_cut_exponential(distance, width):
    # Here the density falls by e or more over the sliver, though the sliver is 1e-12 sd wide.
    for draws in (
        _draws(-distance, 1.0, 0.0, width),
        -_draws(distance, 1.0, -width, 0.0),
    ):
        cut = np.expm1(-distance * width)
        assert ks(draws, lambda t, cut=cut: np.expm1(-distance * t) / cut) > ALARM


@pytest.mark.parametrize(
    ("low", "high"), [(-INF, INF), (0.0, INF), (1.0, INF), (-1.0, 2.0), (0.5, 1.0), (3.0, 9.0)]
)
def test_moments(low, high):
    draws = _draws(0.0, 1.0, low, high)
    mass = special.ndtr(high) - special.ndtr(low)
    edge = [np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi) for x in (low, high)]
    moment = [1.0, (edge[0] - edge[1]) / mass]
    for k in (2, 3, 4):
        # E X^k = (k - 1) E X^(k - 2) + (low^(k - 1) phi(low) - high^(k - 1) phi(high)) / mass
        ends = [x ** (k - 1) * e if e else 0.0 for x, e in zip((low, high), edge, strict=True)]
        moment.append((k - 1) * moment[k - 2] + (ends[0] - ends[1]) / mass)
    assert z_test(draws, moment[1], moment[2] - moment[1] ** 2) > ALARM
    assert z_test(draws**2, moment[2], moment[4] - moment[2] ** 2) > ALARM


@pytest.mark.parametrize("point", [-2.5, 0.0, 1e300])
def test_interval_of_one_point(point):
    assert np.all(_draws(0.0, 1.0, point, point) == point)


@pytest.mark.parametrize("sd", [5e-324, 1e-310, 1e-200])
def test_tiny_sd_gives_the_nearest_point(sd):
    assert np.all(_draws(0.0, sd, 1.0, 2.0) == 1.0)
    assert np.all(_draws(0.0, sd, 1.0, INF) == 1.0)
    assert np.all(_draws(0.0, sd, -2.0, -1.0) == -1.0)
    assert np.all(_draws(0.0, sd, -INF, -1.0) == -1.0)
    assert np.all(_draws(1.5, sd, 1.0, 2.0) == 1.5)
    assert np.all(_draws(1.5, sd, -INF, 2.0) == 1.5)
    assert np.all(_draws(1.0, sd, 1.0, 2.0) == 1.0)


def test_interval_of_two_numbers():
    # The next number above 1: whatever is drawn, only the two ends are left after rounding.
    high = np.nextafter(1.0, 2.0)
    for mean in (0.0, 1.0, 50.0):
        assert set(_draws(mean, 1.0, 1.0, high)) == {1.0, high}


def test_nan_comes_out_as_nan():
    for low, high in [(0.0, 1.0), (-INF, INF), (0.0, INF), (3.0, 3.1)]:
        assert math.isnan(truncated_normal(new_stream("nan"), math.nan, 1.0, low, high))
        assert math.isnan(truncated_normal(new_stream("nan"), 0.0, math.nan, low, high))
