"""Geweke's joint test of GASR and BPMF with centres, sampled hyperparameters and unequal noise.

A check has the rate of false alarms ALARM (``reference.p_values``), shared among its scores. Planted
bugs must be clear: |z| > 6.
"""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fillrank.samplers import gasr
from fillrank.samplers.noise_steps import NoiseModel
from reference import bpmf_geweke, geweke_cases
from reference.geweke import worst
from reference.p_values import limit_of
from reference.planted import plant
from reference.small_tables import SMALL_MASK, Table

BOTH = bpmf_geweke.Model(NoiseModel(rows=True, columns=True))
ROBUST = bpmf_geweke.Model(NoiseModel(rows=True, columns=True, robust=True))
WEIGHTED = Table(
    SMALL_MASK, weights=np.random.default_rng(2).uniform(0.3, 3.0, int(SMALL_MASK.sum()))
)


@pytest.fixture(autouse=True)
def one_thread_of_linear_algebra():
    """Matrices of 2 x 2 are no work for several threads."""
    with threadpool_limits(1):
        yield


def _assert_no_alarm(scores):
    name, size = worst(scores)
    assert size < limit_of(len(scores)), f"{name}: z = {size:.1f}"


def test_gasr_with_everything():
    _assert_no_alarm(geweke_cases.mixture_with_everything(n_chains=400, length=10))


def test_gasr_with_everything_on_a_complete_table():
    _assert_no_alarm(
        geweke_cases.mixture_with_everything(n_chains=300, length=10, robust=False, full=True)
    )


def test_gasr_with_centres():
    _assert_no_alarm(geweke_cases.mixture_with_centres(n_chains=300, length=15))


def test_bpmf_with_unequal_noise_jointly():
    _assert_no_alarm(bpmf_geweke.geweke_scores(True, BOTH, n_chains=250, length=10, table=WEIGHTED))


def test_bpmf_with_unequal_robust_noise_by_entries():
    _assert_no_alarm(
        bpmf_geweke.geweke_scores(False, ROBUST, n_chains=250, length=10, table=WEIGHTED)
    )


def test_bpmf_with_unequal_noise_on_a_complete_table():
    table = bpmf_geweke.FULL_TABLE
    _assert_no_alarm(bpmf_geweke.geweke_scores(False, BOTH, n_chains=250, length=10, table=table))


@pytest.mark.slow
@pytest.mark.parametrize("robust", [True, False])
def test_gasr_with_everything_long_chains(robust):
    _assert_no_alarm(
        geweke_cases.mixture_with_everything(n_chains=400, length=200, seed=1, robust=robust)
    )


@pytest.mark.slow
def test_gasr_with_centres_long_chains():
    _assert_no_alarm(geweke_cases.mixture_with_centres(n_chains=400, length=200, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize(("joint", "which"), [(True, BOTH), (False, ROBUST)])
def test_bpmf_with_unequal_noise_long_chains(joint, which):
    _assert_no_alarm(
        bpmf_geweke.geweke_scores(joint, which, n_chains=400, length=200, seed=1, table=WEIGHTED)
    )


BUGS = {
    "m for m + 1 with centres": (
        gasr, "_half_sweep", "n + p + 1 if context.options.centres else n + p", "n + p"
    ),
    "no centre in the ball of d": (
        gasr, "_half_sweep", "n * shift**2 + _CENTRE_WEIGHT * new**2", "n * shift**2"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_geweke_catches_in_the_centres(monkeypatch, name):
    plant(monkeypatch, *BUGS[name])
    scores = geweke_cases.mixture_with_centres(n_chains=300, length=15)
    assert worst(scores)[1] > 6.0, worst(scores)
