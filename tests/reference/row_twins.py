"""Slow twins of the row kernels: loops in plain Python, double precision, the printed formulas.

They take the same random bits as the kernels, so that they must agree with them to rounding.
"""

import math

import numpy as np
from numba import njit

from fillrank.draws.gamma import gamma
from fillrank.draws.normal import normal_from_bits
from fillrank.draws.normal_quantile import normal_in_interval
from fillrank.draws.streams import row_bits, seek, start_stream, uniform
from fillrank.draws.truncated_normal import truncated_normal


@njit
def _normals_of_row(key, sweep, purpose, row, n):
    stream = start_stream(key, sweep, purpose)
    bits = np.empty(n, dtype=np.uint64)
    row_bits(stream, row, bits)
    out = np.empty(n)
    for p in range(n):
        out[p] = normal_from_bits(bits[p], stream, row, p)
    return out


@njit
def _truncated_normal_at(key, sweep, purpose, row, component, mean, sd, low, high):
    stream = start_stream(key, sweep, purpose)
    seek(stream, row, component)
    return truncated_normal(stream, mean, sd, low, high)


@njit
def _uniform_at(key, sweep, purpose, row, component):
    stream = start_stream(key, sweep, purpose)
    seek(stream, row, component)
    return uniform(stream)


def normals_of_row(address, row, n):
    """The standard normals that belong to the n free coefficients of a row."""
    return _normals_of_row(address.key, address.sweep, address.purpose, row, n)


@njit
def _gamma_at(key, sweep, purpose, row, column, shape, rate):
    stream = start_stream(key, sweep, purpose)
    seek(stream, row, column)
    return gamma(stream, shape, rate)


def student_weights_twin(e, precision, row, columns, noise, address):
    """l_j ~ Gamma((nu + 1)/2, rate (nu + precision_j e_j^2)/2) for the residuals e of a row."""
    shape = 0.5 * (noise.degrees + 1.0)
    return np.array(
        [
            _gamma_at(
                address.key, address.sweep, noise.purpose, row, j, shape,
                0.5 * (noise.degrees + precision[t] * e[t] ** 2),
            )
            for t, j in enumerate(columns)
        ]
    )  # fmt: skip


@njit
def _value_at(key, sweep, purpose, row, n, t, low, high):
    """A standard normal number in an interval, with the bits of entry t of a row of n entries."""
    stream = start_stream(key, sweep, purpose)
    bits = np.empty(n, dtype=np.uint64)
    row_bits(stream, row, bits)
    return normal_in_interval(bits[t], low, high, stream, row, t)


def interval_values_twin(X, mask, cells, own, other, noise, address, weights=None):
    """X with the values drawn of which an interval is known: where the matrix ``cells`` is not -1.

    Such a value is N(c . f_j, s2_i / (b_j w_ij)) in its interval.
    """
    own, other, X = own.astype(float), other.astype(float), X.astype(float)
    b = noise.roots**2 if noise.roots.size else np.ones(other.shape[0])
    for i in range(own.shape[0]):
        columns = np.flatnonzero(mask[i])
        for t, j in enumerate(columns):
            if cells[i, j] < 0:
                continue
            w = 1.0 if weights is None else float(weights[i, j])
            sd, z = math.sqrt(noise.variances[i] / (b[j] * w)), own[i] @ other[j]
            low, high = ((end - z) / sd for end in noise.limits[:, cells[i, j]])
            row = address.first_row + i
            at = (address.key, address.sweep, noise.purpose, row, columns.size, t)
            X[i, j] = z + sd * _value_at(*at, low, high)
    return X


def gaussian_rows_twin(X, mask, own, other, prior, noise, address, weights=None):
    """(own, squares, sums of l, sums of log l) after Gibbs draws of the coefficients of each row.

    The coefficient c of a factor f, with target y (what the other coefficients leave over), has the
    distribution of a Gaussian linear model: precision sum q f^2 + p, mean (sum q f y + p * mean) /
    precision, where p and mean belong to the prior and q = b_j w_ij l_ij / s2_i is the precision of an
    entry. l_ij is drawn first if the noise is Student-t. ``weights`` is a full matrix, as X is.
    """
    own, other, X = own.astype(float), other.astype(float), X.astype(float)
    b = noise.roots**2 if noise.roots.size else np.ones(other.shape[0])
    squares, totals, log_totals = (np.zeros(own.shape[0]) for _ in range(3))
    for i in range(own.shape[0]):
        columns = np.flatnonzero(mask[i])
        relative = b[columns] * (1.0 if weights is None else weights[i, columns].astype(float))
        if np.isfinite(noise.degrees):
            e = X[i, columns] - other[columns] @ own[i]
            drawn = student_weights_twin(
                e, relative / noise.variances[i], i, columns, noise, address
            )
            relative = relative * drawn
            totals[i], log_totals[i] = drawn.sum(), np.log(drawn).sum()
        q = relative / noise.variances[i]
        normals = normals_of_row(address, i, len(prior.free))
        for p, k in enumerate(prior.free):
            precision, weighted = prior.precision[p], prior.precision[p] * prior.mean[p]
            for t, j in enumerate(columns):
                rest = sum(own[i, s] * other[j, s] for s in range(own.shape[1]) if s != k)
                precision += q[t] * other[j, k] ** 2
                weighted += q[t] * other[j, k] * (X[i, j] - rest)
            own[i, k] = weighted / precision + normals[p] / math.sqrt(precision)
        squares[i] = sum(
            relative[t] * (X[i, j] - own[i] @ other[j]) ** 2 for t, j in enumerate(columns)
        )
    return own, squares, totals, log_totals


def published_scales_twin(X, mask, U, V, d, gamma, noise_variance, address):
    """d after the draws d_a ~ N(-B/A, sigma^2/A) on [0, inf), with the paper's printed sums.

    A = sum_ij (u_ai v_aj)^2 and
    B = sum_ij (sum_{k != a} d_k u_ki v_kj - x_ij) u_ai v_aj + sigma^2 gamma_a.
    """
    d = np.array(d, float)
    for a in range(d.size):
        A, B = 0.0, noise_variance * gamma[a]
        for i, j in np.argwhere(mask):
            others = sum(d[k] * U[i, k] * V[j, k] for k in range(d.size) if k != a)
            A += (U[i, a] * V[j, a]) ** 2
            B += (others - X[i, j]) * U[i, a] * V[j, a]
        if A == 0.0:
            d[a] = -math.log(_uniform_at(*address[:3], 0, a)) / gamma[a]
        else:
            sd = math.sqrt(noise_variance / A)
            d[a] = _truncated_normal_at(*address[:3], 0, a, -B / A, sd, 0.0, math.inf)
    return d


def ball_rows_twin(X, mask, U, V, d, noise_variance, address):
    """U after the draws u_ab ~ N(-D/C, sigma^2/C) on [-rho, rho], with the paper's printed sums.

    C = d_a^2 sum_j v_aj^2 and
    D = d_a sum_j (sum_{k != a} d_k u_kb v_kj - x_bj) v_aj over the columns j observed in row b,
    rho^2 = 1 - sum_{i != b} u_ai^2. Without data (C = 0) the distribution is uniform.
    """
    U = np.array(U, float)
    m, r = U.shape
    for b in range(m):
        for a in range(r):
            C, D = 0.0, 0.0
            for j in np.flatnonzero(mask[b]):
                others = sum(d[k] * U[b, k] * V[j, k] for k in range(r) if k != a)
                C += (d[a] * V[j, a]) ** 2
                D += d[a] * (others - X[b, j]) * V[j, a]
            rho = math.sqrt(max(0.0, 1.0 - sum(U[i, a] ** 2 for i in range(m) if i != b)))
            mean, sd = (-D / C, math.sqrt(noise_variance / C)) if C > 0.0 else (0.0, math.inf)
            U[b, a] = _truncated_normal_at(*address[:3], b, a, mean, sd, -rho, rho)
    return U
