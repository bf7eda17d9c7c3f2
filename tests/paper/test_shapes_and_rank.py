import numpy as np
import pytest

from fillrank.paper import sweeps
from fillrank.paper.sweeps import rank_by_ratio, shape_of
from reference.p_values import limit_of
from reference.planted import plant


def scores(n, n_sets=4000):
    """z-scores of norm and inner product of two vectors, uniform in the ball of R^n."""
    rng = np.random.default_rng(n)
    g = rng.standard_normal((n_sets, n, 2))
    u = g / np.linalg.norm(g, axis=1, keepdims=True) * rng.random((n_sets, 1, 2)) ** (1 / n)
    shapes = np.array([shape_of(vectors) for vectors in u])
    error = shapes.std(axis=0) / np.sqrt(n_sets)
    return np.abs(shapes.mean(axis=0) - sweeps.shape_in_ball(n)) / error


# False alarms: ALARM for each n.
@pytest.mark.parametrize("n", [2, 3, 40])
def test_reference_lines_are_those_of_uniform_vectors(n):
    assert scores(n).max() < limit_of(2)


BUGS = {
    "a norm of the sphere": ("norm = n / (n + 1)", "norm = 1.0"),
    "one norm, not two": ("norm**2 * along", "norm * along"),
    "a Gaussian's direction": ("np.exp(gammaln(n / 2) - gammaln((n + 1) / 2))", "np.sqrt(2 / n)"),
}


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_wrong_reference_lines_are_caught(monkeypatch, bug):
    plant(monkeypatch, sweeps, "shape_in_ball", *bug)
    assert scores(3).max() > limit_of(2)


def test_shapes_are_means_over_columns_and_pairs():
    vectors = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, -0.5], [0.0, 0.0, 0.0]])
    norm, inner = shape_of(vectors.astype(np.float32))
    assert norm == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert inner == pytest.approx(0.25 / 3)


def test_the_rule_of_the_paper():
    # Ascending 1, 2, 30, 40: w = 3 (from 1), rank r - w + 1 = 2.
    assert rank_by_ratio(np.array([30.0, 1.0, 40.0, 2.0])) == 2
    assert rank_by_ratio(np.array([1.0, 1.5])) == 1
    assert rank_by_ratio(np.array([1e-9, 1.0, 2.0, 3.0])) == 3
