"""A run as ArviZ' data structure: right numbers under right names, and its own verdicts on them."""

import sys

import arviz_stats
import numpy as np
import pytest

import fillrank as fr
import fillrank.completion as completion
from fillrank.errors import NotSupportedError
from fillrank.posterior import to_arviz as module
from fillrank.posterior.diagnostics import diagnose
from fillrank.run import recorder
from fillrank.run.recorder import Traces
from fillrank.table.units import Units
from reference.planted import plant

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")

SHARES = {"row_missingness_share", "column_missingness_share"}
SHORT = {"progress": False, "n_threads": 1, "random_state": 0}


def named_table(n_rows=30, n_columns=20):
    data, _ = fr.synthetic(n_rows, n_columns, rank=2, noise=0.5, missing=0.3, random_state=0)
    rows, columns = [f"r{i}" for i in data.rows], [f"c{j}" for j in data.columns]
    return fr.Observations.from_triplets(rows, columns, 40 + 7 * data.values)


def fitted(n_sweeps=60, **changes):
    return fr.BPMF(n_sweeps=n_sweeps, burn_in=20, n_chains=2, **SHORT, **changes).fit(named_table())


@pytest.fixture(scope="module")
def model():
    return fitted()


def test_groups_dimensions_and_attributes(model):
    tree = model.to_arviz()
    assert set(tree.children) == {"posterior", "spectrum"}  # BPMF draws all that it traces
    posterior, spectrum = tree["posterior"], tree["spectrum"]
    degrees = {"row_degrees", "column_degrees"}
    expected = {"residual_variance", "noise_variance", "prediction"} | degrees | SHARES
    assert set(posterior.data_vars) == expected
    assert posterior["noise_variance"].dims == ("chain", "draw")
    assert posterior["prediction"].dims == ("chain", "draw", "cell")
    assert spectrum["singular_values"].dims == ("chain", "draw", "factor")
    assert posterior["draw"].values.tolist() == list(range(21, 61))
    assert spectrum["factor"].values[:2].tolist() == [1, 2]
    for node in (tree, posterior, spectrum):
        assert node.attrs["inference_library"] == "fillrank"
        assert node.attrs["inference_library_version"] == fr.__version__
        assert node.attrs["method"] == "BPMF"


def test_traces_are_the_history_after_the_burn_in(model):
    posterior = model.to_arviz()["posterior"]
    for name, trace in model.history_.items():
        np.testing.assert_array_equal(posterior[name], trace[:, 20:])
    assert 5 < np.sqrt(float(posterior["noise_variance"].mean())) / 0.5 < 9  # 7 * 0.5 in our units


def test_predictions_are_those_of_the_cells_by_name(model):
    prediction = model.to_arviz()["posterior"]["prediction"]
    rows, columns = prediction["cell_row"].values, prediction["cell_column"].values
    expected = model.predict(rows, columns)
    mean, sd = prediction.mean(["chain", "draw"]), prediction.std(["chain", "draw"])
    # The model's mean has few factors: it is off by more than rounding.
    assert np.abs((mean - expected) / sd).max() < 0.1
    assert np.abs((mean - np.roll(expected, 1)) / sd).max() > 10  # with the names of other cells


def test_singular_values_are_in_the_units_of_the_data(model):
    values = model.to_arviz()["spectrum"]["singular_values"]
    np.testing.assert_allclose(values.mean(["chain", "draw"]), model.singular_values_)


def thinned_and_whole(monkeypatch):
    """Trees of one run, that kept every fourth draw and all of them."""
    whole = fitted().to_arviz()
    monkeypatch.setattr(recorder, "MOST_DRAWS", 2 * 16)
    model = fitted()
    assert model.traces_.thinning == 4
    return model.to_arviz(), whole


def same_where_kept(thinned, whole):
    """Whether the singular values of a thinned run are those of the same sweeps of the whole run."""
    kept = thinned["spectrum"]["singular_values"]
    return np.array_equal(kept, whole["spectrum"]["singular_values"].sel(draw=kept["draw"]))


def test_draws_are_numbered_by_sweeps_and_thinning_costs_the_traces_nothing(monkeypatch):
    thinned, whole = thinned_and_whole(monkeypatch)
    assert thinned["posterior"].equals(whole["posterior"])
    assert thinned["spectrum"]["draw"].values.tolist() == list(range(24, 61, 4))
    assert same_where_kept(thinned, whole)
    joint = thinned["posterior"].to_dataset().sel(draw=thinned["spectrum"]["draw"])
    assert joint.sizes["draw"] == 10


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sweeps[traces.thinning - 1 ::", "sweeps[::"),
        ("traces.burn_in + 1 + np", "traces.burn_in + np"),
    ],
)
def test_wrong_numbers_of_sweeps_are_detected(monkeypatch, old, new):
    # In a whole run every draw is kept: there the first of the bugs does nothing.
    whole = fitted().to_arviz()
    plant(monkeypatch, module, "to_arviz", old, new, into=[completion])
    thinned = thinned_and_whole(monkeypatch)[0]
    assert not same_where_kept(thinned, whole)


def test_diagnostics_of_arviz_equal_ours(model):
    tree, ours = model.to_arviz(), model.diagnostics()
    groups = "posterior", "spectrum"
    rhat = {group: arviz_stats.rhat(tree, group=group) for group in groups}
    # Cells are judged without ranks, which would take much longer.
    split = arviz_stats.rhat(tree, var_names=["prediction"], method="split")
    rhat["posterior"]["prediction"] = split["prediction"]
    ess = {group: arviz_stats.ess(tree, group=group, method="mean") for group in groups}
    name = "residual_variance"
    for theirs, mine in ((rhat, ours.rhat), (ess, ours.ess)):
        # Ranks of distances to the median have ties, which other units break in another way.
        np.testing.assert_allclose(theirs["posterior"][name], mine[name], rtol=5e-3)
        first = theirs["spectrum"]["singular_values"].sel(factor=1)
        np.testing.assert_allclose(first, mine["singular_value 1"], rtol=5e-3)
        median = theirs["posterior"]["prediction"].median()
        np.testing.assert_allclose(median, mine["prediction (median)"], rtol=5e-3)


def test_diagnostics_do_not_depend_on_units(model):
    tree = model.to_arviz()
    posterior, spectra = tree["posterior"], tree["spectrum"]["singular_values"].values
    fit, cells = posterior["residual_variance"].values, posterior["prediction"].values
    ours = diagnose({"fit": fit}, spectra, cells, n_leading=1)
    rhat, ess = arviz_stats.rhat(tree), arviz_stats.ess(tree, method="mean")
    split = arviz_stats.rhat(tree, var_names=["prediction"], method="split")
    rhat["prediction"] = split["prediction"]
    for theirs, mine in ((rhat, ours.rhat), (ess, ours.ess)):
        np.testing.assert_allclose(theirs["residual_variance"], mine["fit"])
        np.testing.assert_allclose(theirs["prediction"].median(), mine["prediction (median)"])


def test_a_summary_has_the_requested_variables(model):
    summary = arviz_stats.summary(
        model.to_arviz(), var_names=["noise_variance", "residual_variance"], round_to="none"
    )
    noise = model.history_["noise_variance"][:, 20:]
    np.testing.assert_allclose(summary.loc["noise_variance", "mean"], noise.mean())
    np.testing.assert_allclose(
        summary.loc["residual_variance", "r_hat"],
        model.diagnostics().rhat["residual_variance"],
        rtol=5e-3,  # ties, as above
    )


def test_the_empty_second_row_of_a_single_row_is_left_out():
    table = np.array([[1.0, 4.0, 2.0, np.nan, 3.0, 2.5]])
    model = fr.GASR(n_sweeps=20, **SHORT).fit(table)
    assert model.traces_.probe_rows.max() == 1
    posterior = model.to_arviz()["posterior"]
    assert (posterior["cell_row"] == 0).all()
    assert 0 < posterior.sizes["cell"] < 200
    prediction = posterior["prediction"]
    expected = model.predict(0, prediction["cell_column"].values)
    np.testing.assert_allclose(prediction.mean(["chain", "draw"]), expected, atol=1e-4)


HYPERPARAMETERS = ["a", "b", "noise_variance"]


def test_what_is_given_is_constant():
    model = fitted(noise_precision=0.2)
    tree = model.to_arviz()
    assert set(tree.children) == {"posterior", "spectrum", "constant_data"}
    assert set(tree["posterior"].data_vars) == {"residual_variance", "prediction"} | SHARES
    constant = tree["constant_data"]
    assert set(constant.data_vars) == {"noise_variance"}
    assert constant.attrs["method"] == "BPMF"
    assert constant["noise_variance"].dims == ("chain",)
    np.testing.assert_allclose(constant["noise_variance"], 5.0)


def test_gasr_draws_all_that_it_traces():
    model = fr.GASR(n_sweeps=40, burn_in=20, n_chains=2, noise="one", **SHORT).fit(named_table())
    tree = model.to_arviz()
    assert set(tree.children) == {"posterior", "spectrum"}
    expected = {"residual_variance", "noise_variance", "a", "b", "prediction"} | SHARES
    assert set(tree["posterior"].data_vars) == expected


def test_what_is_estimated_throughout_the_run_is_not_in_the_posterior():
    model = fr.GASR.as_published(n_sweeps=30, n_chains=2, **SHORT).fit(named_table())
    tree = model.to_arviz()
    assert set(tree.children) == {"posterior", "spectrum", "sample_stats"}
    assert set(tree["posterior"].data_vars) == {"residual_variance", "prediction"}
    assert sorted(tree["sample_stats"].data_vars) == HYPERPARAMETERS
    for name in HYPERPARAMETERS:
        assert tree["sample_stats"][name].dims == ("chain", "draw")
        np.testing.assert_array_equal(tree["sample_stats"][name], model.history_[name])
    np.testing.assert_array_equal(tree["sample_stats"]["draw"], tree["posterior"]["draw"])


def test_a_given_noise_variance_is_constant():
    tree = fitted(noise_precision=0.1).to_arviz()
    assert "noise_variance" not in tree["posterior"]
    np.testing.assert_allclose(tree["constant_data"]["noise_variance"], [10.0, 10.0])


def made_up(n_history, n_probes, burn_in=2, n_kept=1):
    """Traces of one chain of a 1 x 1 table, of the given numbers of sweeps."""
    return Traces(
        {"residual_variance": np.arange(n_history, dtype=float)[None]},
        np.ones((1, n_kept, 1)),
        np.ones((1, n_probes, 3)),
        np.zeros(3, dtype=int),
        np.zeros(3, dtype=int),
        burn_in,
        thinning=1,
        n_entries=1,
    )


def tree_of_traces(traces):
    data = fr.Observations.from_triplets(["a"], ["b"], [2.0])
    units = Units.equal(10.0, 2.0, data.shape[1], (0.0, 11.0))
    return module.to_arviz(traces, traces.history, (), data, units, "GASR")


def test_columns_with_their_own_units(model):
    """Predictions are in the units of their columns, singular values in standard units."""
    data, traces = model.observations_, model.traces_
    n = data.shape[1]
    units = Units(np.arange(float(n)), 1.0 + np.arange(n), None)
    tree = module.to_arviz(traces, traces.history, (), data, units, "GASR")
    j = traces.probe_columns
    expected = j + (1.0 + j) * traces.probes
    np.testing.assert_allclose(tree["posterior"]["prediction"], expected)
    np.testing.assert_allclose(tree["spectrum"]["singular_values"], traces.spectra)
    assert "standard units" in tree.attrs["units"]


def test_a_run_interrupted_while_a_sweep_was_recorded():
    posterior = tree_of_traces(made_up(n_history=5, n_probes=4, n_kept=4))["posterior"]
    assert posterior["draw"].values.tolist() == [3, 4, 5]
    assert posterior["residual_variance"].values.tolist() == [[2.0, 3.0, 4.0]]


def test_predictions_are_not_clipped_to_the_rating_scale():
    """Ties at its ends would hide what moves."""
    posterior = tree_of_traces(made_up(n_history=5, n_probes=3, n_kept=3))["posterior"]
    assert (posterior["prediction"] == 12.0).all()


@pytest.mark.parametrize("n_history", [1, 2])
def test_a_run_that_ended_while_burning_in(n_history):
    with pytest.raises(NotSupportedError, match="more sweeps than the 2 of the burn-in"):
        tree_of_traces(made_up(n_history, n_probes=0))


@pytest.mark.parametrize("absent", ["arviz_base", "xarray"])
def test_what_to_install(monkeypatch, absent):
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(NotSupportedError, match=r'pip install "fillrank\[arviz\]"'):
        tree_of_traces(made_up(5, 3))
