"""BPMF: Geweke's joint test, its conditionals, its basis, and mistakes that these must catch."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import fillrank as fr
from fillrank.draws.streams import ROW_ENTRIES, ROW_HYPER, ROWS, Address, chain_key
from fillrank.kernels.gaussian_rows import NO_SHIFTS, RowNoise
from fillrank.runtime.threads import Workers
from fillrank.samplers import bpmf, model
from fillrank.samplers.model import Data
from fillrank.table.units import shared_units, standardise
from reference import bpmf_geweke
from reference.geweke import worst
from reference.p_values import limit_of
from reference.planted import plant
from reference.small_tables import variance_of

JOINT = pytest.mark.parametrize("joint", [True, False], ids=["joint", "entries"])
_CLEAR_SCORE = 6.0


@pytest.fixture(autouse=True)
def one_thread_of_linear_algebra():
    """Matrices of 2 x 2 are no work for several threads, which would wait for each other."""
    with threadpool_limits(1):
        yield


def _assert_no_alarm(scores):
    name, size = worst(scores)
    assert size < limit_of(len(scores)), f"{name}: z = {size:.1f}"


@JOINT
def test_geweke(joint):
    _assert_no_alarm(bpmf_geweke.geweke_scores(joint, n_chains=300, length=15))


@JOINT
def test_geweke_with_fixed_noise(joint):
    model = bpmf_geweke.Model(samples_noise=False)
    _assert_no_alarm(bpmf_geweke.geweke_scores(joint, model, n_chains=200, length=15))


@pytest.mark.slow
@JOINT
def test_geweke_long_chains(joint):
    _assert_no_alarm(bpmf_geweke.geweke_scores(joint, n_chains=400, length=300, seed=1))


BUGS = {
    "uncentred scatter": ("draw_factor_prior", "gram(vectors, ubar", "gram(vectors, 0.0 * ubar"),
    "degrees without the vectors": ("draw_factor_prior", "prior.degrees + n +", "prior.degrees +"),
    "degrees off by one": ("draw_factor_prior", "prior.degrees + n +", "prior.degrees + n + 1 +"),
    "scatter without the mean": ("draw_factor_prior", "n * prior.beta / weight", "0.0"),
    "mean without shrinkage": ("draw_factor_prior", "n / weight * ubar", "ubar"),
    "mean with the wrong precision": ("draw_factor_prior", "/ math.sqrt(weight)", "/ math.sqrt(n)"),
    "mean by T instead of its transpose": ("draw_factor_prior", "np.linalg.solve(T.T, z)", "T @ z"),
    "columns by the old rows": (
        "sweep", "_half_sweep(columns, left,", "_half_sweep(columns, state.left,"
    ),
    "columns under the rows' prior": (
        "sweep", "t, context)\n    if model.columns", """t, context)
    half = Half(data.columns, state.right, left, row_prior, np.zeros((0, 0)), *values[1:])
    right, sums = _draw_entries(half, Address(context.key, t, streams.COLUMNS), workers)
    if model.columns"""
    ),
    "noise of too many entries": (
        "sweep", "draw_level(noise, model, where, column", "draw_level(noise, model, where, 2 * column"
    ),
    "basis not taken back": ("_draw_entries", "multiplied(drawn, B.T", "multiplied(drawn, inverse"),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    function, old, new = BUGS[name]
    plant(monkeypatch, bpmf, function, old, new)
    scores = bpmf_geweke.geweke_scores(False, n_chains=150, length=10)
    assert worst(scores)[1] > _CLEAR_SCORE, worst(scores)


def test_a_variance_as_weight_is_caught(monkeypatch):
    plant(monkeypatch, model, "_draw_jointly", "1.0 / noise.variances", "noise.variances")
    model_of_noise = bpmf_geweke.Model(samples_noise=False)
    scores = bpmf_geweke.geweke_scores(True, model_of_noise, n_chains=150, length=10)
    assert worst(scores)[1] > _CLEAR_SCORE, worst(scores)


def _scores_of_an_empty_row(draw_rows):
    """z-scores of the mean and the second moments of 4,000 draws of a row without entries."""
    rng = np.random.default_rng(5)
    law = bpmf.FactorPrior(np.array([1.0, -2.0]), np.array([[2.0, 0.0], [1.5, 0.5]]))
    other = rng.standard_normal((3, 2))
    data = bpmf_geweke.TABLE.data(rng.standard_normal(bpmf_geweke.TABLE.n_entries))
    noise = RowNoise(np.full(4, 0.5), np.zeros(0), np.inf, ROW_ENTRIES)
    half = bpmf.Half(data.rows, np.zeros((4, 2)), other, law, NO_SHIFTS, np.array([1, 2, 3]), noise)
    drawn = []
    for t in range(4000):
        own, _ = draw_rows(half, Address(chain_key(6, 0), t, ROWS), Workers(1))
        drawn.append(own[2])
    white = (np.array(drawn) - law.mean) @ law.T
    moments = np.column_stack([white, white[:, 0] * white[:, 1], (white**2 - 1) / np.sqrt(2)])
    return np.abs(moments.mean(axis=0) * np.sqrt(len(drawn)))


WAYS = {"joint": "_draw_jointly", "entries": "_draw_entries"}


@pytest.mark.parametrize("way", WAYS)
def test_a_row_without_entries_comes_from_the_distribution(way):
    assert _scores_of_an_empty_row(getattr(bpmf, WAYS[way])).max() < limit_of(5)


@pytest.mark.parametrize(
    ("way", "old", "new"),
    [
        ("entries", "inverse @ half.prior.mean", "half.prior.mean"),
        ("joint", "half.prior.T @ half.prior.T.T", "half.prior.T.T @ half.prior.T"),
    ],
)
def test_a_wrong_prior_of_rows_is_caught(monkeypatch, way, old, new):
    plant(monkeypatch, bpmf, WAYS[way], old, new)
    assert _scores_of_an_empty_row(getattr(bpmf, WAYS[way])).max() > _CLEAR_SCORE


def _scores_of_priors():
    """How far E Lambda = (nu_0 + n) W and E mu = n ubar/(n + beta_0) are off, over 4,000 draws."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((7, 2)) @ np.array([[1.0, 0.5], [0.0, 0.3]]) + [1.0, -2.0]
    prior, n = bpmf_geweke.PRIOR, 7
    alone, none = Workers(1), np.zeros((0, 2))
    distributions = [
        bpmf.draw_factor_prior(vectors, none, prior, Address(chain_key(3, 0), t, ROW_HYPER), alone)
        for t in range(4000)
    ]
    ubar, scatter = vectors.mean(axis=0), 7 * np.cov(vectors.T, bias=True)
    W = np.linalg.inv(
        prior.inverse_scale * np.eye(2) + scatter + n * 2.0 / (n + 2.0) * np.outer(ubar, ubar)
    )
    drawn = np.array([(w.T @ w.T.T)[np.tril_indices(2)] for w in distributions])
    expected = ((prior.degrees + n) * W)[np.tril_indices(2)]
    z = (drawn.mean(axis=0) - expected) / (drawn.std(axis=0) / np.sqrt(len(distributions)))
    means = np.array([w.mean for w in distributions])
    z_mean = (means.mean(axis=0) - n / (n + 2.0) * ubar) / (
        means.std(axis=0) / np.sqrt(len(distributions))
    )
    return np.abs([*z, *z_mean])


def test_distribution_of_the_priors():
    assert _scores_of_priors().max() < limit_of(5)


def test_a_wishart_with_its_scale_transposed_is_caught(monkeypatch):
    plant(monkeypatch, bpmf, "draw_factor_prior", 'trans="T", ', "")
    assert _scores_of_priors().max() > _CLEAR_SCORE


def _small(seed=0, missing=0.5, shape=(150, 120)):
    data, truth = fr.synthetic(*shape, 3, 0.5, missing, random_state=seed)
    units = shared_units(data, True, None)
    standard = Data(*standardise(data, units, np.dtype("float32")))
    return standard, (truth - units.location) / units.scale


def _run(data, joint, workers, n_sweeps, rank=5):
    prior = bpmf.Hyperprior(2.0, float(rank), 0.01)
    context = bpmf.Context(prior, joint, chain_key(0, 0), workers)
    rng = np.random.default_rng(0)
    state = bpmf.init(data.shape, rank, 0.5, np.dtype("float32"), rng)
    for _ in range(n_sweeps):
        state, info = bpmf.sweep(state, data, context)
    return state, info


@JOINT
def test_same_bits_on_any_number_of_threads(joint):
    data, _ = _small()
    states = []
    for n_threads in (1, 2, 4):
        with Workers(n_threads) as workers:
            states.append(_run(data, joint, workers, 5)[0])
    for state in states[1:]:
        np.testing.assert_array_equal(state.left, states[0].left)
        np.testing.assert_array_equal(state.right, states[0].right)
        assert variance_of(state) == variance_of(states[0])


@JOINT
def test_the_residual_is_that_of_the_state(joint):
    data, _ = _small()
    state, info = _run(data, joint, Workers(1), 5)
    rows = np.repeat(np.arange(data.shape[0]), np.diff(data.rows.pointers))
    e = data.rows.values - bpmf.draw(state).at(rows, data.rows.indices)
    assert info.residual_square == pytest.approx(float(e @ e), rel=1e-4)


def test_the_basis_makes_both_matrices_diagonal():
    rng = np.random.default_rng(1)
    T, other = rng.standard_normal((4, 4)), rng.standard_normal((9, 4))
    counts = rng.integers(1, 5, 9)
    half = bpmf.Half(None, None, other, bpmf.FactorPrior(np.zeros(4), T), NO_SHIFTS, counts, None)
    B, inverse = bpmf.common_basis(half, Workers(1))
    np.testing.assert_allclose(B @ inverse, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(B.T @ (T @ T.T) @ B, np.eye(4), atol=1e-10)
    G = B.T @ (other.T @ (counts[:, None] * other)) @ B
    np.testing.assert_allclose(G, np.diag(np.diag(G)), atol=1e-10 * np.abs(G).max())


def test_both_ways_sample_the_same_posterior():
    """Predictions of two chains differ by their Monte Carlo errors, on average over the cells."""
    data, _ = _small(shape=(40, 30))
    cells = np.arange(40).repeat(30), np.tile(np.arange(30), 40)
    means, errors = [], []
    for joint in (True, False):
        prior = bpmf.Hyperprior(2.0, 4.0, 0.1)
        context = bpmf.Context(prior, joint, chain_key(2, int(joint)), Workers(1))
        state = bpmf.init(data.shape, 4, 0.5, np.dtype("float64"), np.random.default_rng(0))
        drawn = []
        for t in range(700):
            state, _ = bpmf.sweep(state, data, context)
            if t >= 100:
                drawn.append(bpmf.draw(state).at(*cells))
        batches = np.array(drawn).reshape(20, 30, -1).mean(axis=1)
        means.append(batches.mean(axis=0))
        errors.append(batches.var(axis=0, ddof=1) / 20)
    z = (means[0] - means[1]) / np.sqrt(errors[0] + errors[1])
    # The cells share factors: their squared scores vary together, so a bound on their average.
    assert np.mean(z**2) < 2.0


def test_a_guess_is_where_the_chain_starts():
    from fillrank.samplers.gasr import Options
    from fillrank.solvers.starts import spectral_start

    data, truth = _small(missing=0.2)
    options = Options(row_effects=False, column_effects=False, centres=False)
    rng = np.random.default_rng(0)
    guess = spectral_start(data, 6, options, Workers(1), rng)
    state = bpmf.init_at(guess, np.dtype("float32"), rng)
    assert state.left.shape == (150, 6)
    assert np.sqrt(np.mean((state.left @ state.right.T - truth) ** 2)) < 0.3
