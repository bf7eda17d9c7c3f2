"""The slow twin of the joint draw of rows: plain sums in double precision, the printed formulas.

It takes the same random bits as the kernel, so that it must agree with it to rounding.
"""

import numpy as np
from scipy.linalg import solve_triangular

from reference.row_twins import normals_of_row


def row_posterior(x, weights, factors, prior):
    """(P, h) of a row with values x, one weight and one row of ``factors`` for each of them.

    P = Lam + sum_t w_t f_t f_t^T and h = Lam mu + sum_t w_t y_t f_t.
    """
    P, h = prior.precision.copy(), prior.precision @ prior.mean
    for y, w, f in zip(x, weights, factors.astype(float), strict=True):
        P += w * np.outer(f, f)
        h += w * y * f
    return P, h


def joint_rows_twin(X, mask, weights, other, prior, address):
    """(own, squares) after a joint draw of each row, where ``weights`` is a full matrix, as X is.

    With P = L L^T a row is P^-1 h + L^-T eps; its square is sum_t w_t (y_t - own . f_t)^2.
    """
    m, K = X.shape[0], other.shape[1]
    own, squares = np.empty((m, K)), np.empty(m)
    for i in range(m):
        seen = mask[i]
        P, h = row_posterior(X[i, seen], weights[i, seen], other[seen], prior)
        L = np.linalg.cholesky(P)
        mean = solve_triangular(L.T, solve_triangular(L, h, lower=True))
        own[i] = mean + solve_triangular(L.T, normals_of_row(address, i, K))
        e = X[i, seen] - other[seen].astype(float) @ own[i]
        squares[i] = np.sum(weights[i, seen] * e**2)
    return own, squares
