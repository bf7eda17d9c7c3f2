"""One step of slice sampling, for scalars whose density is known up to a factor.

R. M. Neal, "Slice sampling", Annals of Statistics 31 (2003): a level under the density at x, an interval
around x that is extended in steps until both ends are below that level, and points in it, of which those
below the level shorten it. The step leaves the density invariant.
"""

import math
from collections.abc import Callable

import numpy as np

from fillrank.draws.streams import Address, seek, start_stream, uniform
from fillrank.runtime.kernel_cache import njit

# Steps by which the interval is extended on each side, at most.
_MOST_STEPS = 50


@njit(cache=True)
def _stream_at(address: Address, row: int) -> np.ndarray:
    stream = start_stream(address.key, address.sweep, address.purpose)
    seek(stream, row, 0)
    return stream


@njit(cache=True)
def _next_uniform(stream: np.ndarray) -> float:
    return uniform(stream)


def slice_step(
    x: float,
    log_density: Callable[[float], float],
    width: float,
    address: Address,
    row: int,
) -> float:
    """A step from x, with the random numbers of this row of the address."""
    stream = _stream_at(address, row)
    level = log_density(x) + math.log(_next_uniform(stream))
    low = x - width * _next_uniform(stream)
    high = low + width
    below = int(_MOST_STEPS * _next_uniform(stream))
    for _ in range(below):
        if log_density(low) <= level:
            break
        low -= width
    for _ in range(_MOST_STEPS - 1 - below):
        if log_density(high) <= level:
            break
        high += width
    while True:
        new = low + (high - low) * _next_uniform(stream)
        if log_density(new) > level or high - low < 1e-12 * (1.0 + abs(x)):
            return new
        if new < x:
            low = new
        else:
            high = new
