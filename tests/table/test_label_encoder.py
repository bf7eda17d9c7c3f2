"""Labels encoded in batches, against all of them together."""

import numpy as np
import pytest

from fillrank.errors import InputError
from fillrank.table.labels import LabelEncoder, as_labels, factorize

FEW = np.random.default_rng(0).integers(-6, 9, 60)
KINDS = {
    "close": FEW,
    "growing upwards": np.sort(FEW),
    "growing downwards": np.sort(FEW)[::-1],
    "short": FEW.astype(np.int8),
    "unsigned": (FEW + 6).astype(np.uint16),
    "beyond signed": (FEW + 6).astype(np.uint64) + np.uint64(2**63),
    "across signed": np.uint64(2**63) + FEW.astype(np.uint64) + np.uint64(3),
    "far apart": FEW * 2**59,
    "far apart at last": np.append(FEW[:-1], 2**40),
    "far apart at first": np.append([-(2**63), 2**63 - 1], FEW),
    "fractions": FEW / 4,
    "zeros of both signs": np.where(FEW > 0, 0.0, -0.0),
    "text": as_labels([f"name {i}" for i in FEW]),
    "mixed": as_labels([str(i) if i > 0 else int(i) for i in FEW]),
    "days": np.datetime64("2020-01-01") + FEW,
    "nanoseconds": np.datetime64("2020-01-01", "ns") + FEW,
    "flags": FEW > 0,
}


@pytest.mark.parametrize("size", [1, 2, 7, 59, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_encoded_as_all_labels_together(kind, size):
    names = KINDS[kind]
    codes, labels = factorize(names, "row")
    encoder = LabelEncoder("row")
    got = [encoder.encode(names[start : start + size]) for start in range(0, len(names), size)]
    np.testing.assert_array_equal(np.concatenate(got), codes)
    assert all(part.dtype == np.int32 for part in got)
    assert encoder.labels().dtype == labels.dtype
    assert list(map(repr, encoder.labels().tolist())) == list(map(repr, labels.tolist()))


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
