"""Folders of array files, on this machine and on storage that has a URL."""

import secrets
import sys

import numpy as np
import pytest

from fillrank.errors import InputError, NotSupportedError, OutputError, ReadError
from fillrank.storage.array_file import Content
from fillrank.storage.folders import LocalFolder, SharedFolder, open_folder

CONTENT = Content("a kind", {"n": 3}, {"x": np.arange(5.0)})


@pytest.fixture(params=["path", "file", "memory"])
def location(request, tmp_path):
    if request.param != "path":
        pytest.importorskip("fsspec")
    return {
        "path": tmp_path / "a" / "b",
        "file": f"file://{tmp_path}/a/b",
        "memory": f"memory://{secrets.token_hex(8)}/b",
    }[request.param]


def test_write_read_and_remove(location):
    folder = open_folder(location)
    assert isinstance(folder, SharedFolder if isinstance(location, str) else LocalFolder)
    assert str(folder) == str(location)
    assert folder.names() == []
    folder.write("one", CONTENT)
    folder.write("two", CONTENT)
    folder.write("one", CONTENT._replace(about={"n": 4}))
    reopened = open_folder(location)
    assert sorted(reopened.names()) == ["one", "two"]
    found = reopened.read("one", "a kind")
    assert found.about == {"n": 4}
    np.testing.assert_array_equal(found.arrays["x"], CONTENT.arrays["x"])
    reopened.remove("one")
    reopened.remove("one")  # already removed
    assert folder.names() == ["two"]


def test_one_process_at_a_time_owns_a_folder(location):
    first, second = open_folder(location), open_folder(location)
    first.claim()
    first.check_claim()
    if isinstance(first, LocalFolder):
        with pytest.raises(OutputError, match=f"the folder {location} is in use: process "):
            second.claim()
    else:  # no locks
        second.claim()
        second.check_claim()
        with pytest.raises(OutputError, match=f"another process has started .* in {location}"):
            first.check_claim()
    first.release()
    third = open_folder(location)
    third.claim()
    third.check_claim()
    third.release()
    third.release()


def test_the_content_of_a_lock_is_shown_only_if_printable(tmp_path):
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


def test_files_that_cannot_be_read(location):
    folder = open_folder(location)
    folder.write("one", CONTENT)
    with pytest.raises(ReadError, match="another kind"):
        folder.read("one", "another kind")
    with pytest.raises(ReadError):
        folder.read("two", "a kind")


def test_files_are_written_atomically(monkeypatch, tmp_path):
    pytest.importorskip("fsspec")
    folder = SharedFolder(f"file://{tmp_path}")
    folder.write("one", CONTENT)

    def incomplete(source, target):
        (tmp_path / target.rsplit("/", 1)[1]).write_bytes(b"incomplete")
        raise OSError("connection lost")

    monkeypatch.setattr(folder._storage, "put_file", incomplete)
    with pytest.raises(OutputError, match=r"cannot be written to: connection lost\."):
        folder.write("one", CONTENT._replace(about={"n": 4}))
    assert folder.read("one", "a kind").about == {"n": 3}


def test_storage_that_is_not_writable_is_refused_on_opening(tmp_path):
    pytest.importorskip("fsspec")
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OutputError, match=r"checkpoint folder file://.*/file cannot be created"):
        open_folder(f"file://{tmp_path}/file")


def test_urls_of_unknown_protocols():
    pytest.importorskip("fsspec")
    with pytest.raises((InputError, NotSupportedError), match="nowhere://bucket/run"):
        open_folder("nowhere://bucket/run")


def test_without_fsspec_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(NotSupportedError, match=r'pip install "fillrank\[dask\]"'):
        open_folder("s3://bucket/run")
