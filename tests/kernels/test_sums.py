"""Sums and products over blocks of factors, against numpy, and the same on any number of threads."""

import numpy as np
import pytest

from fillrank.kernels.factors import cross_products, gram, multiplied, scaled, sums_about
from fillrank.runtime.threads import Workers

# Less than a part, several and a rest, more than the number of sums, and a matrix of one column.
SHAPES = [(5, 3), (1000, 40), (20_000, 12), (30_000, 1)]
SHAPED = pytest.mark.parametrize("shape", SHAPES)
TYPED = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def _block(shape, dtype):
    rng = np.random.default_rng(0)
    return rng, (3.0 + rng.standard_normal(shape)).astype(dtype)


@SHAPED
@TYPED
def test_gram(shape, dtype):
    rng, factors = _block(shape, dtype)
    centre, weights = rng.standard_normal(shape[1]), rng.integers(0, 9, shape[0])
    about = factors.astype(np.float64) - centre
    expected = about.T @ (weights[:, None] * about)
    np.testing.assert_allclose(gram(factors, centre, weights, Workers(1)), expected, rtol=1e-11)


@SHAPED
@TYPED
def test_cross_products(shape, dtype):
    """Sums over rows of products in the precision of the factors, which are added in float64."""
    rng, factors = _block(shape, dtype)
    features = rng.standard_normal((shape[0], 5)).astype(dtype)
    got = cross_products(features, factors, Workers(1))
    assert got.dtype == np.float64
    expected = features.astype(np.float64).T @ factors.astype(np.float64)
    size = np.abs(features).astype(np.float64).T @ np.abs(factors)
    assert (np.abs(got - expected) < 20 * np.finfo(dtype).eps * size).all()


@SHAPED
@TYPED
def test_multiplied(shape, dtype):
    rng, factors = _block(shape, dtype)
    matrix = rng.standard_normal((shape[1], 7))
    got = multiplied(factors, matrix, Workers(1))
    assert got.dtype == dtype
    assert got.flags.c_contiguous
    error = np.abs(got - factors.astype(np.float64) @ matrix).max()
    assert error < 50 * np.finfo(dtype).eps * np.sqrt(shape[1])


@TYPED
def test_sums_and_scaled_copies(dtype):
    rng, factors = _block((3000, 6), dtype)
    centre = rng.standard_normal(4)
    first, second = sums_about(factors, centre, Workers(1))
    about = factors[:, :4].astype(np.float64) - centre
    np.testing.assert_allclose(first, about.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(second, (about**2).sum(axis=0), rtol=1e-12)
    copy = scaled(factors, centre, Workers(1))
    expected = factors * np.append(centre, [1, 1]).astype(dtype)
    np.testing.assert_array_equal(copy, expected)


@SHAPED
def test_same_bits_on_any_number_of_threads(shape):
    rng, factors = _block(shape, np.float32)
    centre, matrix = rng.standard_normal(shape[1]), rng.standard_normal((shape[1], shape[1]))
    outcomes = []
    for n_threads in (1, 2, 4):
        with Workers(n_threads) as workers:
            outcome = [gram(factors, centre, np.ones(len(factors)), workers)]
            outcome += [multiplied(factors, matrix, workers), scaled(factors, centre, workers)]
            outcome += [cross_products(factors, factors[:, ::2].copy(), workers)]
            outcomes.append([*outcome, *sums_about(factors, centre, workers)])
    for other in outcomes[1:]:
        for a, b in zip(outcomes[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
