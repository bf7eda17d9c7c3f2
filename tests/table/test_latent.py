"""Values of every kind as latent numbers and intervals, and back."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from fillrank import Observations
from fillrank.errors import InputError
from fillrank.posterior.kind_predictions import Latent, level_probabilities, levels_of
from fillrank.table.entries import Entries, some_rows, transpose
from fillrank.table.frames import Origin
from fillrank.table.kinds import ColumnKind
from fillrank.table.latent import (
    FAR,
    checked_bounds,
    code_ratings,
    code_table,
    encode,
    latent_data,
)
from fillrank.table.triplets import Triplets
from reference.p_values import ALARM

NUMBER, POSITIVE, ORDERED, YES_NO, COUNT, CATEGORY = range(6)
KINDS = [
    ColumnKind("number"),
    ColumnKind("positive"),
    ColumnKind("ordered", np.array([1.0, 2.0, 3.0, 4.0, 5.0])),
    ColumnKind("yes_no", np.array([0.0, 1.0])),
    ColumnKind("count"),
    ColumnKind("category", np.array([2.0, 3.0, 7.0, 9.0])),
]


def _matrix(m=60, missing=0.2, seed=1):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            10.0 + 5.0 * rng.standard_normal(m),
            np.exp(2.0 + rng.standard_normal(m)),
            rng.integers(1, 6, m),
            rng.integers(0, 2, m),
            rng.poisson(2.0, m),
            rng.choice([2.0, 3.0, 7.0, 9.0], m, p=[0.2, 0.5, 0.25, 0.05]),
        ]
    )
    X[4, COUNT], X[5, COUNT], X[6:10, CATEGORY] = 0, 1_000_000, [2.0, 3.0, 7.0, 9.0]
    holes = rng.random(X.shape) < missing
    holes[4:10] = False
    X[holes] = np.nan
    return X


def _coded(X=None, kinds=KINDS, bounds=None):
    """(observations, coding, latent entries by row, limits)."""
    observations = Observations.from_matrix(_matrix() if X is None else X)
    coding = code_table(observations, kinds, bounds or {})
    return observations, coding, *encode(coding, observations.by_row(), None)


def _inside(rng, limits):
    """A number in each of some intervals, normal where they are not narrow."""
    low, high = np.clip(limits, -8.0, 12.0)
    return low + (high - low) * rng.uniform(0.01, 0.99, low.size)


# Round trips


def test_every_value_comes_back_from_any_point_of_its_intervals():
    rng = np.random.default_rng(3)
    X = _matrix()
    _, coding, entries, limits = _coded(X)
    for _ in range(20):
        # What is not observed may be anything.
        Y = 3.0 * rng.standard_normal((len(X), coding.n_latent))
        values, known = entries.values.copy(), entries.cells >= 0
        values[known] = _inside(rng, limits[:, entries.cells[known]])
        Y[np.repeat(np.arange(len(X)), np.diff(entries.pointers)), entries.indices] = values
        for j, scale in enumerate(coding.scales):
            own = Y[:, coding.first_latent[j] : coding.first_latent[j + 1]].T
            found = levels_of(scale, own, limits) if scale.has_levels else scale.restored(own[0])
            seen = ~np.isnan(X[:, j])
            np.testing.assert_allclose(found[seen], X[seen, j], rtol=1e-13, err_msg=scale.kind)


def test_numbers_are_exact_and_in_standard_units():
    X = _matrix()
    _, coding, entries, _ = _coded(X)
    by_column = transpose(entries, coding.n_latent)
    for j, numbers in ((NUMBER, X[:, NUMBER]), (POSITIVE, np.log(X[:, POSITIVE]))):
        q = coding.first_latent[j]
        part = slice(by_column.pointers[q], by_column.pointers[q + 1])
        assert (by_column.cells[part] == -1).all()
        seen = numbers[~np.isnan(numbers)]
        expected = (seen - seen.mean()) / seen.std()
        np.testing.assert_allclose(by_column.values[part], expected, rtol=1e-10, atol=1e-12)


def test_counts_have_the_interval_of_their_logarithm():
    X = _matrix()
    _, coding, entries, limits = _coded(X)
    by_column, q = transpose(entries, coding.n_latent), coding.first_latent[COUNT]
    cells = by_column.cells[by_column.pointers[q] : by_column.pointers[q + 1]]
    assert len(set(cells.tolist())) == cells.size
    scale, counts = coding.scales[COUNT], X[~np.isnan(X[:, COUNT]), COUNT]
    low, high = limits[:, cells]
    assert (low[counts == 0] == -FAR).all()
    some = counts > 0
    np.testing.assert_allclose(
        np.exp(scale.location + scale.scale * low[some]), counts[some], rtol=1e-12
    )
    np.testing.assert_allclose(
        np.exp(scale.location + scale.scale * high), counts + 1.0, rtol=1e-12
    )
    # Standardised by the logarithms of counts and a half.
    logs = np.log(counts + 0.5)
    assert scale[2:4] == pytest.approx((logs.mean(), logs.std()))


def test_levels_start_at_the_quantiles_of_their_frequencies():
    X = _matrix()
    _, coding, _, limits = _coded(X)
    for j in (ORDERED, YES_NO):
        scale, seen = coding.scales[j], X[~np.isnan(X[:, j]), j]
        counts = np.array([np.sum(seen == level) for level in scale.levels]) + 0.5
        part = slice(scale.first, scale.first + scale.levels.size)
        low, high = limits[:, part]
        np.testing.assert_allclose(ndtr(high) - ndtr(low), counts / counts.sum(), rtol=1e-10)
        np.testing.assert_array_equal(low[1:], high[:-1])
        assert (low[0], high[-1]) == (-FAR, FAR)


def test_a_category_has_a_latent_column_for_each_value_but_the_rarest():
    X = _matrix()
    _, coding, entries, _ = _coded(X)
    scale = coding.scales[CATEGORY]
    seen = X[~np.isnan(X[:, CATEGORY]), CATEGORY]
    counts = [np.sum(seen == level) for level in scale.levels]
    assert counts == sorted(counts, reverse=True)
    assert scale.n_latent == 3
    row_of = np.repeat(np.arange(len(X)), np.diff(entries.pointers))
    first = coding.first_latent[CATEGORY]
    for i in np.flatnonzero(~np.isnan(X[:, CATEGORY])):
        mine = (row_of == i) & (entries.indices >= first)
        place = int(np.flatnonzero(scale.levels == X[i, CATEGORY])[0])
        # "No" before its own column, "yes" there, and nothing after it.
        which = np.arange(min(place + 1, 3))
        assert entries.indices[mine].tolist() == (first + which).tolist()
        expected = scale.first + 2 * which + (which == place)
        assert entries.cells[mine].tolist() == expected.tolist()


def test_entries_in_intervals_start_at_the_mean_of_a_normal_variable():
    _, _, entries, limits = _coded()
    known = entries.cells >= 0
    low, high = limits[:, entries.cells[known]]
    near = np.minimum(np.abs(low), np.abs(high)) < 5.0
    expected = stats.truncnorm(low[near], high[near]).mean()
    np.testing.assert_allclose(entries.values[known][near], expected, rtol=1e-6, atol=1e-6)
    assert (entries.values[known] >= low).all()
    assert (entries.values[known] <= high).all()
    assert np.isfinite(entries.values).all()


# Probabilities


def test_probabilities_of_a_category_are_those_of_its_latent_columns():
    """Against levels of many latent numbers, and their sum is 1."""
    _, coding, _, limits = _coded()
    scale, rng, n = coding.scales[CATEGORY], np.random.default_rng(8), 200_000
    z, s = np.array([0.3, -0.8, 0.5]), np.array([0.7, 0.7, 1.3])
    columns = [Latent(z[k, None, None], s[k, None, None], limits[None]) for k in range(3)]
    probabilities = level_probabilities(scale, columns)[0]
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    drawn = levels_of(scale, z[:, None] + s[:, None] * rng.standard_normal((3, n)), limits)
    for level, p in zip(scale.levels, probabilities, strict=True):
        score = (np.mean(drawn == level) - p) / np.sqrt(p * (1.0 - p) / n)
        assert 2.0 * stats.norm.sf(abs(score)) > ALARM


def test_a_category_with_signal_0_has_its_frequencies():
    X = _matrix(m=4000, missing=0.0)
    _, coding, _, limits = _coded(X)
    scale = coding.scales[CATEGORY]
    one = Latent(np.zeros((1, 1)), np.ones((1, 1)), limits[None])
    shares = [np.mean(X[:, CATEGORY] == level) for level in scale.levels]
    np.testing.assert_allclose(level_probabilities(scale, [one] * 3)[0], shares, atol=1e-3)


# The coding as a whole


def test_places_of_latent_columns_and_intervals():
    observations, coding, entries, limits = _coded()
    assert coding.first_latent.tolist() == [0, 1, 2, 3, 4, 5, 8]
    assert coding.n_latent == 8
    assert coding.column_of.tolist() == [0, 1, 2, 3, 4, 5, 5, 5]
    assert coding.n_level_intervals == 5 + 2 + 6
    assert coding.drawn_scales().tolist() == [[0, 5]]
    assert coding.fixed_columns().tolist() == [3, 5, 6, 7]
    np.testing.assert_array_equal(limits, coding.limits)
    assert (limits[0] < limits[1]).all()
    assert entries.indices.max() < coding.n_latent
    assert observations.shape == (60, 6)


@pytest.mark.parametrize("n_levels", [2, 3, 4, 10])
def test_thresholds_between_the_first_and_the_last_are_drawn(n_levels):
    X = np.tile(np.arange(float(n_levels)), 30)[:, None]
    kind = ColumnKind("ordered", np.arange(float(n_levels)))
    coding = _coded(X, [kind])[1]
    assert coding.drawn_scales().tolist() == ([[0, n_levels]] if n_levels > 3 else [])
    assert coding.fixed_columns().tolist() == ([0] if n_levels == 2 else [])


def test_samplers_get_both_sides_in_their_precision():
    observations, coding, entries, _ = _coded()
    rows, columns = latent_data(coding, observations, np.dtype(np.float32))
    assert rows.dtype == columns.dtype == np.float32
    np.testing.assert_array_equal(rows.cells, entries.cells)
    again = transpose(rows, coding.n_latent)
    for one, other in zip(columns, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_weights_go_to_all_latent_entries_of_a_value():
    X, rng = _matrix(), np.random.default_rng(5)
    i, j = np.nonzero(~np.isnan(X))
    weights = rng.uniform(0.5, 2.0, i.size)
    observations = Observations.from_triplets(i, j, X[i, j], weights=weights)
    kinds = [KINDS[int(label)] for label in observations.column_labels]
    coding = code_table(observations, kinds, {})
    entries, _ = encode(coding, observations.by_row(), None)
    table = np.full(observations.shape, np.nan)
    table[observations.row_index, observations.column_index] = observations.weights
    row_of = np.repeat(np.arange(len(table)), np.diff(entries.pointers))
    expected = table[row_of, coding.column_of[entries.indices]]
    np.testing.assert_array_equal(entries.weights, expected)


def test_a_rating_scale_is_shared_by_all_columns():
    rng = np.random.default_rng(2)
    X = rng.integers(1, 6, (40, 7)).astype(float)
    observations = Observations.from_matrix(X)
    coding = code_ratings(observations)
    assert len(coding.scales) == 1
    assert coding.n_latent == 7
    entries, limits = encode(coding, observations.by_row(), None)
    np.testing.assert_array_equal(entries.cells.reshape(X.shape) + 1, X)
    assert limits.shape == (2, 5)


# New rows


def test_some_rows_are_coded_as_they_are_in_the_table():
    observations, coding, whole, all_limits = _coded()
    rows = np.array([5, 9, 4])
    part, limits = encode(coding, some_rows(observations.by_row(), rows), None)
    expected = some_rows(whole, rows)
    np.testing.assert_array_equal(part.indices, expected.indices)
    np.testing.assert_array_equal(part.values, expected.values)
    known = part.cells >= 0
    np.testing.assert_array_equal(known, expected.cells >= 0)
    np.testing.assert_array_equal(
        limits[:, part.cells[known]], all_limits[:, expected.cells[known]]
    )


@pytest.mark.parametrize("n_rows", [0, 1, 3])
def test_rows_without_entries(n_rows):
    coding = _coded()[1]
    nothing = np.zeros(0)
    entries = Entries(np.zeros(n_rows + 1, np.int64), nothing.astype(np.int32), nothing)
    coded, limits = encode(coding, entries, None)
    assert coded.n_entries == 0
    assert coded.pointers.size == n_rows + 1
    assert limits.shape[1] == coding.n_level_intervals


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (ORDERED, 6.0, "column 2 has the levels 1, 2, 3, 4, 5; got 6, which the fit has not seen"),
        (YES_NO, 0.5, "column 3 has the levels 0, 1; got 0.5, which"),
        (CATEGORY, -1.0, "column 5 has the levels 2, 3, 7, 9; got -1, which"),
        (CATEGORY, 100.0, "got 100, which the fit has not seen"),
    ],
)
def test_an_unknown_level_is_an_error(column, value, message):
    coding = _coded()[1]
    entries = Entries(np.array([0, 1]), np.array([column], np.int32), np.array([value]))
    with pytest.raises(InputError) as caught:
        encode(coding, entries, None)
    assert message in str(caught.value)


def test_a_new_value_far_beyond_the_table_is_not_too_large_for_the_sampler():
    coding = _coded()[1]
    columns = np.array([NUMBER, POSITIVE, COUNT], np.int32)
    entries = Entries(np.array([0, 3]), columns, np.array([1e200, 1e-200, 1e100]))
    coded, limits = encode(coding, entries, None)
    assert np.abs(coded.values).max() <= FAR
    assert np.abs(limits).max() <= FAR


# Values of which an interval is known


def _censored(kinds, columns, values, intervals):
    """(coding, entries, limits) of a table whose last row has values in intervals."""
    X = _matrix(m=30, missing=0.0)[:, :6]
    i, j = np.nonzero(~np.isnan(X))
    cells = np.full(i.size + len(columns), -1, dtype=np.int32)
    cells[i.size :] = np.arange(len(columns))
    i = np.append(i, np.full(len(columns), len(X)))
    numbers = np.append(X[~np.isnan(X)], values)
    observations = Observations.from_positions(
        Triplets(i, np.append(j, columns), numbers, cells=cells),
        np.arange(len(X) + 1), np.arange(6), Origin("wide"),
        intervals=np.array(intervals, dtype=float),
    )  # fmt: skip
    coding = code_table(observations, kinds, {})
    entries, limits = encode(coding, observations.by_row(), observations.intervals)
    return coding, some_rows(entries, np.array([len(X)])), limits


def test_censored_values():
    """Below a limit, above one, and in a range; next to columns of levels."""
    ends = [[-np.inf, 0.5], [0.2, 0.4], [3.0, np.inf]]
    coding, entries, limits = _censored(KINDS, [NUMBER, POSITIVE, COUNT], [0.5, 0.3, 3.0], ends)
    assert entries.indices.tolist() == coding.first_latent[[NUMBER, POSITIVE, COUNT]].tolist()
    number, positive, count = (coding.scales[j] for j in (NUMBER, POSITIVE, COUNT))
    (low, high), at = limits[:, entries.cells], [number, positive, count]
    low, high = (
        np.array([each.location + each.scale * x for each, x in zip(at, part, strict=True)])
        for part in (low, high)
    )
    assert low[0] < -1e5 * number.scale
    assert high[0] == pytest.approx(0.5)
    assert [low[1], high[1]] == pytest.approx(np.log([0.2, 0.4]))
    assert low[2] == pytest.approx(np.log(4.0))  # a count above 3
    assert high[2] > 1e5 * count.scale


@pytest.mark.parametrize(
    ("ends", "counts"),
    [((-np.inf, 2.0), (0.0, 1.0)), ((2.0, 4.0), (2.0, 4.0)), ((0.0, 1.0), (0.0, 1.0))],
)
def test_a_count_below_a_limit_or_in_a_range(ends, counts):
    coding, entries, limits = _censored(KINDS, [COUNT], [2.0], [ends])
    scale, cell = coding.scales[COUNT], entries.cells[0]
    y = limits[:, cell] + [1e-9, -1e-9]
    assert scale.restored(y).tolist() == [*counts]


@pytest.mark.parametrize("column", [ORDERED, YES_NO, CATEGORY])
def test_a_level_cannot_be_censored(column):
    with pytest.raises(InputError, match="cannot be limits or intervals"):
        _censored(KINDS, [column], [2.0 if column == CATEGORY else 1.0], [[-np.inf, 1.0]])


# Bounds


def test_values_are_restored_within_their_bounds():
    bounds = {NUMBER: (0.0, 12.0), POSITIVE: (-5.0, 20.0)}
    coding = _coded(bounds=bounds)[1]
    y = np.linspace(-50.0, 50.0, 101)
    for j, ends in ((NUMBER, (0.0, 12.0)), (POSITIVE, (0.0, 20.0)), (COUNT, (0.0, np.inf))):
        scale = coding.scales[j]
        assert scale.bounds == ends
        found = scale.restored(y)
        assert ends[0] <= found.min()
        assert found.max() <= ends[1]
        assert (np.diff(found) >= 0).all()
    with np.errstate(over="raise"):
        assert np.isfinite(coding.scales[COUNT].restored(np.array([1e5]))).all()


def test_bounds_are_checked():
    observations = Observations.from_matrix(_matrix())
    assert checked_bounds(observations, None) == {}
    assert checked_bounds(observations, {2: (0, 5)}) == {2: (0.0, 5.0)}
    assert checked_bounds(observations, {2: (None, 5)}) == {2: (-np.inf, 5.0)}
    assert checked_bounds(observations, {2: (0, None)}) == {2: (0.0, np.inf)}
    for wrong in ((5, 0), (1, 1), (0,), 3, (np.nan, 1), ("low", 1), None):
        with pytest.raises(InputError, match="low < high"):
            checked_bounds(observations, {2: wrong})


def test_a_column_without_values_has_no_predictions_unless_asked():
    X = np.array([[1.0, np.nan], [2.0, np.nan], [4.0, np.nan]])
    coding = _coded(X, [ColumnKind("number"), ColumnKind("positive")])[1]
    assert np.isnan(coding.scales[1].restored(np.zeros(1))).all()
    assert coding.with_empty_at_zero().scales[1][2:4] == (0.0, 1.0)
