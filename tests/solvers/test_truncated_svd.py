import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fillrank.solvers.truncated_svd import leading, spectral_norm


@pytest.fixture(autouse=True)
def one_blas_thread():
    """As in a fit: small blocks are slow on several threads if the machine is busy."""
    with threadpool_limits(1, user_api="blas"):
        yield


class Matrix:
    """A dense matrix that counts the columns it is multiplied with."""

    def __init__(self, array):
        self.array = array
        self.shape = array.shape
        self.n_columns = 0

    def times(self, block):
        self.n_columns += block.shape[1]
        return self.array @ block

    def transposed_times(self, block):
        self.n_columns += block.shape[1]
        return self.array.T @ block


def with_spectrum(m, n, s, seed=0):
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((size, len(s)))).Q for size in (m, n))
    return Matrix((U * s) @ V.T)


def rng():
    return np.random.default_rng(7)


def check(matrix, got, k, atol):
    U, s, Vt = np.linalg.svd(matrix.array, full_matrices=False)
    np.testing.assert_allclose(got.s, s[:k], atol=atol)
    np.testing.assert_allclose((got.U * got.s) @ got.V.T, (U[:, :k] * s[:k]) @ Vt[:k], atol=atol)
    for side in (got.U, got.V):
        np.testing.assert_allclose(side.T @ side, np.eye(k), atol=1e-12)


NOTHING = {n: np.zeros((n, 0)) for n in (3, 12, 60, 150)}


@pytest.mark.parametrize("shape", [(200, 150), (90, 150), (80, 12), (8, 60), (3, 3)])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_against_lapack(shape, k):
    matrix = with_spectrum(*shape, 10 * 0.8 ** np.arange(min(shape)))
    got = leading(matrix, k, NOTHING[shape[1]], rng())
    check(matrix, got, min(k, *shape), 1e-8)


def test_noise_without_gaps():
    matrix = Matrix(np.random.default_rng(0).standard_normal((200, 150)))
    check(matrix, leading(matrix, 10, NOTHING[150], rng()), 10, 1e-8)


def test_exact_low_rank_and_zeros():
    low = with_spectrum(200, 150, [3.0, 2.0, 2.0])
    got = leading(low, 5, NOTHING[150], rng())
    np.testing.assert_allclose(got.s, [3, 2, 2, 0, 0], atol=1e-12)
    for side in (got.U, got.V):
        np.testing.assert_allclose(side.T @ side, np.eye(5), atol=1e-12)
    zero = leading(Matrix(np.zeros((8, 12))), 2, NOTHING[12], rng())
    np.testing.assert_array_equal(zero.s, 0.0)


def test_only_values_above_the_threshold_need_be_accurate():
    s = np.append([20.0, 15.0, 10.0], np.linspace(5, 0, 147))
    matrix = with_spectrum(200, 150, s)
    got = leading(matrix, 8, NOTHING[150], rng(), above=7.0)
    assert got.s.size == 8
    np.testing.assert_allclose(got.s[:3], s[:3], rtol=1e-12)
    assert (got.s[3:] <= s[3:8] + 1e-12).all()
    cost, matrix.n_columns = matrix.n_columns, 0
    leading(matrix, 8, NOTHING[150], rng())
    assert cost < 0.5 * matrix.n_columns


def test_values_just_above_are_not_missed():
    """A random start sees all of them far below their size."""
    s = np.append([6.0, 5.9, 5.8], np.linspace(5, 0, 147))
    got = leading(with_spectrum(200, 150, s), 5, NOTHING[150], rng(), above=5.5)
    np.testing.assert_allclose(got.s[:3], s[:3], rtol=1e-12)


def test_a_warm_start_saves_products():
    matrix = with_spectrum(200, 150, 10 * 0.95 ** np.arange(150))
    V = leading(matrix, 10, NOTHING[150], rng()).V
    cost, matrix.n_columns = matrix.n_columns, 0
    check(matrix, leading(matrix, 10, V, rng()), 10, 1e-8)
    assert matrix.n_columns < 0.3 * cost


@pytest.mark.parametrize("tolerance", [1.0, 1e-1, 1e-3])
def test_the_search_space_contains_the_start(tolerance):
    """At any accuracy S_lambda(W) is as good as the best Z with rows in the start's span."""
    rng = np.random.default_rng(3)
    matrix = with_spectrum(90, 60, 10 * 0.9 ** np.arange(60))
    start = np.linalg.qr(rng.standard_normal((60, 4))).Q
    penalty = 1.0
    best = np.maximum(np.linalg.svd(matrix.array @ start)[1] - penalty, 0.0)
    got = leading(matrix, 4, start, rng, above=penalty, tolerance=tolerance)
    assert np.sum(np.maximum(got.s - penalty, 0.0) ** 2) >= np.sum(best**2)


@pytest.mark.parametrize(
    ("spread", "error"), [(1.0, 1e-9), (1e-2, 1e-7), (1e-4, 1e-6), (1e-8, 1e-8), (0.0, 1e-12)]
)
def test_norm_with_many_close_singular_values(spread, error):
    """As near a solution of SoftImpute: many singular values at the penalty, the rest close below."""
    s = np.append(3.0 + spread * np.linspace(1, 0, 40), np.linspace(2.95, 0, 110))
    matrix = with_spectrum(200, 150, s)
    assert spectral_norm(matrix, rng()) == pytest.approx(3.0 + spread, rel=error)


@pytest.mark.parametrize("shape", [(2, 2), (3, 60), (8, 12), (200, 150)])
def test_norm_of_noise_and_zeros(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    assert spectral_norm(Matrix(X), rng()) == pytest.approx(np.linalg.norm(X, 2), rel=1e-10)
    assert spectral_norm(Matrix(0 * X), rng()) == 0.0
