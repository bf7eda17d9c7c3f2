"""Reports and plots of tables with values of different kinds."""

import re

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError
from fillrank.report import cells, columns, held_out, html, probabilities
from fillrank.report.html import write_report
from fillrank.report.names import Names
from helpers.mixed_tables import ANSWERS, REGIONS, fit_mixed, mixed_frame, mixed_model
from helpers.read_page import DOT, read

NUMBERS = ["weight", "height", "lead", "visits", "born"]
LEVELS = ["answer", "smoker", "region", "stars"]

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.ConvergenceWarning")


@pytest.fixture
def no_plots(monkeypatch):
    """Replace plots by an image of one dot: drawing takes most of the time."""
    monkeypatch.setattr(html, "render", lambda *_, **__: DOT)


def lines_of(page, section):
    """The cells of the tables of a section, by line."""
    text = re.search(rf'<section id="{section}">.*?</section>', page, flags=re.DOTALL).group()
    return [
        re.findall(r"<td.*?>(?:<bdi>)?(.*?)(?:</bdi>)?</td>", line) for line in text.split("</tr>")
    ]


def test_the_report_has_the_columns_and_the_probabilities(tmp_path):
    model, test = mixed_model()
    write_report(model, tmp_path / "report.html", test=test)
    page = read(tmp_path / "report.html")
    assert len(page.images["table"]) == 2
    assert (
        len(page.images["held-out"]) == 2
    )  # fifths of predictions in different units have no meaning
    assert len(page.images["certainty"]) == 1
    assert "Columns, worst first" not in page.text["held-out"]
    assert "noise level" not in page.text["summary"].lower()
    for note in model.observations_.notes:
        assert note in page.text["summary"]
    assert "nan" not in " ".join(page.text.values()).lower()


def test_every_column_has_its_kind_and_its_scores(tmp_path, no_plots):
    model, test = mixed_model()
    write_report(model, tmp_path / "report.html", test=test)
    lines = lines_of((tmp_path / "report.html").read_text(encoding="utf-8"), "columns")
    # Without the plot of the distribution.
    found = {line[0]: line[1:4] + line[5:] for line in lines if line}
    assert list(found) == list(mixed_frame().columns)
    kinds = [line[0] for line in found.values()]
    assert kinds == [
        "number", "number", "positive number", "ordered levels", "two values", "count", "category",
        "ordered levels", "date",
    ]  # fmt: skip
    assert found["lead"][1] == "it has limits, and all values are above 0"
    assert re.fullmatch(r"1\.2\d* to 9(\.\d+)?; \d+ limits", found["lead"][2])
    assert found["answer"][2] == ", ".join(ANSWERS)
    assert found["stars"][2] == "1 to 5"
    assert re.fullmatch(r"19\d\d-\d\d-\d\d to (19|20)\d\d-\d\d-\d\d", found["born"][2])
    scores = fr.score_by_column(test, model).set_index("column")
    for name, line in found.items():
        own = scores.loc[name]
        assert line[4] == str(int(own["entries"]))
        assert line[6] == f"{own['coverage']:.0%}"
        if name in LEVELS:
            assert line[5].startswith(f"{own['accuracy']:.0%} correct (")
        else:
            sd = float(line[5].removesuffix(" SD"))
            assert sd == pytest.approx(own["rmse_in_sd"], abs=0.006)


def test_the_summary_has_the_error_of_numbers_and_the_accuracy_of_levels():
    model, test = mixed_model()
    found = held_out.predict_held_out(model, test)
    scores = fr.score_by_column(test, model).set_index("column")
    numbers = scores.loc[NUMBERS]
    expected = np.sqrt(np.average(numbers["rmse_in_sd"] ** 2, weights=numbers["entries"]))
    assert found.rmse == pytest.approx(expected)
    assert found.levels.n_numbers == numbers["entries"].sum()
    levels = scores.loc[LEVELS]
    accuracy = np.average(levels["accuracy"], weights=levels["entries"])
    assert found.levels.accuracy == pytest.approx(accuracy)
    exact = test.cells < 0
    assert found.levels.n_levels + found.levels.n_numbers == exact.sum() < len(test)


def test_the_most_frequent_level_is_that_of_the_fitted_entries():
    model, test = mixed_model()
    found = held_out.predict_held_out(model, test).levels
    n_usual = 0
    for name in LEVELS:
        own = model.observations_.values[model.observations_.columns == name]
        values, counts = np.unique(own, return_counts=True)
        n_usual += np.sum(test.values[test.columns == name] == values[counts.argmax()])
    assert found.usual_accuracy == pytest.approx(n_usual / found.n_levels)


def test_without_held_out_entries(tmp_path, no_plots):
    write_report(mixed_model()[0], tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    assert "error, or correct" not in page.text["columns"]
    assert "because it has two values" not in page.text["columns"]
    assert "size of errors is unknown" in page.text["summary"]


def test_a_model_without_its_entries(tmp_path, no_plots):
    mixed_model()[0].save(tmp_path / "model.fillrank", with_data=False)
    model = fr.load(tmp_path / "model.fillrank")
    write_report(model, tmp_path / "report.html", test=mixed_model()[1])
    page = read(tmp_path / "report.html")
    assert "saved without the entries" in page.text["summary"]
    assert "always" in page.text["columns"]


def test_kinds_that_were_given_have_that_reason(tmp_path):
    model = fit_mixed(mixed_frame(), kinds={"stars": "number"})
    lines = {line.name.text: line for line in columns.list_columns(model, None, {}, Names())}
    assert (lines["stars"].kind, lines["stars"].why) == ("number", "it was given")
    model.save(tmp_path / "model.fillrank", with_data=True)
    again = columns.list_columns(fr.load(tmp_path / "model.fillrank"), None, {}, Names())
    assert {line.name.text: line for line in again}["stars"] == lines["stars"]


def test_probabilities_are_those_of_the_model():
    model, _ = mixed_model()
    tables = {table.name.text: table for table in probabilities.level_tables(model, Names())}
    assert list(tables) == ["answer", "smoker", "region", "stars"]
    assert tables["answer"].levels == ANSWERS
    assert sorted(tables["region"].levels) == sorted(REGIONS)
    observed = set(zip(model.observations_.rows, model.observations_.columns, strict=True))
    for name, table in tables.items():
        assert 2 <= len(table.rows) <= 6
        tops = [max(line.shares) for line in table.rows]
        assert tops == sorted(tops, reverse=True)
        for line in table.rows:
            assert (line.name.text, name) not in observed
            expected = model.predict_proba(line.name.text, name).to_numpy()[0]
            np.testing.assert_allclose(line.shares, expected, atol=1e-9)


def test_many_levels_are_summed_up():
    shares = np.array([[0.5, 0.2, 0.1, 0.05, 0.05, 0.04, 0.03, 0.02, 0.01]])
    names, found, n_others = probabilities._most_probable(list("abcdefghi"), shares)
    assert (names, n_others) == (list("abcdefg"), 2)
    np.testing.assert_allclose(found[0, -1], 0.03)


def test_the_certainty_is_that_of_numbers_in_standard_deviations():
    model, _ = mixed_model()
    found = cells.missing_intervals(model)
    labels = model.observations_.column_labels
    assert set(labels[found.columns]) == set(NUMBERS)
    assert found.n_missing == found.rows.size
    sd = columns.standard_of(model).sd[found.columns]
    np.testing.assert_allclose(found.widths, (found.high - found.low) / sd)
    assert (np.diff(found.widths) >= 0).all()
    assert fr.plot.certainty(model).get_xlabel().endswith("SD of the column")


def test_held_out_plots_leave_out_what_has_no_order():
    model, test = mixed_model()
    ax = fr.plot.predicted(model, test)
    n = np.isin(test.columns, [*NUMBERS, "answer", "stars"]).sum()
    assert ax.get_title("left").startswith(f"{n} held-out values, ")
    assert "SD from the mean" in ax.get_xlabel()
    arrows = [each for each in ax.collections if each.get_label().endswith(" a limit")]
    assert sum(len(each.get_offsets()) for each in arrows) == (test.cells >= 0).sum() > 0
    exact = (test.cells < 0) & np.isin(test.columns, NUMBERS)
    assert f"of {exact.sum()} held-out values" in fr.plot.calibration(model, test).get_title("left")


def test_limits_are_arrows_to_the_side_of_the_value():
    data = fr.Observations.from_triplets(
        ["a", "a", "b", "b"], list("xyxy"), [1.0, -np.inf, 2.0, 0.5], upper=[1.0, 3.0, np.inf, 0.7]
    )
    assert columns.limit_sides(data).tolist() == [0, -1, 1, 0]


def test_images_compare_values_within_columns():
    model, _ = mixed_model()
    ax = fr.plot.matrix(model, filled=True)
    values, grey = (image.get_array() for image in ax.images)
    names = model.observations_.column_labels.tolist()
    region = names.index("region")
    assert np.ma.getmaskarray(values)[:, region].all() or np.isnan(values[:, region]).all()
    assert (np.asarray(grey)[:, region] == 1).all()
    rest = np.delete(np.asarray(values), region, axis=1)
    assert np.abs(rest.mean(axis=0)).max() < 0.5
    observed = fr.plot.matrix(model)
    assert len(observed.images) == 2


def test_all_plots_of_a_mixed_table():
    model, _ = mixed_model()
    for plot in (fr.plot.spectrum, fr.plot.rank, fr.plot.trace, fr.plot.variance_shares):
        assert plot(model).has_data()
    assert len(fr.plot.map(model, "rows").collections[0].get_offsets()) == 90
    assert len(fr.plot.map(model, "columns").collections[0].get_offsets()) == 8
    with pytest.raises(NotSupportedError, match="given features of rows"):
        fr.plot.feature_effects(model)
    with pytest.raises(NotSupportedError, match="GASR has none"):
        fr.plot.path(model)


def test_a_table_of_text_alone(tmp_path, no_plots):
    frame = mixed_frame()[["smoker", "region"]]
    frame["other"] = frame["smoker"].map({"yes": "up", "no": "down"})
    train, test = fr.Observations.of(frame).split(0.2, random_state=0)
    model = fit_mixed(train)
    for plot in (fr.plot.predicted, fr.plot.calibration):
        with pytest.raises(NotSupportedError, match="none is held out"):
            plot(model, test)
    with pytest.raises(InputError, match="no missing number"):
        fr.plot.certainty(model)
    assert fr.plot.matrix(model, filled=True).has_data()
    write_report(model, tmp_path / "report.html", test=test)
    page = read(tmp_path / "report.html")
    assert "no missing number" in page.text["certainty"]
    assert "of levels predicted correctly" in page.text["summary"]


def test_a_large_mixed_table_is_shown_in_blocks():
    frame = mixed_frame(400)[["weight", "answer", "region"]]
    model = fit_mixed(frame, n_sweeps=20, n_chains=1)
    ax = fr.plot.matrix(model, filled=True)
    assert ax.images[0].get_array().shape == (300, 3)
    assert ax.get_title("left") == "Completed table: a cell of each block"


def test_dates_beside_numbers(tmp_path, no_plots):
    """Dates are numbers for the model, but not for the reader."""
    frame = mixed_frame()[["weight", "height", "born"]]
    train, test = fr.Observations.of(frame).split(0.2, random_state=0)
    model = fit_mixed(train)
    write_report(model, tmp_path / "report.html", test=test)
    page = read(tmp_path / "report.html")
    assert re.search(r"born\d{4}-\d\d-\d\d\d{4}-\d\d-\d\d to", page.text["certainty"])


def test_a_level_that_was_not_fitted_is_predicted_wrongly(tmp_path, no_plots):
    """A rare level may be among the held-out entries only."""
    data = fr.Observations.of(mixed_frame())
    rare = (data.columns == "stars") & (data.values == 1)
    assert rare.any()
    train, test = data[np.flatnonzero(~rare)], data[np.flatnonzero(rare)]
    model = fit_mixed(train, n_sweeps=20)
    scores = fr.score(test, model)
    assert scores["accuracy"] == 0
    assert scores["log_score"] == pytest.approx(np.log(1e-6))
    write_report(model, tmp_path / "report.html", test=test)
    assert "0% correct (0%)" in read(tmp_path / "report.html").text["columns"]


def test_latent_numbers_have_the_labels_of_their_columns_in_arviz():
    model, _ = mixed_model()
    cells = model.to_arviz()["posterior"]
    labels = np.repeat(model.observations_.column_labels, [1] * 6 + [2] + [1] * 2)  # region has two
    expected = labels[model.traces_.probe_columns]
    assert cells["cell_column"].values.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1, 2, 3, 4], "1 to 4"),
        ([-1, 0, 1], "-1 to 1"),
        ([0, 1], "0, 1"),
        ([1, 2, 4], "1, 2, 4"),
        (["--1", "0", "1"], "--1, 0, 1"),
    ],
)
def test_whole_numbers_in_a_row_are_a_range(values, text, monkeypatch):
    model, _ = mixed_model()
    names = [str(value) for value in values]
    monkeypatch.setattr(columns, "level_names", lambda *_: names)
    j = model.observations_.column_labels.tolist().index("stars")
    assert columns._describe_values(model, j) == text


def test_values_have_no_zeros_at_the_end():
    data = mixed_model()[0].observations_
    numbers = np.array([1.70, 0.035, 1200.0, 1e-7, 20.0])
    assert columns.format_values(data, 0, numbers) == ["1.7", "0.035", "1,200", "1.00e-07", "20"]


def test_many_columns_are_in_a_box_that_scrolls(tmp_path, no_plots, monkeypatch):
    for most, classes in ((20, "scroll"), (3, "scroll long")):
        monkeypatch.setattr(html, "_N_COLUMNS", most)
        write_report(mixed_model()[0], tmp_path / "report.html")
        page = read(tmp_path / "report.html")
        boxes = [attrs for tag, attrs in page.tags if "scroll" in attrs.get("class", "")]
        assert boxes[0]["class"] == classes
        assert ("tabindex" in boxes[0]) == (most == 3)
