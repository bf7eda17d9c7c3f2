import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.cli import complete as complete_verb
from fillrank.cli import output
from fillrank.io.csv_writer import significant_digits
from helpers.processes import LIMIT
from helpers.result_files import read_csv, read_json

NAMES = output.result_names("table")
RESULTS = set(NAMES) - {NAMES.imputations}


def names_in(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("name", "delimiter"), [("table.csv", ","), ("table.csv", ";"), ("table.tsv", "\t")]
)
def test_wide_table_is_filled_and_observed_values_are_unchanged(
    complete, write_wide, matrix, tmp_path, name, delimiter
):
    ran = complete(write_wide(name, delimiter))
    assert ran.code == 0, ran.err
    folder = tmp_path / "table-filled"
    names = output.result_names("table", f".{name[-3:]}")
    assert names_in(folder) == set(names) - {names.imputations}
    header, *lines = read_csv(folder / names.filled, delimiter)
    assert header == ["name", *(f"column {j}" for j in range(matrix.shape[1]))]
    assert [line[0] for line in lines] == [f"row {i}" for i in range(len(matrix))]
    filled = np.array([line[1:] for line in lines], dtype=float)
    observed = ~np.isnan(matrix)
    np.testing.assert_array_equal(filled[observed], matrix[observed])
    assert np.isfinite(filled).all()
    assert lines[0][1] == "0.30000000000000004"


def test_intervals_are_those_of_the_missing_cells(complete, write_wide, matrix, tmp_path):
    complete(write_wide(), "--level", "0.8", "--seed", "3")
    header, *lines = read_csv(tmp_path / "table-filled" / "intervals.csv")
    assert header == ["row", "column", "value", "lower", "upper"]
    cells = [(f"row {i}", f"column {j}") for i, j in np.argwhere(np.isnan(matrix))]
    assert [(row, column) for row, column, *_ in lines] == cells
    value, lower, upper = np.array([line[2:] for line in lines], dtype=float).T
    assert (lower < value).all()
    assert (value < upper).all()

    model = fr.GASR(n_sweeps=20, max_rank=3, random_state=3, progress=False)
    with pytest.warns(fr.ConvergenceWarning):
        model.fit(fr.read(tmp_path / "table.csv"))
    expected = model.predict_interval(*zip(*cells, strict=True), level=0.8, kind="observation")
    np.testing.assert_allclose((lower, upper), expected, rtol=1e-5)

    wide = read_csv(tmp_path / "table-filled" / "filled.csv")
    filled = np.array([line[1:] for line in wide[1:]], dtype=float)
    np.testing.assert_allclose(filled[np.isnan(matrix)], value, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("name", "delimiter"), [("ratings.csv", ","), ("ratings.tsv", "\t")])
def test_long_table_gives_a_long_table_of_the_missing_cells(
    complete, write_long, matrix, tmp_path, name, delimiter
):
    ran = complete(write_long(name, delimiter))
    assert ran.code == 0, ran.err
    assert (
        "a long table, with rows from 'user', columns from 'item', values from 'rating'" in ran.err
    )
    ending = name[-4:]
    header, *lines = read_csv(tmp_path / "ratings-filled" / f"filled{ending}", delimiter)
    assert header == ["user", "item", "rating"]
    # Names stand in the order of their first appearance, so cells are compared as sets.
    cells = {(f"u{i}", f"i{j}") for i, j in np.argwhere(np.isnan(matrix))}
    assert {(row, column) for row, column, _ in lines} == cells
    intervals = read_csv(tmp_path / "ratings-filled" / f"intervals{ending}", delimiter)
    assert [line[:3] for line in intervals[1:]] == lines
    assert intervals[0] == ["user", "item", "rating", "lower", "upper"]


def test_fields_of_a_long_table_can_be_named(complete, write_long, tmp_path):
    table = write_long(header=("who", "when", "what"))
    ran = complete(table, "--row", "when", "--column", "who", "--value", "what", "-o", "turned")
    assert ran.code == 0, ran.err
    assert read_csv(tmp_path / "turned" / "filled.csv")[0] == ["when", "who", "what"]


def test_no_data_frame_library_is_needed(complete, write_long, tmp_path, monkeypatch):
    table = write_long()
    complete(table, "-o", "with")
    monkeypatch.setattr("fillrank.table.frames.installed_backend", lambda: None)
    assert complete(table, "-o", "without").code == 0
    for name in ("filled.csv", "intervals.csv"):
        assert (tmp_path / "with" / name).read_bytes() == (tmp_path / "without" / name).read_bytes()


def test_parquet_with_dates_for_names(complete, matrix, tmp_path):
    days = pd.date_range("2024-01-01", periods=len(matrix), freq="D")
    columns = {f"c{j}": matrix[:, j] for j in range(matrix.shape[1])}
    pd.DataFrame({"day": days, **columns}).to_parquet(tmp_path / "table.parquet")
    ran = complete(tmp_path / "table.parquet")
    assert ran.code == 0, ran.err
    expected = [f"2024-01-{day:02d}" for day in range(1, len(matrix) + 1)]
    filled = pd.read_parquet(tmp_path / "table-filled" / "filled.parquet")
    assert list(filled.columns) == ["day", *columns]
    assert (filled["day"] == days).all()
    assert filled.notna().all(axis=None)
    intervals = read_csv(tmp_path / "table-filled" / "intervals.csv")[1:]
    assert {row for row, *_ in intervals} <= set(expected)


def test_very_wide_tables_are_written_long(complete, write_wide, tmp_path, monkeypatch):
    monkeypatch.setattr("fillrank.cli.completed_table.MOST_WIDE_CELLS", 50)
    complete(write_wide())
    header = read_csv(tmp_path / "table-filled" / "filled.csv")[0]
    assert header == ["row", "column", "value"]


def test_a_matrix_without_names_is_numbered(complete, matrix, tmp_path):
    np.save(tmp_path / "table.npy", matrix)
    assert complete(tmp_path / "table.npy").code == 0
    header, first, *_ = read_csv(tmp_path / "table-filled" / "filled.csv")
    assert header == ["row", *map(str, range(matrix.shape[1]))]
    assert first[:2] == ["0", "0.30000000000000004"]


def test_input_summary_goes_to_stderr_and_results_to_stdout(complete, write_wide, matrix):
    ran = complete(write_wide())
    n = np.sum(~np.isnan(matrix))
    assert f"14 rows x 8 columns, {n} entries ({100 * n / 112:.3g}% of the cells)" in ran.err
    assert "a wide table" in ran.err
    for word in ("Rank 1", "Noise level", "RMSE", "MAE", "90% intervals", "Stopped", "Converged"):
        assert word in ran.out
        assert word not in ran.err
    assert "table-filled/filled.csv" in ran.out


def test_small_tables_give_a_warning_even_with_quiet(complete, tmp_path):
    (tmp_path / "small.csv").write_text("name,a,b\nx,1,\ny,,2\n")
    ran = complete("small.csv", "-q")
    assert ran.code == 0, ran.err
    assert "the table has 2 entries; credible intervals need 3 or more" in ran.err


def test_a_run_that_has_not_converged_says_so_everywhere(complete, write_wide, tmp_path):
    ran = complete(write_wide())
    results = read_json(tmp_path / "table-filled" / "summary.json")["results"]
    assert results["converged"] is False
    assert results["verdict"].startswith("not converged: ")
    assert results["verdict"].endswith("Set n_sweeps above the 20 of this run.")
    reason = results["verdict"].removeprefix("not converged: ").partition(". Set")[0]
    assert f"Converged no: {reason}. Set --sweeps above the 20 of this run." in ran.out


def test_summary_has_settings_versions_and_figures(complete, write_wide, tmp_path):
    complete(write_wide(), "--seed", "5", "--hold-out", "0.2")
    summary = read_json(tmp_path / "table-filled" / "summary.json")
    assert summary["settings"]["seed"] == 5
    assert summary["settings"]["sweeps"] == 20
    assert summary["versions"]["fillrank"] == fr.__version__
    assert summary["table"]["rows"] == 14
    assert summary["results"]["rank"] == 1
    assert summary["results"]["sweeps"] == 20
    hidden = summary["hidden_entries"]
    assert hidden["entries"] == round(0.2 * summary["table"]["entries"])
    assert 0 < hidden["mae"] <= hidden["rmse"] < hidden["spread"]
    assert 0 <= hidden["coverage"] <= 1
    assert hidden["interval_score"] > 0
    assert np.isfinite(hidden["log_score"])
    for name in ("by_column", "by_level"):
        assert sum(line["entries"] for line in hidden[name]) == hidden["entries"]
    assert hidden["warnings"] == []


def test_the_same_seed_gives_the_same_files(complete, write_wide, tmp_path):
    table = write_wide()
    for folder in ("one", "two"):
        complete(table, "-o", folder, "--threads", "1" if folder == "one" else "2")
    for name in ("filled.csv", "intervals.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("n_entries", [20, 70])
def test_the_error_is_measured_only_with_enough_entries(complete, matrix, tmp_path, n_entries):
    flat = matrix.ravel()
    flat[np.flatnonzero(~np.isnan(flat))[n_entries:]] = np.nan
    np.save(tmp_path / "table.npy", matrix)
    ran = complete(tmp_path / "table.npy")
    assert ran.code == 0
    assert ("RMSE" in ran.out) == (n_entries == 70)
    assert ("only 20 entries" in ran.err) == (n_entries == 20)


def test_no_hold_out_no_error(complete, write_wide, tmp_path):
    ran = complete(write_wide(), "--hold-out", "0")
    assert ran.code == 0
    assert "RMSE" not in ran.out
    assert read_json(tmp_path / "table-filled" / "summary.json")["hidden_entries"] is None


def test_quiet_prints_only_the_list_of_files(complete, write_wide):
    ran = complete(write_wide(), "--quiet", "-o", "here")
    assert ran.err == ""
    assert ran.out.split() == [f"here/{name}" for name in NAMES if name in RESULTS]


def test_intervals_can_be_left_out(complete, write_wide, tmp_path):
    complete(write_wide(), "--intervals", "none")
    assert names_in(tmp_path / "table-filled") == RESULTS - {"intervals.csv"}


def test_too_many_intervals_are_left_out_unless_requested(
    complete, write_wide, tmp_path, monkeypatch
):
    monkeypatch.setattr(complete_verb, "MOST_INTERVALS", 5)
    ran = complete(write_wide(), "-o", "few")
    assert "--intervals all" in ran.err
    assert not (tmp_path / "few" / "intervals.csv").exists()
    complete(tmp_path / "table.csv", "-o", "all", "--intervals", "all")
    assert (tmp_path / "all" / "intervals.csv").exists()


def test_observed_ratings_are_unchanged_and_predictions_clipped(complete, tmp_path):
    rng = np.random.default_rng(0)
    stars = np.clip(np.rint(3 + rng.normal(size=(20, 1)) + rng.normal(size=(20, 15))), 1, 5)
    stars[rng.random(stars.shape) < 0.3] = np.nan
    np.save(tmp_path / "stars.npy", stars)
    ran = complete(tmp_path / "stars.npy")
    assert "ratings from 1 to 5" in ran.err
    lines = read_csv(tmp_path / "stars-filled" / "filled.csv")[1:]
    i, j = np.argwhere(~np.isnan(stars))[0]
    assert lines[i][j + 1] == f"{stars[i, j]:.0f}"
    filled = np.array([line[1:] for line in lines], dtype=float)
    assert filled.min() >= 1
    assert filled.max() <= 5


def test_close_values_are_written_with_enough_digits(complete, matrix, tmp_path):
    np.save(tmp_path / "table.npy", matrix + 1e9)
    complete(tmp_path / "table.npy")
    lines = read_csv(tmp_path / "table-filled" / "intervals.csv")[1:]
    assert all(float(lower) < float(upper) for *_, lower, upper in lines)
    assert significant_digits(np.zeros(3)) == 6


def test_version_and_help(fillrank):
    assert fillrank("--version").out == f"fillrank {fr.__version__}"
    for verb in ("complete", "demo"):
        ran = fillrank(verb, "--help")
        assert ran.code == 0
        assert f"fillrank {verb} " in ran.out
        assert "Example" in ran.out


def test_help_does_not_wait_for_slow_imports():
    code = (
        "import sys, fillrank.cli.main;"
        "sys.exit(any(slow in sys.modules for slow in ('numba', 'sklearn', 'matplotlib')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=False, timeout=LIMIT)
    assert ran.returncode == 0
