"""The checks of iPM3F can fail: each mistake here is one changed line, and caught clearly."""

from typing import NamedTuple

import pytest
from numba.core.dispatcher import Dispatcher
from scipy import stats

import fillrank.solvers.ipm3f as solver
from fillrank.kernels import hinge_columns, hinge_rows
from helpers import ipm3f_checks as checks
from reference.planted import plant

# A bug fails its check clearly: by this factor.
_CLEAR = 10.0
# Who imports the functions of a module.
_INTO = {hinge_rows: solver, hinge_columns: solver, solver: solver}


class Bug(NamedTuple):
    """``old`` becomes ``new`` in ``module.name``."""

    module: object
    name: str
    old: str
    new: str


def _uncompiled(monkeypatch):
    """Have the kernels run as plain Python: a bug then needs no compilation."""
    for module in _INTO:
        for name, value in list(vars(module).items()):
            if isinstance(value, Dispatcher):
                monkeypatch.setattr(module, name, value.py_func)


_OBJECTIVE = {
    "side of a threshold": Bug(
        hinge_rows, "hinge_losses", "direction_of(r,", "direction_of(r - 1,"
    ),
    "margin left out": Bug(hinge_rows, "hinge_losses", "ell - T *", "-T *"),
    "entropy of one side": Bug(solver, "objective", "+ xlogy(1.0 - psi, 1.0 - psi)", ""),
    "KL without its normaliser": Bug(solver, "_stick_divergence", "- betaln(a, b)", ""),
    "a stick too many": Bug(solver, "sticks_of", "+ e - log_nu", "+ e"),
}
_FEATURES = {
    "margin of the wrong side": Bug(
        hinge_rows, "_best_feature", "thresholds[r] + hinges.ell", "thresholds[r] - hinges.ell"
    ),
    "stale scores": Bug(hinge_rows, "fit_features", "add_multiple(x, psi[i, k], f, n)", "pass"),
    "ends of a level": Bug(hinge_rows, "order_by_level", "ends[y - 1] = p", "ends[y - 1] = p - 1"),
    "a corner that falls": Bug(hinge_rows, "finish_crossings", "= abs(h)", "= h"),
    "a place without its logit": Bug(hinge_rows, "finish_crossings", "g / (h - g)", "g / h"),
    "only hinges that turn off": Bug(hinge_rows, "add_crossings", "!= (g - h", "and not (g - h"),
    "rises forgotten": Bug(hinge_rows, "solve", "slope += below + at", "slope += below"),
    "prior forgotten": Bug(solver, "update_features", "sticks.e - sticks.L", "sticks.e"),
}
_THRESHOLDS = {
    "margin of the wrong side": Bug(hinge_rows, "fit_thresholds", "else -hinges", "else hinges"),
    "no weight": Bug(hinge_rows, "fit_thresholds", "hinges.C * prior", "prior"),
    "one mean for all": Bug(hinge_rows, "fit_thresholds", "prior.rho[r]", "prior.rho[0]"),
    "no rise at the pivot": Bug(hinge_rows, "_partition", "at += corners.rises[t]", "pass"),
}
_FACTORS = {
    "a dual beyond its bound": Bug(hinge_columns, "_best_dual", "b += C", "b += 2 * C"),
    "bound of another level": Bug(hinge_columns, "_one_pass", "C * (1.0 - column.levels[t])", "-C"),
    "corners not sorted": Bug(hinge_columns, "_put_corners", "out[p - 1] > position", "False"),
    "own share left in the rest": Bug(hinge_columns, "_one_pass", "+ h * old", ""),
    "a step of the wrong size": Bug(hinge_columns, "_fill", "variance * dot", "0.3 * dot"),
}
_DUALS = {
    "no variance at the start": Bug(hinge_columns, "fit_columns", "-variance * own[t]", "-own[t]"),
}
_STICKS = {
    "features counted once": Bug(solver, "update_sticks", "alpha + from_k", "alpha + n1"),
    "sticks that break at once": Bug(solver, "update_sticks", "+ beyond_k", ""),
}
_RISES = {
    "worse factors kept": Bug(hinge_columns, "fit_columns", "if _primal(", "if True or _primal(")
}
_BUGS = {
    checks.objective_error: _OBJECTIVE,
    checks.features_error: _FEATURES,
    checks.thresholds_error: _THRESHOLDS,
    checks.factors_error: _FACTORS,
    checks.duals_error: _DUALS,
    checks.sticks_error: _STICKS,
    checks.worst_rise: _RISES,
}


@pytest.mark.parametrize(
    ("check", "bug"),
    [
        pytest.param(check, bug, id=f"{check.__name__}: {name}")
        for check, bugs in _BUGS.items()
        for name, bug in bugs.items()
    ],
)
def test_a_planted_bug_is_caught(monkeypatch, check, bug):
    _uncompiled(monkeypatch)
    user = _INTO[bug.module]
    plant(monkeypatch, *bug, into=(user,) if hasattr(user, bug.name) else ())
    assert check() > _CLEAR * checks.LIMITS[check]


def test_a_bound_above_the_expectation_is_caught(monkeypatch):
    plant(monkeypatch, solver, "sticks_of", "+ e - log_nu", "")
    assert stats.norm.sf(checks.bound_scores()[1:].max()) < 1e-9


def test_a_bound_that_misses_the_first_feature_is_caught(monkeypatch):
    plant(monkeypatch, solver, "sticks_of", "+ e - log_nu", "+ e")
    assert stats.norm.sf(abs(checks.bound_scores()[0])) < 1e-9
