"""How blocks of features become those of a sampler."""

import numpy as np

from fillrank.samplers import feature_steps
from fillrank.samplers.feature_steps import join_blocks
from reference.planted import plant

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


def _blocks():
    """A block in single precision, as that of a large pattern, and one in double precision."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((50, 4), np.float32), rng.standard_normal((50, 3))


def test_one_block_is_not_copied():
    single, _ = _blocks()
    assert join_blocks({"one": single}, SINGLE).values is single


def test_blocks_are_side_by_side():
    single, double = _blocks()
    joined = join_blocks({"one": single, "other": double}, SINGLE)
    assert joined.values.dtype == SINGLE
    assert joined.values.flags.c_contiguous
    np.testing.assert_array_equal(joined.values, np.hstack([single, double.astype(SINGLE)]))
    assert joined.ends == (4, 7)
    assert joined.names == ("one", "other")


def _error_of_gram():
    errors = []
    for blocks in ({"one": _blocks()[0]}, dict(zip("ab", _blocks(), strict=True))):
        exact = np.hstack([*blocks.values()]).astype(DOUBLE)
        errors.append(np.abs(join_blocks(blocks, SINGLE).gram - exact.T @ exact).max())
    return max(errors)


def test_products_in_double_precision():
    assert _error_of_gram() < 1e-12


def test_products_in_single_precision_are_caught(monkeypatch):
    plant(monkeypatch, feature_steps, "_gram", "if values.dtype == np.float64", "if True")
    assert _error_of_gram() > 1e-8
