"""--columns, --sheet, --decimal and --thousands: what they read, and what they refuse."""

import json

import numpy as np
import pytest

from fillrank.cli import source
from fillrank.cli.source import Source
from helpers.refusals import assert_refused
from helpers.workbooks import write_workbook

MARKS = [
    # text of cells, --decimal, --thousands, values
    (("1.234", "2.500", "7"), ",", ".", (1234, 2500, 7)),
    (("1.234", "2.500", "7"), ".", None, (1.234, 2.5, 7)),
    (("1,234", "2,500", "7"), ",", None, (1.234, 2.5, 7)),
    (("1,234", "2,500", "7"), ".", ",", (1234, 2500, 7)),
    (("1 234", "2 500,5", "7"), ",", "space", (1234, 2500.5, 7)),
    (("1'234", "2'500.5", "7"), ".", "'", (1234, 2500.5, 7)),
    (("1.234", "2.500", "7"), None, "none", (1.234, 2.5, 7)),
]


@pytest.fixture
def table(tmp_path):
    """A table with semicolons, of which `x` could be thousands or fractions."""
    lines = [
        "who;x;y;z",
        *(f"p{i};{i % 7 + 1}.{100 + 7 * i};{i % 5},5;{i % 3}" for i in range(1, 31)),
    ]
    lines[4] = "p4;;4,5;1"
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "t.csv"


@pytest.mark.parametrize(("cells", "decimal", "thousands", "values"), MARKS)
def test_marks_decide_what_numbers_are(tmp_path, cells, decimal, thousands, values):
    path = tmp_path / "t.csv"
    rows = zip("abc", cells, strict=True)
    path.write_text("who;x;y\n" + "".join(f"{name};{text};{len(text)}\n" for name, text in rows))
    data = source.read(Source(path, decimal=decimal, thousands=thousands), quiet=True)
    np.testing.assert_array_equal(data.values[data.column_index == 0], values)


def test_filled_cells_have_the_marks_that_were_named(complete, table, tmp_path):
    assert complete(table, "--decimal", ",", "--thousands", ".").code == 0
    before = table.read_text().splitlines()
    after = (tmp_path / "t-filled" / "filled.csv").read_text().splitlines()
    assert [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new] == [4]
    value = after[4].split(";")[1]
    assert 1000 < float(value.replace(".", "").replace(",", ".")) < 8000


def test_only_the_named_columns_are_fitted(complete, table, tmp_path):
    ran = complete(table, "--columns", "y, z")
    assert ran.code == 0, ran.err
    assert "x 2 columns" in ran.err
    assert (tmp_path / "t-filled" / "filled.csv").read_text() == table.read_text()
    summary = json.loads((tmp_path / "t-filled" / "summary.json").read_text())
    assert (summary["table"]["columns"], summary["settings"]["columns"]) == (2, "y, z")


def test_the_named_sheet_is_read(tmp_path):
    path = write_workbook(tmp_path / "t.xlsx", [["a", "b"], [1, 2], [3, 5]], empty_sheets=["notes"])
    data = source.read(Source(path, sheet="data"), quiet=True)
    assert data.values.tolist() == [1, 2, 3, 5]
    assert source.read(Source(path), quiet=True).values.tolist() == [1, 2, 3, 5]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--columns", "x,w"), ["t.csv: there is no column 'w'", "'who', 'x', 'y', 'z'"]),
        (("--columns", "x,who"), ["column 'who' cannot be fitted", "--columns", "--decimal"]),
        (("--columns", "x,y", "--ignore", "y,z"), ["--columns and --ignore both name 'y'"]),
        (("--decimal", ";"), ["--decimal must be '.' or ','", "got ';'"]),
        (("--thousands", "_"), ["--thousands must be one of ','", "'space' and 'none'", "got '_'"]),
        (("--decimal", ",", "--thousands", ","), ["the decimal mark and that of thousands", "','"]),
        (("--sheet", "data"), ["--sheet: only spreadsheets have sheets", "got 'data'"]),
    ],
)
@pytest.mark.parametrize("command", ["complete", "fit"])
def test_what_is_refused(fillrank, table, tmp_path, command, arguments, words):
    assert_refused(fillrank(command, table, *arguments), *words)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_value_that_is_no_number_has_its_place(fillrank, table):
    table.write_text(table.read_text().replace("p9;3.163;", "p9;tea;"))
    where = ["t.csv, line 10, column 'x' must be a number, got 'tea'", "--na tea", "--ignore NAME"]
    assert_refused(fillrank("complete", table, "--columns", "x,y"), *where)


def test_marks_do_not_make_numbers_of_other_text(fillrank, table):
    """1.234,5 is no number with a decimal point."""
    table.write_text(table.read_text().replace("p9;3.163;", "p9;3.163,5;"))
    ran = fillrank("complete", table, "--decimal", ".", "--columns", "x,z")
    assert_refused(ran, "line 10, column 'x' must be a number", "got '3.163,5'", "--ignore NAME")


@pytest.mark.parametrize(
    ("sheet", "words"),
    [
        (
            "other",
            ["there is no such sheet; expected one of 'notes', 'data', got 'other'", "--sheet"],
        ),
        ("notes", ["the sheet 'notes' is empty", "--sheet data"]),
    ],
)
def test_sheets_that_are_refused(fillrank, tmp_path, sheet, words):
    write_workbook(tmp_path / "t.xlsx", [["a", "b"], [1, 2]], empty_sheets=["notes"])
    assert_refused(fillrank("complete", "t.xlsx", "--sheet", sheet), "t.xlsx", *words)


def test_a_long_table_has_no_columns_to_choose_from(fillrank, write_long):
    ran = fillrank("complete", write_long(), "--columns", "rating")
    assert_refused(ran, "--columns", "this table is long", "--layout wide")
