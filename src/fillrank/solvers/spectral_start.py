r"""Where a chain starts: effects by shrunken means, then the factors that stand above the noise.

The factors come from a few steps of SoftImpute (Mazumder, Hastie and Tibshirani 2010) at the universal
threshold lambda = sigma (sqrt(m p) + sqrt(n p)), with p the share of observed entries: the largest
singular value that noise of variance sigma^2 on a random mask has. sigma is estimated again from the
residual at each step. What stands above lambda is kept, shrunk by a little less than lambda.
"""

import math

import numpy as np

from fillrank.kernels.products import Fitted, effect_sums, residual_products
from fillrank.kernels.remote import Remote
from fillrank.kernels.spectrum import orthonormalise, triangle
from fillrank.runtime.workers import Workers
from fillrank.samplers.state import Data, Effect, Options, RemoteData, Start
from fillrank.solvers.effects import start_effects
from fillrank.table.entries import Entries

_Effects = tuple[np.ndarray, np.ndarray]

# Iterations towards the leading subspace of the entries, from a random one; then steps of SoftImpute,
# fewer if the singular values, shrunken and as they are, no longer change by more than a share of
# themselves. Tables without holes take 3 to 5 steps; with most entries missing, 15 are far from the end,
# but near enough for a chain.
_FIRST_STEPS, _STEPS = 3, 15
_SETTLED = 1e-5
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


def noise_edge(data: Data | RemoteData) -> float:
    """The largest singular value of noise of variance 1 on the mask: sqrt(m p) + sqrt(n p)."""
    return _edge(*data.shape, data.n_entries)


def _edge(m: int, n: int, n_entries: int) -> float:
    p = n_entries / (m * n)
    return math.sqrt(m * p) + math.sqrt(n * p)


def _noise_variance(fitted: Fitted, squares: np.ndarray, n_entries: int) -> float:
    """The noise that a fit leaves, from the sums of its squared residuals, shrunken and as it is.

    The residual of the shrunken fit still holds part of the signal. Where the entries far outnumber
    the q (m + n - q) parameters of the fit, the one that is not shrunk gives the noise without that
    part. The smaller of the two is taken: a component too many dies, one too few is slow to be born.
    """
    (m, width), n = fitted.left.shape, fitted.right.shape[0]
    q = width - 2
    freedom = n_entries - q * (m + n - q)
    shrunken = float(squares[0]) / n_entries
    return shrunken if freedom < 0.5 * n_entries else min(shrunken, float(squares[1]) / freedom)


def _beside_effects(
    U: np.ndarray, w: np.ndarray, s: np.ndarray, V: np.ndarray, effects: _Effects
) -> Fitted:
    """U diag(s) V^T and U diag(w) V^T, each with the effects as two more factors.

    U and V come with two columns more, which these take.
    """
    U[:, -2], U[:, -1] = effects[0], 1.0
    V[:, -2], V[:, -1] = 1.0, effects[1]
    scales = np.ones((2, U.shape[1]), dtype=U.dtype)
    scales[0, :-2], scales[1, :-2] = s, w
    return Fitted(U, V, scales)


def _completed_products(
    entries: Entries | Remote, fitted: Fitted, Q: np.ndarray, workers: Workers
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(W Q, W^T W Q, sums of squares), with W = P_Omega(X - effects - Z) + Z for the shrunken Z."""
    U, V, s = fitted.left[:, :-2], fitted.right[:, :-2], fitted.scales[0, :-2, np.newaxis]
    Y = U @ (s * (V.T @ Q))
    back, squares = residual_products(entries, fitted, Q, Y, workers)
    back += V @ (s * (U.T @ Y))
    return Y, back, squares


def _step(
    entries: Entries | Remote,
    before: Fitted,
    Q: np.ndarray,
    max_rank: int,
    effects: _Effects,
    workers: Workers,
) -> tuple[Fitted, np.ndarray]:
    """The next fit, and the next Q: one iteration for the leading right singular vectors of W.

    It takes one pass over the entries, which also has the residuals of the fit before: from them comes
    the noise that the threshold is made of.
    """
    (m, k), n = (before.left.shape[0], Q.shape[1]), Q.shape[0]
    Y, back, squares = _completed_products(entries, before, Q, workers)
    noise = _noise_variance(before, squares, entries.n_entries)
    threshold = math.sqrt(noise) * _edge(m, n, entries.n_entries)
    _, w, Vt = np.linalg.svd(triangle(Y, workers=workers))
    q = min(int(np.sum(w > threshold)), max_rank)
    turn = np.zeros((k, q + 2), dtype=Q.dtype)  # the last two columns are the effects' places
    turn[:, :q] = Vt[:q].T
    V = Q @ turn
    turn[:, :q] /= w[:q]
    fitted = _beside_effects(Y @ turn, w[:q], w[:q] - _SHRINK * threshold, V, effects)
    Q = back @ Vt.T.astype(Q.dtype)
    orthonormalise(Q, workers)
    return fitted, Q


def _has_settled(fitted: Fitted, before: Fitted) -> bool:
    new, old = fitted.scales, before.scales
    return new.shape == old.shape and np.allclose(new, old, rtol=_SETTLED, atol=0.0)


def _soft_impute(
    entries: Entries | Remote,
    effects: _Effects,
    max_rank: int,
    workers: Workers,
    rng: np.random.Generator,
) -> tuple[Fitted, float]:
    """The fit after the steps described at the top, and its noise variance."""
    (m, n), dtype = (effects[0].size, effects[1].size), entries.dtype
    nothing = np.zeros(0)
    fitted = _beside_effects(
        np.empty((m, 2), dtype), nothing, nothing, np.empty((n, 2), dtype), effects
    )
    Q = rng.standard_normal((n, min(max_rank + _SPARE, m, n))).astype(dtype)
    for _ in range(_FIRST_STEPS):
        _, Q, _ = _completed_products(entries, fitted, Q, workers)
        orthonormalise(Q, workers)
    for _ in range(_STEPS):
        before = fitted
        fitted, Q = _step(entries, before, Q, max_rank, effects, workers)
        if _has_settled(fitted, before):
            break
    _, _, squares = _completed_products(entries, fitted, Q[:, :0], workers)
    return fitted, _noise_variance(fitted, squares, entries.n_entries)


def _tall_soft_impute(
    data: Data | RemoteData,
    effects: _Effects,
    max_rank: int,
    workers: Workers,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """(U, s, V, noise variance) by SoftImpute on the table or its transpose, on the taller one."""
    m, n = data.shape
    is_tall = m >= n
    entries = data.rows if is_tall else data.columns
    fitted, noise = _soft_impute(
        entries, effects if is_tall else effects[::-1], max_rank, workers, rng
    )
    U, V = (fitted.left, fitted.right) if is_tall else (fitted.right, fitted.left)
    s, w = fitted.scales[:, :-2].astype(np.float64)
    if data.n_entries == m * n:
        s = np.maximum(s, without_noise(w, (m, n), noise))
    return U[:, :-2], s, V[:, :-2], noise


def without_noise(w: np.ndarray, shape: tuple[int, int], noise_variance: float) -> np.ndarray:
    """What singular values w of signal and noise, without holes, say of those of the signal.

    The shrinkage that is best in the Frobenius norm (Gavish and Donoho 2017): w becomes
    sqrt((w^2 - a - b)^2 - 4 a b) / w, where a and b are sigma^2 times the two lengths. A factor at the
    edge of the noise is larger than a soft threshold leaves it: from there it could die, and would be
    slow to come back.

    Examples
    --------
    >>> without_noise(np.array([100.0, 67.7]), (100, 100), noise_variance=10.0).round(1)
    array([77.5, 24.2])
    """
    a, b = (noise_variance * length for length in shape)
    return np.sqrt(np.maximum((w**2 - a - b) ** 2 - 4 * a * b, 0.0)) / w


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
    data: Data | RemoteData,
    max_rank: int | None,
    options: Options,
    workers: Workers,
    rng: np.random.Generator,
) -> Start:
    """Estimate effects and factors. With ``max_rank=None``, 30 components or 10 more than are clear.

    30 leaves room for the many weak factors of ratings; a table with more than 20 factors that stand
    clear of the noise gets more.
    """
    m, n = data.shape
    effects, laws = start_effects(data, options, workers)
    most = max_rank or largest_rank((m, n), data.n_entries)
    rank = min(max_rank or _USUAL_RANK, most, m, n)
    while True:
        U, s, V, noise = _tall_soft_impute(data, effects, rank, workers, rng)
        clear = int(np.sum(s > detection_level((m, n), data.n_entries, noise)))
        if max_rank is not None or clear + _SPARE <= rank or rank == most:
            break
        rank = min(2 * rank, most)
    if max_rank is None:
        rank = min(max(_USUAL_RANK, clear + _SPARE), most)
    _, square = effect_sums(data.rows, *effects, workers)
    noise = max(noise, _SMALLEST_FIRST_NOISE * square / data.n_entries)
    return Start(*effects, *laws, U[:, :rank], s[:rank], V[:, :rank], noise, max_rank or rank)


def random_start(
    data: Data | RemoteData,
    max_rank: int | None,
    options: Options,
    workers: Workers,
    rng: np.random.Generator,
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
