"""Slow twins of iPM3F: loops in plain Python, the printed formulas, other ways to each minimum.

A table is Y (m, n), levels 1 to L, with a mask of what is observed.
"""

import math

import numpy as np
from scipy import integrate, optimize
from scipy.special import digamma

from fillrank.solvers.ipm3f import threshold_means


def sign(level, r):
    """T of the r-th threshold, r = 1, ..., L - 1: should the score be below it (+1) or not (-1)?"""
    return 1 if r >= level else -1


def loss_of_entry(level, x, thresholds, ell):
    """The hinges of one entry at score x."""
    return sum(
        max(0.0, ell - sign(level, r) * (theta - x)) for r, theta in enumerate(thresholds, start=1)
    )


def bound_twin(g, k):
    """L_k in the long form: a search over the weights q for the best of Jensen's bounds (k from 1)."""
    t = [
        digamma(g[y, 1])
        + sum(digamma(g[z, 0]) for z in range(y))
        - sum(digamma(g[z].sum()) for z in range(y + 1))
        for y in range(k)
    ]

    def bound(free):
        q = np.exp(np.append(free, 0.0))
        q /= q.sum()
        return sum(q[y] * (t[y] - math.log(q[y])) for y in range(k))

    if k == 1:
        return t[0]
    best = optimize.minimize(lambda free: -bound(free), np.zeros(k - 1), tol=1e-10)
    return -best.fun


def _log_beta_density(v, a, b):
    normaliser = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return (a - 1) * math.log(v) + (b - 1) * math.log1p(-v) - normaliser


def _divergence_twin(a, b, alpha):
    """KL(Beta(a, b) || Beta(alpha, 1)), by quadrature."""

    def integrand(v):
        own = _log_beta_density(v, a, b)
        return math.exp(own) * (own - _log_beta_density(v, alpha, 1.0))

    middle = a / (a + b)
    return sum(integrate.quad(integrand, *ends)[0] for ends in ((0.0, middle), (middle, 1.0)))


def objective_twin(state, Y, mask, hyper):
    """The objective, term by term."""
    psi, Lam, thresholds, g = state[:4]
    m, K = psi.shape
    rho = threshold_means(thresholds.shape[1] + 1, hyper.ell)
    total = sum(w * w for w in Lam.ravel()) / (2 * hyper.sigma**2)
    for k in range(K):
        total += _divergence_twin(*g[k], hyper.alpha)
        e = sum(digamma(g[y, 0]) - digamma(g[y].sum()) for y in range(k + 1))
        L = bound_twin(g, k + 1)
        for p in psi[:, k]:
            total += p * math.log(p) + (1 - p) * math.log(1 - p) - p * e - (1 - p) * L
    for i in range(m):
        for r, theta in enumerate(thresholds[i]):
            total += (theta - rho[r]) ** 2 / (2 * hyper.threshold_sd**2)
    for i, j in np.argwhere(mask):
        x = sum(psi[i, k] * Lam[j, k] for k in range(K))
        total += hyper.C * loss_of_entry(Y[i, j], x, thresholds[i], hyper.ell)
    return total


def _feature_slope(p, rest, f, levels, thresholds, hyper):
    """The slope of the hinges, just right of psi_ik = p."""
    slope = 0.0
    for x, fj, level in zip(rest, f, levels, strict=True):
        for r, theta in enumerate(thresholds, start=1):
            T = sign(level, r)
            missing = hyper.ell - T * (theta - x - p * fj)
            if missing > 0.0 or (missing == 0.0 and T * fj > 0.0):
                slope += T * fj
    return slope


def features_twin(state, sticks, Y, mask, hyper):
    """psi after each psi_ik in turn went where its derivative changes sign, found by bisection."""
    psi = state.psi.copy()
    for i in range(psi.shape[0]):
        columns = np.flatnonzero(mask[i])
        for k in range(psi.shape[1]):
            f = state.Lam[columns, k]
            rest = state.Lam[columns] @ psi[i] - psi[i, k] * f
            low, high = 0.0, 1.0
            while high - low > 1e-14:
                p = 0.5 * (low + high)
                slope = _feature_slope(p, rest, f, Y[i, columns], state.thresholds[i], hyper)
                derivative = math.log(p / (1 - p)) - sticks.e[k] + sticks.L[k] + hyper.C * slope
                low, high = (p, high) if derivative < 0.0 else (low, p)
            psi[i, k] = 0.5 * (low + high)
    return psi


def threshold_values(i, r, candidates, state, Y, mask, hyper):
    """The part of the objective that theta_ir (r from 1) has, at each candidate."""
    rho = threshold_means(state.thresholds.shape[1] + 1, hyper.ell)[r - 1]
    values = (candidates - rho) ** 2 / (2 * hyper.threshold_sd**2)
    for j in np.flatnonzero(mask[i]):
        x = state.psi[i] @ state.Lam[j]
        values += hyper.C * np.maximum(0.0, hyper.ell - sign(Y[i, j], r) * (candidates - x))
    return values


def factor_value(w, j, state, Y, mask, hyper):
    """The part of the objective that Lam_j = w has."""
    value = w @ w / (2 * hyper.sigma**2)
    for i in np.flatnonzero(mask[:, j]):
        x = state.psi[i] @ w
        value += hyper.C * loss_of_entry(Y[i, j], x, state.thresholds[i], hyper.ell)
    return value


def factor_twin(j, state, Y, mask, hyper):
    """(Lam_j, its dual value): one dual per hinge, all at once, by a quasi-Newton method with bounds.

    The dual value is a lower bound of what any factor can have, whatever the accuracy.
    """
    rows, signs, margins = [], [], []
    for i in np.flatnonzero(mask[:, j]):
        for r, theta in enumerate(state.thresholds[i], start=1):
            T = sign(Y[i, j], r)
            rows.append(state.psi[i])
            signs.append(T)
            margins.append(hyper.ell - T * theta)
    A = np.array(signs)[:, None] * np.array(rows)
    margins = np.array(margins)

    def negative_dual(a):
        u = a @ A
        s2 = hyper.sigma**2
        return 0.5 * s2 * (u @ u) - a @ margins, s2 * (A @ u) - margins

    best = optimize.minimize(
        negative_dual, np.full(margins.size, 0.5 * hyper.C), jac=True, method="L-BFGS-B",
        bounds=[(0.0, hyper.C)] * margins.size,
        options={"maxiter": 20_000, "maxfun": 50_000, "ftol": 0.0, "gtol": 1e-11},
    )  # fmt: skip
    return -(hyper.sigma**2) * (best.x @ A), -best.fun
