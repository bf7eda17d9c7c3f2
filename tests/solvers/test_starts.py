import tracemalloc

import numpy as np
import pytest
from scipy.sparse.linalg import svds
from threadpoolctl import threadpool_limits

import fillrank as fr
from fillrank.kernels.products import effect_sums
from fillrank.runtime.threads import Workers
from fillrank.samplers.gasr import Options
from fillrank.samplers.model import Data, Effect
from fillrank.solvers import starts as solver
from fillrank.solvers.rank import detection_level, largest_rank, shrink_singular_values
from fillrank.solvers.starts import random_start, shrunken_means, spectral_start
from fillrank.table.units import shared_units, standardise

PLAIN = Options(row_effects=False, column_effects=False, centres=False)
BOTH = Options(row_effects=True, column_effects=True, centres=False)


@pytest.fixture(autouse=True)
def one_blas_thread():
    """As in a fit: small blocks are slow on several threads if the machine is busy."""
    with threadpool_limits(1, user_api="blas"):
        yield


def data_of(X, dtype="float64"):
    """An array with NaN as the start sees it: in standard units, from both sides."""
    observations = fr.Observations.from_matrix(X)
    return Data(*standardise(observations, shared_units(observations, True, None), np.dtype(dtype)))


def dense_of(data):
    """The entries as an array, with NaN where there is none."""
    X = np.full(data.shape, np.nan)
    rows = np.repeat(np.arange(data.shape[0]), np.diff(data.rows.pointers))
    X[rows, data.rows.indices] = data.rows.values
    return X


def start_of(data, options=PLAIN, max_rank=None, make=spectral_start):
    with Workers(1) as workers:
        return make(data, max_rank, options, workers, np.random.default_rng(0))


def low_rank(m, n, rank, noise, seed=0, missing=0.0):
    observations, truth = fr.synthetic(m, n, rank, noise, missing, random_state=seed)
    X = np.full((m, n), np.nan)
    X[observations.row_index, observations.column_index] = observations.values
    return X, truth


# Shrunken means


def test_effects_are_posterior_means():
    """Against the joint Gaussian of effects and values, row by row; the third row is empty."""
    values = np.array([1.0, 2.0, 0.5, -1.0, 3.0, 2.0])
    pointers = np.array([0, 3, 5, 5, 6])
    noise, law = 0.7, Effect(0.4, 0.3)
    effects, new = shrunken_means(np.diff(pointers), np.array([3.5, 2.0, 0.0, 2.0]), noise, law)
    variances = []
    for i in range(4):
        x = values[pointers[i] : pointers[i + 1]]
        covariance = law.variance + noise * np.eye(x.size)
        gain = np.linalg.solve(covariance, np.full(x.size, law.variance)) if x.size else x
        assert effects[i] == pytest.approx(law.mean + gain @ (x - law.mean))
        variances.append(law.variance - gain.sum() * law.variance)
    assert effects[2] == law.mean
    assert new.mean == pytest.approx(effects.mean())
    assert new.variance == pytest.approx(effects.var() + np.mean(variances))


@pytest.mark.parametrize("empty", [[0], [3], [0, 1], [2, 3], [1, 2]])
def test_empty_rows_have_the_mean(empty):
    X = np.arange(16.0).reshape(4, 4)
    X[empty] = np.nan
    data = data_of(X)
    sums, _ = effect_sums(data.rows, np.zeros(4), np.zeros(4), Workers(1))
    effects, _ = shrunken_means(np.diff(data.rows.pointers), sums, 0.1, Effect(0.25, 0.5))
    full = np.setdiff1d(np.arange(4), empty)
    assert (effects[empty] == 0.25).all()
    expected = (np.nansum(dense_of(data)[full], axis=1) / 0.1 + 0.25 / 0.5) / (4 / 0.1 + 1 / 0.5)
    np.testing.assert_allclose(effects[full], expected)


def test_effects_of_an_additive_table():
    rng = np.random.default_rng(0)
    rows, columns = rng.standard_normal((40, 1)), 2 * rng.standard_normal(30)
    X = rows + columns + 0.05 * rng.standard_normal((40, 30))
    X[rng.random(X.shape) < 0.3] = np.nan
    data = data_of(X)
    start = start_of(data, BOTH)
    sd = np.nanstd(X)
    for got, true in ((start.row_effects, rows[:, 0]), (start.column_effects, columns)):
        np.testing.assert_allclose(sd * (got - got.mean()), true - true.mean(), atol=0.1)
    total = start.row_effects[:, np.newaxis] + start.column_effects
    assert np.nanmean((dense_of(data) - total) ** 2) < 2 * (0.05 / sd) ** 2
    assert start.row_effect.variance == pytest.approx(rows.var() / sd**2, rel=0.1)
    assert start.column_effect.variance == pytest.approx(columns.var() / sd**2, rel=0.1)


@pytest.mark.parametrize(("rows", "columns"), [(True, False), (False, True)])
def test_a_side_without_effects_has_none(rows, columns):
    X = np.add.outer(np.arange(12.0), 3 * np.arange(9.0))
    start = start_of(data_of(X), Options(rows, columns, False))
    assert start.row_effects.any() == rows
    assert start.column_effects.any() == columns


# Factors


@pytest.mark.parametrize("shape", [(40, 25), (25, 40)])
def test_full_tables_get_their_shrunken_svd(shape):
    """Singular values above the edge of the noise, without what noise adds; the vectors as they are."""
    X, _ = low_rank(*shape, 3, 0.3)
    data = data_of(X)
    start = start_of(data)
    U, w, Vt = np.linalg.svd(dense_of(data), full_matrices=False)
    q = start.s.size
    assert q == 3
    np.testing.assert_allclose(
        start.s, shrink_singular_values(w[:q], shape, start.noise_variance), rtol=1e-5
    )
    sd = 0.3 / np.nanstd(X)
    assert 0.8 * sd < np.sqrt(start.noise_variance) < 1.2 * sd
    assert w[q] < np.sqrt(start.noise_variance) * (np.sqrt(shape[0]) + np.sqrt(shape[1])) < w[q - 1]
    np.testing.assert_allclose(
        (start.U * start.s) @ start.V.T, (U[:, :q] * start.s) @ Vt[:q], atol=1e-6
    )
    for factors in (start.U, start.V):
        np.testing.assert_allclose(factors.T @ factors, np.eye(q), atol=1e-6)


def test_a_factor_at_the_edge_of_the_noise_is_not_shrunk_too_far():
    """Its singular value is 53, and 68 with the noise, whose edge is 63: a soft threshold leaves 11."""
    X, truth = low_rank(100, 100, 10, np.sqrt(10.0), seed=2)
    start = start_of(data_of(X), BOTH, max_rank=20)
    assert start.s.size == 10
    scale = np.nanstd(X)
    weakest = np.linalg.svd(truth, compute_uv=False)[9]
    assert 20.0 < scale * start.s[9] < weakest


@pytest.mark.parametrize("missing", [0.3, 0.6])
def test_factors_with_missing_cells_are_near_the_truth(missing):
    X, truth = low_rank(200, 120, 4, 0.5, missing=missing)
    data = data_of(X, "float32")
    start = start_of(data)
    location, sd = np.nanmean(X), np.nanstd(X)
    Z = location + sd * (start.U * start.s) @ start.V.T
    assert start.s.size >= 4
    assert np.sqrt(np.mean((Z - truth) ** 2)) < 0.5 * truth.std()
    assert start.noise_variance == pytest.approx(0.25 / sd**2, rel=0.8)


def test_pure_noise_has_no_factor():
    X = np.random.default_rng(0).standard_normal((100, 60))
    assert start_of(data_of(X), BOTH).s.size <= 1


def test_empty_rows_and_columns_have_no_factors():
    X, _ = low_rank(30, 20, 2, 0.1, missing=0.2)
    X[[0, 7, 29]] = np.nan
    X[:, [0, 5, 19]] = np.nan
    start = start_of(data_of(X), BOTH)
    np.testing.assert_allclose(start.U[[0, 7, 29]], 0.0, atol=1e-2)
    np.testing.assert_allclose(start.V[[0, 5, 19]], 0.0, atol=1e-2)
    for field in (start.U, start.s, start.V, start.row_effects, start.column_effects):
        assert np.isfinite(field).all()


def test_all_zeros():
    start = start_of(data_of(np.zeros((12, 10))), BOTH)
    assert start.s.size == 0
    assert start.noise_variance >= 0.0


# The number of components


def test_many_clear_factors_raise_the_maximum_rank():
    X, _ = low_rank(150, 120, 40, 0.1)
    start = start_of(data_of(X))
    assert start.s.size >= 40
    assert start.max_rank >= start.s.size
    assert start.max_rank >= 40
    assert start.max_rank < 120


def test_ratings_get_30():
    rng = np.random.default_rng(0)
    Z = 3.5 + rng.standard_normal((300, 3)) @ rng.standard_normal((3, 200)) / 3
    X = np.clip(np.rint(Z + 0.9 * rng.standard_normal(Z.shape)), 1, 5)
    X[rng.random(X.shape) < 0.7] = np.nan
    start = start_of(data_of(X, "float32"), BOTH)
    assert start.max_rank == 30
    assert start.s.size <= 30


def test_max_rank_is_respected():
    X, _ = low_rank(60, 50, 8, 0.1)
    start = start_of(data_of(X), max_rank=3)
    assert start.max_rank == 3
    assert start.s.size == 3
    assert start_of(data_of(X[:6, :4]), max_rank=9).max_rank == 9
    assert start_of(data_of(X[:20, :12])).max_rank <= 12


def test_the_number_of_threads_does_not_change_a_bit():
    X, _ = low_rank(150, 120, 3, 0.3, missing=0.2)
    data = data_of(X, "float32")
    starts = []
    for n_threads in (1, 2, 4):
        with Workers(n_threads) as workers:
            starts.append(spectral_start(data, None, BOTH, workers, np.random.default_rng(0)))
    for other in starts[1:]:
        for got, expected in zip(other, starts[0], strict=True):
            np.testing.assert_array_equal(got, expected)


def test_a_transposed_table_has_the_transposed_start():
    """The longer side is worked by row, whichever it is."""
    X, _ = low_rank(150, 120, 3, 0.3, missing=0.2)
    tall, wide = (start_of(data_of(Y, "float32")) for Y in (X, X.T))
    np.testing.assert_array_equal(tall.U, wide.V)
    np.testing.assert_array_equal(tall.V, wide.U)
    np.testing.assert_array_equal(tall.s, wide.s)
    assert tall.noise_variance == wide.noise_variance


def test_nothing_is_stored_for_every_entry():
    """Beside the factors: less than a byte an entry, where a residual would take four."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((3000, 2)) @ rng.standard_normal((2, 1000))
    data = data_of(Z + 0.3 * rng.standard_normal(Z.shape), "float32")
    start_of(data_of(Z[:30, :20], "float32"), BOTH, max_rank=2)  # compiles
    tracemalloc.start()
    start = start_of(data, BOTH, max_rank=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert start.s.size == 2
    assert peak < data.n_entries


def test_ending_early_changes_nothing(monkeypatch):
    X, _ = low_rank(100, 80, 8, 2.0)
    data = data_of(X)
    early = start_of(data, BOTH)
    n_steps = []
    step = solver._step
    monkeypatch.setattr(solver, "_step", lambda *args: n_steps.append(1) or step(*args))
    start_of(data, BOTH)
    assert len(n_steps) < solver._STEPS
    monkeypatch.setattr(solver, "_CONVERGED", 0.0)
    late = start_of(data, BOTH)
    np.testing.assert_allclose(early.s, late.s, rtol=1e-5)
    np.testing.assert_allclose(
        (early.U * early.s) @ early.V.T, (late.U * late.s) @ late.V.T, atol=1e-3
    )
    assert early.noise_variance == pytest.approx(late.noise_variance, rel=1e-5)


# The level of detection


def test_level_by_hand():
    assert detection_level((16, 81), 16 * 81, 4.0) == pytest.approx(2 * 6)
    assert detection_level((16, 81), 4 * 81, 4.0) == pytest.approx(2 * 6 * 2)
    assert detection_level((5, 5), 25, 0.0) == 0.0


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_singular_vectors_appear_at_the_level(share):
    """The leading singular vector says something above the level, and nothing below."""
    m, n, noise = 600, 400, 0.5
    rng = np.random.default_rng(0)
    u, v = rng.standard_normal(m), rng.standard_normal(n)
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
    mask = rng.random((m, n)) < share
    level = detection_level((m, n), int(mask.sum()), noise**2)

    def agreement(times):
        X = np.where(
            mask, times * level * np.outer(u, v) + noise * rng.standard_normal((m, n)), 0.0
        )
        return (svds(X, 1, v0=np.ones(n))[0][:, 0] @ u) ** 2

    assert agreement(0.6) < 0.1
    assert agreement(2.0) > 0.5


# The start at random


@pytest.mark.parametrize("max_rank", [None, 3, 40])
def test_random_start(max_rank):
    X, _ = low_rank(50, 35, 2, 0.1, missing=0.5)
    start = start_of(data_of(X), BOTH, max_rank, random_start)
    r = max_rank or min(30, largest_rank(X.shape))
    assert start.max_rank == start.s.size == r
    for factors in (start.U, start.V):
        np.testing.assert_allclose(np.linalg.norm(factors, axis=0), 1.0)
    assert not start.row_effects.any()
    assert 0 < start.noise_variance < 1
