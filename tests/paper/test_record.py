import json

import pytest

from fillrank.errors import OutputError
from fillrank.paper import record
from fillrank.paper.record import open_record, read_results
from fillrank.paper.study import Experiment, Result

FIRST = Result({"method": "GASR", "missing": 0.9}, {"rmse": 0.1 + 0.2, "trace": [1, 2]}, 1.5)
SECOND = Result({"method": "BPMF", "missing": 0.9}, {"rmse": 0.5, "trace": []}, 2.5)


def experiment(name="table1", **settings):
    return Experiment(name, {"seeds": (0, 1), **settings}, [], lambda key: {}, lambda *_: [], ())


@pytest.fixture
def filled(tmp_path):
    kept = open_record(tmp_path, experiment(), fresh=False)
    for result in (FIRST, SECOND):
        kept.add(result)
    return tmp_path


def test_results_come_back_as_they_were(filled):
    kept = open_record(filled, experiment(), fresh=False)
    assert kept.find(FIRST.key) == FIRST
    assert kept.find(dict(reversed(SECOND.key.items()))) == SECOND
    assert kept.find({"method": "GASR", "missing": 0.8}) is None
    assert len((filled / record.NAME).read_text().splitlines()) == 3


@pytest.mark.parametrize("n_bytes", [1, 2, 20])
def test_a_truncated_last_line_is_dropped_and_can_be_written_again(filled, n_bytes):
    path = filled / record.NAME
    whole = path.read_bytes()
    path.write_bytes(whole[:-n_bytes])
    kept = open_record(filled, experiment(), fresh=False)
    assert kept.find(FIRST.key) == FIRST
    assert kept.find(SECOND.key) is None
    kept.add(SECOND)
    assert path.read_bytes() == whole


def test_a_truncated_first_line_is_no_foreign_file(tmp_path):
    (tmp_path / record.NAME).write_bytes(b"")
    kept = open_record(tmp_path, experiment(), fresh=False)
    kept.add(FIRST)
    assert open_record(tmp_path, experiment(), fresh=False).find(FIRST.key) == FIRST


def test_other_settings_are_named_and_refused(filled):
    before = (filled / record.NAME).read_bytes()
    with pytest.raises(OutputError, match=r"quick was None, is now True.*--output.*--fresh"):
        open_record(filled, experiment(quick=True), fresh=False)
    with pytest.raises(OutputError, match="experiment was table1, is now table2"):
        open_record(filled, experiment("table2"), fresh=False)
    assert (filled / record.NAME).read_bytes() == before


def test_another_version_is_named_and_refused(filled, monkeypatch):
    monkeypatch.setattr(record, "__version__", "99.0")
    with pytest.raises(OutputError, match=r"version was .*, is now 99\.0"):
        open_record(filled, experiment(), fresh=False)


def test_fresh_begins_anew_whatever_the_settings(filled):
    kept = open_record(filled, experiment(quick=True), fresh=True)
    assert kept.find(FIRST.key) is None
    assert len((filled / record.NAME).read_text().splitlines()) == 1


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(
    "text", ["my notes\n", "[1, 2]\n", '{"experiment": "table1"}\n', "7\n", "no end of line"]
)
def test_files_of_others_are_never_touched(tmp_path, text, fresh):
    (tmp_path / record.NAME).write_text(text)
    with pytest.raises(OutputError, match=r"is not a file of results.*--output"):
        open_record(tmp_path, experiment(), fresh)
    assert (tmp_path / record.NAME).read_text() == text


def test_numbers_that_json_has_no_word_for_are_an_error(tmp_path):
    kept = open_record(tmp_path, experiment(), fresh=False)
    with pytest.raises(ValueError, match="Out of range"):
        kept.add(FIRST._replace(numbers={"rmse": float("nan")}))
    assert open_record(tmp_path, experiment(), fresh=False).find(FIRST.key) is None


def test_results_of_another_experiment_are_read_only_if_they_fit(filled):
    assert read_results(filled, experiment()) == [FIRST, SECOND]
    assert read_results(filled, experiment(quick=True)) == []
    assert read_results(filled / "nowhere", experiment()) == []
    (filled / record.NAME).write_text("my notes\n")
    assert read_results(filled, experiment()) == []


def test_the_first_line_says_what_this_is(filled):
    header = json.loads((filled / record.NAME).read_text().splitlines()[0])
    assert header["experiment"] == "table1"
    assert header["settings"] == {"seeds": [0, 1]}
