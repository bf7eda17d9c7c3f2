import numpy as np

from fillrank.posterior.halves import halved
from helpers.posterior_draws import some_draws

CELLS = np.repeat(np.arange(30), 20), np.tile(np.arange(20), 30)


def in_half(array):
    return np.array_equal(array, array.astype(np.float16))


def test_draws_of_a_noisy_posterior_are_rounded():
    draws = some_draws(30, 20, dtype="float32")
    rounded = halved(draws, *CELLS)
    values, moved = (np.array([draw.at(*CELLS) for draw in each]) for each in (draws, rounded))
    assert all(in_half(draw.left) and in_half(draw.right) for draw in rounded)
    assert all(draw.left.dtype == draw.right.dtype == np.float32 for draw in rounded)
    assert 0 < np.abs(moved - values).max() < 0.05 * values.std(axis=0).mean()
    assert [d.noise.variance for d in rounded] == [d.noise.variance for d in draws]


def test_a_posterior_narrower_than_the_rounding_is_not_rounded():
    draws = some_draws(30, 20, spread=1e-4, dtype="float32")
    assert halved(draws, *CELLS) is draws


def test_sides_of_very_different_size():
    draws = [
        draw._replace(left=np.float32(1e9) * draw.left, right=np.float32(1e-9) * draw.right)
        for draw in some_draws(30, 20, dtype="float32")
    ]
    rounded = halved(draws, *CELLS)
    assert in_half(rounded[0].left)
    np.testing.assert_allclose(rounded[0].at(*CELLS), draws[0].at(*CELLS), atol=0.01)


def test_numbers_beyond_half_precision_are_not_rounded():
    draws = [
        draw._replace(left=np.float32(1e9) * draw.left, right=np.float32(1e9) * draw.right)
        for draw in some_draws(30, 20, dtype="float32")
    ]
    assert halved(draws, *CELLS) is draws


def test_a_factor_of_zeros():
    draws = some_draws(30, 20, dtype="float32")
    for draw in draws:
        draw.left[:, 0] = 0.0
    assert np.isfinite(halved(draws, *CELLS)[0].right).all()


def test_double_precision_and_single_draws_are_not_rounded():
    for draws in (some_draws(30, 20), some_draws(30, 20, n_draws=1, dtype="float32")):
        assert halved(draws, *CELLS) is draws
