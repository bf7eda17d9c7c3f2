r"""BPMF: Bayesian probabilistic matrix factorisation (Salakhutdinov and Mnih, ICML 2008).

.. math::

    x_{ij} &\sim N(U_i^T V_j,\; \sigma^2 / (a_i b_j l_{ij} w_{ij})) \\
    U_i &\sim N(\mu_U, \Lambda_U^{-1}), \qquad V_j \sim N(\mu_V, \Lambda_V^{-1}) \\
    \mu &\sim N(0, (\beta_0 \Lambda)^{-1}), \qquad \Lambda \sim \text{Wishart}(W_0, \nu_0)
    \quad \text{for each side}

in standard units, with the noise of `fillrank.noise.precisions`; or with a fixed precision
alpha = 1/sigma^2, as its authors have it. One sweep draws (mu_U, Lambda_U), the rows U, (mu_V,
Lambda_V), the columns V, and the noise. The printed posterior of (mu, Lambda) has an uncentred
scatter matrix; it has to be centred.

Rows can be drawn in two ways, both exact. *Jointly*: each from its Gaussian, by a Cholesky
decomposition, O(n_i D^2 + D^3). *Entry by entry*, O(n_i D), with the kernel of GASR: in a basis in
which Lambda and the average Gram matrix of the other side are both diagonal, so that the entries of
a row are nearly independent, and drawing them one by one mixes almost as well. The basis depends
only on what a half-sweep conditions on. In a complete table rows are always drawn jointly: they
share one decomposition.

With features F of the rows, U_i ~ N(mu_U + B^T F_i, Lambda_U^-1): see `fillrank.samplers.feature_steps`,
and Simm et al. ("Macau", 2017). Their weights B are drawn after the rows, and they are p more vectors
for the posterior of Lambda_U.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, solve_triangular

from fillrank.draws import streams
from fillrank.draws.normal import normal
from fillrank.draws.streams import Address, seek, start_stream
from fillrank.draws.wishart import wishart_root
from fillrank.kernels.dense_rows import Dense
from fillrank.kernels.factors import gram, multiplied, singular_values, sums_about
from fillrank.kernels.gaussian_rows import Prior, RowNoise, RowSums
from fillrank.kernels.joint_rows import JointPrior
from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers
from fillrank.samplers.feature_steps import (
    WITHOUT_FEATURES,
    BothFeatures,
    Features,
    Weights,
    draw_weights,
    drawn_weights,
    explained,
    first_weights,
    rooted,
    share_history,
    without_explained,
)
from fillrank.samplers.model import (
    SMALLEST_NOISE,
    CompleteData,
    Data,
    Draw,
    Remote,
    RemoteData,
    Start,
    draw_rows,
)
from fillrank.samplers.noise_steps import (
    EQUAL_NOISE,
    NoiseModel,
    NoiseState,
    column_noise,
    draw_column_precisions,
    draw_level,
    draw_row_precisions,
    first_noise,
    noise_history,
    residual_square,
    row_noise,
)
from fillrank.samplers.threshold_steps import (
    NO_INTERVALS,
    Intervals,
    RowThresholds,
    draw_intervals,
)
from fillrank.table.entries import Entries

# Standard deviations of random factors at the start, and of those that a guess lacks.
_FIRST_SD, _SPARE_SD = 0.1, 0.01


class FactorPrior(NamedTuple):
    """N(mean, Lambda^-1) with Lambda = T T^T: the prior of the vectors of one side."""

    mean: np.ndarray
    T: np.ndarray


class Hyperprior(NamedTuple):
    """beta_0, nu_0 and w_0 of both sides, W_0 = I/w_0.

    A factor that the data do not need shrinks until the variance of its vectors is about w_0 over
    their number: the smaller w_0, the closer to zero.
    """

    beta: float
    degrees: float
    inverse_scale: float


class State(NamedTuple):
    """All that the next sweep needs: the signal is left right^T.

    ``limits`` (2, k) are the ends of the intervals in which values are known to be; if they differ by
    row, they are those of an average row, and ``row_thresholds`` has them all.
    """

    left: np.ndarray
    right: np.ndarray
    row_law: FactorPrior
    column_law: FactorPrior
    noise: NoiseState
    row_weights: Weights
    column_weights: Weights
    limits: np.ndarray
    row_thresholds: RowThresholds
    sweep: int


class Info(NamedTuple):
    """Statistics of a sweep: the weighted sum of squared residuals."""

    residual_square: float


class Context(NamedTuple):
    """What does not change from sweep to sweep.

    With ``joint``, rows are drawn jointly, which is possible without robust noise. The noise is sampled,
    unless ``samples_noise`` is false.
    """

    hyperprior: Hyperprior
    joint: bool
    key: np.uint64
    workers: Workers
    noise: NoiseModel = EQUAL_NOISE
    samples_noise: bool = True
    features: BothFeatures = WITHOUT_FEATURES
    intervals: Intervals = NO_INTERVALS


def init(
    shape: tuple[int, int],
    rank: int,
    noise_variance: float,
    dtype: np.dtype,
    rng: np.random.Generator,
    model: NoiseModel = EQUAL_NOISE,
    features: BothFeatures = WITHOUT_FEATURES,
    intervals: Intervals = NO_INTERVALS,
) -> State:
    """A start at small random factors."""
    left, right = (_FIRST_SD * rng.standard_normal((n, rank)).astype(dtype) for n in shape)
    noise = first_noise(noise_variance, shape[0], np.ones(shape[1]), model)
    return _state(left, right, noise, features, intervals)


def init_at(
    guess: Start,
    dtype: np.dtype,
    rng: np.random.Generator,
    model: NoiseModel = EQUAL_NOISE,
    features: BothFeatures = WITHOUT_FEATURES,
    intervals: Intervals = NO_INTERVALS,
) -> State:
    """The first state, at a guess of the signal without effects."""
    r, q = guess.max_rank, guess.s.size

    def factors(vectors: np.ndarray) -> np.ndarray:
        spare = _SPARE_SD * rng.standard_normal((len(vectors), r - q))
        return np.hstack([vectors * np.sqrt(guess.s), spare]).astype(dtype, order="C")

    variance = max(guess.noise_variance, SMALLEST_NOISE)
    noise = first_noise(variance, len(guess.U), guess.column_precisions, model)
    return _state(factors(guess.U), factors(guess.V), noise, features, intervals)


def _state(
    left: np.ndarray,
    right: np.ndarray,
    noise: NoiseState,
    features: BothFeatures,
    intervals: Intervals,
) -> State:
    rank = left.shape[1]
    prior = FactorPrior(np.zeros(rank), np.eye(rank))
    rows, columns = (first_weights(each, rank) for each in features)
    thresholds = intervals.first_row_thresholds(len(left))
    return State(left, right, prior, prior, noise, rows, columns, intervals.limits, thresholds, 0)


@njit(cache=True)
def _standard_draws(address: Address, rank: int, degrees: float) -> tuple[np.ndarray, np.ndarray]:
    """(A, z): a root of a Wishart(I, degrees) draw, and standard normals."""
    stream = start_stream(address.key, address.sweep, address.purpose)
    A = wishart_root(stream, rank, degrees)
    z = np.empty(rank)
    for k in range(rank):
        seek(stream, 1, k)
        z[k] = normal(stream)
    return A, z


def draw_factor_prior(
    vectors: np.ndarray, roots: np.ndarray, prior: Hyperprior, address: Address, workers: Workers
) -> FactorPrior:
    """(mu, Lambda) given the n vectors of a side, with mean ubar and centred scatter S.

    Lambda ~ Wishart(W, nu_0 + n + p) with
    W^-1 = w_0 I + S + R^T R + n beta_0/(n + beta_0) ubar ubar^T, for the weights R = sqrt(lambda) B of p
    features, ``roots``; mu ~ N(n ubar/(n + beta_0), ((n + beta_0) Lambda)^-1).
    """
    n, rank = vectors.shape
    ubar = sums_about(vectors, np.zeros(rank), workers)[0] / n
    scatter = gram(vectors, ubar, np.ones(n), workers)
    weight = n + prior.beta
    inverse = scatter + roots.T @ roots + n * prior.beta / weight * np.outer(ubar, ubar)
    inverse[np.diag_indices(rank)] += prior.inverse_scale
    C = np.linalg.cholesky(inverse)
    A, z = _standard_draws(address, rank, prior.degrees + n + len(roots))
    T = solve_triangular(C, A, trans="T", lower=True)  # W = C^-T C^-1
    mean = n / weight * ubar + np.linalg.solve(T.T, z) / math.sqrt(weight)
    return FactorPrior(mean, T)


class Half(NamedTuple):
    """One side of the table in a half-sweep."""

    values: Entries | Dense | Remote
    own: np.ndarray
    other: np.ndarray
    prior: FactorPrior
    shifts: np.ndarray
    other_counts: np.ndarray
    noise: RowNoise


def _draw_jointly(half: Half, address: Address, workers: Workers) -> tuple[np.ndarray, RowSums]:
    own = half.own.copy()
    prior = JointPrior(half.prior.mean, half.prior.T @ half.prior.T.T, half.shifts)
    return own, draw_rows(half.values, own, half.other, prior, half.noise, address, workers)


def common_basis(half: Half, workers: Workers) -> tuple[np.ndarray, np.ndarray]:
    """(B, B^-1) with B^T Lambda B = I and B^T G B diagonal, G = sum_j n_j f_j f_j^T over the other side.

    n_j is how many entries column j has: G is the sum of the Gram matrices of all rows.
    """
    T, other = half.prior.T, half.other
    G = gram(other, np.zeros(len(T)), half.other_counts, workers)
    inverse = np.linalg.inv(T)
    inner = inverse @ G @ inverse.T
    _, Q = eigh(0.5 * (inner + inner.T))
    return inverse.T @ Q, Q.T @ T.T


def _draw_entries(half: Half, address: Address, workers: Workers) -> tuple[np.ndarray, RowSums]:
    B, inverse = common_basis(half, workers)
    drawn, factors = multiplied(half.own, inverse.T, workers), multiplied(half.other, B, workers)
    rank = half.own.shape[1]
    shifts = multiplied(half.shifts, inverse.T, workers) if half.shifts.size else half.shifts
    prior = Prior(np.arange(rank), inverse @ half.prior.mean, np.ones(rank), shifts=shifts)
    sums = draw_rows(half.values, drawn, factors, prior, half.noise, address, workers)
    return multiplied(drawn, B.T, workers), sums


class Side(NamedTuple):
    """One side of the table: its vectors, and the features behind their means."""

    own: np.ndarray
    weights: Weights
    features: Features
    hyper_purpose: int
    kernel_purpose: int
    scalar_purpose: int


def _half_sweep(
    side: Side,
    other: np.ndarray,
    values: tuple[Entries | Dense | Remote, np.ndarray, RowNoise],
    t: int,
    context: Context,
) -> tuple[np.ndarray, FactorPrior, Weights, RowSums]:
    """The prior of one side, its vectors, and the weights of its features."""
    entries, other_counts, noise = values
    key, workers, weights, features = context.key, context.workers, side.weights, side.features
    shifts = explained(features, weights.B, workers)
    prior = draw_factor_prior(
        without_explained(side.own, shifts),
        rooted(weights, features),
        context.hyperprior,
        Address(key, t, side.hyper_purpose),
        workers,
    )
    joint = context.joint or isinstance(entries, Dense)
    half = Half(entries, side.own, other, prior, shifts, other_counts, noise)
    draw_side = _draw_jointly if joint else _draw_entries
    own, sums = draw_side(half, Address(key, t, side.kernel_purpose), workers)
    if features.ends:
        rest = without_explained(own, shifts) - prior.mean.astype(own.dtype)
        address = Address(key, t, side.scalar_purpose)
        weights = draw_weights(weights, features, rest, prior.T, address, workers)
    return own, prior, weights, sums


def sweep(
    state: State, data: Data | CompleteData | RemoteData, context: Context
) -> tuple[State, Info]:
    """One sweep: the rows with their prior and weights, the columns likewise, the noise."""
    model, samples_noise, workers = context.noise, context.samples_noise, context.workers
    t, noise = state.sweep, state.noise
    row_counts, column_counts = data.counts
    where = Address(context.key, t, streams.NOISE)

    rows = Side(
        state.left,
        state.row_weights,
        context.features.rows,
        streams.ROW_HYPER,
        streams.ROWS,
        streams.ROW_SCALARS,
    )
    of_rows = state.row_thresholds.of_rows(row_noise(noise.cells, model, state.limits))
    values = data.rows, column_counts, of_rows
    left, row_prior, row_weights, sums = _half_sweep(rows, state.right, values, t, context)
    if model.rows and samples_noise:
        noise = draw_row_precisions(noise, where, row_counts, sums, workers)

    columns = Side(
        state.right,
        state.column_weights,
        context.features.columns,
        streams.COLUMN_HYPER,
        streams.COLUMNS,
        streams.COLUMN_SCALARS,
    )
    of_columns = state.row_thresholds.of_columns(column_noise(noise.cells, model, state.limits))
    values = data.columns, row_counts, of_columns
    right, column_prior, column_weights, sums = _half_sweep(columns, left, values, t, context)
    if model.columns and samples_noise:
        noise = draw_column_precisions(noise, model, where, column_counts, sums, workers)
    info = Info(residual_square(noise.cells, sums))
    if samples_noise:
        noise = draw_level(noise, model, where, column_counts, sums)
    state = State(
        left,
        right,
        row_prior,
        column_prior,
        noise,
        row_weights,
        column_weights,
        state.limits,
        state.row_thresholds,
        t + 1,
    )
    if context.intervals.are_drawn:
        limits, row_thresholds = draw_intervals(
            state, (left, right), data, context.intervals, model, where, workers
        )
        state = state._replace(limits=limits, row_thresholds=row_thresholds)
    return state, info


def draw(state: State) -> Draw:
    """The signal of a state."""
    row_weights, column_weights = (
        drawn_weights(weights, state.left.dtype)
        for weights in (state.row_weights, state.column_weights)
    )
    return Draw(
        state.left,
        state.right,
        state.noise.cells,
        row_weights,
        column_weights,
        state.limits,
        state.row_thresholds.drawn(state.left.dtype),
    )


def spectrum(drawn: Draw) -> np.ndarray:
    """The singular values of U V^T."""
    return singular_values(drawn.left, drawn.right)


def traced(noise: NoiseModel, features: BothFeatures = WITHOUT_FEATURES) -> tuple[str, ...]:
    """The names of what `history` returns."""
    return ("residual_variance", "noise_variance", *noise.traced(), *features.traced())


def history(
    state: State,
    info: Info,
    n_entries: int,
    noise: NoiseModel = EQUAL_NOISE,
    features: BothFeatures = WITHOUT_FEATURES,
) -> dict[str, float]:
    """What is traced over the sweeps, in standard units."""
    values = {"residual_variance": info.residual_square / n_entries}
    values |= noise_history(state.noise, noise)
    return values | share_history(state.row_weights, state.column_weights, features)
