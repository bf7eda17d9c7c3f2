r"""The distribution function and the density of Student's t distribution.

With a = nu / 2, b = 1/2 and x = nu / (nu + t^2),

    P(T > |t|) = I_x(a, b) / 2,    I_x(a, b) = f(t) |t| / a * C(a, b, x),

where I is the regularised incomplete beta function, f the density, and C the continued fraction of
DLMF 8.17.22. It converges fast for x < (a + 1) / (a + b + 2); otherwise I_x(a, b) = 1 - I_{1-x}(b, a).
From 1,000 degrees of freedom it would need too many terms. There, Wallace's transformation to a normal
variable (Annals of Mathematical Statistics 30 (1959) 1121) has errors of at most 1.2e-8.
"""

import math

import numpy as np

from fillrank.runtime.kernel_cache import njit

# From so many degrees of freedom the distribution counts as normal; they differ by less than 2e-8.
NEARLY_NORMAL = 1e7
_MANY_DEGREES = 1000.0
# Beyond this |t| counts as infinite: its square would overflow.
_LARGEST = 1e150
_MOST_TERMS, _PRECISION, _TINY = 200, 1e-12, 1e-300


@njit
def _fraction(a, b, x):
    """The continued fraction C(a, b, x), by the modified method of Lentz."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    total = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 + term * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + term / c
            c = c if abs(c) > _TINY else _TINY
            total *= c * d
        if abs(c * d - 1.0) < _PRECISION:
            break
    return total


@njit(cache=True)
def t_constants(degrees):
    """The densities at 0 of t distributions with these degrees of freedom, which may be infinite."""
    out = np.empty(degrees.size)
    for s in range(degrees.size):
        half = 0.5 * degrees[s]
        if degrees[s] == math.inf:
            out[s] = 1.0 / math.sqrt(2.0 * math.pi)
        else:
            ratio = math.exp(math.lgamma(half + 0.5) - math.lgamma(half))
            out[s] = ratio / math.sqrt(math.pi * degrees[s])
    return out


@njit
def t_distribution(t, degrees, constant):
    """(distribution function, density) at t, for finite degrees with their `t_constants`."""
    size = min(abs(t), _LARGEST)
    square = size * size
    stretch = math.log1p(square / degrees)
    density = constant * math.exp(-0.5 * (degrees + 1.0) * stretch)
    if degrees >= _MANY_DEGREES:
        z = (1.0 - 2.0 / (8.0 * degrees + 3.0)) * math.sqrt(degrees * stretch)
        tail = 0.5 * math.erfc(z / math.sqrt(2.0))
    else:
        a, b = 0.5 * degrees, 0.5
        x, rest = degrees / (degrees + square), square / (degrees + square)
        if x < (a + 1.0) / (a + b + 2.0):
            tail = 0.5 * density * size / a * _fraction(a, b, x)
        else:
            tail = 0.5 - 0.5 * density * size / b * _fraction(b, a, rest)
    return (tail if t < 0.0 else 1.0 - tail), density
