"""Weights and standard errors from a column of a long table in a file."""

import io

import numpy as np
import pandas as pd
import pytest

from fillrank import Observations, read
from fillrank.errors import InputError, ReadError, UnknownNameError
from fillrank.io import long_text, parquet
from helpers.same_entries import assert_same

TEXT = "user,item,rating,w\nAna,tea,5,0.5\nBen,tea,3,1\nBen,milk,1,2\nAna,milk,,\n"
UNNAMED = "gene,tissue,level,w\nA,liver,5,0.5\nB,liver,3,1\nB,lung,1,2\n"


def read_text(text, **options):
    return read(io.StringIO(text), format="csv", **options)


@pytest.mark.parametrize("text", [TEXT, UNNAMED, TEXT.replace(",", ";"), TEXT.replace(",", "::")])
def test_of_a_text_file(text):
    assert read_text(text, weight="w").weights.tolist() == [0.5, 1.0, 2.0]
    assert read_text(text, standard_error="w").weights.tolist() == [4.0, 1.0, 0.25]
    assert read_text(text).weights is None


def test_of_a_text_file_with_named_columns():
    names = {"row": "tissue", "column": "gene", "value": "level"}
    assert read_text(UNNAMED, **names, weight="w").weights.tolist() == [0.5, 1.0, 2.0]
    assert read_text(UNNAMED, layout="long", weight="level").weights.tolist() == [5.0, 3.0, 1.0]


def test_of_a_text_file_without_a_header():
    text = "".join(f"{i},{j},{i * j},{1 + i}\n" for i in range(5) for j in range(6))
    found = read_text(text, weight=3)
    np.testing.assert_array_equal(found.weights, 1.0 + found.rows)


@pytest.mark.parametrize(
    "options", [{"weight": "w"}, {"standard_error": "w"}, {"weight": "rating"}]
)
def test_pyarrow_reads_the_same_weights(options, monkeypatch):
    lines = [f"{i},{j},{i + j},{1 + i / j}" for i in range(1, 9) for j in range(1, 7)]
    text = "\n".join(["user,item,rating,w", *lines])
    expected = read_text(text, **options)
    monkeypatch.setattr(long_text, "SMALL", 0)
    assert_same(read_text(text, **options), expected)


def table_of_every_kind():
    rng = np.random.default_rng(1)
    cells = [(f"r{i}", f"c{j}") for i in range(5) for j in range(4)]
    rows, columns = zip(*cells, strict=True)
    values = np.where(rng.random(20) < 0.3, np.nan, rng.normal(size=20))
    weights = np.where(np.isnan(values), np.nan, rng.uniform(0.5, 2, 20))
    return pd.DataFrame({"row": rows, "column": columns, "value": values, "w": weights})


@pytest.mark.parametrize("option", ["weight", "standard_error"])
def test_parquet_in_batches_is_the_frame_at_once(option, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "BATCH_LINES", 3)
    table = table_of_every_kind()
    table.to_parquet(tmp_path / "t.parquet")
    expected = Observations.from_table(table, **{option: "w"})
    assert_same(read(tmp_path / "t.parquet", **{option: "w"}), expected)
    table[:8].to_parquet(tmp_path / "part.0.parquet")
    table[8:].to_parquet(tmp_path / "part.1.parquet")
    assert_same(read(tmp_path / "part.*.parquet", **{option: "w"}), expected)


def test_a_data_frame_in_memory():
    table = table_of_every_kind()
    assert_same(read(table, weight="w"), Observations.from_table(table, weight="w"))


@pytest.mark.parametrize("wrong", ["0", "-1", "inf", ""])
def test_wrong_weights_in_files(wrong, tmp_path):
    text = TEXT.replace("0.5", wrong)
    table = pd.read_csv(io.StringIO(text))
    (tmp_path / "t.csv").write_text(text)
    table.to_parquet(tmp_path / "t.parquet")
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        with pytest.raises(InputError) as caught:
            read(path, weight="w")
        message = f"{path}: the weight of row 'Ana', column 'tea' must be a number from 1e-12 to"
        assert str(caught.value).startswith(message)
        with pytest.raises(InputError, match="the standard error of row 'Ana', column 'tea'"):
            read(path, standard_error="w")


@pytest.mark.parametrize("text", [TEXT, UNNAMED])
def test_a_weight_that_is_not_a_number(text):
    with pytest.raises(ReadError, match="line 2, column 'w' must be a number, got 'x'"):
        read_text(text.replace("0.5", "x"), weight="w")


def test_a_column_that_does_not_exist(tmp_path):
    table_of_every_kind().to_parquet(tmp_path / "t.parquet")
    for option in ("weight", "standard_error"):
        with pytest.raises(UnknownNameError, match="there is no column 'v'"):
            read(tmp_path / "t.parquet", **{option: "v"})
        with pytest.raises(UnknownNameError, match="there is no column 'v'"):
            read_text(TEXT, **{option: "v"})


def test_tables_that_are_not_long(tmp_path):
    wide = pd.DataFrame({"id": ["a", "b"], "x": [1.0, 2.0], "y": [3.0, 4.0]})
    wide.to_csv(tmp_path / "t.csv", index=False)
    wide.to_parquet(tmp_path / "t.parquet")
    np.save(tmp_path / "t.npy", np.eye(2))
    sources = [*(tmp_path / f"t.{kind}" for kind in ("csv", "parquet", "npy")), wide, np.eye(2)]
    for source in sources:
        with pytest.raises(InputError, match="only a long table has a column of weights") as caught:
            read(source, weight="x")
        assert "weight" in str(caught.value.place)
        assert caught.value.value == "x"


def test_both_kinds_of_columns():
    with pytest.raises(InputError, match="standard_error must be left out if weight is given"):
        read_text(TEXT, weight="w", standard_error="w")
