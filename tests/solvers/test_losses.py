"""The losses: values, derivatives, bounds, and thresholds of ordered levels."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from fillrank.solvers.losses import Absolute, Huber, Logistic, Ordered, settle
from helpers.loss_cases import ONE
from reference import loss_twins

THRESHOLDS = np.array([-1.3, -0.2, 0.9])
LOSSES = {"logistic": Logistic(), "ordered": Ordered(THRESHOLDS)}
BOTH = pytest.mark.parametrize("kind", [*LOSSES])


def grid(kind, reach=6.0):
    """All levels at signals between the ends."""
    z = np.linspace(-reach, reach, 121)
    x = np.arange(2.0 if kind == "logistic" else 4.0)
    return np.repeat(x, z.size), np.tile(z, x.size)


def thresholds_of(kind):
    return THRESHOLDS if kind == "ordered" else ()


@BOTH
def test_values_are_log_likelihoods(kind):
    x, z = grid(kind)
    expected = loss_twins.loss(kind, x, z, thresholds_of(kind))
    np.testing.assert_allclose(LOSSES[kind].evaluate(x, z, ONE).values, expected, rtol=1e-9)


def test_absolute_errors_and_hubers_loss():
    x, z = np.zeros(5), np.array([-3.0, -0.5, 0.0, 0.5, 3.0])
    np.testing.assert_array_equal(Absolute().evaluate(x, z, ONE).values, np.abs(z))
    np.testing.assert_array_equal(Absolute().evaluate(x, z, ONE).slopes, np.sign(z))
    expected = [2.5, 0.125, 0.0, 0.125, 2.5]
    np.testing.assert_allclose(Huber().evaluate(x, z, ONE).values, expected)


@pytest.mark.parametrize("kind", [*LOSSES, "huber"])
def test_slopes_are_derivatives_within_the_curvature(kind):
    loss = LOSSES.get(kind, Huber())
    x, z = grid(kind)
    z, h = z + 0.013, 1e-5  # away from the kinks of Huber's slope
    ahead, here, behind = (loss.evaluate(x, z + d, ONE) for d in (h, 0.0, -h))
    np.testing.assert_allclose(here.slopes, (ahead.values - behind.values) / (2 * h), atol=1e-8)
    second = (ahead.slopes - behind.slopes) / (2 * h)
    assert second.min() >= -1e-8
    assert 0.95 * loss.curvature < second.max() <= loss.curvature + 1e-8


@BOTH
def test_far_signals_have_finite_losses(kind):
    x, z = grid(kind, reach=300.0)
    values, slopes = LOSSES[kind].evaluate(x, z, ONE)
    assert np.isfinite(values).all()
    assert np.isfinite(slopes).all()
    assert (np.diff(slopes.reshape(-1, 121), axis=1) >= -1e-6 * np.abs(slopes).max()).all()


@BOTH
def test_tangents_give_the_conjugate(kind):
    """f*(f'(z)) = z f'(z) - f(z), against a numerical maximum of y f'(z) - f(y)."""
    loss = LOSSES[kind]
    x, z = grid(kind, reach=2.0)
    values, slopes = loss.evaluate(x[::10], z[::10], ONE)
    for level, at, value, slope in zip(x[::10], z[::10], values, slopes, strict=True):

        def negative(y, level=level, slope=slope):
            return loss.evaluate(np.array([level]), np.array([y]), ONE).values[0] - slope * y

        found = minimize_scalar(negative, bounds=(at - 4, at + 4.5), method="bounded").fun
        assert -found == pytest.approx(slope * at - value, abs=1e-7)


@BOTH
def test_smallest_losses(kind):
    loss = LOSSES[kind]
    z = np.linspace(-40, 40, 80_001)
    for level in range(2 if kind == "logistic" else 4):
        x = np.full(z.size, float(level))
        smallest = loss.evaluate(x, z, ONE).values.min()
        assert loss.smallest(x[:3]) == pytest.approx(3 * smallest, abs=1e-6)


def test_newton_step_against_differences():
    """One step of Newton's method with derivatives of the sum of the twin's losses."""
    rng = np.random.default_rng(0)
    x, z = rng.integers(0, 4, 60).astype(float), rng.normal(size=60)
    loss, h = Ordered(THRESHOLDS), 1e-4

    def total(thresholds):
        levels = np.arange(4.0)
        own = loss_twins.loss("ordered", x, z, thresholds).sum()
        return own + 0.5 * loss_twins.loss("ordered", levels, 0 * levels, thresholds).sum()

    unit = h * np.eye(3)
    gradient = np.array([total(THRESHOLDS + u) - total(THRESHOLDS - u) for u in unit]) / (2 * h)
    hessian = np.array(
        [
            [
                total(THRESHOLDS + u + v) - total(THRESHOLDS + u - v)
                - total(THRESHOLDS - u + v) + total(THRESHOLDS - u - v)
                for v in unit
            ]
            for u in unit
        ]
    ) / (4 * h**2)  # fmt: skip
    assert loss.total(x, z, ONE) == pytest.approx(total(THRESHOLDS))
    step, decrease = loss._newton_step(x, z)
    np.testing.assert_allclose(step, -np.linalg.solve(hessian, gradient), rtol=1e-5)
    assert decrease == pytest.approx(-0.5 * gradient @ step, rel=1e-5)


def test_settled_thresholds_are_the_best():
    rng = np.random.default_rng(1)
    x, z = rng.integers(0, 4, 200).astype(float), rng.normal(size=200)
    loss = settle(Ordered(np.array([-3.0, 2.9, 3.0])), x, z, ONE)
    best = loss.total(x, z, ONE)
    for _ in range(50):
        moved = loss._replace(thresholds=loss.thresholds + rng.normal(0, 0.01, 3))
        assert moved.total(x, z, ONE) >= best


def test_a_level_without_entries_keeps_its_interval():
    x, z = np.array([0.0, 0.0, 2.0, 2.0] * 20), np.zeros(80)
    thresholds = settle(Ordered(np.array([-0.5, 0.5])), x, z, ONE).thresholds
    assert 0 < np.diff(thresholds)[0] < 0.1
