"""Leave-one-out densities, and Monte Carlo errors of single cells."""

import numpy as np
import pytest
from scipy.special import logsumexp

import fillrank as fr
from fillrank.errors import FillrankError
from fillrank.posterior.loo import good_k, leave_one_out
from fillrank.runtime.threads import Workers
from helpers.fitted_models import fitted
from helpers.mixed_tables import fit_mixed, mixed_frame
from helpers.quick_fits import quick, table

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")


@pytest.fixture(scope="module")
def model():
    data, _ = fr.synthetic(60, 30, rank=2, noise=0.5, missing=0.3, random_state=0)
    return fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(data)


def test_log_likelihoods_average_to_the_log_density(model):
    data = model.observations_
    cells = data.row_index, data.column_index, data.values
    terms = model.posterior_.log_likelihood(*cells, None)
    expected = model.posterior_.log_density(*cells, Workers(1))
    np.testing.assert_allclose(logsumexp(terms, axis=0) - np.log(len(terms)), expected, rtol=1e-9)


def test_log_likelihoods_of_every_kind_average_to_the_log_density():
    model = fit_mixed(mixed_frame())
    data = model.observations_
    exact = np.flatnonzero(data.cells < 0)
    cells = data.row_index[exact], data.column_index[exact], data.values[exact]
    terms = model.posterior_.log_likelihood(*cells, None)
    assert terms.shape == (model.posterior_.n_draws, exact.size)
    expected = model.posterior_.log_density(*cells, Workers(1))
    np.testing.assert_allclose(
        logsumexp(terms, axis=0) - np.log(len(terms)), expected, rtol=1e-5, atol=1e-8
    )
    assert model.loo().elpd.size == exact.size


def test_weights_divide_the_variance(model):
    data = model.observations_
    cells = data.row_index[:5], data.column_index[:5], data.values[:5]
    posterior = model.posterior_
    signal = posterior.units.restore(posterior.signals(*cells[:2]), cells[1])
    variance = posterior._noise(*cells[:2]) * posterior.units.scale[cells[1]] ** 2 / 4.0
    expected = -0.5 * (cells[2] - signal) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
    found = posterior.log_likelihood(*cells, np.full(5, 4.0))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_mean_with_known_variance_has_the_exact_leave_one_out_density():
    """x_i ~ N(mu, 1), flat prior: left out, x_i ~ N(mean of the others, 1 + 1 / (n - 1)).

    The Monte Carlo error of 4,000 draws is some 0.01 an entry. Without the importance weights the
    densities differ by about p_loo = 1 in sum.
    """
    rng = np.random.default_rng(0)
    n = 20
    x = rng.normal(size=n)
    mu = x.mean() + rng.normal(size=4000) / np.sqrt(n)
    terms = -0.5 * (x - mu[:, np.newaxis]) ** 2 - 0.5 * np.log(2 * np.pi)
    elpd, k, p_loo = leave_one_out(lambda part: terms[:, part], n)
    others = (x.sum() - x) / (n - 1)
    variance = 1 + 1 / (n - 1)
    exact = -0.5 * (x - others) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
    np.testing.assert_allclose(elpd, exact, atol=0.03)
    assert abs(elpd.sum() - exact.sum()) < 0.1
    in_sample = logsumexp(terms, axis=0) - np.log(len(terms))
    assert in_sample.sum() - exact.sum() > 0.4
    np.testing.assert_allclose(p_loo, in_sample - elpd, atol=1e-9)
    assert (k < 0.7).all()


def test_blocks_do_not_matter(model, monkeypatch):
    whole = model.loo()
    monkeypatch.setattr("fillrank.posterior.loo._BLOCK", 17)
    np.testing.assert_allclose(model.loo().elpd, whole.elpd)


def test_it_is_near_the_score_of_held_out_entries():
    data, _ = fr.synthetic(100, 50, rank=2, noise=0.5, missing=0.3, random_state=1)
    train, test = data.split(0.2, random_state=0)
    model = fr.GASR(n_sweeps=300, random_state=0, progress=False).fit(train)
    # The standard error of the score of 700 entries is 0.03.
    assert model.loo().elpd.mean() == pytest.approx(fr.score(test, model)["log_score"], abs=0.12)


def test_the_table_has_the_largest_k_first(model):
    found = model.loo()
    k = found.entries["pareto_k"].to_numpy()
    assert (np.diff(k) <= 0).all()
    assert found.n_bad == np.count_nonzero(found.pareto_k > found.good_k)
    assert f"{len(model.observations_):,} entries" in repr(found)
    assert found.good_k == good_k(model.posterior_.n_draws)


def test_a_sample_of_the_entries(model):
    some, again = model.loo(n_entries=50, random_state=3), model.loo(n_entries=50, random_state=3)
    np.testing.assert_array_equal(some.elpd, again.elpd)
    assert some.elpd.size == 50
    assert np.isin(some.elpd, model.loo().elpd).all()


def test_an_outlier_has_a_low_density():
    X = table(60, 12)
    i, j = np.argwhere(~np.isnan(X))[7]
    X[i, j] += 20
    found = quick(n_sweeps=100).fit(X).loo()
    worst = found.entries.iloc[found.entries["elpd"].argmin()]
    assert (worst["row"], worst["column"]) == (i, j)


def test_monte_carlo_errors_of_cells(model):
    """The effective size is at most about the number of draws, and gives the Monte Carlo error."""
    cells = model.prediction_diagnostics([0, 1, 2], [3, 4, 5])
    assert cells.columns.tolist() == ["row", "column", "sd", "mcse", "ess", "r_hat"]
    n = model.posterior_.n_draws
    assert (cells["ess"] < 2 * n).all()
    assert (cells["r_hat"] < 1.3).all()
    np.testing.assert_allclose(cells["mcse"], cells["sd"] / np.sqrt(cells["ess"]))
    signal = model.posterior_.signals(np.array([0, 1, 2]), np.array([3, 4, 5]))
    scale = model.posterior_.units.scale[[3, 4, 5]]
    np.testing.assert_allclose(cells["sd"], scale * signal.std(axis=0, ddof=1))


def test_chains_that_disagree_are_found(model):
    """Planted: the draws of the second chain, every second one, are of another table."""
    posterior = model.posterior_
    draws = [
        draw._replace(left=-draw.left) if number % 2 else draw
        for number, draw in enumerate(posterior.draws)
    ]
    planted = fr.Completion(
        "GASR", model.completion_.settings, model.observations_,
        type(posterior)(draws, posterior.units, posterior.mean), model.completion_.record,
    )  # fmt: skip
    rows, columns = np.indices((5, 5)).reshape(2, -1)
    assert planted.prediction_diagnostics(rows, columns)["r_hat"].median() > 1.5
    assert model.prediction_diagnostics(rows, columns)["r_hat"].median() < 1.1


def test_cells_of_every_kind():
    model = fit_mixed(mixed_frame(), n_sweeps=100)
    cells = model.prediction_diagnostics("p1", list(mixed_frame().columns))
    assert np.isfinite(cells[["sd", "mcse", "ess", "r_hat"]]).all(axis=None)


def test_what_has_no_draws_is_refused():
    solved = fitted("SoftImpute").completion_
    for query in (solved.loo, lambda: solved.prediction_diagnostics(0, 0)):
        with pytest.raises(FillrankError, match="GASR and BPMF have them"):
            query()
    with pytest.raises(FillrankError, match="n_entries"):
        fitted("GASR").loo(n_entries=0)
