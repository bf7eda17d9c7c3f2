"""The joint draw of rows against its slow twin and the posterior of a row, with planted bugs."""

import numpy as np
import pytest
from scipy import stats

import fillrank.kernels.joint_rows as module
from fillrank.draws.streams import ROW_ENTRIES, ROWS, Address, chain_key
from fillrank.kernels.gaussian_rows import RowNoise
from fillrank.kernels.joint_rows import JointPrior, joint_rows
from fillrank.runtime.threads import Workers
from fillrank.samplers import model
from reference.joint_rows_twin import joint_rows_twin, row_posterior
from reference.p_values import ALARM, ks_uniform, limit_of
from reference.planted import plant, set_constants
from reference.small_tables import table_and_values

ADDRESS = Address(chain_key(5, 0), 3, ROWS)
# Of the draws, in units of their largest; float32 numbers are their own rounding apart.
TOLERANCE = {np.float64: 1e-11, np.float32: 2e-5}


def _prior(K, kind="plain"):
    rng = np.random.default_rng(K)
    mean = rng.standard_normal(K)
    if kind == "weak and strong":
        return JointPrior(mean, np.diag(np.logspace(-9, 9, K)))
    if kind == "weak":
        return JointPrior(mean, 1e-9 * np.eye(K))
    Q = np.linalg.qr(rng.standard_normal((K, K))).Q if K else np.empty((0, 0))
    scales = np.logspace(-5, 5, K) if kind == "turned" else np.linspace(0.5, 3.0, K)
    return JointPrior(mean, (Q * scales) @ Q.T)


class Problem:
    """A table with a full row of 300 entries, rows of about 4, 8 and 50, and an empty one."""

    def __init__(self, dtype, K, prior="plain", weights="varying", seed=0):
        rng = np.random.default_rng(seed)
        self.mask = rng.random((12, 300)) < np.repeat([4, 8, 50], 4)[:, None] / 300
        self.mask[5], self.mask[-1] = True, False
        self.X = rng.standard_normal(self.mask.shape).astype(dtype)
        self.entries = table_and_values(self.mask, self.X, dtype)[1].rows
        self.other = rng.standard_normal((300, K)).astype(dtype)
        self.own = rng.standard_normal((12, K)).astype(dtype)
        self.prior = _prior(K, prior)
        if weights == "varying":
            self.full_weights = rng.gamma(2.0, 1.0, self.mask.shape).astype(dtype)
            self.weights = self.full_weights[self.mask]
        else:
            self.full_weights = np.full(self.mask.shape, 1.7)
            self.weights = np.broadcast_to(1.7, self.entries.values.size)

    def draw(self, start=0, stop=12, kernel=joint_rows, address=ADDRESS):
        """(own, squares) after the kernel; squares are NaN where it wrote none."""
        own, squares = self.own.copy(), np.full(12, np.nan)
        kernel(
            self.entries, self.weights, own, self.other, self.prior, address, squares, start, stop
        )
        return own, squares

    def errors(self, kernel=joint_rows):
        """The largest differences from the twin: of own, row by row in its own size; of squares."""
        own, squares = self.draw(kernel=kernel)
        twin, twin_squares = joint_rows_twin(
            self.X.astype(float), self.mask, self.full_weights, self.other, self.prior, ADDRESS
        )
        size = np.abs(twin).max(axis=1, initial=1.0)
        # Squares of residuals after draws with an error of 1 in units of ``size``.
        square_size = [
            np.sum(self.full_weights[i, seen]) * size[i] ** 2 for i, seen in enumerate(self.mask)
        ]
        difference = np.abs(own - twin) / size[:, None]
        difference_of_squares = np.abs(squares - twin_squares) / np.maximum(square_size, 1.0)
        return max(difference.max(initial=0.0), difference_of_squares.max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("K", [0, 1, 2, 3, 6, 11])
@pytest.mark.parametrize("weights", ["constant", "varying"])
def test_agrees_with_the_twin(weights, K, dtype):
    """Constant weights are one float64 number with stride 0; varying ones have the factors' type."""
    assert Problem(dtype, K, weights=weights).errors() < TOLERANCE[dtype]


@pytest.mark.parametrize("prior", ["weak and strong", "turned", "weak"])
@pytest.mark.parametrize("K", [6, 11])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ill_conditioned_priors(dtype, K, prior):
    """Also with fewer entries than coefficients: P is then as ill-conditioned as the prior is weak.

    Rounding in float64, some 1e-16 of P's largest number, is 1e-6 of a precision of 1e-9; float32
    may stay float32 where P has lost two digits of seven.
    """
    assert Problem(dtype, K, prior).errors() < (1e-5 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_singular_to_rounding_is_finite(dtype):
    problem = Problem(dtype, 6, "weak")
    problem.weights *= 1e9
    own, squares = problem.draw()
    assert np.all(np.isfinite(own))
    assert np.all(np.isfinite(squares))


def test_nan_stays_in_its_row():
    problem = Problem(np.float32, 6)
    expected = problem.draw()[0]
    problem.entries.values[problem.entries.pointers[5]] = np.nan
    own = problem.draw()[0]
    assert np.all(np.isnan(own[5]))
    np.testing.assert_array_equal(np.delete(own, 5, 0), np.delete(expected, 5, 0))


def test_rows_outside_the_range_are_unchanged():
    problem = Problem(np.float64, 6)
    own, squares = problem.draw(4, 8)
    np.testing.assert_array_equal(own[:4], problem.own[:4])
    np.testing.assert_array_equal(own[8:], problem.own[8:])
    np.testing.assert_array_equal(np.isnan(squares), [True] * 4 + [False] * 4 + [True] * 4)


@pytest.mark.parametrize("prior", ["plain", "weak"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_partition_gives_the_same_bits(dtype, prior):
    """With the weak prior some rows of float32 are done twice and others are not."""
    problem = Problem(dtype, 11, prior)
    whole, squares = problem.draw()
    for start, stop in [(0, 5), (5, 6), (6, 12), (3, 9)]:
        part, part_squares = problem.draw(start, stop)
        np.testing.assert_array_equal(part[start:stop], whole[start:stop])
        np.testing.assert_array_equal(part_squares[start:stop], squares[start:stop])


def test_threads_give_the_same_bits():
    rng = np.random.default_rng(2)
    mask, X = rng.random((300, 80)) < 0.5, rng.standard_normal((300, 80))
    entries = table_and_values(mask, X, np.float32)[1].rows
    weights = np.broadcast_to(2.0, entries.values.size)
    other, prior = rng.standard_normal((80, 6)).astype(np.float32), _prior(6)
    results = []
    for n_threads in (1, 2, 4):
        own, squares = np.zeros((300, 6), np.float32), np.empty(300)

        def work(start, stop, own=own, squares=squares):
            joint_rows(entries, weights, own, other, prior, ADDRESS, squares, start, stop)

        with Workers(n_threads) as workers:
            workers.for_rows(work, entries.pointers)
        results.append((own, squares))
    for own, squares in results[1:]:
        np.testing.assert_array_equal(own, results[0][0])
        np.testing.assert_array_equal(squares, results[0][1])


def _white_draws(row, kernel=joint_rows, n=4000):
    """Draws of one row, made N(0, I) by the distribution that they should have: (draw - P^-1 h) L."""
    problem = Problem(np.float64, 3)
    seen = problem.mask[row]
    P, h = row_posterior(
        problem.X[row, seen], problem.full_weights[row, seen], problem.other[seen], problem.prior
    )
    draws = [
        problem.draw(row, row + 1, kernel, ADDRESS._replace(sweep=sweep))[0][row]
        for sweep in range(n)
    ]
    return (np.array(draws) - np.linalg.solve(P, h)) @ np.linalg.cholesky(P)


def _largest_score(white):
    """The largest |z| of the means and second moments of N(0, I) draws, as a share of its limit."""
    n, K = white.shape
    above, below = np.triu_indices(K, 1)
    moments = [
        white.mean(axis=0),
        np.mean(white[:, above] * white[:, below], axis=0),
        (np.mean(white**2, axis=0) - 1.0) / np.sqrt(2.0),
    ]
    z = np.sqrt(n) * np.abs(np.concatenate(moments))
    return z.max() / limit_of(z.size)


@pytest.mark.parametrize("row", [0, 11], ids=["few entries", "empty: the prior"])
def test_distribution_of_a_row(row):
    """False alarms: ALARM for the moments, and ALARM for the Kolmogorov-Smirnov test."""
    white = _white_draws(row)
    assert _largest_score(white) < 1.0
    assert ks_uniform(stats.norm.cdf(white)) > ALARM


def test_squares_of_float32_do_not_cancel():
    """They come from the residuals, not from differences of sums that are 1e12 times as large."""
    problem = Problem(np.float32, 6)
    truth = np.random.default_rng(1).standard_normal((12, 6)).astype(np.float32)
    problem.entries.values[:] = (truth.astype(float) @ problem.other.astype(float).T)[problem.mask]
    problem.weights = np.full_like(problem.weights, 1e10)
    own, squares = problem.draw(5, 6)
    assert np.abs(own[5] - truth[5]).max() < 1e-5
    # The values, of size 2, are rounded by 1e-7 and the noise is 1e-5: squares are well below 1
    # each.
    assert squares[5] < 300


# What the kernel's Python function calls is compiled already: only what is planted is compiled
# again.
_FORWARD = """    for k in range(c.size):
        for p in range(k):
            c[k] -= system[k, p] * c[p]
        c[k] *= system[k, k]"""
_BACKWARD = """    for k in range(c.size - 1, -1, -1):
        c[k] *= system[k, k]
        for p in range(k):
            c[p] -= system[k, p] * c[k]"""

BUGS = {
    "L^-1 for L^-T": ("_draw", _BACKWARD, _FORWARD, ()),
    "the same normal twice": ("_draw", "bits[k], stream, i, k", "bits[0], stream, i, 0", ()),
    "no weight": ("_gather", "math.sqrt(row.weights[t])", "1.0", ("_add_entries",)),
    "weight squared": (
        "_gather", "math.sqrt(row.weights[t])", "row.weights[t]", ("_add_entries",)
    ),
    "stale padding": ("_gather", "range(n, padded)", "range(n, n)", ("_add_entries",)),
    "h without the prior": (
        "_prior_system", "prior.precision[a, b] * prior.mean[b]", "0.0", ()
    ),
    "h with mu for Lam mu": (
        "_prior_system", "prior.precision[a, b] * prior.mean[b]", "(a == b) * prior.mean[b]", ()
    ),
    "the last chunk only": (
        "_add_entries", "range(0, row.indices.size, _CHUNK)",
        "range(max(row.indices.size - 1, 0) // _CHUNK * _CHUNK, row.indices.size, _CHUNK)", ()
    ),
    "column of L not finished": (
        "_finish_column", "for p in range(a, k):", "for p in range(a + 1, k):", ("_factorise",)
    ),
    "squares without weights": ("_square", "row.weights[t] *", "1.0 *", ()),
}  # fmt: skip
# These leave the distribution of a row wrong, not only the way that bits become draws.
WRONG_LAW = ["L^-1 for L^-T", "the same normal twice", "no weight", "h without the prior"]


def _plant(monkeypatch, bug):
    name, old, new, users = BUGS[bug]
    plant(monkeypatch, module, name, old, new, users=users)


def test_checks_pass_without_a_planted_bug():
    assert Problem(np.float64, 6).errors(joint_rows.py_func) < TOLERANCE[np.float64]


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_differ_from_the_reference(bug, monkeypatch):
    _plant(monkeypatch, bug)
    assert not Problem(np.float64, 6).errors(joint_rows.py_func) < 1e-3


@pytest.mark.parametrize("bug", WRONG_LAW)
def test_planted_bugs_change_the_distribution(bug, monkeypatch):
    _plant(monkeypatch, bug)
    assert not _largest_score(_white_draws(0, joint_rows.py_func, n=1000)) < 1.0


def test_coarse_sums_differ_from_the_reference(monkeypatch):
    """Without the second, finer pass."""
    set_constants(monkeypatch, module, {"_COARSE": 1e-12}, ())
    assert not Problem(np.float32, 11, "weak").errors(joint_rows.py_func) < 1e-2


# As a sampler calls it, with noise by row and column and weights of entries.


def _difference_with_unequal_noise():
    """The largest difference of coefficients and squares from the twin."""
    problem, rng = Problem(np.float64, 6), np.random.default_rng(8)
    m, n = problem.mask.shape
    variances, roots = rng.uniform(0.1, 2.0, m), np.sqrt(rng.gamma(2.0, 0.5, n))
    noise = RowNoise(variances, roots, np.inf, ROW_ENTRIES)
    entries = problem.entries._replace(weights=problem.weights)
    own = problem.own.copy()
    sums = model.draw_rows(entries, own, problem.other, problem.prior, noise, ADDRESS, Workers(1))
    weights = problem.full_weights * roots**2 / variances[:, np.newaxis]
    expected, squares = joint_rows_twin(
        problem.X, problem.mask, weights, problem.other, problem.prior, ADDRESS
    )
    return max(
        np.abs(own - expected).max(),
        np.abs(sums.squares - variances * squares).max() / len(squares),
    )


def test_unequal_noise_agrees_with_the_twin():
    assert _difference_with_unequal_noise() < 1e-10


CALL_BUGS = {
    "precisions of columns forgotten": ("noise.roots[entries.indices] ** 2", "1.0"),
    "roots as precisions": ("noise.roots[entries.indices] ** 2", "noise.roots[entries.indices]"),
    "weights of entries forgotten": ("weights *= entries.weights", "pass"),
    "variance for precision": ("1.0 / noise.variances", "noise.variances"),
    "squares in units of the noise": ("return noise.variances * squares", "return squares"),
}


@pytest.mark.parametrize("name", CALL_BUGS)
def test_a_planted_bug_in_unequal_noise_is_caught(monkeypatch, name):
    plant(monkeypatch, model, "_draw_jointly", *CALL_BUGS[name])
    assert _difference_with_unequal_noise() > 1e-3
