"""The entry points: the command, and ``python -m fillrank``."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fillrank as fr

CODE = "from fillrank.cli.start import main; main()"


@pytest.mark.parametrize("words", [["-m", "fillrank"], ["-c", CODE]])
def test_the_command_runs(words):
    def ended(*arguments):
        command = [sys.executable, *words, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    ran = ended("--version")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"fillrank {fr.__version__}\n", "")
    assert ended("fit", "nowhere.csv").returncode == 2


def test_no_slow_imports_before_signals_are_handled():
    """Python has loaded all that the entry point imports but for the package's own three modules."""
    code = "import sys; before = set(sys.modules); from fillrank.cli.start import main; "
    code += "print(*sorted(set(sys.modules) - before))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["fillrank", "fillrank.cli", "fillrank.cli.start"]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_a_random_early_moment(number):
    """Python's own start ends as Python has it; what the command adds to that is a moment."""
    moments = random.Random(0)
    loud = []
    for _ in range(20):
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, "--version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        time.sleep(moments.uniform(0.0, 0.25))
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode in (0, 1, -number, 128 + number), said
        if "Traceback" in said and str(Path(fr.__file__).parent) in said:
            loud.append(said)
    # The package has three small files to load until the handlers are set.
    assert len(loud) <= 2, loud[0]
