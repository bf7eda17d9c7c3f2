"""The half-sweep of a complete table: against its slow twin and the exact posterior of a row."""

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from fillrank.draws.streams import ROWS, Address, chain_key
from fillrank.kernels import dense_rows as kernel
from fillrank.kernels.dense_rows import Dense, RowPrior
from fillrank.kernels.joint_rows import JointPrior
from fillrank.runtime.threads import Workers
from reference.joint_rows_twin import joint_rows_twin
from reference.p_values import ALARM
from reference.planted import plant

ADDRESS = Address(chain_key(5, 0), 3, ROWS)
ONE = Workers(1)
WIDTH = 6
TOLERANCE = {np.float64: 1e-11, np.float32: 1e-4}
HELD = {"all free": [], "one held": [4], "all but one held": [0, 1, 2, 4, 5]}


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Blocks and tiles so small that a small table has several, the last of them not whole."""
    monkeypatch.setattr(kernel, "_FEWEST_ROWS", 2)
    monkeypatch.setattr(kernel, "_MOST_ROWS", 4)
    monkeypatch.setattr(kernel, "_TILE_COLUMNS", 5)


@pytest.fixture(params=[0.0, np.inf], ids=["by difference", "by residuals"])
def way(monkeypatch, request):
    """The way in which sums over the table are taken, wherever the noise is."""
    monkeypatch.setattr(kernel, "_FEW_LEFT", request.param)


def _dense(X):
    return Dense(X, np.sum(X.astype(float) ** 2, axis=1))


def _prior(held, seed=1):
    """A prior with a mean and a precision matrix of no particular form."""
    rng = np.random.default_rng(seed)
    free = np.delete(np.arange(WIDTH), held)
    root = rng.standard_normal((free.size, free.size))
    return RowPrior(free, rng.standard_normal(free.size), root @ root.T + 0.5 * np.eye(free.size))


def _problem(dtype=np.float64, seed=0, shape=(11, 9)):
    """(X, own, other)."""
    rng = np.random.default_rng(seed)
    arrays = (rng.standard_normal(each) for each in (shape, (shape[0], WIDTH), (shape[1], WIDTH)))
    return tuple(array.astype(dtype) for array in arrays)


def _twin(X, own, other, prior, noise_variance):
    """(own, sum of squares): what is held is taken off the table, and the rest drawn row by row."""
    held = np.delete(np.arange(WIDTH), prior.free)
    rest = X.astype(float) - own[:, held].astype(float) @ other[:, held].astype(float).T
    weights = np.full(X.shape, 1.0 / noise_variance)
    law = JointPrior(prior.mean, prior.precision)
    drawn, squares = joint_rows_twin(
        rest, np.ones(X.shape, dtype=bool), weights, other[:, prior.free], law, ADDRESS
    )
    expected = own.astype(float)
    expected[:, prior.free] = drawn
    return expected, noise_variance * squares.sum()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("noise_variance", [0.3, 20.0])
@pytest.mark.parametrize("held", HELD.values(), ids=HELD.keys())
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_agrees_with_the_twin(transposed, held, noise_variance, dtype):
    X, own, other = _problem(dtype)
    prior = _prior(held)
    expected, expected_square = _twin(X, own, other, prior, noise_variance)
    side = _dense(np.asfortranarray(X) if transposed else X)
    square = kernel.dense_rows(side, own, other, prior, noise_variance, ADDRESS, ONE)
    np.testing.assert_allclose(own, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    assert square == pytest.approx(expected_square, rel=10 * TOLERANCE[dtype])


@pytest.mark.usefixtures("way")
def test_what_the_free_coefficients_were_does_not_matter():
    X, own, other = _problem()
    prior = _prior([4])
    elsewhere = own.copy()
    elsewhere[:, prior.free] += 3.0
    squares = [
        kernel.dense_rows(_dense(X), c, other, prior, 0.3, ADDRESS, ONE) for c in (own, elsewhere)
    ]
    np.testing.assert_allclose(own, elsewhere, rtol=1e-10, atol=1e-10)
    assert squares[0] == pytest.approx(squares[1], rel=1e-10)


def test_an_overrelaxed_draw_is_beyond_the_mean():
    """mu + a (c - mu) + sqrt(1 - a^2) (fresh - mu), where fresh is the draw with the same normals."""
    X, own, other = _problem()
    prior, noise, a = _prior([4]), 0.3, -0.6
    F, held = other[:, prior.free], own[:, [4]] @ other[:, [4]].T
    P = F.T @ F / noise + prior.precision
    mean = np.linalg.solve(P, ((X - held) @ F / noise + prior.precision @ prior.mean).T).T
    fresh, relaxed = own.copy(), own.copy()
    kernel.dense_rows(_dense(X), fresh, other, prior, noise, ADDRESS, ONE)
    relaxed_prior = prior._replace(relaxation=a)
    square = kernel.dense_rows(_dense(X), relaxed, other, relaxed_prior, noise, ADDRESS, ONE)
    expected = own.copy()
    beyond = mean + a * (own[:, prior.free] - mean)
    expected[:, prior.free] = beyond + np.sqrt(1 - a**2) * (fresh[:, prior.free] - mean)
    np.testing.assert_allclose(relaxed, expected, rtol=1e-10, atol=1e-10)
    assert square == pytest.approx(np.sum((X - expected @ other.T) ** 2), rel=1e-10)


FEW = {"near": 1e-5, "far off": 1.0}


def _square_and_truth(distance):
    """(reported, true) sum of squares at noise of 1e-10 of the variance, in single precision."""
    rng = np.random.default_rng(3)
    other = rng.standard_normal((300, WIDTH)).astype(np.float32)
    truth = rng.standard_normal((40, WIDTH)).astype(np.float32)
    signal = truth.astype(float) @ other.astype(float).T
    X = (signal + 1e-5 * rng.standard_normal(signal.shape)).astype(np.float32)
    own = truth + np.float32(distance) * rng.standard_normal(truth.shape).astype(np.float32)
    square = kernel.dense_rows(_dense(X), own, other, _prior([]), 1e-10, ADDRESS, ONE)
    return square, np.sum((X - own.astype(float) @ other.astype(float).T) ** 2)


@pytest.mark.parametrize("distance", FEW.values(), ids=FEW.keys())
def test_squares_are_accurate_if_the_noise_is_small(distance):
    """To 5%: a residual of 1e-5 is left by the difference of numbers near 2, with 24 bits."""
    square, truth = _square_and_truth(distance)
    assert square == pytest.approx(truth, rel=0.05)


def test_a_difference_without_digits_is_caught(monkeypatch):
    monkeypatch.setattr(kernel, "_FEW_LEFT", -np.inf)
    square, truth = _square_and_truth(FEW["far off"])
    assert abs(square - truth) > truth


def test_factors_that_are_the_same_to_the_last_digit():
    """With a prior that says next to nothing, Q is singular but for rounding."""
    X, own, other = _problem()
    other[:, 1] = other[:, 0]
    prior = RowPrior(np.arange(WIDTH), np.zeros(WIDTH), 1e-25 * np.eye(WIDTH))
    square = kernel.dense_rows(_dense(X), own, other, prior, 1e-10, ADDRESS, ONE)
    assert np.all(np.isfinite(own))
    fit = other @ np.linalg.lstsq(other, X.T, rcond=None)[0]
    assert square == pytest.approx(np.sum((X.T - fit) ** 2), rel=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_do_not_change_a_bit(monkeypatch, dtype):
    monkeypatch.undo()  # tiles of full size
    rng = np.random.default_rng(6)
    X, own, other = _problem(dtype, shape=(700, 1100))
    other += rng.standard_normal(WIDTH).astype(dtype)
    outcomes = []
    with threadpool_limits(1):
        for n_threads in (1, 2, 4):
            with Workers(n_threads) as workers:
                for side, mine, its in ((X, own, other), (X.T, other, own)):
                    drawn = mine.copy()
                    square = kernel.dense_rows(
                        _dense(side), drawn, its, _prior([2]), 0.3, ADDRESS, workers
                    )
                    outcomes.append((drawn, square))
    for side in (0, 1):
        first, *others = outcomes[side::2]
        for drawn, square in others:
            np.testing.assert_array_equal(drawn, first[0])
            assert square == first[1]


def _moment_scores(n=3000):
    """|z| of the means and second moments of whitened draws of all rows, over n half-sweeps.

    The distribution of a row is worked out from x, prior and noise alone. Rows must be independent
    too: the products of any two are among the moments.
    """
    X, own, other = _problem(shape=(5, 7))
    prior, noise = _prior([4]), 0.4
    F, held = other[:, prior.free], own[:, [4]] @ other[:, [4]].T
    P = F.T @ F / noise + prior.precision
    h = (X - held) @ F / noise + prior.precision @ prior.mean
    mean, root = np.linalg.solve(P, h.T).T, np.linalg.cholesky(P)
    drawn = np.empty((n, 5, prior.free.size))
    for t in range(n):
        kernel.dense_rows(_dense(X), own, other, prior, noise, ADDRESS._replace(sweep=t), ONE)
        drawn[t] = own[:, prior.free]
    white = (drawn - mean) @ root
    moments = np.einsum("tia,tib->tiab", white, white)
    one, other_one = np.triu_indices(5, 1)
    pairs = white[:, one] * white[:, other_one]
    scale = np.sqrt(1.0 + np.eye(prior.free.size))  # of a product, and of a square
    scores = [white.mean(axis=0), (moments.mean(axis=0) - np.eye(prior.free.size)) / scale]
    return np.abs(np.concatenate([np.ravel(s) for s in (*scores, pairs.mean(axis=0))])) * np.sqrt(n)


@pytest.mark.usefixtures("way")
def test_draws_have_the_exact_mean_and_covariance():
    scores = _moment_scores()
    assert scores.max() < stats.norm.isf(ALARM / (2 * scores.size))


BUGS = {
    "a row of factors not in the Gram matrix": (
        "_conditional", "np.ones(n)", "np.arange(n).clip(0, 1.0)"
    ),
    "the Gram matrix of the first factors": (
        "_conditional", "G[prior.free][:, prior.free]", "G[: prior.free.size, : prior.free.size]"
    ),
    "prior without the noise": ("_conditional", "noise_variance * prior.precision",
    "prior.precision"), "variance as standard deviation": (
        "_conditional", "math.sqrt((1.0 - a * a) * noise_variance)", "noise_variance"
    ),
    "prior mean missing": ("_draw", "given.mean[p] - own", "-own"),
    "prior forgets where the row was": (
        "_draw", "given.mean[p] - own[i, given.free[p]]", "given.mean[p]"
    ),
    "held coefficient forgotten": (
        "_take_off_fit", "c = own.astype(np.float64)", "c = own * (np.arange(6.0) != 4.0)"
    ),
    "last tile alone": ("_sums_by_difference", "products += x", "products = x"),
    "last tile of residuals alone": ("_sums_of_residuals", "products += e", "products = e"),
    "held coefficient left in the residuals": (
        "_sums_of_residuals", "own = half.own[rows]", "own = half.own[rows] * (np.arange(6) != 4)"
    ),
    "root not transposed": ("_conditional", "lower=1)[0]", "lower=1)[0].T"),
    "rows of a block with the same normals": (
        "_draw", "_normals(address, start, h.shape)",
        "_normals(address, start, (1, n_free)) * np.ones(h.shape)",
    ),
    "blocks with the same normals": ("_draw_block", "rows.start", "0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    plant(monkeypatch, kernel, *BUGS[name])
    monkeypatch.setattr(kernel, "_FEW_LEFT", np.inf if "residuals" in name else 0.0)
    assert _moment_scores(300).max() > 6.0
