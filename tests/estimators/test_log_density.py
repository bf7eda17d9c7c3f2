"""The predictive density of new observations against a plain mixture of normals."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError, UnknownNameError
from helpers.small_models import DRAWN, METHODS, fitted


def mixture(model, row, column, value):
    """The log density at one cell, draw by draw, in the units of the data."""
    posterior, data = model.posterior_, model.observations_
    i, j = data.row_positions(row)[0], data.column_positions(column)[0]
    location, scale = posterior.units.location[j], posterior.units.scale[j]
    terms = [
        norm.logpdf(
            value,
            location + scale * float(draw.left[i].astype(float) @ draw.right[j].astype(float)),
            scale * np.sqrt(draw.noise.at(i, j)),
        )
        for draw in posterior.draws
    ]
    return logsumexp(terms) - np.log(len(terms))


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_is_that_of_a_mixture_over_draws(name):
    model, test = fitted(name)
    found = model.log_density(test.rows, test.columns, test.values)
    cells = zip(test.rows, test.columns, test.values, strict=True)
    np.testing.assert_allclose(found, [mixture(model, *cell) for cell in cells], atol=1e-6)


def test_is_a_density_in_the_units_of_the_data():
    model, test = fitted("GASR")
    row, column = test.rows[0], test.columns[0]
    low, high = model.predict_interval(row, column, level=1 - 1e-9)
    total, _ = quad(
        lambda x: np.exp(model.log_density(row, column, x)[0]), low[0] - 5, high[0] + 5, limit=200
    )
    assert total == pytest.approx(1.0, abs=1e-3)


def test_many_cells_have_the_same_densities_as_few(monkeypatch):
    model, test = fitted("GASR")
    cells = test.rows, test.columns, test.values
    together = model.log_density(*cells)
    monkeypatch.setattr("fillrank.posterior.low_rank._BLOCK", 7)
    np.testing.assert_allclose(model.log_density(*cells), together, rtol=1e-12)


def test_one_value_for_several_cells_and_values_beyond_all_range():
    model, _ = fitted("GASR")
    one = model.log_density("row 1", ["column 1", "column 2"], 0.5)
    np.testing.assert_array_equal(
        one, model.log_density("row 1", ["column 1", "column 2"], [0.5, 0.5])
    )
    assert model.log_density("row 1", "column 1", 1e300)[0] == -np.inf


def test_unknown_rows_have_the_density_of_a_row_without_entries():
    model, _ = fitted("GASR")
    rows, columns, values = ["Zoe", "row 1"], ["column 1", "column 2"], [0.3, 0.6]
    found = model.log_density(rows, columns, values, unknown="prior")
    new = fr.Observations.from_triplets(["Zoe", "Yan"], ["column 1"] * 2, [np.nan, 1.0])
    assert found[0] == pytest.approx(model.fold_in(new).log_density("Zoe", "column 1", 0.3)[0])
    assert found[1] == model.log_density("row 1", "column 2", 0.6)[0]


def test_what_is_refused():
    model, _ = fitted("GASR")
    with pytest.raises(UnknownNameError, match="Zoe"):
        model.log_density("Zoe", "column 1", 0.0)
    with pytest.raises(InputError, match="one for each cell; got 3"):
        model.log_density("row 1", ["column 1", "column 2"], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="real numbers"):
        model.log_density("row 1", "column 1", "high")


@pytest.mark.parametrize("name", sorted(set(METHODS) - DRAWN))
def test_methods_without_draws_refuse(name):
    model, test = fitted(name)
    with pytest.raises(NotSupportedError):
        model.log_density(test.rows, test.columns, test.values)
    with model.completion_.workers() as workers, pytest.raises(NotSupportedError):
        model.posterior_.signal.log_density(np.array([0]), np.array([0]), np.array([1.0]), workers)
