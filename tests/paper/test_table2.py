import csv

import numpy as np
import pytest
from matplotlib.figure import Figure

from fillrank.paper import figure2, table2
from fillrank.paper.methods import (
    GASR,
    GASR_PUBLISHED,
    HASI,
    IPM3F,
    M3F,
    SAMPLERS,
    fit,
    make,
    predict_at,
)
from fillrank.paper.ratings import EACHMOVIE, GENERATED, MOVIELENS, sources
from fillrank.paper.study import Result
from fillrank.posterior.metrics import nmae
from helpers.quick_runs import assert_written, run_quick


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return tmp_path_factory.mktemp("ratings")


@pytest.fixture(scope="module")
def table(output):
    return run_quick(table2, output)


@pytest.fixture(scope="module")
def figure(output, table):
    return run_quick(figure2, output)


def test_the_table_is_written(table):
    experiment, results, lines, folder = table
    assert_written(experiment, folder)
    assert len(results) == len(experiment.tasks) == 2 * len(table2.METHODS)
    assert lines[0].startswith("generated ratings: 2 random splits")
    with (folder / "table2.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert list(rows) == list(table2.METHODS)
    each = [r.numbers["nmae_rounded"] for r in results if r.key["method"] == HASI]
    assert float(rows[HASI]["nmae_rounded"]) == pytest.approx(np.mean(each))
    assert float(rows[HASI]["nmae_rounded sd"]) == pytest.approx(np.std(each, ddof=1))
    assert rows[HASI]["paper rmse"] == ""


def test_every_method_predicts_better_than_the_mean(table):
    """Errors are below those of the mean training rating; max-margin methods are scored by NMAE."""
    train, test = sources(None, True, 2)[GENERATED].split(0)
    constant = table2.errors(test.values, np.full(len(test), train.values.mean()), (1.0, 5.0))
    for result in table[1]:
        what = "nmae" if result.key["method"] in (M3F, IPM3F) else "rmse"
        assert result.numbers[what] < constant[what], result.key


def test_rounding_changes_no_predicted_level(table):
    for result in table[1]:
        same = result.numbers["rmse"] == result.numbers["rmse_rounded"]
        assert same == (result.key["method"] in (M3F, IPM3F))


def test_errors_of_a_worked_example():
    found = table2.errors(np.array([1.0, 5.0]), np.array([1.4, 3.4]), (1.0, 5.0))
    assert found == pytest.approx(
        {
            "rmse": np.sqrt((0.4**2 + 1.6**2) / 2),
            "nmae": 0.25,
            "rmse_rounded": np.sqrt(2.0),
            "nmae_rounded": 0.25,
        }
    )


def result_on(data, method, split=0):
    numbers = dict.fromkeys(table2.ERRORS, 0.9) | {"rank": 3, "seconds": 1.0}
    return Result({"data": data, "split": split, "method": method}, numbers, 1.0)


def test_paper_numbers_are_shown_for_movielens_only(tmp_path):
    results = [
        result_on(data, method) for data in (MOVIELENS, EACHMOVIE) for method in table2.METHODS
    ]
    lines = table2.present(results, tmp_path)
    of_gasr = [line for line in lines if line.startswith(f"| {GASR_PUBLISHED} ")]
    assert len(of_gasr) == 2
    assert of_gasr[0].endswith("| 0.8528 ± 0.0025 | 0.1673 ± 0.0005 | 0.1569 ± 0.0006 |")
    assert of_gasr[1].endswith("|  |  |  |")
    (of_hasi, _) = (line for line in lines if line.startswith(f"| {HASI} "))
    assert of_hasi.endswith("| 0.9444 ± 0.0011 | 0.1813 ± 0.0002 |  |")
    (heading,) = (line for line in lines if line.startswith(EACHMOVIE))
    assert "not those of the paper" in heading


def test_the_figure_is_written_with_the_lines_of_the_table(figure):
    experiment, results, lines, folder = figure
    assert_written(experiment, folder)
    assert [result.key["method"] for result in results] == list(SAMPLERS)
    assert lines == []


def test_the_panel_of_errors_shows_curves_and_lines(figure):
    ax = Figure().subplots()
    figure2._draw_errors(ax, GENERATED, figure[1], {HASI: 0.17, M3F: 0.21})
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert {*SAMPLERS, HASI, M3F} <= set(lines)
    assert set(lines[HASI].get_ydata()) == {0.17}
    np.testing.assert_array_equal(
        lines[GASR].get_ydata(), figure[1][SAMPLERS.index(GASR)].numbers["traces"]["nmae"]
    )
    low, high = ax.get_ylim()
    assert low < 0.17 < 0.21 < high


def test_without_table2_the_message_says_how_to_add_it(figure, tmp_path):
    _, results, _, _ = figure
    request = figure2.Request(True, None, tmp_path, 1)
    (line,) = figure2.present(results, tmp_path, request)
    assert "run table2 with the same --output" in line


def test_running_averages_end_at_the_prediction_of_the_estimator(figure):
    result = next(r for r in figure[1] if r.key["method"] == GASR_PUBLISHED)
    train, test = sources(None, True, 1)[GENERATED].split(0)
    model = make(GASR_PUBLISHED, max_rank=5, n_sweeps=120, random_state=0)
    fit(model, train)
    predicted = predict_at(model, test.row_index, test.column_index)
    expected = nmae(test.values, predicted, (1.0, 5.0))
    traces = result.numbers["traces"]
    assert traces["nmae"][-1] == pytest.approx(expected, rel=1e-5)
    assert {len(values) for values in traces.values()} == {120}
    assert 1 <= traces["rank"][-1] <= 5


def test_only_gasr_has_a_rank_by_ratio(figure):
    by_ratio = {r.key["method"] for r in figure[1] if "rank_by_ratio" in r.numbers["traces"]}
    assert by_ratio == {GASR, GASR_PUBLISHED}
