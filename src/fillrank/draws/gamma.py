"""Gamma draws by the method of Marsaglia and Tsang.

The density is

    p(x) = rate^shape x^(shape - 1) exp(-rate x) / Gamma(shape),    x > 0.

For shape >= 1, G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables",
ACM TOMS 26 (2000) 363-372: with d = shape - 1/3 and Z ~ N(0, 1), d (1 + Z / sqrt(9 d))^3 is nearly
gamma already, and a rejection makes it exact. For shape < 1 their boost, in logarithms: if
Y ~ Gamma(shape + 1) and E ~ Exp(1), then Y exp(-E / shape) ~ Gamma(shape).
"""

import math

import numpy as np

from fillrank.draws.normal import normal
from fillrank.draws.streams import uniform
from fillrank.runtime.kernel_cache import njit

SMALLEST = float(np.finfo(np.float64).tiny)


@njit
def _standard(stream: np.ndarray, shape: float) -> float:
    """A draw with rate 1, for shape >= 1."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        z = normal(stream)
        root = 1.0 + c * z
        if root <= 0.0:
            continue
        v = root * root * root
        u = uniform(stream)
        # The squeeze avoids both logarithms in more than nine draws of ten.
        if u < 1.0 - 0.0331 * (z * z) * (z * z):
            return d * v
        if math.log(u) < 0.5 * z * z + d * (1.0 - v + math.log(v)):
            return d * v


@njit
def gamma(stream: np.ndarray, shape: float, rate: float) -> float:
    """A draw from Gamma(shape, rate), whose mean is shape / rate; never below ``SMALLEST``."""
    if shape < 1.0:
        # exp(-E / shape) alone can underflow although the draw does not, so exp is taken last.
        exponential = -math.log(uniform(stream))
        x = math.exp(math.log(_standard(stream, shape + 1.0) / rate) - exponential / shape)
    else:
        x = _standard(stream, shape) / rate
    # Callers divide by draws, or take their logarithm, so 0 must not occur, although at shape = 0.01
    # about one draw in a thousand is below the smallest normal number. A NaN remains NaN.
    return SMALLEST if x < SMALLEST else x
