"""The steps of the noise and of the hyperparameters against brute force, with planted bugs.

A check has the rate of false alarms ALARM (``reference.p_values``), shared among its p-values or scores.
Planted bugs must be clear: a p-value below 1e-9, or |z| > 6.
"""

import numpy as np
import pytest

from fillrank.noise import precisions
from fillrank.samplers import gasr, noise_steps
from fillrank.samplers.noise_steps import NoiseModel, first_noise
from reference import noise_conditionals as checks
from reference.geweke import worst
from reference.p_values import ALARM, limit_of
from reference.planted import plant

MODELS = {
    "equal": NoiseModel(),
    "rows": NoiseModel(rows=True),
    "columns": NoiseModel(columns=True),
    "both": NoiseModel(rows=True, columns=True),
    "Student-t": NoiseModel(robust=True),
    "all": NoiseModel(rows=True, columns=True, robust=True),
    "columns, resolution": NoiseModel(columns=True, resolution=0.5),
    "rows, resolution": NoiseModel(rows=True, resolution=0.5),
    "all, resolution": NoiseModel(rows=True, columns=True, robust=True, resolution=0.5),
    "columns, some fixed": NoiseModel(columns=True, fixed=np.array([1, 3])),
    "both, some fixed": NoiseModel(rows=True, columns=True, fixed=np.array([1, 3])),
    "both, one free, resolution": NoiseModel(
        rows=True, columns=True, resolution=0.5, fixed=np.array([0, 1, 3])
    ),
    "rows, all columns fixed": NoiseModel(rows=True, columns=True, fixed=np.arange(4)),
    "all, some fixed": NoiseModel(rows=True, columns=True, robust=True, fixed=np.array([2])),
}


def _assert_no_alarm(p_values):
    assert min(p_values.values()) > ALARM / len(p_values), p_values


def _assert_clear(p_values):
    assert min(p_values.values()) < 1e-9, p_values


def test_precisions_given_residuals():
    _assert_no_alarm(checks.precision_conditionals())


def test_degrees_of_freedom_on_the_grid():
    _assert_no_alarm(checks.degrees_of_freedom())


def test_common_scale_of_variance_and_precisions():
    _assert_no_alarm(checks.common_scale())


def test_variance_with_unequal_columns():
    _assert_no_alarm(checks.level_draws())


def test_common_scale_of_variance_and_rows_in_a_sweep():
    _assert_no_alarm(checks.row_scale_draws())


def test_hyperparameters_given_gamma():
    _assert_no_alarm(checks.hyperparameter_draws())


def test_shift_of_the_effects():
    _assert_no_alarm(checks.effect_shifts())


@pytest.mark.parametrize("name", MODELS)
def test_all_steps_of_the_noise_leave_its_distribution_invariant(name):
    """Geweke's test of the noise alone, with weights of entries and an empty row."""
    scores = checks.noise_scores(MODELS[name], n=1500, length=2)
    name, size = worst(scores)
    assert size < limit_of(len(scores)), f"{name}: z = {size:.1f}"


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_all_steps_of_the_noise_many_times(name):
    scores = checks.noise_scores(MODELS[name], n=10_000, length=6, seed=1)
    name, size = worst(scores)
    assert size < limit_of(len(scores)), f"{name}: z = {size:.1f}"


def test_noise_that_does_not_differ_by_column_starts_at_one_variance():
    """The start's precisions of columns would otherwise stay in the state, for the columns alone."""
    guess = np.array([0.5, 4.0, 1.0])
    equal = first_noise(0.2, 4, guess, NoiseModel(rows=True)).cells
    assert (equal.columns == 1.0).all()
    assert equal.variance == pytest.approx(0.2 * np.mean(1.0 / guess))
    unequal = first_noise(0.2, 4, guess, NoiseModel(columns=True)).cells
    np.testing.assert_array_equal(unequal.columns, guess)
    assert unequal.variance == 0.2


BUGS = {
    "rate without nu": (
        checks.precision_conditionals, precisions, "_draw_precisions",
        "0.5 * (degrees + sums.squares[i] / variance)", "0.5 * (1e-3 + sums.squares[i] / variance)",
    ),
    "n for n + nu": (
        checks.precision_conditionals, precisions, "_draw_precisions",
        "0.5 * (degrees + sums.counts[i])", "0.5 * max(sums.counts[i], 1)",
    ),
    "squares without the variance": (
        checks.precision_conditionals, precisions, "_draw_precisions",
        "sums.squares[i] / variance", "sums.squares[i]",
    ),
    "resolution without its square": (
        checks.precision_conditionals, noise_steps, "_distinguished",
        "model.resolution**2", "model.resolution",
    ),
    "resolution once a column": (
        checks.precision_conditionals, noise_steps, "_distinguished", "**2 * counts", "**2",
    ),
    "grid without its normaliser": (
        checks.degrees_of_freedom, precisions, "draw_degrees", "n * _NORMALISER + ", "",
    ),
    "sign of the sum": (
        checks.degrees_of_freedom, precisions, "draw_degrees", "(log_total - total)",
        "(log_total - total / n)",
    ),
    "no Jacobian of sigma^2": (
        checks.common_scale, precisions, "draw_common_scale", "* degrees + 1.0)", "* degrees)",
    ),
    "no prior of sigma": (
        checks.common_scale, precisions, "draw_common_scale",
        "- math.log1p(c * relative_variance)", "",
    ),
    "no resolution in the scale": (
        checks.common_scale, precisions, "draw_common_scale", "- resolved / c", "",
    ),
    "a without its normaliser": (
        checks.hyperparameter_draws, gasr, "draw_hyperparameters",
        "(a * math.log(b) - math.lgamma(a))", "(a * math.log(b))",
    ),
    "a without its prior": (
        checks.hyperparameter_draws, gasr, "draw_hyperparameters",
        "- 0.5 * (t / _LOG_A_SD) ** 2", "",
    ),
    "b of one rate": (
        checks.hyperparameter_draws, gasr, "draw_hyperparameters", "_B_SHAPE + r * a", "_B_SHAPE + a",
    ),
    "b without its prior": (
        checks.hyperparameter_draws, gasr, "draw_hyperparameters",
        "_B_SHAPE / (_B_MEAN * math.sqrt(n_cells)) + total", "total",
    ),
    "effects shifted the other way": (
        checks.effect_shifts, gasr, "_shift_effects", "columns.mean - rows.mean",
        "rows.mean - columns.mean",
    ),
    "both effects shifted one way": (
        checks.effect_shifts, gasr, "_shift_effects", "right[:, r + 1] -= t", "right[:, r + 1] += t",
    ),
    "variance of the shift": (
        checks.effect_shifts, gasr, "_shift_effects", "PRIOR_SCALE / math.sqrt(2.0)", "PRIOR_SCALE",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    check, module, function, old, new = BUGS[name]
    plant(monkeypatch, module, function, old, new, into=(noise_steps,))
    _assert_clear(check())


LEVEL_BUGS = {
    "squares without the precisions of columns": (
        checks.level_draws, "draw_level", "cells.columns[free] @ _dist", "np.ones(free.size) @ _dist"
    ),
    "resolution forgotten in the variance": (
        checks.level_draws, "draw_level", "_distinguished(sums.squares, model, counts)",
        "sums.squares",
    ),
    "columns for entries": (
        checks.level_draws, "draw_level", "n_entries = int(counts[free].sum())", "n_entries = free.size"
    ),
    "resolution forgotten in the scale of rows": (
        checks.row_scale_draws, "draw_level", "0.5 * added / state.cells.variance", "0.0"
    ),
    "precisions not scaled": (
        checks.row_scale_draws, "_draw_row_side", "rows = c * cells.rows", "rows = cells.rows"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEVEL_BUGS)
def test_a_planted_bug_in_the_level_is_caught(monkeypatch, name):
    check, *bug = LEVEL_BUGS[name]
    plant(monkeypatch, noise_steps, *bug)
    _assert_clear(check())


def test_rows_share_no_scale_with_the_variance_if_columns_are_fixed():
    """Their noise would change with it."""
    state = checks.make_noise(0.3, (2, 3), [0.4, 1.3], [0.2, 1.0, 6.0])
    model = NoiseModel(rows=True, columns=True, fixed=np.array([1]))
    counts = np.array([2, 2, 1])
    sums = noise_steps.RowSums(np.array([1.0, 0.4, 2.0]), np.zeros(0), np.zeros(0))
    for t in range(20):
        where = checks.Address(checks.chain_key(3, 0), t, 0)
        drawn = noise_steps.draw_level(state, model, where, counts, sums).cells
        np.testing.assert_array_equal(drawn.rows, state.cells.rows)
        fixed = noise_steps.FIXED_VARIANCE / state.cells.rows
        np.testing.assert_allclose(drawn.at([0, 1], 1), fixed, rtol=1e-12)
        assert drawn.variance != state.cells.variance


def test_wrong_degrees_of_student_noise_are_caught(monkeypatch):
    plant(
        monkeypatch, noise_steps, "draw_level",
        "_ENTRY_DEGREES, int(counts.sum())", "_ENTRY_DEGREES, counts.size",
    )  # fmt: skip
    scores = checks.noise_scores(MODELS["Student-t"])
    assert worst(scores)[1] > 6.0, worst(scores)


FIXED_BUGS = {
    "drawn": ("_with_fixed", "columns[model.fixed] = cells.variance / FIXED_VARIANCE", "pass"),
    "with another variance": ("_with_fixed", "/ FIXED_VARIANCE", "/ (2.0 * FIXED_VARIANCE)"),
    "in the variance": (
        "draw_level", "np.delete(np.arange(cells.columns.size), model.fixed)",
        "np.arange(cells.columns.size)",
    ),
    "counted": ("draw_level", "int(counts[free].sum())", "int(counts.sum())"),
    "in the scale of the columns": (
        "_draw_column_side", "_COLUMN_SCALE, columns[free]", "_COLUMN_SCALE, columns"
    ),
    "in the degrees of freedom": (
        "_draw_column_side", "_COLUMN_DEGREES, columns[free]", "_COLUMN_DEGREES, columns"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FIXED_BUGS)
def test_fixed_columns_are_left_out(monkeypatch, name):
    """Each is a part of the noise that must not know of columns whose noise is fixed."""
    plant(monkeypatch, noise_steps, *FIXED_BUGS[name])
    scores = checks.noise_scores(MODELS["both, some fixed"])
    assert worst(scores)[1] > 6.0, worst(scores)
