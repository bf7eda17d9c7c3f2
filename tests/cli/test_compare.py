import json
import warnings

import numpy as np
import pytest

import fillrank as fr
from fillrank.cli import comparison
from fillrank.cli.group_scores import SplitScores
from fillrank.cli.ranking import TITLES
from fillrank.cli.signals import FAILED
from fillrank.estimators.score_groups import GroupSums
from helpers.refusals import assert_refused
from helpers.result_files import read_csv

FAST = ("--methods", "GASR,SoftImpute,M3F")

pytestmark = pytest.mark.usefixtures("short_runs")


@pytest.fixture
def measured(monkeypatch):
    """Figures that take no time: the error is that of the list, by method; calls are noted."""
    calls, settings_of, errors = [], {}, {"GASR": 1.0, "BPMF": 0.5, "SoftImpute": 2.0, "M3F": 3.0}

    def measure(settings, split, level, progress):
        calls.append((settings.method, split.test))
        settings_of[settings.method] = settings
        error = errors[settings.method]
        if isinstance(error, BaseException):
            raise error
        covered = 0.9 if settings.method in ("GASR", "BPMF") else float("nan")
        scores = {"rmse": error, "mae": error / 2, "coverage": covered, "seconds": 1.0, "rank": 2}
        sums = GroupSums(*np.ones((len(GroupSums._fields), split.test.shape[1])))
        return SplitScores(scores | {"interval_score": 4.0, "log_score": -1.0}, sums, sums)

    monkeypatch.setattr(comparison, "score_split", measure)
    monkeypatch.setattr(comparison, "_compile", lambda settings: None)
    measure.calls, measure.settings_of, measure.errors = calls, settings_of, errors
    return measure


def test_methods_are_ranked_and_excluded_ones_listed_with_the_reason(
    fillrank, write_wide, tmp_path
):
    ran = fillrank("compare", write_wide(), *FAST, "--splits", "2", "-o", "figures.csv")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("In 90% Interval Log Seconds Method RMSE MAE intervals score score")
    assert "Worst columns of " in ran.out
    assert "…" not in ran.out
    assert "M3F does not support this table: this method is for ratings" in ran.out
    assert "6 fits will take about" in ran.err
    names = ("figures.csv", "figures-by-column.csv", "figures-by-level.csv")
    assert ran.out.endswith(" ".join(names))
    header, *lines = read_csv(tmp_path / "figures.csv")
    assert {line[0] for line in lines[:2]} == {"GASR", "SoftImpute"}
    errors = [float(line[header.index("rmse")]) for line in lines[:2]]
    assert errors == sorted(errors)
    assert lines[2][0] == "M3F"
    assert "ratings" in lines[2][-1]


def test_all_methods_have_the_same_held_out_entries(fillrank, write_wide, measured):
    ran = fillrank(
        "compare", write_wide(), "--methods", "gasr, bpmf,GASR", "--splits", "2", "--json"
    )
    found = json.loads(ran.raw)
    assert [each["method"] for each in found["ranking"]] == ["BPMF", "GASR"]
    (first, one), (second, same), (_, other), _ = measured.calls
    assert (first, second) == ("GASR", "BPMF")
    np.testing.assert_array_equal(one.values, same.values)
    assert not np.array_equal(one.values, other.values)


def test_all_methods_have_the_seed_and_the_threads_and_only_samplers_the_rest(
    fillrank, write_wide, measured
):
    table = write_wide()
    options = ("--hold-out", "0.1", "--seed", "3", "--threads", "1", "--robust")
    ran = fillrank("compare", table, "--methods", "GASR,SoftImpute", "--splits", "2", *options)
    assert ran.code == 0, ran.err
    given = [measured.settings_of[name] for name in ("GASR", "SoftImpute")]
    assert [(each.seed, each.threads, each.robust) for each in given] == [
        (3, 1, True),
        (3, 1, False),
    ]
    data = fr.read(table)
    for seed, (_, test) in zip((3, 3, 4, 4), measured.calls, strict=True):
        np.testing.assert_array_equal(test.values, data.split(0.1, random_state=seed)[1].values)


def test_a_failing_method_does_not_end_the_others(fillrank, write_wide, measured):
    measured.errors["GASR"] = ZeroDivisionError("no [luck]")
    ran = fillrank("compare", write_wide(), "--methods", "GASR,BPMF", "--splits", "2")
    assert ran.code == 0, ran.err
    assert "GASR failed: ZeroDivisionError: no [luck]" in ran.out
    assert [name for name, _ in measured.calls] == ["GASR", "BPMF", "BPMF"]
    measured.errors["BPMF"] = ValueError("x")
    ran = fillrank("compare", write_wide(), "--methods", "GASR,BPMF", "--json")
    assert ran.code == 2
    assert json.loads(ran.raw)["ranking"] == []


def test_ctrl_c_shows_the_results_so_far(fillrank, write_wide, measured, tmp_path):
    measured.errors["SoftImpute"] = KeyboardInterrupt()
    table = write_wide()
    ran = fillrank("compare", table, *FAST, "-o", "some.json")
    assert ran.code == 130
    assert "Interrupted. Results so far:" in ran.err
    assert "GASR 1 0.5 90.0% 4 -1 1.0" in ran.out
    assert "SoftImpute not run" in ran.out
    found = json.loads((tmp_path / "some.json").read_text())
    assert [each["method"] for each in found["ranking"]] == ["GASR"]
    ran = fillrank("compare", table, "--methods", "SoftImpute,GASR")
    assert ran.code == 130
    assert "There are no results yet." in ran.err


def test_methods_are_ranked_by_the_splits_that_all_have(
    fillrank, write_wide, monkeypatch, measured
):
    """Stopped in the second split, the first decides, lest the one with an easy split win."""
    right = comparison.score_split

    def measure(settings, split, level, progress):
        n = len(measured.calls)
        if n == 3:
            raise KeyboardInterrupt
        found = right(settings, split, level, progress)
        scores = found.scores | ({"rmse": 0.01} if n == 2 else {})  # GASR's second
        return found._replace(scores=scores)

    monkeypatch.setattr(comparison, "score_split", measure)
    ran = fillrank("compare", write_wide(), "--methods", "GASR,BPMF", "--json")
    assert ran.code == 130
    assert [each["method"] for each in json.loads(ran.raw)["ranking"]] == ["BPMF", "GASR"]


def test_tables_by_column_and_by_level_have_all_methods(fillrank, write_wide, tmp_path):
    table = write_wide()
    methods = ("--methods", "GASR,SoftImputeALS", "--splits", "2")
    ran = fillrank("compare", table, *methods, "-o", "a.csv", "--json")
    assert ran.code == 0, ran.err
    ranking = json.loads(ran.raw)["ranking"]
    for name, field in (("by_column", "column"), ("by_level", "fifth")):
        header, *lines = read_csv(tmp_path / f"a-{name.replace('_', '-')}.csv")
        expected = [(method["method"], line) for method in ranking for line in method[name]]
        assert header == ["method", *expected[0][1]]
        assert [tuple(line[:2]) for line in lines] == [
            (method, str(line[field])) for method, line in expected
        ]
        for line, (method, values) in zip(lines, expected, strict=True):
            assert float(line[header.index("rmse")]) == pytest.approx(values["rmse"], rel=1e-5)
            assert (line[-1] == "") == (method == "SoftImputeALS")
    # Each split holds out a fifth of the entries.
    n = json.loads(ran.raw)["hidden_entries"]
    assert sum(line["entries"] for line in ranking[0]["by_column"]) == 2 * n
    assert_refused(fillrank("compare", table, *methods, "-o", "a.csv"), "already exists")
    (tmp_path / "b-by-level.csv").touch()
    assert_refused(fillrank("compare", table, *methods, "-o", "b.csv"), "b-by-level.csv already")


def test_what_cannot_be_compared(fillrank, write_wide):
    table = write_wide()
    for methods in ("GASR,SVD", ","):
        ran = fillrank("compare", table, "--methods", methods)
        assert ran.code == 2
        assert "Methods: GASR" in ran.err
    assert_refused(fillrank("compare", table, "-o", "x.txt"), ".csv or .json")


def test_recommendations_are_compared_with_the_most_popular_columns(fillrank, write_long, tmp_path):
    arguments = (
        "--methods",
        "SoftImpute,SoftImputeALS",
        "--splits",
        "1",
        "--top",
        "3",
        "--relevant",
        "0",
    )
    ran = fillrank("compare", write_long(), *arguments, "-o", "figures.csv")
    assert ran.code == 0, ran.err
    assert "Top 3 Precision Recall NDCG MRR Hit rate coverage" in ran.out
    assert "most popular 0." in ran.out
    assert "others have no relevant held-out entry" in ran.out
    header, *lines = read_csv(tmp_path / "figures.csv")
    by_name = {line[0]: dict(zip(header, line, strict=True)) for line in lines}
    assert by_name["most popular"]["rmse"] == ""
    ran = fillrank("compare", "ratings.csv", *arguments, "--json")
    found = json.loads(ran.raw)
    assert (found["top"], found["relevant"]) == (3, 0.0)
    train, test = fr.read("ratings.csv").split(0.2, random_state=0)
    for each in found["ranking"]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fr.ConvergenceWarning)
            model = getattr(fr, each["method"])(random_state=0, progress=False).fit(train)
        expected = fr.score_ranking(test, model, 3, relevant=0)
        popular = fr.score_ranking(test, model, 3, relevant=0, by="popular")
        for name in TITLES:
            assert each["mean"][name] == pytest.approx(expected[name], rel=1e-12)
            assert each["mean"][f"popular_{name}"] == pytest.approx(popular[name], rel=1e-12)
            assert float(by_name[each["method"]][name]) == pytest.approx(expected[name], rel=1e-5)
            assert float(by_name["most popular"][name]) == pytest.approx(popular[name], rel=1e-5)
        assert each["mean"]["ranked_rows"] == expected["rows"]


def test_options_of_recommendations(fillrank, write_wide):
    refusals = {
        ("--top", "0"): ["'--top'", "1"],
        ("--top", "3", "--relevant", "good"): ["'--relevant'", "'good'"],
        ("--top", "3", "--relevant", "nan"): ["'--relevant'", "'nan'"],
    }
    for arguments, words in refusals.items():
        ran = fillrank("compare", write_wide(), *arguments)
        assert ran.code == 2
        assert all(word in ran.err for word in words), ran.err
    assert_refused(fillrank("compare", "table.csv", "--relevant", "4"), "--top")
    settings = ("--methods", "SoftImpute", "--splits", "1", "--top", "3", "--relevant", "1e9")
    ran = fillrank("compare", "table.csv", *settings)
    assert ran.code == FAILED
    assert "no held-out entry is relevant" in ran.out
    assert "--relevant 1000000000." in ran.out
