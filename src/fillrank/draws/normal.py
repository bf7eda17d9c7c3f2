"""Standard normal draws by the ziggurat of Marsaglia and Tsang (2000), 256 layers, 52 bits.

The half density f(x) = exp(-x^2/2) is covered by 256 layers of equal area: layer i reaches to EDGE[i]
and is completely under f up to EDGE[i + 1]. Layer 0 is the base with the tail beyond EDGE[1].
"""

import math

import numpy as np

from fillrank.draws.streams import (
    Address,
    next_bits,
    row_bits,
    seek,
    start_stream,
    to_unit,
    uniform,
)
from fillrank.runtime.kernel_cache import njit

_LAYERS = 256
_TAIL = 3.6541528853610088
_AREA = 4.92867323399e-3


def _edges() -> np.ndarray:
    edge = np.zeros(_LAYERS + 1)
    edge[0] = _AREA / math.exp(-0.5 * _TAIL**2)
    edge[1] = _TAIL
    for i in range(1, _LAYERS - 1):
        edge[i + 1] = math.sqrt(-2.0 * math.log(math.exp(-0.5 * edge[i] ** 2) + _AREA / edge[i]))
    return edge


EDGE = _edges()
HEIGHT = np.exp(-0.5 * EDGE**2)


@njit
def _tail(stream: np.ndarray) -> float:
    """|X| of X ~ N(0, 1) given |X| > _TAIL (Marsaglia 1964)."""
    while True:
        x = -math.log(uniform(stream)) / _TAIL
        if -2.0 * math.log(uniform(stream)) > x * x:
            return _TAIL + x


@njit(inline="always")
def _try_layer(bits: np.uint64) -> tuple[np.int64, float]:
    """(layer, signed point): the layer, the sign and the position in it use disjoint bits."""
    layer = np.int64(bits & np.uint64(255))
    x = to_unit(bits) * EDGE[layer]
    return layer, (x if bits & np.uint64(256) else -x)


@njit
def _finish(bits: np.uint64, stream: np.ndarray) -> float:
    """The draw that starts with ``bits``, with as many further bits of ``stream`` as it needs."""
    while True:
        layer, x = _try_layer(bits)
        if abs(x) < EDGE[layer + 1]:
            return x
        if layer == 0:
            return math.copysign(_tail(stream), x)
        low, high = HEIGHT[layer], HEIGHT[layer + 1]
        if low + uniform(stream) * (high - low) < math.exp(-0.5 * x * x):
            return x
        bits = next_bits(stream)


@njit
def normal(stream: np.ndarray) -> float:
    """A draw from N(0, 1)."""
    return _finish(next_bits(stream), stream)


@njit(inline="always")
def normal_from_bits(bits: np.uint64, stream: np.ndarray, row: int, component: int) -> float:
    """A draw from N(0, 1) from bits made by ``row_bits``; 98.8% of the draws need no more."""
    layer, x = _try_layer(bits)
    if abs(x) < EDGE[layer + 1]:
        return x
    seek(stream, row, component)
    return _finish(bits, stream)


@njit(cache=True)
def row_normals(address: Address, first: int, shape: tuple[int, int]) -> np.ndarray:
    """Draws from N(0, 1): a row of components for each row from number ``first`` on."""
    stream = start_stream(address.key, address.sweep, address.purpose)
    bits = np.empty(shape[1], dtype=np.uint64)
    z = np.empty(shape)
    for i in range(shape[0]):
        row_bits(stream, first + i, bits)
        for k in range(shape[1]):
            z[i, k] = normal_from_bits(bits[k], stream, first + i, k)
    return z
