"""Coefficients of a row whose values are known by intervals: their approximation, and steps from it.

A check of draws has the rate of false alarms ALARM (``reference.p_values``). Planted bugs must be clear:
a p-value below 1e-9.
"""

import numpy as np
import pytest
from numba import njit
from scipy import integrate, stats

import fillrank.kernels.interval_rows as module
from fillrank.draws.streams import chain_key, seek, start_stream
from fillrank.kernels.interval_rows import truncated_moments, update_sites
from reference.p_values import ALARM, cdf_values, ks_uniform
from reference.planted import plant

# One coefficient: a known value, and intervals with one end and with two.
TILE = np.array([[1.2, -0.8, 2.0, 0.7], [0.3, 0.0, 0.0, 0.0]])
ENDS = np.array([[np.nan, -1e6, 0.5, -0.2], [np.nan, 0.4, 1e6, 1.5]])
PRECISION = 3.0
# An approximation that is off in its mean and its standard deviation: R, and R times the mean.
SYSTEM = np.array([[1.5], [0.3]])
_GRID = np.linspace(-6.0, 6.0, 4001)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1e6, 0.3), (-0.5, 2.0), (1.0, 1e6), (7.5, 9.0), (-1e6, 1e6), (0.4, 0.40001), (20.0, 1e6)],
)
def test_moments_in_an_interval(low, high):
    ends = np.clip([low, high], -30, 30)
    top = np.clip(0.0, *ends)
    density = lambda x: np.exp(0.5 * (top**2 - x**2))  # noqa: E731
    near = np.clip([top - 8, top + 8], *ends)
    mass, first, second = (
        integrate.quad(lambda x, p=p: (x - top) ** p * density(x), *near, epsabs=0)[0]
        for p in range(3)
    )
    mean, variance = truncated_moments(low, high)
    assert mean == pytest.approx(top + first / mass, rel=1e-6, abs=1e-9)
    assert variance == pytest.approx(second / mass - (first / mass) ** 2, rel=2e-3)


def test_moments_far_from_the_mean_stay_in_the_interval():
    for low, high in ((40.0, 41.0), (40.0, 1e6), (-1e6, -200.0), (1e5, 1e5 + 1e-9)):
        mean, variance = truncated_moments(low, high)
        assert low <= mean <= high
        assert 0 < variance < 1e-2


def _log_density(grid):
    density = stats.norm.logpdf(grid)
    sd = 1 / np.sqrt(PRECISION)
    for g, y, low, high in zip(*TILE, *ENDS, strict=True):
        if np.isnan(low):
            density = density + stats.norm.logpdf(y, g * grid, sd)
        else:
            mass = stats.norm.cdf(high, g * grid, sd) - stats.norm.cdf(low, g * grid, sd)
            density = density + np.log(mass + 1e-300)
    return density


def _system(sites):
    """The factor of the precision of the only coefficient, and its inverse times h."""
    precision = 1 + np.sum(sites[1] * TILE[0] ** 2)
    root = np.sqrt(precision)
    return np.array([[root], [np.sum(sites[1] * TILE[0] * sites[0]) / root]])


def test_the_approximation_has_the_mean_and_the_variance_of_the_posterior():
    """Expectation propagation is accurate for such a density, though not exact."""
    known = np.isnan(ENDS[0])
    sites = np.array([TILE[1], np.where(known, PRECISION, 0.0)])
    for _ in range(20):
        update_sites(TILE, 4, ENDS, PRECISION, _system(sites), sites, np.empty(1))
    root, half = _system(sites).ravel()
    weights = np.exp(_log_density(_GRID))
    weights /= weights.sum()
    mean = weights @ _GRID
    sd = np.sqrt(weights @ (_GRID - mean) ** 2)
    assert half / root == pytest.approx(mean, abs=0.02 * sd)
    assert 1 / root == pytest.approx(sd, rel=0.03)
    np.testing.assert_array_equal(sites[:, known], [TILE[1, known], [PRECISION]])


def _p_value(n=6000, apart=5):
    """Of draws that are some steps apart, from an approximation that is off."""

    @njit
    def run(key, tile, ends, system, out):
        w = np.zeros(1)
        stream = start_stream(key, 0, 0)
        for i in range(out.size):
            for step in range(apart):
                seek(stream, i, step)
                module_step(tile, 4, ends, PRECISION, system, w, stream)
            out[i] = w[0]

    module_step, out = module.slice_coefficients, np.empty(n)
    run(chain_key(1, 0), TILE, ENDS, SYSTEM, out)
    return ks_uniform(cdf_values(out[50:], _GRID, _log_density(_GRID)))


def test_steps_leave_the_posterior_invariant():
    assert _p_value() > ALARM


BUGS = {
    "without the prior": ("_log_ratio", "norms[1] - norms[0]", "norms[1]"),
    "without the approximation": ("_log_ratio", "norms[1] - norms[0]", "-norms[0]"),
    "known values forgotten": ("_log_ratio", "total -= 0.5", "total -= 0.0"),
    "intervals without the precision": ("_log_ratio", "math.sqrt(precision)", "1.0"),
    "not from the start": (
        "slice_coefficients", "point[a] = w[a] - centre[a]", "point[a] = -centre[a]"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    function, old, new = BUGS[name]
    users = ("slice_coefficients",) if function == "_log_ratio" else ()
    plant(monkeypatch, module, function, old, new, users=users)
    assert _p_value() < 1e-9
