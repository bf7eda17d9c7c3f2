"""Text files with columns of any kind of value."""

import io

import numpy as np
import pytest

from fillrank import read
from fillrank.errors import InputError, ReadError, UnknownNameError

MIXED = """who,town,lead,smoker,age,remark,pct
Ana,Bern,0.7,yes,18-25,one,21%
Ben,Chur,<0.5,no,26-40,two,NA
Cid,Bern,,no,18-25,three,3%
Dan,NA,1.2,,26-40,four,5%
"""


def read_csv(text, **options):
    return read(io.StringIO(text), format="csv", **options)


def values_of(data, column):
    return data.values[data.columns == column].tolist()


def test_columns_are_told_apart():
    data = read_csv(MIXED)
    assert data.row_labels.tolist() == ["Ana", "Ben", "Cid", "Dan"]
    assert data.column_labels.tolist() == ["town", "lead", "smoker", "age", "pct"]
    levels = [kind.levels for kind in data.column_types]
    assert levels == [("Bern", "Chur"), (), ("no", "yes"), ("18-25", "26-40"), ()]
    assert data.column_types[3].is_ordered
    assert values_of(data, "town") == [0.0, 1.0, 0.0]
    assert values_of(data, "lead") == [0.7, 0.5, 1.2]
    assert values_of(data, "pct") == [21.0, 3.0, 5.0]
    assert data.intervals.tolist() == [[-np.inf, 0.5]]
    (passive,) = data.origin.passive
    assert (passive.position, passive.label) == (5, "remark")
    assert data.notes == (
        "Column 'town' is a category.",
        "1 value of column 'lead' is a limit such as <0.5.",
        "Column 'smoker' holds yes and no.",
        "Column 'age' has ordered groups.",
        "Column 'remark' has a different value in nearly every row, or very many, and is left as it is.",
        "Column 'pct' holds numbers such as '21%', read as 21.",
    )


def test_decimal_commas():
    data = read_csv("who;x;y\na;1,5;<0,5\nb;2;1-2,5\nc;3,5;4\n")
    assert values_of(data, "x") == [1.5, 2.0, 3.5]
    assert data.intervals.tolist() == [[-np.inf, 0.5], [1.0, 2.5]]


def test_a_file_of_answers_has_a_header():
    data = read_csv("Q1;Q2;Q3\nyes;no;maybe\nyes;yes;\nno;;yes\nyes;maybe;yes\nmaybe;no;no\n")
    assert data.column_labels.tolist() == ["Q1", "Q2", "Q3"]
    assert data.shape == (5, 3)
    headless = read_csv("yes;no;maybe\nyes;yes;\nno;;yes\nyes;maybe;yes\nmaybe;no;no\n")
    assert headless.column_labels.tolist() == [0, 1, 2]


def test_a_file_of_remarks_cannot_be_fitted():
    with pytest.raises(
        InputError, match=r"no column .* can be fitted. Columns 'b' and 'c' have one"
    ):
        read_csv("id,b,c\n1,x,y\n2,x,y\n")


def test_dates_are_days():
    data = read_csv("id,day,x\n1,1970-01-03,5\n2,1970-01-01,\n3,1970-01-03,7\n4,,8\n")
    assert values_of(data, "day") == [2.0, 0.0, 2.0]
    assert data.notes == ("Column 'day' holds dates.",)


def test_labels_need_not_be_in_the_first_column():
    data = read_csv("town,who,x\nBern,Ana,1\nBern,Ben,2\nChur,Cid,3\nChur,Dan,\n", layout="wide")
    assert data.row_labels.tolist() == ["Ana", "Ben", "Cid", "Dan"]
    assert data.origin.row_field == "who"
    assert data.origin.label_position == 1


def test_without_labels_the_rows_are_numbered():
    data = read_csv(
        "town,smoker,x,y,z\nBern,no,1,2,3\nChur,no,2,,4\nBern,yes,3,4,4\nBern,no,5,,3\n"
    )
    assert data.row_labels.tolist() == [0, 1, 2, 3]
    assert data.column_labels.tolist() == ["town", "smoker", "x", "y", "z"]


def test_labels_and_columns_can_be_named():
    data = read_csv(MIXED, label="remark", ignore=["who", "lead"])
    assert data.row_labels.tolist() == ["one", "two", "three", "four"]
    assert data.column_labels.tolist() == ["town", "smoker", "age", "pct"]
    assert [column.position for column in data.origin.passive] == [0, 2]
    with pytest.raises(UnknownNameError, match="there is no column 'z'"):
        read_csv(MIXED, label="z")
    with pytest.raises(UnknownNameError, match="there is no column 'z'"):
        read_csv(MIXED, ignore="z")
    with pytest.raises(InputError, match="own label"):
        read_csv(MIXED, label="age")
    with pytest.raises(ReadError, match="line 5: the row label is missing"):
        read_csv(MIXED.replace("NA,1.2", ",1.2"), label="town")
    with pytest.raises(InputError, match="ignore: this table is long"):
        read_csv("user,item,rating\na,b,3\n", ignore="user")


def test_values_that_mean_missing():
    text = "id,x,c\n1,99,a\n2,5,unknown\n3,6,b\n4,7,a\n5,8,b\n"
    data = read_csv(text, missing_values=[99, "unknown"])
    assert values_of(data, "x") == [5.0, 6.0, 7.0, 8.0]
    assert data.column_types[1].levels == ("a", "b")
    assert len(read_csv("user,item,rating\na,b,99\na,c,3\n", missing_values=["99"])) == 1
    assert len(read([[99.0, 1.0]], missing_values=[99])) == 1
    with pytest.raises(InputError, match="at least one value must be observed"):
        read([[99.0]], missing_values=[99])


def test_a_code_for_missing_values_is_noted():
    text = "id,x,y\n" + "".join(f"{i},{i % 7},{-999 if i % 5 == 0 else i % 3}\n" for i in range(20))
    (note,) = read_csv(text).notes
    assert note.startswith("-999 occurs 4 times in column 'y'")
    assert read_csv(text, missing_values=[-999]).notes == ()


def test_a_word_among_numbers_is_refused_with_its_place():
    text = "id,x,c\n1,5,a\n2,tea,b\n3,7,a\n"
    with pytest.raises(
        ReadError, match=r"line 3, column 'x' must be a number, got 'tea'"
    ) as caught:
        read_csv(text)
    assert "missing_values=['tea']" in str(caught.value)
    assert len(read_csv(text, missing_values=["tea"])) == 5


def test_limits_in_a_long_file():
    data = read_csv("user,item,rating\na,x,1\nb,x,<0.5\nc,x,> 10\n")
    assert data.values.tolist() == [1.0, 0.5, 10.0]
    assert data.cells.tolist() == [-1, 0, 1]
    assert data.intervals.tolist() == [[-np.inf, 0.5], [10.0, np.inf]]


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        # A category for each name.
        ("name,town,x\n" + "".join(f"n{i},t{i % 2},{i}\n" for i in range(6)), "wide"),
        ("person of note,town,x\n" + "".join(f"n{i},t{i % 2},{i}\n" for i in range(6)), "wide"),
        # Two categories.
        ("town,answer,x\n" + "".join(f"t{i % 2},a{i % 2},{i}\n" for i in range(6)), "wide"),
        # A date for each name, once or each time.
        ("plot,day,x\n" + "".join(f"p{i},2024-05-0{i + 1},{i}\n" for i in range(6)), "wide"),
        ("plot,day,x,y\n" + "".join(f"p{i},2024-05-0{i + 1},{i},\n" for i in range(6)), "wide"),
        ("plot,day,x\n" + "".join(f"p{i % 5},2024-05-0{i + 1},{i}\n" for i in range(6)), "long"),
        # A line for each pair.
        ("gene,cell,x\n" + "".join(f"g{i // 2},c{i % 2},{i}\n" for i in range(6)), "long"),
    ],
)
def test_categories_or_a_long_table(text, layout):
    assert read_csv(text).origin.layout == layout


def test_many_duplicates_of_a_long_table_can_be_averaged():
    text = "gene,cell,x\n" + "".join(f"g{i % 2},c{i % 2},{i}\n" for i in range(6))
    assert read_csv(text, duplicates="mean").origin.layout == "long"


def test_tables_of_numbers_have_no_types():
    data = read_csv("id,x,y\n1,2,\n2,,4\n")
    assert data.column_types is None
    assert data.notes == ()
    assert data.origin.passive == ()
