"""Weights and standard errors on the command line."""

import json

import numpy as np
import pytest

import fillrank as fr
from helpers.refusals import assert_refused
from helpers.result_files import write_csv

QUICK = ("--sweeps", "20", "--max-rank", "2", "--seed", "3")


@pytest.fixture
def weighted(tmp_path, matrix):
    """A long table with a column of weights, and one of standard errors."""
    observed = np.argwhere(~np.isnan(matrix))
    lines = [("user", "item", "rating", "w", "se")]
    lines += [(f"u{i}", f"i{j}", matrix[i, j], 1 + i % 3, 1 / (1 + j)) for i, j in observed]
    return write_csv(tmp_path / "weighted.csv", lines, ",")


@pytest.mark.parametrize("option", ["weight", "standard_error"])
def test_fit_uses_the_column(option, fillrank, weighted):
    column = {"weight": "w", "standard_error": "se"}[option]
    ran = fillrank("fit", weighted, f"--{option.replace('_', '-')}", column, *QUICK)
    assert ran.code == 0, ran.err
    assert "The weights are from" in ran.err
    found = fr.load("weighted.fillrank").observations_.weights
    np.testing.assert_array_equal(found, fr.read(weighted, **{option: column}).weights)


def test_evaluate_and_complete_use_the_column(fillrank, complete, weighted):
    ran = fillrank("evaluate", weighted, "--weight", "w", "--hold-out", "0.2", *QUICK)
    assert ran.code == 0, ran.err
    ran = complete(weighted, "--standard-error", "se")
    assert ran.code == 0, ran.err
    with open("weighted-filled/summary.json") as file:
        assert json.load(file)["settings"]["standard_error"] == "se"


def test_compare_lists_the_methods_that_cannot_use_weights(fillrank, weighted):
    ran = fillrank("compare", weighted, "--weight", "w", "--methods", "SoftImpute,M3F", "--quiet")
    assert ran.code != 0
    for method in ("SoftImpute", "M3F"):
        assert f"{method} cannot use the weights of entries; GASR and BPMF can" in ran.out


@pytest.mark.parametrize("command", ["fit", "evaluate", "report"])
@pytest.mark.parametrize("option", ["--weight", "--standard-error"])
def test_other_methods_are_refused(command, option, fillrank, weighted):
    ran = fillrank(command, weighted, "--method", "HASI", option, "w")
    assert_refused(ran, f"{option} is an option of the samplers GASR and BPMF", "--method HASI")


def test_a_cluster_is_refused(fillrank, weighted):
    ran = fillrank("fit", weighted, "--dask", "tcp://127.0.0.1:1", "--weight", "w")
    assert_refused(ran, "a cluster cannot use the weights of entries", "Leave out --dask")


def test_wide_tables_and_wrong_columns_are_refused(fillrank, weighted, write_wide):
    ran = fillrank("fit", write_wide(), "--weight", "column 1")
    assert_refused(ran, "--weight: only a long table has a column of weights", "--layout long")
    assert "weights=" not in ran.err
    assert_refused(fillrank("fit", weighted, "--weight", "x"), "there is no column 'x'")
    both = fillrank("fit", weighted, "--weight", "w", "--standard-error", "se")
    assert_refused(both, "--standard-error must be left out if --weight is given")
    ran = fillrank("fit", weighted, "--standard-error", "rating")
    assert_refused(ran, "the standard error of row 'u", "must be a finite number above 0")
