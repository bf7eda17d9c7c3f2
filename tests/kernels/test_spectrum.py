"""Tall QR decompositions in parts, and singular values of products, against those of the whole."""

import numpy as np
import pytest

from fillrank.kernels.factors import orthonormalise, singular_values, triangle
from fillrank.runtime.threads import Workers

# One part, several, parts of different size, and more rows in a part for many columns.
SHAPES = [(7, 4), (8192, 5), (9001, 30), (2500, 200)]


def _graded(m, k, dtype=np.float64):
    """Columns that are far from orthogonal, over eight orders of magnitude."""
    rng = np.random.default_rng(0)
    block = rng.standard_normal((m, k)) @ (np.eye(k) + rng.standard_normal((k, k)) / np.sqrt(k))
    return (block * np.logspace(0, -8, k)).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
def test_triangle_has_the_singular_values(shape):
    block = _graded(*shape)
    expected = np.linalg.svd(block, compute_uv=False)
    R = triangle(block)
    np.testing.assert_array_equal(R, np.triu(R))
    got = np.linalg.svd(R, compute_uv=False)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-14 * expected[0])


def test_triangle_of_a_centred_block():
    block = (100.0 + _graded(3000, 6)).astype(np.float32)
    centre = block.mean(axis=0, dtype=np.float64)
    centred = block - centre
    R = triangle(block, centre)
    np.testing.assert_allclose(R.T @ R, centred.T @ centred, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_orthonormal_columns_span_the_block(shape, dtype):
    rng = np.random.default_rng(0)
    block = rng.standard_normal(shape).astype(dtype) * np.logspace(0, -3, shape[1], dtype=dtype)
    Q = block.copy()
    orthonormalise(Q, Workers(1))
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(Q.T @ Q, np.eye(shape[1]), atol=tolerance)
    np.testing.assert_allclose(Q @ (Q.T @ block), block, atol=20 * tolerance)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_blocks_without_full_rank_have_orthonormal_columns_too(rank):
    rng = np.random.default_rng(0)
    block = rng.standard_normal((2000, rank)) @ rng.standard_normal((rank, 8))
    Q = block.copy()
    orthonormalise(Q, Workers(1))
    np.testing.assert_allclose(Q.T @ Q, np.eye(8), atol=1e-12)
    np.testing.assert_allclose(Q @ (Q.T @ block), block, atol=1e-10)


def test_the_number_of_threads_does_not_change_a_bit():
    block = _graded(20_000, 12, np.float32)
    found = []
    for n_threads in (1, 2, 4):
        Q = block.copy()
        with Workers(n_threads) as workers:
            orthonormalise(Q, workers)
            found.append((Q, triangle(block, workers=workers)))
    for other in found[1:]:
        for got, expected in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("shape", [(5, 4, 2), (3, 6, 5), (2000, 40, 3), (30, 4, 4)])
def test_singular_values_are_those_of_the_product(shape):
    m, n, r = shape
    rng = np.random.default_rng(0)
    left, right = 3.0 + rng.standard_normal((m, r)), rng.standard_normal((n, r)) - 1.0
    found = singular_values(left, right)
    assert found.shape == (r,)
    expected = np.zeros(r)
    most = min(m, n, r)
    expected[:most] = np.linalg.svd(left @ right.T, compute_uv=False)[:most]
    np.testing.assert_allclose(found, expected, atol=1e-11 * expected[0])
    centres = left.mean(axis=0), right.mean(axis=0)
    product = (left - centres[0]) @ (right - centres[1]).T
    expected[:most] = np.linalg.svd(product, compute_uv=False)[:most]
    found = singular_values(left, right, *centres)
    np.testing.assert_allclose(found, expected, atol=1e-11 * expected[0])


def test_small_singular_values_are_not_lost():
    """Their squares are below what float64 resolves beside the largest one's."""
    left, right = (
        np.linalg.qr(np.random.default_rng(s).standard_normal((1500, 3))).Q for s in (0, 1)
    )
    values = np.array([1.0, 1e-6, 1e-12])
    found = singular_values(left * values, right)
    np.testing.assert_allclose(found, values, rtol=1e-3)
