"""The conditionals of iPM3F's sampler by brute force, for right code and for planted bugs."""

import itertools
import math

import numpy as np
from numba import njit
from scipy import integrate, stats

from fillrank.draws.streams import FEATURES, Address, chain_key, start_stream
from fillrank.kernels import binary_features
from fillrank.kernels.binary_features import FeaturePrior, Features
from fillrank.kernels.ordinal import Scorer
from fillrank.noise.hinge import Hinge
from fillrank.table.entries import Entries
from reference.p_values import cdf_values

# A row of five entries on four levels, for the thresholds.
HINGE = Hinge(C=0.8, ell=1.5, threshold_mean=np.array([-2.0, 0.5, 3.0]), threshold_sd=2.0)
LEVELS = np.array([1, 2, 2, 3, 4], dtype=np.int8)
SCORES = np.array([-1.5, 0.4, 1.0, -0.3, 2.5])
_KEY = chain_key(21, 0)


def log_mixture(lam, zeta, C):
    """The log of the mixture's integrand over lambda, without (2 pi)^-1/2."""
    return -0.5 * np.log(lam) - (lam + 0.5 * C * zeta) ** 2 / (2.0 * lam)


def entries_of_equal_rows(n, thresholds):
    """n rows with LEVELS and SCORES, and these thresholds."""
    size = LEVELS.size
    entries = Entries(
        size * np.arange(n + 1), np.tile(np.arange(size, dtype=np.int32), n), np.tile(LEVELS, n)
    )
    return entries, Scorer(np.ones((n, 1)), SCORES[:, None].copy(), thresholds)


def threshold_cdf_values(likelihood, n):
    """For each threshold, the cdf of the joint density at n draws given lambda."""
    rng = np.random.default_rng(2)
    reciprocals = rng.gamma(1.0, 1.0, (LEVELS.size, HINGE.threshold_mean.size))
    drawn = _threshold_draws(likelihood._draw_thresholds, reciprocals, n)
    grid = np.linspace(-25.0, 25.0, 20_001)
    for r, rho in enumerate(HINGE.threshold_mean):
        T = np.where(r + 1 >= LEVELS, 1.0, -1.0)
        zeta = HINGE.ell - T * (grid[:, None] - SCORES)
        density = log_mixture(1.0 / reciprocals[:, r], zeta, HINGE.C).sum(axis=1)
        density -= 0.5 * ((grid - rho) / HINGE.threshold_sd) ** 2
        yield cdf_values(drawn[:, r], grid, density)


def _threshold_draws(draw, reciprocals, n):
    @njit
    def fill(stream, levels, x, reciprocals, hinge, out):
        for i in range(out.shape[0]):
            draw(stream, i, levels, x, reciprocals, hinge, out[i])

    out = np.empty((n, HINGE.threshold_mean.size))
    fill(start_stream(_KEY, 0, 0), LEVELS, SCORES, reciprocals, HINGE, out)
    return out


# Features: row 0 holds responses in the columns 0, 1 and 3 of 5; the other rows hold none.

COLUMNS = np.array([0, 1, 3], dtype=np.int32)
RESPONSES = np.array([1.2, -0.4, 0.9])
WEIGHTS = np.array([0.7, 2.0, 1.1])
_N_COLUMNS = 5
PRIOR = FeaturePrior(alpha=1.8, sigma=1.4)


def row_zero(n_rows):
    """The entries of a table of which only row 0 holds any."""
    pointers = np.full(n_rows + 1, COLUMNS.size)
    pointers[0] = 0
    return Entries(pointers, COLUMNS, RESPONSES)


def shared_features():
    """Z and V of 4 rows and 3 features that rows beside row 0 have."""
    Z = np.array([[1, 0, 1], [1, 1, 0], [1, 0, 1], [1, 0, 0]], dtype=float)
    V = np.random.default_rng(5).normal(0, 1.0, (_N_COLUMNS, 3))
    return Z, V


def _log_posterior(bits, others, V, n_rows):
    """log prior (row 0 comes last) + log likelihood of the row's bits, up to a constant."""
    share = others / n_rows
    e = RESPONSES - V[COLUMNS] @ bits
    prior = np.sum(np.log(np.where(bits == 1.0, share, 1.0 - share)))
    return prior - 0.5 * np.sum(WEIGHTS * e * e)


def _after_orders(start, orders, log_posterior):
    """{bits: probability} after Gibbs draws of all bits, in one of the orders, each as likely."""
    out = {}
    for order in orders:
        law = {tuple(start): 1.0 / len(orders)}
        for k in order:
            new = {}
            for bits, p in law.items():
                pair = [np.array([*bits[:k], b, *bits[k + 1 :]], dtype=float) for b in (0, 1)]
                off, on = (log_posterior(b) for b in pair)
                p_on = 1.0 / (1.0 + math.exp(off - on))
                for b, q in zip(pair, (1.0 - p_on, p_on), strict=True):
                    new[tuple(b)] = new.get(tuple(b), 0.0) + p * q
            law = new
        for bits, p in law.items():
            out[bits] = out.get(bits, 0.0) + p
    return out


def chi2_p(drawn, law):
    """The p-value of draws (hashable) under a finite distribution."""
    counts = dict.fromkeys(law, 0)
    for value in drawn:
        counts[value] += 1
    observed = np.array([counts[value] for value in law])
    expected = len(drawn) * np.array(list(law.values()))
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


def _draw_row_zero(Z, V, capacity, sweep):
    """Features after one pass over all rows."""
    wide = [np.zeros((A.shape[0], capacity)) for A in (Z, V)]
    for into, A in zip(wide, (Z, V), strict=True):
        into[:, : A.shape[1]] = A
    features = Features(*wide, wide[0].sum(axis=0).astype(np.int64))
    address = Address(_KEY, sweep, FEATURES)
    binary_features.feature_rows(row_zero(Z.shape[0]), WEIGHTS, features, PRIOR, address)
    return features


def shared_bits_p(n=8000):
    """The bits of row 0 after one pass, without room for new features."""
    Z, V = shared_features()
    others = Z[1:].sum(axis=0)
    orders = list(itertools.permutations(range(3)))
    law = _after_orders(Z[0], orders, lambda bits: _log_posterior(bits, others, V, Z.shape[0]))
    drawn = [tuple(_draw_row_zero(Z, V, 3, sweep).Z[0]) for sweep in range(n)]
    return chi2_p(drawn, law)


def known_bits_p(n=8000):
    """The bits of n equal new rows after one pass, in the order of the features."""
    Z, V = shared_features()
    counts = Z.sum(axis=0)
    law = _after_orders(
        np.zeros(3), [range(3)], lambda bits: _log_posterior(bits, counts, V, Z.shape[0] + 1)
    )
    entries = Entries(COLUMNS.size * np.arange(n + 1), np.tile(COLUMNS, n), np.tile(RESPONSES, n))
    features = Features(np.zeros((n, 3)), V, counts.astype(np.int64))
    log_odds = np.log(counts / (Z.shape[0] + 1 - counts))
    binary_features.known_feature_rows(
        entries, np.tile(WEIGHTS, n), features, log_odds, Address(_KEY, 0, FEATURES), 0, n
    )
    return chi2_p([tuple(bits) for bits in features.Z], law)


def _new_features_distribution(residual, n_rows, most):
    """{kappa: probability}, the new V integrated out by quadrature over their sum s."""
    weights = []
    for kappa in range(most + 1):
        likelihood = 1.0
        for w, e in zip(WEIGHTS, residual, strict=True):
            if kappa == 0:
                likelihood *= math.exp(-0.5 * w * e * e)
                continue
            law = stats.norm(0.0, PRIOR.sigma * math.sqrt(kappa))
            likelihood *= integrate.quad(
                lambda s, w=w, e=e, law=law: law.pdf(s) * math.exp(-0.5 * w * (e - s) ** 2), -40,
                40, points=[0.0, e],
            )[0]  # fmt: skip
        weights.append(stats.poisson(PRIOR.alpha / n_rows).pmf(kappa) * likelihood)
    total = sum(weights)
    return {kappa: weight / total for kappa, weight in enumerate(weights)}


def new_features_ps(n=8000):
    """{check: p-value} of the features that row 0 alone has, and of their V.

    Row 0 starts with one such feature, which must be forgotten; there is room for four.
    """
    Z, V = np.array([[1.0], [0.0]]), np.full((_N_COLUMNS, 1), 3.0)
    most = 4
    drawn = [_draw_row_zero(Z, V, most, sweep) for sweep in range(n)]
    # Row 1 comes later: it may share these features, but it cannot take them from row 0.
    kappas = [int(features.Z[0].sum()) for features in drawn]
    ps = {"kappa": chi2_p(kappas, _new_features_distribution(RESPONSES, 2, most))}
    for kappa in (1, 2):
        own = np.array([f.V[:, f.Z[0] == 1.0] for f in drawn if f.Z[0].sum() == kappa])
        ps |= _v_ps(own, kappa)
    return ps


def _v_ps(own, kappa):
    """p-values of the new V (draws, columns, kappa), given their number."""
    sigma = PRIOR.sigma
    ps = {}
    outside = np.setdiff1d(np.arange(_N_COLUMNS), COLUMNS)
    ps[f"V outside, {kappa}"] = _normal_p(own[:, outside], 0.0, sigma)
    for j, w, e in zip(COLUMNS, WEIGHTS, RESPONSES, strict=True):
        # s ~ N(0, kappa sigma^2) with one observation e of precision w.
        variance = 1.0 / (1.0 / (kappa * sigma**2) + w)
        name = f"sum of V in column {j}, {kappa}"
        ps[name] = _normal_p(own[:, j].sum(axis=1), variance * w * e, math.sqrt(variance))
    if kappa == 2:
        difference = own[:, COLUMNS, 0] - own[:, COLUMNS, 1]
        ps["difference of V"] = _normal_p(difference, 0.0, sigma * math.sqrt(2.0))
    return ps


def _normal_p(values, mean, sd):
    return stats.ks_1samp(np.ravel(values), stats.norm(mean, sd).cdf).pvalue
