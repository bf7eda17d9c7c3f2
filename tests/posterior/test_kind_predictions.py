"""Predictions of values of every kind, from draws of latent numbers."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from fillrank.errors import NotSupportedError
from fillrank.posterior import kind_predictions as module
from fillrank.posterior.kind_predictions import (
    Latent,
    level_probabilities,
    level_quantile,
    levels_of,
    log_density,
    log_probability,
    mean_value,
)
from fillrank.posterior.kinds import KindPosterior
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.posterior.mean import mean_draw
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Draw, Noise
from fillrank.table.latent import FAR, Coding, Scale
from fillrank.table.units import Units
from reference.p_values import ALARM
from reference.planted import plant

ALONE = Workers(1)
ANY = (-np.inf, np.inf)
SCALES = {
    "number": Scale("number", np.zeros(0), 10.0, 5.0, 0, ANY),
    "positive": Scale("positive", np.zeros(0), 1.0, 0.8, 0, (0.0, np.inf)),
    "count": Scale("count", np.zeros(0), 1.5, 0.9, 0, (0.0, np.inf)),
    "ordered": Scale("ordered", np.arange(1.0, 6.0), 0.0, 1.0, 0, ANY),
    "yes_no": Scale("yes_no", np.array([0.0, 1.0]), 0.0, 1.0, 5, ANY),
    # By falling frequency, so that the values are in no order.
    "category": Scale("category", np.array([7.0, 2.0, 9.0, 3.0]), 0.0, 1.0, 7, ANY),
}
N_DRAWS = 24


def _limits(rng):
    """The ends (2, 13) of the intervals of levels under one draw."""
    theta = [-1.2, *np.sort(rng.uniform(-1.2, 1.3, 2)), 1.3]
    low, high = [-FAR, *theta, -FAR, 0.3], [*theta, FAR, 0.3, FAR]
    for end in (0.2, -0.4, 0.6):
        low, high = [*low, -FAR, end], [*high, end, FAR]
    return np.array([low, high])


def _latent(n_cells, seed=0, n_draws=N_DRAWS):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(n_cells) + 0.4 * rng.standard_normal((n_draws, n_cells))
    s = rng.uniform(0.3, 1.5, (n_draws, n_cells))
    return Latent(z, s, np.array([_limits(np.random.default_rng(t)) for t in range(n_draws)]))


def _latents(kind, n_cells):
    return [_latent(n_cells, seed=which) for which in range(SCALES[kind].n_latent)]


# Levels


@pytest.mark.parametrize("kind", ["ordered", "yes_no", "category"])
def test_probabilities_of_levels_are_shares_of_many_values(kind):
    """Latent numbers of every draw, by its own thresholds; the p-values share ALARM."""
    scale, rng, n = SCALES[kind], np.random.default_rng(2), 20_000
    columns = _latents(kind, n_cells=3)
    found = level_probabilities(scale, columns)
    assert found.shape == (3, scale.levels.size)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    shares = np.zeros(found.shape)
    for t in range(N_DRAWS):
        for cell in range(3):
            means, sds = (np.array([c[k][t, cell] for c in columns])[:, None] for k in (0, 1))
            y = means + sds * rng.standard_normal((len(columns), n))
            values = levels_of(scale, y, columns[0].limits[t])
            shares[cell] += [np.mean(values == level) / N_DRAWS for level in scale.levels]
    score = (shares - found) / np.sqrt(found * (1.0 - found) / (n * N_DRAWS) + 1e-12)
    assert 2.0 * stats.norm.sf(np.abs(score).max()) > ALARM / score.size


def test_a_level_is_an_interval_that_includes_its_upper_end():
    limits = _limits(np.random.default_rng(1))
    y = np.array([[limits[1, 0], np.nextafter(limits[1, 0], 9.0), -FAR, FAR]])
    assert levels_of(SCALES["ordered"], y, limits).tolist() == [1.0, 2.0, 1.0, 5.0]


@pytest.mark.parametrize("tail", [0.05, 0.5, 0.95, 1.0])
def test_quantiles_of_levels(tail):
    p = np.random.default_rng(3).dirichlet(np.ones(5), 200)
    found = level_quantile(p, tail)
    below = np.array([row[:k].sum() for row, k in zip(p, found, strict=True)])
    up_to = np.array([row[: k + 1].sum() for row, k in zip(p, found, strict=True)])
    assert (below < tail).all()
    assert (up_to >= tail - 1e-9).all()


# Means


def test_mean_of_a_number():
    latent, scale = _latent(7), SCALES["number"]
    np.testing.assert_allclose(mean_value(scale, latent), 10.0 + 5.0 * latent.signals.mean(axis=0))


def test_mean_of_a_positive_number_is_that_of_the_lognormal_distribution():
    latent, scale = _latent(7), SCALES["positive"]
    law = stats.lognorm(0.8 * latent.sds, scale=np.exp(1.0 + 0.8 * latent.signals))
    np.testing.assert_allclose(mean_value(scale, latent), law.mean().mean(axis=0), rtol=1e-12)


def _mean_count(scale, latent):
    """The sum of P(x >= k), far beyond the median."""
    z = scale.location + scale.scale * latent.signals
    s = scale.scale * latent.sds
    k = np.arange(1.0, 200_000.0)[:, None]
    total = np.zeros(z.shape)
    for t in range(len(z)):
        total[t] = special.ndtr((z[t] - np.log(k)) / s[t]).sum(axis=0)
    return total.mean(axis=0)


@pytest.mark.parametrize(("location", "spread"), [(-1.0, 0.3), (1.5, 0.9), (1.5, 0.2), (4.0, 0.6)])
def test_mean_of_a_count(location, spread):
    latent = _latent(3, n_draws=4)
    scale = SCALES["count"]._replace(location=location, scale=spread)
    np.testing.assert_allclose(mean_value(scale, latent), _mean_count(scale, latent), rtol=1e-4)


def test_mean_of_a_large_count_is_that_of_its_continuous_number():
    """Less a half, and without overflow beyond."""
    latent = _latent(5)
    scale = SCALES["count"]._replace(location=12.0, scale=0.3)
    continuous = mean_value(scale._replace(kind="positive"), latent)
    np.testing.assert_allclose(mean_value(scale, latent), continuous - 0.5, rtol=1e-6)
    with np.errstate(over="raise"):
        assert np.isfinite(mean_value(scale._replace(location=1e4), latent)).all()


@pytest.mark.parametrize("kind", ["number", "positive", "count"])
def test_means_are_within_the_bounds(kind):
    found = mean_value(SCALES[kind]._replace(bounds=(2.0, 9.0)), _latent(200))
    assert found.min() == 2.0
    assert found.max() == 9.0


# Densities


def _density(scale, latent, values):
    """The density, or probability, of the mixture over the draws, at values in one cell."""
    wide = Latent(*(np.repeat(each, len(values), axis=1) for each in latent[:2]), latent.limits)
    return np.exp(log_density(scale, wide, values)).mean(axis=0)


def test_density_of_a_positive_number_integrates_to_1():
    latent, scale = _latent(1), SCALES["positive"]
    t = np.linspace(-12.0, 16.0, 40_001)
    values = np.exp(t)
    assert integrate.simpson(_density(scale, latent, values) * values, x=t) == pytest.approx(1.0)
    law = stats.lognorm(0.8 * latent.sds[:, 0], scale=np.exp(1.0 + 0.8 * latent.signals[:, 0]))
    expected = law.pdf(np.array([0.5, 3.0, 40.0])[:, None]).mean(axis=1)
    np.testing.assert_allclose(_density(scale, latent, np.array([0.5, 3.0, 40.0])), expected)


def test_probabilities_of_counts_sum_to_1():
    latent, scale = _latent(1), SCALES["count"]
    counts = np.arange(200_000.0)
    p = _density(scale, latent, counts)
    assert p.sum() == pytest.approx(1.0, abs=1e-6)
    assert counts @ p == pytest.approx(_mean_count(scale, latent)[0], rel=1e-3)


def test_log_probability_of_an_interval():
    high = np.linspace(-30.0, 30.0, 601)
    for width in (1e-3, 0.5, 5.0):
        found = log_probability(high - width, high)
        middle = np.abs(high) < 4.0
        plain = np.log(special.ndtr(high[middle]) - special.ndtr(high[middle] - width))
        np.testing.assert_allclose(found[middle], plain, rtol=1e-9)
        np.testing.assert_allclose(found, log_probability(-high, -high + width), rtol=1e-9)
        density = stats.norm.logpdf(high - 0.5 * width) + math.log(width)
        if width < 0.01:
            np.testing.assert_allclose(found, density, atol=2e-3)
    assert log_probability(np.array([-np.inf]), np.array([0.0])) == pytest.approx(math.log(0.5))
    assert log_probability(np.array([40.0]), np.array([np.inf])) == pytest.approx(
        special.log_ndtr(-40.0)
    )


# The posterior of a table


def _posterior(n_rows=6, n_draws=40, seed=1):
    """One column of each kind, with draws around one signal."""
    rng = np.random.default_rng(seed)
    scales = tuple(SCALES.values())
    first_latent = np.append(0, np.cumsum([each.n_latent for each in scales]))
    coding = Coding(
        scales, np.arange(6), first_latent, _limits(rng), np.array(list(SCALES), dtype=object)
    )
    n = coding.n_latent
    left, right = rng.standard_normal((n_rows, 2)), rng.standard_normal((n, 2))
    draws = [
        Draw(
            left + 0.2 * rng.standard_normal(left.shape),
            right + 0.2 * rng.standard_normal(right.shape),
            Noise(0.5, np.ones(n_rows), rng.uniform(0.5, 2.0, n)),
            limits=_limits(rng),
        )
        for _ in range(n_draws)
    ]
    units = Units.equal(0.0, 1.0, n, None)
    return KindPosterior(LowRankPosterior(draws, units, mean_draw(draws)), coding)


@pytest.fixture(scope="module")
def posterior():
    return _posterior()


@pytest.fixture(scope="module")
def imputed(posterior):
    """(imputations, rows, columns)."""
    n = 4000
    drawn = posterior.imputations(n, 0)
    return np.array([[drawn.row(t, i) for i in range(6)] for t in range(n)])


NAMES = list(SCALES)


def _cells(kind):
    return np.arange(6), np.full(6, NAMES.index(kind))


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("kind", ["number", "positive"])
def test_intervals_cover_imputations_at_their_level(posterior, imputed, kind, level):
    """Draws stand for the posterior, so that shares have the errors of independent imputations."""
    i, j = _cells(kind)
    low, high = posterior.interval(i, j, level, "observation", ALONE)
    values = imputed[:, :, j[0]]
    n, tail = len(imputed), 0.5 * (1.0 - level)
    for outside in (np.mean(values < low, axis=0), np.mean(values > high, axis=0)):
        score = (outside - tail) / math.sqrt(tail * (1.0 - tail) / n)
        assert 2.0 * stats.norm.sf(np.abs(score).max()) > ALARM / 12


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("kind", ["ordered", "yes_no", "count"])
def test_intervals_of_levels_and_counts_leave_out_no_more_than_they_may(
    posterior, imputed, kind, level
):
    """Their ends cannot be at any probability: both tails are at most as large as they may be."""
    i, j = _cells(kind)
    low, high = posterior.interval(i, j, level, "observation", ALONE)
    values, tail = imputed[:, :, j[0]], 0.5 * (1.0 - level)
    error = stats.norm.isf(ALARM / 12) * math.sqrt(tail * (1.0 - tail) / len(imputed))
    for step in (-1.0, 1.0):
        end = low if step < 0 else high
        outside = np.mean(step * values > step * end, axis=0)
        including = np.mean(step * values >= step * end, axis=0)
        assert (outside < tail + error).all()
        assert (including > tail - error).all()


def test_a_category_has_no_interval(posterior):
    low, high = posterior.interval(*_cells("category"), 0.9, "observation", ALONE)
    assert np.isnan(low).all()
    assert np.isnan(high).all()


@pytest.mark.parametrize("kind", NAMES)
def test_predictions_are_statistics_of_imputations(posterior, imputed, kind):
    i, j = _cells(kind)
    values, scale = imputed[:, :, j[0]], SCALES[kind]
    if kind != "category":
        means = posterior.predict(i, j, ALONE, "mean")
        error = values.std(axis=0) / math.sqrt(len(values))
        score = (values.mean(axis=0) - means) / np.maximum(error, 1e-12)
        assert np.abs(score).max() < 5.0
        medians = posterior.predict(i, j, ALONE, "median")
        n = len(values)
        slack = 4.5 * math.sqrt(0.25 / n)
        assert (np.mean(values <= medians, axis=0) > 0.5 - slack).all()
        assert (np.mean(values >= medians, axis=0) > 0.5 - slack).all()
    if scale.has_levels:
        p = posterior.probabilities(i, j[0], ALONE)
        levels = posterior.level_values(int(j[0]))
        assert levels.tolist() == sorted(scale.levels)
        shares = np.array([[np.mean(values[:, c] == level) for level in levels] for c in range(6)])
        score = (shares - p) / np.sqrt(p * (1.0 - p) / len(values) + 1e-9)
        assert np.abs(score).max() < 5.0
        mode = posterior.predict(i, j, ALONE, "mode")
        np.testing.assert_array_equal(mode, levels[p.argmax(axis=1)])
    usual = {"ordered": "median", "yes_no": "mode", "category": "mode"}.get(kind, "mean")
    np.testing.assert_array_equal(
        posterior.predict(i, j, ALONE), posterior.predict(i, j, ALONE, usual)
    )


def test_cells_of_all_kinds_in_one_call(posterior):
    """The same numbers in any order of cells, on two threads, and as a block."""
    rows, columns = np.meshgrid(np.arange(6), np.arange(6), indexing="ij")
    rows, columns = rows.ravel(), columns.ravel()
    block = posterior.block(np.arange(6), np.arange(6))
    order = np.random.default_rng(1).permutation(36)
    with Workers(2) as workers:
        found = posterior.predict(rows[order], columns[order], workers)
    np.testing.assert_array_equal(found, block.ravel()[order])
    assert np.isfinite(block).all()


@pytest.mark.parametrize("kind", ["ordered", "yes_no", "category"])
def test_log_density_of_levels_is_their_probability(posterior, kind):
    i, j = _cells(kind)
    p = posterior.probabilities(i, j[0], ALONE)
    for c, level in enumerate(posterior.level_values(int(j[0]))):
        found = posterior.log_density(i, j, np.full(6, level), ALONE)
        np.testing.assert_allclose(found, np.log(p[:, c]), rtol=1e-12)


@pytest.mark.parametrize("kind", ["number", "positive"])
def test_log_density_of_numbers_integrates_to_1(posterior, kind):
    t = np.linspace(-12.0, 14.0, 20_001)
    values = 10.0 + 5.0 * t if kind == "number" else np.exp(t)
    per_step = 5.0 if kind == "number" else values
    j = np.full(t.size, NAMES.index(kind))
    density = np.exp(posterior.log_density(np.full(t.size, 2), j, values, ALONE))
    assert integrate.simpson(density * per_step, x=t) == pytest.approx(1.0, abs=1e-6)


def test_a_column_of_numbers_has_no_probabilities(posterior):
    with pytest.raises(NotSupportedError, match="column 'count' has no levels"):
        posterior.probabilities(np.arange(2), NAMES.index("count"), ALONE)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_a_category_has_its_most_probable_value_for_any_statistic(posterior, statistic):
    """Its values have no order, so that they have neither."""
    cells = _cells("category")
    found = posterior.predict(*cells, ALONE, statistic)
    np.testing.assert_array_equal(found, posterior.predict(*cells, ALONE, "mode"))


def test_imputations_are_the_same_however_they_are_queried(posterior):
    drawn = posterior.imputations(3, 5)
    rows, columns = np.array([0, 0, 3, 5]), np.array([2, 5, 4, 0])
    found = drawn.at(1, rows, columns)
    assert found.tolist() == [drawn.row(1, i)[j] for i, j in zip(rows, columns, strict=True)]


BUGS = {
    "thresholds of the first draw": (
        "level_probabilities", "(each - z) / s", "(each[:1] - z) / s", "ordered",
    ),
    "later values without those before": (
        "_category_probabilities", "(none_before * (1.0 - later))", "(1.0 - later)", "category"
    ),
    "probabilities of means": (
        "_category_probabilities", "none_before = none_before * later",
        "none_before = none_before * later.mean(axis=0)", "category",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    function, old, new, kind = BUGS[name]
    plant(monkeypatch, module, function, old, new)
    monkeypatch.setitem(globals(), "level_probabilities", module.level_probabilities)
    with pytest.raises(AssertionError):
        test_probabilities_of_levels_are_shares_of_many_values(kind)
