"""Every conditional draw of both samplers has the distribution that the joint density gives it."""

import pytest

from fillrank.samplers import gasr_published
from reference.conditionals import (
    effect_coefficients,
    effect_draws,
    half_sweep_draws,
    mixture_draws,
    published_conditionals,
)
from reference.p_values import ALARM
from reference.small_tables import CENTRES, PLAIN


def _assert_no_alarm(p_values):
    assert min(p_values.values()) > ALARM / len(p_values), p_values


def test_published_gamma_d_u_and_v():
    _assert_no_alarm(published_conditionals(gasr_published.sweep))


def test_tau_and_d_given_the_square():
    _assert_no_alarm(mixture_draws())


@pytest.mark.parametrize("options", [PLAIN, CENTRES], ids=["centres off", "centres on"])
def test_half_sweep_tau_centres_rows_and_d(options):
    _assert_no_alarm(half_sweep_draws(options))


def test_effects_given_their_distribution():
    _assert_no_alarm(effect_coefficients())


def test_distribution_of_the_effects():
    _assert_no_alarm(effect_draws())
