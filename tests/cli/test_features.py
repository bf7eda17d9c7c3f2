"""Features of rows and columns on the command line."""

import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import fillrank as fr
from fillrank.cli import models
from fillrank.features.pattern import mask_of, pattern_blocks
from fillrank.runtime import progress
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from helpers.refusals import assert_refused
from helpers.result_files import cell, write_csv
from helpers.small_patterns import small_patterns  # noqa: F401

QUICK = ("--sweeps", "20", "--max-rank", "2")
SHAPE = (24, 22)  # enough rows and columns for the pattern of missing values


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch):
    """Notes that an earlier test has shown would not be shown again."""
    monkeypatch.setattr(progress, "_reported", set())


@pytest.fixture
def files(tmp_path):
    """A wide table whose row labels are numbers, and the features of its rows and columns."""
    rng = np.random.default_rng(0)
    m, n = SHAPE
    age = rng.normal(40, 10, m).round()
    X = np.outer((age - 40) / 10, rng.normal(size=n)) + 0.3 * rng.normal(size=SHAPE)
    X[rng.random(SHAPE) < 0.3] = np.nan
    lines = [["id", *(f"item {j}" for j in range(n))]]
    lines += [[100 + i, *map(cell, values)] for i, values in enumerate(X)]
    people = [["who", "age", "sex"], [999, 30, "F"]]  # nobody has the number 999
    people += [[100 + i, age[i], "FMX"[i % 3]] for i in range(m - 1)]
    prices = [["price", "item"]] + [[1.5 * j % 7, f"item {j}"] for j in range(n)]
    return SimpleNamespace(
        table=write_csv(tmp_path / "table.csv", lines),
        rows=write_csv(tmp_path / "people.csv", people),
        columns=write_csv(tmp_path / "prices.csv", prices),
    )


@pytest.fixture
def both(files):
    """The options for the features of rows and columns."""
    return ("--row-features", files.rows, "--column-features", files.columns)


@pytest.fixture
def fitted(monkeypatch):
    """The models that commands fit, in order."""
    found, right = [], models.fit

    def fit(*arguments, **options):
        found.append(right(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(models, "fit", fit)
    return found


def names(model):
    return [[block.name for block in side] for side in model.posterior_.blocks]


def test_features_are_matched_by_the_text_of_labels(fillrank, files, both, fitted):
    ran = fillrank("fit", files.table, *both, *QUICK)
    assert ran.code == 0, ran.err
    (model,) = fitted
    assert model.observations_.row_labels[0] == 100  # a number in the table, text in the file
    assert names(model) == [["features", "missingness"]] * 2
    rows, columns = (side[0] for side in model.posterior_.blocks)
    assert rows.terms == ("age", "sex = F", "sex = M", "sex = X")
    assert columns.terms == ("price",)
    assert np.any(rows.values[:-1], axis=1).all()
    assert not rows.values[-1].any()


def test_notes_are_shown_once(complete, files, both):
    """`complete` fits twice, with the same features."""
    ran = complete(files.table, *both)
    assert ran.code == 0, ran.err
    notes = (
        "1 label of the features is left out",
        "mean of the others: 1 of 24 rows",
        "in column 'item'",
    )
    for note in notes:
        assert (ran.err + ran.out).count(note) == 1


def test_the_summary_has_features_and_their_shares(complete, files, both):
    assert complete(files.table, *both).code == 0
    with open("table-filled/summary.json") as file:
        found = json.load(file)
    assert found["settings"]["row_features"] == str(files.rows)
    assert found["settings"]["missingness"] is True
    results = found["results"]
    assert results["missingness"] is True
    blocks = results["features"]["rows"]["blocks"]
    assert [block["name"] for block in blocks] == ["features", "missingness"]
    assert (blocks[0]["features"], blocks[0]["terms"]) == (3, 4)
    assert blocks[0]["names"][0] == "age"
    assert results["features"]["columns"]["blocks"][0]["names"] == ["price"]
    for side in results["features"].values():
        shares = [block["share"] for block in side["blocks"]]
        assert sum(shares) + side["rest"] == pytest.approx(1, abs=1e-6)


def test_without_features_and_missingness(complete, files, fitted):
    assert complete(files.table, "--no-missingness").code == 0
    assert [names(model) for model in fitted] == [[[], []]] * 2
    with open("table-filled/summary.json") as file:
        results = json.load(file)["results"]
    assert results["missingness"] is False
    assert results["features"] == {
        side: {"blocks": [], "rest": 1.0} for side in ("rows", "columns")
    }


@pytest.fixture
def quick_compare(monkeypatch, short_runs):
    """`compare`, which has no option for the number of sweeps, is quick."""
    monkeypatch.setattr("fillrank.cli.comparison._compile", lambda settings: None)


@pytest.mark.parametrize(
    "command",
    [("evaluate", "--folds", "2", *QUICK), ("compare", "--methods", "GASR", "--splits", "2")],
)
def test_the_pattern_is_that_of_the_training_entries(
    command, fillrank, files, both, fitted, quick_compare
):
    ran = fillrank(*command, files.table, *both)
    assert ran.code == 0, ran.err
    data = fr.read(files.table)
    assert len(fitted) == 2
    for model in fitted:
        assert len(model.observations_) < len(data)
        expected = pattern_of(model.observations_)
        for side, own, of_all in zip(
            model.posterior_.blocks, expected, pattern_of(data), strict=True
        ):
            assert [block.name for block in side] == ["features", "missingness"]
            np.testing.assert_allclose(side[1].values, own[0].values, atol=1e-5)
            assert not np.allclose(own[0].values, of_all[0].values, atol=0.1)


def pattern_of(data):
    with Workers(1) as workers:
        return pattern_blocks(mask_of(Data(data.by_row(), data.by_column()), workers))


def test_compare_runs_other_methods_without_features(fillrank, files, both, quick_compare):
    options = ("--methods", "GASR,SoftImpute", "--splits", "1")
    ran = fillrank("compare", files.table, *options, *both)
    assert ran.code == 0, ran.err
    said = "Fitted without the features, which they do not take: SoftImpute."
    assert said in ran.out
    assert "does not support" not in ran.out
    ran = fillrank("compare", files.table, *options, *both, "--json")
    uses = {each["method"]: each["uses_features"] for each in json.loads(ran.raw)["ranking"]}
    assert uses == {"GASR": True, "SoftImpute": False}
    assert said not in fillrank("compare", files.table, *options).out


@pytest.mark.parametrize("command", ["complete", "fit", "evaluate", "compare", "report"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "people.csv: the file does not exist"),
        ("", "people.csv: the file is empty"),
        ("who,age\nAna,3\nBen,4\n", "people.csv: the table of features has none of the row labels"),
        (
            "who,age\n100,3\n100,4\n",
            "people.csv: a table of features must have a single line for each",
        ),
        (
            "who,age\n100,3\n101,3\n",
            "people.csv: a table of features must have a field that differs",
        ),
        ("who,age\n100,3\n101,inf\n", "people.csv"),
    ],
)
def test_bad_files_are_refused_before_the_fit(command, content, words, fillrank, files, fitted):
    files.rows.unlink()
    if content is not None:
        files.rows.write_text(content)
    ran = fillrank(command, files.table, "--row-features", files.rows, "--quiet")
    assert_refused(ran, words)
    assert "\n" not in ran.err
    assert fitted == []


def test_other_kinds_of_files_are_refused(fillrank, files):
    for name in ("people.xlsx", "-", "people.npy"):
        ran = fillrank("fit", files.table, "--row-features", name)
        assert_refused(ran, f"{name}: features are read from text and Parquet")


@pytest.mark.parametrize("command", ["fit", "evaluate", "report"])
@pytest.mark.parametrize("option", ["--row-features", "--column-features", "--no-missingness"])
def test_other_methods_are_refused(command, option, fillrank, files):
    file = () if option == "--no-missingness" else (files.rows,)
    ran = fillrank(command, files.table, "--method", "HASI", option, *file)
    assert_refused(ran, f"{option} is an option of the samplers GASR and BPMF")


def test_features_are_not_replaced(fillrank, files, tmp_path):
    (tmp_path / "people.json").symlink_to(files.rows)
    ran = fillrank(
        "compare", files.table, "--row-features", files.rows, "-o", "people.json", "--force"
    )
    assert_refused(ran, "would replace the input")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "filled.csv").symlink_to(files.rows)
    ran = fillrank("complete", files.table, "--row-features", files.rows, "-o", "out", "--force")
    assert_refused(ran, "would replace the input")


# Models in files.


@pytest.fixture
def model(fillrank, files, both, tmp_path):
    """A model with features in a file, and a file with the features of Zoe, whom it does not know."""
    assert fillrank("fit", files.table, *both, *QUICK, "-o", "model").code == 0
    new = write_csv(tmp_path / "new.csv", [["who", "age", "sex"], ["Zoe", 60, "F"]])
    return SimpleNamespace(path=tmp_path / "model", new=new, loaded=fr.load(tmp_path / "model"))


def test_predict_with_features_of_new_rows(fillrank, model):
    options = ("--unknown", "prior", "--row-features", model.new, "--level", "0.9")
    ran = fillrank("predict", model.path, *options, stdin="Zoe,item 1\nMax,item 1\n100,item 1\n")
    assert ran.code == 0, ran.err
    assert "new.csv has no features of 1 of 2 rows that the model does not know: 'Max'" in ran.err
    values = [float(line.split(",")[2]) for line in ran.raw.splitlines()[1:]]
    labels, items = ["Zoe", "Max", 100], ["item 1"] * 3
    zoe = pl.DataFrame({"who": ["Zoe"], "age": [60.0], "sex": ["F"]})
    expected = model.loaded.predict(labels, items, unknown="prior", row_features=zoe)
    np.testing.assert_allclose(values, expected, rtol=1e-4)
    plain = model.loaded.predict(labels, items, unknown="prior")
    assert abs(plain[0] - expected[0]) > 0.01
    np.testing.assert_allclose(plain[1:], expected[1:])


def test_recommend_with_features_of_new_rows(fillrank, model):
    one = fillrank("recommend", model.path, "Zoe", "-n", "3", "--row-features", model.new)
    assert one.code == 0, one.err
    assert one.raw.count("Zoe,item") == 3
    every = fillrank("recommend", model.path, "--all", "-n", "3", "--row-features", model.new)
    assert every.raw == one.raw
    assert_refused(fillrank("recommend", model.path, "Zoe"), "Zoe")


def test_features_of_new_rows_that_cannot_be_used(fillrank, model):
    options = ("--row-features", model.new)
    ran = fillrank("predict", model.path, *options, stdin="Zoe,item 1\n")
    assert_refused(ran, "--row-features is for pairs with labels that the model does not know")
    ran = fillrank("predict", model.path, "--missing", "--unknown", "prior", *options)
    assert_refused(ran, "leave out --missing")
    ran = fillrank("predict", model.path, "--unknown", "prior", *options, stdin="Max,item 1\n")
    assert_refused(ran, "new.csv: the file has none of the row labels that the model does not know")
    assert_refused(fillrank("recommend", model.path, "Max", *options), "new.csv: the file has none")
