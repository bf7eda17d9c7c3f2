r"""Binary features of the rows under an Indian buffet process: the draw of Z, with births and deaths.

Row i holds working responses y_j of weights w_j in the columns j of Omega_i,

.. math:: y_j \sim N(\sum_k Z_{ik} V_{jk},\; 1 / w_j), \qquad Z \sim \text{IBP}(\alpha), \qquad
          V_{jk} \sim N(0, \sigma^2).

The rows are exchangeable, so each may be drawn as if it came last. With m_-ik the number of *other*
rows that have feature k, N the number of rows and e = y - x the residual without feature k,

.. math:: \log \frac{P(Z_{ik} = 1)}{P(Z_{ik} = 0)} = \log \frac{m_{-ik}}{N - m_{-ik}}
          + \sum_{j \in \Omega_i} w_j V_{jk} (e_j - V_{jk} / 2), \qquad m_{-ik} > 0 .

After these bits (which are drawn given all features, including those of this row alone) the
features that only row i has are removed and drawn again: their number kappa is Poisson(alpha/N) a
priori, and with their V integrated out the row's responses have the likelihood

.. math:: \log L(\kappa) = \tfrac12 \sum_{j \in \Omega_i} \Big[ \frac{\kappa \sigma^2 w_j}
          {1 + \kappa \sigma^2 w_j} w_j e_j^2 - \log(1 + \kappa \sigma^2 w_j) \Big] .

Then their V is drawn: from the prior in columns outside Omega_i; in the others the sum over the new
features has mean :math:`\kappa w e / (\kappa w + \sigma^{-2})` and its prior sd shrinks by
:math:`(1 + \kappa \sigma^2 w)^{-1/2}`; differences between new features have their prior
distribution.

**The capacity.** There are ``Z.shape[1]`` slots, and kappa is drawn among the numbers that fit.
This is the exact conditional under the IBP *given that at most so many features exist*: the prior
is truncated, the algorithm is not approximate.

**The order.** Rows depend on each other through m_-ik, so this loop is sequential. Within a row the
features are visited in random order: the slot of a feature depends on its age, and an order that
depends on the state would not leave the posterior invariant.
"""

import math
from typing import NamedTuple

import numpy as np

from fillrank.draws.normal import normal
from fillrank.draws.streams import seek, start_stream, uniform
from fillrank.kernels.tiles import REASSOCIATE, add_multiple, gather, longest_row
from fillrank.runtime.kernel_cache import njit


class Features(NamedTuple):
    """Z (m, capacity) of zeros and ones, V (n, capacity), and how many rows have each feature.

    A slot is free if no row has its feature.
    """

    Z: np.ndarray
    V: np.ndarray
    counts: np.ndarray


class FeaturePrior(NamedTuple):
    """alpha of the buffet, and sigma, the sd of V."""

    alpha: float
    sigma: float


class Row(NamedTuple):
    """A row in cache: its columns' V by feature, its weights and its residuals."""

    tile: np.ndarray
    weights: np.ndarray
    residual: np.ndarray


@njit(fastmath=REASSOCIATE)
def _weighted_sums(factor, weights, residual):
    """(sum w f e, sum w f^2)."""
    s, c = 0.0, 0.0
    for t in range(weights.size):
        wf = weights[t] * factor[t]
        s += wf * residual[t]
        c += wf * factor[t]
    return s, c


@njit
def _set_bit(row, bits, k, new):
    """Add feature k to the row, or remove it, and update the residual."""
    add_multiple(row.residual, bits[k] - new, row.tile[k], row.weights.size)
    bits[k] = new


@njit
def _draw_bit(stream, row, bits, k, prior_log_odds):
    """Draw one bit given all others."""
    s, c = _weighted_sums(row.tile[k], row.weights, row.residual)
    log_odds = prior_log_odds + s + (bits[k] - 0.5) * c
    u = uniform(stream)
    _set_bit(row, bits, k, 1.0 if math.log(u) - math.log1p(-u) < log_odds else 0.0)


@njit
def _shuffle(stream, order):
    """Put all slots in random order."""
    for k in range(order.size):
        order[k] = k
    for k in range(order.size - 1, 0, -1):
        other = int(uniform(stream) * (k + 1))
        order[k], order[other] = order[other], order[k]


@njit
def _draw_shared_bits(stream, row, bits, counts, n_rows, order):
    """Draw the row's bits of the features that other rows have, in random order."""
    _shuffle(stream, order)
    for k in order:
        others = counts[k] - int(bits[k])
        if others > 0:
            _draw_bit(stream, row, bits, k, math.log(others / (n_rows - others)))
            counts[k] = others + int(bits[k])


@njit
def _drop_singletons(row, bits, counts):
    """Remove the features that only this row has."""
    for k in range(bits.size):
        if bits[k] == 1.0 and counts[k] == 1:
            _set_bit(row, bits, k, 0.0)
            counts[k] = 0


@njit(fastmath=REASSOCIATE)
def _log_likelihood_of_new(row, spread):
    """log L(kappa), where ``spread`` is kappa sigma^2."""
    total = 0.0
    for t in range(row.weights.size):
        w, e = row.weights[t], row.residual[t]
        gain = spread * w
        total += gain / (1.0 + gain) * w * e * e - math.log1p(gain)
    return 0.5 * total


@njit
def _draw_number_of_new(stream, row, rate, variance, most):
    """kappa in 0..most, from the Poisson prior with this rate times L(kappa)."""
    log_weights = np.empty(most + 1)
    for kappa in range(most + 1):
        log_prior = kappa * math.log(rate) - math.lgamma(kappa + 1.0)
        log_weights[kappa] = log_prior + _log_likelihood_of_new(row, kappa * variance)
    weights = np.exp(log_weights - log_weights.max())
    remaining = uniform(stream) * weights.sum()
    for kappa in range(most):
        remaining -= weights[kappa]
        if remaining < 0.0:
            return kappa
    return most


@njit
def _condition_on_row(V, slots, columns, row, sigma):
    """Turn prior draws of the new features' V into draws given the row's residuals."""
    kappa = slots.size
    for t in range(columns.size):
        j, w = columns[t], row.weights[t]
        average = 0.0
        for k in slots:
            average += V[j, k] / kappa
        gain = kappa * sigma * sigma * w
        mean = gain / (1.0 + gain) * row.residual[t] / kappa
        shift = mean + (1.0 / math.sqrt(1.0 + gain) - 1.0) * average
        for k in slots:
            V[j, k] += shift


@njit
def _add_features(stream, features, i, slots, columns, row, sigma):
    """Give row i new features in the free slots, with their V."""
    for k in slots:
        features.Z[i, k], features.counts[k] = 1.0, 1
        for j in range(features.V.shape[0]):
            features.V[j, k] = sigma * normal(stream)
    _condition_on_row(features.V, slots, columns, row, sigma)


@njit(nogil=True, cache=True)
def feature_rows(entries, weights, features, prior, address):
    """Draw all rows of Z one after the other, in place, with births and deaths of features.

    ``entries.values`` are the working responses, ``weights`` theirs, in the same order.
    """
    n_rows, capacity = features.Z.shape
    longest = longest_row(entries.pointers, 0, n_rows)
    tile, residual = np.empty((capacity, longest)), np.empty(longest)
    order = np.empty(capacity, dtype=np.int64)
    stream = start_stream(address.key, address.sweep, address.purpose)
    for i in range(n_rows):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        columns, bits = entries.indices[first:last], features.Z[i]
        gather(columns, entries.values[first:last], bits, features.V, tile, residual)
        row = Row(tile, weights[first:last], residual)
        seek(stream, i, 0)
        _draw_shared_bits(stream, row, bits, features.counts, n_rows, order)
        _drop_singletons(row, bits, features.counts)
        free = np.flatnonzero(features.counts == 0)
        kappa = _draw_number_of_new(stream, row, prior.alpha / n_rows, prior.sigma**2, free.size)
        if kappa > 0:
            _add_features(stream, features, i, free[:kappa], columns, row, prior.sigma)


@njit(nogil=True, cache=True)
def known_feature_rows(entries, weights, features, log_odds, address, start, stop):
    """Draw the rows start to stop of Z, whose features' V and prior log odds are known; none is new.

    Rows are independent here: ``features.counts`` does not change.
    """
    width = features.Z.shape[1]
    longest = longest_row(entries.pointers, start, stop)
    tile, residual = np.empty((width, longest)), np.empty(longest)
    stream = start_stream(address.key, address.sweep, address.purpose)
    for i in range(start, stop):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        columns, bits = entries.indices[first:last], features.Z[i]
        gather(columns, entries.values[first:last], bits, features.V, tile, residual)
        row = Row(tile, weights[first:last], residual)
        seek(stream, i, 0)
        for k in range(width):
            _draw_bit(stream, row, bits, k, log_odds[k])
