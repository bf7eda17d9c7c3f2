import json

import pandas as pd
import pytest

import fillrank as fr
from fillrank.io.datasets import DATASETS
from helpers.refusals import assert_refused


@pytest.fixture
def published(tmp_path):
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "u.data").write_text(
        "196\t242\t3\t881250949\n186\t302\t4\t891717742\n"
    )
    (tmp_path / "published" / "u.item").write_bytes(
        b"242|Kolya (1996)|24-Jan-1997||x|0\n302|Caf\xe9, The|||x|0\n"
    )
    return tmp_path / "published"


def test_the_list_has_sizes_and_licences(fillrank):
    ran = fillrank("datasets")
    assert ran.code == 0
    for word in ("ml-100k", "943", "1,682", "100,000", "GroupLens", "redistribution"):
        assert word in ran.out
    assert fillrank("datasets", "list").out == ran.out
    listed = json.loads(fillrank("datasets", "--json").raw)
    assert listed.keys() == DATASETS.keys()
    assert listed["ml-1m"]["entries"] == 1_000_209


@pytest.mark.parametrize("name", ["ml-100k.csv", "r.parquet"])
def test_a_data_set_is_written_as_a_table_that_can_be_read(fillrank, published, tmp_path, name):
    output = () if name == "ml-100k.csv" else ("-o", name)
    ran = fillrank("datasets", "ml-100k", "--from", published, *output)
    assert ran.code == 0, ran.err
    assert ran.out == name
    assert "GroupLens" in ran.err
    data = fr.read(tmp_path / name)
    assert data.rows.tolist() == [196, 186]
    assert data.values.tolist() == [3, 4]
    read = pd.read_csv if name.endswith("csv") else pd.read_parquet
    assert list(read(tmp_path / name).columns) == ["user", "movie", "rating"]


@pytest.mark.parametrize("name", ["movies.csv", "movies.parquet"])
def test_titles_beside_the_ratings(fillrank, published, tmp_path, name):
    ran = fillrank("datasets", "ml-100k", "--from", published, "--titles", name)
    assert ran.code == 0, ran.err
    assert ran.out == f"ml-100k.csv {name}"
    assert fr.read_titles(tmp_path / name) == {242: "Kolya (1996)", 302: "Café, The"}
    if name.endswith("csv"):
        text = (tmp_path / name).read_bytes().decode()
        assert text == 'movie,title\r\n242,Kolya (1996)\r\n302,"Café, The"\r\n'


def test_titles_that_cannot_be_written(fillrank, published, tmp_path):
    start = ("datasets", "ml-100k", "--from", published, "--titles")
    assert_refused(fillrank(*start, "ml-100k.csv"), "must be different files")
    assert_refused(fillrank(*start, "-"), ".csv or .parquet")
    assert_refused(fillrank(*start, "published/u.item"), ".csv or .parquet")
    (published / "u.item").unlink()
    assert_refused(fillrank(*start, "movies.csv"), "no u.item, the titles of ml-100k")
    assert not (tmp_path / "ml-100k.csv").exists()


def test_to_standard_output(fillrank, published):
    ran = fillrank("datasets", "ml-100k", "--from", published, "-o", "-")
    assert ran.raw == "user,movie,rating\n196,242,3\n186,302,4\n"


def test_unknown_data_sets_and_missing_files(fillrank, published, tmp_path):
    assert_refused(fillrank("datasets", "netflix"), "unknown data set 'netflix'", "ml-1m")
    assert_refused(fillrank("datasets", "ml-1m", "--from", tmp_path), "no ratings.dat")
    assert_refused(
        fillrank("datasets", "ml-100k", "--from", published, "-o", "x.json"), ".csv or .parquet"
    )


def test_without_a_network_the_message_explains_manual_download(fillrank, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    dead = DATASETS["ml-1m"]._replace(url="http://127.0.0.1:9/ml-1m.zip")
    monkeypatch.setitem(DATASETS, "ml-1m", dead)
    assert_refused(fillrank("datasets", "ml-1m"), "cannot be downloaded", "--from PATH")
