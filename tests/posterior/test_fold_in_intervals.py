"""New rows of which some values are known by intervals, against their posterior on a grid.

Planted bugs are looked for with imprecise entries (weights below 1), from which the alternations alone
would find the posterior. From precise ones (weights of 6) they would not: `benchmarks/new_rows.py`.

A check has the rate of false alarms ALARM (``reference.p_values``). Planted bugs must be clear: a
p-value below 1e-9.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

import fillrank.posterior.fold_in as module
from fillrank.kernels import new_row_values, new_rows
from fillrank.posterior.fold_in import empirical_law, fold_in_rows
from fillrank.posterior.mean import mean_draw
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Draw, Noise
from fillrank.table.entries import Entries
from fillrank.table.latent import FAR
from reference.p_values import ALARM, cdf_values, ks_uniform
from reference.planted import plant, set_constants

# The ends of three levels under the draws, and of two intervals of the new row's own.
LEVELS = np.array([[-FAR, -0.5, 0.7], [-0.5, 0.7, FAR]])
OWN = np.array([[-FAR, 0.2], [0.4, 1.0]])
COLUMNS = np.array([0, 1, 2, 4, 5], np.int32)
CELLS = np.array([-1, 2, 0, 3, 4], np.int32)
VALUES = np.array([0.9, 2.5, -2.5, -1.5, 0.6])
WEIGHTS = np.array([0.5, 0.15, 0.3, 0.1, 1.0])
_GRID = np.linspace(-8.0, 8.0, 6001)


def _draw(unequal):
    """A draw with one factor."""
    rng = np.random.default_rng(3)
    left, right = rng.normal(0.3, 1.0, (40, 1)), rng.normal(0.2, 1.0, (6, 1))
    rows = rng.gamma(0.8, 0.1, 40) if unequal else np.ones(40)
    return Draw(left, right, Noise(0.4, rows, rng.gamma(3.0, 1.0 / 3.0, 6)), limits=LEVELS)


def _log_posterior(drawn, weights):
    """The logarithm of the density of the new row's coefficient on the grid."""
    mean, L = empirical_law(drawn.left)
    parts = []
    for a in module._quantiles(drawn.noise.rows):
        density = stats.norm.logpdf(_GRID, mean[0], L[0, 0])
        for j, cell, value, weight in zip(COLUMNS, CELLS, VALUES, weights, strict=True):
            sd = np.sqrt(drawn.noise.variance / (drawn.noise.columns[j] * weight * a))
            z = _GRID * drawn.right[j, 0]
            if cell < 0:
                density = density + stats.norm.logpdf(value, z, sd)
            else:
                low, high = np.hstack([LEVELS, OWN])[:, cell]
                density = density + np.log(ndtr((high - z) / sd) - ndtr((low - z) / sd) + 1e-300)
        parts.append(density)
    return np.logaddexp.reduce(parts, axis=0)


def _p_value(unequal, weights=WEIGHTS, n=8000):
    """Of n draws of the coefficient, each from its own random numbers."""
    drawn = _draw(unequal)
    entries = Entries(np.array([0, 5]), COLUMNS, VALUES, weights, CELLS)
    draws = [drawn] * n
    # The first intervals are those of the draws, whatever those of the row say.
    limits = np.hstack([np.zeros((2, 3)), OWN])
    folded, _ = module.fold_in_rows(draws, mean_draw(draws[:3]), entries, Workers(1), limits=limits)
    found = np.array([each.left[0, 0] for each in folded])
    return ks_uniform(cdf_values(found, _GRID, _log_posterior(drawn, weights)))


@pytest.mark.parametrize("weights", [WEIGHTS, np.full(5, 6.0)], ids=["imprecise", "precise"])
@pytest.mark.parametrize("unequal", [False, True])
def test_coefficients_have_their_posterior(unequal, weights):
    assert _p_value(unequal, weights) > ALARM


def test_the_values_in_intervals_hardly_matter():
    """Only where the alternations start: two starts that are far apart have similar means."""
    drawn, means = _draw(False), []
    for shift in (0.0, 1.0):
        values = np.where(CELLS < 0, VALUES, VALUES + shift)
        entries = Entries(np.array([0, 5]), COLUMNS, values, WEIGHTS, CELLS)
        draws = [drawn] * 2000
        limits = np.hstack([LEVELS, OWN])
        folded, _ = fold_in_rows(draws, mean_draw(draws[:3]), entries, Workers(1), limits=limits)
        means.append(np.array([each.left[0, 0] for each in folded]))
    error = np.sqrt(sum(each.var() for each in means) / 2000)
    assert abs(means[0].mean() - means[1].mean()) < stats.norm.isf(ALARM / 2) * error


BUGS = {
    "weights forgotten": (
        "find_ends", "math.sqrt(entries.weights[first + t]) if entries.weights.size", "1.0 if True"
    ),
    "noise of one column for all": (
        "find_ends", "regression.noise_sd[j]", "regression.noise_sd[0]"
    ),
    "without the row's precision": ("draw_values_of_row", "1.0 / math.sqrt(precision)", "1.0"),
    "values of the start": ("draw_values_of_row", "tile[k, t] = truncated", "_ = truncated"),
    "the row's ends for those of the draw": (
        "_regression", "np.hstack([draw.limits, limits[:, own:]])", "limits + 0.0 * own"
    ),
}  # fmt: skip
# Where these functions are, and what calls them there.
_PLACES = {
    "find_ends": (new_row_values, ()),
    "draw_values_of_row": (new_row_values, ("start_values",)),
    "_regression": (module, ()),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    function, old, new = BUGS[name]
    place, users = _PLACES[function]
    plant(monkeypatch, place, function, old, new, users, into=(new_rows,))
    set_constants(monkeypatch, new_rows, {}, users=("regress_rows",))  # compiled again
    monkeypatch.setattr(module, "regress_rows", new_rows.regress_rows)
    assert _p_value(unequal="precision" in name) < 1e-9
