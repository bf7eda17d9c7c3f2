"""Posterior predictive checks: they find what the model does not have, and little else."""

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.errors import FillrankError
from helpers.fitted_models import fitted
from helpers.mixed_tables import fit_mixed, mixed_frame
from helpers.quick_fits import quick

pytestmark = [
    pytest.mark.usual_trial,
    pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning"),
]


def gaussian_table(seed=0, n_rows=150, n_columns=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2)) @ rng.normal(size=(2, n_columns))
    X += 0.8 * rng.normal(size=X.shape)
    X[rng.random(X.shape) < 0.2] = np.nan
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(n_columns)])


def lines(checked, statistic):
    return checked[checked["statistic"] == statistic].set_index(checked.columns[0])


@pytest.mark.parametrize("by", ["columns", "rows"])
def test_data_of_the_model_are_not_remarkable(by):
    """P-values of the mean and the sd of a right model are nearer to 0.5 than uniform ones.

    12 columns: one below 0.001 or above 0.999 has a chance of less than 5%; of 150 rows at most 3% are.
    """
    model = fr.GASR(n_sweeps=300, random_state=0, progress=False).fit(gaussian_table())
    checked = model.predictive_check(by=by)
    for statistic in ("mean", "sd"):
        p = lines(checked, statistic)["p_value"]
        assert len(p) == (12 if by == "columns" else 150)
        assert ((p < 0.001) | (p > 0.999)).mean() <= (0 if by == "columns" else 0.03)
        assert abs(p.mean() - 0.5) < 0.15


def test_the_observed_statistics_are_those_of_pandas():
    frame = gaussian_table()
    checked = quick().fit(frame).predictive_check(n_draws=3)
    for name, expected in (
        ("mean", frame.mean()),
        ("sd", frame.std()),
        ("min", frame.min()),
        ("max", frame.max()),
    ):
        found = lines(checked, name)["observed"]
        np.testing.assert_allclose(found.loc[frame.columns], expected)


def test_a_heavy_tail_and_zeros_are_found():
    """Planted: single outliers in one column, and zeros in another, which Gaussian noise has not."""
    frame = gaussian_table()
    frame.loc[3, "c1"], frame.loc[9, "c1"] = 60.0, -60.0
    frame.loc[frame.index[:50], "c2"] = frame["c2"].min()
    model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(frame)
    checked = model.predictive_check()
    assert lines(checked, "max").loc["c1", "p_value"] < 0.02
    assert lines(checked, "min").loc["c1", "p_value"] > 0.98
    assert lines(checked, "lowest").index.tolist() == ["c2"]
    zeros = lines(checked, "lowest").loc["c2"]
    assert zeros["observed"] > 0.2
    assert zeros["p_value"] < 0.02


def test_every_kind_of_columns():
    frame = mixed_frame()
    model = fit_mixed(frame)
    checked = model.predictive_check()
    of = checked.groupby("column")["statistic"].apply(set).to_dict()
    numbers = {"mean", "sd", "min", "max"}
    assert of["region"] == {"usual"}
    assert of["smoker"] == of["answer"] == {"lowest", "highest"}
    assert of["weight"] == numbers
    assert of["stars"] == numbers | {"lowest", "highest"}
    assert numbers | {"lowest"} <= of["visits"]
    assert np.isfinite(checked[["observed", "replicated", "sd", "p_value"]]).all(axis=None)
    share = frame["region"].value_counts(normalize=True).max()
    assert lines(checked, "usual").loc["region", "observed"] == pytest.approx(share)
    # Levels have probabilities that are estimated: what is replicated is near what was observed.
    levels = checked[checked["statistic"].isin(["lowest", "highest", "usual"])]
    assert (levels["replicated"] - levels["observed"]).abs().max() < 0.25


def test_rows_of_a_mixed_table_are_in_standard_units():
    checked = fit_mixed(mixed_frame()).predictive_check(by="rows")
    assert set(checked["statistic"]) == {"mean", "sd", "min", "max"}
    assert lines(checked, "mean")["observed"].abs().max() < 4


def test_weights_are_those_of_the_noise():
    """Entries of a quarter of the noise variance are replicated with half of the noise."""
    rng = np.random.default_rng(0)
    weights = np.where(np.arange(20) < 10, 4.0, 1.0) * np.ones((200, 1))
    X = rng.normal(size=(200, 20)) / np.sqrt(weights)
    data = fr.Observations.from_matrix(X, weights=weights)
    model = fr.GASR(units="table", noise="one", n_sweeps=200, random_state=0, progress=False).fit(
        data
    )
    replicated = lines(model.predictive_check(), "sd")["replicated"].to_numpy()
    assert replicated[:10].mean() / replicated[10:].mean() == pytest.approx(0.5, rel=0.1)


def test_the_same_seed_gives_the_same_numbers():
    model = fitted("GASR")
    first, again, other = (model.predictive_check(random_state=seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(FillrankError, match="by must be one of"):
        fitted("GASR").predictive_check(by="cells")
    with pytest.raises(FillrankError, match="no replicated data"):
        fitted("SoftImpute").completion_.predictive_check()


def test_the_plot_shows_the_columns_that_differ_most_first():
    frame = gaussian_table()
    frame.loc[3, "c1"] = 60.0
    model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(frame)
    ax = fr.plot.predictive_check(model, statistic="max")
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names[0] == "c1"
    assert len(names) == 12
    with pytest.raises(FillrankError, match="lowest"):
        fr.plot.predictive_check(model, statistic="lowest")
