"""What all tests share: short trials of row noise, and Ctrl-C as in a terminal."""

import signal

from fillrank.estimators import noise_trial

# Sweeps of a trial: as users have them, and as most tests do. Trials take most of a small fit.
USUAL = noise_trial._SWEEPS
SHORT = 10


def pytest_configure():
    """Take Ctrl-C where it is ignored, as in jobs in the background of a shell.

    Processes that tests start inherit what is ignored, and would not end when a test interrupts them.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item):
    """Set the length of trials; tests of what users get have the usual one."""
    is_usual = any(item.get_closest_marker(mark) for mark in ("usual_trial", "slow"))
    noise_trial._SWEEPS = USUAL if is_usual else SHORT


def pytest_runtest_teardown():
    """Have the usual one for examples in docstrings, of which this file is not told."""
    noise_trial._SWEEPS = USUAL
