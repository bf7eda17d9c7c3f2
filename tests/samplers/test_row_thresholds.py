"""Thresholds that differ by row: their posterior by brute force, Geweke's joint test, planted bugs.

A check has the rate of false alarms ALARM (``reference.p_values``), shared among its p-values or scores.
Planted bugs must be clear: a p-value below 1e-9, or |z| > 6.
"""

import numpy as np
import pytest
from scipy.special import ndtr

from fillrank.draws.streams import ROW_ENTRIES, Address, chain_key
from fillrank.kernels import row_thresholds
from fillrank.kernels.gaussian_rows import RowNoise
from fillrank.kernels.row_thresholds import ThresholdPrior
from fillrank.runtime import threads
from fillrank.runtime.threads import Workers
from fillrank.samplers import threshold_steps
from fillrank.samplers.model import Data
from fillrank.samplers.threshold_steps import EVERY, Intervals, RowThresholds
from fillrank.table.entries import compress
from fillrank.table.latent import FAR
from reference.geweke import worst
from reference.p_values import ALARM, cdf_values, ks_uniform, limit_of
from reference.planted import plant
from reference.row_threshold_geweke import NAMES, row_threshold_scores

_MEANS, _VARIANCES = np.array([-0.7, 0.6]), np.array([0.2, 0.4])
_KEY = chain_key(3, 0)


class Problem:
    """A table of three levels with given signals; all rows but the last have entries."""

    def __init__(self, m=4, n=9):
        rng = np.random.default_rng(2)
        self.own, self.other = rng.standard_normal((m, 2)), rng.standard_normal((n, 2))
        Z = self.own @ self.other.T
        levels = rng.integers(0, 3, (m, n)).astype(np.int32)
        weights = rng.uniform(0.5, 2.0, (m, n))
        i, j = np.nonzero(rng.random((m, n)) < 0.7)
        i, j = i[i < m - 1], j[i < m - 1]
        rows = compress(m, i, j, np.zeros(i.size), weights[i, j], levels[i, j])
        self.data = Data(rows, rows)
        variances, roots = rng.uniform(0.3, 1.0, m), rng.uniform(0.7, 1.4, n)
        self.noise = RowNoise(variances, roots, np.inf, ROW_ENTRIES)
        self.sd = np.sqrt(variances[i] / weights[i, j]) / roots[j]
        self.i, self.z, self.levels = i, Z[i, j], levels[i, j]
        self.prior = ThresholdPrior(_MEANS, _VARIANCES)
        self.start = RowThresholds(np.tile([-FAR, *_MEANS, FAR], (m, 1)), _VARIANCES)
        self.limits = np.array([[-FAR, *_MEANS], [*_MEANS, FAR]])

    def draw(self, current, sweep, workers, limits=None):
        """(limits, thresholds of rows) after a step."""
        return threshold_steps.draw_row_thresholds(
            self.limits if limits is None else limits, current, self.data, (self.own, self.other),
            self.noise, Address(_KEY, sweep, 0), workers,
        )  # fmt: skip

    def log_posterior(self, i, first, second):
        """Of the thresholds of row i, on arrays."""
        total = -0.5 * (first - _MEANS[0]) ** 2 / _VARIANCES[0]
        total = total - 0.5 * (second - _MEANS[1]) ** 2 / _VARIANCES[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            for t in np.flatnonzero(self.i == i):
                ends = [-np.inf, first, second, np.inf]
                low, high = ends[self.levels[t]], ends[self.levels[t] + 1]
                z, s = self.z[t], self.sd[t]
                total = total + np.log(ndtr((high - z) / s) - ndtr((low - z) / s))
        return np.where(first < second, np.nan_to_num(total, nan=-np.inf), -np.inf)


def conditional_p_values(n=1500, apart=4):
    """Chains of the rows' thresholds alone, with their prior given: marginals against a grid."""
    problem, drawn = Problem(), []
    ends = problem.start.ends.copy()
    with pytest.MonkeyPatch.context() as patch, Workers(1) as workers:
        patch.setattr(threshold_steps, "_draw_prior", lambda prior, ends, address: prior)
        current = problem.start._replace(ends=ends)
        for t in range(apart * n):
            current = problem.draw(current, EVERY * t, workers)[1]
            drawn.append(current.ends[:, 1:-1])
    drawn = np.array(drawn)[apart - 1 :: apart]
    grid = np.linspace(-4.0, 4.0, 321)
    first, second = np.meshgrid(grid, grid, indexing="ij")
    found = {}
    for i in range(len(ends)):
        density = problem.log_posterior(i, first, second)
        density = np.exp(density - density.max())
        for c in range(2):
            with np.errstate(divide="ignore"):
                marginal = np.log(density.sum(axis=1 - c))
            found[f"row {i}, {c}"] = ks_uniform(cdf_values(drawn[:, i, c], grid, marginal))
    return found


def test_thresholds_of_rows_given_signals():
    found = conditional_p_values()
    assert min(found.values()) > ALARM / len(found), found


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        ("_log_density", "deviation / prior.variances[c]", "deviation"),
        ("_prepare", "end = low if t < between else high", "end = low"),
        ("draw_thresholds_of_rows", "precision_of(entries, noise, i, t)", "1.0"),
        ("sort_by_level", "= precisions[t]", "= precisions[0]"),
    ],
)
def test_a_planted_bug_in_the_kernel_is_caught(monkeypatch, function, old, new):
    users = ("_slice_step", "draw_thresholds_of_row", "draw_thresholds_of_rows")
    plant(monkeypatch, row_thresholds, function, old, new, users=users, into=(threshold_steps,))
    found = conditional_p_values(n=400)
    assert min(found.values()) < 1e-9, found


@pytest.mark.parametrize("n_threads", [2, 4])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, n_threads):
    monkeypatch.setattr(threads, "_SMALLEST_SHARE", 0)
    problem, found = Problem(m=60, n=20), []
    for n in (1, n_threads):
        current, limits = problem.start, problem.limits
        with Workers(n) as workers:
            for t in range(3):
                limits, current = problem.draw(current, EVERY * t, workers, limits)
        found.append(current)
    np.testing.assert_array_equal(found[0].ends, found[1].ends)
    np.testing.assert_array_equal(found[0].variances, found[1].variances)
    assert (found[0].ends[:, 1:-1] != _MEANS).all()


def test_thresholds_in_the_far_tails_stay_in_their_order():
    """A row whose signals contradict its levels: probabilities underflow."""
    problem = Problem()
    problem.own *= 200.0
    current = problem.start
    with Workers(1) as workers:
        for t in range(50):
            current = problem.draw(current, EVERY * t, workers)[1]
            assert np.isfinite(current.ends).all()
            assert (np.diff(current.ends, axis=1) > 0).all()


def test_files_with_other_thresholds_are_refused():
    intervals = Intervals(np.array([[-FAR, *_MEANS], [*_MEANS, FAR]]), by_row=True)
    good = intervals.first_row_thresholds(3)
    is_valid = threshold_steps.are_valid_row_thresholds
    assert is_valid(good, intervals, 3)
    assert not is_valid(good, intervals, 4)
    assert not is_valid(good, Intervals(intervals.limits), 3)
    assert not is_valid(good._replace(ends=good.ends[:, ::-1].copy()), intervals, 3)
    assert not is_valid(good._replace(variances=-good.variances), intervals, 3)
    assert not is_valid(good._replace(variances=good.variances[:1]), intervals, 3)


@pytest.mark.parametrize("name", NAMES)
def test_geweke(name):
    scores = row_threshold_scores(name, n_chains=250, length=10)
    found, size = worst(scores)
    assert size < limit_of(len(scores)), f"{found}: z = {size:.1f}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_geweke_long_chains(name):
    scores = row_threshold_scores(name, n_chains=400, length=120, seed=1)
    found, size = worst(scores)
    assert size < limit_of(len(scores)), f"{found}: z = {size:.1f}"


BUGS = {
    "variances of twice as many rows": (
        "_draw_prior", "variances[c], m, square)", "variances[c], 3 * m, square)"
    ),
    "the first mean drawn": ("_draw_prior", "if 0 < c < last:", "if c < last:"),
    "means with the variance of one row": ("_draw_prior", "variances[c] / m", "variances[c]"),
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[] if "first" in each else [pytest.mark.slow]) for each in BUGS],
)
def test_geweke_catches(monkeypatch, name):
    function, old, new = BUGS[name]
    plant(monkeypatch, threshold_steps, function, old, new)
    scores = row_threshold_scores("BPMF", n_chains=250, length=20)
    assert worst(scores)[1] > 6.0, worst(scores)


@pytest.mark.slow
def test_geweke_catches_thresholds_of_the_wrong_side(monkeypatch):
    """Thresholds of rows taken as those of columns, in the half-sweep of the columns."""
    monkeypatch.setattr(
        RowThresholds, "of_columns", lambda self, noise: noise._replace(thresholds=self.ends)
    )
    scores = row_threshold_scores("BPMF", n_chains=400, length=60)
    assert worst(scores)[1] > 6.0, worst(scores)
