import json

import numpy as np
import pytest

import fillrank as fr
from helpers.refusals import assert_refused

QUICK = ("--sweeps", "20", "--max-rank", "2")


def test_errors_and_coverage_over_folds(fillrank, write_wide):
    ran = fillrank("evaluate", write_wide(), *QUICK, "--folds", "3", "--level", "0.8")
    assert ran.code == 0, ran.err
    for word in ("RMSE", "±", "MAE", "within their 80% intervals", "Seconds per fit"):
        assert word in ran.out
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
    assert found["mean"]["rmse"] == pytest.approx(fr.score(test, model)["rmse"], rel=1e-12)


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
