"""Lines of empty cells, as spreadsheet programs write them within and below a table."""

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import ReadError

LABELLED = "who,a,b\nAna,1,2\n,,\nBen,,4\nCleo,5,6\n,,\n, ,\n"


def write(folder, text):
    path = folder / "table.csv"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_they_are_not_rows_of_a_table_with_labels(tmp_path, end):
    data = fr.read(write(tmp_path, LABELLED.replace("\n", end)))
    assert data.row_labels.tolist() == ["Ana", "Ben", "Cleo"]
    assert data.values.tolist() == [1, 2, 4, 5, 6]


def test_nor_of_a_long_table(tmp_path):
    data = fr.read(write(tmp_path, "row,column,value\nAna,a,1\n,,\nBen,a,4\nBen,b,2\n,,\n"))
    assert data.values.tolist() == [1, 4, 2]


@pytest.mark.parametrize("empty", [",", ' , ""'])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_without_labels_they_are_rows_without_entries(tmp_path, end, empty):
    data = fr.read(write(tmp_path, end.join(["a,b", "1,2", empty, "4,6", "3,", ""])))
    assert data.shape == (4, 2)
    np.testing.assert_array_equal(np.unique(data.row_positions([0, 2, 3])), [0, 2, 3])
    assert data.values.tolist() == [1, 2, 4, 6, 3]


def test_a_row_with_values_needs_a_label(tmp_path):
    with pytest.raises(ReadError, match="line 3: the row label is missing"):
        fr.read(write(tmp_path, "id,a,b\nAna,1,2\n,3,\nBen,,4\n"))


def test_a_note_below_them_is_left_out_with_advice(tmp_path):
    with pytest.raises(ReadError, match="Delete the line if it is a note: 'Anonymous survey'"):
        fr.read(write(tmp_path, LABELLED + "Anonymous survey,,\n"))
