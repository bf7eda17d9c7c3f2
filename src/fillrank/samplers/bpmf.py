r"""BPMF: Bayesian probabilistic matrix factorisation (Salakhutdinov and Mnih, ICML 2008).

.. math::

    x_{ij} &\sim N(U_i^T V_j,\; 1/\alpha) \\
    U_i &\sim N(\mu_U, \Lambda_U^{-1}), \qquad V_j \sim N(\mu_V, \Lambda_V^{-1}) \\
    \mu &\sim N(0, (\beta_0 \Lambda)^{-1}), \qquad \Lambda \sim \text{Wishart}(W_0, \nu_0)
    \quad \text{for each side} \\
    \alpha &\sim \text{Gamma}(a_0, \text{rate } b_0), \quad \text{or fixed}

in standard units. One sweep draws (mu_U, Lambda_U), the rows U, (mu_V, Lambda_V), the columns V,
and alpha. The printed posterior of (mu, Lambda) has an uncentred scatter matrix; it has to be
centred.

Rows can be drawn in two ways, both exact. *Jointly*: each from its Gaussian, by a Cholesky
decomposition, O(n_i D^2 + D^3). *Entry by entry*, O(n_i D), with the kernel of GASR: in a basis in
which Lambda and the average Gram matrix of the other side are both diagonal, so that the entries of
a row are nearly independent, and drawing them one by one mixes almost as well. The basis depends
only on what a half-sweep conditions on. In a complete table rows are always drawn jointly: they
share one Cholesky decomposition.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, solve_triangular

from fillrank.draws import streams
from fillrank.draws.gamma import gamma as draw_gamma
from fillrank.draws.normal import normal
from fillrank.draws.streams import Address, seek, start_stream
from fillrank.draws.wishart import wishart_root
from fillrank.kernels.dense_rows import Dense
from fillrank.kernels.factors import gram, multiplied, singular_values, sums_about
from fillrank.kernels.gaussian_rows import Prior
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
from fillrank.table.entries import Entries

# Standard deviations of random factors at the start, and of those that a guess lacks.
_FIRST_SD, _SPARE_SD = 0.1, 0.01


class FactorPrior(NamedTuple):
    """N(mean, Lambda^-1) with Lambda = T T^T: the prior of the vectors of one side."""

    mean: np.ndarray
    T: np.ndarray


class Hyperprior(NamedTuple):
    """beta_0, nu_0 and w_0 of both sides, W_0 = I/w_0; a_0 and b_0 of alpha, or None if it is fixed.

    A factor that the data do not need shrinks until the variance of its vectors is about w_0 over
    their number: the smaller w_0, the closer to zero.
    """

    beta: float
    degrees: float
    inverse_scale: float
    noise: tuple[float, float] | None


class State(NamedTuple):
    """All that the next sweep needs: the signal is left right^T."""

    left: np.ndarray
    right: np.ndarray
    row_law: FactorPrior
    column_law: FactorPrior
    noise_variance: float
    sweep: int


class Info(NamedTuple):
    """Statistics of a sweep: the sum of squared residuals."""

    residual_square: float


class Context(NamedTuple):
    """What does not change from sweep to sweep; with ``joint``, rows are drawn jointly."""

    hyperprior: Hyperprior
    joint: bool
    key: np.uint64
    workers: Workers


def init(
    shape: tuple[int, int],
    rank: int,
    noise_variance: float,
    dtype: np.dtype,
    rng: np.random.Generator,
) -> State:
    """A start at small random factors."""
    left, right = (_FIRST_SD * rng.standard_normal((n, rank)).astype(dtype) for n in shape)
    return _state(left, right, noise_variance)


def init_at(guess: Start, dtype: np.dtype, rng: np.random.Generator) -> State:
    """The first state, at a guess of the signal without effects."""
    r, q = guess.max_rank, guess.s.size

    def factors(vectors: np.ndarray) -> np.ndarray:
        spare = _SPARE_SD * rng.standard_normal((len(vectors), r - q))
        return np.hstack([vectors * np.sqrt(guess.s), spare]).astype(dtype)

    return _state(factors(guess.U), factors(guess.V), max(guess.noise_variance, SMALLEST_NOISE))


def _state(left: np.ndarray, right: np.ndarray, noise_variance: float) -> State:
    rank = left.shape[1]
    prior = FactorPrior(np.zeros(rank), np.eye(rank))
    return State(left, right, prior, prior, noise_variance, 0)


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


@njit(cache=True)
def _draw_precision(address: Address, shape: float, rate: float) -> float:
    return draw_gamma(start_stream(address.key, address.sweep, address.purpose), shape, rate)


class Half(NamedTuple):
    """One side of the table in a half-sweep."""

    values: Entries | Dense
    own: np.ndarray
    other: np.ndarray
    prior: FactorPrior
    other_counts: np.ndarray


def _draw_jointly(
    half: Half, noise_variance: float, address: Address, workers: Workers
) -> tuple[np.ndarray, float]:
    values, own, other, factor_prior, _ = half
    own = own.copy()
    prior = JointPrior(factor_prior.mean, factor_prior.T @ factor_prior.T.T)
    return own, draw_rows(values, own, other, prior, noise_variance, address, workers)


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


def _draw_entries(
    half: Half, noise_variance: float, address: Address, workers: Workers
) -> tuple[np.ndarray, float]:
    values, own, other, factor_prior, _ = half
    B, inverse = common_basis(half, workers)
    drawn, factors = multiplied(own, inverse.T, workers), multiplied(other, B, workers)
    rank = own.shape[1]
    prior = Prior(np.arange(rank), inverse @ factor_prior.mean, np.ones(rank))
    square = draw_rows(values, drawn, factors, prior, noise_variance, address, workers)
    return multiplied(drawn, B.T, workers), square


def sweep(state: State, data: Data | CompleteData, context: Context) -> tuple[State, Info]:
    """One sweep: the prior of the rows, the rows, the prior of the columns, the columns, alpha."""
    prior, joint, key, workers = context
    t, noise = state.sweep, state.noise_variance
    draw_side = _draw_jointly if joint or data.is_complete else _draw_entries
    row_counts, column_counts = data.counts

    row_prior = draw_factor_prior(state.left, prior, Address(key, t, streams.ROW_HYPER), workers)
    half = Half(data.rows, state.left, state.right, row_prior, column_counts)
    left, _ = draw_side(half, noise, Address(key, t, streams.ROWS), workers)

    column_prior = draw_factor_prior(
        state.right, prior, Address(key, t, streams.COLUMN_HYPER), workers
    )
    half = Half(data.columns, state.right, left, column_prior, row_counts)
    right, square = draw_side(half, noise, Address(key, t, streams.COLUMNS), workers)

    if prior.noise is not None:
        a, b = prior.noise
        where = Address(key, t, streams.NOISE)
        noise = 1.0 / _draw_precision(where, a + 0.5 * data.n_entries, b + 0.5 * square)
        noise = max(noise, SMALLEST_NOISE)
    return State(left, right, row_prior, column_prior, noise, t + 1), Info(square)


def draw(state: State) -> Draw:
    """The signal of a state."""
    return Draw(state.left, state.right, state.noise_variance)


def spectrum(drawn: Draw) -> np.ndarray:
    """The singular values of U V^T."""
    return singular_values(drawn.left, drawn.right)


def history(state: State, info: Info, n_entries: int) -> dict[str, float]:
    """What is traced over the sweeps, in standard units."""
    return {
        "residual_variance": info.residual_square / n_entries,
        "noise_variance": state.noise_variance,
    }


def is_valid_state(state: State, infos: Sequence[Info]) -> bool:
    """Whether a chain can continue from a state that was read from a file, with finite numbers."""
    own, other = largest_entries(state.left).max(), largest_entries(state.right).max()
    return (
        not infos
        and max(own, other) <= LARGEST_ENTRY
        and own * other <= LARGEST_SIGNAL
        and state.noise_variance > 0  # the user may have fixed it, in other units
    )
