import numpy as np
import pytest

from fillrank.posterior import mean as module
from fillrank.posterior.mean import mean_draw
from fillrank.samplers.model import Noise
from helpers.posterior_draws import some_draws
from reference.planted import plant


def dense_mean(draws):
    return np.mean([draw.left @ draw.right.T for draw in draws], axis=0)


@pytest.mark.parametrize(
    ("m", "n", "k"), [(90, 64, 3), (64, 90, 3), (5, 5, 3), (1, 9, 3), (80, 99, 40)]
)
def test_exact_if_a_side_is_small(m, n, k):
    draws = some_draws(m, n, k)
    mean = mean_draw(draws)
    assert mean.left.shape[1] == min(m, n)
    np.testing.assert_allclose(mean.left @ mean.right.T, dense_mean(draws), atol=1e-12)
    assert mean.noise.variance == pytest.approx(np.mean([draw.noise.variance for draw in draws]))


@pytest.mark.parametrize(("m", "n", "k"), [(160, 150, 3), (150, 160, 3), (300, 250, 40)])
def test_close_to_the_best_approximation_of_its_rank(m, n, k):
    draws = some_draws(m, n, k, n_draws=60)
    width = max(2 * k, 64)
    mean, expected = module.mean_draw(draws), dense_mean(draws)
    assert mean.left.shape == (m, width)
    assert mean.right.shape == (n, width)
    best = np.sqrt((np.linalg.svd(expected)[1][width:] ** 2).sum())
    assert np.linalg.norm(mean.left @ mean.right.T - expected) < 1.25 * best


def test_a_missing_subspace_iteration_is_detected(monkeypatch):
    plant(monkeypatch, module, "_average", "W = _average_product(turned, Q)", "pass")
    with pytest.raises(AssertionError):
        test_close_to_the_best_approximation_of_its_rank(
            160, 150, 3
        )  # it is 36 times as far off as the best


def test_what_is_left_out_is_below_the_monte_carlo_error():
    spread, n_draws = 0.1, 50
    draws = some_draws(180, 170, n_draws=n_draws, spread=spread)
    mean = mean_draw(draws)
    values = np.array([draw.left @ draw.right.T for draw in draws])
    left_out = np.sqrt(np.mean((mean.left @ mean.right.T - values.mean(axis=0)) ** 2))
    monte_carlo = np.sqrt(np.mean(values.var(axis=0) / n_draws))
    assert left_out < monte_carlo


def test_without_noise_it_is_as_exact_as_the_numbers():
    draws = some_draws(190, 170, spread=0.0, dtype="float32")
    mean = mean_draw(draws)
    assert mean.left.dtype == mean.right.dtype == np.float32
    np.testing.assert_allclose(
        mean.left @ mean.right.T, draws[0].left @ draws[0].right.T, atol=1e-5
    )


def test_a_single_draw_is_its_own_mean():
    (draw,) = some_draws(10, 9, n_draws=1)
    mean = mean_draw([draw])
    assert mean.left is draw.left
    assert mean.right is draw.right
    assert mean.noise is draw.noise


def test_noise_is_averaged_by_cells():
    """sigma^2 and the precisions of columns share a scale that may differ by orders of magnitude."""
    rng = np.random.default_rng(0)
    draws = []
    for draw in some_draws(10, 9, n_draws=20):
        scale = 10.0 ** rng.normal(0, 3)
        rows, columns = rng.gamma(5.0, 0.2, 10), rng.gamma(5.0, 0.2, 9)
        draws.append(draw._replace(noise=Noise(scale * rng.gamma(5.0), rows, scale * columns)))
    cells = np.ix_(range(10), range(9))
    variances = np.mean([draw.noise.at(*cells) for draw in draws], axis=0)
    noise = mean_draw(draws).noise
    assert noise.average() == pytest.approx(variances.mean())
    np.testing.assert_allclose(noise.row_scales(), np.sqrt(variances.mean(axis=1)))
    np.testing.assert_allclose(noise.column_scales(), np.sqrt(variances.mean(axis=0)))


def test_a_mean_has_no_weights_of_features():
    """The factors of an average are not in the coordinates of the weights."""
    draws = [
        draw._replace(row_weights=np.ones((2, 3)), column_weights=np.ones((4, 3)))
        for draw in some_draws(10, 9)
    ]
    for some in (draws, draws[:1]):
        mean = mean_draw(some)
        assert mean.row_weights.shape == mean.column_weights.shape == (0, 0)
