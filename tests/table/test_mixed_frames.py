"""Wide data frames with columns of any type: in as numbers, and out in the types that came."""

from dataclasses import replace
from datetime import date, datetime

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fillrank import Observations, read
from fillrank.errors import InputError, UnknownNameError
from fillrank.table.frames import fill_in
from helpers.strategies import few

NAN = np.nan
BACKENDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
each_backend = pytest.mark.parametrize("make", BACKENDS.values(), ids=BACKENDS)

MIXED = {
    "x": [1.5, None, 2.0, 3.0],
    "who": ["p1", "p2", "p3", "p4"],
    "count": [1, 2, 3, 4],
    "town": ["a", "b", None, "a"],
    "lead": ["<0.5", "0.7", None, "1.2"],
    "smoker": ["yes", "no", None, "no"],
    "text": ["one", "two", "three", "four"],
    "day": [date(2020, 1, 1), None, date(2020, 2, 1), date(2020, 1, 1)],
    "is_new": [True, False, False, True],
}


def mixed(make):
    table = dict(MIXED)
    if make is pd.DataFrame:
        table["day"] = pd.to_datetime(pd.Series(table["day"]))
    return make(table)


def columns_of(table):
    return nw.from_native(table, eager_only=True).to_dict(as_series=False)


def filled(observations, value=0.4):
    """The table with a number in all missing cells."""
    return fill_in(observations, np.full(observations.shape, value))


@each_backend
def test_columns_are_told_apart(make):
    observations = Observations.of(mixed(make))
    assert observations.row_labels.tolist() == ["p1", "p2", "p3", "p4"]
    assert observations.column_labels.tolist() == [
        "x", "count", "town", "lead", "smoker", "day", "is_new",
    ]  # fmt: skip
    values = [each.values for each in observations.column_types]
    assert values == ["number", "integer", "text", "number", "text", "datetime", "boolean"]
    levels = {
        label: kind.levels for label, kind in observations.types_by_label().items() if kind.is_coded
    }
    assert levels == {"town": ("a", "b"), "smoker": ("no", "yes"), "is_new": (False, True)}
    assert observations.notes == (
        "Column 'town' is a category.",
        "1 value of column 'lead' is a limit such as <0.5.",
        "Column 'smoker' holds yes and no.",
        "Column 'text' has a different value in nearly every row, or very many, and is left as it is.",
        "Column 'day' holds dates.",
    )


@each_backend
def test_values_are_codes_days_and_intervals(make):
    observations = Observations.of(mixed(make))
    by_column = {
        label: observations.values[observations.columns == label].tolist()
        for label in observations.column_labels
    }
    assert by_column["town"] == [0.0, 1.0, 0.0]
    assert by_column["smoker"] == [1.0, 0.0, 0.0]
    assert by_column["day"] == [18262.0, 18293.0, 18262.0]
    assert by_column["is_new"] == [1.0, 0.0, 0.0, 1.0]
    is_limit = observations.cells >= 0
    assert observations.columns[is_limit].tolist() == ["lead"]
    assert observations.intervals.tolist() == [[-np.inf, 0.5]]
    assert observations.values[is_limit].tolist() == [0.5]


@each_backend
def test_a_filled_table_has_the_columns_and_types_that_came(make):
    table = mixed(make)
    out = filled(Observations.of(table))
    assert isinstance(out, type(table))
    before, after = (nw.from_native(each, eager_only=True) for each in (table, out))
    assert after.columns == before.columns
    expected = dict(before.schema)
    expected["lead"] = nw.Float64()
    assert dict(after.schema) == expected
    columns = columns_of(out)
    assert columns["x"] == [1.5, 0.4, 2.0, 3.0]
    assert columns["who"] == MIXED["who"]
    assert columns["town"] == ["a", "b", "a", "a"]
    assert columns["lead"] == [0.4, 0.7, 0.4, 1.2]
    assert columns["smoker"] == ["yes", "no", "no", "no"]
    assert columns["text"] == MIXED["text"]
    days = [str(day)[:10] for day in columns["day"]]
    assert days == ["2020-01-01", "1970-01-01", "2020-02-01", "2020-01-01"]
    assert columns["is_new"] == MIXED["is_new"]


def test_a_limit_is_filled_within_its_interval():
    observations = Observations.of(pd.DataFrame({"x": ["<0.5", "1", "2"], "y": [1.0, 2.0, 3.0]}))
    for predicted, expected in ((0.2, 0.2), (0.9, 0.5), (NAN, 0.5)):
        assert filled(observations, predicted)["x"].tolist() == [expected, 1.0, 2.0]


@each_backend
def test_codes_are_rounded_to_the_nearest_level(make):
    table = make({"x": [1.0, 2.0, 3.0, 4.0, 5.0], "c": ["a", "b", "c", None, "a"]})
    observations = Observations.of(table)
    for code, level in ((-3.0, "a"), (0.4, "a"), (1.4, "b"), (7.0, "c"), (NAN, None)):
        got = columns_of(filled(observations, code))["c"]
        assert got[:3] == ["a", "b", "c"]
        assert got[3] == level or (level is None and pd.isna(got[3]))


PANDAS_COLUMNS = {
    "category": pd.Series(["b", None, "a", "b"], dtype="category"),
    "unused level": pd.Series(pd.Categorical(["b", None, "a", "b"], ["c", "b", "a"])),
    "ordered": pd.Series(
        pd.Categorical(["hi", None, "lo", "lo"], ["lo", "mid", "hi"], ordered=True)
    ),
    "numbers as category": pd.Series(pd.Categorical([3, None, 1, 1])),
    "bool": pd.Series([True, False, True, True]),
    "boolean": pd.Series([True, None, False, True], dtype="boolean"),
    "objects": pd.Series([True, None, False, True], dtype=object),
    "Int64": pd.Series([1, None, 3, 1], dtype="Int64"),
    "int8": pd.Series([1, 2, 3, 1], dtype="int8"),
    "float32": pd.Series([0.5, None, 1.5, 1.0], dtype="float32"),
    "Float64": pd.Series([0.5, None, 1.5, 1.0], dtype="Float64"),
    "string": pd.Series(["u", None, "v", "u"], dtype="string"),
    "object": pd.Series(["u", None, "v", "u"], dtype=object),
    "ns": pd.Series(
        pd.to_datetime(["2020-01-01 10:30", None, "2021-05-05 00:00", "2021-05-05 00:00"])
    ).astype("datetime64[ns]"),
    "zone": pd.Series(
        pd.to_datetime(["2020-07-01 10:30", None, "2021-05-05 00:00", "2021-05-05 00:00"])
    ).dt.tz_localize("Europe/Berlin"),
    "dates": pd.Series([date(2020, 1, 1), None, date(2021, 1, 1), date(2021, 1, 1)], dtype=object),
    "dates as text": pd.Series(["2020-01-01", None, "2021-01-01", "2021-01-01"]),
    "cut": pd.cut(pd.Series([0.1, None, 0.8, 0.9]), [0, 0.5, 1]),
}


@pytest.mark.parametrize("name", PANDAS_COLUMNS)
def test_types_of_pandas_are_restored(name):
    column = PANDAS_COLUMNS[name]
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, NAN], "c": column})
    observations = Observations.of(frame)
    out = filled(observations, 1.0)
    assert out["c"].dtype == column.dtype
    known = column.notna()
    pd.testing.assert_series_equal(out["c"][known], column[known], check_names=False)
    assert out.notna().all(axis=None)
    # Without predictions, the table is as it was.
    pd.testing.assert_frame_equal(filled(observations, NAN), frame)


POLARS_COLUMNS = {
    "Categorical": pl.Series(["b", None, "a", "b"], dtype=pl.Categorical),
    "Enum": pl.Series(["b", None, "a", "b"], dtype=pl.Enum(["c", "b", "a"])),
    "Boolean": pl.Series([True, None, False, True]),
    "Int32": pl.Series([1, None, 3, 1], dtype=pl.Int32),
    "Float32": pl.Series([0.5, None, 1.5, 1.0], dtype=pl.Float32),
    "String": pl.Series(["u", None, "v", "u"]),
    "dates as text": pl.Series(["2020-01-01", None, "2021-01-01", "2021-01-01"]),
    "Date": pl.Series([date(2020, 1, 1), None, date(2021, 1, 1), date(2021, 1, 1)]),
    "Datetime": pl.Series(
        [datetime(2020, 1, 1, 10, 30), None, datetime(2021, 1, 1), datetime(2021, 1, 1)]
    ),
    "zone": pl.Series(
        [datetime(2020, 7, 1, 10, 30), None, datetime(2021, 1, 1), datetime(2021, 1, 1)]
    ).dt.replace_time_zone("Europe/Berlin"),
}


@pytest.mark.parametrize("name", POLARS_COLUMNS)
def test_types_of_polars_and_pyarrow_are_restored(name):
    column = POLARS_COLUMNS[name]
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, None], "c": column})
    out = filled(Observations.of(frame), 1.0)
    assert out["c"].dtype == column.dtype
    known = column.is_not_null()
    assert out["c"].filter(known).to_list() == column.filter(known).to_list()
    assert out["c"].null_count() == 0
    arrow = frame.to_arrow()
    out = filled(Observations.of(arrow), 1.0)
    assert out.schema.field("c").type == arrow.schema.field("c").type
    assert pl.from_arrow(out)["c"].filter(known).to_list() == column.filter(known).to_list()


def test_only_ordered_categories_are_ordered():
    ordered = PANDAS_COLUMNS["ordered"]
    kind = Observations.of(pd.DataFrame({"x": [1.0, 2, 3, 4], "c": ordered})).column_types[1]
    assert kind.levels == ("lo", "mid", "hi")  # all: nobody may have chosen one of them
    assert kind.is_ordered
    plain = PANDAS_COLUMNS["category"]
    assert not Observations.of(pd.DataFrame({"x": [1.0, 2, 3, 4], "c": plain})).column_types[1][2]


def test_integers_that_are_filled_with_fractions_are_floats():
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [NAN, 1.0], "c": [1, 2]})
    out = filled(Observations.of(frame), 0.5)
    assert out["a"].dtype == "Float64"
    assert out["c"].dtype == "int64"
    assert filled(Observations.of(frame), 2.0)["a"].dtype == "Int64"
    small = pd.DataFrame({"a": pd.array([1, None], dtype="UInt8"), "b": [1.0, NAN]})
    assert filled(Observations.of(small), 300.0)["a"].tolist() == [1.0, 300.0]  # it does not wrap


def test_plain_numbers_have_no_types():
    assert Observations.of(pd.DataFrame({"x": [1.0, NAN], "y": [2.0, 3.0]})).column_types is None
    assert Observations.of(pl.DataFrame({"x": [1.0, None]})).column_types is None


def test_intervals_of_pandas():
    ends = [(0.0, 1.0), (1.0, 3.0), (2.0, 2.0)]
    frame = pd.DataFrame({"x": pd.arrays.IntervalArray.from_tuples(ends), "y": [1.0, 2.0, NAN]})
    observations = Observations.of(frame)
    assert observations.intervals.tolist() == [[0.0, 1.0], [1.0, 3.0]]
    assert observations.values[observations.column_index == 0].tolist() == [0.5, 2.0, 2.0]


def test_numbers_and_limits_in_one_column_of_objects():
    frame = pd.DataFrame(
        {"x": pd.Series([1.5, "<2", None, 3], dtype=object), "y": [1.0, 2, 3, NAN]}
    )
    observations = Observations.of(frame)
    assert observations.intervals.tolist() == [[-np.inf, 2.0]]
    frame["x"] = pd.Series([1.5, "tea", 2, 3], dtype=object)
    with pytest.raises(InputError, match=r"row 1, column 'x' must be a number, got 'tea'"):
        Observations.of(frame)


def test_sparse_columns_of_pandas_are_ambiguous():
    frame = pd.DataFrame({"x": pd.arrays.SparseArray([0.0, 1.0, 0.0])})
    with pytest.raises(InputError, match=r"column 'x' .*to_dense\(\).*to_coo\(\)"):
        Observations.of(frame)


def test_types_that_cannot_be_used():
    frame = pd.DataFrame({"x": [1.0, 2.0], "t": pd.to_timedelta([1, 2], unit="D")})
    with pytest.raises(InputError, match="column 't' must contain numbers, text, categories"):
        Observations.of(frame)
    frame["t"] = pd.Series([[1], [2]], dtype=object)
    with pytest.raises(InputError, match="column 't' must contain numbers, text, categories"):
        Observations.of(frame)


# Row labels and columns that are not fitted.


@each_backend
def test_the_first_column_of_different_texts_has_the_labels(make):
    table = make({"a": ["u", "v", "u"], "b": ["p", "q", "r"], "c": ["1", "2", "3"], "x": [1, 2, 3]})
    observations = Observations.of(table)
    assert observations.row_labels.tolist() == ["p", "q", "r"]
    assert observations.column_labels.tolist() == ["a", "c", "x"]
    assert list(columns_of(filled(observations))) == ["a", "b", "c", "x"]


@each_backend
def test_codes_may_be_labels_but_measurements_are_not(make):
    codes = make({"id": ["007", "008"], "x": [1.0, 2.0]})
    assert Observations.of(codes).row_labels.tolist() == ["007", "008"]
    measured = make({"x": ["0.7", "<0.5"], "y": [1.0, 2.0]})
    assert Observations.of(measured).row_labels.tolist() == [0, 1]


@each_backend
def test_labels_and_columns_can_be_named(make):
    table = mixed(make)
    observations = Observations.from_table(table, label="text", ignore=["who", "x"])
    assert observations.row_labels.tolist() == MIXED["text"]
    assert "x" not in observations.column_labels
    out = columns_of(filled(observations))
    assert list(out) == list(MIXED)
    assert out["who"] == MIXED["who"]
    assert pd.isna(out["x"][1])  # as it came
    assert Observations.from_table(table, ignore="x").shape == (4, 6)
    for name in ("label", "ignore"):
        with pytest.raises(UnknownNameError, match="no column 'z'"):
            Observations.from_table(table, **{name: "z"})
    with pytest.raises(InputError, match="needs a row label; got a missing one"):
        Observations.from_table(table, label="smoker")
    long = make({"row": ["a"], "column": ["b"], "value": [1.0]})
    with pytest.raises(InputError, match="label: this table is long"):
        Observations.from_table(long, label="row")


def test_an_index_with_repeated_labels_is_put_back():
    frame = pd.DataFrame(
        {"x": [1.0, NAN, 3.0], "c": ["a", "b", "a"]}, index=pd.Index(["p", "q", "p"], name="who")
    )
    observations = Observations.of(frame)
    assert observations.row_labels.tolist() == [0, 1, 2]
    assert "repeated" in observations.notes[0]
    pd.testing.assert_frame_equal(filled(observations, NAN), frame)
    numbers = frame[["x"]]
    pd.testing.assert_frame_equal(filled(Observations.of(numbers), NAN), numbers)


def test_several_levels_of_rows_and_columns_are_put_back():
    rows = pd.MultiIndex.from_product([["Ayr", "Wick"], [2023, 2024]], names=["town", "year"])
    columns = pd.MultiIndex.from_product([["air", "soil"], ["x", "y"]], names=["of", None])
    numbers = pd.DataFrame(np.arange(16.0).reshape(4, 4), rows, columns)
    numbers.iloc[1, 2] = NAN
    mixed = numbers.copy()
    mixed["soil", "kind"] = ["a", "b", "a", "b"]
    for frame in (numbers, mixed):
        observations = Observations.of(frame)
        assert observations.row_labels.tolist() == rows.tolist()
        pd.testing.assert_frame_equal(filled(observations, NAN), frame)


def test_an_index_beside_a_label_column_is_put_back():
    frame = pd.DataFrame({"who": ["a", "b"], "x": [1.0, NAN]}, index=[7, 9])
    observations = Observations.from_table(frame, label="who")
    assert observations.row_labels.tolist() == ["a", "b"]
    pd.testing.assert_frame_equal(filled(observations, NAN), frame)


# Missing values.


@each_backend
def test_values_that_mean_missing(make):
    table = make(
        {
            "x": [1.0, 99.0, 3.0, 4.0],
            "n": [1, 2, 99, 4],
            "c": ["a", "b", "unknown", "a"],
            "t": ["1.5", "99", "unknown", "2"],
        }
    )
    observations = Observations.from_table(table, missing_values=[99, "unknown"])
    missing = list(zip(*observations.missing_positions(0, 4), strict=True))
    assert missing == [(1, 0), (1, 3), (2, 1), (2, 2), (2, 3)]
    long = make({"row": ["a", "b"], "column": ["x", "x"], "value": [99.0, 1.0]})
    assert len(Observations.from_table(long, missing_values=[99])) == 1


def test_a_number_that_may_mean_missing_is_noted():
    frame = pd.DataFrame({"x": [1.0, 2.0, -999.0, 3.0, -999.0], "y": [5, -999, 6, 7, -999]})
    assert Observations.of(frame).notes == (
        "-999 occurs 4 times in columns 'x' and 'y', unlike the other values: if it means a missing "
        "value, set missing_values=[-999].",
    )
    assert Observations.from_table(frame, missing_values=[-999]).notes == ()


@pytest.mark.parametrize("is_ordered", [False, True])
def test_codes_of_missing_values_are_not_levels(is_ordered):
    answers = pd.Categorical(
        ["low", "-99", "high", "low"] * 5, ["low", "-99", "high"], ordered=is_ordered
    )
    table = pd.DataFrame({"x": np.arange(20.0), "answer": answers})
    note = "-99 occurs 5 times in column 'answer', unlike the other values"
    assert Observations.of(table).notes[0].startswith(note)
    data = Observations.of(table, missing_values=[-99])
    assert data.column_types[1].levels == ("low", "high")
    filled = fill_in(data, np.ones(data.shape))
    assert filled["answer"].dtype == pd.CategoricalDtype(["low", "high"], is_ordered)
    again = Observations.from_table(table, like=data, missing_values=[-99])
    assert fill_in(again, np.ones(data.shape))["answer"].dtype == filled["answer"].dtype


def test_missing_values_of_arrays():
    X = np.array([[1.0, -9.0], [NAN, 4.0]])
    assert Observations.from_matrix(X, missing_values=[-9]).values.tolist() == [1.0, 4.0]
    assert len(Observations.from_matrix(X)) == 3


# Long tables.


@each_backend
def test_limits_in_a_long_table(make):
    table = make({"row": ["a", "b", "c"], "column": ["x", "x", "x"], "value": ["1", "<0.5", None]})
    observations = Observations.from_table(table)
    assert observations.values.tolist() == [1.0, 0.5]
    assert observations.intervals.tolist() == [[-np.inf, 0.5]]


# New rows.


@each_backend
def test_new_rows_are_read_like_those_of_the_fit(make):
    known = Observations.of(mixed(make))
    table = {
        "who": ["q"], "x": [2.0], "count": [7], "town": ["b"], "lead": ["0.1"], "smoker": ["yes"],
        "text": ["more"], "day": [date(2021, 1, 1)], "is_new": [True],
    }  # fmt: skip
    if make is pd.DataFrame:
        table["day"] = pd.to_datetime(pd.Series(table["day"]))
    new = Observations.from_table(make(table), like=known)
    assert new.row_labels.tolist() == ["q"]
    assert new.column_labels.tolist() == known.column_labels.tolist()
    assert [kind[:3] for kind in new.column_types] == [kind[:3] for kind in known.column_types]
    assert new.values.tolist() == [2.0, 7.0, 1.0, 0.1, 1.0, 18628.0, 1.0]
    table["town"] = ["elsewhere"]
    with pytest.raises(InputError, match=r"row 'q', column 'town'.*one of its 2 values, 'a', 'b'"):
        Observations.from_table(make(table), like=known)
    table["town"] = [None]
    assert len(Observations.from_table(make(table), like=known)) == 6


def test_new_rows_come_back_in_their_own_types():
    known = Observations.of(pd.DataFrame({"x": [1.0, 2, 3, 4], "c": ["a", "b", "c", "a"]}))
    new = pd.DataFrame({"x": [1.0, 2.0], "c": pd.Categorical(["a", None])})
    observations = Observations.of(new, like=known)
    assert filled(observations, 2.0)["c"].tolist() == ["a", "c"]  # a level of the fit
    assert filled(observations, 0.0)["c"].dtype == new["c"].dtype
    enum = pl.DataFrame({"x": [1.0, 2.0], "c": pl.Series(["a", None], dtype=pl.Enum(["a"]))})
    assert filled(Observations.of(enum, like=known), 1.0)["c"].to_list() == ["a", "b"]


@each_backend
def test_types_that_are_not_known_are_chosen_by_the_library(make):
    """As after loading a model, whose file has no types of data frame libraries."""
    observations = Observations.of(mixed(make))
    types = tuple(kind._replace(dtype=None) for kind in observations.column_types)
    out = columns_of(filled(replace(observations, column_types=types), 0.4))
    assert out["count"] == [1, 2, 3, 4]
    assert out["town"] == ["a", "b", "a", "a"]
    assert out["is_new"] == MIXED["is_new"]
    assert str(out["day"][2])[:10] == "2020-02-01"


# Any table.


@st.composite
def frames(draw):
    """A data frame of pandas with columns of random types and missing values."""
    n = draw(st.integers(3, 8))
    makers = {
        "number": lambda k: float(k) + 0.5,
        "category": "abc".__getitem__,
        "boolean": lambda k: k > 0,
        "Int64": int,
        "datetime64[s]": lambda k: pd.Timestamp(2020, 1, 1 + k),
        "string": lambda k: ("yes", "no", "maybe")[k],
    }
    columns = {}
    for j, kind in enumerate(draw(st.lists(st.sampled_from([*makers]), min_size=1, max_size=5))):
        codes = draw(st.lists(st.sampled_from([None, 0, 1, 2]), min_size=n, max_size=n))
        values = [None if code is None else makers[kind](code) for code in codes]
        columns[f"c{j}"] = pd.Series(values, dtype="float64" if kind == "number" else kind)
    return pd.DataFrame({"x": np.arange(float(n)), **columns})


@few
@given(frames())
def test_any_table_comes_back(frame):
    observations = Observations.of(frame)
    pd.testing.assert_frame_equal(filled(observations, NAN), frame)
    complete = filled(observations, 1.0)
    assert complete.columns.equals(frame.columns)
    assert (complete.dtypes == frame.dtypes).all()
    fitted = observations.column_labels.tolist()
    assert complete[fitted].notna().all(axis=None)


def test_objects_that_are_no_values_are_named():
    frame = pd.DataFrame({"x": [1.0, 2.0], "id": [None, object()]})
    with pytest.raises(InputError, match=r"column 'id' .* objects such as object.* ignore="):
        read(frame)
    with pytest.raises(InputError, match=r"got period\[M\]"):
        read(frame.assign(id=pd.period_range("2024-01", periods=2, freq="M")))
    assert read(frame, ignore="id").shape == (2, 1)
