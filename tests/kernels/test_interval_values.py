"""Values of which only an interval is known: their draws against slow twins, and their likelihood."""

import numpy as np
import pytest
from numba import njit
from scipy import special

import fillrank.kernels.gaussian_rows as rows_module
import fillrank.kernels.interval_values as values_module
from fillrank.draws.streams import ROW_ENTRIES, ROWS, Address, chain_key
from fillrank.kernels.gaussian_rows import Prior, RowNoise, RowSums, align_rows, gaussian_rows
from fillrank.kernels.interval_values import (
    draw_values,
    entry_signals,
    log_likelihoods,
    log_probability,
    sort_by_interval,
)
from fillrank.kernels.joint_rows import JointPrior
from fillrank.runtime import threads
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import draw_one_by_one, draw_rows
from fillrank.table.entries import compress, rows_of
from reference.joint_rows_twin import joint_rows_twin
from reference.planted import plant
from reference.row_twins import gaussian_rows_twin, interval_values_twin
from reference.small_tables import table_and_values

ADDRESS = Address(chain_key(8, 0), 5, ROWS)
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-4}
FAR = 1e6
# One-sided, two-sided and narrow intervals, and one that is far from any signal here.
LIMITS = np.array([[-FAR, -0.4, 0.3, 1.2, -1.0, 12.0], [-0.4, 0.3, 1.2, FAR, -0.9, FAR]])
WIDTH = 5
PRIOR = Prior(np.array([0, 1, 2, 4]), np.array([0.3, -0.2, 0.0, 1.0]), np.array([2.0, 1, 5, 0.5]))


class _Problem:
    """Rows of 0 to 26 entries, of which about two thirds are in intervals."""

    def __init__(self, dtype=np.float64, weighted=True, unequal=True, seed=3):
        rng = np.random.default_rng(seed)
        self.mask = np.tri(27, 26, -1, dtype=bool)
        self.X = rng.standard_normal(self.mask.shape).astype(dtype)
        self.cells = rng.integers(-3, LIMITS.shape[1], self.mask.shape).clip(-1).astype(np.int32)
        self.weights = rng.uniform(0.2, 4.0, self.mask.shape).astype(dtype) if weighted else None
        variances = rng.uniform(0.05, 3.0, len(self.mask))
        roots = np.sqrt(rng.gamma(2.0, 0.5, self.mask.shape[1]))
        self.noise = RowNoise(
            variances, roots if unequal else np.zeros(0), np.inf, ROW_ENTRIES, LIMITS
        )
        self.own, self.other = (
            rng.standard_normal((n, WIDTH)).astype(dtype) for n in self.mask.shape
        )
        entries = table_and_values(self.mask, self.X, dtype)[1].rows
        # What the values of entries in intervals are must not matter.
        cells = self.cells[self.mask]
        self.entries = entries._replace(
            cells=cells, values=np.where(cells < 0, entries.values, dtype(1e3))
        )
        if weighted:
            self.entries = self.entries._replace(weights=self.weights[self.mask])

    def expected_values(self, address=ADDRESS):
        """The matrix with drawn values, by the twin."""
        return interval_values_twin(
            self.X, self.mask, self.cells, self.own, self.other, self.noise, address, self.weights
        )

    def expected_rows(self):
        """(coefficients, squares), by the twins."""
        values = self.expected_values()
        return gaussian_rows_twin(
            values, self.mask, self.own, self.other, PRIOR, self.noise, ADDRESS, self.weights
        )[:2]

    def rows(self, draw=gaussian_rows, start=0, stop=None):
        """(coefficients, squares), by the kernel."""
        own = self.own.copy()
        sums = RowSums(*(np.full(len(own), np.nan) for _ in range(3)))
        aligned = align_rows(self.other, self.noise.roots)
        stop = len(own) if stop is None else stop
        draw(self.entries, own, aligned, PRIOR, self.noise, ADDRESS, sums, start, stop)
        return own, sums.squares

    def values(self, draw=draw_values, address=ADDRESS):
        """The drawn values of the entries."""
        out = np.empty(self.entries.n_entries, self.entries.dtype)
        draw(self.entries, self.own, self.other, self.noise, address, out, 0, len(self.own))
        return out


def _difference(found, expected):
    """The largest difference, in units of the largest number."""
    return max(
        np.abs(part - right).max() / max(1.0, np.abs(right).max())
        for part, right in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unequal", [False, True])
def test_rows_agree_with_the_twin(dtype, weighted, unequal):
    problem = _Problem(dtype, weighted, unequal)
    assert _difference(problem.rows(), problem.expected_rows()) < 10 * TOLERANCE[dtype]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unequal", [False, True])
def test_values_agree_with_the_twin(weighted, unequal):
    problem = _Problem(np.float64, weighted, unequal)
    found, expected = problem.values(), problem.expected_values()[problem.mask]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    cells = problem.entries.cells
    np.testing.assert_array_equal(found[cells < 0], problem.X[problem.mask][cells < 0])
    low, high = LIMITS[:, cells[cells >= 0]]
    assert (found[cells >= 0] >= low - 1e-9).all()
    assert (found[cells >= 0] <= high + 1e-9).all()


def test_joint_rows_agree_with_the_twins():
    """Joint half-sweeps draw the values first, with the same bits."""
    problem = _Problem()
    rng = np.random.default_rng(1)
    root = rng.standard_normal((WIDTH, WIDTH))
    prior = JointPrior(rng.standard_normal(WIDTH), root @ root.T + np.eye(WIDTH))
    noise, own = problem.noise, problem.own.copy()
    with Workers(2) as workers:
        sums = draw_rows(problem.entries, own, problem.other, prior, noise, ADDRESS, workers)
    weights = problem.weights * noise.roots**2 / noise.variances[:, np.newaxis]
    expected, squares = joint_rows_twin(
        problem.expected_values(), problem.mask, weights, problem.other, prior, ADDRESS
    )
    np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sums.squares, noise.variances * squares, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_range_of_rows_has_the_same_bits(dtype):
    problem = _Problem(dtype)
    whole, squares = problem.rows()
    for start, stop in [(0, 1), (4, 19), (19, 27)]:
        part, part_squares = problem.rows(start=start, stop=stop)
        np.testing.assert_array_equal(part[start:stop], whole[start:stop])
        np.testing.assert_array_equal(part_squares[start:stop], squares[start:stop])
        np.testing.assert_array_equal(np.delete(part, np.s_[start:stop], 0), np.delete(
            problem.own, np.s_[start:stop], 0
        ))  # fmt: skip


@pytest.mark.parametrize("n_threads", [2, 4])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, n_threads):
    monkeypatch.setattr(threads, "_SMALLEST_SHARE", 0)
    problem, results = _Problem(), []
    for n in (1, n_threads):
        own = problem.own.copy()
        with Workers(n) as workers:
            sums = draw_one_by_one(
                problem.entries, own, problem.other, PRIOR, problem.noise, ADDRESS, workers
            )
        results.append((own, sums.squares))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_of_a_part_of_the_table_have_the_same_bits():
    """A machine that has some of the rows only knows the number of the first."""
    problem, first = _Problem(), 9
    whole = problem.values()
    entries, noise = rows_of(problem.entries, slice(first, 27)), problem.noise
    noise = noise._replace(variances=noise.variances[first:])
    part = np.empty(entries.n_entries)
    address = ADDRESS._replace(first_row=first)
    draw_values(entries, problem.own[first:], problem.other, noise, address, part, 0, 27 - first)
    np.testing.assert_array_equal(part, whole[problem.entries.pointers[first] :])


def test_without_intervals_nothing_changes():
    """Cells that all say "exact" give the bits of entries without cells."""
    problem = _Problem()
    exact = problem.entries._replace(values=problem.X[problem.mask])
    problem.entries = exact._replace(cells=np.full(exact.n_entries, -1, np.int32))
    with_cells = problem.rows()
    problem.entries = exact._replace(cells=np.zeros(0, np.int32))
    for one, other in zip(with_cells, problem.rows(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_signals_and_precisions():
    problem = _Problem()
    signals, precisions = np.empty((2, problem.entries.n_entries))
    places = np.random.default_rng(0).permutation(problem.entries.n_entries)
    entry_signals(
        problem.entries,
        problem.own,
        problem.other,
        problem.noise,
        places,
        signals,
        precisions,
        0,
        27,
    )
    signals, precisions, noise = signals[places], precisions[places], problem.noise
    Z, i = problem.own @ problem.other.T, np.nonzero(problem.mask)[0]
    b = noise.roots[problem.entries.indices] ** 2
    np.testing.assert_allclose(signals, Z[problem.mask], rtol=1e-12)
    expected = np.sqrt(b * problem.weights[problem.mask] / noise.variances[i])
    np.testing.assert_allclose(precisions, expected, rtol=1e-12)


BUGS = {
    "no noise of the column": ("noise.roots[entries.indices[t]] if noise.roots.size", "1.0 if True"),
    "no weight": ("sd /= math.sqrt(entries.weights[t])", "pass"),
    "weight without its root": ("sd /= math.sqrt(entries.weights[t])", "sd /= entries.weights[t]"),
    "variance for the standard deviation": ("math.sqrt(noise.variances[i])", "noise.variances[i]"),
    "signal forgotten": ("minus_z = float(residual[t - first])", "minus_z = 0.0"),
    "the intervals' upper ends lost": ("(root * high + minus_z)", "1e6"),
    "exact values drawn as well": ("if cell < 0:", "if cell < -1:"),
    "a draw of standard deviation 1": ("residual[at] = sd *", "residual[at] = 1.0 *"),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_in_the_rows_is_caught(monkeypatch, name):
    """What the Python function calls is compiled: only what is planted is compiled again."""
    problem = _Problem()
    plant(monkeypatch, rows_module, "_draw_values", *BUGS[name])
    found = problem.rows(rows_module.gaussian_rows.py_func)
    assert _difference(found, problem.expected_rows()) > 1e-3


VALUE_BUGS = {
    "no weight": ("precision_of", "entries.weights[t] if entries.weights.size", "1.0 if True"),
    "no noise of the column": ("precision_of", "return root *", "return 1.0 *"),
    "the noise of the first row": ("precision_of", "noise.variances[i]", "noise.variances[0]"),
    "the first row's bits": ("draw_values", "address.first_row + i", "address.first_row"),
    "no signal": ("draw_values", "out[t] = z + sd", "out[t] = sd"),
}


@pytest.mark.parametrize("name", VALUE_BUGS)
def test_a_planted_bug_in_the_values_is_caught(monkeypatch, name):
    problem = _Problem()
    plant(monkeypatch, values_module, *VALUE_BUGS[name])
    draw = values_module.draw_values
    found = problem.values(getattr(draw, "py_func", draw))
    assert _difference([found], [problem.expected_values()[problem.mask]]) > 1e-3


# The likelihood of an interval.


def _log_probability(low, high):
    """By logarithms of distribution functions, which have all digits in the tails."""
    low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
    above = special.log_ndtr(high)
    return above + np.log(-np.expm1(special.log_ndtr(low) - above))


@njit
def _log_probabilities(low, high, out):
    for t in range(out.size):
        out[t] = log_probability(low[t], high[t])


def _found(low, high):
    out = np.empty(len(low))
    _log_probabilities(low, high, out)
    return out


@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.1, 1.0, 10.0, FAR])
@pytest.mark.parametrize("mirrored", [False, True])
def test_log_probability(width, mirrored):
    high = np.append(np.linspace(-36.0, 5.0, 500), 0.0)
    low = high - width
    expected = _log_probability(low, high)
    low, high = (-high, -low) if mirrored else (low, high)
    # Relative errors of 1e-16 of the end points are what is left of narrow intervals.
    np.testing.assert_allclose(_found(low, high), expected, rtol=1e-12, atol=1e-13 + 1e-14 / width)


@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.1, 1.0, FAR])
@pytest.mark.parametrize("mirrored", [False, True])
def test_log_probability_in_the_far_tails(width, mirrored):
    """The expansion there is right to a share of 1 / x^2 of the probability."""
    high = -np.geomspace(36.0, 1e4, 300)
    low = high - width
    expected = _log_probability(low, high)
    low, high = (-high, -low) if mirrored else (low, high)
    np.testing.assert_allclose(_found(low, high), expected, rtol=0, atol=2e-3)


def test_log_probability_is_finite_everywhere():
    ends = np.array([-FAR, -1e3, -38.0, -1.0, 0.0, 1e-3, 37.0, 1e5, FAR])
    low, high = (
        each[np.triu_indices(ends.size, 1)] for each in np.meshgrid(ends, ends, indexing="ij")
    )
    assert np.isfinite(_found(low, high)).all()


def test_log_likelihoods_are_sums_over_blocks():
    rng = np.random.default_rng(2)
    z, p = rng.standard_normal(50), rng.uniform(0.5, 3.0, 50)
    found = np.full(3, np.nan)
    log_likelihoods(z, p, (-0.3, 0.8), np.array([4, 10, 35, 50]), found, 1, 3)
    each = np.log(special.ndtr(p * (0.8 - z)) - special.ndtr(p * (-0.3 - z)))
    np.testing.assert_allclose(found[1:], [each[10:35].sum(), each[35:].sum()], rtol=1e-12)
    assert np.isnan(found[0])


@pytest.mark.parametrize("size", [1, 3, 100])
def test_entries_are_sorted_by_interval_and_row_in_blocks(size):
    rng = np.random.default_rng(3)
    row_of, cells = np.sort(rng.integers(0, 9, 200)), rng.integers(-1, 7, 200).astype(np.int32)
    cells[cells == 2] = 1  # an interval without entries
    entries = compress(9, row_of, np.arange(200), np.zeros(200), cells=cells)
    places, starts, is_first = sort_by_interval(entries, 5, size)

    mine = (cells >= 0) & (cells < 5)
    order = np.lexsort((np.arange(200), row_of, cells))
    order = order[mine[order]]
    np.testing.assert_array_equal(places[order], np.arange(order.size))
    assert (places[~mine] == -1).all()
    np.testing.assert_array_equal(starts, np.searchsorted(cells[order], np.arange(6)))
    blocks = np.split(order, np.flatnonzero(is_first)[1:])
    assert is_first[0]
    groups = [(int(cells[t]), int(row_of[t])) for t in order]
    for key in set(groups):
        sizes = [b.size for b in blocks if (int(cells[b[0]]), int(row_of[b[0]])) == key]
        assert sum(sizes) == groups.count(key)
        assert all(each == size for each in sizes[:-1])
        assert sizes[-1] <= size
