import csv
import math

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import InputError
from fillrank.paper import published, table1
from fillrank.paper.methods import BPMF, BPMF_PUBLISHED, BPMF_TOO_SURE, GASR, GASR_PUBLISHED
from fillrank.paper.published import SETTINGS
from helpers.quick_runs import assert_written, request, run_quick


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return run_quick(table1, tmp_path_factory.mktemp("table1"))


def test_all_files_are_written(ran):
    experiment, results, lines, folder = ran
    assert_written(experiment, folder)
    assert len(results) == len(experiment.tasks) == 2 * 2 * len(table1.METHODS)
    assert lines == (folder / "table1.md").read_text(encoding="utf-8").split("\n")
    with (folder / "table1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(table1.METHODS)
    of_gasr = next(row for row in rows if row["method"] == GASR and row["missing"] == "0.5")
    each = [
        r.numbers["rmse"] for r in results if r.key["method"] == GASR and r.key["missing"] == 0.5
    ]
    assert float(of_gasr["rmse"]) == pytest.approx(np.mean(each))
    assert float(of_gasr["rmse sd"]) == pytest.approx(abs(each[0] - each[1]) / math.sqrt(2))
    assert of_gasr["paper"] == ""


@pytest.mark.filterwarnings("ignore::fillrank.ConvergenceWarning")
def test_errors_are_of_all_cells_against_the_truth(ran):
    result = next(r for r in ran[1] if r.key["method"] == GASR and r.key["missing"] == 0.5)
    data, Z = fr.synthetic(60, 60, 2, 1.0, 0.5, random_state=result.key["seed"])
    model = fr.GASR(max_rank=6, n_sweeps=60, random_state=result.key["seed"], progress=False)
    error = math.sqrt(np.mean((model.fit(data).predict_block(range(60), range(60)) - Z) ** 2))
    assert result.numbers["rmse"] == pytest.approx(error)
    assert result.numbers["relative"] == pytest.approx(error / math.sqrt(np.mean(Z**2)))
    assert result.numbers["ratio"] == pytest.approx(error / math.sqrt(2 * 118 / 1800))


def test_methods_that_learn_the_noise_come_near_the_oracle(ran):
    for result in ran[1]:
        if result.key["method"] in (GASR, BPMF):
            assert 0.8 < result.numbers["ratio"] < 1.25


def test_bpmf_fails_with_a_noise_precision_that_is_too_high(ran):
    """A noise precision that is 100 times too high increases the error of sparse tables."""
    ratio = {
        m: np.mean(
            [r.numbers["ratio"] for r in ran[1] if r.key["method"] == m and r.key["missing"] == 0.5]
        )
        for m in (BPMF, BPMF_TOO_SURE)
    }
    assert ratio[BPMF_TOO_SURE] > 1.5 * ratio[BPMF]


def test_oracle_follows_the_specification():
    for setting in SETTINGS:
        m, q, _ = setting
        floors = [
            table1.oracle(m, m, q, round((1 - x) * m * m)) for x in published.MISSING
        ]  # 9.9 of the specification
        assert floors == pytest.approx([0.4461, 0.3154, 0.1995, 0.1411], abs=6e-5)


def test_paper_numbers_are_matched_to_their_cells():
    first, second = SETTINGS
    assert table1.printed(first, 0.9, BPMF_PUBLISHED).mean == 1.6842
    assert table1.printed(first, 0.0, GASR).mean == 0.0724
    assert table1.printed(second, 0.8, GASR_PUBLISHED).mean == 0.1688
    assert table1.printed(table1.QUICK.settings[0], 0.0, GASR) is None


def test_interpretations_with_absolute_errors_are_excluded():
    lines = table1._interpretation_lines()
    row = next(line for line in lines if "GASR | 500 | sigma = 1, relative to Z" in line)
    assert row.endswith("| 1.00 | 0.94 | 0.94 | 1.15 |")
    row = next(line for line in lines if "GASR | 1000 | sigma = sqrt(q), absolute" in line)
    assert all(float(cell) < 0.3 for cell in row.split("|")[4:8])
    assert len(lines) == 2 + 2 + 2 * 2 * 5 + 1


def test_full_version_follows_the_paper():
    experiment = table1.experiment(request(quick=False))
    assert len(experiment.tasks) == 2 * 4 * 3 * len(table1.METHODS)
    costs = {str(task.key): task.cost for task in experiment.tasks}
    assert max(costs, key=costs.get) == str(
        {"setting": [1000, 10, 50], "missing": 0.0, "seed": 0, "method": GASR_PUBLISHED}
    )


def test_data_option_is_refused(tmp_path):
    with pytest.raises(InputError, match="omit --data"):
        table1.experiment(request(data=tmp_path))
