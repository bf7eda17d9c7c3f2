"""Intervals that hold what they promise, and the rank, on matrices of known rank.

Tolerances: a fit's coverage is a mean over its cells, which share rows and columns; from fit to fit it
varies by about 0.007 (90% intervals, 200 x 150, rank 4), so the mean of six by 0.003. The 2 points that
are allowed at 90% are more than five of these, beside a bias of -0.006 from the finite number of draws.
"""

import numpy as np
import pytest

import fillrank as fr
from helpers.quick_fits import quick

pytestmark = [
    pytest.mark.usual_trial,
    pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning"),
]

LEVELS = {0.5: 0.03, 0.8: 0.025, 0.9: 0.02, 0.95: 0.02}


@pytest.fixture(scope="module")
def fits():
    """(model, truth, noise, rows, columns) at several shares of missing entries and noise levels."""
    made = []
    for seed, (missing, noise) in enumerate(
        [(0.3, 0.5), (0.3, 1.0), (0.6, 0.5), (0.6, 1.0), (0.8, 0.5), (0.8, 1.0)]
    ):
        observations, truth = fr.synthetic(200, 150, 4, noise, missing, random_state=seed)
        model = quick(n_sweeps=300, burn_in=100, random_state=seed).fit(observations)
        rows, columns = observations.missing_positions(0, 200)
        chosen = np.random.default_rng(seed).choice(rows.size, 4000, replace=False)
        made.append((model, truth, noise, rows[chosen], columns[chosen]))
    return made


@pytest.mark.parametrize("kind", ["signal", "observation"])
def test_coverage_of_intervals(fits, kind):
    for level, tolerance in LEVELS.items():
        shares = []
        for model, truth, noise, rows, columns in fits:
            low, high = model.predict_interval(rows, columns, level, kind)
            value = truth[rows, columns]
            if kind == "observation":
                value = value + noise * np.random.default_rng(9).standard_normal(value.size)
            shares.append(np.mean((low <= value) & (value <= high)))
        assert np.mean(shares) == pytest.approx(level, abs=tolerance), (level, shares)
        assert min(shares) > level - 2 * tolerance


def test_observation_intervals_miss_equally_on_both_sides(fits):
    below, above = [], []
    for model, truth, noise, rows, columns in fits:
        low, high = model.predict_interval(rows, columns, 0.8, "observation")
        value = truth[rows, columns] + noise * np.random.default_rng(9).standard_normal(rows.size)
        below.append(np.mean(value < low))
        above.append(np.mean(value > high))
    assert np.mean(below) == pytest.approx(0.1, abs=0.015)
    assert np.mean(above) == pytest.approx(0.1, abs=0.015)


def test_noise_and_rank(fits):
    for model, _, noise, _, _ in fits:
        assert model.noise_variance_ == pytest.approx(noise**2, rel=0.15)
        assert model.rank_ == 4
        assert model.singular_values_[3] > 3 * model.singular_values_[4]


def test_error_is_that_of_the_posterior(fits):
    """The mean squared error of predictions is what the posterior variance says."""
    for model, truth, _, rows, columns in fits:
        values = np.array(
            [
                np.einsum("pk,pk->p", w.left[rows], w.right[columns], dtype=float)
                for w in model.posterior_.draws
            ]
        )
        expected = model.posterior_.units.shared_scale**2 * values.var(axis=0).mean()
        error = np.mean((model.predict(rows, columns) - truth[rows, columns]) ** 2)
        assert error == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize(
    ("shape", "rank", "missing"),
    [((80, 60), 1, 0.3), ((200, 40), 3, 0.4), ((40, 200), 3, 0.4), ((100, 90), 8, 0.2)],
)
def test_rank_is_found(shape, rank, missing):
    observations, _ = fr.synthetic(*shape, rank, 0.5, missing, random_state=0)
    model = quick(n_sweeps=200).fit(observations)
    assert model.rank_ == rank
    assert model.rank_probabilities_[rank] > 0.5
    assert sum(model.rank_probabilities_.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("shape", [(80, 60), (30, 150)])
def test_pure_noise_has_rank_0(shape):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    X[rng.random(shape) < 0.3] = np.nan
    model = quick(n_sweeps=120).fit(X)
    assert model.rank_ == 0
    assert model.noise_variance_ == pytest.approx(1.0, rel=0.15)
    assert np.std(model.predict_block(np.arange(shape[0]), np.arange(shape[1]))) < 0.3


def test_effects_alone_have_rank_0():
    rng = np.random.default_rng(0)
    X = 3 * rng.standard_normal((60, 1)) + 2 * rng.standard_normal(40) + 5
    X = X + 0.3 * rng.standard_normal(X.shape)
    model = quick(n_sweeps=120).fit(X)
    assert model.rank_ == 0
    assert model.noise_variance_ == pytest.approx(0.09, rel=0.15)
    # Without effects, two factors have to stand in for them.
    assert quick(n_sweeps=120, effects="mean", centres=False).fit(X).rank_ == 2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", [(20, 6), (20, 4), (10, 5)])
def test_noise_of_small_complete_tables_is_plausible(shape, seed):
    """Monte Carlo EM must not run into sigma = 0."""
    observations, _ = fr.synthetic(*shape, 1, 0.3, 0.0, random_state=seed)
    model = quick(n_sweeps=150, random_state=seed).fit(observations)
    assert 0.09 / 3 < model.noise_variance_ < 0.09 * 3
