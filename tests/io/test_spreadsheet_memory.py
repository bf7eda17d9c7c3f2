"""Spreadsheets that stand for more cells than fit in memory are refused before they are read."""

import io

import pytest

import fillrank as fr
from fillrank.errors import InputError, ReadError
from fillrank.io import spreadsheets
from helpers.spreadsheet_bytes import archive, ods_cell, ods_members, ods_row, xlsx_members

MEMORY = 50_000_000
FIRST = '<row r="1"><c r="A1"><v>1</v></c></row>'


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    monkeypatch.setattr("fillrank.runtime.memory.available_memory", lambda: MEMORY)


@pytest.fixture
def never_read(monkeypatch):
    """The library would take all of the memory that the machine has."""

    def fail(*arguments):
        pytest.fail("the file was read")

    monkeypatch.setattr(spreadsheets, "_find_rows", fail)


def read(members, ending="xlsx"):
    return fr.read(io.BytesIO(archive(members)), format=ending, name=f"t.{ending}")


def repeated(what, number):
    return f"table:number-{what}-repeated={number}"


@pytest.mark.parametrize(
    "rows",
    [
        '<row r="3000"><c r="DDD3000"><v>1</v></c></row>',
        "<row r='3000'><c r = 'ddd3000'><v>1</v></c></row>",
        '<row><c r="DDD0000000000000003000"><v>1</v></c></row>',
        '<x:row xmlns:x="x" r="3000"><x:c r="DDD3000"><x:f/></x:c></x:row>',
        '<row r="2"><c r="DDD2"><v>1</v></c></row><row r="3000"><c><v>1</v></c></row>',
        '<row r="3000"><c r="XFD99999999999999999999"><v>1</v></c></row>',
    ],
)
def test_a_cell_far_from_the_others(never_read, rows):
    with pytest.raises(
        InputError, match=r"^t\.xlsx: a sheet of [0-9,]+ cells would take about .* [MT]B"
    ):
        read(xlsx_members(FIRST + rows))


def test_the_sheet_may_have_any_path(never_read):
    members = xlsx_members(FIRST + '<row r="3000"><c r="DDD3000"><v>1</v></c></row>')
    members["XL/other.dat"] = members.pop("xl/worksheets/sheet1.xml")
    links = "xl/_rels/workbook.xml.rels"
    members[links] = members[links].replace("worksheets/sheet1.xml", "/xl/other.dat")
    with pytest.raises(InputError, match="a sheet of 8,436,000 cells"):
        read(members)


def test_many_cells_share_a_long_text(never_read):
    cells = '<c t="s"><v>1</v></c>' * 100
    rows = "".join(f'<row r="{i}">{cells}</row>' for i in range(1, 11))
    with pytest.raises(InputError, match="a sheet of 1,000 cells would take about 120 MB"):
        read(xlsx_members(rows, ["short", "x" * 30_000]))


def test_many_cells_share_a_short_text():
    rows = "".join(
        f'<row r="{i}"><c t="s"><v>1</v></c><c><v>{i}</v></c></row>' for i in range(1, 99)
    )
    assert len(read(xlsx_members(rows, ["x" * 30_000, "tea"]))) == 98


@pytest.mark.parametrize("quote", ["'{}'", ' "{}"', '"+000{}"', '"&#48;{}"'])
def test_repeated_rows_and_cells(never_read, quote):
    row = ods_row(
        ods_cell(1, repeated("columns", quote.format(3000))),
        attributes=repeated("rows", quote.format(3000)),
    )
    with pytest.raises(InputError, match=r"t\.ods: a sheet of 9,000,000 cells would take about"):
        read(ods_members(row), "ods")


def test_a_repeated_text(never_read):
    cell = ods_cell("x" * 100_000, repeated("columns", '"100"'))
    with pytest.raises(InputError, match="a sheet of 1,000 cells would take about 8"):
        read(ods_members(ods_row(cell, attributes=repeated("rows", '"10"'))), "ods")


def test_a_gap_between_two_rows(never_read):
    row = ods_row(ods_cell(1, repeated("columns", '"5"')))
    gap = ods_row("<table:table-cell/>", attributes=repeated("rows", '"900000"'))
    with pytest.raises(InputError, match="a sheet of 4,500,010 cells"):
        read(ods_members(row + gap + row), "ods")


def test_empty_cells_at_the_end_take_no_memory():
    """As LibreOffice writes them, up to the end of the sheet; and cells with a format alone."""
    rest = '<table:table-cell table:number-columns-repeated="16000"/>'
    rows = [ods_row(ods_cell(i), ods_cell(i * i % 7), rest) for i in range(1, 9)]
    rows.append(ods_row(rest, attributes=repeated("rows", '"1048000"')))
    assert read(ods_members("".join(rows)), "ods").shape == (8, 2)
    rows = [
        f'<row r="{i}"><c r="A{i}"><v>{i}</v></c><c r="B{i}"><v>{i * i % 7}</v></c></row>'
        for i in range(1, 9)
    ]
    rows.append('<row r="1048576"><c r="XFD1048576" s="1"/></row>')
    assert read(xlsx_members("".join(rows))).shape == (8, 2)


@pytest.mark.parametrize("ending", ["xlsx", "ods"])
def test_a_zip_bomb(never_read, ending):
    rows = FIRST + " " * (MEMORY // 3)
    members = xlsx_members(rows) if ending == "xlsx" else ods_members(rows)
    with pytest.raises(InputError, match="a spreadsheet of this size would take about"):
        read(members, ending)


def test_sheets_that_are_not_complete(never_read):
    with pytest.raises(ReadError, match="not a complete spreadsheet file"):
        read(xlsx_members("<row>"))
    with pytest.raises(ReadError, match=r"binary workbooks are not read.*Save it as \.xlsx"):
        read({"xl/workbook.bin": ""})
