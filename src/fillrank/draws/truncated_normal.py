"""Exact draws of a normal variable truncated to an interval.

The density is

    p(x) = exp(-(x - mean)^2 / (2 sd^2)) / constant,    low <= x <= high,

where low may be -inf and high +inf. The method is rejection, after C. P. Robert, "Simulation of
truncated normal variables", Statistics and Computing 5 (1995) 121-125. In units of sd, let w be the
width of the interval and a the distance from the mean to its nearer end, or low - mean (which is
not positive) if the mean is inside; and let alpha = (a + sqrt(a^2 + 4)) / 2. The proposal is

    uniform         if the interval is narrow: w <= sqrt(2 pi) for a <= 0, else w <= 1.5 / alpha;
    the normal      if it is wide, and a <= 0.45;
    exponential     if it is wide, and a > 0.45: from the nearer end outwards, at rate alpha.

One-sided intervals are wide. In the tails everything is measured from the nearer end, not from the
mean: so a draw has all its digits even at 10^10 sd from the mean.
"""

import math

import numpy as np

from fillrank.draws.normal import normal
from fillrank.draws.streams import uniform
from fillrank.runtime.kernel_cache import njit

_NEAR = 0.45
_NARROW_INSIDE = math.sqrt(2.0 * math.pi)
_NARROW_OUTSIDE = 1.5


@njit
def _by_uniform(stream: np.ndarray, a: float, width: float) -> float:
    """The position of the draw in its interval: 0 is the nearer end, 1 the farther."""
    peak = max(a, 0.0)
    while True:
        position = uniform(stream)
        t = position * width
        # ((a + t)^2 - peak^2) / 2 as a product: for large a the difference would be noise.
        if uniform(stream) < math.exp(-0.5 * ((a - peak) + t) * ((a + peak) + t)):
            return position


@njit
def _by_normal(stream: np.ndarray, mean: float, sd: float, low: float, high: float) -> float:
    """The draw itself."""
    while True:
        x = mean + sd * normal(stream)
        # With this comparison a NaN mean or sd returns NaN instead of looping endlessly.
        if not (x < low or x > high):
            return x


@njit
def _by_exponential(stream: np.ndarray, alpha: float, width: float) -> float:
    """The distance of the draw from the nearer end, in units of sd."""
    while True:
        e = -math.log(uniform(stream))
        t = e / alpha
        # Robert's exp(-(a + t - alpha)^2 / 2), where alpha - a = 1 / alpha.
        short = (e - 1.0) / alpha
        if t <= width and uniform(stream) < math.exp(-0.5 * short * short):
            return t


@njit
def truncated_normal(stream: np.ndarray, mean: float, sd: float, low: float, high: float) -> float:
    """A draw from N(mean, sd^2) given that it lies in [low, high]."""
    if low == high:
        return low
    near, far = (high, low) if mean > high else (low, high)
    a = (mean - high) / sd if mean > high else (low - mean) / sd
    width = (high - low) / sd
    # For tiny sd, a and alpha can be inf: the exponential is then 0, and the draw the nearer end.
    alpha = 0.5 * (a + math.sqrt(a * a + 4.0))
    narrow = width <= _NARROW_INSIDE if a <= 0.0 else width * alpha <= _NARROW_OUTSIDE
    if narrow:
        x = near + _by_uniform(stream, a, width) * (far - near)
    elif a > _NEAR:
        x = near + math.copysign(sd, far - near) * _by_exponential(stream, alpha, width)
    else:
        return _by_normal(stream, mean, sd, low, high)
    # Rounding may go beyond an end.
    return min(max(x, low), high)
