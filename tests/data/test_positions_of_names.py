import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fillrank.data import Observations
from fillrank.errors import InputError, UnknownNameError


def named(rows):
    return Observations.from_triplets(rows, range(len(rows)), np.ones(len(rows)))


def test_positions_of_single_names_and_arrays():
    observations = named(["Ana", "Ben", "Cid"])
    assert observations.row_positions("Ben").tolist() == [1]
    assert observations.row_positions(["Cid", "Ana", "Cid"]).tolist() == [2, 0, 2]
    assert observations.row_positions([]).tolist() == []
    positions = observations.column_positions(2)
    assert positions.tolist() == [2]
    assert positions.dtype == np.int64


@pytest.mark.parametrize(
    "names",
    [
        np.array(["Cid", "Ana"]),
        np.array(["Cid", "Ana"], dtype=object),
        ("Cid", "Ana"),
        iter(["Cid", "Ana"]),
        {"Cid": 1, "Ana": 2}.keys(),
        pd.Series(["Cid", "Ana"]),
        pd.Categorical(["Cid", "Ana"]),
        pl.Series(["Cid", "Ana"]),
        pa.chunked_array([["Cid"], ["Ana"]]),
    ],
)
def test_names_may_come_in_any_sequence(names):
    assert named(["Ana", "Ben", "Cid"]).row_positions(names).tolist() == [2, 0]


def test_positions_undo_labels():
    rng = np.random.default_rng(0)
    numbers = rng.choice(10**9, 500, replace=False)
    for labels in (numbers, numbers / 7, numbers.astype(str), numbers.astype("M8[s]")):
        observations = named(labels)
        asked = rng.integers(0, 500, 2000)
        got = observations.row_positions(observations.row_labels[asked])
        np.testing.assert_array_equal(got, asked)


def test_dates_are_found_in_any_unit():
    days = np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]")
    for labels in (days, days.astype("M8[ns]"), pd.DatetimeIndex(days)):
        observations = named(labels)
        for asked in (
            days[1],
            days[1].astype("M8[ns]"),
            "2020-01-02",
            pd.Timestamp("2020-01-02"),
            datetime.datetime(2020, 1, 2),
        ):
            assert observations.row_positions(asked).tolist() == [1]
        with pytest.raises(UnknownNameError, match="1 row name is not known"):
            observations.row_positions(18263)
        with pytest.raises(UnknownNameError, match="'tomorrow'"):
            observations.row_positions("tomorrow")


def test_unknown_names_are_listed_with_near_ones():
    observations = named(["Anna", "Ben", "Cid", "Dora"])
    with pytest.raises(UnknownNameError) as caught:
        observations.row_positions(["Ana", "Ben", "Ana", "Eve", "Fay", "Guy"])
    message = str(caught.value)
    assert message.startswith("4 row names are not known: 'Ana', 'Eve', 'Fay', ...")
    assert "4 are known, such as 'Anna', 'Ben', 'Cid', ..." in message
    assert "Did you mean 'Anna'?" in message


def test_an_unknown_column_is_called_one():
    with pytest.raises(UnknownNameError, match=r"1 column name is not known: 7\. 2 are known"):
        named([1, 2]).column_positions(7)


def test_no_near_name_no_hint():
    with pytest.raises(UnknownNameError) as caught:
        named(["Anna", "Ben"]).row_positions("qqqq")
    assert "Did you mean" not in str(caught.value)


def test_text_and_numbers_are_not_mixed_up():
    with pytest.raises(UnknownNameError, match="'5' is text, but the table has a number: pass 5"):
        named([5, 6]).row_positions("5")
    with pytest.raises(UnknownNameError, match="5 is a number, but the table has text: pass '5'"):
        named(["5", "6"]).row_positions(5)
    with pytest.raises(UnknownNameError, match="5 is a number, but the table has text: pass '5'"):
        named(["5", "6"]).row_positions(np.array([5, 6]))
    mixed = named([5, "5"])
    assert mixed.row_positions(["5", 5]).tolist() == [1, 0]


def test_names_that_cannot_be_names():
    with pytest.raises(InputError, match="row names must be numbers, text or dates"):
        named([1]).row_positions(np.array([{}, {}]))
    with pytest.raises(InputError, match="one-dimensional"):
        named([1]).row_positions([[1]])
