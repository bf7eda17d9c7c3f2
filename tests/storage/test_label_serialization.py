import os
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from fillrank.errors import InputError, ReadError
from fillrank.storage.array_file import Content, read, write
from fillrank.storage.serialization import Labels, pack, unpack
from fillrank.table.labels import LabelIndex


def objects(*labels):
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


@pytest.fixture
def through_a_file(tmp_path):
    """Return the labels after writing and reading them."""

    def round_trip(labels):
        tree, arrays = pack(Labels, labels, "rows/labels")
        write(tmp_path / "x", Content("labels", tree, arrays))
        content = read(tmp_path / "x", "labels")
        assert list(content.arrays) == ["rows/labels"]
        return unpack(Labels, content.about, content.arrays)

    return round_trip


ARRAYS = [
    np.array([3, -1, 2]),
    *(np.array([3, 1, 2], dtype) for dtype in ("i1", "i2", "i4", "u1", "u2", "u4", "u8", ">i8")),
    np.array([2**64 - 1], np.uint64),
    np.array([0.1, -0.0, np.inf]),
    np.array([0.1, 1.0], np.float32),
    np.array([True, False]),
    np.array(["2020-01-01", "1970-01-01", "NaT"], "datetime64[D]"),
    np.array(["2020-01-01T01:02:03.123456789"], "datetime64[ns]"),
    np.array([1, 2], "datetime64[25s]"),
    np.array([5, -1], "timedelta64[ms]"),
    np.array([5, -1], "timedelta64"),
    np.array([5], ">M8[us]"),
    np.array([], np.int64),
    np.array([], object),
    np.arange(10)[::3],
    np.arange(10).astype("M8[D]")[::3],
]


@pytest.mark.parametrize("labels", ARRAYS, ids=lambda labels: f"{labels.dtype} {labels.size}")
def test_arrays_of_one_type(through_a_file, labels):
    restored = through_a_file(labels)
    assert restored.dtype == labels.dtype.newbyteorder("=")
    np.testing.assert_array_equal(restored, labels)


FAR = timezone(timedelta(hours=-3, minutes=-30, seconds=-7))
MIXED = [
    1,
    "1",
    2.0,
    "True",
    True,
    -(2**70),
    0.1,
    float("inf"),
    "",
    "a\0b\n\"'\\\U0001f600é\u2028",
    os.fsdecode(b"caf\xe9"),
    "\ud83d\ude00",  # two surrogates are not the character that they would encode
    "😀",
    "nan",
    '{"date":"2020-01-01"}',
    date(1, 1, 1),
    datetime(2020, 1, 1),
    datetime(2020, 1, 1, 1, 2, 3, 4),
    datetime(2020, 1, 1, tzinfo=UTC),
    datetime(2020, 1, 1, tzinfo=FAR),
    np.datetime64("2020-01-01"),
    np.datetime64("2020-01-01T00:00:00.000000001"),
    np.timedelta64(3, "s"),
]


def test_labels_of_all_types_together(through_a_file):
    restored = through_a_file(objects(*MIXED))
    assert restored.dtype == object
    assert list(map(type, restored)) == list(map(type, MIXED))
    for label, was in zip(restored, MIXED, strict=True):
        assert label == was
        assert hash(label) == hash(was)
    assert restored[19].utcoffset() == FAR.utcoffset(None)


@pytest.mark.parametrize(
    ("label", "python"),
    [
        (np.int8(5), 5),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float64(0.1), 0.1),
        (np.float16(0.1), float(np.float16(0.1))),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (pd.Timestamp("2020-01-01 01:02:03.000004"), datetime(2020, 1, 1, 1, 2, 3, 4)),
        (pd.Timestamp("2020-07-01", tz="Europe/Paris"), datetime(2020, 6, 30, 22, tzinfo=UTC)),
        (datetime(2020, 7, 1, tzinfo=ZoneInfo("Europe/Paris")), datetime(2020, 6, 30, 22, tzinfo=UTC)),
        (datetime(2020, 7, 1, fold=1), datetime(2020, 7, 1)),
    ],
    ids=repr,
)  # fmt: skip
def test_other_scalars_are_found_by_equality(through_a_file, label, python):
    (restored,) = through_a_file(objects(label))
    assert restored == python == label
    assert hash(restored) == hash(label)
    assert not isinstance(restored, np.generic)
    assert LabelIndex(objects(restored), "row").positions(objects(label)) == [0]


class HashedOtherwise(datetime):
    """Equal to a datetime, but not found in a dict of them."""

    def __hash__(self):
        return 1


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        (("a", 1), "tuple"),
        (Decimal("1.5"), "Decimal"),
        (None, "NoneType"),
        (b"a", "bytes"),
        (1j, "complex"),
        (np.longdouble(1) / 3, "longdouble"),
        (time(1), "time"),
        (timedelta(1), "timedelta"),
        (pd.NaT, "NaTType"),
        (pd.NA, "NAType"),
        (pd.Period("2020-01"), "Period"),
        (pd.Timestamp("2020-01-01 00:00:00.000000001"), "Timestamp"),
        # In the repeated hour, no time of another zone is equal to this one.
        (datetime(2020, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Paris")), "datetime"),
        (HashedOtherwise(2020, 1, 1), "HashedOtherwise"),
        (object(), "object"),
    ],
    ids=lambda label: type(label).__name__,
)
def test_labels_that_cannot_be_stored(label, kind):
    with pytest.raises(InputError, match=rf"of type {kind}.*Convert such labels to text first"):
        pack(Labels, objects("a", label))


def test_a_number_too_long_for_json():
    with pytest.raises(InputError, match="row and column labels must be numbers"):
        pack(Labels, objects(10**5000))


@pytest.mark.parametrize("labels", [np.ones((2, 2)), np.array(5), np.array(["a"]), np.array([1j])])
def test_arrays_that_are_not_labels(labels):
    with pytest.raises(InputError):
        pack(Labels, labels)


def as_bytes(text):
    return np.frombuffer(text if isinstance(text, bytes) else text.encode(), np.uint8)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '"a"',
        "[null]",
        "[[1]]",
        "[{}]",
        "[NaN]",
        "[1e999]",
        "[" + "9" * 5000 + "]",
        "[" * 1_000_000,
        '[{"date":"2020-13-01"}]',
        '[{"date":5}]',
        '[{"datetime":"x"}]',
        '[{"datetime":null}]',
        '[{"date":"2020-01-01","x":1}]',
        '[{"float":"1.0"}]',
        '[{"float":"nan","float":"nan"}]',
        '[{"datetime64[ns]":1.0}]',
        '[{"datetime64[ns]":true}]',
        '[{"datetime64[ns]":9223372036854775808}]',
        '[{"datetime64[x]":1}]',
        '[{"datetime64[0s]":1}]',
        '[{"datetime64[999999999999s]":1}]',
        '[{"O":1}]',
        '[{"object":1}]',
        '[{"tuple":[1]}]',
        b'["\xff"]',
    ],
    ids=lambda text: str(text)[:30],
)
def test_objects_that_were_never_packed(text):
    with pytest.raises(ReadError, match=r"cannot be read: .*\. Restore the file from a copy"):
        unpack(Labels, {"array": "x", "dtype": "object"}, {"x": as_bytes(text)})


@pytest.mark.parametrize(
    ("dtype", "stored"),
    [
        ("int64", np.ones(2, np.int32)),
        ("int64", np.ones((2, 1), np.int64)),
        ("int64", np.array(1)),
        ("object", np.ones(2, np.int64)),
        ("object", as_bytes("[1]").reshape(-1, 1)),
        ("datetime64[ns]", np.ones(2)),
        ("datetime64[ns]", np.array(1)),
        ("datetime64[ns", np.ones(2, np.int64)),
        ("datetime64[1e9s]", np.ones(2, np.int64)),
        ("datetime64[0s]", np.ones(2, np.int64)),
        ("m8[s]", np.ones(2, np.int64)),
        ("V8", np.ones(2, np.int64)),
        ("float128", np.ones(2, np.int64)),
        ("", np.ones(2, np.int64)),
    ],
)
def test_arrays_that_were_never_packed(dtype, stored):
    with pytest.raises(ReadError):
        unpack(Labels, {"array": "x", "dtype": dtype}, {"x": stored})


@pytest.mark.parametrize(
    "tree",
    [None, [], "x", {}, {"array": "x"}, {"array": "y", "dtype": "int64"}, {"array": 1, "dtype": "int64"},
     {"array": "x", "dtype": None}, {"array": "x", "dtype": "int64", "more": 1},
     {"array": ["x"], "dtype": "int64"}],
    ids=str,
)  # fmt: skip
def test_trees_that_were_never_packed(tree):
    with pytest.raises(ReadError):
        unpack(Labels, tree, {"x": np.ones(2, np.int64)})
