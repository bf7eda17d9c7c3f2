"""The half-sweep with other laws of the noise of an entry: rows against their posterior on a grid.

Rows with the same entries start at exact draws of their posterior, and one half-sweep must lead to it.
A check has the rate of false alarms ALARM (``reference.p_values``), shared among its p-values.
"""

from typing import NamedTuple

import numpy as np
import pytest

from fillrank.draws.streams import ROW_ENTRIES, ROWS, Address, chain_key
from fillrank.kernels.entry_laws import register_levels, register_numbers
from fillrank.kernels.gaussian_rows import NO_LIMITS, Prior, RowNoise
from fillrank.noise import laplace, logistic
from fillrank.noise.laws import LAWS
from fillrank.noise.two_level_hinge import MARGIN, PENALTY
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import draw_one_by_one
from fillrank.table.entries import NO_CELLS, NO_WEIGHTS, Entries
from fillrank.table.latent import FAR
from reference.p_values import ALARM, ks_uniform
from reference.planted import _disable_cache

NAMES = [name for name in LAWS if name != "gaussian"]
ADDRESS = Address(chain_key(3, 0), 2, ROWS)
THRESHOLD = 0.4
LEVELS = np.array([[-FAR, THRESHOLD], [THRESHOLD, FAR]])
PRIOR = Prior(np.arange(2), np.array([0.5, -0.3]), np.array([0.6, 0.9]))
FACTORS = np.array([[1.0, 0.2], [-0.7, 1.1], [0.4, -1.5], [1.3, 0.8], [0.1, -0.6]])
VALUES = np.array([0.8, -1.9, 0.3, 4.0, -0.2])
CODES = np.array([1, 0, 0, 1, 1])
WEIGHTS = np.array([0.4, 1.0, 2.5, 1.0, 0.7])
PRECISIONS = np.array([0.5, 1.0, 2.0, 0.8, 1.4])  # of columns
VARIANCE = 0.7
GRID = np.linspace(-8.0, 8.0, 401)


class Rows(NamedTuple):
    """Equal rows, the other side's factors, and the noise."""

    entries: Entries
    other: np.ndarray
    noise: RowNoise


def _equal_rows(name, n, dtype=np.float64):
    law, size = LAWS[name], VALUES.size
    indices = np.tile(np.arange(size, dtype=np.int32), n)
    values, weights, cells = np.tile(VALUES.astype(dtype), n), NO_WEIGHTS.astype(dtype), NO_CELLS
    noise = RowNoise(np.ones(n), np.zeros(0), np.inf, ROW_ENTRIES, NO_LIMITS, law.compiled)
    if law.of_levels:
        cells = np.tile(CODES.astype(np.int32), n)
        noise = noise._replace(limits=LEVELS)
    else:
        weights = np.tile(WEIGHTS.astype(dtype), n)
        noise = noise._replace(variances=np.full(n, VARIANCE), roots=np.sqrt(PRECISIONS))
    entries = Entries(np.arange(n + 1) * size, indices, values, weights, cells)
    return Rows(entries, FACTORS.astype(dtype), noise)


def _log_posterior(name):
    """On the grid of both coefficients."""
    c = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1)
    z = c @ FACTORS.T
    if name == "laplace":
        scale = np.sqrt(VARIANCE / (WEIGHTS * PRECISIONS))
        terms = -np.abs(VALUES - z) / scale
    else:
        t = np.where(CODES == 1, 1.0, -1.0) * (z - THRESHOLD)
        hinge = -PENALTY * np.maximum(0.0, MARGIN - t)
        terms = hinge if name == "hinge" else -np.logaddexp(0.0, -t)
    prior = -0.5 * np.sum(PRIOR.precision * (c - PRIOR.mean) ** 2, axis=-1)
    return prior + terms.sum(axis=-1)


def _exact_draws(name, rng, n):
    """Draws of both coefficients: a cell of the grid, and a place in it."""
    probability = np.exp(_log_posterior(name) - _log_posterior(name).max()).ravel()
    chosen = rng.choice(probability.size, n, p=probability / probability.sum())
    step = GRID[1] - GRID[0]
    places = np.stack(np.unravel_index(chosen, (GRID.size, GRID.size)), axis=1)
    return GRID[places] + step * rng.uniform(-0.5, 0.5, (n, 2))


def _p_values(name, n=12_000, law=None):
    """Of both coefficients and of their sum, after one half-sweep."""
    rng = np.random.default_rng(5)
    rows = _equal_rows(name, n)
    noise = rows.noise if law is None else rows.noise._replace(law=law)
    own, reference = _exact_draws(name, rng, n), _exact_draws(name, rng, 40 * n)
    before = own.copy()
    draw_one_by_one(rows.entries, own, rows.other, PRIOR, noise, ADDRESS, Workers(1))
    assert np.corrcoef(before[:, 0], own[:, 0])[0, 1] < 0.95
    out = []
    for combination in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0)):
        known = np.sort(reference @ combination)
        out.append(ks_uniform(np.searchsorted(known, own @ combination) / known.size))
    return out


@pytest.mark.parametrize("name", NAMES)
def test_a_half_sweep_leaves_the_posterior_of_rows_invariant(name):
    assert min(_p_values(name)) > ALARM / 3


class WrongWeight(NamedTuple):
    """Laplace noise whose weights do not know the residuals' unit."""

    is_mixture: bool = True
    of_levels: bool = False


class WrongWorking(NamedTuple):
    """Levels whose responses are on the wrong side."""

    is_mixture: bool = False
    of_levels: bool = True


@pytest.mark.parametrize("name", ["laplace", "logistic"])
def test_a_wrong_law_is_caught(monkeypatch, name):
    """A law is all that a kernel is compiled for: another class is another kernel."""
    _disable_cache(monkeypatch)
    right_weight, right_working = laplace.laplace_weight, logistic.logistic_working

    @laplace.njit
    def weight(law, degrees, square, stream):
        return right_weight(law, degrees, 4.0 * square, stream)

    @laplace.njit
    def working(law, margin, stream):
        w, above = right_working(law, -margin, stream)
        return w, above

    register_numbers(WrongWeight, weight, laplace._distribution)
    register_levels(WrongWorking, working)
    wrong = WrongWeight() if name == "laplace" else WrongWorking()
    assert min(_p_values(name, law=wrong)) < 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_for_any_ranges_of_rows(name):
    rows = _equal_rows(name, 50, np.float32)
    start = np.random.default_rng(1).normal(size=(50, 2)).astype(np.float32)
    drawn = []
    for workers in (Workers(1), Workers(3)):
        own = start.copy()
        draw_one_by_one(rows.entries, own, rows.other, PRIOR, rows.noise, ADDRESS, workers)
        drawn.append(own)
    whole = start.copy()
    for first, last in ((31, 50), (0, 31)):
        part = Entries(rows.entries.pointers[first : last + 1], *rows.entries[1:])
        noise = rows.noise._replace(variances=rows.noise.variances[first:last])
        own = whole[first:last].copy()
        where = ADDRESS._replace(first_row=first)
        draw_one_by_one(part, own, rows.other, PRIOR, noise, where, Workers(1))
        whole[first:last] = own
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[0], whole)
    assert np.isfinite(whole).all()


@pytest.mark.parametrize("name", NAMES)
def test_single_precision_differs_by_rounding_only(name):
    start = np.random.default_rng(2).normal(size=(200, 2)).astype(np.float32)
    drawn = []
    for dtype in (np.float32, np.float64):
        rows, own = _equal_rows(name, 200, dtype), start.astype(dtype)
        draw_one_by_one(rows.entries, own, rows.other, PRIOR, rows.noise, ADDRESS, Workers(1))
        drawn.append(own)
    assert np.median(np.abs(drawn[0] - drawn[1])) < 1e-5
