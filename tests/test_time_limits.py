"""No test can wait for ever: what has a limit is ended, and whatever waits has one."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.processes import LIMIT

ROOT = Path(__file__).parents[1]

START = """
import threading
import pytest

def deaf():
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            pass

@pytest.fixture
def hanging():
    yield
    deaf()

@pytest.mark.slow
"""
AFTER = """

def test_after():
    pass
"""
RUN = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import conftest, pytest

class SlowReport:
    def pytest_runtest_makereport(self, item, call):
        if item.name == "test_report" and call.when == "call":
            threading.Event().wait()

conftest.SLOW_LIMIT, conftest.GRACE = 2.0, float(sys.argv[3])
options = ["-v", "-p", "no:cacheprovider", "--timeout=200", "--color=no"]
sys.exit(pytest.main([*options, sys.argv[2]], plugins=[conftest, SlowReport()]))
"""


def outcome(tmp_path, stuck, grace):
    """How a run of pytest ends that has a slow test of this code, and one after it."""
    test = tmp_path / "test_stuck.py"
    test.write_text(START + stuck + AFTER, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-c", RUN, ROOT, test, str(grace)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )


def test_a_test_that_waits_fails_and_the_next_runs(tmp_path):
    ran = outcome(tmp_path, "def test_waits(): threading.Event().wait()", grace=200)
    assert "Timeout (>2.0s)" in ran.stdout
    assert "1 failed, 1 passed" in ran.stdout


# It takes no notice of the signal, as code that does not come back to Python; no signal comes any more
# when it is torn down; or the signal comes between the steps of a test, and ends the session.
@pytest.mark.parametrize(
    "stuck",
    [
        "test_deaf(): deaf()",
        "test_teardown(hanging): raise ZeroDivisionError",
        "test_report(hanging): pass",
    ],
)
def test_tests_that_ignore_signals_end_with_their_process(tmp_path, stuck):
    ran = outcome(tmp_path, f"def {stuck}", grace=1.0)
    assert ran.returncode == 1
    assert "in deaf" in ran.stderr  # where it was
    assert "passed" not in ran.stdout


# Whatever waits

# What waits as long as it takes unless it is given a number of seconds.
WAITS = ("wait", "join", "communicate", "result", "get", "acquire")
OPENS = ("create_connection", "urlopen", "HTTPConnection", "wait_for_workers")
RUNS = ("run", "call", "check_call", "check_output")


def waits_for_ever(code):
    """The lines at which something is waited for without a limit."""
    if not any(f".{name}(" in code for name in (*WAITS, *OPENS, *RUNS)):
        return  # parsing takes long
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, of = node.func.attr, ast.unparse(node.func.value)
            named = any(keyword.arg in ("timeout", None) for keyword in node.keywords)
            runs = (of == "subprocess" and name in RUNS) or name in OPENS
            if not named and (runs or (name in WAITS and not node.args)):
                yield node.lineno


def test_all_waits_have_a_limit():
    files = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in files
        for line in waits_for_ever(path.read_text(encoding="utf-8"))
    ]
    assert found == [], "give these a time limit (timeout=...)"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("process.wait()", [1]),
        ("process.wait(5)", []),
        ("thread.join(timeout=5)", []),
        ("','.join(names)\nthread.join()", [2]),
        ("subprocess.run(['true'])", [1]),
        ("subprocess.run(['true'], timeout=5)", []),
        ("with socket.create_connection(place) as s: pass", [1]),
    ],
)
def test_waits_without_a_limit_are_found(code, lines):
    assert list(waits_for_ever(code)) == lines
