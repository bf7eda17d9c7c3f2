"""Losses of SoftImpute from their definitions, on dense arrays, and an independent minimiser."""

import numpy as np
from scipy.optimize import minimize
from scipy.stats import logistic, norm


def loss(kind, x, z, thresholds=()):
    """Minus the log likelihood of x given z, without the constant of the Laplace distribution."""
    if kind == "laplace":
        return np.abs(x - z)
    if kind == "logistic":
        return -np.where(x == 1, logistic.logcdf(z), logistic.logsf(z))
    ends = np.array([-np.inf, *thresholds, np.inf])
    low, high = ends[x.astype(int)] - z, ends[x.astype(int) + 1] - z
    flip = low > 0  # the same probability in the other tail, where it has more digits
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    return -np.log(norm.cdf(high) - norm.cdf(low))


def objective(kind, X, Z, penalty, thresholds=()):
    """The sum of losses and the penalty; X has NaN for missing cells."""
    seen = ~np.isnan(X)
    total = loss(kind, X[seen], Z[seen], thresholds).sum()
    if kind == "ordered":  # half an entry of each level at z = 0
        levels = np.arange(len(thresholds) + 1.0)
        total += 0.5 * loss(kind, levels, 0 * levels, thresholds).sum()
    return float(total + penalty * np.linalg.svd(Z, compute_uv=False).sum())


def slopes(kind, x, z, thresholds=()):
    """The derivative by z, of losses that have one."""
    h = 1e-5
    return (loss(kind, x, z + h, thresholds) - loss(kind, x, z - h, thresholds)) / (2 * h)


def minimise(kind, X, penalty, thresholds=(), seed=0):
    """Z = A B^T by L-BFGS on the factors, with penalty / 2 (||A||^2 + ||B||^2) for the nuclear norm.

    With as many factors as columns, this problem has no other local minima. Absolute errors are
    rounded off, ever less.
    """
    m, n = X.shape
    r, seen = min(m, n), ~np.isnan(X)

    def value(flat, epsilon):
        A, B = flat[: m * r].reshape(m, r), flat[m * r :].reshape(n, r)
        Z, G = A @ B.T, np.zeros((m, n))
        if kind == "laplace":
            losses = np.sqrt((X - Z)[seen] ** 2 + epsilon**2)
            G[seen] = (Z - X)[seen] / losses
        else:
            losses = loss(kind, X[seen], Z[seen], thresholds)
            G[seen] = slopes(kind, X[seen], Z[seen], thresholds)
        gradient = np.concatenate([(G @ B).ravel(), (G.T @ A).ravel()]) + penalty * flat
        return losses.sum() + 0.5 * penalty * (flat @ flat), gradient

    flat = np.random.default_rng(seed).normal(0, 0.5, (m + n) * r)
    options = {"maxiter": 3000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-9}
    for epsilon in 10.0 ** -np.arange(1, 6) if kind == "laplace" else [0.0]:
        flat = minimize(value, flat, (epsilon,), jac=True, method="L-BFGS-B", options=options).x
    return flat[: m * r].reshape(m, r) @ flat[m * r :].reshape(n, r).T
