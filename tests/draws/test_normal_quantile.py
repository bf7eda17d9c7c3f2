"""The quantile of the normal distribution, and draws in an interval from one uniform number."""

import numpy as np
import pytest
from numba import njit
from scipy import special, stats

from fillrank.draws import normal_quantile as module
from fillrank.draws.normal_quantile import normal_quantile
from fillrank.draws.streams import row_bits
from helpers.draw_many import ALARM, N, ks, new_stream
from reference.planted import plant

FAR = 1e6  # stands for infinity where values are drawn
_WIDTH = 16  # entries of a row


@pytest.mark.parametrize(
    "p",
    [
        np.linspace(0.001, 0.999, 9_999),
        np.geomspace(1e-300, 0.1, 5_000),
        1.0 - np.geomspace(1e-15, 0.1, 5_000),
        0.5 + np.geomspace(1e-12, 1e-3, 100),
        0.5 + np.array([-1.0, 1.0]) * 0.425,
    ],
    ids=["centre", "lower tail", "upper tail", "near 0", "where the formulas meet"],
)
def test_quantile(p):
    found = np.array([normal_quantile(each) for each in p])
    np.testing.assert_allclose(found, special.ndtri(p), rtol=1e-14)


def test_median():
    assert normal_quantile(0.5) == 0.0


def _filler():
    """Draws as kernels make them: a row of bits at a time. The function is taken when this is called."""
    draw = module.normal_in_interval

    @njit
    def fill(stream, out, low, high):
        bits = np.empty(_WIDTH, dtype=np.uint64)
        for row in range(out.size // _WIDTH):
            row_bits(stream, row, bits)
            for t in range(_WIDTH):
                out[_WIDTH * row + t] = draw(bits[t], low, high, stream, row, t)

    return fill


_fill = _filler()


def _draws(low, high, fill=_fill, n=N):
    out = np.empty(n)
    fill(new_stream(low, high), out, low, high)
    return out


# Inside, in both tails, narrow and one-sided; and both sides of each switch between two formulas.
INTERVALS = [
    (-FAR, FAR),
    (-0.5, 0.7),
    (-3.0, 1.0),
    (-1.0, 1.0),
    (0.2, 0.9),
    (-FAR, 0.0),
    (-FAR, 1.5),
    (-FAR, -4.0),
    (-FAR, -6.0),
    (-FAR, -6.3),
    (-FAR, -8.0),
    (-8.5, -8.0),
    (-FAR, -30.0),
    (-30.01, -30.0),
    (-FAR, -36.9),
    (-FAR, -37.2),
    (-FAR, -100.0),
    (-5e-8, 5e-8),
    (1.3, 1.3 + 1e-7),
    (1.3, 1.3 + 1e-5),
    (8.0, 8.0 + 1e-7),
    (-2.0, -2.0 + 4e-7),
]


def _place(x, low, high):
    """The exact distribution function; measured from the nearer end, which has all digits."""
    if low + high > 0.0:
        return 1.0 - _place(-x, -high, -low)
    below, above, at = (special.log_ndtr(each) for each in (low, high, x))
    if high - low < 1e-4 and high > -10.0:  # the density is nearly linear
        slope = -0.5 * (low + high)
        u = (x - low) / (high - low)
        return u + 0.5 * slope * (high - low) * (u**2 - u)
    return np.exp(at - above) * np.expm1(below - at) / np.expm1(below - above)


@pytest.mark.parametrize(("low", "high"), INTERVALS)
@pytest.mark.parametrize("mirrored", [False, True])
def test_distribution_in_an_interval(low, high, mirrored):
    if mirrored:
        low, high = -high, -low
    draws = _draws(low, high)
    assert draws.min() >= low
    assert draws.max() <= high
    assert ks(draws, lambda x: _place(x, low, high)) > ALARM


@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.7), (-3.0, 1.0), (0.2, 0.9), (-8.5, -8.0)])
def test_distribution_against_scipy(low, high):
    assert ks(_draws(low, high), stats.truncnorm(low, high).cdf) > ALARM


@pytest.mark.parametrize("end", [-3.0, -6.0, -6.3, -20.0])
def test_no_draw_repeats_in_a_tail(end):
    """A draw has 52 random bits, so that equal ones do not occur."""
    assert np.unique(_draws(-FAR, end)).size == N


@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.7), (-FAR, -100.0), (1.3, 1.3 + 1e-7)])
def test_the_same_address_has_the_same_bits(low, high):
    """The stream's own position does not matter, nor what was drawn before."""
    bits = np.empty(_WIDTH, dtype=np.uint64)
    stream, moved = new_stream("address"), new_stream("address")
    row_bits(stream, 7, bits)
    forth = [module.normal_in_interval(bits[t], low, high, stream, 7, t) for t in range(_WIDTH)]
    back = [
        module.normal_in_interval(bits[t], low, high, moved, 7, t) for t in reversed(range(_WIDTH))
    ]
    assert forth == back[::-1]
    assert len(set(forth)) == _WIDTH


BUGS = {
    "a mass of draws at the smallest probability": ("* width, _SMALLEST)", "* width, 1e-10)", -6.0),
    "the lower end forgotten": ("below + to_unit(bits) * width", "to_unit(bits) * above", -0.1),
    "not turned back": ("return -x if a + b > 0.0 else x", "return min(max(x, a), b)", 0.3),
    "uniform": ("x = normal_quantile(p)", "x = low + to_unit(bits) * (high - low)", -0.1),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    old, new, end = BUGS[name]
    low, high = (-FAR, end) if end < -1.0 else (end, 1.2)
    plant(monkeypatch, module, "normal_in_interval", old, new)
    assert ks(_draws(low, high, _filler()), lambda x: _place(x, low, high)) < 1e-9
