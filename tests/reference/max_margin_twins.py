"""Slow twins of the max-margin loss: loops in plain Python over a table with NaN for missing cells."""

import math

import numpy as np


def hinge_twin(z):
    """h(z), piece by piece."""
    return 0.5 - z if z <= 0 else 0.5 * (1 - z) ** 2 if z < 1 else 0.0


def slope_twin(z):
    """h'(z), piece by piece."""
    return -1.0 if z <= 0 else z - 1 if z < 1 else 0.0


def margins(Y, scorer):
    """(i, j, r, T, z) of every entry and threshold, r counted from 0."""
    U, V, theta = scorer
    for i, j in np.argwhere(~np.isnan(Y)):
        x = sum(U[i, k] * V[j, k] for k in range(U.shape[1]))
        for r in range(theta.shape[1]):
            T = 1 if r + 1 >= Y[i, j] else -1
            yield i, j, r, T, T * (theta[i, r] - x)


def objective_twin(Y, scorer, penalty):
    """J from its definition."""
    U, V, _ = scorer
    loss = sum(hinge_twin(z) for *_, z in margins(Y, scorer))
    return 0.5 * penalty * (np.sum(U**2) + np.sum(V**2)) + loss


def slopes_twin(Y, scorer):
    """(G, the gradient of the loss in theta): sums of T h'(z), by entry and by threshold of a row."""
    G, d_theta = np.zeros(Y.shape), np.zeros_like(scorer.thresholds)
    for i, j, r, T, z in margins(Y, scorer):
        G[i, j] += T * slope_twin(z)
        d_theta[i, r] += T * slope_twin(z)
    return G, d_theta


def gradient_twin(Y, scorer, penalty):
    """The gradient of J in U, V and theta."""
    U, V, _ = scorer
    G, d_theta = slopes_twin(Y, scorer)
    return penalty * U - G @ V, penalty * V - G.T @ U, d_theta


def duality_gap(Y, scorer, penalty):
    """J less a lower bound of its minimum over all ranks, as a share of J.

    Since h(z) = max over 0 <= a <= 1 of a (1 - z) - a^2/2, every such a^r_ij with sum_j T^r a^r_ij = 0
    for all (i, r) and ||sum_r T^r a^r||_2 <= lambda bounds the minimum by sum (a - a^2/2). Here
    a = -h'(z), scaled into that ball; it meets the sums where J is stationary in theta.
    """
    G, _ = slopes_twin(Y, scorer)
    c = min(1.0, penalty / np.linalg.norm(G, 2))
    a = [-c * slope_twin(z) for *_, z in margins(Y, scorer)]
    bound = math.fsum(x - 0.5 * x**2 for x in a)
    J = objective_twin(Y, scorer, penalty)
    return (J - bound) / J
