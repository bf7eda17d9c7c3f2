r"""New rows of a fitted table: their posterior, given their own entries, under every stored draw.

Given a draw, with factors f_j of the columns, noise variance s2 and precisions b_j of the columns, a new
row is a Gaussian regression:

    x_j ~ N(c . f_j, s2 / (a b_j)),    c ~ N(mean, L L^T),

where the prior is the distribution of the draw's own rows (`empirical_law`). With c = mean + L w,
g_j = L^T f_j sqrt(b_j) / s and y_j = (x_j - mean . f_j) sqrt(b_j) / s,

    w | x, a ~ N(P^-1 h, P^-1),    P = I + a sum_j g_j g_j^T,    h = a sum_j g_j y_j.

The precision a of the row is one of at most eight quantiles of the precisions of the draw's rows,
equally probable before the entries are seen. Its posterior probabilities are proportional to the
marginal likelihood

    p(x | a) ~ a^(n/2) |P|^(-1/2) exp(-(a sum_j y_j^2 - h^T P^-1 h) / 2).

For Student-t noise with nu degrees of freedom, b_j is multiplied by a weight
u_j ~ Gamma(nu / 2, nu / 2). From u = 1 there are three alternations of (a, c | u) and u | a, c: enough
to reduce the weights of outliers, but not exact. The weights of Laplace noise are drawn in the same way.

With features F of the rows, mean and L L^T are the distribution of the draw's own rows A without what
their features explain, A - F B, with the weights B of the draw. A new row with features f does not have
these weights for certain: they are integrated out, given A. With D = diag(lambda), their prior
precisions relative to those of the rows, and G = F^T F + D,

    c ~ N(mean + f G^-1 F^T (A - mean), (1 + h) L L^T),    h = f G^-1 f^T.

Otherwise the entries of a new row could hardly move it where features explain nearly all, as times do in
a smooth series. So g_j, and L in c, are multiplied by sqrt(1 + h), which is large for features that are
unlike those of the fitted rows.

A draw does not store lambda. For a block of p features it is taken as p K / sum_k ||B_k||^2 / v_k,
bounded as in the sampler, where v_k is the variance of component k of A - F B, over the K components
that vary. That is the mean of lambda given B and these variances, without its prior. If some features
of a new row are not known, F has only the others: what it does not explain is then in L.

Of values of other kinds than numbers only an interval is known. There are ten alternations of
(a, c | values), c | a without the values, and values | a, c, which are normal in their intervals. The
second step, and the start, use a normal approximation of c given the intervals
(`fillrank.kernels.interval_rows`): without them, alternations would be far too few where the signal is
much larger than the noise. With Student-t noise there is no such step, and the start is in the middle of
the intervals. With another law of levels, their weights and working responses take the place of the
values.

If the thresholds between levels differ by row, those of a new row have the means and variances of the
draw's own rows, and are drawn in every alternation, with the values integrated out
(`fillrank.kernels.row_thresholds`).

A row without entries has the prior. The draws of the columns do not change, whereas a new fit would
learn about the columns from the new rows. That costs little if there are few new rows, and enough
fitted rows to determine the factors. A factor that the fit missed is missing in new rows, too: in
tables of 20 rows, where this was frequent, the coverage of 90% intervals was 82% for missing cells, and
75% for those of new rows.

The result of a row depends only on its own entries; its draws depend also on its position among the new
rows.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from fillrank.draws.streams import ROWS, Address, chain_key
from fillrank.kernels.factors import gram
from fillrank.kernels.gaussian_rows import NO_LIMITS, NO_THRESHOLDS
from fillrank.kernels.new_rows import NewRows, Regression, regress_rows
from fillrank.kernels.row_thresholds import ThresholdPrior
from fillrank.kernels.student_t import NEARLY_NORMAL
from fillrank.noise.laws import LAWS, LawName
from fillrank.runtime.threads import Workers
from fillrank.samplers.feature_steps import STRENGTHS
from fillrank.samplers.model import SMALLEST_NOISE, Draw
from fillrank.samplers.noise_steps import FIXED_VARIANCE
from fillrank.table.entries import Entries

# A chain that no run has: the draws of new rows are independent of those of the fit with the same seed.
_NO_CHAIN = 2**32 - 1
# Standard deviations below this share of the mean are rounding errors of a constant. Those below the
# second number, in standard units, count as 0, because their squares would underflow in float32.
_CONSTANT, _NOTHING = 1e-12, 1e-15
# Precisions that a new row can have under a draw.
_PRECISIONS = 8
# New rows whose h is computed together.
_TOGETHER = 4096
# Against division by 0 if all weights of a block are 0.
_NO_WEIGHT = 1e-100


class RowFeatures(NamedTuple):
    """The blocks of features of the rows that were fitted, (m, p) each, and of new rows, (n_new, p).

    ``known`` (n_new, blocks) says which blocks of the new rows are known.
    """

    fitted: list[np.ndarray]
    new: list[np.ndarray]
    known: np.ndarray


class _Group(NamedTuple):
    """New rows of which the same blocks of features are known.

    ``rows`` says for each new row whether it is in the group; it is empty if all are. ``fitted`` (m, p)
    and ``new`` (n_new, p) are the known blocks, side by side, ``gram`` is F^T F of the first.
    ``weights`` (p,) are the positions of their weights in a draw, ``blocks`` (p,) the numbers of their
    blocks. ``is_fixed`` is whether the variance of their noise is fixed; if it is not, the fitted rows
    ``varies`` are those whose precisions they may have, all if it is empty.
    """

    rows: np.ndarray
    fitted: np.ndarray
    new: np.ndarray
    gram: np.ndarray
    weights: np.ndarray
    blocks: np.ndarray
    is_fixed: bool = False
    varies: np.ndarray = np.zeros(0, dtype=bool)


class FixedNoise(NamedTuple):
    """Which of the fitted rows (m,) and of the new rows (n_new,) have noise of a fixed variance.

    In the transposed table of a table of mixed kinds, those are the latent columns of two levels.
    """

    fitted: np.ndarray
    new: np.ndarray


_ALL = np.zeros(0, dtype=bool)
_NO_NUMBERS = np.zeros(0, dtype=np.int64)
_NOTHING_KNOWN = np.zeros((0, 0))


def empirical_law(left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(mean, L) of one more row, given the m rows of ``left``; its covariance is L L^T.

    Variances are those of the rows times (m + 1) / (m - 3), as in the predictive t distribution after m
    Gaussian numbers. Correlations are shrunk towards 0, as if there were as many additional
    uncorrelated rows as columns: otherwise new rows would be in the span of the old ones, if these are
    few. A constant column remains constant.
    """
    m, k = left.shape
    mean = left.mean(axis=0, dtype=np.float64)
    centred = left - mean.astype(left.dtype)
    products = (centred.T @ centred).astype(np.float64)
    sd = np.sqrt(np.diag(products) / m)
    sd[sd <= np.maximum(_CONSTANT * np.abs(mean), _NOTHING)] = 0.0
    scale = np.divide(1.0, sd, out=np.zeros(k), where=sd > 0)
    correlation = scale[:, None] * products * scale / (m + k)
    np.fill_diagonal(correlation, 1.0)
    sd *= math.sqrt((m + 1) / max(m - 3, 1))
    return mean, sd[:, None] * np.linalg.cholesky(correlation)


def _quantiles(precisions: np.ndarray) -> np.ndarray:
    """A few quantiles that represent the precisions of rows; a single one if all are equal."""
    if precisions.min() == precisions.max():
        return precisions[:1].copy()
    return np.quantile(precisions, (np.arange(_PRECISIONS) + 0.5) / _PRECISIONS)


def _groups(features: RowFeatures | None, dtype: np.dtype, workers: Workers) -> list[_Group]:
    """The groups of new rows, with the features of fitted rows in the precision of the draws."""
    if features is None:
        return [_without_features(_ALL)]
    kinds, number = np.unique(features.known, axis=0, return_inverse=True)
    own = [_ALL] if len(kinds) == 1 else [number.ravel() == k for k in range(len(kinds))]
    return [
        _group(features, rows, kind, dtype, workers) for rows, kind in zip(own, kinds, strict=True)
    ]


def _by_noise(groups: list[_Group], noise: FixedNoise | None) -> list[_Group]:
    """The groups, each divided into the rows with fixed noise and the others."""
    if noise is None:
        return groups
    varies = ~noise.fitted if not noise.fitted.all() else _ALL
    found = []
    for group in groups:
        own = group.rows if group.rows.size else np.ones(noise.new.size, dtype=bool)
        for is_fixed in (True, False):
            rows = own & (noise.new == is_fixed)
            if rows.any():
                found.append(group._replace(rows=rows, is_fixed=is_fixed, varies=varies))
    return found


def _precisions(draw: Draw, group: _Group) -> np.ndarray:
    """The precisions that new rows of a group can have under a draw."""
    if group.is_fixed:
        return np.array([max(draw.noise.variance, SMALLEST_NOISE) / FIXED_VARIANCE])
    rows = draw.noise.rows
    return _quantiles(rows[group.varies] if group.varies.size else rows)


def _without_features(rows: np.ndarray) -> _Group:
    return _Group(rows, _NOTHING_KNOWN, _NOTHING_KNOWN, _NOTHING_KNOWN, _NO_NUMBERS, _NO_NUMBERS)


def _group(
    features: RowFeatures, rows: np.ndarray, known: np.ndarray, dtype: np.dtype, workers: Workers
) -> _Group:
    """The group of the new rows of which the blocks ``known`` are known."""
    if not known.any():
        return _without_features(rows)
    of_feature = np.repeat(np.arange(known.size), [block.shape[1] for block in features.fitted])
    weights = np.flatnonzero(known[of_feature])
    numbers = np.flatnonzero(known).tolist()
    blocks = [features.fitted[g].astype(dtype, copy=False) for g in numbers]
    fitted = (
        blocks[0] if len(blocks) == 1 else np.hstack(blocks)
    )  # a large table has no room for a copy
    new = np.hstack([features.new[g].astype(np.float64) for g in numbers])
    m, p = fitted.shape
    products = gram(fitted, np.zeros(p), np.ones(m), workers)
    return _Group(rows, fitted, new, products, weights, of_feature[weights])


def _regression(
    draw: Draw, basis: np.ndarray, group: _Group, limits: np.ndarray, law: LawName
) -> Regression:
    """The regression of a new row under a draw; ``basis`` (n, K) is orthonormal.

    The first intervals of ``limits`` are those of the draw.
    """
    own = draw.limits.shape[1]
    rest = _unexplained(draw, group)
    mean, L = empirical_law(rest)
    shifts, scales = _law_of_features(draw, group, rest, mean, L)
    right, dtype = _read_only(draw.right), draw.right.dtype
    noise = draw.noise
    noise_sd = math.sqrt(max(noise.variance, SMALLEST_NOISE))
    roots = np.sqrt(noise.columns)
    factors = (right @ (L / noise_sd).astype(dtype)) * roots.astype(dtype)[:, np.newaxis]
    return Regression(
        mean,
        L,
        factors,
        right @ mean,
        noise_sd / roots,
        _precisions(draw, group),
        noise.degrees if noise.degrees < NEARLY_NORMAL else math.inf,
        basis.T @ right,
        right,
        shifts,
        scales,
        group.rows,
        np.hstack([draw.limits, limits[:, own:]]),
        draw.column_thresholds.astype(np.float64),
        _threshold_prior(draw.row_thresholds),
        LAWS[law].compiled,
    )


def _read_only(A: np.ndarray) -> np.ndarray:
    """A view that cannot be written, as arrays of model files are: numba tells the two types apart."""
    view = A.view()
    view.flags.writeable = False
    return view


def _threshold_prior(ends: np.ndarray) -> ThresholdPrior:
    """The prior of the thresholds of a new row, given those of the fitted rows."""
    inner = ends[:, 1:-1].astype(np.float64)
    if not inner.size:
        return ThresholdPrior(np.zeros(0), np.zeros(0))
    return ThresholdPrior(inner.mean(axis=0), np.maximum(inner.var(axis=0), _NOTHING))


def _unexplained(draw: Draw, group: _Group) -> np.ndarray:
    """``left`` without what known features explain."""
    if not group.weights.size:
        return draw.left
    return draw.left - group.fitted @ draw.row_weights[group.weights]


def _law_of_features(
    draw: Draw, group: _Group, rest: np.ndarray, mean: np.ndarray, L: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(f G^-1 F^T (A - mean), sqrt(1 + h)) of each new row, from ``rest`` = A - F B."""
    if not group.weights.size:
        return np.zeros((0, L.shape[0])), np.zeros(0)
    B = draw.row_weights[group.weights].astype(np.float64)
    centred = rest - mean.astype(rest.dtype)
    variances = np.where(L.any(axis=1), np.square(centred).mean(axis=0, dtype=np.float64), 0.0)
    D = _strengths(B, variances, group.blocks)
    root = np.linalg.cholesky(group.gram + np.diag(D))
    # F^T (A - mean) = F^T (A - F B - mean) + (G - D) B: constant components remain exactly constant.
    change = (group.fitted.T @ centred).astype(np.float64) - D[:, np.newaxis] * B
    expected = B + cho_solve((root, True), change)
    return group.new @ expected, np.sqrt(1.0 + _leverages(root, group.new))


def _strengths(B: np.ndarray, variances: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """lambda of each feature, estimated from the weights of its block: see above."""
    varies = variances > 0
    squares = np.sum(np.square(B[:, varies]) / variances[varies], axis=1)
    totals = np.bincount(blocks, squares)
    sizes = np.bincount(blocks) * np.count_nonzero(varies)
    return np.clip(sizes / np.maximum(totals, _NO_WEIGHT), *STRENGTHS)[blocks]


def _leverages(root: np.ndarray, new: np.ndarray) -> np.ndarray:
    """h = f G^-1 f^T of each row f, for G = root root^T."""
    h = np.empty(len(new))
    for first in range(0, len(new), _TOGETHER):
        part = slice(first, first + _TOGETHER)
        h[part] = np.square(solve_triangular(root, new[part].T, lower=True)).sum(axis=0)
    return h


def fold_in_rows(
    draws: list[Draw],
    mean: Draw,
    entries: Entries,
    workers: Workers,
    seed: int = 0,
    features: RowFeatures | None = None,
    limits: np.ndarray = NO_LIMITS,
    fixed: FixedNoise | None = None,
    law: LawName = "gaussian",
) -> tuple[list[Draw], Draw]:
    """The posterior of new rows in the columns that were fitted: its draws and its mean.

    Parameters
    ----------
    draws : list of Draw
        The draws of the fit.
    mean : Draw
        The mean of the fit.
    entries : Entries
        Of the new rows, in standard units; the indices are positions of columns at fit.
    workers : Workers
        The result does not depend on their number.
    seed : int
        For the draws; the mean does not depend on it.
    features : RowFeatures, optional
        The features whose weights the draws have; None if they have none.
    limits : ndarray (2, k)
        The ends of the intervals of which the entries have numbers; those of the draws come first.
    fixed : FixedNoise, optional
        Which rows have noise of a fixed variance; None if none has.
    law : str
        The distribution of the noise of an entry.

    Returns
    -------
    draws : list of Draw
        Of the new rows, one under each draw of the fit. If there is one draw only, without features, as
        from a solver, it is the mean below.
    mean : Draw
        The mean of the expected rows, which has less Monte Carlo error than the average of the draws.

    Notes
    -----
    The mean is projected on the space of columns of the mean of the fit, so that it has as few
    factors and does not depend on which rows are folded in together. The part that is lost was below
    the Monte Carlo error of an average of 128 draws.
    """
    # The kernel is compiled for each type of empty weights, too.
    entries = entries._replace(weights=entries.weights.astype(entries.dtype, copy=False))
    n_rows = entries.pointers.size - 1
    basis = np.linalg.qr(mean.right).Q
    groups = _by_noise(_groups(features, basis.dtype, workers), fixed)
    means, variances = np.zeros((n_rows, basis.shape[1])), np.zeros(n_rows)
    key = chain_key(seed, _NO_CHAIN)
    folded = []
    for t, draw in enumerate(draws):
        address = Address(key, t, ROWS)
        left = np.empty((n_rows, draw.left.shape[1]), draw.left.dtype)
        new = NewRows(means, left, np.empty(n_rows), _outer_ends(draw.row_thresholds, n_rows))
        for group in groups:
            regression = _regression(draw, basis, group, limits, law)
            _regress(entries, regression, address, new, workers)
        variances += 1.0 / new.precisions
        noise = draw.noise._replace(rows=new.precisions)
        thresholds = new.thresholds.astype(left.dtype) if new.thresholds.size else NO_THRESHOLDS
        folded.append(draw._replace(left=left, noise=noise, row_thresholds=thresholds))
    left = (means / len(draws)).astype(basis.dtype)
    expected = Draw(left, basis, mean.noise._replace(rows=len(draws) / variances))
    is_solution = len(folded) == 1 and features is None
    return ([expected] if is_solution else folded), expected


def _outer_ends(ends: np.ndarray, n_rows: int) -> np.ndarray:
    """Room for the thresholds of new rows, with the outer ends of those of fitted rows."""
    if not ends.size:
        return np.zeros((n_rows, 0))
    return np.tile(ends[0].astype(np.float64), (n_rows, 1))


def _regress(
    entries: Entries,
    regression: Regression,
    address: Address,
    new: NewRows,
    workers: Workers,
) -> None:
    """`regress_rows` for all rows."""

    def work(start: int, stop: int) -> None:
        regress_rows(entries, regression, address, new, start, stop)

    workers.for_rows(work, entries.pointers)
