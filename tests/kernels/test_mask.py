"""Products with the mask of the observed cells, against dense products."""

import numpy as np
import pytest

from fillrank.kernels.mask import mask_product
from fillrank.runtime.threads import Workers
from reference.small_tables import table_and_values


def _entries(mask):
    return table_and_values(mask, np.zeros(mask.shape))[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 7])
def test_mask_product(width, dtype):
    rng = np.random.default_rng(0)
    mask = rng.random((60, 40)) < 0.3
    mask[5], mask[6], mask[:, 3] = False, True, False
    data = _entries(mask)
    block = rng.standard_normal((40, width)).astype(dtype)
    got = mask_product(data.rows.pointers, data.rows.indices, block, Workers(1))
    assert got.dtype == dtype
    tolerance = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(got, mask @ block.astype(np.float64), rtol=0, atol=tolerance)
    np.testing.assert_array_equal(got[5], 0.0)
    lines = rng.standard_normal((60, width)).astype(dtype)
    got = mask_product(data.columns.pointers, data.columns.indices, lines, Workers(1))
    np.testing.assert_allclose(got, mask.T @ lines.astype(np.float64), rtol=0, atol=tolerance)


def test_same_bits_on_any_number_of_threads():
    rng = np.random.default_rng(1)
    data = _entries(rng.random((500, 90)) < 0.5)
    block = rng.standard_normal((90, 11)).astype(np.float32)
    outcomes = []
    for n_threads in (1, 2, 4):
        with Workers(n_threads) as workers:
            outcomes.append(mask_product(data.rows.pointers, data.rows.indices, block, workers))
    for other in outcomes[1:]:
        np.testing.assert_array_equal(other, outcomes[0])
