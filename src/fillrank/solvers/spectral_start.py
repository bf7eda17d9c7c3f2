r"""Where a chain starts: effects by shrunken means, then the factors that stand above the noise.

The factors come from a few steps of SoftImpute (Mazumder, Hastie and Tibshirani 2010) at the universal
threshold lambda = sigma (sqrt(m p) + sqrt(n p)), with p the share of observed entries: the largest
singular value that noise of variance sigma^2 on a random mask has. sigma is estimated again from the
residual at each step. What stands above lambda is kept, shrunk by a little less than lambda.
"""

import math

import numpy as np

from fillrank.data.entries import Entries
from fillrank.kernels.products import product, residual
from fillrank.kernels.workers import Workers
from fillrank.samplers.state import Data, Effect, Options, Start
from fillrank.solvers.effects import start_effects, without

_STEPS = 15
# The share of lambda by which singular values are shrunk, and how many more of them are computed than
# kept, so that the subspace iteration is accurate for those.
_SHRINK = 0.9
_SPARE = 10


def detection_level(shape: tuple[int, int], n_entries: int, noise_variance: float) -> float:
    """The singular value of Z below which noise hides it: sigma (m n)^(1/4) / sqrt(p).

    Below this level the leading singular vectors of the data say nothing about those of Z (the phase
    transition of Baik, Ben Arous and Peche 2005, for a mask that keeps each entry with probability p).
    """
    m, n = shape
    return math.sqrt(noise_variance) * (m * n) ** 0.25 * math.sqrt(m * n / n_entries)


def noise_edge(data: Data) -> float:
    """The largest singular value of noise of variance 1 on the mask: sqrt(m p) + sqrt(n p)."""
    m, n = data.shape
    p = data.n_entries / (m * n)
    return math.sqrt(m * p) + math.sqrt(n * p)


def _noise_variance(
    rows: Entries, U: np.ndarray, w: np.ndarray, s: np.ndarray, V: np.ndarray, workers: Workers
) -> float:
    """The noise that a fit leaves, for singular values w that were shrunk to s.

    The residual of the shrunken fit still holds part of the signal. Where the entries far outnumber
    the q (m + n - q) parameters of the fit, the one that is not shrunk gives the noise without that
    part. The smaller of the two is taken: a component too many dies, one too few is slow to be born.
    """

    def mean_square(singular_values: np.ndarray, freedom: int) -> float:
        left = (U * singular_values).astype(rows.values.dtype)
        e = residual(rows, left, V, workers).values.astype(np.float64)
        return float(e @ e) / freedom

    n, q = rows.values.size, w.size
    freedom = n - q * (U.shape[0] + V.shape[0] - q)
    shrunken = mean_square(s, n)
    return shrunken if freedom < 0.5 * n else min(shrunken, mean_square(w, freedom))


def _soft_impute(
    data: Data, max_rank: int, workers: Workers, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """(U, s, V, noise variance) after the steps described at the top."""
    m, n = data.shape
    edge = noise_edge(data)
    k = min(max_rank + _SPARE, m, n)
    dtype = data.rows.values.dtype
    left, right = np.zeros((m, 0), dtype), np.zeros((n, 0), dtype)
    Q = rng.standard_normal((n, k)).astype(dtype)
    U, s, V = left, np.zeros(0), right
    noise = _noise_variance(data.rows, U, s, s, V, workers)
    for step in range(_STEPS):
        by_row = residual(data.rows, left, right, workers)
        by_column = residual(data.columns, right, left, workers)
        # Subspace iteration for W = residual + left right^T, from the last step's subspace.
        for _ in range(3 if step == 0 else 1):
            Y = np.linalg.qr(product(by_row, Q, workers) + left @ (right.T @ Q))[0]
            Q = np.linalg.qr(product(by_column, Y, workers) + right @ (left.T @ Y))[0]
        P, w, T = np.linalg.svd(
            product(by_row, Q, workers) + left @ (right.T @ Q), full_matrices=False
        )
        Q = Q @ T.T
        threshold = math.sqrt(noise) * edge
        q = min(int(np.sum(w > threshold)), max_rank)
        U, s, V = P[:, :q], w[:q] - _SHRINK * threshold, Q[:, :q]
        left, right = (U * s).astype(dtype), V
        noise = _noise_variance(data.rows, U, w[:q], s, V, workers)
    return U, s, V, noise


_USUAL_RANK = 30
# A start can fit all entries and still be wrong about the missing ones. From this share of the variance
# that effects leave, sigma^2 comes down by itself; from less the factors would be held where they are.
_SMALLEST_FIRST_NOISE = 1e-2
# The noise variance at a random start, as a share of the data's: with all of it the chain would take
# the signal for noise and stay at Z = 0.
_RANDOM_NOISE = 0.24


def largest_rank(shape: tuple[int, int], n_entries: int) -> int:
    """The most components that a table can tell from noise; at least 1.

    Ledermann's bound on the factors of p variables whose noise is to be estimated too (1937), for p the
    smaller side; and no more parameters than entries.

    Examples
    --------
    >>> largest_rank((1000, 3), 3000), largest_rank((20, 10), 120), largest_rank((500, 500), 250_000)
    (1, 4, 250)
    """
    p = min(shape)
    identified = int((2 * p + 1 - math.sqrt(8 * p + 1)) / 2)
    return max(1, min(identified, n_entries // sum(shape)))


def spectral_start(
    data: Data, max_rank: int | None, options: Options, workers: Workers, rng: np.random.Generator
) -> Start:
    """Estimate effects and factors. With ``max_rank=None``, 30 components or 10 more than are clear.

    30 leaves room for the many weak factors of ratings; a table with more than 20 factors that stand
    clear of the noise gets more.
    """
    m, n = data.shape
    effects, laws = start_effects(data, options)
    rest = without(data, effects)
    most = max_rank or largest_rank((m, n), data.n_entries)
    rank = min(max_rank or _USUAL_RANK, most, m, n)
    while True:
        U, s, V, noise = _soft_impute(rest, rank, workers, rng)
        clear = int(np.sum(s > detection_level((m, n), data.n_entries, noise)))
        if max_rank is not None or clear + _SPARE <= rank or rank == most:
            break
        rank = min(2 * rank, most)
    if max_rank is None:
        rank = min(max(_USUAL_RANK, clear + _SPARE), most)
    values = rest.rows.values.astype(np.float64)
    noise = max(noise, _SMALLEST_FIRST_NOISE * float(np.mean(values**2)))
    return Start(*effects, *laws, U[:, :rank], s[:rank], V[:, :rank], noise, max_rank or rank)


def random_start(
    data: Data, max_rank: int | None, options: Options, workers: Workers, rng: np.random.Generator
) -> Start:
    """Random factors at the edge of the noise: no help from the data, for comparison."""
    m, n = data.shape
    r = max_rank or min(_USUAL_RANK, largest_rank((m, n), data.n_entries))
    U, V = rng.uniform(-1, 1, (m, r)), rng.uniform(-1, 1, (n, r))
    s = np.full(r, noise_edge(data))
    law = Effect(0.0, 0.1)
    return Start(
        np.zeros(m),
        np.zeros(n),
        law,
        law,
        U / np.linalg.norm(U, axis=0),
        s,
        V / np.linalg.norm(V, axis=0),
        _RANDOM_NOISE,
        r,
    )
