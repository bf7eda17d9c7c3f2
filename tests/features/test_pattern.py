"""The pattern of missing values as features: against a dense singular value decomposition."""

import tracemalloc

import numpy as np
import pytest

from fillrank.features import pattern
from fillrank.features.pattern import code_pattern, mask_of, pattern_block, pattern_blocks
from fillrank.kernels import factors
from fillrank.runtime import threads
from fillrank.runtime.threads import Workers, one_blas_thread
from helpers.small_patterns import small_patterns  # noqa: F401
from reference.planted import plant
from reference.small_tables import table_and_values

ONE = Workers(1)
LIMITS = {name: getattr(pattern, name) for name in ("_ENTRIES_EACH", "_FEWEST")}


def _use_parts(monkeypatch):
    """Small arrays are decomposed in parts, as those of large tables."""
    monkeypatch.setattr(pattern, "_AT_ONCE", 8)
    monkeypatch.setattr(pattern, "_ROWS", 7)
    monkeypatch.setattr(factors, "_PART", 1)
    monkeypatch.setattr(factors, "_PART_PER_COLUMN", 1)


@pytest.fixture(params=[False, True], ids=["at once", "in parts"])
def any_size(request, monkeypatch):
    """As in small tables, and as in large ones."""
    if request.param:
        _use_parts(monkeypatch)


def test_small_tables_have_few_directions(monkeypatch):
    for name, value in LIMITS.items():
        monkeypatch.setattr(pattern, name, value)
    n_directions = pattern.n_directions
    assert n_directions((6040, 3706), 800_000) == n_directions((943, 1682), 80_000) == 200
    assert n_directions((60, 40), 1200) == 6  # 200 entries for each
    assert n_directions((748, 6), 3000) == 1  # 4 columns for each
    assert n_directions((6, 748), 3000) == 0  # too few rows to learn from
    assert n_directions((30, 30), 150) == 0


def _random_mask(shape=(60, 44), seed=0):
    """Rows of two kinds, which differ in what they have; one row and one column without entries."""
    rng = np.random.default_rng(seed)
    kind = rng.random(shape[0]) < 0.5
    taste = 1.0 / (1.0 + np.exp(-3.0 * rng.standard_normal((2, shape[1]))))
    mask = rng.random(shape) < taste[kind.astype(int)]
    mask[4], mask[:, 7] = False, False
    return mask


def _entries(mask):
    return table_and_values(mask, np.zeros(mask.shape))[1].rows


def _masks(mask, workers=ONE):
    data = table_and_values(mask, np.zeros(mask.shape))[1]
    return mask_of(data, workers)


def _dense(mask):
    """F_0 as the module's docstring has it."""
    n = mask.sum(axis=1, keepdims=True)
    scaled = mask / np.sqrt(np.maximum(n, 1))
    return np.where(n > 0, scaled - scaled.sum(axis=0) / (n > 0).sum(), 0.0)


def _errors(mask):
    """How far the block of a mask is from what it should be, by quantity; each far below 1."""
    (block,) = pattern_block(_masks(mask))
    F, F_0, p = block.values, _dense(mask), block.values.shape[1]
    P, s, Qt = np.linalg.svd(F_0, full_matrices=False)
    gram = F.T @ F
    there = mask.any(axis=1)
    leading = (P[:, :p] * s[:p]) @ (P[:, :p] * s[:p]).T
    code = code_pattern(block.code, _entries(mask))
    return {
        "number": abs(p - min(mask.shape) // 4),
        "centred": np.abs(F.sum(axis=0)).max(),
        "orthogonal": np.abs(gram - np.diag(np.diag(gram))).max() / gram.max(),
        "in the span": np.abs(F - F_0 @ block.code.directions).max(),
        # The subspace is not exact: as much as the leading directions have, to a thousandth.
        "size": abs(1.0 - np.trace(gram) / np.sum(s[:p] ** 2)) * 1e2,
        "kernel": np.abs(F @ F.T - leading).max() / np.abs(leading).max(),
        "leading directions": 1.0 - np.linalg.svd(Qt[: p // 2] @ block.code.directions)[1].min(),
        "directions": np.abs(block.code.directions.T @ block.code.directions - np.eye(p)).max(),
        "rows without entries": np.abs(F[~there]).max(initial=0.0),
        "code": np.abs(code - F).max(),
        "descending": max(0.0, np.diff(np.diag(gram)).max()),
    }


TOLERANCE = {"size": 0.1, "kernel": 0.05, "leading directions": 1e-3}


def _largest(errors):
    return max(error / TOLERANCE.get(name, 2e-5) for name, error in errors.items())


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("shape", [(60, 44), (25, 80), (90, 12)])
def test_a_block_has_the_leading_directions(shape):
    errors = _errors(_random_mask(shape))
    assert _largest(errors) < 1.0, errors


@pytest.mark.usefixtures("any_size")
def test_columns_are_the_rows_of_the_transposed_table():
    mask = _random_mask()
    rows, columns = pattern_blocks(_masks(mask))
    again = pattern_blocks(_masks(mask.T))
    for block, other in ((rows, again.columns), (columns, again.rows)):
        np.testing.assert_array_equal(block[0].values, other[0].values)
        np.testing.assert_array_equal(block[0].code.directions, other[0].code.directions)
        np.testing.assert_array_equal(block[0].code.means, other[0].code.means)


@pytest.mark.usefixtures("any_size")
def test_a_row_without_entries_has_zeros():
    mask = _random_mask()
    (block,) = pattern_block(_masks(mask))
    np.testing.assert_allclose(block.values[4], 0.0, atol=1e-12)
    new = np.zeros((2, mask.shape[1]), dtype=bool)
    new[1, :9] = True
    code = code_pattern(block.code, _entries(new))
    np.testing.assert_array_equal(code[0], 0.0)
    assert np.abs(code[1]).max() > 0.01


@pytest.mark.usefixtures("any_size")
def test_a_new_row_with_the_pattern_of_a_fitted_one_has_its_values():
    mask = _random_mask()
    (block,) = pattern_block(_masks(mask))
    code = code_pattern(block.code, _entries(mask[[8, 3]]))
    np.testing.assert_allclose(code, block.values[[8, 3]], atol=1e-5)


@pytest.mark.usefixtures("any_size")
def test_without_differences_there_is_no_block():
    complete, empty = np.ones((20, 16), dtype=bool), np.zeros((20, 16), dtype=bool)
    same = complete.copy()
    same[:, 3:7] = False  # the rows have one pattern, the columns have two
    assert pattern_blocks(_masks(complete)) == ((), ())
    assert pattern_blocks(_masks(empty)) == ((), ())
    rows, columns = pattern_blocks(_masks(same))
    assert rows == ()
    assert columns == ()  # all columns that have entries have the same
    assert pattern_blocks(_masks(_random_mask()[:, :3])) == ((), ())


@pytest.mark.usefixtures("any_size")
def test_few_kinds_of_rows_have_few_directions():
    mask = np.ones((40, 32), dtype=bool)
    mask[:15, 20:], mask[15:25, :12] = False, False
    rows, _ = pattern_blocks(_masks(mask))
    assert rows[0].values.shape[1] == 2  # of three kinds, centred
    np.testing.assert_allclose(
        rows[0].values @ rows[0].values.T, _dense(mask) @ _dense(mask).T, atol=1e-5
    )


@pytest.mark.usefixtures("any_size")
def test_same_bits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(threads, "_SMALLEST_SHARE", 1)
    mask = _random_mask((400, 300))
    outcomes = []
    for n_threads in (1, 2, 4):
        with one_blas_thread(), Workers(n_threads) as workers:
            outcomes.append(pattern_blocks(_masks(mask, workers)))
    for sides in outcomes[1:]:
        for (block,), (first,) in zip(sides, outcomes[0], strict=True):
            np.testing.assert_array_equal(block.values, first.values)
            np.testing.assert_array_equal(block.code.directions, first.code.directions)


@pytest.mark.parametrize("shape", [(400, 44), (44, 400), (60, 44)])
def test_parts_give_the_same_features(monkeypatch, shape):
    mask = _random_mask(shape)
    at_once = pattern_blocks(_masks(mask))
    _use_parts(monkeypatch)
    for (block,), (expected,) in zip(pattern_blocks(_masks(mask)), at_once, strict=True):
        signs = np.sign(np.einsum("ij,ij->j", block.values, expected.values))
        np.testing.assert_array_equal(block.code.means, expected.code.means)
        np.testing.assert_allclose(block.values * signs, expected.values, atol=1e-4)
        np.testing.assert_allclose(
            block.code.directions * signs, expected.code.directions, atol=1e-4
        )


def _peak(mask):
    """The most memory at once while the blocks of a mask are made."""
    masks = _masks(mask)
    tracemalloc.start()
    blocks = pattern_blocks(masks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [side[0].values.shape[1] for side in blocks] == [10, 10]
    return peak


def test_large_tables_take_little_memory(monkeypatch):
    """Beside values and directions little more than one array; at once it is more than five."""
    shape, n_directions, width = (30_000, 40), 10, 26
    mask = _random_mask(shape)
    array = 4 * shape[0] * width
    results = 2 * 4 * shape[0] * n_directions
    assert _peak(mask) > 5 * array
    monkeypatch.setattr(pattern, "_AT_ONCE", 2**14)
    assert _peak(mask) < results + 1.6 * array


BUGS = {
    "means over all rows": (
        "_pattern", "max(1.0, float(there.sum()))", "max(1.0, float(there.size))"
    ),
    "rows not scaled": ("_pattern", "there / np.sqrt(", "there / np.square("),
    "singular values forgotten": ("pattern_block", "P[:, :k] * s[:k]", "P[:, :k]"),
    "directions of the iteration": ("pattern_block", "Q @ R[:k].T", "Q[:, :k]"),
    "new rows not centred": ("code_pattern", " - offset", ""),
    "new rows not scaled": ("code_pattern", " / np.sqrt(columns.size)", ""),
    "any directions": (
        "_leading",
        "return _orthonormal(pattern.transposed_times(block), workers)",
        "return np.roll(_orthonormal(pattern.transposed_times(block), workers), 5, axis=0)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    plant(monkeypatch, pattern, *BUGS[name])
    monkeypatch.setitem(globals(), "code_pattern", pattern.code_pattern)
    monkeypatch.setitem(globals(), "pattern_block", pattern.pattern_block)
    errors = _errors(_random_mask())
    assert _largest(errors) > 5.0, errors


IN_PARTS = {
    "not orthonormal": ("_orthonormal", "orthonormalise(block, workers)", "pass"),
    "directions of the iteration": (
        "pattern_block", "for each in (F, Q))", "if each is F else Q[:, :k] for each in (F, Q))"
    ),
    "another rotation": ("pattern_block", "R[:k].T, mask", "R[:, :k], mask"),
    "one part centred": ("_subtract", "iter_blocks(len(block), _ROWS)", "[slice(0, _ROWS)]"),
    "means of other columns": ("_subtract", "column[rows]", "column[: len(block[rows])]"),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PARTS)
def test_a_planted_bug_in_parts_is_caught(monkeypatch, name):
    _use_parts(monkeypatch)
    plant(monkeypatch, pattern, *IN_PARTS[name])
    monkeypatch.setitem(globals(), "pattern_block", pattern.pattern_block)
    errors = _errors(_random_mask())
    assert _largest(errors) > 5.0, errors
