"""The half-sweep of a complete table: against its slow twin and the exact posterior of a row."""

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

from fillrank.draws.streams import ROW_ENTRIES, ROWS, Address, chain_key
from fillrank.kernels import dense_rows as kernel
from fillrank.kernels.dense_rows import Dense, RowPrior
from fillrank.kernels.gaussian_rows import RowNoise
from fillrank.runtime.threads import Workers
from reference.p_values import ALARM
from reference.planted import plant
from reference.row_twins import normals_of_row

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


def _equal(variance, n):
    """One noise variance for all."""
    return RowNoise(np.full(n, variance), np.zeros(0), np.inf, ROW_ENTRIES)


def _unequal(shape, seed=9):
    """A variance for each row and a precision for each column."""
    rng = np.random.default_rng(seed)
    variances, roots = rng.uniform(0.1, 2.0, shape[0]), np.sqrt(rng.gamma(2.0, 0.5, shape[1]))
    return RowNoise(variances, roots, np.inf, ROW_ENTRIES)


def _precisions(noise, shape):
    """b_j / s2_i of all cells."""
    b = noise.roots**2 if noise.roots.size else np.ones(shape[1])
    return b / noise.variances[:, np.newaxis]


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


def _moments(X, own, other, prior, noise):
    """(means, precisions) of the free coefficients of each row, by the formulas of linear models."""
    X, own, other = (each.astype(float) for each in (X, own, other))
    held = np.delete(np.arange(WIDTH), prior.free)
    rest, F = X - own[:, held] @ other[:, held].T, other[:, prior.free]
    means, precisions = [], []
    for x, q in zip(rest, _precisions(noise, X.shape), strict=True):
        P = F.T @ np.diag(q) @ F + prior.precision
        means.append(np.linalg.solve(P, F.T @ (q * x) + prior.precision @ prior.mean))
        precisions.append(P)
    return np.array(means), np.array(precisions)


def _twin(X, own, other, prior, noise, drawn):
    """(own, squares): the normals of a row, in the basis in which Lam is I and F^T B F is diagonal.

    The signs of the basis are any; they are those that fit the rows of ``drawn`` best, one for each
    component.
    """
    means, _ = _moments(X, own, other, prior, noise)
    F, b = other[:, prior.free].astype(float), noise.variances[0] * _precisions(noise, X.shape)[0]
    eigenvalues, W = eigh(F.T @ (b[:, np.newaxis] * F), prior.precision)
    s2 = noise.variances[:, np.newaxis]
    z = np.array([normals_of_row(ADDRESS, i, prior.free.size) for i in range(len(X))])
    chance = np.sqrt(s2 / (np.maximum(eigenvalues, 0.0) + s2)) * z
    there = np.linalg.solve(W, (drawn[:, prior.free].astype(float) - means).T).T
    expected = own.astype(float)
    expected[:, prior.free] = means + (chance * np.sign(np.sum(there * chance, axis=0))) @ W.T
    e = X.astype(float) - expected @ other.astype(float).T
    return expected, np.sum(b * e**2, axis=1)


NOISES = {
    "small": lambda shape: _equal(0.3, shape[0]),
    "large": lambda shape: _equal(20.0, shape[0]),
    "unequal": _unequal,
    "by row": lambda shape: _unequal(shape)._replace(roots=np.zeros(0)),
}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES.keys())
@pytest.mark.parametrize("held", HELD.values(), ids=HELD.keys())
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_agrees_with_the_twin(transposed, held, noise, dtype):
    X, own, other = _problem(dtype)
    prior, noise, before = _prior(held), noise(X.shape), own.copy()
    side = _dense(np.asfortranarray(X) if transposed else X)
    squares = kernel.dense_rows(side, own, other, prior, noise, ADDRESS, ONE)
    expected, expected_squares = _twin(X, before, other, prior, noise, own)
    np.testing.assert_allclose(own, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    np.testing.assert_allclose(squares, expected_squares, rtol=10 * TOLERANCE[dtype])


@pytest.mark.usefixtures("way")
def test_what_the_free_coefficients_were_does_not_matter():
    X, own, other = _problem()
    prior = _prior([4])
    elsewhere = own.copy()
    elsewhere[:, prior.free] += 3.0
    squares = [
        kernel.dense_rows(_dense(X), c, other, prior, _unequal(X.shape), ADDRESS, ONE)
        for c in (own, elsewhere)
    ]
    np.testing.assert_allclose(own, elsewhere, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(squares[0], squares[1], rtol=1e-10)


def test_an_overrelaxed_draw_is_beyond_the_mean():
    """mu + a (c - mu) + sqrt(1 - a^2) (fresh - mu), where fresh is the draw with the same normals."""
    X, own, other = _problem()
    prior, noise, a = _prior([4]), _unequal(X.shape), -0.6
    mean, _ = _moments(X, own, other, prior, noise)
    fresh, relaxed = own.copy(), own.copy()
    kernel.dense_rows(_dense(X), fresh, other, prior, noise, ADDRESS, ONE)
    relaxed_prior = prior._replace(relaxation=a)
    squares = kernel.dense_rows(_dense(X), relaxed, other, relaxed_prior, noise, ADDRESS, ONE)
    expected = own.copy()
    beyond = mean + a * (own[:, prior.free] - mean)
    expected[:, prior.free] = beyond + np.sqrt(1 - a**2) * (fresh[:, prior.free] - mean)
    np.testing.assert_allclose(relaxed, expected, rtol=1e-10, atol=1e-10)
    e = X - expected @ other.T
    np.testing.assert_allclose(squares, e**2 @ noise.roots**2, rtol=1e-10)


FEW = {"near": 1e-5, "far off": 1.0}


def _square_and_truth(distance):
    """(reported, true) sum of squares at noise of 1e-10 of the variance, in single precision."""
    rng = np.random.default_rng(3)
    other = rng.standard_normal((300, WIDTH)).astype(np.float32)
    truth = rng.standard_normal((40, WIDTH)).astype(np.float32)
    signal = truth.astype(float) @ other.astype(float).T
    X = (signal + 1e-5 * rng.standard_normal(signal.shape)).astype(np.float32)
    own = truth + np.float32(distance) * rng.standard_normal(truth.shape).astype(np.float32)
    noise = _equal(1e-10, 40)
    square = kernel.dense_rows(_dense(X), own, other, _prior([]), noise, ADDRESS, ONE).sum()
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
    noise = _equal(1e-10, len(X))
    square = kernel.dense_rows(_dense(X), own, other, prior, noise, ADDRESS, ONE).sum()
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
                    squares = kernel.dense_rows(
                        _dense(side),
                        drawn,
                        its,
                        _prior([2]),
                        _unequal(side.shape),
                        ADDRESS,
                        workers,
                    )
                    outcomes.append((drawn, squares))
    for side in (0, 1):
        first, *others = outcomes[side::2]
        for drawn, squares in others:
            np.testing.assert_array_equal(drawn, first[0])
            np.testing.assert_array_equal(squares, first[1])


def _moment_scores(n=3000):
    """|z| of the means and second moments of whitened draws of all rows, over n half-sweeps.

    The distribution of a row is worked out from x, prior and noise alone. Rows must be independent
    too: the products of any two are among the moments.
    """
    X, own, other = _problem(shape=(5, 7))
    prior, noise = _prior([4]), _unequal(X.shape)
    mean, P = _moments(X, own, other, prior, noise)
    drawn = np.empty((n, 5, prior.free.size))
    for t in range(n):
        kernel.dense_rows(_dense(X), own, other, prior, noise, ADDRESS._replace(sweep=t), ONE)
        drawn[t] = own[:, prior.free]
    white = np.einsum("tia,iab->tib", drawn - mean, np.linalg.cholesky(P))
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
    "a column not in the Gram matrix": (
        "_conditional", "weights = roots**2", "weights = roots**2 * (np.arange(n) > 0)"
    ),
    "the Gram matrix of the first factors": (
        "_conditional", "G[prior.free][:, prior.free]", "G[: prior.free.size, : prior.free.size]"
    ),
    "roots as precisions": ("_conditional", "weights = roots**2", "weights = roots"),
    "factors without precisions": ("_conditional", "other * weights[:, np.newaxis] if", "other if"),
    "prior without the noise": ("_draw", "variances[i] * h[i, p]", "h[i, p]"),
    "the noise of the first row": (
        "_draw", "given.eigenvalues[p] + variances[i]", "given.eigenvalues[p] + variances[0]"
    ),
    "variance as standard deviation": (
        "_draw", "math.sqrt((1.0 - a * a) * variances[i] * share)", "variances[i] * math.sqrt(share)"
    ),
    "prior mean missing": ("_draw", "given.prior.mean[p] - own", "-own"),
    "prior forgets where the row was": (
        "_draw", "given.prior.mean[p] - own[i, free[p]]", "given.prior.mean[p]"
    ),
    "held coefficient forgotten": (
        "_take_off_fit", "c = own.astype(np.float64)", "c = own * (np.arange(6.0) != 4.0)"
    ),
    "last tile alone": ("_sums_by_difference", "products += x", "products = x"),
    "last tile of residuals alone": ("_sums_of_residuals", "products += e", "products = e"),
    "held coefficient left in the residuals": (
        "_sums_of_residuals", "own, given = half.own[rows]",
        "own, given = half.own[rows] * (np.arange(6) != 4)",
    ),
    "root not transposed": ("_conditional", "lower=1)[0]", "lower=1)[0].T"),
    "basis not transposed": ("_draw", "np.dot(g, given.W.T)", "np.dot(g, given.W)"),
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


SQUARES_BUGS = {
    "squares of the values without precisions": (
        "_sums_by_difference", "squares += _squares(x, given.weights[columns])",
        "squares += _squares(x, given.weights[:0])",
    ),
    "squares of the residuals without precisions": (
        "_sums_of_residuals", "_squares(e, given.weights[columns])", "_squares(e, given.weights[:0])"
    ),
    "square of the step missing": ("_draw", "(fitted[i, k] - 2.0", "(-2.0"),
}  # fmt: skip


@pytest.mark.parametrize("name", SQUARES_BUGS)
def test_wrong_squares_are_caught(monkeypatch, name):
    plant(monkeypatch, kernel, *SQUARES_BUGS[name])
    monkeypatch.setattr(kernel, "_FEW_LEFT", np.inf if "residuals" in name else -np.inf)
    X, own, other = _problem()
    prior, noise, before = _prior([4]), _unequal(X.shape), own.copy()
    squares = kernel.dense_rows(_dense(X), own, other, prior, noise, ADDRESS, ONE)
    _, expected = _twin(X, before, other, prior, noise, own)
    assert np.abs(squares / expected - 1.0).max() > 0.01
