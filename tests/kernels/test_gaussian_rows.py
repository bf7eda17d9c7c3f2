"""The Gaussian half-sweep against its slow twin, and the sums and products around it."""

import numpy as np
import pytest
from scipy import stats

import fillrank.kernels.gaussian_rows as module
from fillrank.draws.streams import ROW_ENTRIES, ROWS, Address, chain_key
from fillrank.kernels.factors import sums_about
from fillrank.kernels.gaussian_rows import Prior, RowNoise, RowSums, align_rows, gaussian_rows
from fillrank.kernels.products import product, residual
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import draw_one_by_one
from reference.p_values import ALARM, ks_uniform
from reference.planted import plant
from reference.row_twins import gaussian_rows_twin
from reference.small_tables import table_and_values

ADDRESS = Address(chain_key(5, 0), 3, ROWS)
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-4}


def _problem(dtype, seed=0, shape=(11, 9), width=6):
    """(mask, X, entries, own, other), with an empty row and a full one."""
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < 0.5
    mask[0], mask[-1] = True, False
    X = rng.standard_normal(shape).astype(dtype)
    _, data = table_and_values(mask, X, dtype)
    own = rng.standard_normal((shape[0], width)).astype(dtype)
    other = rng.standard_normal((shape[1], width)).astype(dtype)
    return mask, X, data.rows, own, other


def _equal(variance, n):
    """One noise variance for all."""
    return RowNoise(np.full(n, variance), np.zeros(0), np.inf, ROW_ENTRIES)


def _draw(
    entries, own, other, prior, noise, address=ADDRESS, start=0, stop=None, draw=gaussian_rows
):
    """The sums after a draw in place; NaN where none were set."""
    sums = RowSums(*(np.full(len(own), np.nan) for _ in range(3)))
    aligned = align_rows(other, noise.roots)
    stop = len(own) if stop is None else stop
    draw(entries, own, aligned, prior, noise, address, sums, start, stop)
    return sums


PRIORS = {
    "all free": Prior(np.arange(6), np.linspace(-1, 1, 6), np.array([2.0, 1, 5, 0.5, 3, 10])),
    "one held": Prior(np.array([0, 1, 2, 3, 5]), np.full(5, 0.3), np.full(5, 2.0)),
    "only one free": Prior(np.array([4]), np.array([-0.7]), np.array([1.5])),
    "weak and strong": Prior(np.arange(6), np.zeros(6), np.array([1e-9, 1e9, 1, 1, 1, 1])),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("noise_variance", [0.3, 20.0])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS.keys())
def test_agrees_with_the_twin(prior, noise_variance, dtype):
    mask, X, entries, own, other = _problem(dtype)
    noise = _equal(noise_variance, len(own))
    expected, expected_squares, _, _ = gaussian_rows_twin(
        X, mask, own, other, prior, noise, ADDRESS
    )
    squares = _draw(entries, own, other, prior, noise).squares
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(own, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(squares, expected_squares, rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_free", [1, 2, 16, 17])
@pytest.mark.parametrize("width", [17, 24])
def test_rows_of_every_length_agree_with_the_twin(width, n_free, dtype):
    """Vectors have eight lanes: rows of 0 to 26 entries end in every place of one."""
    rng = np.random.default_rng(width)
    mask = np.tri(27, 26, -1, dtype=bool)
    X = rng.standard_normal(mask.shape).astype(dtype)
    _, data = table_and_values(mask, X, dtype)
    own, other = (rng.standard_normal((n, width)).astype(dtype) for n in mask.shape)
    free = rng.choice(width, n_free, replace=False)
    prior = Prior(free, rng.standard_normal(n_free), rng.uniform(0.5, 5.0, n_free))
    noise = _equal(0.3, len(own))
    expected, expected_squares, _, _ = gaussian_rows_twin(
        X, mask, own, other, prior, noise, ADDRESS
    )
    squares = _draw(data.rows, own, other, prior, noise).squares
    tolerance = 10 * TOLERANCE[dtype]
    np.testing.assert_allclose(own, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(squares, expected_squares, rtol=10 * tolerance, atol=tolerance)


def _noises(shape, dtype):
    """{name: (noise, full matrix of weights or None)}."""
    rng = np.random.default_rng(7)
    variances, roots = rng.uniform(0.05, 3.0, shape[0]), np.sqrt(rng.gamma(2.0, 0.5, shape[1]))
    weights = rng.uniform(0.2, 5.0, shape).astype(dtype)
    by_row = RowNoise(variances, np.zeros(0), np.inf, ROW_ENTRIES)
    both = by_row._replace(roots=roots)
    return {
        "rows": (by_row, None),
        "rows and columns": (both, None),
        "weights": (_equal(0.3, shape[0]), weights),
        "Student-t": (_equal(0.3, shape[0])._replace(degrees=4.5), None),
        "all": (both._replace(degrees=7.0), weights),
    }


UNEQUAL = ["rows", "rows and columns", "weights", "Student-t", "all"]


def _unequal_differences(name, dtype=np.float64, draw=gaussian_rows, width=7, n_free=5):
    """The largest differences from the twin of (coefficients, squares, sums of l, sums of log l).

    Rows of 0 to 26 entries end in every place of a vector.
    """
    rng = np.random.default_rng(12)
    mask = np.tri(27, 26, -1, dtype=bool)
    X = rng.standard_normal(mask.shape).astype(dtype)
    noise, weights = _noises(mask.shape, dtype)[name]
    entries = table_and_values(mask, X, dtype)[1].rows
    if weights is not None:
        entries = entries._replace(weights=weights[mask])
    own, other = (rng.standard_normal((n, width)).astype(dtype) for n in mask.shape)
    free = rng.choice(width, n_free, replace=False)
    prior = Prior(free, rng.standard_normal(n_free), rng.uniform(0.5, 5.0, n_free))
    expected = gaussian_rows_twin(X, mask, own, other, prior, noise, ADDRESS, weights)
    sums = _draw(entries, own, other, prior, noise, draw=draw)
    got = (own, *(sums if np.isfinite(noise.degrees) else sums[:1]))
    return [
        np.abs(part - right).max() / max(1.0, np.abs(right).max())
        for part, right in zip(got, expected, strict=False)
    ]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", UNEQUAL)
def test_unequal_noise_agrees_with_the_twin(name, dtype):
    assert max(_unequal_differences(name, dtype)) < 10 * TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["rows and columns", "all"])
def test_unequal_noise_has_the_same_bits_on_any_number_of_threads(name, dtype):
    rng = np.random.default_rng(3)
    mask, X = rng.random((300, 80)) < 0.5, rng.standard_normal((300, 80)).astype(dtype)
    noise, weights = _noises(mask.shape, dtype)[name]
    entries = table_and_values(mask, X, dtype)[1].rows
    if weights is not None:
        entries = entries._replace(weights=weights[mask])
    other, results = rng.standard_normal((80, 6)).astype(dtype), []
    for n_threads in (1, 2, 4):
        own = np.zeros((300, 6), dtype)
        with Workers(n_threads) as workers:
            sums = draw_one_by_one(entries, own, other, PRIORS["all free"], noise, ADDRESS, workers)
        results.append((own, *sums))
    for result in results[1:]:
        for part, first in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(part, first)


def test_weights_of_duplicates():
    """Weight 4 on every entry is a quarter of the noise variance; so is each entry four times."""
    mask, X, entries, own, other = _problem(np.float64)
    prior, n = PRIORS["all free"], len(own)
    weighted, smaller, repeated = own.copy(), own.copy(), own.copy()
    _draw(
        entries._replace(weights=np.full(entries.n_entries, 4.0)),
        weighted,
        other,
        prior,
        _equal(0.4, n),
    )
    _draw(entries, smaller, other, prior, _equal(0.1, n))
    four = table_and_values(np.tile(mask, 4), np.tile(X, 4))[1].rows
    _draw(four, repeated, np.tile(other, (4, 1)), prior, _equal(0.4, n))
    np.testing.assert_allclose(weighted, smaller, rtol=1e-10)
    np.testing.assert_allclose(repeated, smaller, rtol=1e-10)


def test_a_precision_of_a_column_is_a_weight_of_its_entries():
    _, _, entries, own, other = _problem(np.float64)
    prior, b = PRIORS["all free"], np.random.default_rng(1).uniform(0.2, 4.0, other.shape[0])
    one, same = own.copy(), own.copy()
    noise = _equal(0.4, len(own))
    sums = _draw(entries, one, other, prior, noise._replace(roots=np.sqrt(b)))
    weighted = entries._replace(weights=b[entries.indices])
    same_sums = _draw(weighted, same, other, prior, noise)
    np.testing.assert_allclose(one, same, rtol=1e-10)
    np.testing.assert_allclose(sums.squares, same_sums.squares, rtol=1e-10)


BUGS = {
    "values without the root of the column": ("_load_values", " * roots[entries.indices[t]]", ""),
    "Student-t weights of shape nu/2": (
        "_draw_weights", "noise.degrees, square", "noise.degrees - 1.0, square + 1.0"
    ),
    "Student-t rate without nu": (
        "_draw_weights", "degrees, square", "degrees, square - noise.degrees + 1e-9"
    ),
    "Student-t weights forget the given ones": (
        "_draw_weights", "square = weights[t] *", "square = 1.0 *"
    ),
    "Student-t weights not used": ("_draw_weights", "weights[t] *= draw", "weights[t] *= 1.0"),
    "residuals without weights": ("_weigh", "residual[t] *= weights[t]", "pass"),
    "weights without root": ("_weigh", "math.sqrt(weights[t])", "weights[t]"),
    "first factor alone weighted": ("_weigh", "range(0, tile.size - stride + 1, stride)", "range(1)"),
    "the noise of the first row": (
        "gaussian_rows", "prior, i, p, noise.variances[i])", "prior, i, p, noise.variances[0])"
    ),
    "Student-t weights drawn as normals are": (
        "gaussian_rows", "address.sweep, noise.purpose)", "address.sweep, address.purpose)"
    ),
}  # fmt: skip


def test_the_python_function_agrees_with_the_twin():
    assert max(_unequal_differences("all", draw=gaussian_rows.py_func)) < 1e-11


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_in_unequal_noise_is_caught(monkeypatch, name):
    """What the Python function calls is compiled: only what is planted is compiled again."""
    plant(monkeypatch, module, *BUGS[name])
    assert max(_unequal_differences("all", draw=module.gaussian_rows.py_func)) > 1e-3


def test_rows_outside_the_range_are_unchanged():
    """Only the rows from start to stop are drawn, with the bits that they have in any range."""
    _, _, entries, own, other = _problem(np.float64)
    whole, part = own.copy(), own.copy()
    prior, noise = PRIORS["all free"], _equal(0.3, len(own))
    _draw(entries, whole, other, prior, noise)
    squares = _draw(entries, part, other, prior, noise, start=4, stop=8).squares
    np.testing.assert_array_equal(part[4:8], whole[4:8])
    np.testing.assert_array_equal(part[:4], own[:4])
    np.testing.assert_array_equal(part[8:], own[8:])
    np.testing.assert_array_equal(np.isnan(squares), [True] * 4 + [False] * 4 + [True] * 3)


def test_empty_row_draws_from_its_prior():
    """N(mean, 1/precision) for each coefficient."""
    _, _, entries, own, other = _problem(np.float64)
    prior, empty, drawn = PRIORS["all free"], own.shape[0] - 1, []
    for sweep in range(2000):
        address = ADDRESS._replace(sweep=sweep)
        _draw(entries, own, other, prior, _equal(0.3, len(own)), address, empty, empty + 1)
        drawn.append(own[empty].copy())
    scores = (np.array(drawn) - prior.mean) * np.sqrt(prior.precision)
    assert ks_uniform(stats.norm.cdf(scores)) > ALARM


def test_row_draws_lead_to_the_joint_distribution_of_a_row():
    """Repeated draws of one row converge to N(P^-1 h, P^-1), P = F'F/s2 + diag(p), h = F'x/s2 + p m.

    Moments of 8,000 draws, every fifth kept after the first ten.
    """
    rng = np.random.default_rng(4)
    noise, prior = 0.5, Prior(np.arange(2), np.array([0.5, -0.5]), np.array([1.0, 2.0]))
    mask, X = np.ones((1, 4), dtype=bool), rng.standard_normal((1, 4))
    _, data = table_and_values(mask, X)
    other, own = rng.standard_normal((4, 2)), np.zeros((1, 2))
    drawn, factors, equal = [], align_rows(other, np.zeros(0)), _equal(noise, 1)
    sums = RowSums(np.empty(1), np.zeros(0), np.zeros(0))
    for sweep in range(40_010):
        address = ADDRESS._replace(sweep=sweep)
        gaussian_rows(data.rows, own, factors, prior, equal, address, sums, 0, 1)
        if sweep >= 10 and sweep % 5 == 0:
            drawn.append(own[0].copy())
    P = other.T @ other / noise + np.diag(prior.precision)
    mean = np.linalg.solve(P, other.T @ X[0] / noise + prior.precision * prior.mean)
    white = (np.array(drawn) - mean) @ np.linalg.cholesky(P)
    n = white.shape[0]
    z = np.append(white.mean(axis=0), np.mean(white[:, 0] * white[:, 1])) * np.sqrt(n)
    z = np.append(z, (np.mean(white**2, axis=0) - 1.0) * np.sqrt(n / 2.0))
    # Neighbours are correlated a little: by less than 0.1 here, which the factor 1.2 covers.
    assert np.abs(z).max() < 1.2 * stats.norm.isf(ALARM / (2 * z.size)), z


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_residual_and_product(dtype):
    mask, X, entries, own, other = _problem(dtype)
    tolerance = TOLERANCE[dtype]
    e = residual(entries, own, other, Workers(1)).values
    expected = (X.astype(float) - own.astype(float) @ other.astype(float).T)[mask]
    np.testing.assert_allclose(e, expected, rtol=tolerance, atol=tolerance)
    filled = np.where(mask, X, 0.0).astype(float)
    np.testing.assert_allclose(
        product(entries, other, Workers(1)), filled @ other, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_about(dtype):
    block = np.random.default_rng(1).standard_normal((50, 4)).astype(dtype)
    centre = np.array([0.2, -1.0, 3.0])
    first, second = sums_about(block, centre, Workers(1))
    deviation = block[:, :3].astype(float) - centre
    np.testing.assert_allclose(first, deviation.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(second, np.sum(deviation**2, axis=0), rtol=1e-12)
