"""Completed tables are written as they came, and new rows and entries are taken into models."""

import csv
import json
import re
from datetime import date

import numpy as np
import pytest

import fillrank as fr
from fillrank.cli.column_decimals import with_decimals
from fillrank.cli.completed_table import CellFormats
from fillrank.table.number_text import PLAIN_FORMAT
from helpers.refusals import assert_refused


def lines_of(n=12):
    rng = np.random.default_rng(0)
    return [[f"p{i}", *(f"{v:.2f}" for v in rng.normal(5, 2, 3))] for i in range(n)]


@pytest.mark.parametrize(
    ("delimiter", "decimal", "end", "mark", "quote", "encoding"),
    [
        (",", ".", "\n", "", "", None),
        (";", ",", "\r\n", "\ufeff", "", None),
        ("\t", ".", "\n", "", '"', None),
        (";", ",", "\n", "", "", "latin-1"),
        (",", ".", "\r\n", "\ufeff", "", "utf-16-le"),
        (";", ",", "\n", "\ufeff", "", "utf-16-be"),
    ],
)
def test_only_missing_cells_change(
    complete, tmp_path, delimiter, decimal, end, mark, quote, encoding
):
    lines = [["wér", "a", "b", "c"], *lines_of()]
    lines[3][2] = ""
    text = mark + "".join(
        delimiter.join(f"{quote}{cell.replace('.', decimal)}{quote}" for cell in line) + end
        for line in lines
    )
    (tmp_path / "t.csv").write_bytes(text.encode(encoding or "utf-8"))
    named = () if encoding is None or mark else ("--encoding", encoding)
    ran = complete("t.csv", *named)
    assert ran.code == 0, ran.err
    filled = (tmp_path / "t-filled" / "filled.csv").read_bytes().decode(encoding or "utf-8")
    before, after = text.split(end), filled.split(end)
    assert [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new] == [3]
    cell = after[3].split(delimiter)[2].strip('"')
    assert "." not in cell or decimal == "."
    assert np.isfinite(float(cell.replace(decimal, ".")))


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lines_above_the_rows_are_kept(complete, tmp_path, mark):
    names, *lines = [["who", "a", "b", "c"], *lines_of()]
    lines[3][2] = ""
    top = f"{mark}sep=;\r\nResults of 2024\r\n\r\n{';'.join(names)}\r\n;kg;cm;°C\r\n"
    text = top + "".join(";".join(line) + "\r\n" for line in lines)
    (tmp_path / "t.csv").write_bytes(text.encode())
    ran = complete("t.csv")
    assert ran.code == 0, ran.err
    assert (
        "Line 2 was skipped: a title, 'Results of 2024'. If this is part of the table, add --skip 0."
        in ran.err
    )
    filled = (tmp_path / "t-filled" / "filled.csv").read_bytes().decode()
    assert filled.startswith(top)
    before, after = text.split("\r\n"), filled.split("\r\n")
    assert [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new] == [8]
    intervals = (tmp_path / "t-filled" / "intervals.csv").read_text("utf-8-sig")
    assert intervals.startswith("row;column;value")
    again = complete("t.csv", "--skip", "3", "--force")
    assert again.code == 0, again.err
    assert (tmp_path / "t-filled" / "filled.csv").read_bytes().decode() == filled


def test_units_come_back_and_no_column_is_added(complete, tmp_path):
    lines = "".join(f"{i % 5},{i % 7} kg\n" for i in range(12))
    (tmp_path / "t.csv").write_text("a,b\n" + lines + "3,\n")
    assert complete("t.csv").code == 0
    filled = (tmp_path / "t-filled" / "filled.csv").read_text()
    assert filled.startswith("a,b\n" + lines)
    assert filled.splitlines()[-1].startswith("3,")
    assert filled.endswith(" kg\n")


def test_json_gives_json(complete, tmp_path):
    records = [{"id": name, "a": float(a), "b": float(b)} for name, a, b, _ in lines_of()]
    records[2]["a"] = None
    (tmp_path / "t.json").write_text(json.dumps(records))
    assert complete("t.json").code == 0
    filled = json.loads((tmp_path / "t-filled" / "filled.json").read_text())
    assert isinstance(filled[2].pop("a"), float | int)
    del records[2]["a"]
    assert filled == records


def json_layouts():
    lines = [[name, float(a), 2.0 * i] for i, (name, a, *_) in enumerate(lines_of())]
    lines[2][1] = lines[3][2] = None
    names, columns = [line[0] for line in lines], {"a": 1, "b": 2}
    count = [str(i) for i in range(len(lines))]
    data = [line[1:] for line in lines]
    return {
        "columns": {each: [line[k] for line in lines] for each, k in columns.items()},
        "cells": {each: {line[0]: line[k] for line in lines} for each, k in columns.items()},
        "numbered cells": {
            each: dict(zip(count, [line[k] for line in lines], strict=True))
            for each, k in columns.items()
        },
        "split": {"columns": ["a", "b"], "index": names, "data": data},
        "numbered split": {"columns": [7, 8], "index": [*range(len(lines))], "data": data},
        "without index": {"columns": ["a", "b"], "data": data},
        "lists": data,
    }


@pytest.mark.parametrize("layout", json_layouts())
def test_json_keeps_its_layout_and_types(complete, tmp_path, layout):
    content = json_layouts()[layout]
    (tmp_path / "t.json").write_text(json.dumps(content))
    ran = complete("t.json")
    assert ran.code == 0, ran.err
    text = (tmp_path / "t-filled" / "filled.json").read_text()
    filled = json.loads(text)
    assert shape_of(filled) == shape_of(content)
    assert "null" not in text
    assert " 8.0" in text


def shape_of(tree):
    """The types of the values and the keys, with a number for each missing cell."""
    if isinstance(tree, dict):
        return {key: shape_of(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [shape_of(value) for value in tree]
    return float if tree is None else type(tree) if isinstance(tree, float) else tree


def test_a_complete_table_is_written_as_it_is(complete, tmp_path):
    text = "who,a,b\n" + "".join(f"p{i},{i % 5}.0,{i % 3}\n" for i in range(12))
    (tmp_path / "t.csv").write_text(text)
    ran = complete("t.csv")
    assert ran.code == 0, ran.err
    assert "no value is missing" in ran.err
    assert "add --na -1" in ran.err
    assert (tmp_path / "t-filled" / "filled.csv").read_text() == text
    assert (tmp_path / "t-filled" / "intervals.csv").read_text() == "row,column,value,lower,upper\n"


def test_a_method_without_intervals(fillrank, write_wide, tmp_path):
    table = write_wide()
    ran = fillrank("complete", table, "--method", "softimpute", "--hold-out", "0")
    assert ran.code == 0, ran.err
    names = {path.name for path in (tmp_path / "table-filled").iterdir()}
    assert names == {"filled.csv", "table-report.html", "spectrum.png", "summary.json"}
    ran = fillrank("complete", table, "--method", "HASI", "--intervals", "all", "--force")
    assert_refused(ran, "a method with intervals, GASR or BPMF")


def test_new_rows_and_new_entries(fillrank, keep, tmp_path):
    head = "who;a;b;c;sure\n"
    body = [";".join([*line, "yes" if i % 2 else "no"]) for i, line in enumerate(lines_of(30))]
    (tmp_path / "t.csv").write_text(head + "\n".join(body).replace(".", ",") + "\n")
    keep(tmp_path / "t.csv")
    (tmp_path / "new.csv").write_text("Week 2\n" + head + "q1;4,5;;5,25;yes\n")
    ran = fillrank("fold-in", "model.fillrank", "new.csv", "--save", "new.fillrank")
    assert ran.code == 0, ran.err
    title, first, second = (tmp_path / "new-filled.csv").read_text().splitlines()
    assert (title, first + "\n") == ("Week 2", head)
    assert second.startswith("q1;4,5;")
    assert second.endswith(";5,25;yes")
    assert np.isfinite(float(second.split(";")[2].replace(",", ".")))
    assert fillrank("predict", "new.fillrank", "--missing").raw.splitlines()[1].startswith("q1,b,")
    (tmp_path / "empty.csv").write_text(head + "q2;;;;\n")
    ran = fillrank("fold-in", "model.fillrank", "empty.csv")
    assert ran.code == 0, ran.err
    assert "0 entries" in ran.err
    assert all((tmp_path / "empty-filled.csv").read_text().splitlines()[1].split(";"))
    (tmp_path / "bad.csv").write_text("q1;4,5;;5,25;yes\nq2;3,5;;4,25;no\n")
    ran = fillrank("fold-in", "model.fillrank", "bad.csv")
    assert_refused(
        ran, "has the columns 0, 1, 2", "none of those of the fit, such as 'a', 'b', 'c'"
    )
    (tmp_path / "bad.csv").write_text(head + "q1;4,5;;5,25;perhaps\n")
    ran = fillrank("fold-in", "model.fillrank", "bad.csv")
    assert_refused(ran, "line 2, column 'sure'", "'no', 'yes'", "got 'perhaps'")
    (tmp_path / "more.csv").write_text("Week 2\nwho;a\np3;9,75\n")
    ran = fillrank("update", "model.fillrank", "more.csv")
    assert ran.code == 0, ran.err
    assert (tmp_path / "model-updated.fillrank").exists()
    lines = (tmp_path / "more-filled.csv").read_text().splitlines()
    assert lines[0].startswith("who;a;")  # the title is that of another table
    assert lines[4].startswith("p3;9,75;")


def test_intervals_of_dates_are_whole_days(complete, fillrank, keep, tmp_path):
    lines = [f"p{i},{i}.5,2024-01-{1 + 2 * (i % 12):02d}\n" for i in range(12)]
    lines[4] = "p4,4.5,\n"
    (tmp_path / "t.csv").write_text("who,a,d\n" + "".join(lines))
    assert complete("t.csv").code == 0
    text = (tmp_path / "t-filled" / "intervals.csv").read_text()
    value, low, high = map(date.fromisoformat, text.splitlines()[1].split(",")[2:])
    assert low < value < high
    filled = (tmp_path / "t-filled" / "filled.csv").read_text()
    assert filled.splitlines()[5] == f"p4,4.5,{value}"
    keep(tmp_path / "t.csv")
    ran = fillrank("predict", "model.fillrank", "--missing", "--level", "0.9")
    low, value, high = sorted(map(date.fromisoformat, ran.raw.splitlines()[1].split(",")[2:]))
    assert low < value < high


def test_filled_cells_have_the_decimals_of_their_column(complete, tmp_path):
    price, share = (lambda i: f'"${12000 + 37.1 * i:,.2f}"'), (lambda i: f"{40 + i / 3:.1f}%")
    lines = [[f"p{i}", price(i), share(i), f"{i:.2f}", f"{i}.0", repr(i / 7)] for i in range(1, 16)]
    for k in range(1, 6):
        lines[2 * k][k] = ""
    text = "who,price,share,fixed,whole,free\n" + "".join(",".join(line) + "\n" for line in lines)
    (tmp_path / "t.csv").write_text(text)

    def filled(*options):
        assert complete("t.csv", *options, "--force").code == 0
        written = (tmp_path / "t-filled" / "filled.csv").read_text()
        rows = list(csv.reader(written.splitlines()[1:]))
        return [rows[2 * k][k] for k in range(1, 6)]

    forms = [r"\$\d\d,\d{3}\.\d\d", r"\d\d\.\d%", r"\d+\.\d\d", r"\d+\.0", r"\d\.\d{3,}"]
    assert all(re.fullmatch(form, cell) for form, cell in zip(forms, filled(), strict=True))
    assert re.fullmatch(r"\d+\.\d{3,}", filled("--no-round")[2])


def test_small_numbers_of_a_positive_column_are_not_written_as_zero():
    data = fr.Observations.from_matrix([[0.1, -0.1], [0.2, 0.2], [0.3, 0.3], [0.4, 0.4]])
    lines = [["0.1", "-0.1"], ["0.2", "0.2"], ["0.3", "0.3"], ["0.4", "0.4"]]
    formats = CellFormats(data, with_decimals([PLAIN_FORMAT] * 2, lines, data))
    assert formats.predicted(np.full((1, 2), 0.04)) == [["0.04", "0.0"]]
    assert formats.predicted(np.full((1, 2), 0.26)) == [["0.3", "0.3"]]


def test_an_exponent_or_another_number_of_decimals_leaves_the_digits_free():
    data = fr.Observations.from_matrix(np.arange(8.0).reshape(4, 2))
    lines = [["0.5", "0.50"], ["1.5", "1.5"], ["2e1", "2.5"], ["3.5", "3.5"]]
    assert with_decimals([PLAIN_FORMAT] * 2, lines, data) == [PLAIN_FORMAT] * 2


def test_numbers_beside_limits_have_the_decimals_of_the_numbers():
    low = np.array([[0.5, -np.inf], [1.5, -np.inf], [2.5, -np.inf], [-np.inf, 1.5]])
    high = np.array([[0.5, 0.05], [1.5, 0.05], [2.5, 0.05], [0.05, 1.5]])
    data = fr.Observations.from_matrix(low, upper=high)
    lines = [["0.5", "<0.05"], ["1.5", "<0.05"], ["2.5", "<0.05"], ["<0.05", "1.5"]]
    formats = CellFormats(data, with_decimals([PLAIN_FORMAT] * 2, lines, data))
    # The second column has too few exact values to tell.
    assert formats.predicted(np.full((1, 2), 3.33473)) == [["3.3", "3.33473"]]
    assert formats.predicted(np.full((1, 2), 0.0312)) == [["0.0312", "0.0312"]]


def test_missing_percentages_of_a_long_table_are_percentages(complete, tmp_path):
    lines = [f"r{i},c{j},{40 + i + j}.5%\n" for i in range(9) for j in range(4) if (i + j) % 4]
    (tmp_path / "t.csv").write_text("r,c,v\n" + "".join(lines))
    assert complete("t.csv").code == 0
    filled = (tmp_path / "t-filled" / "filled.csv").read_text().splitlines()[1:]
    assert len(filled) == 9
    assert all(line.endswith("%") for line in filled)
    assert "%" not in (tmp_path / "t-filled" / "intervals.csv").read_text()


def test_units_of_a_long_table_are_not_among_its_missing_cells(complete, tmp_path):
    lines = [f"{i},{j},{40 + i + j}.5\n" for i in range(9) for j in range(4) if (i + j) % 4]
    (tmp_path / "t.csv").write_text("Spring\nday,hour,rain\nd,h,mm\n" + "".join(lines))
    ran = complete("t.csv", "--row", "day", "--column", "hour", "--value", "rain")
    assert ran.code == 0, ran.err
    title, header, *filled = (tmp_path / "t-filled" / "filled.csv").read_text().splitlines()
    assert (title, header) == ("Spring", "day,hour,rain")
    assert [line.split(",")[:2] for line in filled] == [
        [str(i), str(j)] for i in range(9) for j in range(4) if not (i + j) % 4
    ]


def test_unnamed_index_of_parquet_in_csv(fillrank, keep, tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(20, 3)), [f"p{i}" for i in range(20)], list("abc"))
    table.to_parquet(tmp_path / "t.parquet")
    keep(tmp_path / "t.parquet")
    ran = fillrank("fold-in", "model.fillrank", "t.parquet", "-o", "-")
    lines = ran.raw.splitlines()
    assert lines[0] == "row,a,b,c"
    assert lines[1].startswith("p0,")


def test_update_by_the_whole_table_and_by_a_part(fillrank, keep, tmp_path):
    lines = [f"p{i},{i}.0,said {i},{2 * i}.50" for i in range(14)]
    lines[5] = "p5,,said 5,10.50"

    def write(name, lines):
        (tmp_path / name).write_text("\n".join(["who,a,note,b", *lines]) + "\n")

    write("t.csv", lines)
    keep(tmp_path / "t.csv")
    lines[5] = "p5,14.0,said 5,10.50"
    write("whole.csv", lines)
    ran = fillrank("update", "model.fillrank", "whole.csv", "-o", "-", "--save", "new.fillrank")
    assert ran.code == 0, ran.err
    assert ran.raw == (tmp_path / "whole.csv").read_text()
    write("part.csv", [*lines[:7], "p7,,said 7,14.50", *lines[8:]])
    ran = fillrank("update", "model.fillrank", "part.csv", "-o", "-", "--save", "more.fillrank")
    assert ran.code == 0, ran.err
    assert "p7,7,14.5" in ran.raw.split()
