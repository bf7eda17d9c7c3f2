"""The benchmark of wide tables, on generated ones and without R."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from impute import fill_folder
from masks import MIN_IN_COLUMN, make_masks
from PIL import Image
from python_methods import PYTHON_METHODS, Filled
from summary import mean_errors, summary
from table_results import COLUMNS, append_results, finished, key, read_results, score
from wide_tables import MAX_ROWS, WideTable, read_table

from helpers.processes import LIMIT

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "tables" / "run.py"


def generated(n=60):
    """Numbers of unlike scales, a text column, and missing values in two columns."""
    rng = np.random.default_rng(0)
    trait = rng.standard_normal(n)
    frame = pd.DataFrame(
        {
            "small": 0.01 * (trait + 0.1 * rng.standard_normal(n)),
            "large": 1000 * (trait + 0.1 * rng.standard_normal(n)),
            "code": (trait > 0).astype(int),
            "other": trait + 0.1 * rng.standard_normal(n),
            "word": "a",
        }
    )
    frame.loc[::4, ["small", "other"]] = np.nan
    return frame


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    generated().to_csv(data / "made-up.csv")
    return data


@pytest.fixture
def table(folder):
    return read_table(folder / "made-up.csv")


def test_only_numeric_columns_are_read(table):
    assert table.columns == ["small", "large", "code", "other"]
    assert table.values.shape == (60, 4)
    assert table.notes == ["text columns left out: word"]


@pytest.mark.parametrize(
    ("name", "values", "stays"),
    [
        ("rownames", [7, 9, 8], False),
        ("", [0, 1, 2], False),
        ("number", [1, 2, 3], False),
        ("age", [3, 1, 2], True),
    ],
)
def test_a_row_number_is_no_column(name, values, stays, tmp_path):
    path = tmp_path / "table.csv"
    pd.DataFrame({name: values, "x": [0.5, 0.1, 0.2]}).to_csv(path, index=False)
    assert read_table(path).columns == ([name, "x"] if stays else ["x"])


def test_of_many_rows_the_same_ones_are_taken(tmp_path):
    path = tmp_path / "long.csv"
    pd.DataFrame({"x": np.arange(MAX_ROWS + 500.0), "constant": 1.0}).to_csv(path)
    first, second = read_table(path), read_table(path)
    assert first.values.shape == (MAX_ROWS, 1)
    np.testing.assert_array_equal(first.values, second.values)
    assert first.notes == [
        "2,000 of 2,500 rows, chosen at random",
        "constant columns left out: constant",
    ]


@pytest.mark.parametrize("share", ["0.1", "0.5", "real"])
def test_masks_hide_observed_cells_only(table, share):
    masks = make_masks(table, share, 3)
    observed = ~np.isnan(table.values)
    assert [mask.number for mask in masks] == [0, 1, 2]
    for mask, again in zip(masks, make_masks(table, share, 3), strict=True):
        assert mask.hidden.any()
        assert not (mask.hidden & ~observed).any()
        np.testing.assert_array_equal(mask.hidden, again.hidden)
    assert (masks[0].hidden != masks[1].hidden).any()


def test_the_share_that_is_hidden(table):
    n_observed = np.isfinite(table.values).sum()
    for share in (0.1, 0.3, 0.5):
        (mask,) = make_masks(table, share, 1)
        assert mask.hidden.sum() == round(share * n_observed)


def test_real_masks_hide_what_is_missing_elsewhere(table):
    hidden = sum(mask.hidden.astype(int) for mask in make_masks(table, "real", 20))
    assert not hidden[:, [1, 2]].any()
    np.testing.assert_array_equal(hidden[:, 0], hidden[:, 3])
    observed = np.isfinite(table.values)
    share = hidden.sum() / 20 / observed.sum()
    # The mean of 20 masks, each of 45 rows with two cells or none: its standard error is about 0.003.
    assert share == pytest.approx(1 - observed.mean(), abs=0.012)


def test_rows_and_columns_are_never_emptied():
    X = np.arange(24.0).reshape(12, 2)
    X[7:, 0] = np.nan
    (mask,) = make_masks(WideTable("few", ["a", "b"], X, []), 0.9, 1)
    left = np.isfinite(X) & ~mask.hidden
    assert left.any(axis=1).all()
    assert (left.sum(axis=0) >= MIN_IN_COLUMN).all()


def test_no_real_masks_without_missing_values():
    assert make_masks(WideTable("full", ["a"], np.ones((9, 1)), []), "real", 2) == []


def test_errors_are_in_standard_deviations(table, tmp_path):
    mask, other = make_masks(table, 0.3, 2)
    off = table.values + 2 * table.scales
    intervals = table.values - 1, np.where(np.arange(4) == 1, table.values - 0.5, table.values + 1)
    for each in (mask, other):
        frame = score(table, each, "a method", Filled(off, *intervals), seconds=1.5)
        append_results(tmp_path / "results.csv", frame)
    results = read_results(tmp_path / "results.csv")
    assert finished(tmp_path / "results.csv") == {
        key(table, each, "a method") for each in (mask, other)
    }
    np.testing.assert_allclose(results["squared_error"], 4.0)
    assert results["coverage"].tolist() == [1.0, 0.0, 1.0, 1.0] * 2
    assert results["n_hidden"].sum() == mask.hidden.sum() + other.hidden.sum()
    mean, error, n_masks = mean_errors(results)
    assert n_masks.loc["made-up", "a method"] == 2
    assert mean.loc["made-up", "a method"] == pytest.approx(2.0)
    assert error.loc["made-up", "a method"] == pytest.approx(0.0)


def test_rounding_does_not_move_a_value_out_of_its_interval(table):
    (mask,) = make_masks(table, 0.3, 1)
    location = np.nanmean(table.values, axis=0)
    rounded = location + table.scales * ((table.values - location) / table.scales)
    assert (rounded != table.values)[mask.hidden].any()
    for low, high, held in ((rounded, rounded, 1.0), (rounded + 0.01 * table.scales, rounded, 0.0)):
        frame = score(table, mask, "a method", Filled(rounded, low, high), seconds=1.0)
        assert (frame["coverage"] == held).all()


@pytest.mark.parametrize("method", PYTHON_METHODS)
def test_methods_in_python_fill_in_all_cells(method, table, tmp_path):
    np.savetxt(tmp_path / "table-0.csv", table.values, delimiter=",")
    fill_folder(tmp_path, method, n_threads=1)
    observed = np.isfinite(table.values)
    filled = np.loadtxt(tmp_path / "mean-0.csv", delimiter=",")
    assert np.isfinite(filled).all()
    np.testing.assert_allclose(filled[observed], table.values[observed], rtol=1e-6)
    assert float((tmp_path / "seconds-0.txt").read_text()) > 0
    if (tmp_path / "low-0.csv").exists():
        low, high = (np.loadtxt(tmp_path / f"{n}-0.csv", delimiter=",") for n in ("low", "high"))
        assert (low <= filled).all()
        assert (filled <= high).all()


def run_script(*arguments):
    return subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    ).stdout


@pytest.fixture
def run(capsys):
    """Run the script in this process; benchmarks/peers has one of the same name."""
    spec = importlib.util.spec_from_file_location("run_tables", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    def running(*arguments):
        script.main([str(argument) for argument in arguments])
        return capsys.readouterr().out

    return running


def test_a_run_that_was_interrupted_goes_on(folder, run, tmp_path):
    path = tmp_path / "results" / "results.csv"
    asked = ["--data", folder, "--shares", "0.3,real", "--results", path, "--threads", "1"]
    run(*asked, "--methods", "column mean", "--masks", "1")
    before = path.read_text("utf-8")
    said = run(*asked, "--methods", "column mean,KNN 5", "--masks", "2")
    assert "made-up, mcar 0.3: KNN 5" in said
    after = path.read_text("utf-8")
    assert after.startswith(before)
    results = read_results(path)
    assert not results.duplicated(["kind", "mask", "method", "column"]).any()
    assert len(finished(path)) == 8
    assert run_script(*asked, "--methods", "column mean", "--masks", "2").count("column mean") == 0
    text = run("--report", "--results", path, "--output", tmp_path)
    assert "| table | column mean | KNN 5 |" in text
    assert "no results of GASR" in text
    with Image.open(tmp_path / "images" / "tables-errors.png") as picture:
        assert picture.size[0] > 1000


def line(table, mask, method, error):
    return (table, "mcar", 0.3, mask, method, "x", 10, error**2, np.nan, 1.0)


def test_the_best_is_bold_and_gaps_are_shown():
    lines = [line(table, mask, "column mean", 1.0) for table in "tuv" for mask in (0, 1)]
    lines += [line("t", mask, "KNN 5", 0.5) for mask in (0, 1)]
    lines += [line("t", 0, "KNN 10", 0.4), line("v", 0, "KNN 5", 0.9)]
    text = summary(pd.DataFrame(lines, columns=COLUMNS))
    assert "| t | 1.000 ± 0.000 | **0.500 ± 0.000** |" in text
    assert "| u | **1.000 ± 0.000** | – |" in text
    assert "| v | 1.000 ± 0.000 | **0.900** (masks: 1) |" in text
    assert "KNN 10" not in text
