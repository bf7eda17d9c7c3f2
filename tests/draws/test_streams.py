"""The bits behind every draw: right, distinct, independent of order, and uniform."""

import itertools

import numpy as np
import pytest
from numba import njit

from fillrank.draws.streams import (
    ATTEMPT,
    _philox,
    chain_key,
    next_bits,
    row_bits,
    seek,
    start_stream,
    to_unit,
    uniform,
)
from helpers.draw_many import ALARM, chi2, fill_bits, fill_uniform, ks, new_stream, sample, z_test

COORDINATES = ("chain", "sweep", "purpose", "row", "component", "attempt")


@njit
def _bits_at(key, sweep, purpose, row, component, attempt):
    stream = start_stream(key, sweep, purpose)
    seek(stream, row, component)
    stream[ATTEMPT] = attempt
    return next_bits(stream)


def _u64(word):
    return np.uint64(word)


# The vectors of the authors' Random123 library (kat_vectors, philox4x32 10).
@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        (
            "00000000 00000000 00000000 00000000",
            "00000000 00000000",
            "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
        ),
        (
            "ffffffff ffffffff ffffffff ffffffff",
            "ffffffff ffffffff",
            "408f276d 41c83b0e a20bc7c6 6d5451fd",
        ),
        (
            "243f6a88 85a308d3 13198a2e 03707344",
            "a4093822 299f31d0",
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
    ids=["zeros", "ones", "pi"],
)
def test_philox_known_values(counter, key, expected):
    words = [int(word, 16) for word in counter.split()]
    low, high = (int(word, 16) for word in key.split())
    bits = [int(x) for x in _philox(*map(_u64, words), _u64(high << 32 | low))]
    assert [f"{x:08x}" for x in bits] == expected.split()

    # The stream's own layout leads to the same block: next_bits takes its first two words.
    attempt, component, row, phase = words
    stream = np.array([high << 32 | low, phase, row, component, attempt], dtype=np.uint64)
    assert f"{int(next_bits(stream)):016x}" == "".join(expected.split()[:2])


def test_row_bits_is_the_block_of_attempt_zero():
    stream = np.zeros(5, dtype=np.uint64)
    out = np.empty(2, dtype=np.uint64)
    row_bits(stream, 0, out)
    assert [f"{int(x):016x}" for x in out] == ["6627e8d5e169c58d", "bc57ac4c9b00dbd8"]


def test_distinct_addresses_have_distinct_bits():
    # 20 736 numbers of 64 bits: that two agree by chance has probability 1e-11.
    seen = []
    ends = (0, 1, 2, 3, 2**16, 2**32 - 1)
    row = np.empty(8, dtype=np.uint64)
    for chain, sweep, purpose in itertools.product(range(3), (0, 1, 2, 500), range(9)):
        key = chain_key(7, chain)
        for at_row in ends:
            row_bits(start_stream(key, sweep, purpose), at_row, row)
            seen.extend(row.tolist())
            for component, attempt in itertools.product(ends, (1, 2, 3, 2**20)):
                seen.append(int(_bits_at(key, sweep, purpose, at_row, component, attempt)))
    assert len(seen) == 20_736
    assert len(set(seen)) == len(seen)


def test_seed_and_chain_do_not_mix():
    keys = {int(chain_key(seed, chain)) for seed in range(40) for chain in range(40)}
    assert len(keys) == 1600


def test_row_bits_does_not_depend_on_the_length_of_the_row():
    stream = new_stream("prefix")
    before = stream.copy()
    longest = np.empty(11, dtype=np.uint64)
    row_bits(stream, 5, longest)
    for n in range(11):
        # One place more than is asked for, to see that nothing is written past the end.
        out = np.zeros(n + 1, dtype=np.uint64)
        row_bits(stream, 5, out[:n])
        assert np.array_equal(out[:n], longest[:n])
        assert out[n] == 0
    assert np.array_equal(stream, before)


def test_new_stream_is_at_the_first_address():
    new, sought = new_stream("first"), new_stream("first")
    seek(sought, 0, 0)
    assert np.array_equal(new, sought)
    bits = np.empty(2, dtype=np.uint64)
    row_bits(new, 0, bits)
    assert next_bits(new) not in bits


def test_draws_depend_on_the_address_and_not_on_the_order_of_visits():
    stream = new_stream("order")
    addresses = list(itertools.product(range(5), range(4)))

    def visit(order):
        draws = {}
        for address in order:
            seek(stream, *address)
            draws[address] = [uniform(stream) for _ in range(3)]
        return draws

    assert visit(addresses) == visit(addresses[::-1])


def test_to_unit_stays_inside_the_open_interval():
    assert to_unit(_u64(0)) == 2.0**-53
    assert to_unit(_u64(2**64 - 1)) == 1.0 - 2.0**-53
    draws = sample(fill_uniform, n=1_000_000)
    assert draws.min() > 0.0
    assert draws.max() < 1.0


def test_uniform_is_uniform():
    draws = sample(fill_uniform, n=1_000_000)
    assert ks(draws, lambda x: x) > ALARM
    # The pairs of successive draws fill the square.
    cells, _, _ = np.histogram2d(draws[::2], draws[1::2], bins=32, range=[[0, 1], [0, 1]])
    assert chi2(cells.ravel(), np.full(1024, 1 / 1024)) > ALARM


def test_every_byte_of_the_bits_is_uniform():
    bits = np.empty(100_000, dtype=np.uint64)
    fill_bits(new_stream("bytes"), bits)
    for byte in bits.view(np.uint8).reshape(-1, 8).T:
        assert chi2(np.bincount(byte, minlength=256), np.full(256, 1 / 256)) > ALARM


def _assert_unrelated(left, right):
    """No linear relation, none between the distances from 1/2, and half of all bits agree."""
    a, b = (np.array([to_unit(x) for x in bits.ravel()]) - 0.5 for bits in (left, right))
    assert z_test(a * b, 0.0, 1 / 144) > ALARM
    assert z_test((a**2 - 1 / 12) * (b**2 - 1 / 12), 0.0, 1 / 180**2) > ALARM
    assert z_test(np.bitwise_count(left ^ right).ravel().astype(float), 32.0, 16.0) > ALARM


@pytest.mark.parametrize("coordinate", COORDINATES)
def test_neighbouring_addresses_are_unrelated(coordinate):
    # 16 steps along the coordinate, from 1000 places along another one.
    other = "component" if coordinate == "row" else "row"
    bits = np.empty((16, 1000), dtype=np.uint64)
    for step in range(16):
        address = {"chain": 3, "sweep": 5, "purpose": 2, "row": 7, "component": 4, "attempt": 1}
        address[coordinate] = step + 1 if coordinate == "attempt" else step
        key = chain_key(11, address.pop("chain"))
        for place in range(1000):
            address[other] = place
            bits[step, place] = _bits_at(key, *address.values())
    _assert_unrelated(bits[1:], bits[:-1])


def test_neighbours_within_a_row_are_unrelated():
    bits = np.empty(20_001, dtype=np.uint64)
    row_bits(new_stream("row"), 3, bits)
    _assert_unrelated(bits[1:], bits[:-1])
