"""How a fit runs: its length, its chains, Ctrl-C, and what it says about itself."""

import pickle
import warnings
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import ConvergenceWarning, InputError
from fillrank.estimators import sampled
from fillrank.run import loop, recorder
from fillrank.run.loop import start_run
from fillrank.samplers import gasr
from fillrank.samplers.model import Draw
from helpers.quick_fits import NAN, SHORT, quick, table

X = table(20, 12) * np.geomspace(1, 30, 12)  # each column has its own unit: noise is not tried
quiet = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")


def interrupt_after(monkeypatch, k):
    """Make Ctrl-C come in the sweep after the k-th."""
    sweep, count = gasr.sweep, 0

    def interrupted(*arguments):
        nonlocal count
        count += 1
        if count > k:
            raise KeyboardInterrupt
        return sweep(*arguments)

    monkeypatch.setattr(gasr, "sweep", interrupted)


@quiet
def test_a_number_of_sweeps():
    model = quick(n_sweeps=21).fit(X)
    assert model.n_sweeps_ == 21
    assert model.stop_reason_ == "all 21 sweeps done"
    assert {trace.shape for trace in model.history_.values()} == {(1, 21)}
    assert len(model.posterior_.draws) == 11  # half of a short run is burn-in
    assert len(quick(n_sweeps=21, burn_in=4).fit(X).posterior_.draws) == 17
    assert len(quick(n_sweeps=21, burn_in=0).fit(X).posterior_.draws) == 21


@quiet
@pytest.mark.parametrize("burn_in", [0, 15])
def test_hyperparameters_are_sampled_in_every_sweep(burn_in):
    """The noise only after the first sweeps, so that it cannot decrease before the factors form."""
    history = quick(n_sweeps=40, burn_in=burn_in, noise="both", robust=True).fit(X).history_
    for name in ("a", "b"):
        assert len(set(history[name][0])) == 40
    assert len(set(history["noise_variance"][0][:10])) == 1
    assert len(set(history["noise_variance"][0][10:])) == 30
    for name in ("row_degrees", "column_degrees", "entry_degrees"):
        assert len(set(history[name][0][10:])) > 3  # of 48 possible values


@quiet
def test_the_published_sampler_estimates_hyperparameters_every_five_sweeps():
    published = fr.GASR.as_published(n_sweeps=40, random_state=0, progress=False).fit(X)
    assert len(published.posterior_.draws) == 40
    for name in ("a", "b", "noise_variance"):
        trace = published.history_[name][0]
        assert 1 < len(set(trace)) <= 9
        assert np.flatnonzero(np.diff(trace)).tolist() == list(range(3, 39, 5))


def test_auto_stops_by_its_rule():
    model = quick(n_sweeps="auto").fit(X)
    n = model.observations_.values.size
    assert loop.auto_burn_in(n) + 100 <= model.n_sweeps_ < loop.auto_most_sweeps(n)
    assert f"less than {100 * loop.ENOUGH:g}%" in model.stop_reason_
    assert model.diagnostics().converged


@quiet
def test_auto_has_a_limit(monkeypatch):
    monkeypatch.setattr(sampled, "auto_most_sweeps", lambda n_entries: 60)
    model = quick(n_sweeps="auto", burn_in=20).fit(X)
    assert model.n_sweeps_ == 60
    assert "limit of 60 sweeps" in model.stop_reason_
    assert model.reached_limit_
    assert not model.diagnostics().converged
    assert model.diagnostics().reason == model.stop_reason_
    # Neither some more sweeps nor another way to ask for as many make its Monte Carlo error small.
    longer, plain = model.run_longer(20), quick(n_sweeps=80, burn_in=20).fit(X)
    for run in (longer, plain):
        assert run.stop_reason_ == "all 80 sweeps done"
        assert not run.diagnostics().converged
        assert run.diagnostics().added_error > loop.ENOUGH
    assert longer.diagnostics().reason == plain.diagnostics().reason


def test_two_chains_by_default():
    assert fr.GASR().n_chains == fr.BPMF().n_chains == 2


@quiet
def test_chains():
    one, three = quick(burn_in=0).fit(X), quick(n_chains=3, burn_in=0).fit(X)
    for name, trace in three.history_.items():
        assert trace.shape == (3, 20)
        np.testing.assert_array_equal(trace[0], one.history_[name][0])
    assert len(set(three.history_["residual_variance"][:, -1])) == 3
    assert len(three.posterior_.draws) == 60
    for got, expected in zip(three.posterior_.draws[::3], one.posterior_.draws, strict=True):
        np.testing.assert_array_equal(got.left, expected.left)
    verdict = three.diagnostics()
    assert (verdict.n_chains, verdict.n_draws) == (3, 20)
    assert "20 draws in 3 chain(s)" in str(verdict)


@quiet
def test_chains_share_neither_start_nor_stream(monkeypatch):
    seen = []
    monkeypatch.setattr(
        sampled,
        "start_run",
        lambda chains, *rest: seen.extend(chains) or start_run(chains, *rest),
    )
    quick(n_chains=3, units="table", noise="both").fit(X)
    assert len({int(chain.context.key) for chain in seen}) == 3
    assert len({chain.state.left.tobytes() for chain in seen}) == 3


def test_chains_that_disagree_have_not_converged():
    model = quick(n_sweeps=1000, n_chains=2, noise="one").fit(X)
    assert model.diagnostics().converged
    apart = np.array([0.0, 10.0])[:, None, None]
    traces = model.traces_._replace(probes=model.traces_.probes + apart)
    completion = model.completion_
    wrong = replace(completion, record=replace(completion.record, traces=traces))
    assert wrong.diagnostics().rhat["prediction (median)"] > 1.5
    assert not wrong.diagnostics().converged


@quiet
def test_draws_are_thinned(monkeypatch):
    every = quick(n_sweeps=60, burn_in=10).fit(X)
    monkeypatch.setattr(recorder, "MOST_DRAWS", 16)
    thinned = quick(n_sweeps=60, burn_in=10).fit(X)
    assert len(every.posterior_.draws) == 50
    assert len(thinned.posterior_.draws) == 12  # of 50, every fourth
    for got, expected in zip(thinned.posterior_.draws, every.posterior_.draws[3::4], strict=True):
        np.testing.assert_array_equal(got.left, expected.left)
    assert np.isfinite(thinned.fit_transform(X)).all()


def test_ctrl_c_returns_what_was_sampled(monkeypatch):
    whole = quick(n_sweeps=200).fit(X)
    interrupt_after(monkeypatch, 130)
    with pytest.warns(
        ConvergenceWarning,
        match=r"not converged: interrupted after 130 of at most 200 sweeps\. .*run_longer.* Stored",
    ):
        model = quick(n_sweeps=200).fit(X)
    assert model.n_sweeps_ == 130
    assert model.history_["a"].shape == (1, 130)
    np.testing.assert_array_equal(
        model.history_["residual_variance"], whole.history_["residual_variance"][:, :130]
    )
    assert np.isfinite(model.predict([0, 1], [2, 3])).all()
    assert np.isfinite(model.predict_interval([0, 1], [2, 3])).all()
    assert model.diagnostics().n_draws == len(model.posterior_.draws)


def test_ctrl_c_while_burning_in_keeps_the_last_state(monkeypatch):
    interrupt_after(monkeypatch, 7)
    with pytest.warns(
        ConvergenceWarning,
        match=r"not converged: interrupted after 7 of at most 20 sweeps\. .* Stored draws: 1\.",
    ):
        model = quick().fit(X)
    assert len(model.posterior_.draws) == 1
    assert np.isfinite(model.predict_block([0, 1], [2, 3])).all()
    assert np.isfinite(model.predict_interval([0, 1], [2, 3], kind="observation")).all()
    verdict = model.diagnostics()
    assert verdict.n_draws == 0
    assert not verdict.converged
    assert "0 draws" in str(verdict)


def test_ctrl_c_in_the_first_sweep_is_raised(monkeypatch):
    interrupt_after(monkeypatch, 0)
    model = quick()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert not hasattr(model, "posterior_")


def fit_warnings(**changes):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quick(**changes).fit(X)
    return [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]


def test_a_converged_run_gives_no_warning():
    assert fit_warnings(n_sweeps=600) == []


def test_too_few_draws_to_judge():
    (message,) = fit_warnings(n_sweeps=6)
    assert "3 draws in a chain are too few to judge by" in message
    assert "Set n_sweeps above the 6" in message
    assert "n_chains=2" in message


def test_too_few_effective_draws():
    (message,) = fit_warnings(n_sweeps=20, n_chains=2, max_rank=1)
    assert "The run has not converged" in message
    assert "worst 5% of predictions" in message
    assert "n_chains=2" not in message


def test_a_drift_gives_a_warning(monkeypatch):
    at, sweep = Draw.at, count()
    monkeypatch.setattr(Draw, "at", lambda self, *cells: at(self, *cells) + next(sweep))
    (message,) = fit_warnings(n_sweeps=200)
    assert "the R-hat of the worst 5% of predictions is" in message
    assert "should be below 1.1" in message


def test_the_warning_points_at_the_caller():
    with pytest.warns(ConvergenceWarning) as caught:
        quick().fit(X)
    assert caught[0].filename == __file__


def test_the_published_schedule_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fr.GASR.as_published(n_sweeps=10, random_state=0, progress=False).fit(X)


@quiet
def test_progress_can_be_turned_off(capsys, monkeypatch):
    quick(progress=False).fit(X)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("fillrank.runtime.progress._SECONDS_BETWEEN_LINES", 0.0)
    quick(progress=True).fit(X)
    note, *lines = capsys.readouterr().err.splitlines()
    assert note.startswith("fillrank: Each column has its own unit: the standard deviations")
    assert len(lines) == 20
    assert lines[0].startswith("fillrank: sweep 1 of at most 20, burning in, residual variance 0.")
    assert ", sampling, " in lines[-1]


@quiet
def test_a_pickled_model_gives_the_same_results():
    model = quick().fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict([0, 1], [2, 3]), model.predict([0, 1], [2, 3]))
    assert again.diagnostics().rhat == model.diagnostics().rhat


@quiet
def test_both_starts_and_samplers_find_the_same():
    observations, truth = fr.synthetic(60, 40, 2, 0.3, 0.3, random_state=0)
    rows, columns = observations.missing_positions(0, 60)
    predictions = [
        model.fit(observations).predict(rows, columns)
        for model in (
            quick(n_sweeps=150),
            quick(n_sweeps=150, start="random"),
            quick(n_sweeps=150, dtype="float64"),
            fr.GASR.as_published(n_sweeps=200, burn_in=100, random_state=0, progress=False),
        )
    ]
    error = np.sqrt(np.mean((predictions[0] - truth[rows, columns]) ** 2))
    assert error < 0.2
    for other in predictions[1:]:
        assert np.sqrt(np.mean((other - predictions[0]) ** 2)) < error


@quiet
def test_blas_threads_are_restored_after_a_fit():
    from threadpoolctl import threadpool_info

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    quick().fit(X)
    assert threads() == before
    with pytest.raises(ValueError, match="observed"):
        quick().fit(np.full((2, 2), NAN))
    assert threads() == before


@quiet
def test_columns_in_different_units_give_a_warning_if_a_method_has_one_unit():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4)) * [1e-3, 1.0, 10.0, 1e4]
    with pytest.warns(
        fr.UnitsWarning, match=r"use fr\.GASR, which gives each column its own"
    ) as caught:
        fr.SoftImpute(penalty=1.0, progress=False).fit(X)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", fr.UnitsWarning)
        fr.SoftImpute(penalty=1.0, progress=False).fit(X / X.std(axis=0))
        for model in (quick(), fr.BPMF(**SHORT)):
            assert model.fit(X).units_ == "columns"


def test_few_stored_draws_give_a_warning(monkeypatch):
    monkeypatch.setattr(recorder, "MOST_BYTES", 20_000)
    observations, _ = fr.synthetic(40, 30, rank=2, random_state=0)
    with pytest.warns(fr.ConvergenceWarning, match="draws of a table of this size fit in memory"):
        quick(n_sweeps=1500, max_rank=3, noise="one").fit(observations)


def test_the_published_sampler_has_its_own_start():
    with pytest.raises(InputError, match="random start"):
        fr.GASR.as_published(start="spectral").fit(np.eye(4))


def test_a_path_is_rejected_as_a_table():
    with pytest.raises(InputError, match="reads it"):
        quick().fit("table.csv")


@quiet
@pytest.mark.parametrize("start", ["spectral", "soft_impute", "hasi", "random"])
def test_every_start_finds_the_signal(start):
    observations, truth = fr.synthetic(60, 50, rank=2, noise=0.3, missing=0.4, random_state=0)
    model = quick(n_sweeps=150, start=start).fit(observations)
    error = model.predict_block(np.arange(60), np.arange(50)) - truth
    assert np.sqrt(np.mean(error**2)) < 0.3
