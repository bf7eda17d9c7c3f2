import math
import re
import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats

from fillrank.posterior.diagnostics import (
    LARGEST_ERROR,
    SMALLEST_ESS,
    Judged,
    diagnose,
    diagnose_run,
)
from fillrank.run.recorder import Traces


def traces(n_chains=2, n_draws=400, n_probes=60, seed=0):
    """Independent draws of (residual variance, spectra, probes)."""
    rng = np.random.default_rng(seed)
    return (
        {"residual_variance": 1.0 + rng.standard_normal((n_chains, n_draws))},
        rng.standard_normal((n_chains, n_draws, 3)),
        rng.standard_normal((n_chains, n_draws, n_probes)),
    )


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.mark.parametrize("n_chains", [1, 2, 4])
def test_independent_draws_have_converged(n_chains):
    verdict = diagnose(*traces(n_chains), n_leading=3)
    assert verdict.converged
    assert (verdict.n_chains, verdict.n_draws) == (n_chains, 400)
    assert list(verdict.rhat) == [
        "residual_variance", "singular_value 1", "singular_value 2", "singular_value 3",
        "prediction (median)", "prediction (worst 5%)",
    ]  # fmt: skip
    assert verdict.rhat["prediction (median)"] < 1.02
    assert verdict.ess["prediction (median)"] == pytest.approx(400 * n_chains, rel=0.2)
    assert verdict.rhat["prediction (worst 5%)"] > verdict.rhat["prediction (median)"]
    assert verdict.ess["prediction (worst 5%)"] < verdict.ess["prediction (median)"]
    assert verdict.reason == ""


def test_effective_draws_of_a_correlated_chain():
    """AR(1) with coefficient 0.8: one in nine."""
    rng = np.random.default_rng(0)
    x = np.zeros((1, 4000, 20))
    for t in range(1, 4000):
        x[:, t] = 0.8 * x[:, t - 1] + 0.6 * rng.standard_normal((1, 20))
    variance, spectra, _ = traces(1, 4000)
    verdict = diagnose(variance, spectra, x, n_leading=0)
    assert verdict.ess["prediction (median)"] == pytest.approx(4000 / 9, rel=0.25)


def test_a_drift_in_a_single_chain():
    variance, spectra, probes = traces(1)
    probes += np.linspace(0, 5, 400)[:, np.newaxis]
    verdict = diagnose(variance, spectra, probes, 0)
    assert not verdict.converged
    assert "R-hat of the worst 5% of predictions" in verdict.reason


def test_chains_that_disagree():
    variance, spectra, probes = traces(2)
    probes[1] += 3.0
    verdict = diagnose(variance, spectra, probes, 0)
    assert not verdict.converged
    assert "R-hat of the worst 5% of predictions" in verdict.reason


def test_a_few_cells_that_disagree_are_enough():
    """The worst 5% decide, not the typical cell."""
    variance, spectra, probes = traces(2)
    probes[1, :, :6] += 3.0
    verdict = diagnose(variance, spectra, probes, 0)
    assert verdict.rhat["prediction (median)"] < 1.02
    assert not verdict.converged


def test_scalars_that_disagree():
    variance, spectra, probes = traces(2)
    variance["residual_variance"][1] += 3.0
    verdict = diagnose(variance, spectra, probes, 0)
    assert not verdict.converged
    assert "R-hat of residual_variance" in verdict.reason
    variance, spectra, probes = traces(2)
    spectra[1, :, 0] += 3.0
    assert "R-hat of singular_value 1" in diagnose(variance, spectra, probes, 1).reason


def test_scalars_whose_chains_hardly_differ_have_converged():
    """A Monte Carlo error below 2% of the value is enough, whatever R-hat says."""
    variance, spectra, probes = traces(2)
    trace = variance["residual_variance"]
    trace[1] += 3.0
    variance["residual_variance"] = 1e4 + trace
    verdict = diagnose(variance, spectra, probes, 0)
    judged = verdict.quantities["residual_variance"]
    assert judged.rhat > 1.5
    assert 0 < judged.error < LARGEST_ERROR
    assert verdict.converged


def test_a_run_that_ended_too_early_has_not_converged():
    ended = "the limit of 2000 sweeps was reached"
    verdict = diagnose(*traces(), n_leading=1, ended=ended)
    assert not verdict.converged
    assert verdict.reason == ended
    assert str(verdict).endswith(f"not converged: {ended}")


def test_too_few_effective_draws():
    """Predictions need effective draws as well as a small R-hat."""
    assert not Judged(rhat=1.0, ess=SMALLEST_ESS - 1).converged
    assert Judged(rhat=1.0, ess=SMALLEST_ESS).converged


def test_a_large_monte_carlo_error_has_not_converged_however_the_run_ended():
    """60 draws of 2 chains agree, but enlarge errors by some 1 / (2 * 120)."""
    verdict = diagnose(*traces(2, 60), n_leading=1)
    assert all(judged.converged for judged in verdict.quantities.values())
    assert 0.0025 < verdict.added_error < 0.01
    assert not verdict.converged
    assert verdict.reason.startswith(
        "the Monte Carlo error enlarges the error of predictions by 0."
    )
    assert verdict.reason.endswith("should by less than 0.25%")
    assert diagnose(*traces(2, 60), n_leading=1, judges_error=False).converged


@pytest.mark.parametrize("n_draws", [0, 1, 7])
def test_too_few_draws_to_judge(n_draws):
    variance, spectra, probes = traces(1, n_draws)
    verdict = diagnose(variance, spectra[:, :1], probes, 1)
    assert not verdict.converged
    assert verdict.rhat["prediction (median)"] == math.inf
    assert f"{n_draws} draws" in verdict.reason
    assert f"{n_draws} draws in 1 chain(s)" in str(verdict)


def test_constant_quantities_have_converged():
    verdict = diagnose(
        {"residual_variance": np.ones((1, 100))}, np.ones((1, 100, 2)), np.ones((1, 100, 5)), 2
    )
    assert set(verdict.rhat.values()) == {1.0}
    assert set(verdict.ess.values()) == {100.0}
    assert verdict.converged


def test_chains_at_different_constants_have_not_converged():
    variance, spectra, probes = traces(2)
    probes[0], probes[1] = 1.0, 2.0
    assert not diagnose(variance, spectra, probes, 0).converged


def test_of_what_is_traced_only_the_quality_of_the_fit_is_judged():
    """The shares of features that say nothing are close to 0, on any scale."""
    history, spectra, probes = traces()
    shares = 10.0 ** -np.arange(1.0, 3.0)[:, np.newaxis] * np.ones(probes.shape[:2])
    some_cells = np.zeros(probes.shape[2], dtype=int)
    run = Traces(
        history | {"row_missingness_share": shares},
        spectra,
        probes,
        some_cells,
        some_cells,
        0,
        1,
        50,
    )
    verdict = diagnose_run(run, n_factors=2)
    assert verdict.converged
    assert "row_missingness_share" not in verdict.quantities
    assert not diagnose({"share": shares}, spectra, probes, 0).converged


def test_the_table_that_is_printed():
    text = str(diagnose(*traces(), n_leading=1))
    assert text.splitlines()[0].split() == ["quantity", "R-hat", "ESS", "MC", "error"]
    assert text.splitlines()[-2:] == ["400 draws in 2 chain(s)", "converged"]
    assert re.search(r"the Monte Carlo error enlarges the error of predictions by 0\.\d+%", text)
    assert len(text.splitlines()) == 8


@pytest.mark.parametrize("n_chains", [1, 2, 3])
@pytest.mark.parametrize("n_draws", [8, 9, 51, 200])
def test_cells_are_judged_as_arviz_judges_each(n_chains, n_draws):
    """A single chain by the agreement of its halves; the worst 5% are judged by the second of 21."""
    variance, spectra, probes = traces(n_chains, n_draws, 21)
    probes = np.cumsum(probes, axis=1) + 10.0 * probes
    chains = probes
    if n_chains == 1:
        half = n_draws // 2
        chains = np.stack((probes[0, -2 * half : -half], probes[0, -half:]))
    rhat = array_stats.rhat(chains, chain_axis=0, draw_axis=1, method="split")
    ess = array_stats.ess(chains, chain_axis=0, draw_axis=1, method="mean")
    verdict = diagnose(variance, spectra, probes, 0)
    assert verdict.rhat["prediction (median)"] == pytest.approx(np.sort(rhat)[10], rel=1e-8)
    assert verdict.rhat["prediction (worst 5%)"] == pytest.approx(np.sort(rhat)[-2], rel=1e-8)
    assert verdict.ess["prediction (median)"] == pytest.approx(np.sort(ess)[10], rel=1e-8)
    assert verdict.ess["prediction (worst 5%)"] == pytest.approx(np.sort(ess)[1], rel=1e-8)
