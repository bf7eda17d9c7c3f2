"""Simple loops over the factors of a row: for kernels whose draws cost more than their sums."""

from fillrank.runtime.kernel_cache import njit

# Allows sums in any order, so that they can be vectorised; NaN and infinity are handled correctly.
# A function with such sums that kernels call must have ``forceinline``. Otherwise it is optimised
# once on its own and once inlined in its caller, with different orders of summation. The process
# that compiles would use the first, a process that loads the kernel from the cache the second, and
# bits would differ.
REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}


@njit
def longest_row(pointers, start, stop):
    """The largest number of entries in one of the rows."""
    longest = 0
    for i in range(start, stop):
        longest = max(longest, pointers[i + 1] - pointers[i])
    return longest


@njit(fastmath=REASSOCIATE, forceinline=True)
def gather(indices, values, coefficients, other, tile, residual):
    """Copy the factors of a row's columns into ``tile`` (by component), with the row's residual."""
    for t in range(indices.size):
        j = indices[t]
        e = values[t]
        for k in range(coefficients.size):
            f = other[j, k]
            tile[k, t] = f
            e -= coefficients[k] * f
        residual[t] = e


@njit(fastmath=REASSOCIATE, forceinline=True)
def square_and_product(factor, residual, n):
    """(sum f^2, sum f e) over the first n entries."""
    c = factor.dtype.type(0)
    s = factor.dtype.type(0)
    for t in range(n):
        c += factor[t] * factor[t]
        s += factor[t] * residual[t]
    return c, s


@njit(fastmath=REASSOCIATE, forceinline=True)
def add_multiple(residual, step, factor, n):
    """residual += step * factor over the first n entries."""
    for t in range(n):
        residual[t] += step * factor[t]
