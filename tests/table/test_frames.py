import subprocess
import sys
from dataclasses import replace

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fillrank import Observations
from fillrank.errors import InputError, UnknownNameError
from fillrank.table import frames as tables
from fillrank.table.frames import to_long, to_wide
from helpers.processes import LIMIT
from helpers.same_entries import as_dict, assert_same

NAN = np.nan
LONG = {"who": ["Ana", "Ben", "Ana"], "what": [7, 7, 3], "how": [1.0, 0.0, 2.5]}
ENTRIES = {("Ana", 7): 1.0, ("Ben", 7): 0.0, ("Ana", 3): 2.5}
FIELDS = {"row": "who", "column": "what", "value": "how"}
WIDE = {"who": ["Ana", "Ben"], "x": [1, None], "y": [0.5, 2.5]}
WIDE_ENTRIES = {("Ana", "x"): 1.0, ("Ana", "y"): 0.5, ("Ben", "y"): 2.5}
FILLED = np.array([[1.0, 0.5], [9.0, 2.5]])

BACKENDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
each_backend = pytest.mark.parametrize("make", BACKENDS.values(), ids=BACKENDS)


def columns_of(table):
    return nw.from_native(table, eager_only=True).to_dict(as_series=False)


@each_backend
def test_long_table_is_the_triplets(make):
    observations = Observations.from_table(make(LONG), **FIELDS)
    expected = Observations.from_triplets(*LONG.values())
    assert_same(observations, expected)
    assert as_dict(observations) == ENTRIES


@each_backend
def test_long_table_is_known_by_its_names(make):
    table = make({"stamp": [1, 2], "Movie ID": [7, 3], "userId": ["a", "b"], "Rating": [1, 2]})
    expected = {("a", 7): 1.0, ("b", 3): 2.0}
    assert as_dict(Observations.from_table(table)) == expected
    assert as_dict(Observations.of(table)) == expected


@each_backend
def test_layout_overrules_names(make):
    numbers = make({"user": [1, 2], "item": [3, 4], "rating": [5, 6]})
    assert Observations.from_table(numbers).shape == (2, 2)
    wide = Observations.from_table(numbers, layout="wide")
    assert wide.shape == (2, 2)
    assert wide.row_labels.tolist() == [1, 2]
    assert wide.notes == ("Column 'user' has the row labels and is not fitted.",)
    again = make({"user": [1, 1], "item": [3, 4], "rating": [5, 6]})
    assert Observations.from_table(again, layout="wide").shape == (2, 3)
    assert as_dict(Observations.from_table(make(LONG), layout="long")) == ENTRIES


@each_backend
def test_wide_table_with_a_column_of_row_names(make):
    observations = Observations.of(make(WIDE))
    assert as_dict(observations) == WIDE_ENTRIES
    assert observations.row_labels.tolist() == ["Ana", "Ben"]
    assert observations.column_labels.tolist() == ["x", "y"]


@each_backend
def test_wide_table_without_row_names(make):
    observations = Observations.of(make({"x": [1, None], "y": [0.5, 2.5]}))
    assert as_dict(observations) == {(0, "x"): 1.0, (0, "y"): 0.5, (1, "y"): 2.5}


@each_backend
def test_wide_table_keeps_empty_rows_and_columns(make):
    table = make({"who": ["Ana", "Ben"], "x": [None, None], "y": [None, 2], "b": [None, True]})
    if make is pd.DataFrame:
        table["b"] = table["b"].astype("boolean")
    observations = Observations.of(table)
    assert observations.shape == (2, 3)
    assert as_dict(observations) == {("Ben", "y"): 2.0, ("Ben", "b"): 1.0}


@each_backend
def test_dates_may_name_rows(make):
    days = np.array(["2020-01-01", "2020-01-02"], dtype="M8[ms]")
    observations = Observations.of(make({"day": days, "x": [1.0, 2.0]}))
    assert observations.row_labels.dtype.kind == "M"
    assert observations.row_positions("2020-01-02").tolist() == [1]


def test_pandas_index_names_rows():
    frame = pd.DataFrame([[1.0, NAN], [3.0, 4.0]], index=[10, 20], columns=[1990, 1991])
    observations = Observations.of(frame)
    assert as_dict(observations) == {(10, 1990): 1.0, (20, 1990): 3.0, (20, 1991): 4.0}
    assert observations.column_labels.dtype.kind == "i"


def test_pandas_nullable_and_categorical_columns():
    frame = pd.DataFrame(
        {
            "user": pd.Categorical(["b", "a"]),
            "item": pd.array([1, 2], dtype="Int64"),
            "rating": pd.array([5, None], dtype="Int64"),
        }
    )
    observations = Observations.of(frame)
    assert as_dict(observations) == {("b", 1): 5.0}
    assert observations.row_labels.tolist() == ["b", "a"]
    assert observations.column_labels.tolist() == [1, 2]


@each_backend
def test_a_line_without_value_is_dropped_but_its_labels_are_not(make):
    table = make({"row": ["a", "b"], "column": ["x", "y"], "value": [None, 1.5]})
    observations = Observations.of(table)
    assert observations.shape == (2, 2)
    assert as_dict(observations) == {("b", "y"): 1.5}


@each_backend
def test_a_missing_name_is_refused(make):
    table = make({"row": ["a", None], "column": ["x", "y"], "value": [1.0, 1.5]})
    with pytest.raises(InputError, match="needs a row label; got a missing one"):
        Observations.of(table)


@each_backend
def test_text_in_the_values_of_a_long_table_is_rejected_by_name(make):
    with pytest.raises(InputError, match="column 'what' must contain real numbers"):
        Observations.from_table(
            make({"what": ["a"], "i": [1], "j": [1]}), row="i", column="j", value="what"
        )


@each_backend
def test_column_that_is_not_there(make):
    with pytest.raises(
        UnknownNameError, match="no column 'when'; the columns are 'who', 'what', 'how'"
    ):
        Observations.from_table(make(LONG), row="who", column="when", value="how")


@each_backend
def test_duplicates_in_a_long_table(make):
    table = make({"row": ["a", "a"], "column": ["x", "x"], "value": [1.0, 2.0]})
    with pytest.raises(InputError, match="row 'a', column 'x': 1, 2"):
        Observations.from_table(table)
    assert as_dict(Observations.from_table(table, duplicates="last")) == {("a", "x"): 2.0}


@each_backend
def test_duplicate_row_labels_in_a_wide_table(make):
    table = make({"who": ["a", "b", "a"], "x": [1, 2, 3]})
    with pytest.raises(InputError, match=r"every row .* own label; 1 are used more than once: 'a'"):
        Observations.from_table(table, label="who")
    assert Observations.of(table).column_labels.tolist() == ["who", "x"]  # a category


def test_duplicate_column_names():
    frame = pd.DataFrame([[1.0, 2.0]], columns=["x", "x"])
    with pytest.raises(InputError, match=r"every column .* own name(.|\n)*'x'"):
        Observations.of(frame)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"row": "who"}, r"needs all of row, column and value; got \['who'\]"),
        ({**FIELDS, "layout": "wide"}, "for long tables; got them with layout='wide'"),
        ({"layout": "tall"}, "layout must be one of 'auto', 'long', 'wide', got 'tall'"),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(InputError, match=message):
        Observations.from_table(pd.DataFrame(LONG), **arguments)


def test_inputs_that_are_not_tables_in_memory():
    with pytest.raises(InputError, match=r"got ndarray\. Use from_matrix"):
        Observations.from_table(np.eye(2))
    with pytest.raises(InputError, match=r"got a lazy frame\. Call \.collect"):
        Observations.of(pl.LazyFrame(LONG))
    with pytest.raises(InputError, match="use from_table"):
        Observations.from_matrix(pd.DataFrame(np.eye(2)))
    with pytest.raises(InputError, match="at least 3 columns; got 2: 'a', 'b'"):
        Observations.from_table(pd.DataFrame({"a": [1], "b": [2]}), layout="long")
    with pytest.raises(InputError, match=r"got shape \(0, 2\)"):
        Observations.of(pd.DataFrame({"a": [], "b": []}))


# Kinds in are kinds out.


@each_backend
def test_wide_table_is_returned_in_its_own_form(make):
    observations = Observations.of(make(WIDE))
    filled = to_wide(observations, FILLED)
    assert isinstance(filled, type(make(WIDE)))
    assert columns_of(filled) == {"who": ["Ana", "Ben"], "x": [1.0, 9.0], "y": [0.5, 2.5]}
    assert as_dict(Observations.of(filled)) == WIDE_ENTRIES | {("Ben", "x"): 9.0}


@each_backend
def test_wide_table_without_row_labels_is_returned_without(make):
    observations = Observations.of(make({"x": [1, None], "y": [0.5, 2.5]}))
    assert columns_of(to_wide(observations, FILLED)) == {"x": [1.0, 9.0], "y": [0.5, 2.5]}


@pytest.mark.parametrize(
    ("index", "columns"),
    [
        (pd.Index(["p", "q"], name="gene"), pd.Index(["x", "y"], name="sample")),
        (pd.RangeIndex(2), pd.RangeIndex(2)),
        (pd.Index([10, 20]), pd.Index([1990, 1991])),
        (pd.DatetimeIndex(["2020-01-01", "2020-03-01"], name="day"), pd.Index(["x", "y"])),
        (pd.Index([1, "a"], dtype=object), pd.Index(["x", 2], dtype=object)),
    ],
)
def test_pandas_index_and_columns_are_restored(index, columns):
    frame = pd.DataFrame([[1.0, 0.5], [NAN, 2.5]], index=index, columns=columns)
    filled = to_wide(Observations.of(frame), FILLED)
    expected = pd.DataFrame(FILLED, index=index, columns=columns)
    pd.testing.assert_frame_equal(filled, expected, check_freq=False, check_index_type="equiv")


@each_backend
def test_long_table_is_returned_as_a_wide_table_of_its_library(make):
    observations = Observations.from_table(make(LONG), **FIELDS)
    filled = to_wide(observations, FILLED)
    assert isinstance(filled, type(make(LONG)))
    if make is pd.DataFrame:
        expected = pd.DataFrame(
            FILLED,
            index=pd.Index(["Ana", "Ben"], name="who"),
            columns=pd.Index([7, 3], name="what"),
        )
        pd.testing.assert_frame_equal(filled, expected)
    else:
        assert columns_of(filled) == {"who": ["Ana", "Ben"], "7": [1.0, 9.0], "3": [0.5, 2.5]}


def test_arrays_of_any_kind_are_returned_as_arrays():
    dense = np.array([[1.0, 0.5], [NAN, 2.5]])
    for data in (dense, np.ma.masked_invalid(dense)):
        assert to_wide(Observations.of(data), FILLED) is FILLED
    triplets = Observations.from_triplets(["a", "b"], ["x", "y"], [1, 2])
    assert to_wide(triplets, FILLED) is FILLED
    with pytest.raises(InputError, match=r"must be \(2, 2\); got \(3, 2\)"):
        to_wide(triplets, np.zeros((3, 2)))


def test_labels_with_equal_text_are_not_merged():
    origin = Observations.from_table(pl.DataFrame(LONG), **FIELDS).origin
    mixed = Observations.from_triplets(["a", "b"], [1, "1"], [1.0, 2.0])
    with pytest.raises(InputError, match="the same as text: 1, '1'"):
        to_wide(replace(mixed, origin=origin), FILLED)


def test_label_column_does_not_overwrite_a_column():
    table = pl.DataFrame({"row": ["a", "b"], "column": ["row", "y"], "value": [1.0, 2.0]})
    filled = to_wide(Observations.of(table), FILLED)
    assert columns_of(filled) == {"row_": ["a", "b"], "row": [1.0, 9.0], "y": [0.5, 2.5]}


@each_backend
def test_long_results_have_the_library_and_names_of_the_table(make):
    observations = Observations.from_table(make(LONG), **FIELDS)
    answer = to_long(
        observations, ["Ben"], np.array([3]), {"value": np.array([4.0]), "lower": [3.0], "who": [1]}
    )
    assert isinstance(answer, type(make(LONG)))
    assert columns_of(answer) == {
        "who": ["Ben"],
        "what": [3],
        "how": [4.0],
        "lower": [3.0],
        "who_": [1],
    }


@each_backend
def test_long_results_of_a_wide_table(make):
    answer = to_long(Observations.of(make(WIDE)), ["Ben"], ["x"], {"value": [4.0]})
    assert isinstance(answer, type(make(WIDE)))
    assert columns_of(answer) == {"row": ["Ben"], "column": ["x"], "value": [4.0]}


@pytest.mark.parametrize(
    ("missing", "kind"),
    [
        ((), pd.DataFrame),
        (("pandas",), pl.DataFrame),
        (("pandas", "polars"), pa.Table),
        (("pandas", "polars", "pyarrow"), dict),
    ],
)
def test_long_results_of_arrays_use_an_installed_library(monkeypatch, missing, kind):
    monkeypatch.setattr(tables, "find_spec", lambda name: name not in missing)
    observations = Observations.from_matrix([[1.0, NAN]])
    answer = to_long(observations, [0, 0], [0, 1], {"value": [1.0, 2.0]})
    assert isinstance(answer, kind)
    got = answer if kind is dict else columns_of(answer)
    assert {name: list(values) for name, values in got.items()} == {
        "row": [0, 0],
        "column": [0, 1],
        "value": [1.0, 2.0],
    }


def test_labels_of_mixed_types_become_text_in_typed_columns():
    table = pl.DataFrame({"user": ["a"], "item": [7], "rating": [1.0]})
    observations = Observations.of(table)
    answer = to_long(observations, [1, "1"], [7, 7], {"value": [1.0, 2.0]})
    assert columns_of(answer)["user"] == ["1", "1"]


def test_import_loads_no_data_frame_library():
    code = (
        "import sys, fillrank.table.frames; "
        "print([name for name in ('pandas', 'polars', 'pyarrow') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT)
    assert done.stdout.strip() == "[]"
