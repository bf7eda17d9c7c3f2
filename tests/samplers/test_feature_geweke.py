"""Geweke's joint test of GASR and BPMF with features of rows and columns, in several blocks.

A check has the rate of false alarms ALARM (``reference.p_values``), shared among its scores. Planted
bugs must be clear: |z| > 6. Those that are caught every time are, from a third of the chains or fewer.
"""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fillrank.samplers import bpmf, feature_steps, gasr, model
from reference import bpmf_geweke, geweke_cases
from reference.feature_cases import make_sides, zero_features
from reference.geweke import worst
from reference.p_values import limit_of
from reference.planted import plant
from reference.posterior_chains import difference_scores, posterior_statistics
from reference.small_tables import MASK, Table

JOINT = pytest.mark.parametrize("joint", [True, False], ids=["joint", "entries"])
FULL = pytest.mark.parametrize("full", [False, True], ids=["missing cells", "complete"])
# As many features on both sides, so that code that mixes up the sides runs through.
BPMF_MODEL = bpmf_geweke.Model(features=make_sides(bpmf_geweke.TABLE.shape, (2, 1), (1, 1), seed=5))
BPMF_EQUAL = bpmf_geweke.Model(features=make_sides(bpmf_geweke.TABLE.shape, (1, 1), (1, 1), seed=6))


@pytest.fixture(autouse=True)
def one_thread_of_linear_algebra():
    """Matrices of 2 x 2 are no work for several threads."""
    with threadpool_limits(1):
        yield


def _assert_no_alarm(scores):
    name, size = worst(scores)
    assert size < limit_of(len(scores)), f"{name}: z = {size:.1f}"


def _assert_clear(scores):
    name, size = worst(scores)
    assert size > 6.0, f"missed; the largest is {name}: z = {size:.1f}"


@FULL
def test_gasr(full):
    _assert_no_alarm(geweke_cases.mixture_with_features(n_chains=400, length=20, full=full))


@FULL
def test_gasr_without_effects(full):
    _assert_no_alarm(geweke_cases.factors_with_features(n_chains=300, length=20, full=full))


def test_gasr_with_features_of_rows_alone():
    _assert_no_alarm(geweke_cases.mixture_with_features(n_chains=300, length=20, rows_only=True))


@JOINT
def test_bpmf(joint):
    _assert_no_alarm(bpmf_geweke.geweke_scores(joint, BPMF_MODEL, n_chains=300, length=15))


def test_bpmf_on_a_complete_table():
    table = bpmf_geweke.FULL_TABLE
    _assert_no_alarm(
        bpmf_geweke.geweke_scores(False, BPMF_MODEL, n_chains=300, length=15, table=table)
    )


@pytest.mark.slow
@FULL
def test_gasr_long_chains(full):
    scores = geweke_cases.mixture_with_features(n_chains=400, length=200, seed=1, full=full)
    _assert_no_alarm(scores)


@pytest.mark.slow
def test_gasr_without_effects_long_chains():
    _assert_no_alarm(geweke_cases.factors_with_features(n_chains=400, length=200, seed=1))


@pytest.mark.slow
@JOINT
def test_bpmf_long_chains(joint):
    _assert_no_alarm(bpmf_geweke.geweke_scores(joint, BPMF_MODEL, n_chains=400, length=200, seed=1))


# Features that are all 0


def test_bpmf_with_features_of_zeros_has_the_law_of_none():
    zeros = bpmf_geweke.Model(features=zero_features(bpmf_geweke.TABLE.shape, 2, 3))
    scores = bpmf_geweke.geweke_scores(
        False, zeros, n_chains=300, length=15, law=bpmf_geweke.SAMPLED
    )
    assert not any("weights" in name for name in scores)
    _assert_no_alarm(scores)


def _posterior_of_zeros(features=None, n_more=0, n=12_000):
    """Statistics of the posterior of a 5 x 4 table, with features or ``n_more`` rows without entries."""
    rng = np.random.default_rng(5)
    table = Table(np.vstack([MASK, np.zeros((n_more, 4), dtype=bool)]))
    x = np.outer(rng.standard_normal(5), rng.standard_normal(4))[MASK]
    x = x + 0.3 * rng.standard_normal(x.size)
    more = {} if features is None else {"features": features.both}
    return posterior_statistics(
        gasr.sweep, table, x, r=2, n=n, seed=n_more, n_rows=5,
        model={"a": 3.0, "b": 2.0, "noise_variance": 0.1}, **more,
    )  # fmt: skip


def test_gasr_with_features_of_zeros_has_the_law_of_as_many_empty_rows():
    """The weights of p features are p entries of the ball, as those of p rows without entries are."""
    zeros = _posterior_of_zeros(zero_features(MASK.shape, 3, 0))
    scores = difference_scores(zeros, _posterior_of_zeros(n_more=3))
    name, size = worst(scores)
    assert size < limit_of(len(scores), degrees=39), f"{name}: z = {size:.1f}"


def test_a_ball_without_the_weights_is_caught_by_zeros(monkeypatch):
    rows = _posterior_of_zeros(n_more=3)
    plant(monkeypatch, gasr, "_half_sweep", "n + p + 1 if context.options.centres else n + p", "n")
    _assert_clear(difference_scores(_posterior_of_zeros(zero_features(MASK.shape, 3, 0)), rows))


# Planted bugs

GASR_BUGS = {
    "m for m + p in tau": (
        gasr, "_half_sweep", "_draw_taus(address, R, gamma, n_ball)",
        "_draw_taus(address, R, gamma, n_ball - p)",
    ),
    "m for m + p in d": (
        gasr, "_half_sweep", "_draw_ds(address, R, gamma, n_ball)",
        "_draw_ds(address, R, gamma, n_ball - p)",
    ),
    "lambda without its power": (
        feature_steps, "draw_strength", "(s.size * t - np.log(total).sum())", "-np.log(total).sum()"
    ),
    "effects of n degrees": (gasr, "_draw_effect", "n + sums.n_weights", "n"),
    "effects without the squares of weights": (
        gasr, "_draw_effect", "about_new + sums.weight_square", "about_new"
    ),
    "B with twice the squares of features": (
        feature_steps, "draw_weights", "(s + strengths[g])[:", "(2 * s + strengths[g])[:"
    ),
    "shifts not given to the kernel": (
        gasr, "_half_sweep", "relaxation=relaxation, shifts=shifts", "relaxation=relaxation"
    ),
    "weights of the columns for the rows": (
        gasr, "_row_side", "state.row_weights", "state.column_weights"
    ),
    "weights of the rows for the columns": (
        gasr, "_column_side", "state.column_weights", "state.row_weights"
    ),
    "weights of the columns lost": (gasr, "sweep", "column_weights=columns.weights,", ""),
    "lambda not multiplied in R": (
        feature_steps, "weight_squares", "rooted(weights, features)", "weights.B"
    ),
    "the second block stale": (
        feature_steps, "draw_weights", "products -= features.gram[:, block]",
        "products = products - 0.0 * features.gram[:, block]",
    ),
    "blocks with the same normals": (
        feature_steps, "draw_weights", "_WEIGHT_ROW + block.start", "_WEIGHT_ROW"
    ),
}  # fmt: skip
INTO = {feature_steps: (gasr, bpmf), gasr: (), bpmf: (), model: ()}


def _parametrize(bugs, every_time):
    """Run the bugs named in ``every_time`` always, with few chains, the others among the slow tests."""
    assert set(every_time) <= set(bugs)
    parameters = [
        pytest.param(bug, 100, id=bug)
        if bug in every_time
        else pytest.param(bug, 300, id=bug, marks=pytest.mark.slow)
        for bug in bugs
    ]
    return pytest.mark.parametrize(("name", "n_chains"), parameters)


def _plant(monkeypatch, module, function, old, new):
    plant(monkeypatch, module, function, old, new, into=INTO[module])


@_parametrize(
    GASR_BUGS,
    [
        "m for m + p in tau",
        "m for m + p in d",
        "lambda without its power",
        "effects without the squares of weights",
        "B with twice the squares of features",
        "shifts not given to the kernel",
        "weights of the columns for the rows",
        "lambda not multiplied in R",
    ],
)
def test_geweke_catches_in_gasr(monkeypatch, name, n_chains):
    _plant(monkeypatch, *GASR_BUGS[name])
    _assert_clear(geweke_cases.mixture_with_features(n_chains=n_chains, length=15))


BPMF_BUGS = {
    "degrees without the features": (
        bpmf, "draw_factor_prior", "prior.degrees + n + len(roots)", "prior.degrees + n"
    ),
    "scatter without the weights": (bpmf, "draw_factor_prior", "+ roots.T @ roots", ""),
    "weights without lambda in the scatter": (
        bpmf, "_half_sweep", "rooted(weights, features)", "weights.B"
    ),
    "scatter of what features explain as well": (
        bpmf, "_half_sweep", "without_explained(side.own, shifts),", "side.own,"
    ),
    "shifts not given to the kernel": (
        bpmf, "_draw_entries", "np.ones(rank), shifts=shifts", "np.ones(rank)"
    ),
    "half of the shifts": (
        bpmf, "_draw_entries", "multiplied(half.shifts, inverse", "multiplied(half.shifts, 0.5 * inverse"
    ),
    "weights of the columns for the rows": (
        bpmf, "sweep", "left,\n        state.row_weights", "left,\n        state.column_weights"
    ),
    "weights by the old rows": (
        bpmf, "_half_sweep", "rest = without_explained(own,", "rest = without_explained(side.own,"
    ),
    "root not transposed": (
        feature_steps, "draw_weights", "solve(root.T, z.T)", "solve(root, z.T)"
    ),
    "lambda by another root": (
        feature_steps, "draw_weights", "T @ root, address", "T @ root.T, address"
    ),
}  # fmt: skip


@_parametrize(
    BPMF_BUGS,
    [
        "degrees without the features",
        "scatter without the weights",
        "weights without lambda in the scatter",
        "shifts not given to the kernel",
        "weights of the columns for the rows",
    ],
)
def test_geweke_catches_in_bpmf(monkeypatch, name, n_chains):
    _plant(monkeypatch, *BPMF_BUGS[name])
    _assert_clear(bpmf_geweke.geweke_scores(False, BPMF_EQUAL, n_chains=n_chains, length=15))


def test_geweke_catches_shifts_that_joint_draws_do_not_get(monkeypatch):
    old = "half.prior.T @ half.prior.T.T, half.shifts"
    plant(monkeypatch, bpmf, "_draw_jointly", old, "half.prior.T @ half.prior.T.T")
    _assert_clear(bpmf_geweke.geweke_scores(True, BPMF_EQUAL, n_chains=100, length=15))


def test_geweke_catches_shifts_that_a_complete_table_does_not_get(monkeypatch):
    plant(monkeypatch, model, "_row_prior", "prior.relaxation, prior.shifts", "prior.relaxation")
    _assert_clear(geweke_cases.mixture_with_features(n_chains=100, length=15, full=True))
