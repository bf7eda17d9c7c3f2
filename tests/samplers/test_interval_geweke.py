"""Geweke's joint test of GASR and BPMF with values in intervals, drawn thresholds and fixed noise.

A check has the rate of false alarms ALARM (``reference.p_values``), shared among its scores. Planted
bugs must be clear: |z| > 6.
"""

import pytest
from threadpoolctl import threadpool_limits

from fillrank.kernels import gaussian_rows, interval_values
from fillrank.samplers import bpmf, gasr, level_likelihood, model, noise_steps
from reference.geweke import worst
from reference.interval_geweke import NAMES, interval_scores
from reference.p_values import limit_of
from reference.planted import plant


@pytest.fixture(autouse=True)
def one_thread_of_linear_algebra():
    """Matrices of 2 x 2 are no work for several threads."""
    with threadpool_limits(1):
        yield


def _assert_no_alarm(scores):
    name, size = worst(scores)
    assert size < limit_of(len(scores)), f"{name}: z = {size:.1f}"


@pytest.mark.parametrize("name", NAMES)
def test_values_in_intervals(name):
    _assert_no_alarm(interval_scores(name, n_chains=300, length=10))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_values_in_intervals_long_chains(name):
    _assert_no_alarm(interval_scores(name, n_chains=400, length=150, seed=1))


_KERNEL = {"users": ("gaussian_rows",), "into": (model,)}
_VALUES = {"users": ("draw_values", "entry_signals"), "into": (model, level_likelihood)}
_BOTH_SAMPLERS = {"into": (gasr, bpmf)}

# The sampler in which a bug is planted, its place, and what changes.
BUGS = {
    "values without the noise of the column": (
        "GASR, given noise", gaussian_rows, "_draw_values",
        "noise.roots[entries.indices[t]] if noise.roots.size", "1.0 if True", _KERNEL,
    ),
    "values without weights": (
        "GASR, given noise", gaussian_rows, "_draw_values",
        "sd /= math.sqrt(entries.weights[t])", "pass", _KERNEL,
    ),
    "values of the variance for the standard deviation": (
        "GASR, given noise", gaussian_rows, "_draw_values",
        "math.sqrt(noise.variances[i])", "noise.variances[i]", _KERNEL,
    ),
    "noise of fixed columns drawn": (
        "GASR", noise_steps, "_with_fixed",
        "columns[model.fixed] = cells.variance / FIXED_VARIANCE", "pass", {},
    ),
    "variance with the fixed columns": (
        "GASR", noise_steps, "draw_level",
        "np.delete(np.arange(cells.columns.size), model.fixed)", "np.arange(cells.columns.size)",
        _BOTH_SAMPLERS,
    ),
    "entries of the fixed columns counted": (
        "GASR", noise_steps, "draw_level",
        "int(counts[free].sum())", "int(counts.sum())", _BOTH_SAMPLERS,
    ),
    "thresholds without the sizes of factors": (
        "GASR, given noise", gasr, "sweep",
        "(state.right, signal_factors(state)[0])", "(state.right, state.left)", {},
    ),
    "joint draws with values of one noise": (
        "BPMF jointly", interval_values, "precision_of", "return root *", "return 1.0 *", _VALUES
    ),
}  # fmt: skip
_EVERY_TIME = {
    "values without the noise of the column",
    "noise of fixed columns drawn",
    "variance with the fixed columns",
    "joint draws with values of one noise",
}
# Few chains are enough for these.
_CLEAR = {"noise of fixed columns drawn", "variance with the fixed columns"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[] if each in _EVERY_TIME else [pytest.mark.slow]) for each in BUGS],
)
def test_geweke_catches(monkeypatch, name):
    sampler, module, function, old, new, more = BUGS[name]
    plant(monkeypatch, module, function, old, new, **more)
    n_chains = 100 if name in _CLEAR else 300
    scores = interval_scores(sampler, n_chains=n_chains, length=40 if "given" in sampler else 15)
    assert worst(scores)[1] > 6.0, worst(scores)
