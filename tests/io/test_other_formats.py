"""Spreadsheets, JSON and zip files; numbers as people write them."""

import io
import json
import zipfile

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import InputError, ReadError
from helpers.same_entries import as_dict
from helpers.workbooks import write_workbook

RECORDS = [
    {"id": "a", "x": 1.5, "y": None},
    {"id": "b", "x": None, "y": 2},
    {"id": "c", "x": 3, "y": 4},
]


def assert_table(data):
    assert data.row_labels.tolist() == ["a", "b", "c"]
    assert data.column_labels.tolist() == ["x", "y"]
    assert data.values.tolist() == [1.5, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (json.dumps(RECORDS), "json"),
        (json.dumps({name: [each[name] for each in RECORDS] for name in ("id", "x", "y")}), "json"),
        (json.dumps([["id", "x", "y"], *(list(each.values()) for each in RECORDS)]), "json"),
        (json.dumps({"columns": ["x", "y"], "index": ["a", "b", "c"],
                     "data": [[1.5, None], [None, 2], [3, 4]]}), "json"),
        ("\n".join(map(json.dumps, RECORDS)), "jsonl"),
    ],
)  # fmt: skip
def test_shapes_of_json(text, format):
    assert_table(fr.read(io.StringIO(text), format=format))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"x": 1}', "must be a table"),
        ('[{"x": [1]}]', "record 1.*a list"),
        ('{"x": [1], "y": [1, 2]}', "same number of cells"),
        ("[" * 100_000, "table|JSON"),
        (
            '[{"id": "a", "x": 1}, {"id": "b", "x": 2}, {"id": "c", "x": "bad"}]',
            "record 3, field 'x'",
        ),
    ],
)
def test_json_that_is_no_table(text, words):
    with pytest.raises((ReadError, InputError), match=words):
        fr.read(io.StringIO(text), format="json", name="t.json")


def workbook(path):
    rows = [["A title"], [], ["id", "x", "y"], *(list(each.values()) for each in RECORDS)]
    return write_workbook(path, rows, at=(1, 1), empty_sheets=["empty"])


def test_the_first_sheet_with_cells(tmp_path):
    path = workbook(tmp_path / "t.xlsx")
    data = fr.read(path)
    assert_table(data)
    assert data.notes[:2] == (
        "The sheet 'data' is read, of 2.",
        "1 row is taken as a title above the table.",
    )
    assert_table(fr.read(path, sheet="data"))
    with pytest.raises(ReadError, match=r"'empty' is empty.*data"):
        fr.read(path, sheet="empty")
    with pytest.raises(ReadError, match="no such sheet; expected one of 'empty', 'data'"):
        fr.read(path, sheet="none")


def test_a_row_of_units_in_a_sheet_is_skipped_with_a_note(tmp_path):
    header, units = ["id", "x", "y"], ["", "kg", "cm"]
    rows = [["Ana", 1.5, 170], ["Ben", None, 181], ["Cid", 2.5, None]]
    lines = [["People"], [], header, units, *rows]
    with_units = fr.read(write_workbook(tmp_path / "u.xlsx", lines))
    without = fr.read(write_workbook(tmp_path / "t.xlsx", [header, *rows]))
    assert as_dict(with_units) == as_dict(without)
    assert "Row 4 is taken as units or further names of columns." in with_units.notes
    for row in (["Dan", "kg", "cm"], ["", "kg", 5], ["", "unknown", "unknown"]):
        path = write_workbook(tmp_path / "r.xlsx", [header, row, *rows])
        with pytest.raises((ReadError, InputError), match=r"line 2|row 2"):
            fr.read(path)
    path = write_workbook(tmp_path / "absent.xlsx", [header, ["", "absent", "refused"], *rows])
    with pytest.raises(ReadError, match="line 2: the row label is missing"):
        fr.read(path, missing_values=["absent"])
    path = write_workbook(tmp_path / "none.xlsx", [[1, 2], ["kg", "cm"], [1, 2], [3, None]])
    with pytest.raises(ReadError, match="line 2, column 0 must be a number"):  # no header
        fr.read(path)
    with pytest.raises(ReadError, match="a header, but no lines below it"):
        fr.read(write_workbook(tmp_path / "one.xlsx", [header]))


def test_without_the_library_the_error_has_the_command(tmp_path, monkeypatch):
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    monkeypatch.setattr("fillrank.io.spreadsheets.find_spec", lambda name: None)
    with pytest.raises(ReadError, match=r'pip install "fillrank\[excel\]"'):
        fr.read(tmp_path / "t.xlsx")


def test_zip_files_have_one_table(tmp_path):
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/t.json", json.dumps(RECORDS))
        archive.writestr("__MACOSX/t.csv", "x")
        archive.writestr("README.md", "x")
    assert_table(fr.read(path))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("u.csv", "x")
    with pytest.raises(ReadError, match=r"must have one table.*'folder/t.json', 'u.csv'"):
        fr.read(path)


def test_a_zip_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("fillrank.io.files.available_memory", lambda: 4_000_000)
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", bytes(5_000_000))
    with pytest.raises(ReadError, match="decompresses to more than"):
        fr.read(tmp_path / "t.zip")


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1,234.5", "7", "2,000"], [1234.5, 7, 2000]),
        (["1.234,5", "7", "2.000"], [1234.5, 7, 2000]),
        (["1 234,5", "7", "2 000"], [1234.5, 7, 2000]),
        (["€ 3", "€ 4.5", "€ 1"], [3, 4.5, 1]),
        (["3 $", "-4 $", "1 $"], [3, -4, 1]),
        (["12.5 kg", "3kg", "1 kg"], [12.5, 3, 1]),
        (["1 day", "2 days", "3 days"], [1, 2, 3]),
    ],
)
def test_numbers_as_people_write_them(cells, values):
    lines = [
        f'{name},"{cell}",{i}' for i, (name, cell) in enumerate(zip("abc", cells, strict=True))
    ]
    data = fr.read(io.StringIO("who,x,y\n" + "\n".join(lines)), format="csv")
    np.testing.assert_array_equal(data.values[data.column_index == 0], values)
    assert any("Column 'x' holds numbers such as" in note for note in data.notes)


def test_several_units_are_refused_and_ordinals_are_not_numbers():
    with pytest.raises(ReadError, match=r"line 3, column 'x'.*one unit.*a number in kg.*'5 g'"):
        fr.read(io.StringIO("who,x\na,3 kg\nb,5 g\nc,4 kg\n"), format="csv")
    text = "who,x,y\n" + "".join(f"p{i},{('1st', '2nd')[i % 2]},{i}\n" for i in range(6))
    assert fr.read(io.StringIO(text), format="csv").column_types[0].levels == ("1st", "2nd")


def test_marks_can_be_given_and_columns_chosen():
    text = "who;x;y;z\na;1.234;5;1\nb;2.5;6;2\n"
    assert fr.read(io.StringIO(text), format="csv").values[0] == 1.234
    text = text.replace("2.5", "2.500")
    data = fr.read(io.StringIO(text), format="csv", thousands=".", decimal=",", columns=["x", "y"])
    assert data.column_labels.tolist() == ["x", "y"]
    assert data.values.tolist() == [1234.0, 5.0, 2500.0, 6.0]
    with pytest.raises(InputError, match=r"decimal must be '.' or ','"):
        fr.read(io.StringIO(text), format="csv", decimal=";")


@pytest.mark.parametrize("name", ["plot", "Sample ID", "rownames", "X"])
def test_columns_of_ids_are_row_labels(name):
    text = f"{name},a,b\n" + "".join(f"{i},{i % 3},{i % 5}\n" for i in range(1, 21))
    data = fr.read(io.StringIO(text), format="csv")
    assert data.column_labels.tolist() == ["a", "b"]
    assert data.row_labels.tolist() == list(range(1, 21))
