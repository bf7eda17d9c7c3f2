"""Labels encoded together and in batches, against a dict."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fillrank.errors import InputError
from fillrank.table.labels import LabelEncoder, as_labels, factorize
from helpers.strategies import few, label_arrays

FEW = np.random.default_rng(0).integers(-6, 9, 60)


@few
@given(label_arrays())
@example(np.where(FEW > 0, 0.0, -0.0))  # zeros of both signs are one label
def test_codes_are_in_order_of_first_appearance(labels):
    codes, distinct = factorize(labels, "row")
    known = {}
    expected = [known.setdefault(label, len(known)) for label in list(labels)]
    assert codes.dtype == np.int32
    assert codes.tolist() == expected
    assert distinct.dtype == labels.dtype
    assert list(distinct) == list(known)


@few
@given(label_arrays(), st.integers(1, 12))
@example(np.sort(FEW), 7)
@example(np.sort(FEW)[::-1], 7)
@example(FEW.astype(np.uint64) + np.uint64(2**63 + 3), 7)
@example(np.append(FEW[:-1], 2**40), 7)  # the table is replaced at the end
@example(np.append([-(2**63), 2**63 - 1], FEW), 1)
@example(np.where(FEW > 0, 0.0, -0.0), 2)
def test_batches_are_encoded_as_all_labels_together(labels, size):
    codes, distinct = factorize(labels, "row")
    encoder = LabelEncoder("row")
    got = [encoder.encode(labels[start : start + size]) for start in range(0, len(labels), size)]
    np.testing.assert_array_equal(np.concatenate(got), codes)
    assert all(part.dtype == np.int32 for part in got)
    assert encoder.labels().dtype == distinct.dtype
    assert list(map(repr, encoder.labels().tolist())) == list(map(repr, distinct.tolist()))


def test_an_empty_batch():
    encoder = LabelEncoder("row")
    assert encoder.encode(np.array([], dtype=np.int64)).tolist() == []
    assert encoder.encode(np.array([5, 5])).tolist() == [0, 0]
    assert encoder.encode(np.array([], dtype=np.int64)).tolist() == []
    assert encoder.labels().tolist() == [5]


@pytest.mark.parametrize(
    "missing", [np.array([np.nan]), np.array([None]), np.array(["NaT"], "M8[D]")]
)
def test_a_missing_label_is_refused_in_any_batch(missing):
    encoder = LabelEncoder("column")
    first = {"f": np.array([1.0]), "O": as_labels(["a"]), "M": np.array(["2020-01-01"], "M8[D]")}
    encoder.encode(first[missing.dtype.kind])
    with pytest.raises(InputError, match="every entry needs a column label"):
        encoder.encode(missing)


def test_integers_with_a_missing_one_among_them():
    encoder = LabelEncoder("row")
    encoder.encode(np.array([1, 2]))
    with pytest.raises(InputError, match="every entry needs a row label"):
        encoder.encode(np.array([1.0, np.nan]))  # as data frames convert them
