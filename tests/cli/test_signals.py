"""Ctrl-C and SIGTERM in real processes: the same clean-up and words, whenever they come."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import numpy as np
import pytest

import fillrank as fr
from fillrank.cli.signals import Interruptible

LIMIT = 120  # seconds, for what takes a few
SIGNALS = (signal.SIGINT, signal.SIGTERM)
READ_BY_NOW = b"1,2\n" * 2**16  # more than a pipe holds: it is gone when the other side reads
STAYS = "import time; stay = lambda *_, **__: print('now', flush=True) or time.sleep(600);"
PATCHES = {
    "recommend": f"{STAYS} from fillrank.cli import models; models.load = stay; ",
    "datasets": f"{STAYS} import urllib.request; urllib.request.urlopen = stay; ",
}
# How far a verb is when the signal is sent: it has said a word, or reads from standard input.
WORDS = {
    ("complete", "table.csv", "--sweeps", "100000000"): "Fitting all",
    ("fit", "table.csv", "--sweeps", "100000000"): "The fit will take",
    ("demo", "-o", "shown"): "Fitting all",
    ("reproduce", "table1", "--quick", "-o", "again"): "1 of",
    ("explore", "m.fillrank", "--no-browser"): "http://",
    ("recommend", "m.fillrank", "--all", "-o", "best.csv"): "now",
    ("datasets", "ml-100k"): "now",
}
READING = [
    ("evaluate", "-"),
    ("compare", "-", "-o", "figures.csv"),
    ("report", "-", "--format", "csv"),
    ("predict", "m.fillrank", "-o", "answers.csv"),
]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@contextmanager
def started(folder, arguments, before=""):
    """Start the command in a folder; all it says goes to standard output. It is killed at the limit."""
    code = f"{before}from fillrank.cli.start import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
        if arguments[0] == "datasets"
        else None,
        # Jobs in the background of a shell would ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    timer = threading.Timer(LIMIT, process.kill)
    timer.start()
    try:
        with process:
            yield process
    finally:
        timer.cancel()


def wait_for(process, word):
    while word not in (line := process.stdout.readline().decode()):
        assert line, "the process has ended"


def end(process, number):
    """Send the signal, and give the exit code and all that is still said."""
    process.send_signal(number)
    said, _ = process.communicate(timeout=LIMIT)
    return process.returncode, said.decode()


@pytest.fixture
def folder(tmp_path, write_wide):
    write_wide()
    X = np.add.outer(np.arange(12.0), np.arange(6.0))
    X[0, 0] = np.nan
    fr.SoftImpute(penalty=1.0, progress=False).fit(X).save(tmp_path / "m.fillrank", with_data=True)
    return tmp_path


@pytest.mark.parametrize("arguments", [*WORDS, *READING], ids=lambda arguments: arguments[0])
def test_sigterm_ends_every_verb_as_ctrl_c_does(folder, arguments):
    before = {path.name for path in folder.iterdir()}
    said = {}
    for number in SIGNALS:
        verb = arguments[0]
        with started(folder, arguments, PATCHES.get(verb, "")) as process:
            if arguments in WORDS:
                wait_for(process, WORDS[arguments])
            else:
                process.stdin.write(READ_BY_NOW)
            code, said[number] = end(process, number)
        by_ctrl_c = 0 if verb == "explore" else 130  # that is how the explorer is ended
        assert code == (143 if number == signal.SIGTERM else by_ctrl_c), said[number]
        assert "Traceback" not in said[number]
        left = {path.name for path in folder.iterdir()} - before
        assert left <= {"shown", "again", "cache"}
    last_words = {text.splitlines()[-1] for text in said.values()}
    assert len(last_words) == 1
    expected = {"explore": "The explorer has ended.", "reproduce": "Interrupted. 0 of 24 results"}
    assert last_words.pop().startswith(
        expected.get(arguments[0], "Interrupted. Unfinished results were removed.")
    )


@pytest.mark.parametrize(
    ("number", "moments"), [(signal.SIGINT, (0.0, 1.0, 2.0)), (signal.SIGTERM, (0.5, 1.5, 2.5))]
)
def test_a_signal_during_startup_ends_quietly(folder, number, moments):
    """Moments from the first line on to a run that would not end; what happens is not timed.

    Both signals have the same handler, so that they take turns.
    """
    ready = "from fillrank.cli import start; start.exit_on_signals(); print('go', flush=True); "
    for moment in moments:
        with started(folder, ["fit", "table.csv", "--sweeps", "100000000"], ready) as process:
            wait_for(process, "go")
            time.sleep(moment)
            code, said = end(process, number)
        assert code == 128 + number, (moment, said)
        for word in ("Traceback", "Error", "ignored"):
            assert word not in said, moment
        assert not (folder / "table.fillrank").exists()


def test_an_import_is_not_interrupted(tmp_path, monkeypatch):
    """Packages make an ImportError of KeyboardInterrupt; here it comes after the import."""
    (tmp_path / "converts.py").write_text(
        "import os, signal, time\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(0.1)\n"
        "except KeyboardInterrupt:\n"
        "    raise ImportError('a compiled part is missing')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    signals = Interruptible()

    def load():
        with signals:
            import converts  # noqa: F401

            time.sleep(LIMIT)

    with pytest.raises(KeyboardInterrupt):
        load()
    assert signals.exit_code(130) == 143
    assert "converts" in sys.modules


def test_dropped_interrupts_are_raised_again(capfd):
    """As in a callback from compiled code, which has no one to hand an exception to."""
    callback = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))
    signals = Interruptible()

    def call():
        with signals:
            callback()
            time.sleep(LIMIT)

    with pytest.raises(KeyboardInterrupt):
        call()
    assert signals.exit_code(130) == 130
    assert capfd.readouterr().err == ""


def test_other_dropped_exceptions_are_reported_as_usual(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)

    def fails():
        raise ValueError

    with Interruptible():
        ctypes.CFUNCTYPE(None)(fails)()
    assert [each.exc_type for each in told] == [ValueError]


def test_what_the_parent_ignores_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruptible() as signals:
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert not signals.received


def test_handlers_are_restored():
    before = [signal.getsignal(number) for number in SIGNALS]
    with suppress(ValueError), Interruptible():
        assert [signal.getsignal(number) for number in SIGNALS] != before
        raise ValueError
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_an_error_caused_by_an_interruption_counts_as_one(fillrank, monkeypatch):
    def converts(*_, **__):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(LIMIT)
        except KeyboardInterrupt:
            raise ImportError("a compiled part is missing") from None

    monkeypatch.setattr("fillrank.cli.datasets._list", converts)
    ran = fillrank("datasets")
    assert ran.code == 143
    assert ran.err == "Interrupted. Unfinished results were removed."
