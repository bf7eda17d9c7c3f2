"""The entry points: the command, and ``python -m fillrank``."""

import subprocess
import sys

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
