"""Benchmarks that time kernels and sweeps run with the present code, on small data.

They use more of the inside of fillrank than a user would, and no other test notices when that changes.
"""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LIMIT = 600  # seconds
COMMANDS = (
    "speed.py --repeats 1",
    "start.py --repeats 1",
    "dense.py --turns 1",
    "predict.py --pairs 1000",
    "spectral.py als",
    "scale.py --entries 1e5 --sweeps 2",
    "scale.py --ranks 5 --sweeps 2",
    "cluster.py --entries 1e5 --sweeps 2 --rounds 1 --most-workers 2",
)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_benchmark_runs(command, tmp_path):
    script, *arguments = command.split()
    ran = subprocess.run(
        [sys.executable, BENCHMARKS / script, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert any(character.isdigit() for character in ran.stdout)
