"""Rows with prior means of their own, in all three half-sweeps, against the exact posterior of a row.

The false-alarm rate of a check is ALARM (``reference.p_values``); planted bugs must be clear: |z| > 6.
"""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fillrank.draws.streams import ROW_ENTRIES, ROWS, Address, chain_key
from fillrank.kernels import dense_rows, gaussian_rows, joint_rows
from fillrank.kernels.gaussian_rows import Prior, RowNoise
from fillrank.kernels.joint_rows import JointPrior
from fillrank.runtime.threads import Workers
from fillrank.samplers import model
from reference.p_values import limit_of
from reference.planted import plant
from reference.small_tables import FullTable, Table

KEY = chain_key(5, 0)
SHAPE, WIDTH = (9, 6), 5
FREE = np.array([0, 3, 1, 4])  # coefficient 2 is held
KINDS = ["one by one", "jointly", "by products", "jointly, by products"]
KIND = pytest.mark.parametrize("kind", KINDS)
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Blocks and tiles of a complete table so small that it has several."""
    monkeypatch.setattr(dense_rows, "_FEWEST_ROWS", 2)
    monkeypatch.setattr(dense_rows, "_MOST_ROWS", 4)
    monkeypatch.setattr(dense_rows, "_TILE_COLUMNS", 5)
    with threadpool_limits(1):
        yield


class Problem:
    """A table, factors, a prior and noise; ``rest`` takes off what a coefficient that is held fits."""

    def __init__(self, kind, shape=SHAPE, dtype=np.float64, is_shifted=True):
        rng = np.random.default_rng(3)
        mask = np.ones(shape, dtype=bool) if "products" in kind else rng.random(shape) < 0.6
        mask[2] = "products" in kind  # a row without entries
        table = FullTable(shape, dtype) if "products" in kind else Table(mask, dtype)
        self.mask, self.X = mask, rng.standard_normal(shape).astype(dtype)
        self.rows = table.data(self.X[table.i, table.j]).rows
        self.own = rng.standard_normal((shape[0], WIDTH)).astype(dtype)
        self.other = rng.standard_normal((shape[1], WIDTH)).astype(dtype)
        variances, roots = rng.uniform(0.2, 2.0, shape[0]), np.sqrt(rng.gamma(2.0, 0.5, shape[1]))
        self.noise = RowNoise(variances, roots, np.inf, ROW_ENTRIES)
        shifts = 2.0 * rng.standard_normal((shape[0], WIDTH)).astype(dtype)
        self.shifts = shifts if is_shifted else np.zeros((0, 0), dtype)
        self.free = np.arange(WIDTH) if "jointly" in kind else FREE
        mean, n_free = rng.standard_normal(self.free.size), self.free.size
        root = rng.standard_normal((n_free, n_free))
        precision = rng.uniform(0.5, 3.0, n_free)
        self.precision = np.diag(precision)
        self.prior = Prior(self.free, mean, precision, shifts=self.shifts)
        if "jointly" in kind:
            self.precision = root @ root.T + 0.5 * np.eye(n_free)
            self.prior = JointPrior(mean, self.precision, self.shifts)
        self.mean = mean + (self.shifts[:, self.free] if is_shifted else np.zeros((shape[0], 1)))

    def draw(self, sweep=0, workers=None):
        """(own, squares) after a draw from the coefficients as they are."""
        own, address = self.own.copy(), Address(KEY, sweep, ROWS)
        sums = model.draw_rows(
            self.rows, own, self.other, self.prior, self.noise, address, workers or Workers(1)
        )
        return own, sums.squares

    def posteriors(self):
        """(P, h) of each row: precision and precision times mean of its free coefficients."""
        held = np.delete(np.arange(WIDTH), self.free)
        rest = self.X - self.own[:, held] @ self.other[:, held].T
        for i, seen in enumerate(self.mask):
            F = self.other[seen][:, self.free]
            q = self.noise.roots[seen] ** 2 / self.noise.variances[i]
            P = F.T @ (q[:, None] * F) + self.precision
            yield P, F.T @ (q * rest[i, seen]) + self.precision @ self.mean[i]


def _white_of_row(c, old, P, h, is_joint):
    """Standard normals of a draw c; one by one, each by its full conditional."""
    if is_joint:
        return (c - np.linalg.solve(P, h)) @ np.linalg.cholesky(P)
    current, white = old.copy(), np.empty(c.size)
    for p in range(c.size):
        mean = (h[p] - P[p] @ current + P[p, p] * current[p]) / P[p, p]
        white[p] = (c[p] - mean) * np.sqrt(P[p, p])
        current[p] = c[p]
    return white


def _scores(kind, n):
    """|z| of the means and second moments of whitened draws of all rows."""
    problem = Problem(kind)
    posteriors, free = [*problem.posteriors()], problem.free
    is_joint = kind != "one by one"
    white = np.empty((n, SHAPE[0], free.size))
    for t in range(n):
        own, squares = problem.draw(t)
        for i, (P, h) in enumerate(posteriors):
            white[t, i] = _white_of_row(own[i, free], problem.own[i, free], P, h, is_joint)
    e = np.where(problem.mask, problem.X - own @ problem.other.T, 0.0)
    np.testing.assert_allclose(squares, e**2 @ problem.noise.roots**2, rtol=1e-9, atol=1e-9)
    moments = np.einsum("tia,tib->tiab", white, white).mean(axis=0) - np.eye(free.size)
    scale = np.sqrt(1.0 + np.eye(free.size))  # of a product, and of a square
    scores = np.concatenate([white.mean(axis=0).ravel(), (moments / scale).ravel()])
    return np.abs(scores) * np.sqrt(n)


@KIND
def test_draws_have_the_exact_mean_and_covariance(kind):
    scores = _scores(kind, 2000)
    assert scores.max() < limit_of(scores.size)


@KIND
@DTYPES
def test_a_shift_is_a_shift_of_coefficients_and_values(kind, dtype):
    """With the same random numbers: c - s under x - F s has the prior without shifts."""
    problem, plain = Problem(kind, dtype=dtype), Problem(kind, dtype=dtype, is_shifted=False)
    shifts = np.zeros_like(problem.shifts)
    shifts[:, problem.free] = problem.shifts[:, problem.free]
    X = plain.X - shifts @ plain.other.T
    if "products" in kind:
        plain.rows = plain.rows._replace(values=X, squares=np.sum(X.astype(float) ** 2, axis=1))
    else:
        plain.rows = plain.rows._replace(values=X[plain.mask])
    plain.own = plain.own - shifts
    own, squares = problem.draw()
    same, same_squares = plain.draw()
    tolerance = 1e-10 if dtype == np.float64 else 2e-4
    np.testing.assert_allclose(own, same + shifts, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(squares, same_squares, rtol=50 * tolerance, atol=tolerance)


def test_joint_draws_in_float32_that_are_repeated_in_float64_have_the_shifts():
    """With a prior that says next to nothing, P of a row with few entries is close to singular."""
    draws = []
    for dtype in (np.float64, np.float32):
        problem = Problem("jointly", dtype=dtype)
        problem.prior = JointPrior(problem.prior.mean, 1e-4 * np.eye(WIDTH), problem.shifts)
        draws.append(problem.draw()[0])
    size = np.abs(draws[0]).max(axis=1, keepdims=True)
    np.testing.assert_allclose(draws[1] / size, draws[0] / size, atol=1e-3)


@KIND
@DTYPES
def test_same_bits_on_any_number_of_threads(monkeypatch, kind, dtype):
    monkeypatch.undo()  # tiles of full size
    outcomes = []
    with threadpool_limits(1):
        for n_threads in (1, 2, 4):
            with Workers(n_threads) as workers:
                outcomes.append(Problem(kind, (300, 80), dtype).draw(0, workers))
    for own, squares in outcomes[1:]:
        np.testing.assert_array_equal(own, outcomes[0][0])
        np.testing.assert_array_equal(squares, outcomes[0][1])


# name: (kind, module, function, old, new, users)
BUGS = {
    "shifts of the first row": (
        "one by one", gaussian_rows, "_prior_mean", "prior.shifts[i,", "prior.shifts[0,", ("_draw",)
    ),
    "shifts by the number among free ones": (
        "one by one", gaussian_rows, "_prior_mean", "prior.free[p]]", "p]", ("_draw",)
    ),
    "shifts forgotten": (
        "one by one", gaussian_rows, "_prior_mean", " + prior.shifts[i, prior.free[p]]", "", ("_draw",)
    ),
    "shifts of the first row, jointly": (
        "jointly", joint_rows, "_start_row", "prior.shifts[i,", "prior.shifts[0,", ()
    ),
    "shifts without the precision, jointly": (
        "jointly", joint_rows, "_start_row", "prior.precision[a, b] * prior", "(a == b) * prior", ()
    ),
    "shifts of the first block, by products": (
        "by products", dense_rows, "_draw", "prior.shifts[start + i,", "prior.shifts[i,", ()
    ),
    "shifts by the number among free ones, by products": (
        "by products", dense_rows, "_draw", "shifts[start + i, free[p]]", "shifts[start + i, p]", ()
    ),
    "shifts not passed on, by products": (
        "by products", model, "_row_prior", "prior.relaxation, prior.shifts", "prior.relaxation", ()
    ),
    "shifts not passed on, jointly, by products": (
        "jointly, by products", model, "_row_prior", ", shifts=prior.shifts", "", ()
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    """What the kernels' Python functions call is compiled: only what is planted is compiled again."""
    kind, *bug = BUGS[name]
    plant(monkeypatch, *bug)
    monkeypatch.setattr(model, "gaussian_rows", gaussian_rows.gaussian_rows.py_func)
    monkeypatch.setattr(model, "joint_rows", joint_rows.joint_rows.py_func)
    assert _scores(kind, 100).max() > 6.0
