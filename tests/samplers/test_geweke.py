"""Geweke's joint test of both samplers, with a and b fixed and centres off.

test_noise_geweke.py has centres, sampled a and b, and unequal noise.
"""

import pytest

from reference import geweke_cases
from reference.geweke import worst
from reference.p_values import limit_of


def _assert_no_alarm(scores):
    name, size = worst(scores)
    assert size < limit_of(len(scores)), f"{name}: z = {size:.1f}"


def test_mixture_sampler():
    _assert_no_alarm(geweke_cases.mixture(n_chains=600, length=25))


def test_published_sampler():
    _assert_no_alarm(geweke_cases.published(n_chains=600, length=25))


def test_mixture_sampler_with_effects():
    _assert_no_alarm(geweke_cases.mixture_with_effects(n_chains=400, length=25))


def test_mixture_sampler_with_sampled_noise():
    _assert_no_alarm(geweke_cases.mixture_with_sampled_noise(n_chains=400, length=25))


@pytest.mark.slow
def test_mixture_sampler_long_chains():
    _assert_no_alarm(geweke_cases.mixture(n_chains=400, length=500, seed=1))


@pytest.mark.slow
def test_published_sampler_long_chains():
    _assert_no_alarm(geweke_cases.published(n_chains=400, length=500, seed=1))


@pytest.mark.slow
def test_mixture_sampler_with_effects_long_chains():
    _assert_no_alarm(geweke_cases.mixture_with_effects(n_chains=400, length=300, seed=1))


@pytest.mark.slow
def test_mixture_sampler_with_sampled_noise_long_chains():
    _assert_no_alarm(geweke_cases.mixture_with_sampled_noise(n_chains=400, length=300, seed=1))
