"""The driver that runs peers in turns, with scripts that only say that they ran."""

import sys

import pytest
from environments import Environment
from methods import Method

import run

GOOD = """
import json, os, sys
with open({log!r}, "a") as log:
    print(*sys.argv[3:], "OMP", os.environ["OMP_NUM_THREADS"], file=log)
with open(sys.argv[2], "w") as result:
    json.dump({{"seed": int(sys.argv[10])}}, result)
"""


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Four methods: ours, a good one, one that fails, one that is not there."""
    log = tmp_path / "log"
    (tmp_path / "good.py").write_text(GOOD.format(log=str(log)), encoding="utf-8")
    (tmp_path / "bad.py").write_text("raise SystemExit(3)", encoding="utf-8")
    methods = {
        "GASR": Method("here", "good.py", "ours", 7, ""),
        "bad": Method("here", "bad.py", "", 8, ""),
        "good, too": Method("here", "good.py", "theirs", 9, ""),
        "absent": Method("nowhere", "good.py", "", 9, ""),
    }
    found = {"here": Environment(sys.executable), "nowhere": Environment(None, "is not there")}
    monkeypatch.setattr(run, "HERE", tmp_path)
    monkeypatch.setattr(run, "METHODS", methods)
    monkeypatch.setattr(run, "environment", lambda peer, folder: found[peer])
    return run.Asked(rank=30, threads=2, folder=tmp_path)


def test_methods_alternate_and_failures_are_reported(asked, capfd):
    rounds, missing = run.run_all(asked, asked.folder, repeats=2)
    assert rounds == [{"GASR": {"seed": seed}, "good, too": {"seed": seed}} for seed in (0, 1)]
    assert missing == {"absent": "is not there", "bad": run.DID_NOT_RUN}
    assert "bad did not run to its end" in capfd.readouterr().err
    said = (asked.folder / "log").read_text("utf-8").splitlines()
    assert said == [
        f"--rank 30 --threads 2 --iterations {n} --seed {seed} --variant {variant} OMP 2"
        for seed in (0, 1)
        for n, variant in ((7, "ours"), (9, "theirs"))
    ]


def test_old_results_are_deleted_before_a_run(asked):
    (asked.folder / "bad-0.json").write_text("{}", encoding="utf-8")
    assert run.run_once("bad", sys.executable, asked, seed=0) is None
    assert not (asked.folder / "bad-0.json").exists()


def test_methods_are_killed_after_the_time_limit(asked, monkeypatch):
    monkeypatch.setattr(run, "LIMIT", 0.5)
    (asked.folder / "bad.py").write_text("import time; time.sleep(1000)", encoding="utf-8")
    assert run.run_once("bad", sys.executable, asked, seed=0) is None
    assert "timed out after" in (asked.folder / "bad-0.log").read_text("utf-8")


def test_an_error_is_raised_if_gasr_fails(asked):
    (asked.folder / "good.py").write_text("raise SystemExit(3)", encoding="utf-8")
    with pytest.raises(SystemExit, match="nothing was written"):
        run.run_all(asked, asked.folder, repeats=1)
