"""Sums of whole numbers: the same bits of location and scale, wherever the values lie."""

import math
from fractions import Fraction

import numpy as np
import pytest

from fillrank.table.units import Measure, Span, compute_units, exact_sum, location_and_scale

RNG = np.random.default_rng(0)
KINDS = {
    "ratings": RNG.integers(1, 6, 5000).astype(np.float32),
    "far from zero": 1e9 + RNG.normal(size=5000),
    "many sizes": RNG.normal(size=5000) * 10.0 ** RNG.integers(-12, 12, 5000),
    "tiny": 1e-150 * RNG.normal(size=5000),
    "one": np.array([-3.7]),
}


def in_parts(values, centre, n_parts):
    """The same from the totals of parts, in another order."""
    parts = np.array_split(np.random.default_rng(1).permutation(values), n_parts)
    span = Span(float(values.min()), float(values.max()), values.size)
    return compute_units(
        span, lambda measure: sum(exact_sum(part, measure) for part in parts), centre
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("n_parts", [1, 2, 7, 6000])  # some of them are empty
def test_partition_and_order_do_not_change_the_sum(kind, centre, n_parts):
    values = KINDS[kind]
    assert in_parts(values, centre, n_parts) == location_and_scale(values, centre)


@pytest.mark.parametrize("kind", KINDS)
def test_against_exact_arithmetic(kind):
    exact = [Fraction(float(value)) for value in KINDS[kind]]
    mean = sum(exact) / len(exact)
    location, scale = location_and_scale(KINDS[kind], centre=True)
    largest = float(max(map(abs, exact)))
    assert abs(location - mean) <= 2**-53 * largest
    if len(exact) > 1:
        variance = sum((value - mean) ** 2 for value in exact) / len(exact)
        sd = float(Fraction(math.isqrt(int(variance * 2**2200)), 2**1100))
        # The mean is a double: of values far from zero it is off by some of their spread.
        assert scale == pytest.approx(sd, rel=1e-15 + (2**-53 * largest / sd) ** 2)


def test_the_largest_block_is_summed_exactly():
    values = np.full(2**17 + 1, np.nextafter(1.0, 0.0))
    assert exact_sum(values, Measure(0, 0.0, 0, 1)) == (2**17 + 1) * (2**62 - 2**9)
