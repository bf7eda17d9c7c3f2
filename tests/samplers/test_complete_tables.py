"""Tables without missing cells, whose rows are drawn jointly by matrix products: GASR and BPMF.

Blocks and tiles are made so small that a small table has several.
"""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fillrank.draws.streams import ROW_ENTRIES, ROWS, Address, chain_key
from fillrank.kernels import dense_rows as kernel
from fillrank.kernels.gaussian_rows import Prior, RowNoise
from fillrank.kernels.joint_rows import JointPrior
from fillrank.runtime.threads import Workers
from fillrank.samplers import bpmf, gasr, model
from fillrank.samplers.gasr import Options
from fillrank.samplers.model import CompleteData, Data, Effect, detect_complete, draw_rows
from reference import bpmf_geweke, geweke_cases
from reference.geweke import worst
from reference.p_values import limit_of
from reference.planted import plant
from reference.small_tables import (
    CENTRES,
    EFFECTS,
    MASK,
    PLAIN,
    FullTable,
    Table,
    context_of,
    dense_signal,
    random_state,
    variance_of,
    with_variance,
)

ALL = Options(row_effects=True, column_effects=True, centres=True)
OPTIONS = pytest.mark.parametrize(
    "options", [PLAIN, EFFECTS, CENTRES, ALL], ids=["plain", "effects", "centres", "all"]
)
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
ROUNDING = {np.float64: 1e-9, np.float32: 2e-3}
_CLEAR_SCORE = 6.0


@pytest.fixture(autouse=True)
def one_thread_of_linear_algebra():
    """As estimators have it: where a product ran on several threads, bits would depend on them."""
    with threadpool_limits(1):
        yield


BY_DIFFERENCE, BY_RESIDUALS = 0.0, np.inf  # the two ways to sum over a table, wherever the noise is
WAYS = pytest.mark.parametrize(
    "way", [BY_DIFFERENCE, BY_RESIDUALS], ids=["by difference", "by residuals"]
)


@pytest.fixture
def small_tiles(monkeypatch):
    """Blocks of two rows, tiles of three columns."""
    monkeypatch.setattr(kernel, "_FEWEST_ROWS", 2)
    monkeypatch.setattr(kernel, "_MOST_ROWS", 2)
    monkeypatch.setattr(kernel, "_TILE_COLUMNS", 3)


def test_a_complete_table_is_detected():
    X = np.arange(20.0).reshape(5, 4)
    table = Table(np.ones((5, 4), dtype=bool))
    data = table.data(X.ravel())
    full = detect_complete(data)
    assert isinstance(full, CompleteData)
    np.testing.assert_array_equal(full.rows.values, X)
    np.testing.assert_array_equal(full.columns.values, X.T)
    np.testing.assert_allclose(full.rows.squares, np.sum(X**2, axis=1))
    np.testing.assert_allclose(full.columns.squares, np.sum(X**2, axis=0))
    assert np.shares_memory(full.columns.values, data.rows.values)
    assert (full.shape, full.n_entries) == (data.shape, data.n_entries)
    for one, other in zip(full.counts, data.counts, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_missing_cell_leaves_the_entries_unchanged():
    table = Table(MASK)
    data = table.data(np.zeros(table.n_entries))
    assert detect_complete(data) is data


def _drawn(data, prior, sweep=0):
    """(own, square) of the rows of 5 x 4 cells, drawn from one state."""
    rng = np.random.default_rng(2)
    own, other = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
    address = Address(chain_key(1, 0), sweep, ROWS)
    noise = RowNoise(np.full(5, 0.3), np.zeros(0), np.inf, ROW_ENTRIES)
    sums = draw_rows(data.rows, own, other, prior, noise, address, Workers(1))
    return own, sums.squares


def test_a_joint_draw_has_the_same_distribution_by_entries_and_by_products():
    """Both are mean + R z with the same z and R R^T = P^-1: (c - mean)^T P (c - mean) = z^T z."""
    x = np.random.default_rng(3).standard_normal(20)
    prior = JointPrior(np.array([0.5, -0.2, 0.1]), np.diag([2.0, 1.0, 0.5]) + 0.3)
    rng = np.random.default_rng(2)
    _, other = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
    P = other.T @ other / 0.3 + prior.precision
    h = x.reshape(5, 4) @ other / 0.3 + prior.precision @ prior.mean
    mean, distances = np.linalg.solve(P, h.T).T, []
    for table in (Table(np.ones((5, 4), dtype=bool)), FullTable((5, 4))):
        drawn, squares = _drawn(table.data(x), prior)
        e = x.reshape(5, 4) - drawn @ other.T
        np.testing.assert_allclose(squares, np.sum(e**2, axis=1), rtol=1e-10)
        distances.append(np.einsum("ia,ab,ib->i", drawn - mean, P, drawn - mean))
    np.testing.assert_allclose(distances[0], distances[1], rtol=1e-9)


def test_a_prior_without_correlations_is_a_diagonal_one():
    data = FullTable((5, 4)).data(np.random.default_rng(3).standard_normal(20))
    mean, precision = np.array([0.5, -0.2, 0.1]), np.array([2.0, 1.0, 0.5])
    one, square = _drawn(data, Prior(np.arange(3), mean, precision))
    same, same_square = _drawn(data, JointPrior(mean, np.diag(precision)))
    np.testing.assert_array_equal(one, same)
    np.testing.assert_array_equal(square, same_square)
    relaxed, _ = _drawn(data, Prior(np.arange(3), mean, precision, relaxation=-0.5))
    assert np.all(relaxed != one)


# Geweke's joint test


def _assert_no_alarm(scores):
    name, size = worst(scores)
    assert size < limit_of(len(scores)), f"{name}: z = {size:.1f}"


@pytest.mark.usefixtures("small_tiles")
def test_geweke_of_gasr(monkeypatch):
    monkeypatch.setattr(kernel, "_FEW_LEFT", BY_DIFFERENCE)
    _assert_no_alarm(geweke_cases.mixture(n_chains=300, length=20, full=True))


@WAYS
@pytest.mark.usefixtures("small_tiles")
def test_geweke_of_gasr_with_effects(monkeypatch, way):
    monkeypatch.setattr(kernel, "_FEW_LEFT", way)
    _assert_no_alarm(geweke_cases.mixture_with_effects(n_chains=300, length=20, full=True))


@WAYS
@pytest.mark.usefixtures("small_tiles")
def test_geweke_of_bpmf(monkeypatch, way):
    monkeypatch.setattr(kernel, "_FEW_LEFT", way)
    _assert_no_alarm(_bpmf_scores(n_chains=300, length=15))


@pytest.mark.slow
@pytest.mark.usefixtures("small_tiles")
def test_geweke_of_gasr_with_effects_long_chains():
    _assert_no_alarm(geweke_cases.mixture_with_effects(400, 300, seed=1, full=True))


@pytest.mark.slow
@pytest.mark.usefixtures("small_tiles")
def test_geweke_of_bpmf_long_chains():
    _assert_no_alarm(_bpmf_scores(n_chains=400, length=300, seed=1))


def _bpmf_scores(**how_many):
    return bpmf_geweke.geweke_scores(False, table=bpmf_geweke.FULL_TABLE, **how_many)


GASR_BUGS = {
    "a row of factors not in the Gram matrix": (
        "_conditional", "else np.ones(n)", "else np.arange(n).clip(0, 1.0)"
    ),
    "the Gram matrix of the first factors": (
        "_conditional", "G[prior.free][:, prior.free]", "G[: prior.free.size, : prior.free.size]"
    ),
    "prior without the noise": ("_draw", "variances[i] * h[i, p]", "h[i, p]"),
    "variance as standard deviation": (
        "_draw", "math.sqrt((1.0 - a * a) * variances[i] * share)", "variances[i] * math.sqrt(share)"
    ),
    "prior mean missing": ("_draw", "given.prior.mean[p] - own", "-own"),
    "prior forgets where the row was": (
        "_draw", "given.prior.mean[p] - own[i, free[p]]", "given.prior.mean[p]"
    ),
    "effects of the other side forgotten": (
        "_take_off_fit", "c = own.astype(np.float64)", "c = own * np.array([1.0, 1.0, 1.0, 0.0])"
    ),
    "effects of the other side left in the residuals": (
        "_sums_of_residuals", "own, given = half.own[rows]", "own, given = half.own[rows] * [1, 1, 1, 0]"
    ),
    "rows of a block with the same normals": (
        "_draw", "_normals(address, start, h.shape)",
        "_normals(address, start, (1, n_free)) * np.ones(h.shape)",
    ),
    "blocks with the same normals": ("_draw_block", "rows.start", "0"),
    "a relaxed draw with the pull of a fresh one": ("_draw", "(1.0 - a) * share", "share"),
    # To lose the first tiles altogether lets the noise grow without bound.
    "less of the first tiles": ("_sums_by_difference", "products += x", "products = 0.8 * products + x"),
    "last tile of residuals alone": ("_sums_of_residuals", "products += e", "products = e"),
}  # fmt: skip


def _parametrize(bugs, every_time):
    """Run the bugs named in ``every_time`` always, the others among the slow tests."""
    assert set(every_time) <= set(bugs)
    return pytest.mark.parametrize(
        "name",
        [pytest.param(bug, marks=[] if bug in every_time else [pytest.mark.slow]) for bug in bugs],
    )


@pytest.mark.usefixtures("small_tiles")
@_parametrize(
    GASR_BUGS,
    [
        "a row of factors not in the Gram matrix",
        "prior without the noise",
        "prior mean missing",
        "effects of the other side forgotten",
        "effects of the other side left in the residuals",
        "blocks with the same normals",
    ],
)
def test_geweke_catches_in_gasr(monkeypatch, name):
    plant(monkeypatch, kernel, *GASR_BUGS[name])
    monkeypatch.setattr(kernel, "_FEW_LEFT", BY_RESIDUALS if "residuals" in name else BY_DIFFERENCE)
    # The means of the effects are near 0, and so are the products of the effects with the factors.
    subtle = {"prior mean missing": 500, "the Gram matrix of the first factors": 2000}
    n_chains = subtle.get(name, 200)
    scores = geweke_cases.mixture_with_effects(n_chains, length=15, full=True)
    assert worst(scores)[1] > _CLEAR_SCORE, worst(scores)


BPMF_BUGS = {
    "prior mean missing": ("_draw", "given.prior.mean[p] - own", "-own"),
    "prior without the noise": ("_draw", "variances[i] * h[i, p]", "h[i, p]"),
    "root not transposed": ("_conditional", "lower=1)[0]", "lower=1)[0].T"),
    "square of the fit missing": ("_take_off_fit", "(fitted[i, k] - 2.0", "(-2.0"),
    "square of the step missing": ("_draw", "(fitted[i, k] - 2.0", "(-2.0"),
}  # fmt: skip


@pytest.mark.usefixtures("small_tiles")
@_parametrize(BPMF_BUGS, ["square of the step missing"])
def test_geweke_catches_in_bpmf(monkeypatch, name):
    plant(monkeypatch, kernel, *BPMF_BUGS[name])
    monkeypatch.setattr(kernel, "_FEW_LEFT", BY_DIFFERENCE)
    scores = _bpmf_scores(n_chains=200, length=15)
    assert worst(scores)[1] > _CLEAR_SCORE, worst(scores)


@pytest.mark.usefixtures("small_tiles")
def test_geweke_catches_the_diagonal_of_the_prior_alone(monkeypatch):
    plant(
        monkeypatch, model, "_row_prior", "prior.mean, prior.precision, shifts",
        "prior.mean, np.diag(np.diag(prior.precision)), shifts",
    )  # fmt: skip
    scores = _bpmf_scores(n_chains=200, length=15)
    assert worst(scores)[1] > _CLEAR_SCORE, worst(scores)


# What holds for every sweep


def _problem(shape=(7, 6), r=3, dtype=np.float64, scale=1.0):
    """(data, X, state), with effects in the state as in the data."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    X = (X + 0.3 * rng.standard_normal(shape)).astype(dtype)
    effect = Effect(0.1, 0.2)
    state = random_state(rng, shape, r, dtype, row_effect=effect, column_effect=effect)
    return FullTable(shape, dtype).data(scale * X.ravel()), X, state


@DTYPES
@OPTIONS
@WAYS
@pytest.mark.usefixtures("small_tiles")
def test_reported_square_is_that_of_the_state(monkeypatch, way, options, dtype):
    monkeypatch.setattr(kernel, "_FEW_LEFT", way)
    data, X, state = _problem(dtype=dtype)
    for _ in range(50):
        state, info = gasr.sweep(state, data, context_of(options))
        square = np.sum((X - dense_signal(state)) ** 2)
        assert info.residual_square == pytest.approx(square, rel=ROUNDING[dtype])


def test_units_do_not_matter():
    """X in other units, with b, sigma and d to match, gives the same chain, bit for bit."""
    c = 8.0
    (data, _, state), (scaled_data, _, _) = _problem(), _problem(scale=c)
    scaled = state._replace(d=c * state.d, b=c * state.b)
    scaled = with_variance(scaled, c**2 * variance_of(state))
    context = context_of(CENTRES)
    for _ in range(20):
        state, _ = gasr.sweep(state, data, context)
        scaled, _ = gasr.sweep(scaled, scaled_data, context)
        np.testing.assert_array_equal(state.left, scaled.left)
        np.testing.assert_array_equal(state.right, scaled.right)
        np.testing.assert_array_equal(c * state.d, scaled.d)


def _gasr_chain(data, dtype, workers):
    state = random_state(np.random.default_rng(1), data.shape, 5, dtype)
    for _ in range(4):
        state, info = gasr.sweep(state, data, context_of(ALL, 4, workers))
    return (state.left, state.right, state.d, info.residual_square)


def _bpmf_chain(data, dtype, workers):
    prior = bpmf.Hyperprior(2.0, 5.0, 0.1)
    state = bpmf.init(data.shape, 5, 0.5, np.dtype(dtype), np.random.default_rng(1))
    for _ in range(4):
        state, info = bpmf.sweep(state, data, bpmf.Context(prior, False, chain_key(4, 0), workers))
    return (state.left, state.right, variance_of(state), info.residual_square)


@DTYPES
@pytest.mark.parametrize("chain", [_gasr_chain, _bpmf_chain], ids=["GASR", "BPMF"])
def test_threads_do_not_change_a_bit(chain, dtype):
    shape = (600, 1300)
    data = FullTable(shape, dtype).data(np.random.default_rng(8).standard_normal(shape).ravel())
    outcomes = []
    for n_threads in (1, 2, 4):
        with Workers(n_threads) as workers:
            outcomes.append(chain(data, dtype, workers))
    first, *others = outcomes
    for other in others:
        for part, part_of_other in zip(first, other, strict=True):
            np.testing.assert_array_equal(part, part_of_other)


def test_both_ways_sample_the_same_posterior():
    """Predictions of two chains differ by their Monte Carlo errors, on average over the cells."""
    full, _, first = _problem(shape=(12, 9))
    sparse = Table(np.ones((12, 9), dtype=bool)).data(full.values.ravel())
    assert isinstance(sparse, Data)
    means, errors = [], []
    for seed, data in enumerate((full, sparse)):
        state, drawn = first, []
        for t in range(3200):
            state, _ = gasr.sweep(state, data, context_of(PLAIN, seed))
            if t >= 200:
                drawn.append(dense_signal(state))
        batches = np.array(drawn).reshape(30, 100, -1).mean(axis=1)
        means.append(batches.mean(axis=0))
        errors.append(batches.var(axis=0, ddof=1) / len(batches))
    z = (means[0] - means[1]) / np.sqrt(errors[0] + errors[1])
    # The cells share factors: their squared scores vary together, so a bound on their average.
    assert np.mean(z**2) < 2.0
