import numpy as np
import pytest

from fillrank.data.entries import Entries
from fillrank.posterior.fold_in import complete_rows, fold_in_rows
from fillrank.posterior.posterior import Posterior, Units
from fillrank.samplers.draw import Draw


def draw(m=30, n=8, r=3, seed=0, noise=0.2):
    """A draw as the sampler keeps it: ones beside the row effects and beside the column effects."""
    rng = np.random.default_rng(seed)
    left = np.column_stack([rng.normal(0.5, 1, (m, r)), rng.normal(0, 0.7, m), np.ones(m)])
    right = np.column_stack([rng.normal(0, 1, (n, r)), np.ones(n), rng.normal(0, 0.7, n)])
    return Draw(left, right, noise)


ENTRIES = Entries(
    np.array([0, 3, 3, 5]), np.array([0, 4, 7, 1, 2]), np.array([1.0, -2.0, 0.5, 3.0, 0.1])
)


def regression(kept, columns, values):
    """The posterior mean of a row by the joint Gaussian of (coefficients, values).

    The covariance of m rows in k columns, its off-diagonal part shrunk by m / (m + k).
    """
    m, width = kept.left.shape
    mean, covariance = kept.left.mean(axis=0), np.cov(kept.left.T, bias=True)
    covariance *= np.where(np.eye(width), 1.0, m / (m + width))
    F = kept.right[columns]
    cross = covariance @ F.T
    total = F @ cross + kept.noise_variance * np.eye(len(columns))
    return mean + cross @ np.linalg.solve(total, values - F @ mean)


def test_rows_are_gaussian_regressions():
    kept = draw()
    rows = fold_in_rows(kept, ENTRIES)
    np.testing.assert_allclose(rows[0], regression(kept, [0, 4, 7], [1.0, -2.0, 0.5]))
    np.testing.assert_allclose(rows[1], kept.left.mean(axis=0))
    np.testing.assert_allclose(rows[2], regression(kept, [1, 2], [3.0, 0.1]))
    np.testing.assert_array_equal(rows[:, -1], 1.0)


def test_turned_factors_give_the_same_predictions():
    """A method that does not fix the basis of its factors, as BPMF, does not depend on it.

    With many rows, so that the shrinkage of correlations, which does, is small.
    """
    kept = draw(m=100_000)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    turned = Draw(kept.left @ turn, kept.right @ turn, kept.noise_variance)
    predictions = (fold_in_rows(w, ENTRIES) @ w.right.T for w in (kept, turned))
    np.testing.assert_allclose(*predictions, atol=1e-3)


@pytest.mark.parametrize("noise", [1e-10, 1e10])
def test_extreme_noise(noise):
    rows = fold_in_rows(draw(noise=noise), ENTRIES)
    assert np.isfinite(rows).all()


def test_a_component_that_no_row_has_stays_nothing():
    kept = draw()
    kept.left[:, 1] = 0.0
    assert np.abs(fold_in_rows(kept, ENTRIES)[:, 1]).max() < 1e-12


def test_means_over_draws_in_the_units_of_the_data():
    kept = [draw(seed=seed) for seed in range(4)]
    posterior = Posterior(kept, Units(10.0, 2.0, None))
    columns = np.array([5, 3, 6])
    entries = Entries(np.array([0, 2]), np.array([0, 2]), np.array([12.0, 7.0]))
    got = complete_rows(posterior, entries, columns)
    expected = np.mean(
        [regression(w, [5, 6], [1.0, -1.5]) @ w.right[columns].T for w in kept],
        axis=0,
    )
    np.testing.assert_allclose(got, [10 + 2 * expected])
    bounded = posterior._replace(units=Units(10.0, 2.0, (9.5, 10.5)))
    np.testing.assert_allclose(complete_rows(bounded, entries, columns), np.clip(got, 9.5, 10.5))
