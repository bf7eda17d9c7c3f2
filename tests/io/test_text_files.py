import gzip

import numpy as np
import pytest

from fillrank import Observations, read
from fillrank.errors import InputError, ReadError, UnknownNameError
from fillrank.io import long_text as reader
from helpers.same_entries import as_dict, assert_same

LONG = [("Ana", "tea", 5.0), ("Ben", "tea", 3.5), ("Ben", "milk", 1.0), ("Cid", "ale", 2.0)]
WIDE = {("Ana", "x"): 1.0, ("Ana", "y"): 2.5, ("Ben", "y"): -4.0}


@pytest.fixture
def write(tmp_path):
    """Write a text and give the path of the file."""

    def writing(text, name="table.csv"):
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return writing


def long_text(delimiter, header="user item rating", decimal="."):
    lines = [header.split()] if header else []
    lines += [(row, column, str(value).replace(".", decimal)) for row, column, value in LONG]
    return "\n".join(delimiter.join(fields) for fields in lines) + "\n"


@pytest.mark.parametrize("header", ["user item rating", ""])
@pytest.mark.parametrize(
    ("delimiter", "decimal"),
    [
        (",", "."),
        (";", "."),
        (";", ","),
        ("\t", "."),
        ("|", "."),
        ("::", "."),
        (" ", "."),
        ("   ", "."),
    ],
)
@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.txt", "t.dat", "t.data", "T.CSV", "t.csv.gz"]
)
def test_long_tables_in_every_format(write, header, delimiter, decimal, name):
    path = write(long_text(delimiter, header, decimal), name)
    expected = Observations.from_triplets(*zip(*LONG, strict=True))
    assert_same(read(path), expected)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_marks_and_blank_lines_do_not_matter(write, end, bom, last):
    text = long_text(",").replace("\n", end)
    text = bom + text.replace(end, end + end, 2) if last else bom + text.rstrip()
    assert as_dict(read(write(text))) == {(row, column): value for row, column, value in LONG}


def test_byte_order_mark_is_not_part_of_a_label(write):
    path = write("\ufeffwho,what,how\nAna,tea,5\n")
    assert as_dict(read(path, row="who", column="what", value="how")) == {("Ana", "tea"): 5}


def test_quotes_and_names_beyond_ascii(write):
    text = 'user,item,rating\n"Ana, the ""1st""",Käse,1\n"two\nlines",茶,2\n'
    assert as_dict(read(write(text))) == {('Ana, the "1st"', "Käse"): 1, ("two\nlines", "茶"): 2}


def test_movielens_with_and_without_time(write):
    with_time = "1::1193::5::978300760\n1::661::3::978302109\n2::1193::4::978298413\n"
    with_time += "2::661::2::978298413\n"
    without = "\n".join(line.rsplit("::", 1)[0] for line in with_time.split())
    expected = {(1, 1193): 5, (1, 661): 3, (2, 1193): 4, (2, 661): 2}
    assert as_dict(read(write(with_time, "ratings.dat"))) == expected
    assert as_dict(read(write(without, "ratings.dat"))) == expected


def test_names_are_integers_only_if_all_are_written_so(write):
    text = "row,column,value\n{},a,1\n10,b,2\n"
    for name, kept in [("7", 7), ("-7", -7), ("0", 0)]:
        assert read(write(text.format(name))).row_labels.tolist() == [kept, 10]
    for name in ("07", "7.0", "x", "1e3", "99999999999999999999", "-0"):
        assert read(write(text.format(name))).row_labels.tolist() == [name, "10"]


@pytest.mark.parametrize(
    "missing", ["", "NA", "na", "N/A", "NaN", "nan", "null", "NULL", "None", "?", "-", " "]
)
def test_missing_is_written_in_many_ways(write, missing):
    wide = f"name,x,y\nAna,1,2.5\nBen,{missing},-4\n"
    assert as_dict(read(write(wide))) == WIDE
    long = f"row,column,value\nAna,x,1\nAna,y,2.5\nBen,y,-4\nBen,x,{missing}\nCid,z,{missing}\n"
    observations = read(write(long))
    assert as_dict(observations) == WIDE
    assert observations.row_labels.tolist() == ["Ana", "Ben", "Cid"]


@pytest.mark.parametrize(
    "text",
    [
        ",x,y\nAna,1,2.5\nBen,,-4\n",
        "name,x,y\nAna,1,2.5\nBen,,-4\n",
        "whoever,x,y\nAna,1,2.5\nBen,,-4\n",
        "Name;x;y\nAna;1;2,5\nBen;;-4\n",
        '"x" "y"\n"Ana" 1 2.5\n"Ben" NA -4\n',  # as R writes it
        "name\tx\ty\nAna\t1\t2.5\nBen\t\t-4\n",
    ],
)
def test_wide_tables_in_every_format(write, text):
    observations = read(write(text))
    assert as_dict(observations) == WIDE
    assert observations.row_labels.tolist() == ["Ana", "Ben"]
    assert observations.column_labels.tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [
        (",0,1\n0,1.5,\n1,2,3\n", [0, 1], [0, 1]),  # as pandas writes it
        ("id,1990,1991\n7,1.5,2\n9,2,3\n", [7, 9], [1990, 1991]),
        ("Ana,1,2\nBen,3,4\n", ["Ana", "Ben"], [0, 1]),
        ("1.5,2,3,4\n2,3,,5\n", [0, 1], [0, 1, 2, 3]),
        ("x,y\n1.5,2\n3,4\n", [0, 1], ["x", "y"]),
        ("1 2 3 4 5\n2 3 4 5 6\n", [0, 1], [0, 1, 2, 3, 4]),
    ],
)
def test_names_of_wide_tables(write, text, rows, columns):
    observations = read(write(text))
    assert observations.row_labels.tolist() == rows
    assert observations.column_labels.tolist() == columns


def test_empty_rows_and_columns_of_a_wide_table_stay(write):
    observations = read(write("id,a,b,c\n1,,2,\n2,,,\n"))
    assert observations.shape == (2, 3)
    assert as_dict(observations) == {(1, "b"): 2.0}


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        # Headless, whole numbers, each name often, pairs differ: long.
        ("\n".join(f"{i},{j},{i + j}" for i in range(4) for j in range(3)), (4, 3)),
        ("\n".join(f"{i},{j},{i},99" for i in range(4) for j in range(3)), (4, 3)),
        # Pairs come again and again: three items rated from 1 to 3.
        ("\n".join(f"{i % 3},{i % 2},{i % 3}" for i in range(24)), (24, 3)),
        # Fractions are no names.
        ("\n".join(f"{i}.5,{j},{i}" for i in range(4) for j in range(3)), (12, 3)),
        # Every name once.
        ("\n".join(f"{i},{i + 1},{i + 2}" for i in range(12)), (12, 3)),
        # The header does not say long, and numbers are in the second column.
        ("a,b,c\n" + "\n".join(f"{i},{j},1" for i in range(4) for j in range(3)), (12, 3)),
        # The header does not say long, but text cannot be a wide table's cell.
        ("gene,cell,level\n" + "\n".join(f"g{i},c{j},1" for i in range(4) for j in (1, 2)), (4, 2)),
        # Five columns.
        ("\n".join(f"{i},{j},{i},9,9" for i in range(4) for j in range(3)), (12, 5)),
    ],
)
def test_long_or_wide(write, text, shape):
    assert read(write(text)).shape == shape


def test_layout_overrides_detection(write):
    text = "a,b,c\n1,2,3\n4,5,6\n"
    assert read(write(text)).shape == (2, 3)
    assert as_dict(read(write(text), layout="long")) == {(1, 2): 3, (4, 5): 6}
    text = "user,item,rating\n1,2,3\n4,5,6\n"
    assert read(write(text)).shape == (2, 2)
    # The first column is named like row names.
    assert as_dict(read(write(text), layout="wide")) == {
        (1, "item"): 2,
        (1, "rating"): 3,
        (4, "item"): 5,
        (4, "rating"): 6,
    }


def test_columns_by_name_or_position(write):
    path = write("when,who,what,how\n1,Ana,tea,5\n2,Ben,tea,3\n")
    got = read(path, row="who", column="what", value="how")
    assert as_dict(got) == {("Ana", "tea"): 5, ("Ben", "tea"): 3}
    assert got.origin[2:5] == ("who", "what", "how")
    path = write("1,Ana,tea,5\n2,Ben,tea,3\n")
    assert as_dict(read(path, row=1, column=2, value=3)) == as_dict(got)


def test_column_that_is_not_there(write):
    path = write("who,what,how\nAna,tea,5\n")
    with pytest.raises(
        UnknownNameError, match=r"table.csv: there is no column 'user'; the columns are 'who', 'w"
    ):
        read(path, row="user", column="what", value="how")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "user,item,rating\n1,2,3\n\n1,3,good\n",
            r"line 4, column 'rating' must be a number, got 'good'",
        ),
        ("user,item,rating\n1,2,1_000\n", r"line 2, column 'rating' must be a number, got '1_000'"),
        (
            "id,x,y\n1,2,3\n2,bad,4\n",
            r"line 3, column 'x' must be a number, got 'bad' instead. A missing",
        ),
        ("1,1,bad\n1,2,3\n1,3,4\n", r"line 1, column 2 must be a number, got 'bad'"),
        ("ana,tea,bad\nben,tea,3\nana,ale,4\n", r"line 1, column 2 must be a number, got 'bad'"),
        ("a;b;c\n1;1.234,5;2\n2;3.5;1\n", r"line 2, column 'b' must be a number, got '1.234,5'"),
        ("user,item,rating\n1,2,3\n1,3\n2,3,4\n", r"line 3: 2 fields, but the table has 3 \(delim"),
        ("1,2,3,4\n1,2,3,4\n1,2,3\n5,6,7,8\n", r"line 3: 3 fields, but the table has 4"),
        ("1,2,3\n1,2,3,4,5\n4,5,6\n", r"line 2: 5 fields, but the table has 3"),
        ("user,item,rating\n1,,3\n", r"line 2, column 'item': the label is missing. Fill it in"),
        ("user,item,rating\n,1,3\n", r"line 2, column 'user': the label is missing"),
        ("id,x\n1,2\n,3\n", r"line 3: the row label is missing. Fill it in"),
        ("id,x,x\n1,2,3\n", r"the header has 'x' more than once"),
        ("", r"table.csv: the file is empty"),
        (",", r"table.csv: the file is empty"),
        (",,,\n,,,\n", r"table.csv: the file is empty"),
        ('"",""\n"",""\n', r"the file is not a table"),
        ("a,b,c\n1,2,3\n4,5,6\nSource: x\n", r"line 4: 1 field, .* Delete the line .* 'Source: x'"),
        (
            "a,b\n1,low\nlow,3\n5,6\n",
            r"line 3, column 'a' must be a number, got 'low' instead. A missing",
        ),
        ("a,b,c\n1,2,3\n4,5,6\nSource: x, y, z\n", r"line 4: .* Delete the line .* 'Source: x'"),
        (
            f"id,x\na,{'z' * 500}\nb,1\n",
            r"line 2, column 'x' must be a number, got 'z{60}\.\.\.' instead",
        ),
        (" \n\n", r"table.csv: the file is empty"),
        ("user,item,rating\n", r"has a header, but no lines below it"),
        ("one\ntwo\nthree\n", r"the file is not a table"),
        (
            "Dear Sir,\nI write to you, today,\nabout, well, this, that\nYours\n",
            r"the file is not a table",
        ),
        (b"a,b\n1,\x00\n", r"not a text file: it contains zero bytes"),
        (
            b"PK\x03\x04\x00\x00\x00",
            r"not a text file, but a zip .*Rename it to end in .xlsx or .zip",
        ),
        (b"\x1f\x8b\x08\x00", r"not a text file, but a gzip file"),
        (b"PAR1\x00", r"not a text file, but a Parquet file"),
        (b"\n <!DOCTYPE html>\n<p>a,b</p>", r"a web page, not a table"),
        ("a,b\n1,2\n".encode("utf-16") + b"1", r"line 3: not UTF-16 text"),
        ("a,b\n1,2\n".encode("utf-32"), r"not a text file: it contains zero bytes"),
        ('a,b\n1,2\n"3,4\n5,6\n', r"line 3: .* '3,4' goes on to line 4. A quote may not be closed"),
        (
            "who,a,b\nunit,mg,kg\nAna,1,2\nBen,3,4\n",
            r"line 2, column 'a' must .* units or further names .* or the line above",
        ),
        (
            "person,question,answer\na,p,yes\nb,p,no\nb,q,no\n",
            r"line 2, column 'answer' must be a number.* save the table as a wide one",
        ),
        ("user,item,rating\nJos\xe9,2,3\n".encode("latin-1"), r"line 2: not UTF-8 text"),
        ('user,item,rating\n1,2,3\n"1,2,3\n' + "1,2,3\n" * 30_000, r"field larger than"),
    ],
)
def test_errors_have_the_location(write, text, message):
    with pytest.raises(ReadError, match=message):
        read(write(text))


def test_spellings_of_missing_values(write):
    got = read(write("name,a,b\nx,1,--\ny,Missing,2\nz,<NA>,3\nw,<na>,MISSING\nv,4,null\n"))
    assert as_dict(got) == {("x", "a"): 1, ("y", "b"): 2, ("z", "b"): 3, ("v", "a"): 4}
    got = read(write("a,b\n1,--\n--,3\n"))
    assert as_dict(got) == {(0, "a"): 1, (1, "b"): 3}


@pytest.mark.parametrize("n_digits", [19, 4301])
def test_whole_numbers_that_are_too_long_are_text(write, n_digits):
    name = "9" * n_digits
    got = read(write(f"user,item,rating\n{name},1,3\n2,{name},4\n"))
    assert as_dict(got) == {(name, "1"): 3, ("2", name): 4}
    assert as_dict(read(write(f"id,{name},b\n{name},1,2\n"))) == {(name, name): 1, (name, "b"): 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user,item,rating\n1,2,3\n1,2,4\n", r"table.csv: each \(row, column\) pair"),
        ("user,item,rating\n1,2,inf\n", r"table.csv: values must be finite; got 1 infinite"),
        ("id,x\na,1\na,2\n", r"table.csv: every row of a wide table needs its own label"),
        ("id,x\na,NA\nb,?\n", r"table.csv: at least one value must be observed"),
    ],
)
def test_what_can_be_read_but_not_used(write, text, message):
    with pytest.raises(InputError, match=message):
        read(write(text))


def test_duplicates_by_rule(write):
    path = write("user,item,rating\n1,2,3\n1,2,4\n")
    assert as_dict(read(path, duplicates="mean")) == {(1, 2): 3.5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layout": "tall"}, "layout must be one of 'auto', 'long', 'wide', got 'tall'"),
        ({"row": "a"}, "needs all of row, column and value"),
        ({"layout": "long"}, "at least 3 columns; got 2"),
        ({"duplicates": "sum", "layout": "wide"}, "duplicates must be one of"),
    ],
)
def test_arguments_that_do_not_fit(write, arguments, message):
    with pytest.raises(InputError, match=message):
        read(write("a,b\n1,2\n3,4\n"), **arguments)


# The fast reader gives what the slow one gives.


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", "::"])
@pytest.mark.parametrize("header", ["user{0}item{0}rating{0}time\n", ""])
def test_fast_reader_agrees(write, monkeypatch, delimiter, header):
    rng = np.random.default_rng(0)
    cells = rng.choice(60 * 40, 1500, replace=False)
    lines = [
        delimiter.join((str(cell // 40 * 7), str(cell % 40 - 3), repr(value), "9"))
        for cell, value in zip(cells, rng.standard_normal(1500).round(9).tolist(), strict=True)
    ]
    path = write(header.format(delimiter) + "\n".join(lines))
    slow = read(path)
    monkeypatch.setattr(reader, "SMALL", 0)
    monkeypatch.setattr("csv.reader", only_for_heads(1500))
    fast = read(path)
    assert_same(fast, slow)
    assert fast.row_labels.dtype == slow.row_labels.dtype == np.int64
    assert fast.origin == slow.origin


def only_for_heads(limit):
    """The csv module's reader, which refuses to read on to the end of the table."""
    import csv

    real = csv.reader

    class Reader:
        def __init__(self, lines, **options):
            self._reader = real(lines, **options)

        @property
        def line_num(self):
            return self._reader.line_num

        def __iter__(self):
            return self

        def __next__(self):
            assert self.line_num < limit - 1, "the slow reader is at work"
            return next(self._reader)

    return Reader


@pytest.mark.parametrize(
    "line",
    ["007,2,3", "-0,2,3", "0x7,2,3", "a,2,3", "1.0,2,3", '"7",2,3', "7,2,NA", "7,2,", "7 , 2 ,3"],
)
def test_fast_reader_leaves_unusual_tables_to_the_slow_one(write, monkeypatch, line):
    path = write("row,column,value\n1,1,1\n" + line + "\n5,0,0\n")
    slow = read(path)
    monkeypatch.setattr(reader, "SMALL", 0)
    fast = read(path)
    assert_same(fast, slow)


def test_fast_reader_leaves_errors_to_the_slow_one(write, monkeypatch):
    monkeypatch.setattr(reader, "SMALL", 0)
    with pytest.raises(ReadError, match="line 3, column 'value' must be a number, got 'bad'"):
        read(write("row,column,value\n1,1,1\n1,2,bad\n"))
    with pytest.raises(ReadError, match="line 3: 2 fields"):
        read(write("row,column,value\n1,1,1\n1,2\n1,3,4\n"))


def test_without_pyarrow_the_slow_reader_is_used(write, monkeypatch):
    monkeypatch.setattr(reader, "SMALL", 0)
    monkeypatch.setattr(reader, "find_spec", lambda name: None)
    monkeypatch.setattr(
        reader, "_read_by_pyarrow", lambda *arguments: pytest.fail("pyarrow is used")
    )
    assert as_dict(read(write("row,column,value\n1,1,1\n"))) == {(1, 1): 1}


TABLE_ABOVE = "name,a,b,c\nx,1,,3\ny,4,5,6\nz,7,8,\n"


@pytest.mark.parametrize(
    ("note", "line"),
    [
        ("Source: World Bank, 2020", 5),
        ("\nSource: World Bank, 2020, table 4, page 7", 6),
        ('"Source: World Bank, 2020",,,', 5),
        ("Notes: a is in kg,,,\n\n", 5),
        ("\nAll figures are estimates,,,", 6),
        ("* estimated,,,", 5),
        ("Source: World Bank, 2020, 4, 7", 5),
    ],
)
def test_a_note_below_the_table_is_not_a_row(note, line, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TABLE_ABOVE + note)
    with pytest.raises(ReadError, match=rf"t.csv, line {line}: .*Delete the line if it is a note"):
        read(path)


@pytest.mark.parametrize(
    "text",
    [
        "name,a,b\nx,1,\n\n* y,,\nz,3,4\n",
        "name,a,b\nx,1,\n\ny,2,4\n",
        "name,a,b\nx,1,2\ny,,\n",
        "name,a,b\nSource: x,1,\nSource: y,2,4\n",
    ],
    ids=["not the last", "after a blank line", "an empty row", "labels like notes"],
)
def test_rows_that_look_like_notes(text, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    assert read(tmp_path / "t.csv").shape[0] == text.count("\n") - 1 - text.count("\n\n")
