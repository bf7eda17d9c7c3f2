import datetime
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fillrank import Observations
from fillrank.errors import InputError, UnknownNameError
from fillrank.table import labels as names
from fillrank.table.labels import LabelIndex, as_labels
from helpers.strategies import few, label_arrays
from reference.label_twins import positions_by_dict
from reference.planted import plant


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
def test_labels_can_be_in_any_sequence_type(names):
    assert named(["Ana", "Ben", "Cid"]).row_positions(names).tolist() == [2, 0]


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
        with pytest.raises(UnknownNameError, match="1 row label is unknown"):
            observations.row_positions(18263)
        with pytest.raises(UnknownNameError, match="'tomorrow'"):
            observations.row_positions("tomorrow")


def test_unknown_names_are_listed_with_near_ones():
    observations = named(["Anna", "Ben", "Cid", "Dora"])
    with pytest.raises(UnknownNameError) as caught:
        observations.row_positions(["Ana", "Ben", "Ana", "Eve", "Fay", "Guy"])
    message = str(caught.value)
    assert message.startswith("4 row labels are unknown: 'Ana', 'Eve', 'Fay', ...")
    assert "4 are known, such as 'Anna', 'Ben', 'Cid', ..." in message
    assert "Did you mean 'Anna'?" in message


def test_an_unknown_column_is_called_one():
    with pytest.raises(UnknownNameError, match=r"1 column label is unknown: 7\. 2 are known"):
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


def test_invalid_labels():
    with pytest.raises(InputError, match="row labels must be numbers, text or dates"):
        named([1]).row_positions(np.array([{}, {}]))
    with pytest.raises(InputError, match="one-dimensional"):
        named([1]).row_positions([[1]])


LOW, HIGH = -(2**63), 2**63 - 1
LABELS = {
    "close": np.array([5, 3, 9, 4, -2, 0, 1]),
    "close bytes": np.array([5, 3, 255, 0, 1], dtype=np.uint8),
    "close, big end first": np.array([5, 3, 1, 0], dtype=">i4"),
    "close to the least": np.array([LOW, LOW + 3, LOW + 1]),
    "close to the most": np.array([HIGH, HIGH - 3, HIGH - 1], dtype=np.uint64),
    "far apart": np.array([5, 10**15, -(10**15), 3, 1, 0]),
    "as far apart as can be": np.array([HIGH, LOW, 0, 1, -1]),
    "beyond int64": np.array([2**64 - 1, 2**63, 5, 1], dtype=np.uint64),
    "one": np.array([5]),
    "twice": np.array([5, 3, 5, 3, 1]),
    "twice and far apart": np.array([5, 10**9, 5, 10**9, 1]),
    "real": np.array([5.0, 3.5, 1.0, 2.0**63]),
    "true or false": np.array([True, False]),
    "text": np.array(["5", "3", "2020-01-01"], dtype=object),
    "mixed": np.array([5, "5", 3.5, 1], dtype=object),
    "days": np.array(["2020-01-03", "2020-01-01", "1970-01-02"], dtype="M8[D]"),
    "seconds": np.array(["2020-01-03", "2020-01-01", "1970-01-02"], dtype="M8[s]"),
    "some day and none": np.array(["2020-01-03", "NaT"], dtype="M8[D]"),
    "spans": np.array([5, 3, 1], dtype="m8[s]"),
    "none": np.array([], dtype=np.int64),
}
ASKED = {
    "numbers": np.array(
        [5, 3, 4, -2, 0, 1, 9, 10, -3, 10**15, 10**9, LOW, LOW + 2, HIGH, HIGH - 1]
    ),
    "small numbers": np.array([5, 3, 0, 1, -1, -2], dtype=np.int8),
    "unsigned": np.array([5, 3, 0, 1, 255, HIGH, HIGH - 2], dtype=np.uint64),
    "beyond int64": np.array([2**64 - 1, 2**64 - 2, 2**63, 5], dtype=np.uint64),
    "big end first": np.array([5, 3, 256, 1 << 40], dtype=">i8"),
    "real": np.array([5.0, 3.5, 3.0, 1.0, np.nan, np.inf, 1e15, 2.0**63, -(2.0**63)]),
    "true or false": np.array([True, False]),
    "text": np.array(["5", "3", "2020-01-01", "Ana"]),
    "text of any length": np.array(["5", "2020-01-01"], dtype=np.dtypes.StringDType()),
    "objects": np.array([5, "5", 5.0, True, None, 3.5, 2**70, LOW - 1], dtype=object),
    "days": np.array(["2020-01-03", "1970-01-02", "2020-01-02", "NaT"], dtype="M8[D]"),
    "days that are there": np.array(["2020-01-03", "1970-01-02"], dtype="M8[D]"),
    "nanoseconds": np.array(["2020-01-01", "2020-01-01T00:00:01", "1970-01-02"], dtype="M8[ns]"),
    "times of Python": np.array([datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 3)]),
    "spans": np.array([5, 3, 2], dtype="m8[s]"),
    "spans in nanoseconds": np.array([5, 3 * 10**9, 1], dtype="m8[ns]"),
}


@pytest.fixture
def as_many(monkeypatch):
    """Even single names are looked up as if there were millions, in blocks of two."""
    monkeypatch.setattr(names, "_FEW", 0)
    monkeypatch.setattr(names, "_BLOCK", 2)


def result(index, asked):
    try:
        return index.positions(asked).tolist()
    except (InputError, UnknownNameError) as error:
        return str(error)


def check_against_twin(labels, asked):
    expected = positions_by_dict(labels, asked)
    index = LabelIndex(labels, "row")
    if None in expected:
        with pytest.raises(UnknownNameError):
            index.positions(asked)
        return
    got = index.positions(asked)
    assert got.dtype == np.int64
    assert got.tolist() == expected


def check_alone_and_together(labels, asked):
    check_against_twin(labels, asked)
    for position in range(len(asked)):
        one = asked[position : position + 1]
        check_against_twin(labels, one)
        check_against_twin(labels, np.repeat(one, 5)[::-2])


@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_one_kind_among_those_of_another(as_many, labels):
    for asked in ASKED.values():
        check_alone_and_together(LABELS[labels], asked)


@few
@given(label_arrays(unique=True), label_arrays(max_size=10), st.booleans(), st.data())
def test_positions_are_those_of_a_dict(labels, others, many, data):
    known = data.draw(st.lists(st.sampled_from(range(len(labels))), max_size=10))
    index = LabelIndex(labels, "row")
    with mock.patch.multiple(names, _FEW=0 if many else 10**6, _BLOCK=3):
        np.testing.assert_array_equal(index.positions(labels[known]), known)
        expected = [-1 if p is None else p for p in positions_by_dict(labels, others)]
        assert index.positions(others, allow_unknown=True).tolist() == expected


@pytest.mark.parametrize("labels", LABELS)
def test_many_labels_are_refused_with_the_message_for_few(monkeypatch, labels):
    few_at_once = [result(LabelIndex(LABELS[labels], "row"), asked) for asked in ASKED.values()]
    monkeypatch.setattr(names, "_FEW", 0)
    many = [result(LabelIndex(LABELS[labels], "row"), asked) for asked in ASKED.values()]
    assert many == few_at_once


@pytest.mark.parametrize("spread", [1, 3, 15, 17, 10**6, 2**40])
def test_random_numbers_however_far_apart(spread):
    rng = np.random.default_rng(0)
    labels = rng.choice(300, 300, replace=False) * spread - 100 * spread
    labels += rng.integers(0, spread, 300)
    asked = rng.integers(0, 300, 1000)
    for dtype in (np.int64, "M8[s]"):
        index = LabelIndex(labels.astype(dtype), "row")
        np.testing.assert_array_equal(index.positions(labels[asked].astype(dtype)), asked)
    mixed = np.concatenate([labels, labels + 1, [LOW, HIGH, LOW + spread]])
    expected = positions_by_dict(labels, mixed)
    got = names.index_integers(labels).find(mixed)
    assert got.tolist() == [-1 if position is None else position for position in expected]


@pytest.mark.parametrize(
    ("planted", "labels", "asked"),
    [
        (
            "labels.size == 0 or int(labels.max()) < 2**63|True",
            "as far apart as can be",
            "beyond int64",
        ),
        ("not np.isnat(labels).any()|True", "some day and none", "days"),
    ],
)
def test_labels_that_int64_cannot_distinguish(monkeypatch, as_many, planted, labels, asked):
    plant(monkeypatch, names, "fit_int64", *planted.split("|"))
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_alone_and_together(LABELS[labels], ASKED[asked])


def test_labels_of_several_levels_are_found():
    """As those of a MultiIndex of pandas."""
    labels = as_labels([("Ana", 1), ("Ana", 2), ("Ben", 1)])
    index = LabelIndex(labels, "row")
    assert index.positions([("Ben", 1), ("Ana", 1)]).tolist() == [2, 0]
    with pytest.raises(UnknownNameError, match=r"1 row label is unknown: \('Ben', 2\)"):
        index.positions([("Ben", 2)])
