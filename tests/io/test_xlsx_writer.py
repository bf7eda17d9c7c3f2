"""Cells of .xlsx files: as they are, or refused."""

import math
from datetime import date, datetime, time, timedelta

import numpy as np
import pytest

from fillrank.errors import OutputError
from fillrank.io.xlsx_writer import write_xlsx
from helpers.workbooks import read_workbook


def test_cells_are_read_as_they_were_written(tmp_path):
    cells = [
        5, -0.1, True, False, "tea", "=1+1", "http://x.org", " a\nb ", "_x0041_", "\x01",
        date(2020, 1, 2), datetime(2020, 1, 2, 3, 4, 5), time(3, 4), timedelta(days=2, hours=3),
    ]  # fmt: skip
    write_xlsx(tmp_path / "t.xlsx", [cells, cells], "a sheet")
    assert read_workbook(tmp_path / "t.xlsx") == {"a sheet": [cells, cells]}


def test_numbers_keep_all_digits(tmp_path):
    values = np.random.default_rng(0).lognormal(0, 100, 500).tolist()
    values += [0.1 + 0.2, 5e-324, 1.7976931348623157e308, float(2**53)]
    write_xlsx(tmp_path / "t.xlsx", [[value] for value in values])
    assert [row for (row,) in read_workbook(tmp_path / "t.xlsx")["Sheet1"]] == values


def test_what_a_sheet_does_not_have(tmp_path):
    """Empty cells, dates before 1900, whole numbers that would lose digits, and its invalid names."""
    cells = ["x", None, "", math.nan, date(1850, 1, 2), 12345678901234567891, "y"]
    write_xlsx(tmp_path / "t.xlsx", [cells], "no [such] name")
    expected = ["x", "", "", "", "1850-01-02", "12345678901234567891", "y"]
    assert read_workbook(tmp_path / "t.xlsx") == {"Sheet1": [expected]}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([["x" * 32_768]], "row 1 has a text of 32,768 characters; .* at most 32,767"),
        ([[None] * 16_385], "at most 1,048,576 rows and 16,384 columns"),
    ],
)
def test_too_much_is_refused(tmp_path, rows, words):
    with pytest.raises(OutputError, match=words):
        write_xlsx(tmp_path / "t.xlsx", rows)


def test_too_many_rows_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("fillrank.io.xlsx_writer.MOST_ROWS", 2)
    write_xlsx(tmp_path / "t.xlsx", [[1], [2]])
    with pytest.raises(OutputError, match="a sheet has at most 2 rows"):
        write_xlsx(tmp_path / "t.xlsx", [[1], [2], [3]])


def test_nothing_is_left_behind_if_a_row_cannot_be_computed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()

    def rows():
        yield [1]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_xlsx(tmp_path / "t.xlsx", rows())
    assert not list((tmp_path / "temporary").iterdir())
