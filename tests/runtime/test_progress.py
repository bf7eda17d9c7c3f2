import io
import sys
import time

import pytest
import tqdm

from fillrank.runtime import progress
from fillrank.runtime.progress import make_progress


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only when a test says so."""

    class Clock:
        now = 1000.0

        def __call__(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(progress.time, "monotonic", clock)
    return clock


def test_disabled_progress_prints_nothing(capsys, clock):
    with make_progress(False, "sweep") as tell:
        clock.now += 100.0
        tell(1, 10, "sampling")
    assert capsys.readouterr() == ("", "")


def test_lines_only_every_ten_seconds(capsys, clock):
    with make_progress(True, "sweep") as tell:
        for done in range(1, 31):
            clock.now += 0.9
            tell(done, 30, "sampling")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "fillrank: sweep 12 of at most 30, sampling",
        "fillrank: sweep 24 of at most 30, sampling",
    ]


def test_short_runs_print_nothing(capsys, clock):
    with make_progress(True, "sweep") as tell:
        for done in range(1, 10):
            clock.now += 1.0
            tell(done, 9, "sampling")
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_in_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with make_progress(True, "sweep") as tell:
        tell(3, 12, "burning in")
        time.sleep(0.15)  # tqdm draws ten times a second at most
        tell(12, 12, "sampling")
    assert "12/12" in terminal.getvalue()


def test_the_bar_is_closed_when_a_run_fails(monkeypatch):
    closed = []
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(tqdm.tqdm, "close", lambda self: closed.append(self.n))

    def fail():
        with make_progress(True, "sweep") as tell:
            tell(3, 12, "burning in")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert closed[0] == 3
