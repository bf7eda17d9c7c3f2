"""Fits with the pattern of missing values as features, and with features of rows and columns.

The tables are generated with fixed seeds. Differences between fits are compared with those between two
seeds of one fit, the scale of the Monte Carlo error. Bounds are at least 1.5 times the largest value
over four other seeds, so that a new seed seldom fails.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

import fillrank as fr
from fillrank.estimators import noise_trial, sampled
from fillrank.estimators.sampled import SamplerEstimator
from fillrank.features.blocks import Block, Blocks, TableCode
from fillrank.features.given import GivenFeatures
from fillrank.features.pattern import mask_of, pattern_blocks
from fillrank.runtime.threads import Workers
from fillrank.samplers.feature_steps import WITHOUT_FEATURES
from fillrank.samplers.model import Data
from fillrank.table.units import shared_units, standardise
from helpers.small_patterns import small_patterns  # noqa: F401
from reference.feature_cases import centred_block
from reference.planted_methods import plant_in_method

METHODS = pytest.mark.parametrize("method", [fr.GASR, fr.BPMF])
_SETTINGS = {
    "n_sweeps": 400, "burn_in": 100, "n_chains": 1, "n_threads": 1, "progress": False,
    "units": "table", "noise": "one",
}  # fmt: skip


def _fitted(X, seed=0, method=fr.GASR, **settings):
    """Fit, whatever it says of the length of its run."""
    model = method(random_state=seed, **(_SETTINGS | settings))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        return model.fit(X)


def _filled(X, seed=0, method=fr.GASR, **settings):
    """All cells after a fit."""
    rows, columns = np.indices(X.shape)
    model = _fitted(X, seed, method, **settings)
    return np.asarray(model.predict(rows.ravel(), columns.ravel())).reshape(X.shape)


def _rms(x):
    return float(np.sqrt(np.mean(x**2)))


def _signal(rng, shape, rank=3):
    return rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))


def _missing_at_random(seed=0, shape=(60, 40)):
    """(table, signal, which cells are missing): half of the cells, whatever is in them."""
    rng = np.random.default_rng(seed)
    Z = _signal(rng, shape)
    hidden = rng.random(shape) < 0.5
    return np.where(hidden, np.nan, Z + 0.5 * rng.standard_normal(shape)), Z, hidden


def _missing_by_value(seed=0, shape=(150, 100)):
    """The same where a cell is observed with a probability that is logistic in its signal: 15%."""
    rng = np.random.default_rng(seed)
    Z = _signal(rng, shape)
    observed = rng.random(shape) < 1.0 / (1.0 + np.exp(2.5 - Z))
    return np.where(observed, Z + rng.standard_normal(shape), np.nan), Z, ~observed


@METHODS
def test_a_pattern_that_says_something_is_used(method):
    """Errors were 0.24 to 0.64 of those without, over four other seeds of both methods."""
    X, Z, hidden = _missing_by_value()
    error, without = (
        _rms((_filled(X, method=method, missingness=given) - Z)[hidden]) for given in (True, False)
    )
    assert error < 0.85 * without


@METHODS
def test_a_pattern_that_says_nothing_changes_nothing(method):
    X, Z, hidden = _missing_at_random()
    used, used_again = (_filled(X, seed, method)[hidden] for seed in (0, 1))
    without, again = (_filled(X, seed, method, missingness=False)[hidden] for seed in (2, 3))
    chance = _rms(without - again)
    # The mean of two runs has an error of 1 / sqrt(2) of that of one.
    assert _rms(0.5 * (used + used_again - without - again)) < 2.3 / np.sqrt(2.0) * chance
    assert _rms(used - Z[hidden]) < 1.05 * _rms(without - Z[hidden])


def test_order_of_rows_and_columns_does_not_matter():
    X, _, hidden = _missing_at_random(seed=1)
    rng = np.random.default_rng(9)
    rows, columns = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
    one, other = _filled(X, 0), _filled(X, 1)
    turned = np.empty_like(X)
    turned[np.ix_(rows, columns)] = _filled(X[np.ix_(rows, columns)], 2)
    assert _rms((turned - one)[hidden]) < 2.2 * _rms((one - other)[hidden])


def _given(monkeypatch, values):
    """Fits get these features of their rows, of a form that users would have given."""
    p = values.shape[1]
    block = Block("given", values, TableCode((), np.zeros(p), np.eye(p)), ("term",) * p)
    given = GivenFeatures(Blocks(rows=(block,)))
    monkeypatch.setattr(sampled, "given_features", lambda *_: given)


def _explained_by_features(seed=2, shape=(80, 60)):
    """(table, features of its rows, hidden cells): features explain most of the factors."""
    rng = np.random.default_rng(seed)
    F = centred_block(rng, shape[0], 4)
    A = 1.5 * F @ rng.standard_normal((4, 2)) + 0.3 * rng.standard_normal((shape[0], 2))
    hidden = rng.random(shape) < 0.9
    X = A @ rng.standard_normal((2, shape[1])) + rng.standard_normal(shape)
    return np.where(hidden, np.nan, X), F, hidden


@METHODS
def test_rows_and_their_features_in_another_order(monkeypatch, method):
    X, F, hidden = _explained_by_features()
    longer = {"n_sweeps": 800, "burn_in": 200}
    order = np.random.default_rng(9).permutation(len(X))
    _given(monkeypatch, F)
    one, other = (_filled(X, seed, method, **longer) for seed in (0, 1))
    _given(monkeypatch, F[order])
    turned = np.empty_like(X)
    turned[order] = _filled(X[order], 2, method, **longer)
    chance = _rms((one - other)[hidden])
    assert _rms((turned - one)[hidden]) < 2.0 * chance
    # Features that stay where they were while the rows move are caught.
    _given(monkeypatch, F)
    turned[order] = _filled(X[order], 2, method, **longer)
    assert _rms((turned - one)[hidden]) > 4.0 * chance


# No entry that is held out reaches a feature


def _blocks_of(X):
    """The blocks of the pattern of a table."""
    observations = fr.Observations.from_matrix(X)
    data = Data(
        *standardise(observations, shared_units(observations, True, None), np.dtype("float32"))
    )
    with threadpool_limits(1):
        return pattern_blocks(mask_of(data, Workers(1)))


def _has_the_pattern_of(model, X):
    """Whether the features of a fit are those of this table."""
    return all(
        len(used) == len(own) == 1
        and used[0].values.shape == own[0].values.shape
        and bool((used[0].values == own[0].values.astype(used[0].values.dtype)).all())
        for used, own in zip(model.posterior_.blocks, _blocks_of(X), strict=True)
    )


def _train_and_all(seed=3):
    """A table, and the same without a fifth of its entries."""
    X, _, _ = _missing_at_random(seed)
    held = np.random.default_rng(4).random(X.shape) < 0.2
    return np.where(held, np.nan, X), X


def test_features_are_those_of_the_entries_that_are_fitted():
    train, _ = _train_and_all()
    assert _has_the_pattern_of(_fitted(train, n_sweeps=4, burn_in=1), train)


def test_a_category_counts_once_in_the_pattern():
    """It is several latent columns, which are observed together."""
    X, _ = _train_and_all()
    frame = pd.DataFrame(X).astype(object)
    names = np.array(["east", "west", "north", "south"])[np.arange(len(X)) % 4]
    frame[0] = np.where(np.isnan(X[:, 0]), None, names)
    model = _fitted(frame, n_sweeps=4, burn_in=1)
    (used,), (own,) = model.posterior_.blocks.rows, _blocks_of(X).rows
    np.testing.assert_array_equal(used.values, own.values.astype(used.values.dtype))


def test_a_leak_of_held_out_entries_is_caught(monkeypatch):
    train, everything = _train_and_all()
    monkeypatch.setattr(sampled, "pattern_blocks", lambda _: _blocks_of(everything))
    model = _fitted(train, n_sweeps=4, burn_in=1)
    assert not _has_the_pattern_of(model, train)
    assert _has_the_pattern_of(model, everything)


def test_complete_tables_and_missingness_off_have_no_features():
    X, Z, _ = _missing_at_random()
    short = {"n_sweeps": 4, "burn_in": 1}
    for model in (_fitted(Z, **short), _fitted(X, missingness=False, **short)):
        assert model.posterior_.blocks == ((), ())
        assert not any("share" in name for name in model.history_)


def _features_of_trials(monkeypatch):
    """(those of the chains of trials of the noise, those of the chains of the fit)."""
    seen, true_first = {True: [], False: []}, fr.GASR._first_chain

    def spy(self, data, model, plan, workers, seed):
        seen[seed[1] == noise_trial._CHAIN].append(model.features)
        return true_first(self, data, model, plan, workers, seed)

    monkeypatch.setattr(fr.GASR, "_first_chain", spy)
    _fitted(_missing_at_random()[0], noise="auto", n_sweeps=4, burn_in=1)
    return seen[True], seen[False]


def test_the_trial_of_the_noise_has_no_features(monkeypatch):
    """They would know which entries it holds out."""
    trials, fits = _features_of_trials(monkeypatch)
    assert len(trials) == 2
    assert all(features is WITHOUT_FEATURES for features in trials)
    assert all(features.rows.n_features == features.columns.n_features == 10 for features in fits)


def test_features_in_the_trial_of_the_noise_are_caught(monkeypatch):
    plant_in_method(
        monkeypatch, SamplerEstimator, "_complete",
        (
            "model = self._decide_noise(data, model, setup, workers)",
            "model = self._with_features(data, model, given, workers)\n"
            "            model = self._decide_noise(data, model, setup, workers)",
        ),
    )  # fmt: skip
    trials, _ = _features_of_trials(monkeypatch)
    assert trials
    assert not any(features is WITHOUT_FEATURES for features in trials)
