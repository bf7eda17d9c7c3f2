import os

import pytest

from fillrank.paper import table1, table2
from helpers.refusals import assert_refused
from helpers.result_files import read_csv

NUMBERS = {
    "rmse": 0.5, "relative": 0.2, "ratio": 1.1, "rank": 2, "sweeps": 60, "seconds": 0.1,
}  # fmt: skip


@pytest.fixture
def runs(monkeypatch):
    """Tasks of table1 that take no time; the list of those that were run."""
    done = []

    def run(key, size, n_threads):
        done.append(key)
        return NUMBERS

    monkeypatch.setattr(table1, "run", run)
    return done


def test_a_table_is_written_and_restored_from_its_results(fillrank, tmp_path, runs):
    ran = fillrank("reproduce", "table1", "--quick")
    assert ran.code == 0, ran.err
    folder = tmp_path / "paper-quick" / "table1"
    assert sorted(p.name for p in folder.iterdir()) == ["results.jsonl", "table1.csv", "table1.md"]
    assert len(runs) == 24
    assert "1 of 24, about" in ran.err
    assert "s left: setting [60, 2, 6]; missing 0.5; seed 0; method GASR, as published" in ran.err
    assert "| 50% | GASR, as published | 0.5000 ± 0.0000 | 0.2000 | 1.100 |" in ran.out
    assert f"{os.path.join('paper-quick', 'table1', 'table1.md')}" in ran.out

    before = read_csv(folder / "table1.csv")
    ran = fillrank("reproduce", "table1", "--quick")
    assert ran.code == 0, ran.err
    assert len(runs) == 24
    assert ran.err == ""
    assert read_csv(folder / "table1.csv") == before

    assert fillrank("reproduce", "table1", "--quick", "--fresh").code == 0
    assert len(runs) == 48


def test_an_interrupted_experiment_is_resumed(fillrank, tmp_path, monkeypatch, runs):
    def interrupted(key, size, n_threads):
        if len(runs) == 5:
            raise KeyboardInterrupt
        runs.append(key)
        return NUMBERS

    with monkeypatch.context() as patch:
        patch.setattr(table1, "run", interrupted)
        ran = fillrank("reproduce", "table1", "--quick", "-o", "out")
    assert ran.code == 130
    assert "5 of 24 results are saved" in ran.err
    assert "the same command resumes the experiment" in ran.err
    assert [p.name for p in (tmp_path / "out" / "table1").iterdir()] == ["results.jsonl"]

    ran = fillrank("reproduce", "table1", "--quick", "-o", "out")
    assert ran.code == 0, ran.err
    assert len(runs) == 24
    assert len({str(key) for key in runs}) == 24
    assert "6 of 24" in ran.err


def test_an_interrupted_fit_is_no_result(fillrank, monkeypatch):
    """The samplers keep what they have at Ctrl-C; an experiment must not."""
    from fillrank.samplers import gasr_published

    right, count = gasr_published.sweep, 0

    def sweep(state, data, frame):
        nonlocal count
        count += 1
        if count > 30:
            raise KeyboardInterrupt
        return right(state, data, frame)

    monkeypatch.setattr(gasr_published, "sweep", sweep)
    ran = fillrank("reproduce", "table1", "--quick", "--threads", "1")
    assert ran.code == 130
    assert "0 of 24 results are saved" in ran.err


def test_results_of_other_settings_and_foreign_files_are_not_replaced(fillrank, tmp_path, runs):
    folder = tmp_path / "out" / "table1"
    assert fillrank("reproduce", "table1", "--quick", "-o", "out").code == 0
    before = (folder / "results.jsonl").read_bytes()
    ran = fillrank("reproduce", "table1", "-o", "out")
    assert_refused(
        ran, "has results of other settings", "quick was True, is now False", "--fresh", "--output"
    )
    assert (folder / "results.jsonl").read_bytes() == before
    assert (folder / "table1.md").exists()

    (folder / "results.jsonl").write_text("my notes\n")
    ran = fillrank("reproduce", "table1", "--quick", "-o", "out", "--fresh")
    assert_refused(ran, "is not a results file", "--output")
    assert (folder / "results.jsonl").read_text() == "my notes\n"


def test_folders_that_cannot_be_used(fillrank, tmp_path, runs):
    (tmp_path / "file").touch()
    assert_refused(fillrank("reproduce", "table1", "--quick", "-o", "file"), "--output")
    assert runs == []
    if os.name == "posix" and os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        ran = fillrank("reproduce", "table1", "--quick", "-o", "locked")
        assert_refused(ran, "cannot be written", "--output")


def test_missing_or_unusable_data(fillrank, tmp_path):
    assert_refused(fillrank("reproduce", "table2", "--data", "nowhere"), "--data", "ml-1m")
    ran = fillrank("reproduce", "figure2", "--data", tmp_path)
    assert_refused(ran, "no ratings.dat", "--data", "--quick")
    assert_refused(fillrank("reproduce", "table2", "--quick", "--data", tmp_path), "--quick")
    assert_refused(fillrank("reproduce", "figure1", "--data", tmp_path), "omit --data")
    assert list(tmp_path.iterdir()) == []


def test_unknown_experiments_are_rejected_with_a_list(fillrank):
    ran = fillrank("reproduce", "table3")
    assert ran.code == 2
    for what in ("figure1", "table1", "figure2", "table2"):
        assert what in ran.err


def test_the_real_data_reach_the_experiment(fillrank, tmp_path, monkeypatch):
    """A tiny MovieLens in a folder: all methods and splits are asked for."""
    asked = []

    def run(key, size, ratings, n_threads):
        asked.append((key["data"], key["split"], n_threads))
        return dict.fromkeys(table2.ERRORS, 0.9) | {"rank": 3, "seconds": 1.0}

    monkeypatch.setattr(table2, "run", run)
    (tmp_path / "data" / "ml-1m").mkdir(parents=True)
    lines = [f"{i}::{j}::{1 + (i + j) % 5}\n" for i in range(4) for j in range(3)]
    (tmp_path / "data" / "ml-1m" / "ratings.dat").write_text("".join(lines))
    ran = fillrank("reproduce", "table2", "--data", "data", "-o", "out", "--threads", 2)
    assert ran.code == 0, ran.err
    assert set(asked) == {("MovieLens 1M", split, 2) for split in range(5)}
    assert "MovieLens 1M: 5 random splits" in ran.out
    assert "0.8528 ± 0.0025" in ran.out
