"""`read` takes tables that are in memory, as the README says."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import fillrank as fr
from fillrank.errors import InputError, UnknownNameError
from helpers.same_entries import assert_same

LONG = {"who": ["Ana", "Ben", "Ana"], "what": ["x", "x", "y"], "grade": [5, 3, 1]}
CELLS = np.array([[1.0, np.nan], [3.0, 4.0]])


@pytest.mark.parametrize("library", [pd, pl])
def test_data_frames(library):
    frame = library.DataFrame(LONG)
    expected = fr.Observations.from_triplets(*LONG.values())
    assert_same(fr.read(frame, row="who", column="what", value="grade"), expected)
    assert_same(fr.read(frame, layout="long"), expected)
    wide = library.DataFrame({"name": ["a", "b"], "x": [1, 2], "y": [None, 3.5]})
    assert_same(fr.read(wide), fr.Observations.from_table(wide))
    with pytest.raises(UnknownNameError, match="no column 'user'"):
        fr.read(frame, row="user", column="what", value="grade")


def test_arrays_and_sparse_matrices():
    expected = fr.Observations.from_matrix(CELLS)
    for table in (CELLS, CELLS.tolist(), np.ma.masked_invalid(CELLS), expected):
        assert_same(fr.read(table), expected)
    twice = sp.coo_array(([1.0, 3.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert fr.read(twice, duplicates="mean").values.tolist() == [2.0]
    with pytest.raises(InputError, match=r"are for tables with columns; got ndarray"):
        fr.read(CELLS, layout="wide")
    with pytest.raises(InputError, match="X must be real numbers"):
        fr.read(None)
