"""The draw of binary features: with data against brute force, without data against the prior.

Each test raises a false alarm at the rate ``p_values.ALARM``.
"""

import numpy as np
import pytest
from scipy import stats

from fillrank.draws.streams import FEATURES, Address, chain_key
from fillrank.kernels.binary_features import (
    FeaturePrior,
    Features,
    feature_rows,
    known_feature_rows,
)
from fillrank.table.entries import Entries
from reference import ipm3f_gibbs_conditionals as conditionals
from reference.ipm3f_gibbs_buffet import N_ROWS, buffet_ps, chains_without_data
from reference.p_values import ALARM


def _assert_all(p_values):
    worst = min(p_values, key=p_values.get)
    assert p_values[worst] > ALARM / len(p_values), p_values


def test_bits_of_shared_features():
    assert conditionals.shared_bits_p() > ALARM


def test_number_and_weights_of_new_features():
    _assert_all(conditionals.new_features_ps())


def test_bits_of_new_rows():
    assert conditionals.known_bits_p() > ALARM


def test_buffet_reached_from_an_empty_table():
    """Without data: K ~ Poisson(alpha H_N), a row's ones ~ Poisson(alpha), E ones = N alpha."""
    _assert_all(buffet_ps(chains_without_data(n_chains=1500, length=25)))


def test_capacity_truncates_the_prior():
    """With at most 3 features K has its Poisson distribution given K <= 3."""
    capacity = 3
    Z = chains_without_data(n_chains=1500, length=25, capacity=capacity)
    K = np.sum(Z.any(axis=1), axis=1)
    rate = conditionals.PRIOR.alpha * np.sum(1.0 / np.arange(1, N_ROWS + 1))
    law = stats.poisson(rate).pmf(np.arange(capacity + 1))
    assert conditionals.chi2_p(K.tolist(), dict(enumerate(law / law.sum()))) > ALARM


def _table(seed=0, capacity=4):
    rng = np.random.default_rng(seed)
    mask = rng.random((9, 7)) < 0.5
    mask[4] = False
    i, j = np.nonzero(mask)
    pointers = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
    entries = Entries(pointers, j.astype(np.int32), rng.normal(size=i.size))
    Z = rng.integers(0, 2, (9, capacity)).astype(float)
    V = rng.normal(size=(7, capacity))
    return entries, rng.gamma(1.0, 1.0, i.size), Features(Z, V, Z.sum(axis=0).astype(np.int64))


def test_counts_and_slots_stay_in_order():
    entries, weights, features = _table()
    prior = FeaturePrior(3.0, 1.0)
    births = deaths = 0
    for sweep in range(60):
        before = features.counts > 0
        feature_rows(entries, weights, features, prior, Address(chain_key(1, 0), sweep, FEATURES))
        np.testing.assert_array_equal(features.Z.sum(axis=0), features.counts)
        assert np.isin(features.Z, [0.0, 1.0]).all()
        assert np.isfinite(features.V).all()
        births += np.sum(~before & (features.counts > 0))
        deaths += np.sum(before & (features.counts == 0))
    assert births > 0
    assert deaths > 0


@pytest.mark.parametrize("ranges", [[(0, 9)], [(5, 9), (0, 3), (3, 5)]])
def test_new_rows_can_be_drawn_in_any_partition(ranges):
    entries, weights, features = _table()
    held = features.V.copy()
    again = features._replace(Z=features.Z.copy())
    log_odds, address = np.zeros(4), Address(chain_key(1, 0), 2, FEATURES)
    known_feature_rows(entries, weights, features, log_odds, address, 0, 9)
    for start, stop in ranges:
        known_feature_rows(entries, weights, again, log_odds, address, start, stop)
    np.testing.assert_array_equal(again.Z, features.Z)
    np.testing.assert_array_equal(features.V, held)


def test_no_features_and_no_free_slots():
    entries, weights, _ = _table()
    features = Features(np.zeros((9, 0)), np.zeros((7, 0)), np.zeros(0, dtype=np.int64))
    feature_rows(
        entries, weights, features, FeaturePrior(3.0, 1.0), Address(chain_key(1, 0), 0, FEATURES)
    )
    assert features.Z.shape == (9, 0)
