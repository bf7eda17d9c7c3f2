"""Every test has a time limit (pyproject.toml has the usual one), and what outlives it is ended."""

import faulthandler
import gc
import os
import sys
from contextlib import contextmanager

import pytest

SLOW_LIMIT = 1800.0  # seconds
# What a test has left to clean up when its time is over, and any test for its teardown.
GRACE = 120.0


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_LIMIT))


def pytest_collection_finish():
    # Modules and tests stay to the end: full passes of the garbage collector need not look at them.
    gc.collect()
    gc.freeze()


def pytest_configure(config):
    # Registered like this it also watches the doctests of src/. What a test captures is not stderr.
    config.pluginmanager.register(Watchdog(os.dup(sys.__stderr__.fileno())))


class Watchdog:
    """Ends the process in which a test outlives its time limit by far, and shows where it was.

    The signal of pytest-timeout is seen between two steps of Python: not in compiled code that does not
    return, and it comes once, so that a fixture may still wait for ever when it is torn down. This
    one needs no Python to run. Under pytest-xdist the test is reported as failed, and another process
    goes on with the rest.

    Parameters
    ----------
    stream : int
        A file descriptor for the stacks of all threads.
    """

    def __init__(self, stream):
        self._stream = stream

    def _watch(self, seconds):
        faulthandler.dump_traceback_later(seconds, exit=True, file=self._stream)

    @contextmanager
    def _watching(self):
        self._watch(GRACE)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()

    def pytest_timeout_set_timer(self, settings):
        self._watch(settings.timeout + GRACE)

    def pytest_timeout_cancel_timer(self):
        faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self):
        with self._watching():  # again, for a failure has cancelled it
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session):
        # Fixtures may be torn down here too. pytest-xdist's main process has none, and waits for others.
        if session.config.getoption("dist", "no") != "no":
            return (yield)
        with self._watching():
            return (yield)
