"""The tests of this folder can fail: each mistake here is small, likely, and caught clearly.

Every bug is one changed line in the source of a sampler or kernel. The checks are those that the
right code passes in test_geweke.py and test_gasr_conditionals.py, most of them with fewer draws.
"Clearly" means |z| > 6, or a p-value below 1e-9.
"""

from typing import NamedTuple

import pytest

import fillrank.kernels.gaussian_rows
import fillrank.kernels.published
from fillrank.noise import precisions
from fillrank.samplers import gasr, gasr_published, model, noise_steps
from reference import conditionals, geweke_cases
from reference.geweke import worst
from reference.planted import plant, set_constants
from reference.small_tables import CENTRES, PLAIN

_CLEAR_SCORE = 6.0
_CLEAR_P = 1e-9

rows_kernel = fillrank.kernels.gaussian_rows
published_kernels = fillrank.kernels.published


class Bug(NamedTuple):
    """``old`` becomes ``new`` in ``module.name``."""

    module: object
    name: str
    old: str
    new: str
    users: tuple = ()
    into: tuple = ()


def _in_rows_kernel(old, new):
    return Bug(rows_kernel, "gaussian_rows", old, new, into=(model,))


def _in_rows_draw(old, new):
    return Bug(rows_kernel, "_draw", old, new, users=("gaussian_rows",), into=(model,))


def _in_ball_rows(old, new):
    return Bug(published_kernels, "ball_rows", old, new, into=(gasr_published,))


def _in_scales(old, new):
    return Bug(published_kernels, "published_scales", old, new, into=(gasr_published,))


def _rates(old, new):
    return Bug(gasr, "draw_rates", old, new, into=(gasr_published,))


def _tau(old, new):
    return Bug(gasr, "draw_tau", old, new, users=("_draw_taus",))


def _d(old, new):
    return Bug(gasr, "draw_d", old, new, users=("_draw_ds",))


def _variance(old, new):
    users = ("draw_noise_variance",)
    return Bug(precisions, "draw_variance", old, new, users, into=(gasr, noise_steps, conditionals))


def _level(old, new):
    return Bug(noise_steps, "draw_level", old, new, into=(gasr,))


def _parametrize(bugs, every_time):
    """Run the bugs named in ``every_time`` always, the others among the slow tests."""
    assert set(every_time) <= set(bugs)
    parameters = [
        pytest.param(bug, id=name, marks=[] if name in every_time else [pytest.mark.slow])
        for name, bug in bugs.items()
    ]
    return pytest.mark.parametrize("bug", parameters)


def _plant(monkeypatch, bug):
    plant(monkeypatch, *bug)
    if bug.name == "draw_variance":  # frozen in a compiled function of another module
        set_constants(monkeypatch, gasr, {}, ("_draw_effect",))


def _assert_clear_score(scores):
    name, size = worst(scores)
    print(f"caught by {name}: z = {size:.1f}")
    assert size > _CLEAR_SCORE, f"missed; the largest is {name}: z = {size:.1f}"


def _assert_clear_p(p_values):
    name = min(p_values, key=p_values.get)
    print(f"caught by {name}: p = {p_values[name]:.1g}")
    assert p_values[name] < _CLEAR_P, f"missed: {p_values}"


MIXTURE = {
    "gamma of shape a": _rates("a + 1.0", "a"),
    "gamma forgets d": _rates("b + d[k]", "b"),
    "tau one dimension short": Bug(
        gasr, "_half_sweep", "_draw_taus(address, R, gamma, n_ball)",
        "_draw_taus(address, R, gamma, n_ball - 1)",
    ),
    "d without its Jacobian": Bug(
        gasr, "_half_sweep", "_draw_ds(address, R, gamma, n_ball)",
        "_draw_ds(address, R, gamma, n_ball - 1)",
    ),
    "d from its proposal": _d("log_accept = -gamma * (d - rho)", "log_accept = 0.0"),
    "tau of shape m/2": _tau("0.5 * (m - 1)", "0.5 * m"),
    "tau is the precision": Bug(gasr, "_prior", "2.0 * tau", "tau"),
    "noise forgotten in the draw": _in_rows_draw("(1.0 - a * a) * noise_variance", "(1.0 - a * a)"),
    "noise forgotten in the prior": _in_rows_draw("noise_variance * prior", "prior"),
    "relaxed draws of full variance": _in_rows_draw("(1.0 - a * a) *", ""),
    "relaxed, and the prior at full strength": _in_rows_draw(
        "- old) * (1.0 - a) * share", "- old) * share"
    ),
    "stale residual": _in_rows_kernel(
        "steps = (own.dtype.type(old - own[i, k]), none)", "steps = (none, none)"
    ),
    "the second of a pair stale": _in_rows_kernel("s_1 += steps[0] * c_01", "pass"),
    "columns with the normals of the rows": Bug(
        gasr, "_column_side", "streams.COLUMNS", "streams.ROWS"
    ),
    "columns with the scalars of the rows": Bug(
        gasr, "_column_side", "streams.COLUMN_SCALARS", "streams.ROW_SCALARS"
    ),
    "d of the columns lost": Bug(gasr, "sweep", "columns.weights,\n        d=d,", "columns.weights,"),
    "d of the rows lost": Bug(gasr, "sweep", "rows.weights, d=d", "rows.weights"),
}  # fmt: skip


# Few chains are enough for these.
_CLEAR_BUGS = (
    "gamma of shape a",
    "d without its Jacobian",
    "tau is the precision",
    "noise forgotten in the draw",
    "columns with the normals of the rows",
    "columns with the scalars of the rows",
)


@_parametrize(
    MIXTURE,
    [
        "gamma of shape a",
        "d without its Jacobian",
        "tau is the precision",
        "noise forgotten in the draw",
        "stale residual",
        "the second of a pair stale",
        "relaxed draws of full variance",
        "columns with the normals of the rows",
        "columns with the scalars of the rows",
        "d of the columns lost",
    ],
)
def test_geweke_catches_in_the_mixture_sampler(monkeypatch, bug):
    _plant(monkeypatch, bug)
    n_chains = 100 if bug in map(MIXTURE.get, _CLEAR_BUGS) else 300
    _assert_clear_score(geweke_cases.mixture(n_chains=n_chains, length=20))


EFFECTS = {
    "degrees of freedom": _variance("0.5 * (n + 1)", "0.5 * n"),
    "a prior of another scale": _variance("1.0 / PRIOR_SCALE**2", "1.0"),
    "square about the old mean": Bug(gasr, "_draw_effect", "about_new + sums", "sums.square + sums"),
    "sd for variance": Bug(
        gasr, "_prior", "1.0 / side.effect.variance", "side.effect.variance ** -0.5"
    ),
    "the step of a pair's second forgotten": _in_rows_kernel(
        "steps = (steps[0], own.dtype.type(old - own[i, k]))", "pass"
    ),
    "sign of the prior mean": _in_rows_draw("(_prior_mean(", "(-_prior_mean("),
}  # fmt: skip


@_parametrize(EFFECTS, ["degrees of freedom", "sd for variance"])
def test_geweke_catches_in_the_effects(monkeypatch, bug):
    _plant(monkeypatch, bug)
    _assert_clear_score(geweke_cases.mixture_with_effects(n_chains=400, length=20))


NOISE = {
    "noise of too few entries": _level("int(counts[free].sum())", "free.size"),
    "noise without half of the squares": _variance("0.5 * square", "square"),
    "the same random numbers in every sweep": _level(
        "purpose=streams.NOISE", "purpose=streams.NOISE, sweep=0"
    ),
    "degrees of freedom": _variance("0.5 * (n + 1)", "0.5 * n"),
}


@_parametrize(NOISE, ["noise of too few entries"])
def test_geweke_catches_in_the_noise(monkeypatch, bug):
    _plant(monkeypatch, bug)
    _assert_clear_score(geweke_cases.mixture_with_sampled_noise(n_chains=300, length=20))


PUBLISHED = {
    "gamma of shape a": _rates("a + 1.0", "a"),
    "radius of the whole ball": _in_ball_rows("math.sqrt(1.0 - rest)", "1.0"),
    "radius without its root": _in_ball_rows("math.sqrt(1.0 - rest)", "1.0 - rest"),
    "stale norm": _in_ball_rows("square[k] = rest + float(own[i, k]) ** 2", "pass"),
    "stale residual": _in_ball_rows(
        "own.dtype.type(d[k] * (old - own[i, k]))", "own.dtype.type(0)"
    ),
    "d for its square": _in_ball_rows("C = d[k] * d[k] * v2", "C = d[k] * v2"),
    "rate with the wrong sign": _in_scales("- noise_variance * gamma", "+ noise_variance * gamma"),
    "rate without the noise": _in_scales("noise_variance * gamma[k]", "gamma[k]"),
}  # fmt: skip


@_parametrize(PUBLISHED, ["radius of the whole ball", "stale residual", "rate with the wrong sign"])
def test_geweke_catches_in_the_published_sampler(monkeypatch, bug):
    _plant(monkeypatch, bug)
    _assert_clear_score(geweke_cases.published(n_chains=300, length=20))


CONDITIONALS = {
    "radius of the whole ball": _in_ball_rows("math.sqrt(1.0 - rest)", "1.0"),
    "residual stale after d": _in_scales("step = d[k] - new", "step = 0.0"),
    "gamma of shape a": _rates("a + 1.0", "a"),
}


@_parametrize(CONDITIONALS, ["residual stale after d"])
def test_brute_force_catches_in_the_published_sampler(monkeypatch, bug):
    _plant(monkeypatch, bug)
    _assert_clear_p(conditionals.published_conditionals(gasr_published.sweep))


MIXTURE_DRAWS = {
    "tau without acceptance": _tau("if uniform(stream) * (s + g) < g:", "if True:"),
    "tau of shape m/2": _tau("0.5 * (m - 1)", "0.5 * m"),
    "d without acceptance, far out": _d("log_accept = -m * math.log(d / rho)", "log_accept = 0.0"),
    "d without acceptance": _d("log_accept = -gamma * (d - rho)", "log_accept = 0.0"),
    "d with the tail of d^-(m+1)": _d("** (-1.0 / (m - 1))", "** (-1.0 / m)"),
}


@_parametrize(MIXTURE_DRAWS, ["tau without acceptance", "d without acceptance, far out"])
def test_brute_force_catches_in_tau_and_d(monkeypatch, bug):
    _plant(monkeypatch, bug)
    _assert_clear_p(conditionals.mixture_draws())


HALF_SWEEP = {
    "centre on the wrong side": Bug(gasr, "_draw_centres", "total / weight", "-total / weight"),
    "square about the old centre": Bug(
        gasr, "_half_sweep", "R = R - 2 * shift * total + n * shift**2", "R = R"
    ),
    "d without the square of the centre": Bug(
        gasr, "_half_sweep", "n * shift**2 + _CENTRE_WEIGHT * new**2", "n * shift**2"
    ),
    "tau without the square of the centre": Bug(
        gasr, "_half_sweep", "R + _CENTRE_WEIGHT * centre**2", "R"
    ),
    "m for m + 1": Bug(
        gasr, "_half_sweep", "n + p + 1 if context.options.centres else n + p", "n + p"
    ),
    "centre without its weight": Bug(gasr, "_draw_centres", "n + _CENTRE_WEIGHT", "n"),
    "variance of the centre": Bug(gasr, "_draw_centres", "2 * tau * weight", "tau * weight"),
    "rows shrink to minus the centre": Bug(
        gasr, "_prior", "np.arange(tau.size), centre,", "np.arange(tau.size), -centre,"
    ),
}  # fmt: skip


@_parametrize(HALF_SWEEP, HALF_SWEEP)
def test_brute_force_catches_in_the_centres(monkeypatch, bug):
    _plant(monkeypatch, bug)
    _assert_clear_p(conditionals.half_sweep_draws(CENTRES))


@pytest.mark.slow
def test_brute_force_catches_a_wrong_prior_precision(monkeypatch):
    plant(monkeypatch, gasr, "_prior", "2.0 * tau", "tau")
    _assert_clear_p(conditionals.half_sweep_draws(PLAIN))


EFFECT_LAWS = {
    "no prior of the mean": Bug(
        gasr, "_draw_effect", "1.0 / PRIOR_SCALE**2 + n / variance", "n / variance"
    ),
    "degrees of freedom": _variance("0.5 * (n + 1)", "0.5 * n"),
    "no prior of the variance": _variance("inverse_xi + 0.5 * square", "0.5 * square"),
    "the auxiliary without the old variance": _variance("+ 1.0 / variance", "+ 1.0"),
}


@_parametrize(EFFECT_LAWS, ["no prior of the mean"])
def test_brute_force_catches_in_the_distribution_of_the_effects(monkeypatch, bug):
    _plant(monkeypatch, bug)
    _assert_clear_p(conditionals.effect_draws())
