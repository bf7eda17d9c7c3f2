r"""Where chains start: effects by shrunken means, then the factors that are stronger than the noise.

The factors of the spectral start come from a few steps of SoftImpute (Mazumder, Hastie and
Tibshirani 2010) at the universal threshold lambda = sigma (sqrt(m p) + sqrt(n p)), with p the share
of observed entries: the largest singular value of noise of variance sigma^2 on a random mask. Each
step estimates sigma again from the residual. Singular values above lambda are retained, shrunk by a
little less than lambda. In small noisy tables some weaker ones are added at a share of their size: a
chain cannot find factors that start at zero, and intervals would leave out what is not known about
them.

If columns have their own units, some may be nearly exact and others mostly noise: one noise variance
for all would make the factors fit the noise of the latter. `column_noise_start` estimates the noise
variance of each column with the factors. It begins at the variance of the column, so that the estimates
decrease only as factors are found, and a column counts more the better it is explained.

The other starts are a solver's solution, as the paper's conclusion suggests, at the same threshold
and from the same factors, so that there is nothing to choose; and random factors.
"""

import math

import numpy as np

from fillrank.kernels.factors import orthonormalise, triangle
from fillrank.kernels.products import Fitted, effect_sums, residual_products
from fillrank.runtime.threads import Workers
from fillrank.samplers.gasr import Options
from fillrank.samplers.model import Data, Effect, Remote, RemoteData, Start
from fillrank.solvers.fit import Factors, Fit, Limits
from fillrank.solvers.hasi import hasi
from fillrank.solvers.rank import detection_level, largest_rank, noise_edge, shrink_singular_values
from fillrank.solvers.soft_impute import soft_impute
from fillrank.table.entries import Entries

_Effects = tuple[np.ndarray, np.ndarray]

# Subspace iterations from a random subspace; then steps of SoftImpute, fewer if the singular
# values, before and after shrinkage, change by less than a share of themselves. Complete tables
# take 3 to 5 steps. With most entries missing, 15 steps do not converge, but are accurate enough
# for a chain.
_FIRST_STEPS, _STEPS = 3, 15
_CONVERGED = 1e-5
# The share of lambda by which singular values are shrunk, and how many more of them are computed
# than used, so that the subspace iteration is accurate for those.
_SHRINK = 0.9
_SPARE = 10
_USUAL_RANK = 30
# A start can fit all entries and still be wrong about the missing ones. sigma^2 starts at no less
# than this share of the variance without effects: from there it decreases where it should, while a
# smaller value would fix the factors where they are.
_SMALLEST_FIRST_NOISE = 1e-2
# The noise variance of a random start, as a share of the data's. With the full variance the chain
# would treat the signal as noise and remain at Z = 0.
_RANDOM_NOISE = 0.24
# Steps of the start with noise by column, and the smallest noise variance of a column in it.
_COLUMN_STEPS = 30
_SMALLEST_COLUMN_NOISE = 1e-4
# The size at which components below the threshold are added, as a share of their singular values: a
# chain grows those that it needs, and shrinks the others within some sweeps.
_BELOW_THRESHOLD = 0.2
# How many of them the spectral start adds: in tables with missing cells, of at most so many entries, and
# with a noise variance above this share of the variance. There intervals need them; where the signal is
# clear, they would widen intervals, and some would count as factors.
_MOST_WEAK = 5
_MOST_ENTRIES_WITH_WEAK, _MUCH_NOISE = 1000, 0.5
# Singular values below this share of the largest are rounding errors.
_SMALLEST_SHARE = 1e-6
# The largest number of components if columns have their own units, and the number of cells up to which
# the start with noise by column is computed: it has a few arrays of all cells.
_MOST_COMPONENTS = 150
_MOST_CELLS = 20_000_000
# Steps of EM for the effects, and bounds of their variances.
_EFFECT_STEPS = 10
_FIRST_VARIANCE = 0.1
_SMALLEST_VARIANCE = 1e-6
_ALONE = Workers(1)
# Limits of the solvers: a start need not be exact.
_ITERATIONS, _TOLERANCE = 50, 1e-3
# HASI's beta, as a share of the largest singular value: factors well below it are shrunk most.
_BETA = 0.1


def _effect_sums(
    side: Entries | Remote, own: np.ndarray, other: np.ndarray, workers: Workers
) -> tuple[np.ndarray, float]:
    """(sum_j x_ij - other_j for each row i, sum_ij (x_ij - own_i - other_j)^2)."""
    if isinstance(side, Remote):
        sums, squares = side.effect_sums(own, other)
    else:
        sums, squares = effect_sums(side, own, other, workers)
    return sums, float(squares.sum())


def shrunken_means(
    n: np.ndarray, sums: np.ndarray, noise: float, prior: Effect
) -> tuple[np.ndarray, Effect]:
    """The effects of rows with n values N(effect, noise) that add up to ``sums``, and their new prior.

    One step of EM for effects ~ N(prior): their posterior means, then the mean and variance of the
    prior.
    """
    variance = 1.0 / (n / noise + 1.0 / prior.variance)
    effects = variance * (sums / noise + prior.mean / prior.variance)
    mean = float(effects.mean())
    spread = float(np.mean((effects - mean) ** 2 + variance))
    return effects, Effect(mean, max(spread, _SMALLEST_VARIANCE))


def start_effects(
    data: Data | RemoteData, options: Options, workers: Workers = _ALONE
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[Effect, Effect]]:
    """Effects of both sides by alternating ``shrunken_means``; zeros for a side without effects."""
    sides = (data.rows, data.columns)
    has = (options.row_effects, options.column_effects)
    effects = [np.zeros(size) for size in data.shape]
    priors = [Effect(0.0, _FIRST_VARIANCE), Effect(0.0, _FIRST_VARIANCE)]
    for _ in range(_EFFECT_STEPS if any(has) else 0):
        for a, b in ((1, 0), (0, 1)):
            if not has[a]:
                continue
            sums, square = _effect_sums(sides[a], effects[a], effects[b], workers)
            noise = max(square / data.n_entries, _SMALLEST_VARIANCE)
            effects[a], priors[a] = shrunken_means(data.counts[a], sums, noise, priors[a])
    return (effects[0], effects[1]), (priors[0], priors[1])


def subtract_effects(data: Data, effects: tuple[np.ndarray, np.ndarray]) -> Data:
    """The data less the effects of both sides."""
    dtype = data.rows.values.dtype

    def less(entries: Entries, own: np.ndarray, other: np.ndarray) -> Entries:
        both = np.repeat(own, np.diff(entries.pointers)) + other[entries.indices]
        return entries._replace(values=(entries.values - both).astype(dtype))

    return Data(less(data.rows, *effects), less(data.columns, *effects[::-1]))


def _noise_variance(fitted: Fitted, squares: np.ndarray, n_entries: int) -> float:
    """The noise variance, from the sums of squared residuals of the fit with and without shrinkage.

    The residual of the shrunken fit still contains a part of the signal. If there are many more
    entries than the q (m + n - q) parameters of the fit, the fit without shrinkage gives the noise
    without that part. The result is the smaller of both: a chain removes a component too many
    faster than it finds one too few.
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

    The last two columns of U and V are reserved for them.
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
    if isinstance(entries, Remote):
        back, squares = entries.residual_products(fitted, Q, Y)
    else:
        back, squares = residual_products(entries, fitted, Q, Y, workers)
    back += V @ (s * (U.T @ Y))
    return Y, back, squares.sum(axis=0)


def _step(
    entries: Entries | Remote,
    before: Fitted,
    Q: np.ndarray,
    max_rank: int,
    effects: _Effects,
    workers: Workers,
    with_weak: bool = False,
) -> tuple[Fitted, np.ndarray]:
    """The next fit, and the next Q: one iteration for the leading right singular vectors of W.

    One pass over the entries also gives the residuals of the fit before, and so the noise variance
    for the threshold. ``with_weak`` adds some factors below the threshold, shrunken to a share.
    """
    (m, k), n = (before.left.shape[0], Q.shape[1]), Q.shape[0]
    Y, back, squares = _completed_products(entries, before, Q, workers)
    noise = _noise_variance(before, squares, entries.n_entries)
    threshold = math.sqrt(noise) * noise_edge((m, n), entries.n_entries)
    _, w, Vt = np.linalg.svd(triangle(Y, workers=workers))
    q = min(int(np.sum(w > threshold)), max_rank)
    if with_weak:
        q = min(int(np.sum(w > _SMALLEST_SHARE * w[0])), q + _MOST_WEAK, max_rank)
    rotation = np.zeros((k, q + 2), dtype=Q.dtype)  # the last two columns are for the effects
    rotation[:, :q] = Vt[:q].T
    V = Q @ rotation
    rotation[:, :q] /= w[:q]
    shrunken = np.maximum(w[:q] - _SHRINK * threshold, _BELOW_THRESHOLD * w[:q] * with_weak)
    fitted = _beside_effects(Y @ rotation, w[:q], shrunken, V, effects)
    Q = back @ Vt.T.astype(Q.dtype)
    orthonormalise(Q, workers)
    return fitted, Q


def _has_converged(fitted: Fitted, before: Fitted) -> bool:
    new, old = fitted.scales, before.scales
    return new.shape == old.shape and np.allclose(new, old, rtol=_CONVERGED, atol=0.0)


def _soft_impute(
    entries: Entries | Remote,
    effects: _Effects,
    max_rank: int,
    workers: Workers,
    rng: np.random.Generator,
    much_noise: float,
) -> tuple[Fitted, float]:
    """The fit after the steps of the module's docstring, and its noise variance.

    If that is above ``much_noise``, some factors below the threshold are added at the end.
    """
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
        if _has_converged(fitted, before):
            break
    _, _, squares = _completed_products(entries, fitted, Q[:, :0], workers)
    noise = _noise_variance(fitted, squares, entries.n_entries)
    if noise > much_noise:
        fitted, _ = _step(entries, fitted, Q, max_rank, effects, workers, with_weak=True)
    return fitted, noise


def _tall_soft_impute(
    data: Data | RemoteData,
    effects: _Effects,
    variance: float,
    max_rank: int,
    workers: Workers,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """(U, s, V, noise variance) by SoftImpute on the table or its transpose, whichever is taller.

    ``variance`` is that of the data without effects.
    """
    m, n = data.shape
    is_tall = m >= n
    entries = data.rows if is_tall else data.columns
    is_complete = data.n_entries == m * n
    has_weak = not is_complete and data.n_entries <= _MOST_ENTRIES_WITH_WEAK
    much_noise = _MUCH_NOISE * variance if has_weak else math.inf
    fitted, noise = _soft_impute(
        entries, effects if is_tall else effects[::-1], max_rank, workers, rng, much_noise
    )
    U, V = (fitted.left, fitted.right) if is_tall else (fitted.right, fitted.left)
    s, w = fitted.scales[:, :-2].astype(np.float64)
    if is_complete:
        s = np.maximum(s, shrink_singular_values(w, (m, n), noise))
    return U[:, :-2], s, V[:, :-2], noise


def spectral_start(
    data: Data | RemoteData,
    max_rank: int | None,
    options: Options,
    workers: Workers,
    rng: np.random.Generator,
) -> Start:
    """Estimate effects and factors.

    With ``max_rank=None`` there are 30 components, enough for the many weak factors of ratings, or
    10 more than the number of factors above the detection level.
    """
    m, n = data.shape
    effects, priors = start_effects(data, options, workers)
    variance = _effect_sums(data.rows, *effects, workers)[1] / data.n_entries
    most = max_rank or largest_rank((m, n))
    rank = min(max_rank or _USUAL_RANK, most, m, n)
    while True:
        U, s, V, noise = _tall_soft_impute(data, effects, variance, rank, workers, rng)
        clear = int(np.sum(s > detection_level((m, n), data.n_entries, noise)))
        if max_rank is not None or clear + _SPARE <= rank or rank == most:
            break
        rank = min(2 * rank, most)
    if max_rank is None:
        rank = min(max(_USUAL_RANK, clear + _SPARE), most)
    noise = max(noise, _SMALLEST_FIRST_NOISE * variance)
    U, s, V = U[:, :rank], s[:rank], V[:, :rank]
    return Start(*effects, *priors, U, s, V, noise, np.ones(n), max_rank or rank)


def column_noise_start(
    data: Data,
    max_rank: int | None,
    options: Options,
    workers: Workers,
    rng: np.random.Generator,
) -> Start:
    """Estimate factors and the noise variance of each column, for columns of mean 0 and variance 1.

    With ``max_rank=None`` there are one component less than columns, at most 150: any correlation of
    the columns can then be represented. Tables of so many cells that arrays of all of them take too
    much memory have a `spectral_start`.
    """
    m, n = data.shape
    if m * n > _MOST_CELLS:
        return spectral_start(data, max_rank, options, workers, rng)
    rank = max_rank or max(1, min(m - 1, n - 1, _MOST_COMPONENTS))
    X, observed = _as_array(data.rows, n)
    threshold = noise_edge((m, n), data.n_entries)
    Z, noise = np.zeros((m, n)), np.ones(n)
    for _ in range(_COLUMN_STEPS):
        filled = np.where(observed, X, Z) / np.sqrt(noise)
        U, w, V = _leading_factors(filled, rank)
        s = np.maximum(w - _SHRINK * threshold, 0.0) * (w > threshold)
        Z = (U * s) @ V.T * np.sqrt(noise)
        squares = np.sum((X - Z) ** 2, axis=0, where=observed)
        noise = np.maximum(squares / np.maximum(data.counts[1], 1), _SMALLEST_COLUMN_NOISE)
        noise[data.counts[1] == 0] = 1.0
    s = np.maximum(w - _SHRINK * threshold, _BELOW_THRESHOLD * w)
    U, s, V = _leading_factors((U * s) @ V.T * np.sqrt(noise), rank)
    has_direction = s > _SMALLEST_SHARE * s[0]
    U, s, V = U[:, has_direction], s[has_direction], V[:, has_direction]
    prior = Effect(0.0, _FIRST_VARIANCE)
    variance = float(np.exp(np.mean(np.log(noise))))
    return Start(np.zeros(m), np.zeros(n), prior, prior, U, s, V, variance, variance / noise, rank)


def _as_array(entries: Entries, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """The values as an array, 0 where there is none, and where there are values."""
    X = np.zeros((entries.pointers.size - 1, n_columns))
    observed = np.zeros(X.shape, dtype=bool)
    rows = np.repeat(np.arange(len(X)), np.diff(entries.pointers))
    X[rows, entries.indices] = entries.values
    observed[rows, entries.indices] = True
    return X, observed


def _leading_factors(X: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(U, s, V) of the largest singular values, by the Gram matrix of the shorter side."""
    if X.shape[0] < X.shape[1]:
        V, s, U = _leading_factors(X.T, rank)
        return U, s, V
    squares, V = np.linalg.eigh(X.T @ X)
    V = V[:, ::-1][:, :rank]
    s = np.sqrt(np.maximum(squares[::-1][:rank], 0.0))
    return X @ V / np.maximum(s, np.finfo(np.float64).tiny), s, V


def random_start(
    data: Data | RemoteData,
    max_rank: int | None,
    _options: Options,
    _workers: Workers,
    rng: np.random.Generator,
) -> Start:
    """Random factors at the edge of the noise, without using the data, for comparison."""
    m, n = data.shape
    r = max_rank or min(_USUAL_RANK, largest_rank((m, n)))
    U, V = rng.uniform(-1, 1, (m, r)), rng.uniform(-1, 1, (n, r))
    s = np.full(r, noise_edge((m, n), data.n_entries))
    prior = Effect(0.0, 0.1)
    return Start(
        np.zeros(m),
        np.zeros(n),
        prior,
        prior,
        U / np.linalg.norm(U, axis=0),
        s,
        V / np.linalg.norm(V, axis=0),
        _RANDOM_NOISE,
        np.ones(n),
        r,
    )


def soft_impute_start(
    data: Data, max_rank: int | None, options: Options, workers: Workers, rng: np.random.Generator
) -> Start:
    """Start at the solution of SoftImpute."""
    guess = spectral_start(data, max_rank, options, workers, rng)
    return _at(guess, _solve(guess, data, workers))


def hasi_start(
    data: Data, max_rank: int | None, options: Options, workers: Workers, rng: np.random.Generator
) -> Start:
    """Start at the solution of HASI, which shrinks large singular values less."""
    guess = soft_impute_start(data, max_rank, options, workers, rng)
    return _at(guess, _solve(guess, data, workers, adaptive=True))


def _solve(guess: Start, data: Data, workers: Workers, adaptive: bool = False) -> Fit:
    rest = subtract_effects(Data(*map(_double, data)), (guess.row_effects, guess.column_effects))
    penalty = math.sqrt(guess.noise_variance) * noise_edge(data.shape, data.n_entries)
    limits = Limits(guess.max_rank, _ITERATIONS, _TOLERANCE)
    first = Factors(guess.U.astype(np.float64), guess.s, guess.V.astype(np.float64))
    if adaptive and first.s.size:
        return hasi(rest, penalty, _BETA * float(first.s[0]), limits, workers, first)
    return soft_impute(rest, penalty, limits, workers, first)


def _double(entries: Entries) -> Entries:
    return entries._replace(values=entries.values.astype(np.float64))


def _at(guess: Start, fit: Fit) -> Start:
    U, s, V = fit.factors
    return guess._replace(U=U, s=s, V=V)
