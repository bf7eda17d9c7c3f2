"""Vectors of eight lanes against numpy, in both precisions."""

import numpy as np
import pytest
from numba import njit

from fillrank.kernels.simd import (
    LANES,
    add,
    load,
    multiply_add,
    prefetch,
    spread,
    spread_from,
    store,
    total,
    transpose,
)

both = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@njit
def _turn(block, out):
    turned = transpose(
        (
            load(block, (0, 0)),
            load(block, (1, 0)),
            load(block, (2, 0)),
            load(block, (3, 0)),
            load(block, (4, 0)),
            load(block, (5, 0)),
            load(block, (6, 0)),
            load(block, (7, 0)),
        )
    )
    store(out, (0, 0), turned[0])
    store(out, (1, 0), turned[1])
    store(out, (2, 0), turned[2])
    store(out, (3, 0), turned[3])
    store(out, (4, 0), turned[4])
    store(out, (5, 0), turned[5])
    store(out, (6, 0), turned[6])
    store(out, (7, 0), turned[7])


@njit
def _arithmetic(a, b, x, at, out):
    prefetch(a, at)
    store(out, 0, multiply_add(load(a, at), spread_from(b, at), add(load(b, 0), spread(x))))
    return total(load(a, at))


@both
def test_a_block_is_transposed(dtype):
    block = np.arange(LANES**2, dtype=dtype).reshape(LANES, LANES)
    out = np.zeros_like(block)
    _turn(block, out)
    np.testing.assert_array_equal(out, block.T)


@both
@pytest.mark.parametrize("at", [0, 3])
def test_arithmetic_of_lanes(dtype, at):
    """Whole numbers, so that every order of adding gives the same."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-50, 50, 16).astype(dtype) for _ in range(2))
    out = np.full(10, 7, dtype=dtype)
    assert _arithmetic(a, b, dtype(4), at, out) == a[at : at + LANES].sum()
    np.testing.assert_array_equal(out[:LANES], a[at : at + LANES] * b[at] + (b[:LANES] + 4))
    np.testing.assert_array_equal(out[LANES:], 7)


def test_sums_are_taken_by_halves():
    """The order is part of what the same seed means: 1e8 + 1 is 1e8 in single precision."""
    a = np.array([1e8, 1, 1, 1, -1e8, 1, 1, 1], dtype=np.float32)
    out = np.zeros(LANES, dtype=np.float32)
    assert _arithmetic(a, a, np.float32(0), 0, out) == 6.0
