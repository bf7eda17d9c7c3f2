"""Strategies of hypothesis for labels and tables."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

# The same examples in every run, and few enough to be fast.
few = settings(max_examples=60, deadline=None, derandomize=True, database=None)

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=6)
# One strategy for each kind of labels, and the dtype of an array of them.
LABELS = {
    "close integers": (st.integers(-9, 9), np.int64),
    "bytes": (st.integers(-128, 127), np.int8),
    "integers": (INT64, np.int64),
    "unsigned integers": (st.integers(0, 2**64 - 1), np.uint64),
    "large unsigned integers": (st.integers(2**63 - 5, 2**63 + 5), np.uint64),
    "floats": (st.floats(allow_nan=False), np.float64),
    "flags": (st.booleans(), np.bool_),
    "text": (TEXT, object),
    "mixed": (st.one_of(st.integers(-3, 3), TEXT, st.dates()), object),
    "days": (st.integers(-(10**6), 10**6), "M8[D]"),
    "nanoseconds": (INT64.filter(lambda n: n != -(2**63)), "M8[ns]"),
    "durations": (st.integers(-(10**6), 10**6), "m8[s]"),
}
KINDS = st.sampled_from(sorted(LABELS))


def label_array(labels, dtype):
    """An array of labels, as `as_labels` returns them."""
    if dtype is not object:
        return np.array(labels, dtype=np.int64 if isinstance(dtype, str) else dtype).astype(dtype)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


@st.composite
def label_arrays(draw, min_size=1, max_size=40, unique=False, kinds=KINDS):
    """An array of labels of one kind, with repeated ones unless ``unique``."""
    each, dtype = LABELS[draw(kinds)]
    labels = draw(st.lists(each, min_size=min_size, max_size=max_size, unique=unique))
    return label_array(labels, dtype)


@st.composite
def triplets(draw, max_size=50):
    """Positions and values of entries in any order, often with duplicates and missing values."""
    n_rows, n_columns = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    values = st.one_of(
        st.integers(-4, 4).map(lambda n: n / 2),
        st.floats(-1e6, 1e6),
        st.just(np.nan),
    )
    entry = st.tuples(st.integers(0, n_rows - 1), st.integers(0, n_columns - 1), values)
    unique_by = draw(st.sampled_from([None, lambda e: e[:2]]))
    entries = draw(st.lists(entry, min_size=1, max_size=max_size, unique_by=unique_by))
    rows, columns, values = (np.array(part) for part in zip(*entries, strict=True))
    values = values.astype(np.float64)
    values[0] = 3.0  # at least one value is observed
    return rows, columns, values, (n_rows, n_columns)


@st.composite
def matrices(draw, values):
    """A matrix with missing values, at least one of them observed."""
    n_rows, n_columns = draw(st.integers(1, 7)), draw(st.integers(2, 6))
    cell = st.one_of(st.just(np.nan), values)
    cells = draw(st.lists(cell, min_size=n_rows * n_columns, max_size=n_rows * n_columns))
    matrix = np.array(cells, dtype=np.float64).reshape(n_rows, n_columns)
    matrix[0, 0] = 1.5
    return matrix
