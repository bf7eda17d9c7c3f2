"""The steps for features against brute force, with planted bugs.

A check has the rate of false alarms ALARM (``reference.p_values``), shared among its p-values. Planted
bugs must be clear: a p-value below 1e-9.
"""

import numpy as np
import pytest

from fillrank.samplers import feature_steps, gasr
from reference import feature_conditionals as checks
from reference.p_values import ALARM
from reference.planted import plant

BLOCKS = pytest.mark.parametrize("sizes", [(2,), (1, 1)], ids=["one block", "two blocks"])


def _assert_no_alarm(p_values):
    assert min(p_values.values()) > ALARM / len(p_values), p_values


def _assert_clear(p_values):
    assert min(p_values.values()) < 1e-9, p_values


@BLOCKS
def test_half_sweep(sizes):
    """tau, centres, rows, lambda, B, d, and the mean and variance of effects."""
    _assert_no_alarm(checks.half_sweep_draws(sizes))


@BLOCKS
def test_lambda_and_b_together(sizes):
    _assert_no_alarm(checks.joint_draws(sizes))


def test_density_of_lambda_by_numerical_integration():
    assert np.abs(checks.differences_of_density()).max() < 1e-8


# name: (module, function, old, new, where else it is)
HALF_SWEEP = {
    "m for m + p in tau": (
        gasr, "_half_sweep", "_draw_taus(address, R, gamma, n_ball)",
        "_draw_taus(address, R, gamma, n_ball - p)",
    ),
    "m for m + p in d": (
        gasr, "_half_sweep", "_draw_ds(address, R, gamma, n_ball)",
        "_draw_ds(address, R, gamma, n_ball - p)",
    ),
    "tau without the weights": (gasr, "_half_sweep", " + weight_squares(weights, features)[:r]", ""),
    "d without the weights": (gasr, "_half_sweep", "squares[:r] + of_weights[:r]", "squares[:r]"),
    "tau without lambda": (
        gasr, "_half_sweep", "weight_squares(weights, features)[:r]",
        "np.square(weights.B).sum(axis=0)[:r]",
    ),
    "d and effects without lambda": (
        gasr, "_half_sweep", "of_weights = weight_squares(weights, features)",
        "of_weights = np.square(weights.B).sum(axis=0)",
    ),
    "tau by what features explain as well": (
        gasr, "_half_sweep", "sums_about(without_explained(A, shifts), centre", "sums_about(A, centre"
    ),
    "shifts not given to the kernel": (
        gasr, "_half_sweep", "relaxation=relaxation, shifts=shifts", "relaxation=relaxation"
    ),
    "centres by the old weights": (
        gasr, "_half_sweep", "rest = A - explained(features, weights.B, workers)", "pass"
    ),
    "weights of effects times d": (gasr, "_scaled_weights", "B[:, : d.size] *= d", "B[:, :-1] *= d[0]"),
    "effects of n degrees": (gasr, "_draw_effect", "n + sums.n_weights", "n"),
    "effects without the squares of weights": (
        gasr, "_draw_effect", "about_new + sums.weight_square", "about_new"
    ),
    "lambda without its power": (
        feature_steps, "draw_strength", "(s.size * t - np.log(total).sum())", "-np.log(total).sum()"
    ),
    "lambda of one coefficient": (feature_steps, "draw_strength", "0.5 * K * (s", "0.5 * (s"),
    "lambda without its Jacobian": (
        feature_steps, "draw_strength", "0.5 * t - math.log1p", "-0.5 * t - math.log1p"
    ),
    "lambda forgets the fit": (feature_steps, "draw_strength", " + 0.5 * (w / total).sum()", ""),
    "B with the precision of the prior": (
        feature_steps, "draw_weights", "(s + strengths[g])[:", "(0 * s + strengths[g])[:"
    ),
    "B with precision for standard deviation": (
        feature_steps, "draw_weights", "/ np.sqrt(precision)", "/ precision"
    ),
    "B without lambda": (feature_steps, "draw_weights", "(s + strengths[g])[:", "(s + 0.0)[:"),
    "B with the old lambda": (
        feature_steps, "draw_weights", "(s + strengths[g])[:", "(s + weights.strengths[g])[:"
    ),
    "the block itself left in the rest": (
        feature_steps, "draw_weights", "products[block] + s[:, np.newaxis] * B[block]",
        "products[block]",
    ),
}  # fmt: skip
INTO = {feature_steps: (gasr,), gasr: ()}


EVERY_TIME = {
    "m for m + p in tau",
    "m for m + p in d",
    "d and effects without lambda",
    "shifts not given to the kernel",
    "effects of n degrees",
    "lambda without its power",
    "B with the precision of the prior",
}
assert HALF_SWEEP.keys() >= EVERY_TIME


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in EVERY_TIME else [pytest.mark.slow])
        for name in HALF_SWEEP
    ],
)
def test_brute_force_catches_in_a_half_sweep(monkeypatch, name):
    module, function, old, new = HALF_SWEEP[name]
    plant(monkeypatch, module, function, old, new, into=INTO[module])
    n = 1000 if name == "m for m + p in d" else 400
    _assert_clear(checks.half_sweep_draws((2,), n))


def test_brute_force_catches_a_stale_block(monkeypatch):
    """The second of two blocks, by what the first one was."""
    plant(
        monkeypatch, feature_steps, "draw_weights", "products -= features.gram[:, block]",
        "products = products - 0.0 * features.gram[:, block]", into=(gasr,),
    )  # fmt: skip
    _assert_clear(checks.half_sweep_draws((1, 1)))


def test_brute_force_catches_a_root_that_is_not_transposed(monkeypatch):
    plant(monkeypatch, feature_steps, "draw_weights", "solve(root.T, z.T)", "solve(root, z.T)")
    _assert_clear(checks.joint_draws((2,)))


def test_numerical_integration_catches_a_missing_power(monkeypatch):
    plant(
        monkeypatch, feature_steps, "draw_strength", "(s.size * t - np.log(total).sum())",
        "-np.log(total).sum()",
    )  # fmt: skip
    assert np.abs(checks.differences_of_density()).max() > 1.0
