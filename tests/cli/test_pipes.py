"""The command as shells run it: real pipes, real signals, real exit codes."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import fillrank as fr
from helpers.processes import LIMIT, end_when_late

COMMAND = [sys.executable, "-m", "fillrank"]
QUICK = ("--sweeps", "20", "--max-rank", "2")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


def run(tmp_path, *arguments, stdin=None):
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.run(
        words, input=stdin, capture_output=True, cwd=tmp_path, check=False, timeout=LIMIT
    )


def start(tmp_path, *arguments):
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
        # Jobs in the background of a shell would ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    return end_when_late(process)


def interrupt_at(process, word):
    """Send SIGINT when the process has said a word; give its exit code, output and all it has said."""
    said = []
    for line in process.stderr:
        said.append(line)
        if word in line:
            break
    else:
        raise AssertionError(f"{word!r} was not said in {LIMIT:.0f} seconds, but: {''.join(said)}")
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=LIMIT)
    return process.returncode, out, "".join(said) + rest


def test_a_table_through_a_pipe(tmp_path, write_wide, matrix):
    ran = run(tmp_path, "complete", "-", "-o", "-", *QUICK, stdin=write_wide().read_bytes())
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count(b"\r\n") == ran.stdout.count(b"\n")  # as in the table
    header, *lines = [line.split(",") for line in ran.stdout.decode().splitlines()]
    assert header[0] == "name"
    filled = np.array([line[1:] for line in lines], dtype=float)
    observed = ~np.isnan(matrix)
    np.testing.assert_array_equal(filled[observed], matrix[observed])
    assert np.isfinite(filled).all()
    assert b"Read standard input: 14 rows x 8 columns" in ran.stderr
    assert b"RMSE" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_errors_in_piped_input_name_standard_input(tmp_path):
    ran = run(tmp_path, "evaluate", "-", stdin=b"user,item,rating\nAna,tea,lots\n")
    assert ran.returncode == 2
    assert b"standard input, line 2" in ran.stderr
    assert b"fillrank-" not in ran.stderr
    assert b"Traceback" not in ran.stderr


def test_fit_and_predict_in_separate_processes(tmp_path, write_long):
    ran = run(
        tmp_path, "fit", "-", "--format", "csv", *QUICK, "-q", stdin=write_long().read_bytes()
    )
    assert (ran.returncode, ran.stdout) == (0, b"stdin.fillrank\n")
    ran = run(tmp_path, "predict", "stdin.fillrank", "--json", "-q", stdin=b"u3,i2\n")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == b""
    value = json.loads(ran.stdout)[0]["rating"]
    model = fr.load(tmp_path / "stdin.fillrank")
    assert value == pytest.approx(model.predict("u3", "i2")[0], rel=1e-5)


def test_a_closed_pipe_gives_no_error_message(tmp_path):
    data, _ = fr.synthetic(300, 200, rank=1, noise=0.1, missing=0.9, random_state=0)
    fr.SoftImpute(penalty=5.0, max_rank=1, progress=False).fit(data).save(
        tmp_path / "m.fillrank", with_data=True
    )
    process = start(tmp_path, "predict", "m.fillrank", "--missing", "-q")
    assert process.stdout.readline() == "row,column,value\n"
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(LIMIT) == 141
    assert said == ""


def test_ctrl_c_ends_a_fit_and_leaves_no_files(tmp_path, write_wide):
    process = start(tmp_path, "fit", write_wide(), "--sweeps", "100000000")
    code, out, said = interrupt_at(process, "The fit will take")
    assert code == 130
    assert out == ""
    assert "Interrupted. Unfinished results were removed." in said
    assert "Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_ctrl_c_in_a_comparison_shows_the_results_so_far(tmp_path, write_wide):
    process = start(
        tmp_path, "compare", write_wide(), "--methods", "SoftImpute,GASR", "--splits", "1000"
    )
    code, out, said = interrupt_at(process, "3 of 2000")
    assert code == 130
    assert "Interrupted. Results so far:" in said
    assert "Traceback" not in said
    for name in ("GASR", "SoftImpute"):
        assert name in out
