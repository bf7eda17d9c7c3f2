import json

import pytest

from fillrank.errors import OutputError
from fillrank.paper import study
from fillrank.paper.study import RESULTS_FILE, Experiment, Result, open_record, read_results

FIRST = Result({"method": "GASR", "missing": 0.9}, {"rmse": 0.1 + 0.2, "trace": [1, 2]}, 1.5)
SECOND = Result({"method": "BPMF", "missing": 0.9}, {"rmse": 0.5, "trace": []}, 2.5)


def experiment(name="table1", **settings):
    return Experiment(name, {"seeds": (0, 1), **settings}, [], lambda key: {}, lambda *_: [], ())


@pytest.fixture
def filled(tmp_path):
    record = open_record(tmp_path, experiment(), fresh=False)
    for result in (FIRST, SECOND):
        record.add(result)
    return tmp_path


def test_results_are_read_as_they_were_written(filled):
    record = open_record(filled, experiment(), fresh=False)
    assert record.find(FIRST.key) == FIRST
    assert record.find(dict(reversed(SECOND.key.items()))) == SECOND
    assert record.find({"method": "GASR", "missing": 0.8}) is None
    assert len((filled / RESULTS_FILE).read_text().splitlines()) == 3


@pytest.mark.parametrize("n_bytes", [1, 2, 20])
def test_a_truncated_last_line_is_dropped_and_rewritten(filled, n_bytes):
    path = filled / RESULTS_FILE
    complete = path.read_bytes()
    path.write_bytes(complete[:-n_bytes])
    record = open_record(filled, experiment(), fresh=False)
    assert record.find(FIRST.key) == FIRST
    assert record.find(SECOND.key) is None
    record.add(SECOND)
    assert path.read_bytes() == complete


def test_an_empty_file_is_not_refused(tmp_path):
    (tmp_path / RESULTS_FILE).write_bytes(b"")
    record = open_record(tmp_path, experiment(), fresh=False)
    record.add(FIRST)
    assert open_record(tmp_path, experiment(), fresh=False).find(FIRST.key) == FIRST


def test_other_settings_are_refused_by_name(filled):
    before = (filled / RESULTS_FILE).read_bytes()
    with pytest.raises(OutputError, match=r"quick was None, is now True.*--output.*--fresh"):
        open_record(filled, experiment(quick=True), fresh=False)
    with pytest.raises(OutputError, match="experiment was table1, is now table2"):
        open_record(filled, experiment("table2"), fresh=False)
    assert (filled / RESULTS_FILE).read_bytes() == before


def test_another_version_is_refused_by_name(filled, monkeypatch):
    monkeypatch.setattr(study, "__version__", "99.0")
    with pytest.raises(OutputError, match=r"version was .*, is now 99\.0"):
        open_record(filled, experiment(), fresh=False)


def test_fresh_discards_earlier_results(filled):
    record = open_record(filled, experiment(quick=True), fresh=True)
    assert record.find(FIRST.key) is None
    assert len((filled / RESULTS_FILE).read_text().splitlines()) == 1


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(
    "text", ["my notes\n", "[1, 2]\n", '{"experiment": "table1"}\n', "7\n", "no newline"]
)
def test_other_files_are_never_changed(tmp_path, text, fresh):
    (tmp_path / RESULTS_FILE).write_text(text)
    with pytest.raises(OutputError, match=r"is not a results file.*--output"):
        open_record(tmp_path, experiment(), fresh)
    assert (tmp_path / RESULTS_FILE).read_text() == text


def test_nan_is_an_error_and_not_stored(tmp_path):
    record = open_record(tmp_path, experiment(), fresh=False)
    with pytest.raises(ValueError, match="Out of range"):
        record.add(FIRST._replace(numbers={"rmse": float("nan")}))
    assert open_record(tmp_path, experiment(), fresh=False).find(FIRST.key) is None


def test_read_results_ignores_results_of_other_settings(filled):
    assert read_results(filled, experiment()) == [FIRST, SECOND]
    assert read_results(filled, experiment(quick=True)) == []
    assert read_results(filled / "nowhere", experiment()) == []
    (filled / RESULTS_FILE).write_text("my notes\n")
    assert read_results(filled, experiment()) == []


def test_the_first_line_has_experiment_and_settings(filled):
    header = json.loads((filled / RESULTS_FILE).read_text().splitlines()[0])
    assert header["experiment"] == "table1"
    assert header["settings"] == {"seeds": [0, 1]}
