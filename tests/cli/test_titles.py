"""Titles beside labels, on the terminal and in files of results."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fillrank.cli import recommend
from fillrank.cli.results import iter_cells
from fillrank.cli.titles import TableTitles
from helpers.refusals import assert_refused
from helpers.result_files import read_csv

FILMS = {f"i{j}": f"Film {j}" for j in range(8)}
HOSTILE = "=1+1 \x1b[31m<b>[red]"


@pytest.fixture
def model(keep, write_long):
    return keep(write_long())


@pytest.fixture(autouse=True)
def files(tmp_path):
    """Titles of all columns but the last, and of some rows."""
    lines = [f"{label},{title}" for label, title in FILMS.items()]
    (tmp_path / "films.csv").write_text("\n".join(["id,title", *lines[:-1], "i99,Unseen"]))
    (tmp_path / "people.csv").write_text("who,name\nu3,Ana\nu0,Ben\n")


def test_recommendations_have_titles_beside_the_labels(fillrank, model):
    start = ("recommend", "model.fillrank", "u3", "u1", "--with-seen", "--json")
    plain = json.loads(fillrank(*start).raw)
    ran = fillrank(*start, "--column-titles", "films.csv")
    assert ran.code == 0, ran.err
    assert "films.csv has titles of 7 of 8 columns." in ran.err
    found = json.loads(ran.raw)
    assert list(found[0]) == ["user", "item", "item_title", "rating"]
    expected = FILMS | {"i7": "i7"}
    assert all(each.pop("item_title") == expected[each["item"]] for each in found)
    assert found == plain
    both = json.loads(
        fillrank(*start, "--column-titles", "films.csv", "--row-titles", "people.csv").raw
    )
    assert list(both[0]) == ["user", "user_title", "item", "item_title", "rating"]
    assert {each["user"]: each["user_title"] for each in both} == {"u3": "Ana", "u1": "u1"}


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.json", "r.parquet"])
def test_predictions_in_every_format(fillrank, model, tmp_path, name):
    ran = fillrank(
        "predict", "model.fillrank", "-o", name, "--level", "0.9", "--quiet",
        "--row-titles", "people.csv", "--column-titles", "films.csv", stdin="u3,i2\nu1,i7\n",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "titles of" not in ran.err
    read = {
        ".csv": pd.read_csv,
        ".tsv": lambda path: pd.read_csv(path, sep="\t"),
        ".json": pd.read_json,
        ".parquet": pd.read_parquet,
    }[name[1:]]
    found = read(tmp_path / name)
    assert list(found) == ["user", "user_title", "item", "item_title", "rating", "lower", "upper"]
    assert found["user_title"].tolist() == ["Ana", "u1"]
    assert found["item_title"].tolist() == ["Film 2", "i7"]
    np.testing.assert_allclose(
        found["rating"], model.predict(["u3", "u1"], ["i2", "i7"]), rtol=1e-4
    )


def test_all_missing_cells_and_a_table_without_any_result(fillrank, model, tmp_path, matrix):
    ran = fillrank("predict", "model.fillrank", "--missing", "--column-titles", "films.csv")
    header, *lines = [line.split(",") for line in ran.raw.splitlines()]
    assert header == ["user", "item", "item_title", "rating"]
    assert len(lines) == np.isnan(matrix).sum()
    full = next(f"u{i}" for i in range(len(matrix)) if not np.isnan(matrix[i]).any())
    for name in ("none.csv", "none.parquet"):
        start = ("recommend", "model.fillrank", full, "-o", name)
        ran = fillrank(*start, "--column-titles", "films.csv")
        assert ran.code == 0, ran.err
    assert read_csv(tmp_path / "none.csv") == [["user", "item", "item_title", "rating"]]
    assert pd.read_parquet(tmp_path / "none.parquet").shape == (0, 4)


def test_a_row_that_the_model_does_not_know_has_a_title(fillrank, model, tmp_path):
    (tmp_path / "people.csv").write_text("who,name\nu3,Ana\nu77,Zoe\n")
    ran = fillrank(
        "predict", "model.fillrank", "--unknown", "prior", "--row-titles", "people.csv", "--json",
        stdin="u77,i2\n",
    )  # fmt: skip
    assert json.loads(ran.raw)[0]["user_title"] == "Zoe"


def test_hostile_titles(fillrank, model, tmp_path, monkeypatch):
    right = recommend.check_target
    lines = ["id,title", *(f'i{j},"{HOSTILE}"' for j in range(8))]
    (tmp_path / "films.csv").write_text("\n".join(lines))
    start = ("recommend", "model.fillrank", "u3", "--with-seen", "--column-titles", "films.csv")
    ran = fillrank(*start, "-o", "best.csv")
    assert ran.code == 0, ran.err
    assert {line[2] for line in read_csv(tmp_path / "best.csv")[1:]} == {HOSTILE}
    monkeypatch.setattr(
        recommend, "check_target", lambda *given: right(*given)._replace(format="terminal")
    )
    ran = fillrank(*start)
    assert r"=1+1 \x1b[31m<b>[red]" in ran.out
    assert "\x1b" not in ran.raw
    assert ran.raw.splitlines()[0].split() == ["user", "item", "item_title", "rating"]


def test_names_of_columns_that_are_taken():
    table = {"who": np.array(["u"]), "what": np.array([1]), "what_title": np.array([0.5])}
    for make in (dict, pd.DataFrame, pl.DataFrame, pa.table):
        found = TableTitles(columns={"1": "Tea"}).add_to(make(table))
        names, lines = iter_cells(found)
        assert list(names) == ["who", "what", "what_title_", "what_title"]
        assert list(lines) == [("u", 1, "Tea", 0.5)]


def test_files_that_are_refused(fillrank, model, tmp_path):
    start = ("recommend", "model.fillrank", "u3", "--column-titles")
    assert_refused(fillrank(*start, "people.csv"), "people.csv: the file has none of the labels",
                   "'i0'", "'u3', 'u0'")  # fmt: skip
    assert_refused(fillrank(*start, "gone.csv"), "gone.csv: the file does not exist")
    (tmp_path / "two.csv").write_text("id,title\ni1,Tea\ni1,Milk\n")
    ran = fillrank(*start, "two.csv")
    assert_refused(ran, "two.csv, line 3, column 'title': the label 'i1' has two titles, 'Tea'")
    assert_refused(fillrank(*start, "films.csv", "-o", "films.csv"), "would replace the input")
    (tmp_path / "pairs.csv").write_text("u3,i2\n")
    ran = fillrank("predict", "model.fillrank", "pairs.csv", "--row-titles", "people.csv", "-o",
                   "people.csv", "--force")  # fmt: skip
    assert_refused(ran, "would replace the input")
