import numpy as np
import pytest

import fillrank as fr
from helpers.result_files import read_csv, write_csv

ROWS = [
    "=1+1", "+2", "-x", "@SUM(A1)", 'say "hi"', "a,b", "two\nlines", "<script>alert(1)</script>",
    "[red]x[/red]", "été ☃", "semi;colon", "return\rhere", "back\\slash\\", "'",
]  # fmt: skip
COLUMNS = ["=A1", '"', "a,b", "new\nline", "[bold]", "<b>", "@x", "plain"]


def test_labels_of_a_wide_table_are_unchanged(complete, write_wide, tmp_path):
    ran = complete(write_wide(rows=ROWS, columns=COLUMNS))
    assert ran.code == 0, ran.err
    header, *lines = read_csv(tmp_path / "table-filled" / "filled.csv")
    assert header[1:] == COLUMNS
    assert [line[0] for line in lines] == ROWS
    intervals = read_csv(tmp_path / "table-filled" / "intervals.csv")[1:]
    assert {line[0] for line in intervals} <= set(ROWS)
    assert {line[1] for line in intervals} <= set(COLUMNS)
    again = fr.read(tmp_path / "table-filled" / "filled.csv")
    assert (list(again.row_labels), list(again.column_labels)) == (ROWS, COLUMNS)


def test_labels_of_a_long_table_are_unchanged(complete, matrix, tmp_path):
    observed, missing = np.argwhere(~np.isnan(matrix)), np.argwhere(np.isnan(matrix))
    lines = [("user", "item", "rating")]
    lines += [(ROWS[i], COLUMNS[j], repr(float(matrix[i, j]))) for i, j in observed]
    ran = complete(write_csv(tmp_path / "long.csv", lines))
    assert ran.code == 0, ran.err
    filled = read_csv(tmp_path / "long-filled" / "filled.csv")[1:]
    assert {(row, column) for row, column, _ in filled} == {
        (ROWS[i], COLUMNS[j]) for i, j in missing
    }


def test_fields_and_paths_with_markup_are_shown_as_they_are(complete, write_long, tmp_path):
    header = ("[red]who", "[/]what", "[bold]how")
    table = write_long("[red]table[b].csv", header=header)
    fields = ["--row", header[0], "--column", header[1], "--value", header[2]]
    ran = complete(table, *fields, "-o", "[blue]out")
    assert ran.code == 0, ran.err
    assert "[red]table[b].csv" in ran.err
    assert "rows from '[red]who', columns from '[/]what', values from '[bold]how'" in ran.err
    assert "[blue]out/filled.csv" in ran.out


@pytest.mark.parametrize("name", ["[red]x", "[/]", "\\[b]"])
def test_names_in_errors_are_shown_as_they_are(complete, tmp_path, name):
    table = write_csv(
        tmp_path / "t.csv", [("user", "item", "rating"), (name, "i", 1), (name, "i", 2)]
    )
    ran = complete(table)
    assert ran.code == 2
    assert repr(name) in ran.err
