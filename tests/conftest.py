"""What all tests share: a short trial of the noise."""

import pytest

from fillrank.estimators import noise_trial

USUAL = noise_trial._SWEEPS
SHORT = 10


def pytest_runtest_setup(item):
    """Make the trial of row noise short, which takes most of a small fit; a mark has the usual one."""
    noise_trial._SWEEPS = USUAL if item.get_closest_marker("usual_trial") else SHORT
