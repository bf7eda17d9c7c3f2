import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import InputError
from fillrank.table.entries import compress
from fillrank.table.units import location_and_scale, shared_units, standardise
from helpers.standard_units import standardised


@pytest.mark.parametrize("scale", [1e-151, 1e-150, 1e-30, 1.0, 1e150])
def test_mean_and_standard_deviation(scale):
    values = np.random.default_rng(0).normal(3.0, 2.0, 500)
    location, spread = location_and_scale(scale * values, centre=True)
    assert location == pytest.approx(scale * values.mean(), rel=1e-12)
    assert spread == pytest.approx(scale * values.std(), rel=1e-12)
    location, spread = location_and_scale(scale * values, centre=False)
    assert location == 0.0
    assert spread == pytest.approx(scale * np.sqrt(np.mean(values**2)), rel=1e-12)


@pytest.mark.parametrize("value", [4.1, -1e151, 1e-9, 1e-145, 0.1 + 0.2])
def test_the_scale_of_a_constant_goes_by_its_size(value):
    location, scale = location_and_scale(np.full(777, value), centre=True)
    assert location == pytest.approx(value, rel=1e-13)
    assert scale == pytest.approx(1e-6 * abs(location), rel=1e-12)


@pytest.mark.parametrize(("value", "expected"), [(0.0, 1e-6), (1e-300, 1e-152), (-5e-324, 1e-152)])
def test_a_constant_that_has_no_size_or_too_little(value, expected):
    location, scale = location_and_scale(np.full(777, value), centre=True)
    assert location == value
    assert scale == expected


def test_zeros_without_centre():
    assert location_and_scale(np.zeros(3), centre=False) == (0.0, 1e-6)


@pytest.mark.parametrize("scale", [1e160, 1.7e308, 1e-160, 5e-324])
def test_values_without_representable_variance_are_rejected(scale):
    with pytest.raises(InputError, match="Change their unit first"):
        location_and_scale(np.array([0.0, 1.0, -1.0]) * scale, centre=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_entries_from_both_sides(dtype):
    X = np.array([[1.0, np.nan, 4.0], [np.nan, 2.0, 5.0]])
    rows, columns = standardised(fr.Observations.from_matrix(X), dtype)
    expected = (np.array([1.0, 4.0, 2.0, 5.0]) - 3.0) / np.std([1.0, 4.0, 2.0, 5.0])
    np.testing.assert_allclose(rows.values, expected, rtol=1e-6)
    np.testing.assert_allclose(columns.values, expected[[0, 2, 1, 3]], rtol=1e-6)
    assert rows.values.dtype == columns.values.dtype == dtype
    assert rows.pointers.tolist() == [0, 2, 4]
    assert columns.pointers.tolist() == [0, 1, 2, 4]


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (1, 1)])
def test_a_single_row_or_column_gets_an_empty_second_one(shape):
    rows, columns = standardised(fr.Observations.from_matrix(np.ones(shape)))
    m, n = shape
    assert rows.pointers.size - 1 == max(m, 2)
    assert columns.pointers.size - 1 == max(n, 2)
    assert rows.pointers[-1] == columns.pointers[-1] == m * n


def at_once(values, centre):
    """The location and scale from all values together, in double precision."""
    values = values.astype(np.float64)
    exponent = np.frexp(np.abs(values).max())[1]
    small = np.ldexp(values, -exponent)
    mean = small.mean() if centre else 0.0
    return np.ldexp(mean, exponent), np.ldexp(np.sqrt(np.mean((small - mean) ** 2)), exponent)


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("size", [7, 2**20, 2_500_000])
def test_blocks_give_the_same_result_as_all_values_together(size, centre):
    values = np.random.default_rng(0).normal(3.0, 2.0, size)
    got = location_and_scale(values, centre)
    np.testing.assert_allclose(got, at_once(values, centre), rtol=1e-15, atol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("unit", [1.0, 0.1])
@pytest.mark.parametrize("centre", [True, False])
def test_the_same_bits_from_values_of_either_width(dtype, unit, centre):
    X = unit * np.random.default_rng(0).integers(1, 6, (40, 30)).astype(float)
    X[np.random.default_rng(1).random(X.shape) < 0.6] = np.nan
    observations = fr.Observations.from_matrix(X)
    assert (observations.stored_values.dtype == np.float32) == (unit == 1.0)
    units = shared_units(observations, centre, None)
    rows, columns = standardise(observations, units, np.dtype(dtype))
    location, scale = location_and_scale(X[~np.isnan(X)], centre)
    assert set(units.location) == {location}
    assert set(units.scale) == {scale}
    values = ((X - location) / scale).astype(dtype)
    i, j = np.nonzero(~np.isnan(X))
    for got, expected in (
        (rows, compress(40, i, j, values[i, j])),
        (columns, compress(30, j, i, values[i, j])),
    ):
        for part, expected_part in zip(got, expected, strict=True):
            np.testing.assert_array_equal(part, expected_part)
            assert part.dtype == expected_part.dtype
