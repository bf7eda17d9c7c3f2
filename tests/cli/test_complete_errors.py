import errno
import os

import numpy as np
import pytest

from fillrank.cli import output
from fillrank.cli.output import staged
from fillrank.errors import OutputError
from helpers.refusals import assert_refused
from helpers.result_files import write_csv


def long(tmp_path, *lines):
    return write_csv(tmp_path / "t.csv", [("user", "item", "rating"), *lines])


BAD_TABLES = {
    "empty": ("", ["t.csv: the file is empty"]),
    "only a header": ("user,item,rating\n", ["a header, but no lines below it"]),
    "no table": ("just some words\nand more of them here\n", ["t.csv"]),
    "text for a number": (
        "user,item,rating\nAna,tea,5\nBen,tea,lots\n",
        ["line 3", "'rating'", "must be a number, got 'lots'", "A missing value is an empty cell"],
    ),
    "duplicates": (
        "user,item,rating\nAna,tea,5\nAna,tea,4\nBen,milk,1\n",
        ["row 'Ana', column 'tea': 5, 4", "--duplicates mean"],
    ),
    "infinite": (
        "user,item,rating\nAna,tea,inf\nBen,milk,1\n",
        ["must be finite", "row 'Ana', column 'tea'", "replace them by NaN, or set --na inf."],
    ),
    "ragged": ("a,b,c\n1,2,3\n1,2\n4,5,6\n7,8,9\n", ["line 3: 2 fields, but the table has 3"]),
    "nothing observed": ("user,item,rating\nAna,tea,NA\n", ["all are missing"]),
    "twice the same row": (",x,y\na,1,2\na,3,\n", ["its own label", "'a'"]),
}


@pytest.mark.parametrize(("text", "words"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_invalid_tables_are_rejected_with_cause_and_advice(complete, tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    assert_refused(complete("t.csv"), *words)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_missing_file_and_near_miss(complete, write_wide):
    write_wide("measured.csv")
    for encoding in ((), ("--encoding", "latin-1")):
        ran = complete("measurd.csv", *encoding)
        assert_refused(ran, "measurd.csv: the file does not exist", "measured.csv?")


def test_folder_and_unknown_ending(complete, tmp_path):
    (tmp_path / "data.csv").mkdir()
    (tmp_path / "t.xlsb").write_bytes(b"PK")
    (tmp_path / "tables").mkdir()
    for name in ("data.csv", "tables"):
        assert_refused(complete(name), f"{name}: the path is a folder. Pass a file in it")
    assert_refused(complete("t.xlsb"), "kind of the file is unknown", ".csv")


def test_unknown_field_lists_the_known_ones(complete, write_long):
    ran = complete(write_long(), "--row", "user", "--column", "film", "--value", "rating")
    assert_refused(ran, "no column 'film'", "'user', 'item', 'rating'")


def test_duplicates_can_be_resolved_by_an_option(complete, tmp_path):
    table = long(tmp_path, ("a", "x", 1), ("a", "x", 3), ("b", "y", 2), ("b", "x", 2))
    assert complete(table, "--duplicates", "mean").code == 0


@pytest.mark.parametrize(
    ("option", "given"),
    [
        ("--sweeps", "0"),
        ("--sweeps", "many"),
        ("--max-rank", "-1"),
        ("--level", "1"),
        ("--hold-out", "1"),
        ("--chains", "0"),
        ("--layout", "tall"),
        ("--seed", "-1"),
    ],
)
def test_bad_options_are_refused_before_the_work(fillrank, write_wide, tmp_path, option, given):
    ran = fillrank("complete", write_wide(), option, given)
    assert ran.code == 2
    assert option in ran.err
    assert not (tmp_path / "table-filled").exists()


@pytest.mark.parametrize("place", ["in the way", "in the way/deeper/still"])
def test_a_file_where_the_folder_should_be(complete, write_wide, tmp_path, place):
    obstacle = tmp_path / "in the way"
    obstacle.write_text("precious")
    assert_refused(complete(write_wide(), "-o", place), place, "--output")
    assert obstacle.read_text() == "precious"


def test_the_name_of_a_table_for_the_folder(complete, write_wide, tmp_path):
    ran = complete(write_wide(), "-o", "done.csv")
    assert_refused(ran, "--output is a folder", "such as done,", "--output - > done.csv")
    assert not (tmp_path / "done.csv").exists()


def test_existing_results_are_replaced_only_with_force(complete, write_wide, tmp_path):
    table, folder = write_wide(), tmp_path / "table-filled"
    complete(table)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert_refused(complete(table, "--seed", "1"), "already has filled.csv", "--force", "--output")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    ran = complete(table, "--seed", "1", "--force", "--intervals", "none")
    assert ran.code == 0, ran.err
    # Intervals of the other run would contradict the new table.
    assert {path.name for path in folder.iterdir()} == set(before) - {"intervals.csv"}
    assert (folder / "filled.csv").read_bytes() != before["filled.csv"]


def test_a_folder_with_other_files_can_be_used(complete, write_wide, tmp_path):
    assert complete(write_wide(), "-o", ".").code == 0
    assert (tmp_path / "filled.csv").exists()
    assert (tmp_path / "table.csv").exists()


def test_the_table_itself_is_never_replaced(complete, write_wide, tmp_path):
    table = write_wide("filled.csv")
    before = table.read_bytes()
    assert_refused(complete(table, "-o", ".", "--force"), "would replace")
    assert table.read_bytes() == before


def test_a_full_disk_leaves_only_the_old_results(complete, write_wide, tmp_path, monkeypatch):
    table, folder = write_wide(), tmp_path / "table-filled"
    complete(table)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(path, *_):
        path.write_text("half a fi")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("fillrank.cli.summary.write_summary", fail)
    assert_refused(complete(table, "--force"), "No space left on device", "--output")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    assert_refused(complete(table, "-o", "new/deep"), "No space left on device")
    assert not (tmp_path / "new").exists()


def test_a_full_disk_is_noticed_before_the_fit(complete, write_wide, tmp_path, monkeypatch):
    usage = output.shutil.disk_usage(tmp_path)._replace(free=100)
    monkeypatch.setattr(output.shutil, "disk_usage", lambda folder: usage)
    ran = complete(write_wide())
    assert_refused(ran, "need about", "only 100 bytes are free", "--output")
    assert "Fitting" not in ran.err
    assert not (tmp_path / "table-filled").exists()


@pytest.mark.parametrize("sweep", [1, 15])
def test_ctrl_c_ends_with_130_and_leaves_no_files(
    complete, write_wide, tmp_path, monkeypatch, sweep
):
    def interrupt(recorder, step):
        if step.number >= sweep:
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr("fillrank.run.loop._note", interrupt)
    ran = complete(write_wide())
    assert ran.code == 130
    assert "Interrupted" in ran.err
    assert ran.out == ""
    assert not (tmp_path / "table-filled").exists()


def test_bugs_are_not_hidden(complete, write_wide, tmp_path, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("fillrank.cli.complete.evaluate", broken)
    assert isinstance(complete(write_wide()).exception, ZeroDivisionError)
    assert not (tmp_path / "table-filled").exists()


def test_a_folder_in_place_of_a_result_is_refused(tmp_path):
    (tmp_path / "filled.csv").mkdir()
    with (
        pytest.raises(OutputError, match="is a folder"),
        staged(tmp_path, output.result_names("table"), True),
    ):
        pass


def test_nothing_has_its_final_name_before_the_end(tmp_path):
    folder = tmp_path / "out"
    with staged(folder, ["a", "b"], force=False) as stage:
        (stage / "a").write_text("1")
        assert not (folder / "a").exists()
    assert [path.name for path in folder.iterdir()] == ["a"]
    # Not the private mode of temporary files: results are there to be shared.
    mask = os.umask(0)
    os.umask(mask)
    assert (folder / "a").stat().st_mode & 0o777 == 0o666 & ~mask


def test_huge_values_are_rejected_with_a_message(complete, matrix, tmp_path):
    np.save(tmp_path / "t.npy", 1e200 * matrix)
    assert_refused(complete("t.npy"), "at most 1e+152", "Change their unit")
    assert not (tmp_path / "t-filled").exists()
