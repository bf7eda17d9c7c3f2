"""The tests of the iPM3F sampler can fail: each mistake here is small, likely, and caught clearly.

"Clearly" means |z| > 6, or a p-value below 1e-9.
"""

from typing import NamedTuple

import pytest

from fillrank.kernels import binary_features
from fillrank.noise import hinge
from fillrank.samplers import ipm3f
from reference import ipm3f_gibbs_conditionals as conditionals
from reference.geweke import worst
from reference.ipm3f_gibbs_buffet import buffet_ps, chains_without_data
from reference.ipm3f_gibbs_geweke import gibbs_scores
from reference.ipm3f_gibbs_regression import new_rows_p, weights_of_columns_p
from reference.p_values import ks_uniform
from reference.planted import plant

_CLEAR_SCORE = 6.0
_CLEAR_P = 1e-9


class Bug(NamedTuple):
    """Each (old, new) of ``changes`` is made in ``module.name``; ``users`` call it."""

    module: object
    name: str
    changes: tuple
    users: tuple = ()


def _hinge(name, *changes):
    return Bug(hinge, name, changes, () if name == "augment_rows" else ("augment_rows",))


def _features(name, *changes, users=("feature_rows",)):
    return Bug(binary_features, name, changes, () if name == "feature_rows" else users)


def _sampler(name, *changes):
    return Bug(ipm3f, name, changes)


def _plant(monkeypatch, bug):
    for old, new in bug.changes:
        plant(monkeypatch, bug.module, bug.name, old, new, users=bug.users)
    # The sampler has imported the kernels by name.
    monkeypatch.setattr(ipm3f, "augment_rows", hinge.augment_rows)
    monkeypatch.setattr(ipm3f, "feature_rows", binary_features.feature_rows)


def _parametrize(bugs, every_time):
    """Run the bugs named in ``every_time`` always, the others among the slow tests."""
    assert set(every_time) <= set(bugs)
    parameters = [
        pytest.param(bug, id=name, marks=[] if name in every_time else [pytest.mark.slow])
        for name, bug in bugs.items()
    ]
    return pytest.mark.parametrize("bug", parameters)


def _assert_clear_p(p):
    print(f"p = {p:.1g}")
    assert p < _CLEAR_P, f"missed: p = {p:.1g}"


_HALF = ("c = 0.5 * hinge.C", "c = hinge.C")
_DROP = "        _drop_singletons(row, bits, features.counts)\n"
_SHARED = "        _draw_shared_bits(stream, row, bits, features.counts, n_rows, order)\n"

JOINT = {
    "C for c, lambda": _hinge("_draw_reciprocals", _HALF),
    "C for c, thresholds": _hinge("_draw_thresholds", _HALF),
    "C for c, responses": _hinge("_working", _HALF),
    "stale thresholds in the responses": _hinge(
        "augment_rows",
        ("        _draw_reciprocals(", "        old = thresholds.copy()\n        _draw_reciprocals("),
        ("_working(levels[t], thresholds,", "_working(levels[t], old,"),
    ),
    "stale lambda": _hinge(
        "augment_rows", ("start_stream(key, sweep, AUGMENTATION)", "start_stream(key, 0, AUGMENTATION)")
    ),
    "thresholds of mean 0": _hinge(
        "_draw_thresholds", ("h = prior_precision * hinge.threshold_mean[r]", "h = 0.0")
    ),
    "prior mean without its precision": _hinge(
        "_draw_thresholds", ("h = prior_precision * hinge", "h = hinge")
    ),
    "sd for variance of the thresholds": _hinge("_draw_thresholds", ("threshold_sd**2", "threshold_sd")),
    "x with the wrong sign": _hinge("_draw_thresholds", ("T + x[t]", "T - x[t]")),
    "levels off by one": _hinge("_working", ("direction_of(r, level)", "direction_of(r + 1, level)")),
    "V for half of V": _features(
        "_draw_bit", ("bits[k] - 0.5", "bits[k] - 1.0"), users=("_draw_shared_bits", "feature_rows")
    ),
    "own features dropped too early": _features("feature_rows", (_SHARED + _DROP, _DROP + _SHARED)),
    "own features kept": _features("feature_rows", (_DROP, "")),
    "own features dropped, residual not": _features(
        "_drop_singletons", ("_set_bit(row, bits, k, 0.0)", "bits[k] = 0.0")
    ),
    "alpha not shared among rows": _features("feature_rows", ("prior.alpha / n_rows", "prior.alpha")),
    "no determinant": _features(
        "_log_likelihood_of_new", (" - math.log1p(gain)", ""),
        users=("_draw_number_of_new", "feature_rows"),
    ),
    "stale residual": _features(
        "_set_bit", ("bits[k] - new", "0.0 * new"),
        users=("_draw_bit", "_draw_shared_bits", "_drop_singletons", "feature_rows"),
    ),
    "stale counts": _features("_draw_shared_bits", ("counts[k] = others + int(bits[k])", "pass")),
    "one feature fewer than fits": _features("feature_rows", ("free.size)", "max(free.size - 1, 0))")),
    "rows' order for the columns": _sampler(
        "_draw_columns", ("weights[data.to_columns], responses[data.to_columns] = working",
                          "weights[:], responses[:] = working")
    ),
    "sd for variance of V": _sampler("_draw_columns", ("sigma**2", "sigma")),
    "thresholds not kept": _sampler(
        "sweep", ("return State(Z, V, thresholds,", "return State(Z, V, state.thresholds * 0.0,")
    ),
}  # fmt: skip


@_parametrize(JOINT, ["stale thresholds in the responses", "own features dropped too early"])
def test_joint_test_catches(monkeypatch, bug):
    _plant(monkeypatch, bug)
    name, size = worst(gibbs_scores(n_chains=400, length=20))
    print(f"caught by {name}: z = {size:.1f}")
    assert size > _CLEAR_SCORE, f"missed; the largest is {name}: z = {size:.1f}"


BITS = {
    "V for half of V": JOINT["V for half of V"],
    "the row counts itself": _features(
        "_draw_shared_bits",
        ("math.log(others / (n_rows - others))", "math.log(counts[k] / (n_rows + 1 - counts[k]))"),
    ),
}


@_parametrize(BITS, ["V for half of V"])
def test_enumeration_catches(monkeypatch, bug):
    _plant(monkeypatch, bug)
    _assert_clear_p(conditionals.shared_bits_p())


NEW = {
    name: JOINT[name]
    for name in (
        "own features dropped, residual not",
        "alpha not shared among rows",
        "no determinant",
    )
} | {
    "new V from the prior": _features(
        "_add_features", ("    _condition_on_row(features.V, slots, columns, row, sigma)\n", "")
    ),
    "Poisson without its factorial": _features(
        "_draw_number_of_new", (" - math.lgamma(kappa + 1.0)", "")
    ),
    "mean of the sum for each V": _features(
        "_condition_on_row", ("row.residual[t] / kappa", "row.residual[t]"),
        users=("_add_features", "feature_rows"),
    ),
    "variance of the sum not shrunk": _features(
        "_condition_on_row", ("(1.0 / math.sqrt(1.0 + gain) - 1.0) * average", "0.0 * average"),
        users=("_add_features", "feature_rows"),
    ),
}  # fmt: skip


@_parametrize(NEW, ["no determinant"])
def test_quadrature_catches(monkeypatch, bug):
    _plant(monkeypatch, bug)
    _assert_clear_p(min(conditionals.new_features_ps().values()))


# (A row that counts itself keeps these distributions: without data it only moves less.)
BUFFET = {name: JOINT[name] for name in ("alpha not shared among rows", "stale counts")} | {
    "a row too many": _features("_draw_shared_bits", ("(n_rows - others)", "(n_rows + 1 - others)"))
}


@_parametrize(BUFFET, ["a row too many"])
def test_distributions_of_the_buffet_catch(monkeypatch, bug):
    _plant(monkeypatch, bug)
    _assert_clear_p(min(buffet_ps(chains_without_data(n_chains=1500, length=25)).values()))


THRESHOLDS = {
    name: JOINT[name]
    for name in (
        "C for c, thresholds",
        "thresholds of mean 0",
        "prior mean without its precision",
        "sd for variance of the thresholds",
        "x with the wrong sign",
    )
}


@_parametrize(THRESHOLDS, ["sd for variance of the thresholds"])
def test_brute_force_catches_in_the_thresholds(monkeypatch, bug):
    _plant(monkeypatch, bug)
    _assert_clear_p(
        min(ks_uniform(places) for places in conditionals.threshold_cdf_values(hinge, n=3000))
    )


COLUMNS = {name: JOINT[name] for name in ("rows' order for the columns", "sd for variance of V")}


@_parametrize(COLUMNS, list(COLUMNS))
def test_brute_force_catches_in_the_columns(monkeypatch, bug):
    _plant(monkeypatch, bug)
    _assert_clear_p(weights_of_columns_p())


def test_enumeration_catches_new_rows_that_count_as_old(monkeypatch):
    _plant(monkeypatch, _sampler("sweep_rows", ("+ 1 - counts", "+ 0.1 - counts")))
    _assert_clear_p(new_rows_p())
