"""Geweke's joint test of GASR and BPMF with Laplace noise, the logistic link and the hinge.

A check has the rate of false alarms ALARM (``reference.p_values``), shared among its scores. Planted
bugs must be clear: |z| > 6. A planted law is another class: kernels are compiled for it.
"""

from typing import NamedTuple

import pytest
from numba import njit
from threadpoolctl import threadpool_limits

from fillrank.draws.inverse_gaussian import inverse_gaussian
from fillrank.draws.polya_gamma import polya_gamma
from fillrank.kernels.entry_laws import register_levels, register_numbers
from fillrank.noise import laplace
from fillrank.noise.laws import LAWS
from fillrank.noise.two_level_hinge import hinge_working
from reference.geweke import worst
from reference.law_geweke import law_scores
from reference.p_values import limit_of
from reference.planted import _disable_cache

CASES = [(sampler, law) for law in LAWS if law != "gaussian" for sampler in ("GASR", "BPMF")]
every_case = pytest.mark.parametrize(("sampler", "law"), CASES)


@pytest.fixture(autouse=True)
def one_thread_of_linear_algebra():
    """Matrices of 2 x 2 are no work for several threads."""
    with threadpool_limits(1):
        yield


def _assert_no_alarm(scores):
    name, size = worst(scores)
    assert size < limit_of(len(scores)), f"{name}: z = {size:.1f}"


@every_case
def test_joint_distribution(sampler, law):
    _assert_no_alarm(law_scores(sampler, law, n_chains=200, length=10))


@pytest.mark.slow
@every_case
def test_joint_distribution_long_chains(sampler, law):
    _assert_no_alarm(law_scores(sampler, law, n_chains=400, length=150, seed=1))


class WrongShape(NamedTuple):
    """Laplace noise with weights of another shape."""

    is_mixture: bool = True
    of_levels: bool = False


class MissingHalf(NamedTuple):
    """The logistic link with responses twice as large."""

    is_mixture: bool = False
    of_levels: bool = True


class WrongC(NamedTuple):
    """The hinge with C for C/2."""

    C: float = 2.0
    ell: float = 1.0
    is_mixture: bool = False
    of_levels: bool = True


@njit
def _wrong_weight(_law, _degrees, square, stream):
    return inverse_gaussian(stream, 1.0 / max(square, 1e-12) ** 0.5, 2.0)


@njit
def _wrong_working(_law, margin, stream):
    omega = polya_gamma(stream, margin)
    return omega, 1.0 / omega - margin


register_numbers(WrongShape, _wrong_weight, laplace._distribution)
register_levels(MissingHalf, _wrong_working)
register_levels(WrongC, hinge_working)
# The first is caught every day, the others in the slow tests: each compiles the kernel again. Long
# chains with the second one go to infinity.
BUGS = [
    ("laplace", WrongShape(), 25),
    pytest.param("logistic", MissingHalf(), 4, marks=pytest.mark.slow),
    pytest.param("hinge", WrongC(), 25, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("law", "wrong", "length"), BUGS)
def test_geweke_catches(monkeypatch, law, wrong, length):
    _disable_cache(monkeypatch)
    law_scores("BPMF", law, n_chains=2, length=1)  # what is expected is that of the right law
    monkeypatch.setitem(LAWS, law, LAWS[law]._replace(compiled=wrong))
    scores = law_scores("BPMF", law, n_chains=200, length=length)
    assert worst(scores)[1] > 6.0, worst(scores)
