"""Folders of array files, on this machine and on storage that is reached by an address."""

import secrets
import sys

import numpy as np
import pytest

from fillrank.errors import InputError, NotSupportedError, OutputError, ReadError
from fillrank.storage.array_file import Content
from fillrank.storage.folders import LocalFolder, SharedFolder, open_folder

CONTENT = Content("a kind", {"n": 3}, {"x": np.arange(5.0)})


@pytest.fixture(params=["path", "file", "memory"])
def place(request, tmp_path):
    if request.param != "path":
        pytest.importorskip("fsspec")
    return {
        "path": tmp_path / "a" / "b",
        "file": f"file://{tmp_path}/a/b",
        "memory": f"memory://{secrets.token_hex(8)}/b",
    }[request.param]


def test_files_come_and_go(place):
    folder = open_folder(place)
    assert isinstance(folder, SharedFolder if isinstance(place, str) else LocalFolder)
    assert str(folder) == str(place)
    assert folder.names() == []
    folder.write("one", CONTENT)
    folder.write("two", CONTENT)
    folder.write("one", CONTENT._replace(about={"n": 4}))
    again = open_folder(place)
    assert sorted(again.names()) == ["one", "two"]
    found = again.read("one", "a kind")
    assert found.about == {"n": 4}
    np.testing.assert_array_equal(found.arrays["x"], CONTENT.arrays["x"])
    again.remove("one")
    again.remove("one")  # it is gone already
    assert folder.names() == ["two"]


def test_one_process_at_a_time_has_a_folder(place):
    first, second = open_folder(place), open_folder(place)
    first.claim()
    first.check_claim()
    if isinstance(first, LocalFolder):
        with pytest.raises(OutputError, match=f"the folder {place} is in use: process "):
            second.claim()
    else:  # there are no locks
        second.claim()
        second.check_claim()
        with pytest.raises(OutputError, match=f"another process has begun .* in {place}"):
            first.check_claim()
    first.release()
    third = open_folder(place)
    third.claim()
    third.check_claim()
    third.release()
    third.release()


def test_the_text_of_a_lock_is_shown_only_if_it_is_text(tmp_path):
    folder = open_folder(tmp_path)
    folder.claim()
    for text in (b"\x1b[2J", b"\xff\x00", b""):
        (tmp_path / "lock").write_bytes(text)
        with pytest.raises(OutputError, match="is in use: another process saves"):
            open_folder(tmp_path).claim()
    (tmp_path / "lock").write_bytes(b"x" * 10**6)
    with pytest.raises(OutputError) as caught:
        open_folder(tmp_path).claim()
    assert len(str(caught.value)) < 1000


def test_what_cannot_be_read(place):
    folder = open_folder(place)
    folder.write("one", CONTENT)
    with pytest.raises(ReadError, match="another kind"):
        folder.read("one", "another kind")
    with pytest.raises(ReadError):
        folder.read("two", "a kind")


def test_a_file_is_whole_or_not_there(monkeypatch, tmp_path):
    pytest.importorskip("fsspec")
    folder = SharedFolder(f"file://{tmp_path}")
    folder.write("one", CONTENT)

    def half(source, target):
        (tmp_path / target.rsplit("/", 1)[1]).write_bytes(b"half")
        raise OSError("the line is dead")

    monkeypatch.setattr(folder._storage, "put_file", half)
    with pytest.raises(OutputError, match=r"cannot be written to: the line is dead\."):
        folder.write("one", CONTENT._replace(about={"n": 4}))
    assert folder.read("one", "a kind").about == {"n": 3}


def test_storage_that_cannot_be_written_to_is_told_of_at_once(tmp_path):
    pytest.importorskip("fsspec")
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OutputError, match=r"file://.*/file for the checkpoint cannot be made"):
        open_folder(f"file://{tmp_path}/file")


def test_addresses_that_nothing_knows():
    pytest.importorskip("fsspec")
    with pytest.raises((InputError, NotSupportedError), match="nowhere://bucket/run"):
        open_folder("nowhere://bucket/run")


def test_without_fsspec_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(NotSupportedError, match=r'pip install "fillrank\[dask\]"'):
        open_folder("s3://bucket/run")
