"""Updates of one component at a time: the passes over the entries, and the small problem to solve.

The residual E = P_Omega(X - Z) is stored twice, by row and by column. An update changes first the
row factor of a component, then its column factor. Each side of the residual is updated by the last
two changes during the pass that computes sums: two passes a component, none only to update the
residual.
"""

import math
from typing import NamedTuple

import numpy as np

from fillrank.kernels.tiles import REASSOCIATE
from fillrank.runtime.kernel_cache import njit
from fillrank.runtime.threads import Workers
from fillrank.table.entries import Entries

_MOST_NEWTON_STEPS = 100


class Shift(NamedTuple):
    """A change of Z by ``own[i, 0] other[j, 0] + own[i, 1] other[j, 1]``."""

    own: np.ndarray
    other: np.ndarray


@njit(nogil=True, cache=True, fastmath=REASSOCIATE)
def _shifted_sums(entries, shift, factor, squares, products, start, stop):
    own, other = shift.own, shift.other
    for i in range(start, stop):
        own_0, own_1 = own[i, 0], own[i, 1]
        c = 0.0
        h = 0.0
        for t in range(entries.pointers[i], entries.pointers[i + 1]):
            j = entries.indices[t]
            e = entries.values[t] - own_0 * other[j, 0] - own_1 * other[j, 1]
            f = factor[j]
            entries.values[t] = e
            c += f * f
            h += f * e
        squares[i] = c
        products[i] = h


def shifted_sums(
    residual: Entries, shift: Shift, factor: np.ndarray, workers: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """Subtract a shift of Z from the residual, in place; (sum_j f_j^2, sum_j f_j e_ij) of each row."""
    squares = np.empty(residual.pointers.size - 1)
    products = np.empty_like(squares)
    workers.for_rows(
        lambda start, stop: _shifted_sums(residual, shift, factor, squares, products, start, stop),
        residual.pointers,
    )
    return squares, products


@njit(nogil=True, cache=True)
def shrunken_factor(c, h, kappa):
    r"""The z that minimises (1/2) sum_i c_i z_i^2 - h^T z + kappa ||z||.

    Zero if ||h|| <= kappa. Else z_i = h_i t / (c_i t + kappa), where t = ||z|| is the root of
    psi(t) = (sum_i h_i^2 / (c_i t + kappa)^2)^(-1/2) - 1. psi is a power mean of order -2 of
    functions linear in t, hence concave, and it increases: Newton's method from the left of the
    root never passes it.
    """
    z = np.zeros(h.size)
    norm = math.sqrt(np.sum(h * h))
    if norm <= kappa:
        return z
    t = (norm - kappa) / c.max()  # the root if all c_i are equal, left of it otherwise
    for _ in range(_MOST_NEWTON_STEPS):
        phi = 0.0
        slope = 0.0
        for i in range(h.size):
            if h[i] != 0.0:  # a row without entries has h_i = c_i = 0
                q = c[i] * t + kappa
                g = h[i] * h[i] / (q * q)
                phi += g
                slope += g * c[i] / q
        step = (math.sqrt(phi) - 1.0) * phi / slope
        t += step
        if step <= 1e-15 * t:
            break
    for i in range(h.size):
        if h[i] != 0.0:
            z[i] = h[i] * t / (c[i] * t + kappa)
    return z
