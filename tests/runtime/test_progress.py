import io
import sys
import time
from types import SimpleNamespace
from typing import ClassVar

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


def test_an_estimated_total(capsys, clock):
    with make_progress(True, "sweep", about=True) as tell:
        clock.now += 11.0
        tell(12, 400, "sampling")
    assert capsys.readouterr().err == "fillrank: sweep 12 of about 400, sampling\n"


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


class Shell:
    """What IPython's get_ipython returns in a kernel of Jupyter."""

    config: ClassVar = {"IPKernelApp": {}}


@pytest.fixture
def notebook(monkeypatch):
    """A process that takes itself for a kernel of Jupyter."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=Shell))


def test_a_widget_in_a_notebook(notebook, monkeypatch):
    """The widget shows a total that changes."""
    made = []

    class Widget(tqdm.tqdm):
        def __init__(self, **settings):
            super().__init__(file=io.StringIO(), **settings)
            self.container = SimpleNamespace(children=[None, SimpleNamespace(max=self.total), None])
            made.append(self)

    monkeypatch.setitem(sys.modules, "tqdm.notebook", SimpleNamespace(tqdm=Widget))
    with make_progress(True, "sweep") as tell:
        for done, total in ((1, 500), (2, 500), (3, 300)):
            tell(done, total, "sampling")
            assert made[0].total == made[0].container.children[1].max == total
        assert made[0].n == 3
    assert made[0].disable  # closed


def test_text_in_a_notebook_without_widgets(notebook, monkeypatch):
    def no_widgets(**settings):
        raise ImportError("IProgress not found")

    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setitem(sys.modules, "tqdm.notebook", SimpleNamespace(tqdm=no_widgets))
    with make_progress(True, "sweep") as tell:
        time.sleep(0.15)
        tell(12, 12, "sampling")
    assert "12/12" in stream.getvalue()


def test_lines_in_ipython_without_a_notebook(monkeypatch, capsys, clock):
    for shell in (None, SimpleNamespace(config={})):
        ipython = SimpleNamespace(get_ipython=lambda shell=shell: shell)
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        with make_progress(True, "sweep") as tell:
            clock.now += 11.0
            tell(1, 2, "sampling")
        assert "sweep 1 of at most 2" in capsys.readouterr().err
