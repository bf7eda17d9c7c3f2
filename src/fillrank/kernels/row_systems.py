"""The regression of a row with standard normal coefficients, as the normal equations of its entries.

A tile (k + 1, n) has the factors g_t of n entries in its first k lines and the responses y_t below. With
the precision a of the noise, the coefficients have the precision P = I + a sum_t g_t g_t^T, and
h = a sum_t g_t y_t.
"""

import math

import numpy as np

from fillrank.kernels.tiles import REASSOCIATE
from fillrank.runtime.kernel_cache import njit


@njit(fastmath=REASSOCIATE)
def _product(rows, a, b, n):
    """The product of the rows a and b of a matrix, over their first n numbers."""
    total = 0.0
    for t in range(n):
        total += rows[a, t] * rows[b, t]
    return total


@njit
def multiply_rows(tile, n, gram):
    """``gram`` (k + 1, k + 1) becomes the products of the rows of a tile, in its lower triangle."""
    for a in range(gram.shape[0]):
        for b in range(a + 1):
            gram[a, b] = _product(tile, a, b, n)


@njit
def factorise(gram, precision, system):
    """``system`` (k + 1, k) becomes the Cholesky factor of P and, below it, its inverse times h."""
    k = system.shape[1]
    for a in range(k + 1):
        for b in range(min(a + 1, k)):
            value = precision * gram[a, b] - _product(system, a, b, b)
            if a == b:
                # Without rounding no pivot of I + a Gram matrix is below 1.
                system[a, a] = math.sqrt(max(1.0, 1.0 + value))
            else:
                system[a, b] = value / system[b, b]


@njit
def _log_likelihood(gram, precision, n, system):
    """log p(x | a) without a constant, of a system that was factorised with a."""
    k = system.shape[1]
    result = 0.5 * n * math.log(precision) - 0.5 * precision * gram[k, k]
    for b in range(k):
        result += 0.5 * system[k, b] * system[k, b] - math.log(system[b, b])
    return result


@njit
def precision_probabilities(gram, precisions, n, system, out):
    """The posterior probabilities of the precisions of a row."""
    for q in range(precisions.size):
        factorise(gram, precisions[q], system)
        out[q] = _log_likelihood(gram, precisions[q], n, system)
    out[:] = np.exp(out - out.max())
    out /= out.sum()


@njit
def choose(probabilities, u):
    """The first number whose cumulative probability is above u."""
    total = 0.0
    for q in range(probabilities.size - 1):
        total += probabilities[q]
        if u < total:
            return q
    return probabilities.size - 1


@njit
def solve_transposed(system, v):
    """v becomes R^-T v, for the lower triangular R in the first rows of ``system``."""
    for a in range(v.size - 1, -1, -1):
        v[a] /= system[a, a]
        for b in range(a):
            v[b] -= system[a, b] * v[a]


@njit(fastmath=REASSOCIATE)
def add_product(matrix, v, out):
    """out += matrix v."""
    for a in range(out.size):
        total = 0.0
        for b in range(v.size):
            total += matrix[a, b] * v[b]
        out[a] += total
