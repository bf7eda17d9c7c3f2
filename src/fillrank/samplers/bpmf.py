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
"""

import math
from collections.abc import Sequence
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
from fillrank.samplers.model import (
    LARGEST_ENTRY,
    LARGEST_SIGNAL,
    SMALLEST_NOISE,
    CompleteData,
    Data,
    Draw,
    Start,
    draw_rows,
    largest_entries,
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
    """All that the next sweep needs: the signal is left right^T."""

    left: np.ndarray
    right: np.ndarray
    row_law: FactorPrior
    column_law: FactorPrior
    noise: NoiseState
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


def init(
    shape: tuple[int, int],
    rank: int,
    noise_variance: float,
    dtype: np.dtype,
    rng: np.random.Generator,
    model: NoiseModel = EQUAL_NOISE,
) -> State:
    """A start at small random factors."""
    left, right = (_FIRST_SD * rng.standard_normal((n, rank)).astype(dtype) for n in shape)
    return _state(left, right, first_noise(noise_variance, shape[0], np.ones(shape[1]), model))


def init_at(
    guess: Start, dtype: np.dtype, rng: np.random.Generator, model: NoiseModel = EQUAL_NOISE
) -> State:
    """The first state, at a guess of the signal without effects."""
    r, q = guess.max_rank, guess.s.size

    def factors(vectors: np.ndarray) -> np.ndarray:
        spare = _SPARE_SD * rng.standard_normal((len(vectors), r - q))
        return np.hstack([vectors * np.sqrt(guess.s), spare]).astype(dtype, order="C")

    variance = max(guess.noise_variance, SMALLEST_NOISE)
    noise = first_noise(variance, len(guess.U), guess.column_precisions, model)
    return _state(factors(guess.U), factors(guess.V), noise)


def _state(left: np.ndarray, right: np.ndarray, noise: NoiseState) -> State:
    rank = left.shape[1]
    prior = FactorPrior(np.zeros(rank), np.eye(rank))
    return State(left, right, prior, prior, noise, 0)


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
    vectors: np.ndarray, prior: Hyperprior, address: Address, workers: Workers
) -> FactorPrior:
    """(mu, Lambda) given the n vectors of a side, with mean ubar and centred scatter S.

    Lambda ~ Wishart(W, nu_0 + n) with W^-1 = w_0 I + S + n beta_0/(n + beta_0) ubar ubar^T;
    mu ~ N(n ubar/(n + beta_0), ((n + beta_0) Lambda)^-1).
    """
    n, rank = vectors.shape
    ubar = sums_about(vectors, np.zeros(rank), workers)[0] / n
    scatter = gram(vectors, ubar, np.ones(n), workers)
    weight = n + prior.beta
    inverse = scatter + n * prior.beta / weight * np.outer(ubar, ubar)
    inverse[np.diag_indices(rank)] += prior.inverse_scale
    C = np.linalg.cholesky(inverse)
    A, z = _standard_draws(address, rank, prior.degrees + n)
    T = solve_triangular(C, A, trans="T", lower=True)  # W = C^-T C^-1
    mean = n / weight * ubar + np.linalg.solve(T.T, z) / math.sqrt(weight)
    return FactorPrior(mean, T)


class Half(NamedTuple):
    """One side of the table in a half-sweep."""

    values: Entries | Dense
    own: np.ndarray
    other: np.ndarray
    prior: FactorPrior
    other_counts: np.ndarray
    noise: RowNoise


def _draw_jointly(half: Half, address: Address, workers: Workers) -> tuple[np.ndarray, RowSums]:
    own = half.own.copy()
    prior = JointPrior(half.prior.mean, half.prior.T @ half.prior.T.T)
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
    prior = Prior(np.arange(rank), inverse @ half.prior.mean, np.ones(rank))
    sums = draw_rows(half.values, drawn, factors, prior, half.noise, address, workers)
    return multiplied(drawn, B.T, workers), sums


def sweep(state: State, data: Data | CompleteData, context: Context) -> tuple[State, Info]:
    """One sweep: the prior of the rows, the rows, the prior of the columns, the columns, the noise."""
    prior, joint, key, workers, model, samples_noise = context
    t, noise = state.sweep, state.noise
    draw_side = _draw_jointly if joint or data.is_complete else _draw_entries
    row_counts, column_counts = data.counts
    where = Address(key, t, streams.NOISE)

    row_prior = draw_factor_prior(state.left, prior, Address(key, t, streams.ROW_HYPER), workers)
    row = row_noise(noise.cells, model)
    half = Half(data.rows, state.left, state.right, row_prior, column_counts, row)
    left, sums = draw_side(half, Address(key, t, streams.ROWS), workers)
    if model.rows and samples_noise:
        noise = draw_row_precisions(noise, where, row_counts, sums, workers)

    column_prior = draw_factor_prior(
        state.right, prior, Address(key, t, streams.COLUMN_HYPER), workers
    )
    column = column_noise(noise.cells, model)
    half = Half(data.columns, state.right, left, column_prior, row_counts, column)
    right, sums = draw_side(half, Address(key, t, streams.COLUMNS), workers)
    if model.columns and samples_noise:
        noise = draw_column_precisions(noise, model, where, column_counts, sums, workers)
    info = Info(residual_square(noise.cells, sums))
    if samples_noise:
        noise = draw_level(noise, model, where, column_counts, sums)
    return State(left, right, row_prior, column_prior, noise, t + 1), info


def draw(state: State) -> Draw:
    """The signal of a state."""
    return Draw(state.left, state.right, state.noise.cells)


def spectrum(drawn: Draw) -> np.ndarray:
    """The singular values of U V^T."""
    return singular_values(drawn.left, drawn.right)


def traced(noise: NoiseModel) -> tuple[str, ...]:
    """The names of what `history` returns."""
    return ("residual_variance", "noise_variance", *noise.traced())


def history(
    state: State, info: Info, n_entries: int, noise: NoiseModel = EQUAL_NOISE
) -> dict[str, float]:
    """What is traced over the sweeps, in standard units."""
    values = {"residual_variance": info.residual_square / n_entries}
    return values | noise_history(state.noise, noise)


def is_valid_state(state: State, infos: Sequence[Info]) -> bool:
    """Whether a chain can continue from a state that was read from a file, with finite numbers."""
    own, other = largest_entries(state.left).max(), largest_entries(state.right).max()
    return (
        not infos
        and max(own, other) <= LARGEST_ENTRY
        and own * other <= LARGEST_SIGNAL
        and state.noise.cells.is_valid
        and state.noise.cells.variance > 0  # the user may have fixed it, in other units
        and state.noise.has_valid_degrees
    )
