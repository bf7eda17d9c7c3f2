"""Which first line of a text table has the names of its columns."""

import io

import pytest

from fillrank import read
from helpers.same_entries import as_dict


def read_text(text):
    return read(io.StringIO(text), format="csv")


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("who,2019,2020,2021", [2019, 2020, 2021]),
        ("country,1990,1995,2010", [1990, 1995, 2010]),
        (",2019,2020,2021", [2019, 2020, 2021]),
        ("who,2019,2020,total", ["2019", "2020", "total"]),
    ],
)
def test_years_are_names(header, columns):
    found = read_text(f"{header}\nAna,1.5,2,3\nBen,2,,5\n")
    assert found.column_labels.tolist() == columns
    assert found.row_labels.tolist() == ["Ana", "Ben"]


@pytest.mark.parametrize("header", ["0,1,2,3,4", "10,20,30,40,50", "2019,2020,2021,2022,2023"])
def test_whole_numbers_at_equal_distances_are_names(header):
    found = read_text(f"{header}\n1.5,2,3,3,1\n2,,5,4,1\n")
    assert found.shape == (2, 5)
    assert found.column_labels.tolist() == [int(name) for name in header.split(",")]


@pytest.mark.parametrize(
    "text",
    [
        "1,2,3\n4,,6\n7,7,1\n",  # too few
        "1,2,3,4,5\n2,3,4,5,6\n5,1,2,2,2\n",  # another line is like this
        "Ana,1,2,3,9,5\nBen,4,5,6,7,7\n",
        "Ana,1950,2020\nBen,1949,2001\n",
        "Ana,2019,1990,2001\nBen,1,2,3\n",  # not in their order
        "2019.5,2020.5,2021.5,2022.5,2023.5\n1,2,3,4,4\n",
    ],
)
def test_values_are_not_names(text):
    assert read_text(text).shape[0] == text.count("\n")


def test_a_delimiter_at_the_end_of_lines_does_not_shift_the_names():
    """Below a header without one, as some devices write it."""
    found = read_text("who,x,y\nAna,1,2,\nBen,3,,\n")
    assert found.row_labels.tolist() == ["Ana", "Ben"]
    assert found.column_labels.tolist() == ["x", "y", "Unnamed: 3"]
    assert as_dict(found) == {("Ana", "x"): 1, ("Ana", "y"): 2, ("Ben", "x"): 3}
    # R does not write a name for the row labels.
    assert read_text("x,y\nAna,1,2\nBen,3,4\n").row_labels.tolist() == ["Ana", "Ben"]


def test_columns_without_names_have_names_of_their_own():
    found = read_text("who,x,,,\nAna,1,2,,\nBen,3,,,\n")
    assert found.column_labels.tolist() == ["x", "Unnamed: 2", "Unnamed: 3", "Unnamed: 4"]
