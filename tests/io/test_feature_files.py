"""Files with features of rows or columns."""

import gzip
from datetime import date

import numpy as np
import polars as pl
import pytest

from fillrank.errors import InputError, ReadError
from fillrank.features.table import code_rows, feature_block
from fillrank.io.features import read_features
from fillrank.runtime import memory as memory_module

TEXT = "user,age,sex\n1,30,F\n2,,M\n3,41.5,M\n4,25,\n"


@pytest.fixture
def write(tmp_path):
    """Write a text and give the path of the file."""

    def writing(text, name="people.csv"):
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return writing


@pytest.mark.parametrize(
    ("delimiter", "name"),
    [(",", "a.csv"), ("\t", "a.tsv"), (";", "a.csv.gz"), ("|", "a.dat"), ("::", "a.txt")],
)
def test_text_in_every_format(write, delimiter, name):
    features = read_features(write(TEXT.replace(",", delimiter), name))
    assert features.labels.tolist() == ["1", "2", "3", "4"]
    assert list(features.fields) == ["age", "sex"]
    np.testing.assert_array_equal(features.fields["age"], [30, np.nan, 41.5, 25])
    assert features.fields["sex"].tolist() == ["F", "M", "M", None]
    assert features.notes == ()


@pytest.mark.parametrize("missing", ["NA", "n/a", "?", "None", "."])
def test_missing_values_are_those_of_other_tables(write, missing):
    features = read_features(write(f"id,x,y\na,1,{missing}\nb,{missing},p\nc,3,q\n"))
    np.testing.assert_array_equal(features.fields["x"], [1, np.nan, 3])
    assert features.fields["y"].tolist() == [None, "p", "q"]


def test_codes_with_leading_zeros_are_categories(write):
    features = read_features(write("id,code,x\na,01,0.5\nb,10,0\nc,01,-0.5\n"))
    assert features.fields["code"].tolist() == ["01", "10", "01"]
    np.testing.assert_array_equal(features.fields["x"], [0.5, 0, -0.5])


def test_a_header_above_text_only(write):
    features = read_features(write("line,tissue,site\nA1,lung,x\nA2,skin,y\nA3,lung,x\n"))
    assert features.fields["tissue"].tolist() == ["lung", "skin", "lung"]


@pytest.mark.parametrize(
    "text",
    [
        "1|24|M|technician\n2|53|F|other\n3|23|M|writer\n",
        "ana,F,x\nben,M,y\ncid,F,x\n",
        "1::F::1\n2::M::56\n",
    ],
)
def test_a_text_file_needs_a_header(write, text):
    with pytest.raises(ReadError, match=r"people.csv: the first line must be a header.*got '"):
        read_features(write(text))


def test_the_labels_are_in_the_column_that_has_most_of_them(write):
    # As pandas writes it with its index.
    path = write(",user,age\n0,1,30\n1,2,40\n2,3,41\n")
    assert read_features(path).labels.tolist() == ["0", "1", "2"]
    features = read_features(path, np.array([1, 2, 3]))
    assert features.labels.tolist() == ["1", "2", "3"]
    assert features.notes == ("The labels of the features are in column 'user'.",)
    block, notes = feature_block(features, np.array([1, 2, 3]), "row")
    assert notes == features.notes
    assert block.terms == ("", "age")


def test_parquet_gives_the_block_of_the_text(write, tmp_path):
    labels = np.arange(1, 5)
    block, notes = feature_block(read_features(write(TEXT)), labels, "row")
    assert notes == ()
    path = tmp_path / "people.parquet"
    frame = pl.read_csv(TEXT.encode())
    frame.write_parquet(path)
    for known in (None, labels):
        features = read_features(path, known)
        np.testing.assert_allclose(feature_block(features, labels, "row")[0].values, block.values)
    frame.select("age", "sex", "user").write_parquet(path)
    features = read_features(path, labels)
    assert features.notes == ("The labels of the features are in column 'user'.",)
    np.testing.assert_allclose(feature_block(features, labels, "row")[0].values, block.values)


def test_numbers_of_the_table_match_text_of_the_file(write, tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"id": ["1", "2", "x"], "a": [1.0, 2.0, 4.0]}).write_parquet(path)
    for source in (path, write("id,a\n1,1\n2,2\nx,4\n")):
        block, notes = feature_block(read_features(source), np.array([1, 2]), "row")
        assert block.values.shape == (2, 1)
        assert notes == ("1 label of the features is left out, because no row has it: 'x'.",)


def test_a_new_file_whose_levels_are_all_numbers(write):
    block, _ = feature_block(
        read_features(write("id,c\na,1\nb,2\nc,k\nd,1\ne,2\n")), np.array(list("abcde")), "row"
    )
    new = read_features(write("id,c\nv,2\nw,\n", "new.csv"))
    values = code_rows(block.code, new, np.array(["v", "w"]), "row")
    np.testing.assert_allclose(values, [block.values[1], 0 * block.values[1]], atol=1e-12)


def test_dates_in_parquet_are_refused_when_they_are_coded(tmp_path):
    path = tmp_path / "x.parquet"
    frame = pl.DataFrame({"id": [1, 2, 3], "day": [date(2020, 1, i) for i in (1, 2, 3)]})
    frame.with_columns(x=pl.col("id") ** 2).write_parquet(path)
    with pytest.raises(InputError, match=r"'day' .*fr.features.times"):
        feature_block(read_features(path), np.arange(1, 4), "row")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "people.csv: the file is empty"),
        (" \n,,\n", "people.csv: the file is empty"),
        ("id,x\n", "a header, but no lines below it"),
        ("id\na\nb\n", "not a table"),
        ("id,x,y\na,1,2\nb,3\nc,5,6\n", "people.csv, line 3: 2 fields, but the table has 3"),
        ("id,x,x\na,1,2\n", "the header has 'x' more than once"),
        ("id,x\na,1\n,2\nc,3\n", "people.csv: every line of .* needs a label; 1 have none"),
        (b"\x00\x01\x02\xff" * 50, "not a text file"),
        (b"id,x\na,\xff\xfe\n", "people.csv, line 2: not UTF-8 text"),
        ("id,x\n" + "a,1\n" * 200 + f"b,{'z' * 200_000}\n", r"line 202: field larger than"),
        (f"id,x\n{'z' * 200_000},1\nb,2\n", "people.csv: the file is not a table"),
        ('id,x\na,"1\n' + "b,2\n" * 3, "people.csv: a quote is not closed; got '1'"),
    ],
)
def test_a_damaged_file_is_refused_in_words(write, text, words):
    with pytest.raises(ReadError, match=words):
        read_features(write(text))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.parquet", "not a complete Parquet file"),
        ("x.mtx", "features are read from text and Parquet"),
        ("x.xlsx", "features are read from text and Parquet"),
    ],
)
def test_other_files(write, name, words):
    with pytest.raises(ReadError, match=words):
        read_features(write(b"PAR1 and nothing else", name))


def test_a_path_without_a_file(tmp_path):
    with pytest.raises(ReadError, match=r"peeple.csv: the file does not exist"):
        read_features(tmp_path / "peeple.csv")


def test_labels_alone_are_not_features(tmp_path):
    path = tmp_path / "one.parquet"
    pl.DataFrame({"id": [1]}).write_parquet(path)
    with pytest.raises(ReadError, match=r"one.parquet: .* at least one other; got 1"):
        read_features(path)


def test_several_files_are_refused(tmp_path):
    for name in "ab":
        pl.DataFrame({"id": [1], "x": [2]}).write_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(ReadError, match="one file; got 2"):
        read_features(tmp_path / "*.parquet")


def test_a_file_of_more_than_fits_in_memory(write, monkeypatch):
    path = write("id,x\n" + "a,1\n" * 2000)
    monkeypatch.setattr(memory_module, "_of_machine", lambda: 40_000)
    with pytest.raises(InputError, match=r"people.csv: a table of up to 2,002 lines and 2 columns"):
        read_features(path)


def test_infinite_numbers_of_a_file_are_refused_with_their_place(write):
    features = read_features(write("id,x\na,1\nb,inf\nc,3\n"))
    with pytest.raises(InputError, match="field 'x' of the features, label 'b'"):
        feature_block(features, np.array(["a", "b", "c"]), "row")
