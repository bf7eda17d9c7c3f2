"""Products with a residual that is never stored, against the residual as a whole matrix."""

import numpy as np
import pytest

from fillrank.kernels.products import Fitted, effect_sums, residual_products
from fillrank.runtime.threads import Workers
from reference.small_tables import table_and_values

TOLERANCE = {np.float64: 1e-12, np.float32: 1e-4}


def _problem(dtype, shape, width=5, n_factors=3):
    """(mask, X, entries, fitted, block, out); the first row and the last column are empty."""
    rng = np.random.default_rng(0)
    m, n = shape
    mask = rng.random(shape) < 0.6
    mask[1] = True
    mask[0], mask[:, -1] = False, False
    X = rng.standard_normal(shape).astype(dtype)
    _, data = table_and_values(mask, X, dtype)
    left, right, scales, block, out = (
        rng.standard_normal(size).astype(dtype)
        for size in ((m, n_factors), (n, n_factors), (2, n_factors), (n, width), (m, width))
    )
    return mask, X, data.rows, Fitted(left, right, scales), block, out


def _residuals(mask, X, fitted):
    left, right, scales = (part.astype(float) for part in fitted)
    return [np.where(mask, X - (left * scale) @ right.T, 0.0) for scale in scales]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(11, 9), (9, 11), (3, 20), (200, 4)])
def test_both_products_and_both_squares(dtype, shape):
    mask, X, entries, fitted, block, out = _problem(dtype, shape)
    E, other = _residuals(mask, X, fitted)
    expected = out + E @ block
    back, squares = residual_products(entries, fitted, block, out, Workers(1))
    close = {"rtol": TOLERANCE[dtype], "atol": 10 * TOLERANCE[dtype]}
    np.testing.assert_allclose(out, expected, **close)
    np.testing.assert_allclose(back, E.T @ expected, **close)
    np.testing.assert_allclose(
        squares.sum(axis=0), [np.sum(E**2), np.sum(other**2)], rtol=close["rtol"]
    )
    assert out.dtype == back.dtype == dtype
    assert squares.dtype == np.float64


def test_rows_without_entries_do_not_change():
    _, _, entries, fitted, block, out = _problem(np.float32, (11, 9))
    before = out.copy()
    back, _ = residual_products(entries, fitted, block, out, Workers(1))
    np.testing.assert_array_equal(out[0], before[0])
    np.testing.assert_array_equal(back[-1], 0.0)


@pytest.mark.parametrize(("n_factors", "width"), [(0, 5), (3, 0)])
def test_no_factors_or_nothing_to_multiply(n_factors, width):
    mask, X, entries, fitted, block, out = _problem(np.float64, (11, 9), width, n_factors)
    E, _ = _residuals(mask, X, fitted)
    back, squares = residual_products(entries, fitted, block, out, Workers(1))
    assert back.shape == (9, width)
    assert squares[:, 0].sum() == pytest.approx(np.sum(E**2))


@pytest.mark.parametrize("shape", [(250, 60), (60, 250)])
def test_the_number_of_threads_does_not_change_a_bit(shape):
    found = []
    for n_threads in (1, 2, 4):
        _, _, entries, fitted, block, out = _problem(np.float32, shape)
        with Workers(n_threads) as workers:
            back, squares = residual_products(entries, fitted, block, out, workers)
            sums = effect_sums(entries, fitted.left[:, 0], fitted.right[:, 0], workers)
        found.append((out, back, squares, *sums))
    for other in found[1:]:
        for got, expected in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_of_effects(dtype):
    mask, X, entries, _, _, _ = _problem(dtype, (11, 9))
    rng = np.random.default_rng(1)
    own, other = rng.standard_normal(11), rng.standard_normal(9)
    sums, squares = effect_sums(entries, own, other, Workers(1))
    rest = np.where(mask, X - other, 0.0)
    np.testing.assert_allclose(sums, rest.sum(axis=1), rtol=1e-12, atol=1e-12)
    rest = np.where(mask, X - other - own[:, np.newaxis], 0.0)
    np.testing.assert_allclose(squares, np.sum(rest**2, axis=1), rtol=1e-12)
