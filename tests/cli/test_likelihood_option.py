"""``--likelihood`` with Laplace noise and with two levels."""

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from helpers.refusals import assert_refused


@pytest.mark.parametrize("likelihood", ["laplace", "logistic", "hinge"])
def test_a_model_with_the_likelihood(fillrank, likelihood):
    X = np.random.default_rng(0).normal(size=(30, 8))
    X = X if likelihood == "laplace" else 1.0 * (X > 0)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(8)]).mask(np.abs(X - 0.3) < 0.05)
    frame.to_csv("table.csv", index_label="name")
    ran = fillrank("fit", "table.csv", "--likelihood", likelihood, "--sweeps", 20, "--max-rank", 2)
    assert ran.code == 0, ran.err
    assert fr.load("table.fillrank").record.likelihood == likelihood
    refused = fillrank("fit", "table.csv", "--likelihood", likelihood, "--robust", "--force")
    assert_refused(refused, "--robust")
