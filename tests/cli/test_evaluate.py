import json
import re

import numpy as np
import pytest

import fillrank as fr
from helpers.refusals import assert_refused

QUICK = ("--sweeps", "20", "--max-rank", "2")


def test_errors_and_coverage_over_folds(fillrank, write_wide):
    ran = fillrank("evaluate", write_wide(), *QUICK, "--folds", "3", "--level", "0.8")
    assert ran.code == 0, ran.err
    for word in ("RMSE", "±", "MAE", "within their 80% intervals", "Interval score", "Log score"):
        assert word in ran.out
    assert "Worst columns" in ran.out
    assert "Warning" not in ran.out
    assert "3 fits will take about" in ran.err
    assert "3 of 3: Fitting without" in ran.err


def test_every_entry_is_held_out_once(fillrank, write_wide, monkeypatch):
    from fillrank.cli import evaluate

    hidden, right = [], evaluate.score_split

    def measure(settings, split, level, progress):
        hidden.extend(zip(split.test.rows, split.test.columns, strict=True))
        return right(settings, split, level, progress)

    monkeypatch.setattr(evaluate, "score_split", measure)
    table = write_wide()
    assert fillrank("evaluate", table, *QUICK).code == 0
    data = fr.read(table)
    assert sorted(hidden) == sorted(zip(data.rows, data.columns, strict=True))


def test_json_has_all_figures_and_nothing_else(fillrank, write_wide, matrix):
    ran = fillrank("evaluate", write_wide(), *QUICK, "--hold-out", "0.2", "--seed", "3", "--json")
    found = json.loads(ran.raw)
    assert found["method"] == "GASR"
    assert found["table"]["entries"] == np.sum(~np.isnan(matrix))
    assert len(found["splits"]) == 1
    assert found["standard_deviation"]["rmse"] is None
    train, test = fr.read("table.csv").split(0.2, random_state=3)
    model = fr.GASR(n_sweeps=20, max_rank=2, random_state=3, progress=False)
    with pytest.warns(fr.ConvergenceWarning):
        model.fit(train)
    for name, value in fr.score(test, model).items():
        own = found["mean"][name]
        assert own is None if np.isnan(value) else own == pytest.approx(value, rel=1e-12)
    assert found["warnings"] == []
    for name, table in (
        ("by_column", fr.score_by_column(test, model)),
        ("by_level", fr.score_by_level(test, model)),
    ):
        expected = table.to_dict("records")
        assert [list(line) for line in found[name]] == [list(line) for line in expected]
        for line, own in zip(found[name], expected, strict=True):
            first, *names = line
            assert line[first] == own[first]
            assert [line[each] for each in names] == pytest.approx([own[each] for each in names])


def write_units(tmp_path, n_far):
    """Columns of one pattern, and some without it, in a unit of which their spread is a thousandth."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) + 0.1 * rng.normal(size=(60, 8 + n_far))
    X[:, 8:] = 20 + 0.001 * rng.normal(size=(60, n_far))
    names = [f"near {j}" for j in range(8)] + [f"[red]far {j}\x07" for j in range(n_far)]
    lines = [",".join(["row", *names])]
    lines += [",".join([f"row {i}", *map(str, row)]) for i, row in enumerate(X)]
    (tmp_path / "units.csv").write_text("\n".join(lines))
    return "units.csv"


@pytest.mark.parametrize("n_far", [1, 8])
def test_columns_that_are_predicted_badly_are_named(fillrank, tmp_path, n_far):
    evaluate = ("evaluate", write_units(tmp_path, n_far), "--method", "SoftImpute", "--folds", "2")
    ran = fillrank(*evaluate)
    assert ran.code == 0, ran.err
    found = (
        r"worse than the column mean \(error [0-9.]+ standard deviations over 60 held-out values\)"
    )
    said = rf"Warning: Column \[red\]far \d\\x07: predictions are {found}\."
    assert len(re.findall(said, ran.out)) == min(n_far, 5)
    assert ("3 more columns are predicted as badly: --json lists all." in ran.out) == (n_far == 8)
    found = json.loads(fillrank(*evaluate, "--json").raw)
    assert len(found["warnings"]) == n_far
    assert "near" not in "".join(found["warnings"])


def test_a_method_without_intervals(fillrank, write_wide):
    table = write_wide()
    ran = fillrank("evaluate", table, "--method", "softimpute", "--hold-out", "0.2")
    assert ran.code == 0, ran.err
    assert "intervals" not in ran.out
    ran = fillrank("evaluate", table, "--method", "SoftImpute", "--hold-out", "0.2", "--json", "-q")
    assert json.loads(ran.raw)["mean"]["coverage"] is None
    assert ran.err == ""


def test_invalid_options_are_rejected(fillrank, write_wide, tmp_path):
    table = write_wide()
    (tmp_path / "few.csv").write_text(",x,y\na,1,\nb,,2\n")
    assert_refused(fillrank("evaluate", table, "--folds", "3", "--hold-out", "0.1"), "not both")
    assert_refused(fillrank("evaluate", "few.csv", *QUICK), "at most the number of entries, 2")
    for option, value in (("--hold-out", "0"), ("--hold-out", "nan"), ("--folds", "1")):
        ran = fillrank("evaluate", table, option, value)
        assert ran.code == 2
        assert option in ran.err


def test_recommendations_are_scored(fillrank, write_long):
    arguments = (*QUICK, "--hold-out", "0.3", "--top", "2", "--relevant", "all")
    ran = fillrank("evaluate", write_long(), *arguments)
    assert ran.code == 0, ran.err
    for word in ("Precision at 2", "NDCG at 2", "by the most popular columns", "Ranked rows"):
        assert word in ran.out
    found = json.loads(fillrank("evaluate", "ratings.csv", *arguments, "--json").raw)
    assert (found["top"], found["relevant"]) == (2, "all")
    train, test = fr.read("ratings.csv").split(0.3, random_state=0)
    model = fr.GASR(n_sweeps=20, max_rank=2, random_state=0, progress=False)
    with pytest.warns(fr.ConvergenceWarning):
        model.fit(train)
    expected = fr.score_ranking(test, model, 2, relevant="all")
    assert found["mean"]["ndcg"] == pytest.approx(expected["ndcg"], rel=1e-12)
    assert found["mean"]["ranked_rows"] == expected["rows"]


def test_more_folds_than_entries(fillrank, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,\n")
    assert_refused(fillrank("evaluate", "t.csv"), "--folds must be at most", "3", "got 5")
