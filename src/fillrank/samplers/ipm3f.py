r"""iPM3F by data augmentation, for tables of ordered levels.

This is the Gibbs sampler of Xu, Zhu and Zhang ("Fast max-margin matrix factorization with data
augmentation", ICML 2013).

The pseudo-posterior of binary row features Z, their weights V and the rows' thresholds theta is

.. math::

    p(Z, V, \theta \mid y) &\propto p(Z) \, p(V) \, p(\theta)
        \prod_{(i,j) \in \Omega} \prod_{r=1}^{L-1}
        e^{-C \max(0,\, \ell - T^r_{ij} (\theta_{ir} - x_{ij}))}, \qquad x_{ij} = Z_i V_j^T \\
    Z &\sim \text{IBP}(\alpha), \qquad
    V_{jk} \sim N(0, \sigma^2), \qquad \theta_{ir} \sim N(\rho_r, s^2)

with T^r = +1 if r >= y, else -1, and rho_r = 3 ell (r - L/2): a score halfway between two
thresholds is further than the margin ell from both. There are at most ``max_features`` features:
the prior is the IBP conditional on that. (The pseudo-likelihood is not normalised over y.)

A sweep draws, each given the newest of all others: lambda of the hinge's scale mixture and the
thresholds, row by row (:mod:`fillrank.noise.hinge`), after which the entries are Gaussian; Z,
with births and deaths of features (:mod:`fillrank.kernels.binary_features`); V, column by column.
"""

from typing import NamedTuple

import numpy as np

from fillrank.draws import streams
from fillrank.draws.streams import Address
from fillrank.kernels.binary_features import (
    FeaturePrior,
    Features,
    feature_rows,
    known_feature_rows,
)
from fillrank.kernels.factors import singular_values
from fillrank.kernels.hinge_rows import hinge_losses
from fillrank.kernels.joint_rows import JointPrior, joint_rows
from fillrank.kernels.ordinal import Scorer
from fillrank.noise.hinge import Hinge, Working, augment_rows
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.table.entries import Entries


class Hyper(NamedTuple):
    """The constants of the model.

    C and ell are the weight and the margin of the hinge; alpha is the expected number of features
    of a row, sigma the sd of V, ``threshold_sd`` that of a threshold about its prior mean. No more
    than ``max_features`` features exist at a time, by the prior.
    """

    C: float
    ell: float
    alpha: float
    sigma: float
    threshold_sd: float
    n_levels: int
    max_features: int

    @property
    def threshold_mean(self) -> np.ndarray:
        """rho, the prior means of a row's thresholds."""
        return 3.0 * self.ell * (np.arange(1, self.n_levels) - 0.5 * self.n_levels)


class OrdinalData(NamedTuple):
    """Numbers of levels from both sides; entry t by row is entry to_columns[t] by column."""

    rows: Entries
    columns: Entries
    to_columns: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.rows.pointers.size - 1, self.columns.pointers.size - 1

    @property
    def n_entries(self) -> int:
        """How many entries are observed."""
        return self.rows.values.size

    @property
    def is_remote(self) -> bool:
        """Whether the entries are on other machines."""
        return False


class State(NamedTuple):
    """All that the next sweep needs: Z (m, K), V (n, K), thresholds (m, L - 1); K varies.

    Z holds zeros and ones as float64, so that it serves as a factor.
    """

    Z: np.ndarray
    V: np.ndarray
    thresholds: np.ndarray
    sweep: int


class Info(NamedTuple):
    """Statistics of a sweep: the all-threshold hinge loss (without C), and K."""

    loss: float
    n_features: int


class Context(NamedTuple):
    """What does not change from sweep to sweep."""

    hyper: Hyper
    key: np.uint64
    workers: Workers


class NewRows(NamedTuple):
    """Rows that are not part of a state: Z (q, K) on the state's features, thresholds (q, L - 1)."""

    Z: np.ndarray
    thresholds: np.ndarray
    sweep: int


def ordinal_data(data: Data) -> OrdinalData:
    """The entries with the permutation from their order by row to that by column."""
    # Both sides are ordered lexically, so a stable sort by column gives the columns' order.
    by_column = np.argsort(data.rows.indices, kind="stable")
    to_columns = np.empty_like(by_column)
    to_columns[by_column] = np.arange(by_column.size)
    return OrdinalData(data.rows, data.columns, to_columns)


def init(data: OrdinalData, hyper: Hyper, n_features: int, rng: np.random.Generator) -> State:
    """The first state: fair coins in Z, V from its prior, thresholds at their prior means."""
    m, n = data.shape
    Z = rng.integers(0, 2, (m, min(n_features, hyper.max_features))).astype(np.float64)
    Z = np.ascontiguousarray(Z[:, Z.any(axis=0)])
    V = hyper.sigma * rng.standard_normal((n, Z.shape[1]))
    return State(Z, V, np.tile(hyper.threshold_mean, (m, 1)), sweep=0)


def _draw_thresholds(
    entries: Entries, scorer: Scorer, sweep: int, context: Context
) -> tuple[np.ndarray, Working]:
    """New thresholds of all rows, and the working responses of the levels."""
    hyper = context.hyper
    hinge = Hinge(hyper.C, hyper.ell, hyper.threshold_mean, hyper.threshold_sd)
    scorer = scorer._replace(thresholds=scorer.thresholds.copy())
    working = Working(np.empty(entries.values.size), np.empty(entries.values.size))

    def draw_rows(start: int, stop: int) -> None:
        augment_rows(entries, scorer, hinge, context.key, sweep, working, start, stop)

    context.workers.for_rows(draw_rows, entries.pointers)
    return scorer.thresholds, working


def _widened(factor: np.ndarray, width: int) -> np.ndarray:
    """A copy with additional columns of zeros."""
    wide = np.zeros((factor.shape[0], width))
    wide[:, : factor.shape[1]] = factor
    return wide


def _draw_features(
    state: State, entries: Entries, working: Working, context: Context
) -> tuple[np.ndarray, np.ndarray]:
    """Z and V with the features that some row has after all rows have been drawn."""
    hyper = context.hyper
    Z, V = (_widened(factor, hyper.max_features) for factor in (state.Z, state.V))
    features = Features(Z, V, Z.sum(axis=0).astype(np.int64))
    responses = entries._replace(values=working.responses)
    address = Address(context.key, state.sweep, streams.FEATURES)
    prior = FeaturePrior(hyper.alpha, hyper.sigma)
    feature_rows(responses, working.weights, features, prior, address)
    alive = features.counts > 0
    return np.ascontiguousarray(Z[:, alive]), np.ascontiguousarray(V[:, alive])


def _draw_columns(
    state: State, data: OrdinalData, working: Working, context: Context
) -> np.ndarray:
    """V given Z: a Gaussian regression for every column."""
    weights, responses = np.empty(data.n_entries), np.empty(data.n_entries)
    weights[data.to_columns], responses[data.to_columns] = working
    entries = data.columns._replace(values=responses)
    K = state.Z.shape[1]
    prior = JointPrior(np.zeros(K), np.eye(K) / context.hyper.sigma**2)
    address = Address(context.key, state.sweep, streams.COLUMNS)
    V, squares = state.V.copy(), np.empty(state.V.shape[0])

    def draw_rows(start: int, stop: int) -> None:
        joint_rows(entries, weights, V, state.Z, prior, address, squares, start, stop)

    context.workers.for_rows(draw_rows, entries.pointers)
    return V


def _loss(entries: Entries, scorer: Scorer, context: Context) -> float:
    """The sum of the hinges over entries and thresholds."""
    losses = np.empty(entries.pointers.size - 1)
    ell = context.hyper.ell
    context.workers.for_rows(
        lambda start, stop: hinge_losses(entries, scorer, ell, losses, start, stop),
        entries.pointers,
    )
    return float(losses.sum())


def sweep(state: State, data: OrdinalData, context: Context) -> tuple[State, Info]:
    """One sweep: lambda with the thresholds, Z with its features, V."""
    scorer = Scorer(state.Z, state.V, state.thresholds)
    thresholds, working = _draw_thresholds(data.rows, scorer, state.sweep, context)
    Z, V = _draw_features(state, data.rows, working, context)
    state = state._replace(Z=Z, V=V, thresholds=thresholds)
    V = _draw_columns(state, data, working, context)
    loss = _loss(data.rows, Scorer(Z, V, thresholds), context)
    return State(Z, V, thresholds, state.sweep + 1), Info(loss, Z.shape[1])


def draw(state: State) -> Scorer:
    """What is stored of a state."""
    return Scorer(state.Z, state.V, state.thresholds)


def spectrum(drawn: Scorer) -> np.ndarray:
    """The singular values of the scores."""
    return singular_values(drawn.left, drawn.right)


def history(_state: State, info: Info, n_entries: int) -> dict[str, float]:
    """What is traced over the sweeps."""
    return {"hinge_loss": info.loss / n_entries, "n_features": float(info.n_features)}


def init_rows(n_rows: int, state: State, hyper: Hyper) -> NewRows:
    """The first state of new rows: no features, thresholds at their prior means."""
    thresholds = np.tile(hyper.threshold_mean, (n_rows, 1))
    return NewRows(np.zeros((n_rows, state.Z.shape[1])), thresholds, sweep=0)


def sweep_rows(new: NewRows, entries: Entries, state: State, context: Context) -> NewRows:
    """One sweep over rows that were not fitted, given the features of a state.

    Each new row is drawn as the only one added to the state's rows, and adds no features.
    ``context.key`` should differ from the key of the chain that drew the state.
    """
    scorer = Scorer(new.Z, state.V, new.thresholds)
    thresholds, working = _draw_thresholds(entries, scorer, new.sweep, context)
    counts = state.Z.sum(axis=0)
    log_odds = np.log(counts / (state.Z.shape[0] + 1 - counts))
    responses = entries._replace(values=working.responses)
    features = Features(new.Z.copy(), state.V, counts.astype(np.int64))
    address = Address(context.key, new.sweep, streams.FEATURES)

    def draw_rows(start: int, stop: int) -> None:
        known_feature_rows(responses, working.weights, features, log_odds, address, start, stop)

    context.workers.for_rows(draw_rows, entries.pointers)
    return NewRows(features.Z, thresholds, new.sweep + 1)
