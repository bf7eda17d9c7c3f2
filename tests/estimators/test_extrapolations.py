"""Warnings of missing values that are predicted far outside the observed range of their column."""

import numpy as np
import pytest

import fillrank as fr
from fillrank.cli.messages import option
from fillrank.completions.extrapolation import describe_extrapolations, find_extrapolations
from helpers.quick_fits import quick

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")


def growth(seen):
    """Three columns that follow from an age between 0 and 1; the third is observed where ``seen``."""
    rng = np.random.default_rng(0)
    age = rng.random(80)
    table = np.column_stack([age, 2 * age, 30 * (age - 0.7)]) + rng.normal(0, 0.01, (80, 3))
    table[~seen(age), 2] = np.nan
    return table


@pytest.fixture(scope="module")
def extrapolating():
    table = growth(lambda age: age > 0.75)
    return quick(n_sweeps=100, units="columns").fit(table)


def test_predictions_far_outside_the_observed_range_are_named(extrapolating):
    (found,) = find_extrapolations(extrapolating.completion_)
    column = extrapolating.observations_.values[extrapolating.observations_.column_index == 2]
    predicted = extrapolating.predict_block(np.arange(80), [2])[:, 0]
    far = column.min() - 0.5 * np.ptp(column)
    assert found.column == 2
    assert found.observed == (column.min(), column.max())
    assert found.predicted[0] == pytest.approx(predicted.min())
    assert predicted.min() < far
    assert found.n_far == found.n_below == (predicted < far).sum() > 20
    assert found.n_above == 0
    (text,) = describe_extrapolations(extrapolating.completion_, option)
    assert f"{found.n_far} missing values are predicted far outside" in text
    assert f"down to {predicted.min():.4g}" in text
    assert "up to" not in text
    assert "limit them by --bounds" in text
    assert dict(extrapolating.summary().lines)["Warning"].startswith("column '2'")


@pytest.mark.parametrize(
    ("seen", "settings"),
    [
        (lambda age: age < 0.9, {}),  # a little beyond
        (lambda age: age > 0.75, {"bounds": {2: (0, 10)}}),
        (lambda age: age > 0.95, {}),  # too few values to judge
    ],
)
def test_no_warning(seen, settings):
    model = quick(n_sweeps=100, units="columns", **settings).fit(growth(seen))
    assert find_extrapolations(model.completion_) == []


def test_columns_in_one_unit_have_one_range():
    table = growth(lambda age: age > 0.75)
    table[:, 1] = 15 * table[:, 1] - 15  # from -15 to 15
    model = quick(n_sweeps=100, units="table", likelihood="gaussian").fit(table)
    assert model.predict_block(np.arange(80), [2]).min() < -12
    assert find_extrapolations(model.completion_) == []


def test_a_model_without_its_entries_has_none(extrapolating, tmp_path):
    extrapolating.save(tmp_path / "m.fillrank", with_data=False)
    assert find_extrapolations(fr.load(tmp_path / "m.fillrank")) == []
