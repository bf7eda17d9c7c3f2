"""Spreadsheets come back as spreadsheets: numbers, text, dates and booleans as they were."""

import json
from datetime import date, datetime, timedelta

import numpy as np
import pytest

from helpers.refusals import assert_refused
from helpers.workbooks import read_workbook, write_workbook

HEADER = ["name", "height", "code", "seen", "sure", "town", "paid", "comment"]
N = 30


def survey():
    """A table with missing cells in all columns but those of labels and comments."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=N)
    rows = [
        [
            f"p{i}",
            round(size[i], 3),
            i % 4,
            datetime(2024, 1, 1) + timedelta(days=int(100 * abs(size[i]))),
            bool(size[i] > 0),
            "Bern" if size[i] > 0 else "Chur",
            f"{20 + 3 * size[i]:.2f} kg",
            "=1+1" if i == 2 else f"note {i}",
        ]
        for i in range(N)
    ]
    for j in range(1, 7):
        for i in range(j, N, 9):
            rows[i][j] = None
    return rows


@pytest.fixture
def table(tmp_path):
    return write_workbook(
        tmp_path / "survey.xlsx", [["A title"], HEADER, *survey()], "answers", (2, 1)
    )


def test_cells_have_the_types_that_they_had(complete, table, tmp_path):
    ran = complete(table, "--ignore", "comment")
    assert ran.code == 0, ran.err
    assert "survey-filled/filled.xlsx" in ran.out
    assert "CSV" not in ran.err
    ((sheet, (header, *filled)),) = read_workbook(
        tmp_path / "survey-filled" / "filled.xlsx"
    ).items()
    assert (sheet, header) == ("answers", HEADER)
    kinds = (str, float, float, date, bool, str, str, str)
    for before, after in zip(survey(), filled, strict=True):
        for old, new, kind in zip(before, after, kinds, strict=True):
            assert isinstance(new, kind)
            if old is not None:
                assert new == (old.date() if isinstance(old, datetime) else old)
        assert after[5] in ("Bern", "Chur")
        assert after[6].endswith(" kg")
        assert after[2] in range(4)


def test_rows_without_any_cell_are_not_of_the_table(complete, tmp_path):
    rows = [["who", "x", "y"], *([f"p{i}", i % 7, i % 7 + 0.5] for i in range(20))]
    rows[9][1] = None
    path = write_workbook(tmp_path / "t.xlsx", [*rows[:5], [], *rows[5:], ["", " "]])
    assert complete(path).code == 0
    ((header, *filled),) = read_workbook(tmp_path / "t-filled" / "filled.xlsx").values()
    assert header == rows[0]
    assert [row[0] for row in filled] == [row[0] for row in rows[1:]]
    assert [row[2] for row in filled] == [row[2] for row in rows[1:]]


def test_what_is_written_can_be_read_again(complete, table, tmp_path):
    assert complete(table).code == 0
    ran = complete(tmp_path / "survey-filled" / "filled.xlsx", "--sheet", "answers")
    assert "no value is missing" in ran.err


def test_text_is_never_a_formula(complete, tmp_path):
    rows = [["who", "x", "level"], *([f"p{i}", i % 5, "=A1" if i % 2 else "+1"] for i in range(20))]
    rows[3][1] = rows[5][2] = None
    assert complete(write_workbook(tmp_path / "t.xlsx", rows)).code == 0
    filled = read_workbook(tmp_path / "t-filled" / "filled.xlsx")["data"]
    assert filled[5][2] in ("=A1", "+1")  # a formula would be read as its value, 0
    assert [row[2] for row in filled[6:]] == [row[2] for row in rows[6:]]


@pytest.mark.parametrize("name", ["t.ods", "t.xls"])
def test_other_spreadsheets_come_back_as_csv(complete, table, tmp_path, name):
    """Their content decides how they are read, so an .xlsx stands for them here."""
    (tmp_path / name).write_bytes(table.read_bytes())
    ran = complete(tmp_path / name)
    assert ran.code == 0, ran.err
    assert "The completed table is CSV, which spreadsheets open: filled.csv." in ran.err


def test_a_long_spreadsheet_gives_its_missing_cells_as_csv(complete, write_long, tmp_path):
    lines = [line.split(",") for line in write_long().read_text().splitlines()]
    rows = [lines[0], *([user, item, float(stars)] for user, item, stars in lines[1:])]
    ran = complete(write_workbook(tmp_path / "long.xlsx", rows))
    assert ran.code == 0, ran.err
    assert "The completed table is CSV" in ran.err
    assert (tmp_path / "long-filled" / "filled.csv").read_text().startswith("user,item,rating\n")


def test_without_the_library_the_error_comes_before_the_fit(complete, table, monkeypatch):
    monkeypatch.setattr("fillrank.io.xlsx_writer.find_spec", lambda name: None)
    assert_refused(complete(table), "filled.xlsx", "XlsxWriter", 'pip install "fillrank[excel]"')


def test_new_rows_and_entries(fillrank, keep, table, tmp_path):
    keep(table)
    new = [HEADER, ["q1", None, 2, datetime(2024, 2, 3), None, "Bern", "21 kg", "hello"]]
    write_workbook(tmp_path / "new.xlsx", new)
    ran = fillrank("fold-in", "model.fillrank", "new.xlsx")
    assert ran.code == 0, ran.err
    header, row = read_workbook(tmp_path / "new-filled.xlsx")["data"]
    assert header == HEADER
    assert [row[0], *row[2:4], *row[5:]] == ["q1", 2.0, date(2024, 2, 3), "Bern", "21 kg", "hello"]
    assert isinstance(row[1], float)
    assert isinstance(row[4], bool)


def test_new_rows_of_a_text_file_in_a_spreadsheet(fillrank, keep, tmp_path):
    """Numbers with decimal commas and dates are values there."""
    rng = np.random.default_rng(0)
    head = "who;a;b;day;sure\n"
    body = "".join(
        f"p{i};{rng.normal():.2f};{rng.normal():.2f};2024-01-{i + 1:02};{'true' if i % 2 else 'false'}\n"
        for i in range(28)
    )
    (tmp_path / "t.csv").write_text(head + body.replace(".", ","))
    keep(tmp_path / "t.csv")
    (tmp_path / "new.csv").write_text(head + "q1;1,5;;2024-02-03;true\nq2;;;;\n")
    for file in ("new.xlsx", "new.json"):
        ran = fillrank("fold-in", "model.fillrank", "new.csv", "-o", file)
        assert ran.code == 0, ran.err
    header, *rows = read_workbook(tmp_path / "new.xlsx")["Sheet1"]
    assert header == head.strip().split(";")
    assert [type(cell) for cell in rows[0]] == [str, float, float, date, bool]
    assert [type(cell) for cell in rows[1]] == [str, float, float, date, bool]
    assert [rows[0][1], *rows[0][3:]] == [1.5, date(2024, 2, 3), True]
    records = json.loads((tmp_path / "new.json").read_text())
    assert records[0]["a"] == 1.5
    assert (records[0]["day"], records[0]["sure"]) == ("2024-02-03", True)


@pytest.mark.parametrize("command", ["fold-in", "update"])
def test_the_missing_cells_of_a_long_table_are_text(fillrank, keep, write_long, tmp_path, command):
    table = write_long()
    keep(table)
    (tmp_path / "new.csv").write_text("user,item,rating\nu0,i1,0.5\n")
    ran = fillrank(command, "model.fillrank", "new.csv", "-o", "x.xlsx")
    assert_refused(ran, "the missing cells of a long table end in .csv .tsv", "got '.xlsx'")
    assert not (tmp_path / "x.xlsx").exists()


def test_cells_of_json_have_the_types_that_they_had(complete, tmp_path):
    """Also those of columns that are not fitted, and of a list of lists without names."""
    rng = np.random.default_rng(0)
    records = [
        {
            "who": f"p{i}",
            "year": 2000 + i,
            "zip": f"0{i}",
            "x": rng.normal(),
            "y": float(i % 7),
            "z": i % 2 > 0,
        }
        for i in range(30)
    ]
    records[4]["x"] = records[5]["z"] = None
    (tmp_path / "t.json").write_text(json.dumps(records))
    ran = complete("t.json", "--ignore", "year,zip", "--label", "who")
    assert ran.code == 0, ran.err
    filled = json.loads((tmp_path / "t-filled" / "filled.json").read_text())
    assert isinstance(filled[4].pop("x"), float)
    assert isinstance(filled[5].pop("z"), bool)
    del records[4]["x"], records[5]["z"]
    assert filled == records
    lists = [[each["y"], None if i == 3 else i / 3] for i, each in enumerate(records)]
    (tmp_path / "u.json").write_text(json.dumps(lists))
    assert complete("u.json").code == 0
    filled = json.loads((tmp_path / "u-filled" / "filled.json").read_text())
    assert isinstance(filled[3].pop(), float)
    del lists[3][1]
    assert filled == lists


def test_limits_with_a_decimal_comma_become_numbers(complete, tmp_path):
    rng = np.random.default_rng(1)
    values = (3 + rng.normal(size=(N, 1)) * [0.9, 0.5, 0.3] + rng.normal(0, 0.1, (N, 3))).round(2)
    rows = [[f"p{i}", *line] for i, line in enumerate(values.tolist())]
    rows[4][1] = rows[7][1] = "< 0,5"
    rows[9][1] = None
    path = write_workbook(tmp_path / "lead.xlsx", [["plot", "a", "b", "c"], *rows])
    ran = complete(path)
    assert ran.code == 0, ran.err
    ((_, (_, *filled)),) = read_workbook(tmp_path / "lead-filled" / "filled.xlsx").items()
    assert all(isinstance(value, float) for line in filled for value in line[1:])
    assert filled[4][1] < 0.5
