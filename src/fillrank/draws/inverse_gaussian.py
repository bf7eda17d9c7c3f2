"""Inverse Gaussian draws by the method of Michael, Schucany and Haas.

The density is

    p(x) = sqrt(shape / (2 pi x^3)) exp(-shape (x - mean)^2 / (2 mean^2 x)),    x > 0.

J. R. Michael, W. R. Schucany and R. W. Haas, "Generating random variates using transformations with
multiple roots", The American Statistician 30 (1976) 88-90: shape (X - mean)^2 / (mean^2 X) is the
square of a standard normal Z. Given Z, X is one of the two roots x1 <= mean <= x2 of a quadratic,
with x1 x2 = mean^2; it is x1 with probability mean / (mean + x1).

With p = shape / mean the smaller root is written without the usual difference of large numbers,

    x1 = 2 shape / (2 p + Z^2 + |Z| sqrt(Z^2 + 4 p)),

which is accurate for every p >= 0. At mean = inf, p = 0, it is the limiting distribution, shape /
Z^2 (Levy's).
"""

import math

import numpy as np

from fillrank.draws.normal import normal
from fillrank.draws.streams import uniform
from fillrank.runtime.kernel_cache import njit


@njit
def inverse_gaussian(stream: np.ndarray, mean: float, shape: float) -> float:
    """A draw from IG(mean, shape), whose variance is mean^3 / shape; ``mean`` may be inf."""
    p = shape / mean
    z = abs(normal(stream))
    x1 = 2.0 * shape / (2.0 * p + z * z + z * math.sqrt(z * z + 4.0 * p))
    ratio = x1 / mean
    # Rare large roots carry most of the mean when mean >> shape: so their probability, not its
    # complement, is compared with the uniform draw.
    if uniform(stream) * (1.0 + ratio) < ratio:
        return mean / ratio
    return x1
