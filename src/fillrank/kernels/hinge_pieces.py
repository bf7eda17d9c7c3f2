r"""Exact minima along one coordinate of a sum of hinges and a smooth convex term.

A sum of hinges is convex and piecewise linear in a coordinate u: its slope S(u) rises at corners. With
a convex term whose derivative is link(u) - target, the minimum of both, hinges times a weight, is
where

    link(u) = target - weight S(u).

The link is the logit where the term is the entropy of a probability, the identity where it is a
quadratic. The search is for v = link(u), with corners in that unit. It goes by selection, in time
linear in the number of corners; inside a piece the minimum has a closed form, and at a corner it is the
corner.
"""

import math
from typing import NamedTuple

import numpy as np

from fillrank.kernels.tiles import REASSOCIATE
from fillrank.runtime.kernel_cache import njit


class Corners(NamedTuple):
    """Where the slope of a piecewise linear function rises, in any order, and by how much."""

    places: np.ndarray
    rises: np.ndarray


@njit
def room_for_corners(size):
    """Empty arrays for so many corners."""
    return Corners(np.empty(size), np.empty(size))


@njit
def logistic(v):
    """1 / (1 + e^-v), the inverse of the logit."""
    if v < 0.0:
        e = math.exp(v)
        return e / (1.0 + e)
    return 1.0 / (1.0 + math.exp(-v))


@njit
def _swap(corners, a, b):
    places, rises = corners
    places[a], places[b] = places[b], places[a]
    rises[a], rises[b] = rises[b], rises[a]


@njit
def _partition(corners, low, high, pivot):
    """Order the corners low to high into those below, at and above the pivot.

    Returns where those at and those above it begin, and the sums of the rises below and at it.
    """
    below, at = 0.0, 0.0
    a, t, b = low, low, high
    while t < b:
        if corners.places[t] < pivot:
            below += corners.rises[t]
            _swap(corners, a, t)
            a += 1
            t += 1
        elif corners.places[t] > pivot:
            b -= 1
            _swap(corners, t, b)
        else:
            at += corners.rises[t]
            t += 1
    return a, b, below, at


@njit
def solve(target, weight, slope, corners, n):
    """v = target - weight S(v), where S is ``slope`` before the first of the n corners.

    S never descends: there is one v where the sides meet or, at a corner, pass each other. The corners
    are left in another order.
    """
    low, high = 0, n
    while low < high:
        v = corners.places[(low + high) // 2]
        a, b, below, at = _partition(corners, low, high, v)
        if v > target - weight * (slope + below):
            high = a
        elif v < target - weight * (slope + below + at):
            low = b
            slope += below + at
        else:
            return v
    return target - weight * slope


@njit(fastmath=REASSOCIATE)
def slope_at_zero(x, f, T, corner):
    """The slope, at u = 0, of sum_t max(0, T (x_t + u f_t - corner))."""
    slope = 0.0
    for t in range(x.size):
        slope += f[t] if T * (corner - x[t]) < 0.0 else 0.0
    return T * slope


@njit
def add_crossings(x, f, T, corner, corners, n):
    """Append the hinges T (x_t + u f_t - corner) that change sign for u in [0, 1]; their new number.

    A corner is first kept as the terms of its quotient: few are kept, and only these need a division.
    No branch, either: the processor could not foresee it.
    """
    for t in range(x.size):
        g, h = T * (corner - x[t]), T * f[t]
        corners.places[n] = g
        corners.rises[n] = h
        n += (g < 0.0) != (g - h < 0.0)
    return n


@njit(error_model="numpy")
def finish_crossings(corners, n):
    """Turn the terms of the quotients u = g / h into logits of u, and slopes into rises."""
    for c in range(n):
        g, h = corners.places[c], corners.rises[c]
        corners.places[c] = math.log(abs(g / (h - g)))
        corners.rises[c] = abs(h)
