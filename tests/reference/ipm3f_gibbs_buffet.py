"""Chains of the feature kernel without data, and the known distributions of the Indian buffet."""

import numpy as np
from scipy import stats

from fillrank.draws.streams import FEATURES, Address, chain_key
from fillrank.kernels import binary_features
from fillrank.kernels.binary_features import Features
from fillrank.table.entries import Entries
from reference.ipm3f_gibbs_conditionals import PRIOR, chi2_p

N_ROWS = 5
_N_COLUMNS = 2
_NOTHING = Entries(np.zeros(N_ROWS + 1, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0))


def chains_without_data(n_chains, length, capacity=40):
    """Z (chains, rows, capacity) at the end of independent chains that began without features."""
    out = np.zeros((n_chains, N_ROWS, capacity))
    for c in range(n_chains):
        V, counts = np.zeros((_N_COLUMNS, capacity)), np.zeros(capacity, dtype=np.int64)
        features = Features(out[c], V, counts)
        for sweep in range(c * length, (c + 1) * length):
            address = Address(chain_key(4, 0), sweep, FEATURES)
            binary_features.feature_rows(_NOTHING, np.empty(0), features, PRIOR, address)
    return out


def _poisson_p(drawn, rate):
    """The p-value of counts under Poisson(rate), with the tail in one cell."""
    last = int(stats.poisson(rate).isf(5e-3))
    law = stats.poisson(rate).pmf(np.arange(last + 1))
    law[-1] += stats.poisson(rate).sf(last)
    return chi2_p(np.minimum(drawn, last).astype(int).tolist(), dict(enumerate(law)))


def buffet_ps(Z):
    """{distribution: p-value} of independent draws of Z."""
    rates = 1.0 / np.arange(1, N_ROWS + 1)
    counts = Z.sum(axis=1)
    ones = counts.sum(axis=1)
    z = (ones.mean() - N_ROWS * PRIOR.alpha) / (ones.std() / np.sqrt(ones.size))
    ps = {
        "K": _poisson_p(np.sum(counts > 0, axis=1), PRIOR.alpha * rates.sum()),
        "ones": 2.0 * stats.norm.sf(abs(z)),
    }
    for i in (0, N_ROWS - 1):
        ps[f"row {i}"] = _poisson_p(Z[:, i].sum(axis=1), PRIOR.alpha)
    for m in range(1, N_ROWS + 1):
        # Features that m rows have: Poisson with the rate alpha / m.
        ps[f"features of {m} rows"] = _poisson_p(np.sum(counts == m, axis=1), PRIOR.alpha / m)
    return ps
