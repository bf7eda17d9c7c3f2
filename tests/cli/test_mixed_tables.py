"""Tables with categories, limits and codes for missing values, from the command line."""

import csv
import json
import re

import numpy as np
import pytest

from fillrank.cli import source
from fillrank.cli.source import Source
from helpers.mixed_tables import mixed_frame
from helpers.read_page import read
from helpers.refusals import assert_refused

N = 30


def mixed_lines():
    """A table whose labels are in the third column, with a remark in the first."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=N)
    lines = [["remark", "town", "who", "x", "y", "lead", "smoker", "code"]]
    for i in range(N):
        lead = np.exp(size[i])
        lines.append(
            [
                f"remark {i}",
                "" if i % 7 == 0 else ("Bern" if size[i] > 0 else "Chur"),
                f"person {i}",
                "" if i % 5 == 0 else f"{size[i]:.3f}",
                f"{2 * size[i] + 0.1 * rng.normal():.3f}",
                "<0.5" if lead < 0.5 else f"{lead:.3f}",
                "" if i % 6 == 0 else ("yes" if size[i] > 0.3 else "no"),
                "-999" if i in (3, 8) else f"{i % 4}",
            ]
        )
    return lines


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "mixed.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(mixed_lines())
    return path


def filled_lines(folder):
    with (folder / "filled.csv").open(newline="") as file:
        return list(csv.reader(file))


def test_the_completed_table_has_the_columns_and_the_text_of_the_file(complete, table, tmp_path):
    ran = complete(table, "--na", "-999", "-o", tmp_path / "out")
    assert ran.code == 0, ran.err
    given, filled = mixed_lines(), filled_lines(tmp_path / "out")
    assert filled[0] == given[0]
    levels = {"town": {"Bern", "Chur"}, "smoker": {"yes", "no"}}
    for before, after in zip(given[1:], filled[1:], strict=True):
        for name, old, new in zip(given[0], before, after, strict=True):
            if old == "<0.5":
                assert float(new) <= 0.5
            elif old in ("", "-999"):
                assert new in levels[name] if name in levels else float(new) > -999
            elif name in ("x", "y", "lead", "code"):
                assert float(new) == float(old)
            else:
                assert new == old


def test_the_first_line_says_what_was_understood(complete, table, tmp_path):
    ran = complete(table, "-o", tmp_path / "out")
    first = ran.err.split("Fitting")[0]
    assert "Column 'town' is a category." in first
    assert "of column 'lead' are limits such as <0.5." in first
    assert "Column 'smoker' holds yes and no." in first
    assert "if it means a missing value, add --na -999." in first
    assert "values -999 to" not in first


def test_columns_can_be_named(complete, table, tmp_path):
    ran = complete(
        table, "--na", "-999", "--label", "remark", "--ignore", "who,smoker", "-o", tmp_path / "out"
    )
    assert ran.code == 0, ran.err
    given, filled = mixed_lines(), filled_lines(tmp_path / "out")
    assert filled[0] == given[0]
    assert [line[6] for line in filled] == [line[6] for line in given]  # with its missing cells
    assert_refused(complete(table, "--label", "nobody", "-o", tmp_path / "two"), "nobody")


def test_options_reach_every_command(table):
    given = Source(table, missing_values="-999, none", label="who", ignore="remark,town")
    data = source.read(given, quiet=True)
    assert data.column_labels.tolist() == ["x", "y", "lead", "smoker", "code"]
    assert not (data.values == -999).any()


@pytest.mark.parametrize("command", ["fit", "evaluate", "compare", "report"])
def test_the_options_are_those_of_all_commands_that_read_a_table(fillrank, table, command):
    ran = fillrank(command, table, "--na", "-999", "--ignore", "x,nothing", "--label", "who")
    assert_refused(ran, "there is no column 'nothing'")


def test_errors_name_the_options(fillrank, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,x,c\n1,5,a\n2,tea,b\n3,7,a\n")
    ran = fillrank("complete", path)
    assert_refused(ran, "line 3, column 'x'", "--na tea", "--ignore NAME")


def test_other_methods_refuse_categories(fillrank, table):
    ran = fillrank("evaluate", table, "--method", "SoftImpute", "--na", "-999")
    assert_refused(ran, "SoftImpute cannot use")


def test_parquet_with_categories(complete, tmp_path):
    pl = pytest.importorskip("polars")
    header, *lines = mixed_lines()
    frame = pl.DataFrame(lines, schema=header, orient="row")
    frame = frame.with_columns(pl.when(pl.all() == "").then(None).otherwise(pl.all()).name.keep())
    frame.write_parquet(tmp_path / "t.parquet")
    ran = complete(tmp_path / "t.parquet", "--na", "-999", "-o", tmp_path / "out")
    assert ran.code == 0, ran.err
    filled = pl.read_parquet(tmp_path / "out" / "filled.parquet")
    assert filled.columns == header
    assert filled[header[0]].to_list() == [line[0] for line in lines]


@pytest.fixture
def survey(tmp_path):
    """A table with values of every kind that a text file can have."""
    frame = mixed_frame()
    frame.to_csv(tmp_path / "survey.csv")
    return tmp_path / "survey.csv"


def test_the_error_is_that_of_numbers_and_of_levels(fillrank, survey, tmp_path):
    ran = fillrank("complete", survey, "--sweeps", "30", "-o", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert "RMSE of numbers 0." in ran.out
    assert "of levels predicted correctly (" in ran.out
    assert "Noise level" not in ran.out
    page = read(tmp_path / "out" / "survey-report.html")
    assert "ordered levels" in page.text["columns"]
    assert "18 values of column 'lead' are limits such as" in page.text["summary"]
    results = json.loads((tmp_path / "out" / "summary.json").read_text())
    held_out = results["hidden_entries"]
    assert 0 < held_out["rmse_in_sd"] < 1.2
    assert 0.4 < held_out["accuracy"] <= 1
    assert "by_level" not in held_out


@pytest.mark.usefixtures("short_runs")
def test_evaluate_and_compare(fillrank, survey):
    ran = fillrank("evaluate", survey, "--hold-out", "0.3", "--sweeps", "30")
    assert ran.code == 0, ran.err
    assert "RMSE of numbers" in ran.out
    assert "Interval score" not in ran.out
    assert "Correct" in ran.out
    assert "nan" not in ran.out
    ran = fillrank(
        "compare", survey, "--methods", "GASR,SoftImpute", "--splits", "1", "-o", "c.csv"
    )
    assert ran.code == 0, ran.err
    assert "Relative" in ran.out
    assert "SoftImpute does not support this table" in ran.out
    with open("c-by-column.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["column"] for line in lines} >= {"weight", "answer", "region"}
    accuracy = {line["column"]: line["accuracy"] for line in lines}
    assert accuracy["weight"] == ""
    assert 0 <= float(accuracy["region"]) <= 1


@pytest.mark.usefixtures("short_runs")
def test_compare_takes_kinds_and_bounds(fillrank, tmp_path):
    """Those of the samplers: the other methods are fitted on all values as numbers."""
    frame = mixed_frame()[["weight", "visits", "stars"]]
    frame.to_csv(tmp_path / "numbers.csv")
    compare = ("compare", "numbers.csv", "--methods", "GASR,SoftImpute", "--splits", "1")
    ran = fillrank(*compare, "--kind", "visits=number", "-o", "c.csv", "--json")
    assert ran.code == 0, ran.err
    ranking = {each["method"]: each for each in json.loads(ran.raw)["ranking"]}
    # Stars are levels for GASR, so the error of numbers is that of the other columns for both.
    for each in ranking.values():
        own = [line for line in each["by_column"] if line["column"] != "stars"]
        n = [line["entries"] for line in own]
        squares = [line["rmse_in_sd"] ** 2 for line in own]
        assert each["rmse_in_sd"] == pytest.approx(np.sqrt(np.average(squares, weights=n)))
        assert "by_level" not in each
    with open("c.csv", newline="") as file:
        lines = {line["method"]: line for line in csv.DictReader(file)}
    for name, each in ranking.items():
        found = float(lines[name]["relative_error"])
        assert found == pytest.approx(each["relative_error"], rel=1e-5)
    assert lines["SoftImpute"]["accuracy"] == ""
    shown = fillrank(*compare, "--bounds", "weight=0:", "--no-round").out
    assert "Fitted on levels and counts as numbers: SoftImpute." in shown
    assert "Numbers, Levels" in shown


def test_compare_refuses_wrong_kinds_before_any_fit(fillrank, survey):
    for option, value, message in (
        ("--kind", "nothing=number", "COLUMN is a column of the table"),
        ("--kind", "weight=yes_no", "column 'weight' cannot be 'yes_no'"),
        ("--bounds", "weight=low:", "--bounds must be COLUMN=LOW:HIGH"),
    ):
        assert_refused(fillrank("compare", survey, option, value), message)
    both = ("--kind", "weight=number", "--likelihood", "gaussian")
    assert_refused(fillrank("compare", survey, *both), "not both")


@pytest.mark.usefixtures("short_runs")
def test_no_error_across_units_is_shown(fillrank, tmp_path):
    """Neither where all columns are numbers: those in the largest unit would decide."""
    mixed_frame()[["weight", "height"]].to_csv(tmp_path / "units.csv")
    ran = fillrank("compare", "units.csv", "--methods", "GASR,SoftImpute", "--splits", "1")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("RMSE In 90% Log Seconds Method in SD intervals score per fit")
    for method in ("GASR", "SoftImpute"):
        ran = fillrank("evaluate", "units.csv", "--method", method, "--hold-out", "0.3")
        assert re.search(r"Error RMSE [0-9.]+ standard deviations of the column", ran.out)
        assert "MAE" not in ran.out
    ran = fillrank("complete", "units.csv", "--sweeps", "30", "-o", "out")
    held_out = json.loads((tmp_path / "out" / "summary.json").read_text())["hidden_entries"]
    assert list(held_out)[:4] == ["entries", "relative_error", "rmse_in_sd", "accuracy"]
    assert {"rmse", "mae", "by_column", "by_level"} <= held_out.keys()


def test_columns_of_numbers_of_unlike_kinds_are_scored(fillrank, tmp_path):
    """Positive numbers have a kind of their own, but no levels: there is no accuracy to show."""
    lead, size = np.exp(np.random.default_rng(0).normal(size=(2, 40)) * [[2.0], [0.1]])
    lines = ["who,lead,size", *(f"p{i},{lead[i]:.4f},{size[i]:.4f}" for i in range(40))]
    (tmp_path / "numbers.csv").write_text("\n".join(lines))
    ran = fillrank("evaluate", "numbers.csv", "--folds", "2", "--sweeps", "20")
    assert ran.code == 0, ran.err
    assert "RMSE of numbers" in ran.out
    assert "Correct" not in ran.out


def test_dates_are_predicted_by_their_labels(fillrank, tmp_path):
    rng = np.random.default_rng(0)
    since = np.datetime64("2024-01-01") + rng.integers(0, 50, 20)
    lines = ["who,x,since", *(f"p{i},{rng.normal():.3f},{since[i]}" for i in range(20)), "q,1,"]
    (tmp_path / "dates.csv").write_text("\n".join(lines))
    assert fillrank("fit", "dates.csv", "--sweeps", "20", "-o", "m.fillrank").code == 0
    (tmp_path / "pairs.csv").write_text("q,since\nq,x\n")
    for options in ((), ("--json",), ("-o", "out.csv"), ("-o", "out.parquet")):
        ran = fillrank("predict", "m.fillrank", "pairs.csv", "--level", "0.9", *options)
        assert ran.code == 0, ran.err
    assert re.search(r"\nq,since,202[34]-[0-9]{2}-[0-9]{2}", (tmp_path / "out.csv").read_text())


def test_predictions_of_a_model_of_mixed_kinds(fillrank, survey):
    ran = fillrank("fit", survey, "--sweeps", "30", "-o", "m.fillrank")
    assert ran.code == 0, ran.err
    pairs = "p0,region\np1,weight\np2,smoker\n"
    ran = fillrank("predict", "m.fillrank", "--level", "0.9", "--json", stdin=pairs)
    assert ran.code == 0, ran.err
    region, weight, smoker = json.loads(ran.raw, parse_constant=pytest.fail)
    assert region["value"] in ("north", "south", "<b>west</b>")
    assert region["lower"] is None
    assert float(weight["lower"]) < float(weight["value"]) < float(weight["upper"])
    assert smoker["value"] in ("yes", "no")
    ran = fillrank("predict", "m.fillrank", "--missing", "-o", "all.csv")
    assert ran.code == 0, ran.err
    ran = fillrank("report", "m.fillrank", "-o", "r.html")
    assert ran.code == 0, ran.err
