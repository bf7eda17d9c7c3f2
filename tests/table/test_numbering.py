"""Names numbered batch by batch, against all at once."""

import numpy as np
import pytest

from fillrank.errors import InputError
from fillrank.table.label_batches import Numbering
from fillrank.table.labels import as_names, factorize

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
    "text": as_names([f"name {i}" for i in FEW]),
    "mixed": as_names([str(i) if i > 0 else int(i) for i in FEW]),
    "days": np.datetime64("2020-01-01") + FEW,
    "nanoseconds": np.datetime64("2020-01-01", "ns") + FEW,
    "flags": FEW > 0,
}


@pytest.mark.parametrize("size", [1, 2, 7, 59, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_numbers_and_names_as_at_once(kind, size):
    names = KINDS[kind]
    codes, labels = factorize(names, "row")
    numbering = Numbering("row")
    got = [numbering.take(names[start : start + size]) for start in range(0, len(names), size)]
    np.testing.assert_array_equal(np.concatenate(got), codes)
    assert all(part.dtype == np.int32 for part in got)
    assert numbering.labels().dtype == labels.dtype
    assert list(map(repr, numbering.labels().tolist())) == list(map(repr, labels.tolist()))


@pytest.mark.parametrize(
    "missing", [np.array([np.nan]), np.array([None]), np.array(["NaT"], "M8[D]")]
)
def test_a_missing_name_is_refused_in_any_batch(missing):
    numbering = Numbering("column")
    first = {"f": np.array([1.0]), "O": as_names(["a"]), "M": np.array(["2020-01-01"], "M8[D]")}
    numbering.take(first[missing.dtype.kind])
    with pytest.raises(InputError, match="every entry needs a column name"):
        numbering.take(missing)


def test_integers_with_a_missing_one_among_them():
    numbering = Numbering("row")
    numbering.take(np.array([1, 2]))
    with pytest.raises(InputError, match="every entry needs a row name"):
        numbering.take(np.array([1.0, np.nan]))  # as data frames give them
