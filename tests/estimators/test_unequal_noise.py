"""Fits of tables whose columns have unlike noise and unlike units.

The tables are generated with fixed seeds. Bounds are at least 1.5 times the largest value over four
other seeds, so that a new seed seldom fails.
"""

import warnings

import numpy as np
import pytest

import fillrank as fr
from fillrank.runtime.threads import Workers
from fillrank.samplers.gasr import Options
from fillrank.samplers.model import Data
from fillrank.solvers.starts import column_noise_start
from fillrank.table.units import column_units, standardise

_SHORT = {"n_chains": 1, "n_threads": 1, "random_state": 0, "progress": False}


def _fit(model, X, **arguments):
    """Fit, whatever it says of the length of its run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        return model.fit(X, **arguments)


def _filled(X, units="columns", weights=None, **settings):
    """All cells after a fit, with columns in their own units."""
    model = fr.GASR(units=units, **(_SHORT | settings))
    _fit(model, X, **({} if weights is None else {"weights": weights}))
    rows, columns = np.indices(X.shape)
    return np.asarray(model.predict(rows.ravel(), columns.ravel())).reshape(X.shape)


# 100 nearly exact columns beside three noisy ones


class Trap:
    """Six factors, 300 rows; 100 columns with noise of 1%, three with as much noise as signal."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        Z = rng.standard_normal((300, 6)) @ rng.standard_normal((6, 103))
        self.truth = (Z - Z.mean(axis=0)) / Z.std(axis=0)
        self.noise = np.append(np.full(100, 0.01), np.ones(3))
        self.X = self.truth + self.noise * rng.standard_normal(Z.shape)
        self.hidden = rng.random(Z.shape) < 0.3
        self.table = np.where(self.hidden, np.nan, self.X)

    def errors(self, filled):
        """Root mean squared errors of the hidden signal by column."""
        square = np.where(self.hidden, (filled - self.truth) ** 2, np.nan)
        return np.sqrt(np.nanmean(square, axis=0))


def test_start_estimates_the_noise_of_each_column():
    trap = Trap()
    observations = fr.Observations.from_matrix(trap.table)
    units = column_units(observations, None, False)
    data = Data(*standardise(observations, units, np.dtype("float64")))
    options = Options(row_effects=False, column_effects=True, centres=True)
    with Workers(1) as workers:
        start = column_noise_start(data, None, options, workers, np.random.default_rng(0))
    estimated = np.sqrt(start.noise_variance / start.column_precisions)
    ratio = estimated / (trap.noise / units.scale)
    assert np.all((ratio > 0.5) & (ratio < 2.0)), (ratio.min(), ratio.max())
    assert start.max_rank == 102


def test_nearly_exact_columns_beside_noisy_ones():
    """Errors of noisy columns, as shares of those of the column means: 0.10 to 0.24 over four seeds."""
    nearly_exact, noisy = _trap_errors()
    assert nearly_exact.max() < 0.02
    assert noisy.max() < 0.4, noisy


def test_one_noise_variance_for_all_columns_is_caught():
    _, noisy = _trap_errors(noise="one")
    assert noisy.min() > 0.4, noisy


def _trap_errors(**settings):
    trap = Trap()
    errors = trap.errors(_filled(trap.table, n_sweeps=200, burn_in=100, **settings))
    means = trap.errors(np.broadcast_to(np.nanmean(trap.table, axis=0), trap.table.shape))
    return errors[:100], errors[100:] / means[100:]


# A column of noise alone


def test_a_column_of_noise_is_filled_with_its_mean():
    """Its predictions vary by less than a quarter of its standard deviation; those of others do not.

    Over four seeds by 0.07 to 0.15, and those of another column by 0.82 to 1.01.
    """
    rng = np.random.default_rng(1)
    X = rng.standard_normal((150, 2)) @ rng.standard_normal((2, 12))
    X += 0.2 * rng.standard_normal(X.shape)
    X[:, 5] = 40.0 + 3.0 * rng.standard_normal(150)
    X[rng.random(X.shape) < 0.25] = np.nan
    filled = _filled(X, n_sweeps=200)
    hidden = np.isnan(X)
    assert np.std(filled[hidden[:, 5], 5]) < 0.25 * np.nanstd(X[:, 5])
    assert abs(filled[hidden[:, 5], 5].mean() - np.nanmean(X[:, 5])) < 0.5 * np.nanstd(X[:, 5])
    assert np.std(filled[hidden[:, 4], 4]) > 0.5 * np.nanstd(X[:, 4])


# Units of columns


def _plain_table(seed=2, shape=(60, 9)):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    X += 0.3 * rng.standard_normal(X.shape)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


@pytest.mark.parametrize("noise", ["columns", "both", "one"])
def test_units_of_a_column_do_not_matter(noise):
    """1,000 times a column plus a million: that column in its new units, and all others as before.

    The values in standard units are rounded by 1e-13 then (1e6 in float64, by 1e3), which a chain may
    amplify.
    """
    X = _plain_table()
    scaled = X.copy()
    scaled[:, 3] = 1e6 + 1e3 * X[:, 3]
    settings = {"n_sweeps": 30, "dtype": "float64", "noise": noise, "max_rank": 3}
    one, other = _filled(X, **settings), _filled(scaled, **settings)
    other[:, 3] = (other[:, 3] - 1e6) / 1e3
    np.testing.assert_allclose(one, other, atol=1e-9)


# Weights


def test_equal_weights_do_not_matter():
    """They are relative: weight 4 on all entries is one on all, with four times the noise variance.

    The noise variance has its prior in standard units, so predictions agree up to its influence and
    Monte Carlo errors: 0.01 to 0.04 over four seeds, as with another seed of the chain.
    """
    X = _plain_table()
    weights = np.where(np.isnan(X), np.nan, 4.0)
    one = _filled(X, n_sweeps=400)
    four = _filled(X, n_sweeps=400, weights=weights)
    assert np.sqrt(np.mean((one - four) ** 2)) < 0.1


def test_entries_of_little_weight_are_of_little_influence():
    """A tenth of the entries are wrong, by 10 standard deviations, with weights of one in a million."""
    X = _plain_table(seed=3)
    wrong = (np.random.default_rng(4).random(X.shape) < 0.1) & ~np.isnan(X)
    spoilt = np.where(wrong, X + 20.0, X)
    weights = np.where(np.isnan(X), np.nan, np.where(wrong, 1e-6, 1.0))
    settings = {"n_sweeps": 300, "units": "table", "noise": "one"}
    truth = _filled(np.where(wrong, np.nan, X), **settings)
    weighted = np.sqrt(np.mean((_filled(spoilt, weights=weights, **settings) - truth) ** 2))
    unweighted = np.sqrt(np.mean((_filled(spoilt, **settings) - truth) ** 2))
    assert weighted < 0.5
    assert unweighted > 2.0 * weighted
