import json

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.explore.views import LEVEL, PAGE, ModelView, Query
from helpers.explorer_models import FOODS, HOSTILE, hostile, large, observed, people, survey

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.ConvergenceWarning")


@pytest.fixture(scope="module")
def view():
    return ModelView(survey(), "survey")


def by_name(line):
    return {cell["name"]: cell for cell in line["cells"]}


def test_a_row_has_observed_values_and_predictions(view):
    model, data = view.model, view.model.observations_
    cells = by_name(view.line("rows", 7, Query()))
    name = data.row_labels[7]
    given = dict(zip(data.columns[data.rows == name], data.values[data.rows == name], strict=True))
    assert 0 < len(given) < len(cells) == 16
    for food, cell in cells.items():
        if food in given:
            assert cell["known"]
            assert cell["value"] == pytest.approx(given[food], rel=1e-6)
            assert "low" not in cell
        else:
            low, high = model.predict_interval(name, food, LEVEL, kind="observation")
            assert cell["value"] == pytest.approx(model.predict(name, food)[0], rel=1e-6)
            assert [cell["low"], cell["high"]] == pytest.approx([low[0], high[0]], rel=1e-6)


def test_a_column_has_the_same_values_as_its_rows(view):
    rows = by_name(view.line("rows", 7, Query()))
    at = view.labels["columns"].position("tea")
    column = view.line("columns", at, Query("high", "all", 0))
    rest = view.line("columns", at, Query("high", "all", PAGE))
    cell = (by_name(column) | by_name(rest))[view.labels["rows"].texts[7]]
    assert {k: cell.get(k) for k in ("value", "low", "high")} == {
        k: rows["tea"].get(k) for k in ("value", "low", "high")
    }


def test_pages_are_sorted_and_hold_each_cell_once(view):
    parts = [view.line("columns", 3, Query("high", "all", start)) for start in (0, 50, 100)]
    assert [len(part["cells"]) for part in parts] == [50, 30, 0]
    cells = [cell for part in parts for cell in part["cells"]]
    values = [cell["value"] for cell in cells]
    assert values == sorted(values, reverse=True)
    assert len({cell["at"] for cell in cells}) == 80
    low = view.line("columns", 3, Query("low", "all", 0))["cells"]
    assert [cell["value"] for cell in low] == sorted(values)[:50]


def test_known_and_filled_cells_can_be_shown_alone(view):
    line = {s: view.line("rows", 2, Query("high", s, 0)) for s in ("all", "known", "filled")}
    known, filled = ({c["name"] for c in line[s]["cells"]} for s in ("known", "filled"))
    assert known | filled == {c["name"] for c in line["all"]["cells"]} == set(FOODS.split())
    assert not known & filled
    assert len(known) == line["known"]["total"] == line["all"]["known"]
    assert all(cell["known"] for cell in line["known"]["cells"])


def test_values_and_intervals_fit_on_the_axis(view):
    for at in range(20):
        line = view.line("rows", at, Query())
        start, end = line["axis"][0] - 1e-5, line["axis"][1] + 1e-5  # values are rounded
        for cell in line["cells"]:
            assert start <= cell["value"] <= end
            assert cell.get("known") or start <= cell["low"] <= cell["high"] <= end


def test_recommendations_are_the_models(view):
    table = view.model.recommend(view.labels["rows"].texts[5], n=10)
    found = view.recommend(5, "mean")["cells"]
    assert [cell["name"] for cell in found] == list(table["column"])
    assert [cell["value"] for cell in found] == pytest.approx(list(table["value"]), rel=1e-6)
    cautious = view.recommend(5, "cautious")["cells"]
    best = {cell["name"]: cell["value"] for cell in found}
    assert all(cell["value"] < best[cell["name"]] for cell in cautious if cell["name"] in best)
    curious = [view.recommend(5, "curious")["cells"] for _ in range(8)]
    assert len({tuple(cell["value"] for cell in cells) for cells in curious}) > 1


@pytest.mark.parametrize("method", ["SoftImpute", "M3F", "IPM3F", "BPMF"])
def test_other_methods(method):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(1, 6, size=(30, 12)).astype(float))
    table = table.mask(rng.random((30, 12)) < 0.4)
    settings = {
        "SoftImpute": {"penalty": 1.0},
        "M3F": {"penalty": 1.0, "max_rank": 3, "random_state": 0},
        "IPM3F": {"penalty": 1.0, "max_rank": 3, "random_state": 0},
        "BPMF": {"max_rank": 3, "n_sweeps": 30, "random_state": 0},
    }[method]
    view = ModelView(getattr(fr, method)(progress=False, **settings).fit(table), "t")
    about = view.about()
    assert about["intervals"] == (method == "BPMF")
    assert (about["not_converged"] is None) == (method != "BPMF")
    assert ("cautious" in about["orders"]) == (method == "BPMF")
    line = view.line("rows", 3, Query())
    assert line["axis"] == [1.0, 5.0]
    filled = [cell for cell in line["cells"] if not cell.get("known")]
    assert filled
    assert all((cell["low"] is not None) == about["intervals"] for cell in filled)
    assert view.recommend(3, "mean")["cells"]
    nearest = view.nearest("columns", 0)["nearest"]
    assert len(nearest) <= 10
    assert all(each["similarity"] > 0 for each in nearest)
    json.dumps([about, line], allow_nan=False)


def test_a_model_that_has_not_converged_says_so():
    table = np.random.default_rng(0).standard_normal((12, 8))
    table[table > 1] = np.nan
    run = fr.GASR(n_sweeps=12, progress=False).fit(table)
    found = ModelView(run, "t").about()["not_converged"]
    assert (
        found
        == f"not converged: {run.diagnostics().reason}. Set n_sweeps above the 12 of this run."
    )
    options = ModelView(run, "t", setting=lambda each: f"--{each.name.removeprefix('n_')}")
    assert options.about()["not_converged"].endswith("Set --sweeps above the 12 of this run.")
    solver = fr.SoftImpute(penalty=0.5, max_iterations=1, tolerance=1e-12, progress=False).fit(
        table
    )
    found = ModelView(solver, "t").about()["not_converged"]
    assert found.startswith(f"not converged: {solver.stop_reason_}. Raise max_iterations")


def test_a_model_without_its_entries(tmp_path):
    survey().save(tmp_path / "m.fillrank")
    view = ModelView(fr.load(tmp_path / "m.fillrank"), "m")
    assert view.about()["entries"] is None
    line = view.line("rows", 0, Query())
    assert line["known"] is None
    assert not any(cell.get("known") for cell in line["cells"])
    assert len(view.recommend(0, "mean")["cells"]) == 10


def test_hostile_names_are_found_and_given_as_they_are():
    view = ModelView(hostile(), "h")
    for at, name in enumerate(view.labels["rows"].texts):
        if name in HOSTILE and name.strip():
            assert at in [m["at"] for m in view.search("rows", name)["matches"]]
            assert view.line("rows", at, Query())["name"] == name


def test_titles_are_shown_with_the_labels():
    titles = {"tea": "Green tea", "milk": HOSTILE[0]}
    view = ModelView(survey(), "survey", column_titles=titles)
    assert view.about()["titled"] == ["columns"]
    plain = ModelView(survey(), "survey")
    assert plain.about()["titled"] == []

    def without(cells):
        found = {cell["name"]: cell.pop("title", None) for cell in cells}
        assert {name: title for name, title in found.items() if title} == {
            name: titles[name] for name in found if name in titles
        }
        return cells

    tea, milk = (view.labels["columns"].position(food) for food in ("tea", "milk"))
    line = view.line("rows", 7, Query())
    assert without(line["cells"]) == plain.line("rows", 7, Query())["cells"]
    assert "title" not in line
    assert view.line("columns", tea, Query())["title"] == "Green tea"
    found = view.recommend(5, "mean")["cells"]
    assert without(found) == plain.recommend(5, "mean")["cells"]
    nearest = view.nearest("columns", tea)["nearest"]
    assert without(nearest) == plain.nearest("columns", tea)["nearest"]
    match = {"at": tea, "name": "tea", "title": "Green tea"}
    assert view.search("columns", "green")["matches"] == [match]
    assert view.search("columns", "onerror")["matches"][0]["at"] == milk
    assert view.search("rows", "green") == {"matches": [], "total": 0}


def test_names_of_mixed_types():
    columns = [1, "1", 2.5, "tea", 7, 8]
    data = observed(people(40), columns)
    view = ModelView(
        fr.GASR(n_sweeps=20, random_state=0, progress=False, n_threads=1).fit(data), "mixed"
    )
    found = [cell["name"] for cell in view.recommend(0, "mean")["cells"]]
    assert set(found) <= {str(name) for name in columns}


def test_labels_with_lone_surrogates():
    names = ["\ud800", "tea\udc80", *"abcdefgh"]
    model = fr.GASR(n_sweeps=20, random_state=0, progress=False, n_threads=1)
    view = ModelView(model.fit(observed(names, names)), "surrogates")
    found = [cell["at"] for at in range(10) for cell in view.recommend(at, "mean")["cells"]]
    assert {0, 1} <= set(found)
    assert view.line("columns", 1, Query())["name"] == "tea\udc80"
    missing = pd.concat(model.predict_missing())
    assert {"\ufffd", "tea\ufffd"} <= set(missing["column"])


def test_a_large_model_is_shown_in_pages():
    view = ModelView(large(), "large")
    found = view.search("rows", "user 0")
    assert found["total"] == 10_000
    assert len(found["matches"]) < 20
    assert len(view.line("columns", 5, Query())["cells"]) == PAGE
    assert len(view.nearest("rows", 11_999)["nearest"]) == 10
