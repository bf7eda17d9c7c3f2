"""Tables as people have them, read as a new user would: by name alone, or with one option."""

import gzip

import numpy as np
import pytest

import fillrank as fr
from fillrank.cli import source
from fillrank.cli.source import Source
from helpers.refusals import assert_refused

QUICK = ("--sweeps", "20", "--max-rank", "2")
TABLE = "name;one;two;three\nÄnne Müller;1,5;;3\nBo;NA;2,5;-1\nСаша 名;4;n/a;0,25\n"
CELLS = [1.5, 3.0, 2.5, -1.0, 4.0, 0.25]


def read(tmp_path, content, name="t.csv", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return source.read(Source(path, **options), quiet=True)


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (TABLE, {}),
        ("\ufeff" + TABLE, {}),
        (TABLE.replace("\n", "\r\n"), {}),
        (TABLE.replace("NA", ".").replace("n/a", "#N/A"), {}),
        (TABLE.replace("NA", '""').replace("n/a", '" "'), {}),
        ("Spring 2024\n" + TABLE, {}),
        ("sep=;\n" + TABLE, {}),
        ("Spring 2024\n" + TABLE, {"skip": 1}),
        ("Spring 2024;;;\n\n" + TABLE, {"skip": 2}),
        ("\ufeff# made by hand\n" + TABLE, {"skip": 1}),
        (TABLE.encode("utf-16"), {"encoding": "utf-16"}),
        (TABLE.encode("utf-16"), {}),
        (("\ufeffFrühling\n" + TABLE).encode("utf-16-be"), {"skip": 1}),
        (("Frühling\n" + TABLE).encode("utf-16"), {"encoding": "utf-16", "skip": 1}),
    ],
)
def test_one_table_in_many_formats(tmp_path, content, options):
    data = read(tmp_path, content, **options)
    assert data.values.tolist() == CELLS
    assert data.row_labels.tolist() == ["Änne Müller", "Bo", "Саша 名"]
    assert data.column_labels.tolist() == ["one", "two", "three"]


def test_gzipped_latin_1_file_without_an_ending(tmp_path):
    content = TABLE.replace("Саша 名", "Zoë").encode("latin-1")
    assert read(tmp_path, content, encoding="latin-1").row_labels[2] == "Zoë"
    zipped = read(tmp_path, gzip.compress(content), "t.csv.gz", encoding="latin-1")
    assert zipped.row_labels[2] == "Zoë"
    assert read(tmp_path, TABLE, "u1.base", format="csv").values.tolist() == CELLS


BAD = {
    "a number above": ("2024\n" + TABLE, ["t.csv, line 1: 1 field,", "--skip N"]),
    "latin-1": (
        TABLE.replace("Саша 名", "Zoë").encode("latin-1"),
        ["line 2", "--encoding latin-1"],
    ),
    "utf-16 without a mark": (TABLE.encode("utf-16-le"), ["zero bytes", "--encoding utf-16"]),
    "a header twice": ("name,a,b,a\nx,1,2,\ny,4,,6\n", ["'a' more than once", "Rename one"]),
    "thousands": (
        'name,a,b\nx,"1,234.5",2\ny,"3,5",\nz,4,5\n',
        ["line 2, column 'a'", "must be a number, got '1,234.5'", "--decimal", "--thousands"],
    ),
    "totals": (TABLE + "Total;1;2;3;4\n", ["line 5: 5 fields, but the table has 4"]),
}


@pytest.mark.parametrize(("content", "words"), BAD.values(), ids=BAD)
def test_unreadable_tables_are_rejected_with_the_option_to_use(complete, tmp_path, content, words):
    (tmp_path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert_refused(complete("t.csv"), *words)


def test_options_that_do_not_fit_the_file(complete, tmp_path):
    np.save(tmp_path / "t.npy", np.eye(3))
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(TABLE.encode())[:-9])
    (tmp_path / "noend").write_text(TABLE, encoding="utf-8")
    assert_refused(complete("t.npy", "--skip", "1"), "for text files, not for .npy")
    assert_refused(
        complete("t.csv", "--encoding", "klingon"), "the encoding 'klingon' is unknown", "latin-1"
    )
    assert_refused(complete("t.csv", "--encoding", "utf-16"), "t.csv: not utf-16 text")
    assert_refused(complete("t.csv.gz", "--skip", "1"), "t.csv.gz: not a complete gzip file")
    assert_refused(complete("noend"), "kind of the file is unknown", "--format csv")
    assert_refused(complete("none", "--format", "csv"), "the file does not exist", "none")


@pytest.mark.parametrize("name", ["cut.mtx", "cut.mtx.gz"])
def test_lines_can_be_skipped_only_in_text_tables(complete, tmp_path, name):
    content = b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    ran = complete(name)
    assert_refused(ran, f"{name}, line 4: the line must have 3 numbers")
    assert "--skip" not in ran.err


def test_a_numeric_column_that_may_be_labels_gives_a_note(complete, tmp_path):
    lines = [f"{1000 + i},{i % 5},{'' if i % 7 == 0 else i % 3}" for i in range(30)]
    (tmp_path / "t.csv").write_text("meter,a,b\n" + "\n".join(lines))
    ran = complete("t.csv")
    assert "Note: the column 'meter' has a different whole number in every row" in ran.err
    assert "add --label meter" in ran.err
    (tmp_path / "v.csv").write_text("patient,a,b\n" + "\n".join(lines))
    assert "Column 'patient' has the row labels and is not fitted." in complete("v.csv").err
    (tmp_path / "u.csv").write_text("id,a,b\n" + "\n".join(lines))
    ran = complete("u.csv")
    assert "Note" not in ran.err
    assert "its first row is 1000 (labelled by 'id'), its first column 'a'" in ran.err


LONG = "a,b,c\n1,2,3.5\n1,3,4.5\n2,2,1.5\n2,4,3\n3,1,2.5\n"


def test_a_long_table_of_numbers_that_is_taken_for_wide(complete, fillrank, tmp_path):
    (tmp_path / "t.csv").write_text(LONG)
    ran = complete("t.csv")
    assert ran.code == 0, ran.err
    assert "no value is missing" in ran.err
    assert "--layout long" in ran.err
    assert (tmp_path / "t-filled" / "filled.csv").read_text() == LONG
    ran = fillrank("fit", "t.csv", *QUICK)
    assert ran.code == 0
    assert "Note: the first two columns look like labels" in ran.err
    assert "--layout long" in ran.err
    ran = fillrank("fit", "t.csv", "--layout", "long", "--force", *QUICK)
    assert "5 entries (41.7% of the cells)" in ran.err
    assert "Note: the first two" not in ran.err


@pytest.mark.parametrize(
    "text",
    [
        LONG.replace("2,4,3\n", "1,2,3\n"),
        LONG.replace("2,4,3\n", "2.5,4,3\n"),
        LONG.replace("\n", ",7\n"),
        "a,b,c\n1,2,3\n2,3,4\n3,4,5\n",
    ],
    ids=["a pair twice", "a fraction", "four columns", "no label twice"],
)
def test_other_wide_tables_are_not_taken_for_long_ones(complete, tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    ran = complete("t.csv")
    assert ran.code == 0, ran.err
    assert "no value is missing" in ran.err
    assert "--layout long" not in ran.err


@pytest.mark.parametrize(
    "text",
    [
        "name,a\n" + "".join(f"x{i},{i if i % 3 else ''}\n" for i in range(30)),
        "a,b\n" + "".join(f"{i * 1.5 if i % 4 else ''},{i if i % 3 else ''}\n" for i in range(60)),
        "name,a,b,c\n" + "".join(f"r{i},5,{'' if i % 2 else 5},5\n" for i in range(30)),
        "name,a,b,c\n" + "".join(f"r{i},{i % 4},,{i % 3 or ''}\n" for i in range(30)),
        "name,a,b\n" + "".join(f"r{i},7,{i % 4 or ''}\n" for i in range(30)),
    ],
    ids=["one column", "two columns", "all the same", "an empty column", "a constant column"],
)
def test_degenerate_tables_are_filled(complete, tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    ran = complete("t.csv")
    assert ran.code == 0, ran.err
    filled = fr.read(tmp_path / "t-filled" / "filled.csv")
    assert filled.density == 1


def test_long_labels_are_shortened_in_messages(complete, tmp_path):
    lines = "".join(f"{'x' * 300}{i},{i % 4},{i % 3 or ''}\n" for i in range(30))
    (tmp_path / "t.csv").write_text("name,a,b\n" + lines)
    ran = complete("t.csv")
    assert ran.code == 0
    assert "x" * 41 not in ran.err
