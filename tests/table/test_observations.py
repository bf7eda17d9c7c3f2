import dataclasses
import datetime
import hashlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fillrank import Observations
from fillrank.errors import InputError
from fillrank.table.entries import compress
from fillrank.table.levels import rating_scale
from fillrank.table.observations import fingerprint
from helpers.same_entries import as_dict, assert_same

NAN = np.nan
X = np.array([[1.0, NAN, 0.0], [NAN, NAN, NAN], [NAN, 4.0, 5.0]])


def random_matrix(seed, shape=(17, 11), missing=0.6):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 3, shape).astype(float)
    matrix[rng.random(shape) < missing] = NAN
    return matrix


def stored(matrix):
    """The observed cells of an array as a COO matrix, zeros included, in random order."""
    rows, columns = np.nonzero(~np.isnan(matrix))
    order = np.random.default_rng(1).permutation(len(rows))
    rows, columns = rows[order], columns[order]
    return sp.coo_array((matrix[rows, columns], (rows, columns)), shape=matrix.shape)


def test_nan_is_missing_and_empty_rows_stay():
    observations = Observations.from_matrix(X)
    assert observations.shape == (3, 3)
    assert as_dict(observations) == {(0, 0): 1, (0, 2): 0, (2, 1): 4, (2, 2): 5}
    assert len(observations) == observations.n_entries == 4
    assert observations.density == 4 / 9


def test_fields_are_typed_and_sorted():
    observations = Observations.from_triplets(
        ["b", "a", "b", "a"], [9, 7, 7, 9], np.array([1, 2, 3, 4], dtype=np.int8)
    )
    assert observations.row_index.dtype == observations.column_index.dtype == np.int32
    assert observations.values.dtype == np.float64
    assert observations.row_index.tolist() == [0, 0, 1, 1]
    assert observations.column_index.tolist() == [0, 1, 0, 1]
    assert observations.values.tolist() == [1, 3, 4, 2]
    assert observations.rows.tolist() == ["b", "b", "a", "a"]
    assert observations.columns.tolist() == [9, 7, 9, 7]


def test_cannot_be_assigned_to():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Observations.from_matrix(X).values = np.zeros(4)


def test_does_not_share_memory_with_the_input():
    dense, sparse, values = X.copy(), stored(X).tocsr(), np.array([1.0, 2.0])
    assert not np.shares_memory(Observations.from_matrix(dense).values, dense)
    assert not np.shares_memory(Observations.from_matrix(sparse).values, sparse.data)
    in_order = Observations.from_triplets([0, 1], [0, 1], values)
    assert not np.shares_memory(in_order.values, values)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "lil", "dok", "bsr"])
@pytest.mark.parametrize("family", ["array", "matrix"])
def test_sparse_of_any_kind_is_the_dense_matrix(kind, family):
    matrix = random_matrix(0)
    if kind in ("lil", "dok", "bsr"):
        matrix[matrix == 0] = 7  # these do not all keep a stored 0 on the way in
    sparse = stored(matrix).asformat(kind)
    if kind == "bsr":
        sparse = stored(matrix).tocsr().tobsr(blocksize=(1, 1))
    if family == "matrix":
        sparse = getattr(sp, f"{kind}_matrix")(sparse)
    assert_same(Observations.from_matrix(sparse), Observations.from_matrix(matrix))


def test_stored_zero_is_a_value():
    for kind in ("coo", "csr", "csc"):
        sparse = sp.coo_array(([0.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2)).asformat(kind)
        assert as_dict(Observations.from_matrix(sparse)) == {(0, 1): 0.0, (1, 0): 2.0}


def test_stored_zero_on_a_diagonal_is_a_value():
    diagonals = sp.dia_array((np.array([[1.0, 0.0, 3.0], [9.0, 5.0, 6.0]]), [0, 1]), shape=(3, 3))
    assert as_dict(Observations.from_matrix(diagonals)) == {
        (0, 0): 1.0,
        (1, 1): 0.0,
        (2, 2): 3.0,
        (0, 1): 5.0,
        (1, 2): 6.0,
    }


def test_stored_nan_is_missing():
    sparse = sp.coo_array(([NAN, 2.0], ([0, 1], [1, 0])), shape=(2, 2))
    assert as_dict(Observations.from_matrix(sparse)) == {(1, 0): 2.0}


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_sparse_duplicates_are_judged_and_not_summed(kind):
    if kind == "coo":
        sparse = sp.coo_matrix(([1.0, 3.0], ([0, 0], [1, 1])), shape=(2, 2))
    else:
        sparse = sp.csr_array(([1.0, 3.0], [1, 1], [0, 2, 2]), shape=(2, 2))
    with pytest.raises(InputError, match="row 0, column 1: 1, 3"):
        Observations.from_matrix(sparse)
    assert as_dict(Observations.from_matrix(sparse, duplicates="mean")) == {(0, 1): 2.0}


def test_masked_is_missing_whatever_is_under_the_mask():
    masked = np.ma.array([[1.0, np.inf], [NAN, 4.0]], mask=[[0, 1], [0, 0]])
    assert as_dict(Observations.from_matrix(masked)) == {(0, 0): 1.0, (1, 1): 4.0}
    unmasked = np.ma.array([[1, 2]])
    assert as_dict(Observations.from_matrix(unmasked)) == {(0, 0): 1.0, (0, 1): 2.0}


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, np.float32])
def test_other_real_types_become_float64(dtype):
    observations = Observations.from_matrix(np.array([[0, 1], [1, 1]], dtype=dtype))
    assert observations.values.dtype == np.float64
    assert observations.values.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros(3), "two dimensions; got 1"),
        (np.zeros((2, 2, 2)), r"two dimensions; got 3 \(shape \(2, 2, 2\)\)"),
        (np.zeros((0, 3)), r"rows and columns; got shape \(0, 3\)"),
        (np.zeros((3, 0)), r"rows and columns; got shape \(3, 0\)"),
        (np.full((2, 2), NAN), "at least one value must be observed; all"),
        (sp.csr_array((2, 2)), "at least one value must be observed; all"),
        (sp.coo_array(np.ones(3)), "two dimensions; got 1"),
        (sp.csr_array((0, 3)), r"rows and columns; got shape \(0, 3\)"),
        (np.ones((2, 2), dtype=complex), "real numbers .*; got dtype complex128"),
        (sp.csr_array(np.ones((2, 2), dtype=complex)), "real numbers .*; got dtype complex128"),
        (np.array([["a", "b"]]), r"real numbers .*; got dtype <U1. Convert it first, .*astype"),
        (np.array([[1, None]]), "real numbers .*; got dtype object"),
        ([[1, 2], [3]], "got lists of different lengths"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "got dtype datetime64"),
    ],
)
def test_inputs_that_are_not_numeric_matrices_are_rejected(data, message):
    with pytest.raises(InputError, match=message):
        Observations.of(data)


def test_infinite_values_are_counted_and_placed():
    matrix = np.array([[1.0, 2.0], [-np.inf, np.inf]])
    words = (
        r"got 2 infinite, the first in row 1, column 0. If .* set missing_values=\['-inf', 'inf'\]."
    )
    with pytest.raises(InputError, match=words):
        Observations.from_matrix(matrix)
    with pytest.raises(InputError, match="got 1 infinite, the first in row 'b', column 'y'"):
        Observations.from_triplets(["a", "b"], ["x", "y"], [1, np.inf])


def test_triplets_without_value_are_dropped_but_their_names_stay():
    observations = Observations.from_triplets(["a", "b"], ["x", "y"], [NAN, 1.0])
    assert observations.row_labels.tolist() == ["a", "b"]
    assert observations.column_labels.tolist() == ["x", "y"]
    assert as_dict(observations) == {("b", "y"): 1.0}


@pytest.mark.parametrize(
    ("triplets", "message"),
    [
        (([1, 2], [1], [1.0, 2.0]), "the same length; got 2, 1 and 2"),
        (([1], [1], [[1.0]]), "values must be one-dimensional"),
        (([[1]], [1], [1.0]), r"labels must be one-dimensional; got an array of shape \(1, 1\)"),
        (([], [], []), "at least one value"),
        (([1], [1], [NAN]), "at least one value"),
        (([1], [1], ["5"]), "values must be real numbers .*; got dtype <U1"),
        (([1], [1], [1j]), "values must be real numbers .*; got dtype complex128"),
        ((["a", None], [1, 2], [1.0, 2.0]), "needs a row label; got a missing one"),
        (([1, 2], [1.0, NAN], [1.0, 2.0]), "needs a column label; got a missing one"),
        (([1], np.array(["NaT"], dtype="M8[D]"), [1.0]), "needs a column label; got a missing"),
        ((np.array([{}]), [1], [1.0]), "row labels must be numbers, text or dates"),
    ],
)
def test_bad_triplets_are_refused(triplets, message):
    with pytest.raises(InputError, match=message):
        Observations.from_triplets(*triplets)


def test_duplicates_are_listed_with_advice():
    rows = ["a", "a", "b", "b", "c", "c", "d", "d", "e"]
    with pytest.raises(InputError) as caught:
        Observations.from_triplets(rows, ["x"] * 9, np.arange(9.0))
    message = str(caught.value)
    assert "4 have more" in message
    assert "row 'a', column 'x': 0, 1" in message
    assert "row 'c', column 'x': 4, 5" in message
    assert "row 'd'" not in message
    assert 'duplicates="mean", duplicates="last" or duplicates="first"' in message


@pytest.mark.parametrize(
    ("duplicates", "expected"),
    [("mean", [10 / 3, 5.0]), ("first", [1.0, 5.0]), ("last", [2.0, 5.0])],
)
def test_duplicates_by_each_rule(duplicates, expected):
    observations = Observations.from_triplets(
        ["a", "b", "a", "a"], ["x"] * 4, [1.0, 5.0, 7.0, 2.0], duplicates=duplicates
    )
    np.testing.assert_allclose(observations.values, expected)
    assert observations.rows.tolist() == ["a", "b"]


def test_first_and_last_keep_the_order_of_many_duplicates():
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 20, 5000), rng.integers(0, 20, 5000)
    pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
    values = np.arange(5000.0)
    last = Observations.from_triplets(rows, columns, values, duplicates="last")
    assert as_dict(last) == dict(zip(pairs, values.tolist(), strict=True))
    first = Observations.from_triplets(rows, columns, values, duplicates="first")
    assert as_dict(first) == dict(zip(pairs[::-1], values[::-1].tolist(), strict=True))


def test_a_missing_value_is_no_duplicate():
    observations = Observations.from_triplets([1, 1], [1, 1], [NAN, 2.0])
    assert as_dict(observations) == {(1, 1): 2.0}


def test_unknown_rule_for_duplicates():
    with pytest.raises(InputError, match="one of 'error', 'mean', 'last', 'first', got 'sum'"):
        Observations.from_triplets([1], [1], [1.0], duplicates="sum")


def test_kinds_of_names_are_kept_apart():
    observations = Observations.from_triplets([1, "1"], ["x", "x"], [1.0, 2.0])
    assert as_dict(observations) == {(1, "x"): 1.0, ("1", "x"): 2.0}
    days = np.array(["2020-01-02", "2020-01-01"], dtype="M8[D]")
    dated = Observations.from_triplets(days, [5, 6], [1.0, 2.0])
    np.testing.assert_array_equal(dated.row_labels, days)
    assert dated.column_labels.dtype.kind == "i"
    objects = Observations.from_triplets([datetime.date(2020, 1, 1)], [1], [1.0])
    assert objects.row_labels.tolist() == [datetime.date(2020, 1, 1)]


@pytest.mark.parametrize(
    "names",
    [
        [5, 3, 5, 4, 3],
        [5_000_000_000, -3, 5_000_000_000, 4, -3],
        [2.5, 0.5, 2.5, 1.0, 0.5],
        ["b", "a", "b", "c", "a"],
        np.array([-128, 127, -128, 0, 127], dtype=np.int8),
        np.array([2**64 - 1, 0, 2**64 - 1, 1, 0], dtype=np.uint64),
        np.array([2**64 - 1, 2**64 - 3, 2**64 - 1, 2**64 - 2, 2**64 - 3], dtype=np.uint64),
    ],
)
def test_labels_come_in_order_of_first_appearance(names):
    observations = Observations.from_triplets(names, range(5), np.arange(5.0))
    expected = list(dict.fromkeys(np.asarray(names).tolist()))
    assert observations.row_labels.tolist() == expected
    assert as_dict(observations) == {
        (name, i): float(i) for i, name in enumerate(np.asarray(names).tolist())
    }


def test_of_takes_each_kind():
    observations = Observations.from_matrix(X)
    assert Observations.of(observations) is observations
    for data in (X, X.tolist(), np.ma.masked_invalid(X), stored(X), stored(X).tocsc()):
        assert_same(Observations.of(data), observations)


def test_of_sends_paths_to_the_reader():
    for path in ("ratings.csv", Path("ratings.csv")):
        with pytest.raises(InputError, match=r"got a path. Use read\('ratings.csv'\)"):
            Observations.of(path)


@pytest.mark.parametrize("seed", range(5))
def test_entries_by_row_and_by_column(seed):
    observations = Observations.from_matrix(random_matrix(seed))
    rows, columns, values = (
        observations.row_index,
        observations.column_index,
        observations.values,
    )
    m, n = observations.shape
    expected_by_row = compress(m, rows, columns, values)
    expected_by_column = compress(n, columns, rows, values)
    for got, expected in (
        (observations.by_row(), expected_by_row),
        (observations.by_column(), expected_by_column),
    ):
        for part, expected_part in zip(got, expected, strict=True):
            np.testing.assert_array_equal(part, expected_part)
            assert part.dtype == expected_part.dtype


def test_missing_positions_block_by_block_are_all_missing_cells():
    matrix = random_matrix(3)
    observations = Observations.from_matrix(matrix)
    blocks = [
        observations.missing_positions(start, min(start + 4, 17)) for start in range(0, 17, 4)
    ]
    got = np.concatenate([np.stack(block) for block in blocks], axis=1)
    np.testing.assert_array_equal(got, np.stack(np.nonzero(np.isnan(matrix))))
    assert [len(part) for part in observations.missing_positions(2, 2)] == [0, 0]


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 4), (2, 1), (0.0, 1)])
def test_missing_positions_beyond_the_rows_are_refused(start, stop):
    with pytest.raises(InputError, match=r"row_st.* must be a whole number from 0 to"):
        Observations.from_matrix(X).missing_positions(start, stop)


def test_split_parts_the_entries_and_shares_the_names():
    observations = Observations.from_matrix(random_matrix(0))
    train, test = observations.split(0.25, random_state=0)
    assert train.shape == test.shape == observations.shape
    assert len(test) == round(0.25 * len(observations))
    assert as_dict(train) | as_dict(test) == as_dict(observations)
    assert not as_dict(train).keys() & as_dict(test).keys()
    assert (np.diff(test.row_index * 11 + test.column_index) > 0).all()


def test_split_is_reproducible_and_random():
    observations = Observations.from_matrix(random_matrix(0))
    again = [observations.split(random_state=seed)[1] for seed in (0, 0, 1)]
    assert_same(again[0], again[1])
    assert as_dict(again[0]) != as_dict(again[2])
    generator = np.random.default_rng(0)
    assert_same(observations.split(random_state=generator)[1], again[0])


def test_split_takes_each_entry_equally_often():
    observations = Observations.from_matrix(np.arange(10.0).reshape(2, 5))
    counts = np.zeros(10)
    for seed in range(2000):
        counts[observations.split(0.3, random_state=seed)[1].values.astype(int)] += 1
    # Binomial(2000, 0.3): standard deviation 20.5; 5 of them are left in less than 1e-5 of runs.
    assert np.abs(counts - 600).max() < 5 * np.sqrt(2000 * 0.3 * 0.7)


def test_split_leaves_an_entry_on_each_side():
    observations = Observations.from_matrix([[1.0, 2.0, 3.0]])
    assert [len(part) for part in observations.split(0.001)] == [2, 1]
    assert [len(part) for part in observations.split(0.999)] == [1, 2]
    with pytest.raises(InputError, match="at least 2 entries"):
        Observations.from_matrix([[1.0]]).split()


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, NAN, "0.2", None, True])
def test_split_refuses_other_fractions(fraction):
    with pytest.raises(InputError, match="test_fraction must be above 0 and below 1, got"):
        Observations.from_matrix(X).split(fraction)


@pytest.mark.parametrize("random_state", ["seed", -1, 0.5])
def test_split_refuses_other_seeds(random_state):
    with pytest.raises(InputError, match="random_state must be None, a whole number"):
        Observations.from_matrix(X).split(random_state=random_state)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.tile(np.arange(1, 6), 10), (1.0, 5.0)),
        (np.tile(np.arange(1, 11) / 10, 10), (0.1, 1.0)),
        (np.tile([0, 1], 10), (0.0, 1.0)),
        (np.tile(np.arange(1, 6), 9), None),  # too few of each
        (np.tile([1, 2, 4, 5], 10), None),  # a gap
        (np.tile(np.arange(21), 20), None),  # too many levels
        (np.ones(100), None),
        (np.random.default_rng(0).standard_normal(200), None),
    ],
)
def test_value_range(values, expected):
    got = Observations.from_matrix(values[np.newaxis].astype(float)).value_range()
    assert got == (expected and pytest.approx(expected))


@pytest.mark.parametrize("late", [[2.5], [3.0], [3.5], np.arange(4, 25)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_value_range_of_more_than_a_block(late, kind):
    # Levels that come after a million entries count as much as the first.
    values = np.append(np.tile([1, 1.5, 2], 400_000), np.tile(late, 20)).astype(kind)
    levels = np.unique(values)
    even = levels.size <= 20 and np.ptp(np.diff(levels)) == 0
    assert rating_scale(values) == ((levels[0], levels[-1]) if even else None)


@pytest.mark.parametrize("unit", [1.0, 0.1])
def test_the_fingerprint_is_that_of_the_arrays(unit):
    rng = np.random.default_rng(0)
    cells = rng.choice(9000 * 5, 20_000, replace=False)
    observations = Observations.from_matrix(
        sp.coo_array((unit * (cells % 7), (cells // 5, cells % 5)), shape=(9000, 5))
    )
    digest = hashlib.sha256(b"(9000, 5)")
    digest.update(observations.row_index.astype(np.int32).tobytes())
    digest.update(observations.column_index.astype(np.int32).tobytes())
    digest.update(observations.values.astype(np.float64).tobytes())
    assert fingerprint(observations) == digest.hexdigest()


def test_rows_of_entries_block_by_block():
    observations = Observations.from_matrix(random_matrix(3))
    parts = [observations.row_index_of(start, min(start + 4, 17)) for start in range(0, 17, 4)]
    np.testing.assert_array_equal(np.concatenate(parts), observations.row_index)
    np.testing.assert_array_equal(
        observations.row_index, np.nonzero(~np.isnan(random_matrix(3)))[0]
    )


def test_repr_of_a_single_entry():
    assert "1 row x 1 column, 1 entry (" in repr(Observations.from_matrix([[1.0]]))


def test_repr_describes_the_entries():
    observations = Observations.from_triplets(range(2000), range(2000), np.linspace(-1, 2.5, 2000))
    assert repr(observations) == (
        "<Observations: 2,000 rows x 2,000 columns, 2,000 entries (0.05% observed), "
        "values -1 to 2.5>"
    )


@pytest.mark.parametrize("duplicates", ["mean", "first", "last"])
def test_the_rating_scale_is_that_of_the_values_that_came(duplicates):
    rng = np.random.default_rng(0)
    rows, columns = np.divmod(np.arange(600), 20)
    values = rng.integers(1, 9, size=600) / 2
    values[:2] = 0.5, 4
    rows, columns = np.append(rows, [3, 4, 5]), np.append(columns, [2, 2, 2])
    values = np.append(values, np.where(values[[62, 82, 102]] < 2, 4, 0.5))
    data = Observations.from_triplets(rows, columns, values, duplicates=duplicates)
    assert len(data) == 600
    assert data.value_range() == (0.5, 4.0)
    assert all(part.value_range() == (0.5, 4.0) for part in data.split(random_state=0))


def test_means_of_measurements_are_on_no_scale():
    values = np.random.default_rng(0).normal(size=40)
    data = Observations.from_triplets([1] * 40, [*range(39), 0], values, duplicates="mean")
    assert data.value_range() is None
