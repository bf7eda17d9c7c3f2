"""The explorer of a model whose columns have values of different kinds."""

import json

import pytest

import fillrank as fr
from fillrank.errors import NotSupportedError
from fillrank.explore.uploads import fill
from fillrank.explore.views import LEVEL, ModelView, Query
from fillrank.report.summary import format_together
from helpers.mixed_tables import REGIONS, mixed_frame, mixed_model

LEVELS = {"answer", "smoker", "region", "stars"}


@pytest.fixture(scope="module")
def view():
    return ModelView(mixed_model()[0], "survey")


def lines(view):
    """The rows of the table, with their cells by the label of the column."""
    for at in range(view.model.observations_.shape[0]):
        cells = view.line("rows", at, Query())["cells"]
        yield view.labels["rows"].texts[at], {cell["name"]: cell for cell in cells}


def test_rows_are_in_the_order_of_the_table_and_fit_json(view):
    line = view.line("rows", 3, Query())
    json.dumps(line, allow_nan=False)
    assert line["axis"] is None
    assert [cell["name"] for cell in line["cells"]] == list(mixed_frame().columns)
    for cell in line["cells"]:
        assert (cell["axis"] is None) == (cell["name"] in LEVELS)
        if cell["axis"] is not None:
            assert cell["axis"][0] <= cell["value"] <= cell["axis"][1]


def test_texts_are_those_of_the_user(view):
    frame, model = mixed_frame(), view.model
    data = model.observations_
    known = set(zip(data.rows, data.columns, strict=True))
    for row, cells in lines(view):
        for name, cell in cells.items():
            assert cell.get("known", False) == ((row, name) in known)
            if "known" not in cell:
                continue
            given = frame.loc[row, name]
            if name == "born":
                assert cell["text"] == f"{given:%Y-%m-%d}"
            elif name == "lead" and given[0] in "<>":
                assert cell["text"] == f"{given[0]} {given[1:]}"
                assert cell["limit"] == (-1 if given[0] == "<" else 1)
            elif name in ("answer", "smoker", "region"):
                assert cell["text"] == given
            else:
                assert float(cell["text"]) == pytest.approx(float(given), rel=1e-3)


def test_missing_levels_have_probabilities(view):
    model = view.model
    n = 0
    for row, cells in lines(view):
        for name in LEVELS:
            cell = cells[name]
            if "known" in cell:
                assert "bars" not in cell
                continue
            expected = model.predict_proba(row, name)
            assert [bar[0] for bar in cell["bars"]] == [
                each.removesuffix(".0") for each in expected.columns
            ]
            assert [bar[1] for bar in cell["bars"]] == pytest.approx(
                expected.to_numpy()[0].tolist(), abs=1e-4
            )
            n += 1
        for name in set(cells) - LEVELS:
            assert "bars" not in cells[name]
        if n > 40:
            return


def test_intervals_are_those_of_the_model(view):
    row, cells = next(each for each in lines(view) if "known" not in each[1]["born"])
    low, high = view.model.predict_interval(row, "born", LEVEL)
    assert cells["born"]["between"].startswith(str(low[0])[:4])
    assert cells["born"]["between"].split(" to ")[1].startswith(str(high[0])[:4])


def test_numbers_have_the_decimals_that_their_interval_needs(view):
    found = 0
    for _, cells in lines(view):
        for name in {"weight", "height"} & set(cells):
            cell = cells[name]
            if "between" not in cell:
                continue
            width = cell["high"] - cell["low"]
            texts = [cell["text"], *cell["between"].split(" to ")]
            expected = format_together(cell["value"], cell["low"], cell["high"], width=width)
            assert texts == expected
            found += 1
        if found > 5:
            return
    assert found


def test_columns_of_numbers_share_an_axis_and_those_of_levels_have_none(view):
    at = view.labels["columns"].position
    weight = view.line("columns", at("weight"), Query())
    assert weight["axis"][0] < weight["axis"][1]
    assert "axis" not in weight["cells"][0]
    values = [cell["value"] for cell in weight["cells"]]
    assert values == sorted(values, reverse=True)
    region = view.line("columns", at("region"), Query())
    assert region["axis"] is None
    assert {cell["text"] for cell in region["cells"]} <= set(REGIONS)
    json.dumps(region, allow_nan=False)


def test_categories_have_no_order(view):
    at = view.labels["columns"].position
    for name in ("region", "smoker"):
        high, low = (view.line("columns", at(name), Query(order)) for order in ("high", "low"))
        assert high == low
        assert not high["ordered"]
        assert [cell["at"] for cell in high["cells"]] == list(range(len(high["cells"])))
    assert view.line("columns", at("answer"), Query())["ordered"]
    assert view.line("columns", at("weight"), Query())["ordered"]
    assert not view.line("rows", 0, Query())["ordered"]


def test_what_cannot_be_compared_is_not_offered(view):
    about = view.about()
    assert about["mixed"]
    assert about["orders"] == []
    at = view.labels["columns"].position
    assert view.nearest("columns", at("region")) == {"nearest": []}
    found = {each["name"] for each in view.nearest("columns", at("weight"))["nearest"]}
    assert found
    assert found <= set(mixed_frame().columns) - {"weight", "region"}
    with pytest.raises(NotSupportedError, match="cannot be filled here: use fillrank fold-in"):
        fill(view, "t.csv", b"weight,region\n1,north\n")


def test_a_model_without_its_entries(view, tmp_path):
    mixed_model()[0].save(tmp_path / "model.fillrank", with_data=False)
    other = ModelView(fr.load(tmp_path / "model.fillrank"), "survey")
    line = other.line("rows", 0, Query())
    assert all("known" not in cell for cell in line["cells"])
    json.dumps(line, allow_nan=False)
