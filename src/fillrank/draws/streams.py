"""Counter-based random streams: any draw can be reproduced from its address.

Every draw has an address: (seed, chain) make a 64-bit key; the sweep, the purpose within the sweep,
the row, the component and the attempt make a 128-bit counter. Philox4x32-10 (Salmon, Moraes, Dror and
Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011) maps key and counter to 128 random
bits. So the bits do not depend on the order in which rows are visited, nor on the number of threads.

A stream is a small array of unsigned integers, so that kernels need no objects:
``[key, phase, row, component, attempt]``. ``start_stream`` makes one for a sweep and a purpose, ``seek``
moves it to a row and a component, ``next_bits`` returns 64 bits and advances it.
"""

from typing import NamedTuple

import numpy as np

from fillrank.runtime.kernel_cache import njit

KEY, PHASE, ROW, COMPONENT, ATTEMPT = range(5)

# The purposes of draws within a sweep. Append new ones at the end: the same seed gives the same bits
# only if these numbers do not change.
ROWS, COLUMNS, ROW_SCALARS, COLUMN_SCALARS, RATES = range(5)
AUGMENTATION, THRESHOLDS, FEATURES, ROW_HYPER, COLUMN_HYPER, NOISE = range(5, 11)
ROW_NOISE, COLUMN_NOISE, ROW_ENTRIES, COLUMN_ENTRIES, ROW_THRESHOLDS = range(11, 16)
_PURPOSES = 16

_LOW = np.uint64(0xFFFFFFFF)
_WORD = np.uint64(32)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_TO_UNIT = 2.0**-52


class Address(NamedTuple):
    """Where in the random streams a half-sweep draws.

    ``first_row`` is the number of the first row, if only a range of the rows is drawn.
    """

    key: np.uint64
    sweep: int
    purpose: int
    first_row: int = 0


def chain_key(seed: int, chain: int) -> np.uint64:
    """The key of one chain, from the user's seed."""
    return np.random.SeedSequence([seed, chain]).generate_state(1, np.uint64)[0]


@njit(inline="always")
def _philox(
    attempt: np.uint64, component: np.uint64, row: np.uint64, phase: np.uint64, key: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Four 32-bit words, each in a uint64, from a counter of four words and a 64-bit key."""
    m0, m1 = _MULTIPLIERS
    w0, w1 = _WEYL
    k0, k1 = key & _LOW, key >> _WORD
    x0, x1, x2, x3 = attempt, component, row, phase
    for _ in range(10):
        p0, p1 = m0 * x0, m1 * x2
        x0, x1, x2, x3 = (p1 >> _WORD) ^ x1 ^ k0, p1 & _LOW, (p0 >> _WORD) ^ x3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + w0) & _LOW, (k1 + w1) & _LOW
    return x0, x1, x2, x3


@njit
def start_stream(key: np.uint64, sweep: int, purpose: int) -> np.ndarray:
    """A stream for one purpose of one sweep, at row 0 and component 0."""
    stream = np.zeros(5, dtype=np.uint64)
    stream[KEY] = key
    stream[PHASE] = np.uint64(sweep * _PURPOSES + purpose) & _LOW
    stream[ATTEMPT] = 1
    return stream


@njit(inline="always")
def seek(stream: np.ndarray, row: int, component: int) -> None:
    """Move to the draws of one row and component."""
    stream[ROW] = np.uint64(row)
    stream[COMPONENT] = np.uint64(component)
    stream[ATTEMPT] = 1


@njit
def next_bits(stream: np.ndarray) -> np.uint64:
    """The next 64 random bits at this address."""
    x0, x1, _, _ = _philox(
        stream[ATTEMPT], stream[COMPONENT], stream[ROW], stream[PHASE], stream[KEY]
    )
    stream[ATTEMPT] += np.uint64(1)
    return (x0 << _WORD) | x1


@njit
def row_bits(stream: np.ndarray, row: int, out: np.ndarray) -> None:
    """Fill ``out`` with 64 bits for each component of a row.

    One block of Philox serves two components. Attempt 0 is reserved for this, so that these bits differ
    from those of ``next_bits``, and the loop is simple enough for the compiler to vectorise.
    """
    key, phase, at_row = stream[KEY], stream[PHASE], np.uint64(row)
    n = out.size
    for pair in range((n + 1) // 2):
        x0, x1, x2, x3 = _philox(np.uint64(0), np.uint64(pair), at_row, phase, key)
        out[2 * pair] = (x0 << _WORD) | x1
        if 2 * pair + 1 < n:
            out[2 * pair + 1] = (x2 << _WORD) | x3


@njit(inline="always")
def to_unit(bits: np.uint64) -> float:
    """A uniform number in the open interval (0, 1), from 64 bits."""
    # Through int64: processors convert signed integers in one instruction, but not unsigned ones.
    return (float(np.int64(bits >> np.uint64(12))) + 0.5) * _TO_UNIT


@njit
def uniform(stream: np.ndarray) -> float:
    """A uniform draw from (0, 1); neither end can occur."""
    return to_unit(next_bits(stream))
