import errno
import os
import stat
import subprocess
import sys

import pytest

from fillrank.errors import OutputError
from fillrank.storage.atomic_write import write_atomically
from helpers.processes import LIMIT

OLD, NEW = b"old content", b"new content"


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "model.fillrank"
    path.write_bytes(OLD)
    return path


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


def replace(path, error=None):
    with write_atomically(path) as temporary:
        temporary.write_bytes(NEW)
        if error is not None:
            raise error


def names_in(folder):
    return sorted(os.listdir(folder))


def test_the_file_does_not_exist_before_it_is_complete(tmp_path):
    path = tmp_path / "model.fillrank"
    with write_atomically(path) as temporary:
        assert temporary.parent == path.parent
        temporary.write_bytes(NEW)
        assert not path.exists()
    assert path.read_bytes() == NEW
    assert names_in(tmp_path) == [path.name]


def test_the_old_file_exists_until_the_new_one_is_complete(old):
    with write_atomically(old) as temporary:
        temporary.write_bytes(NEW)
        assert old.read_bytes() == OLD
    assert old.read_bytes() == NEW


def test_a_path_as_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    replace("model.fillrank")
    assert names_in(tmp_path) == ["model.fillrank"]


def test_a_name_as_long_as_the_disk_allows(tmp_path):
    path = tmp_path / ("n" * 255)
    replace(path)
    assert path.read_bytes() == NEW


@pytest.mark.parametrize(
    "error", [ValueError("no"), KeyboardInterrupt(), SystemExit(1), GeneratorExit()]
)
def test_after_any_error_the_old_file_is_unchanged(old, error):
    with pytest.raises(type(error)) as raised:
        replace(old, error)
    assert raised.value is error
    assert old.read_bytes() == OLD
    assert names_in(old.parent) == [old.name]


def test_a_killed_process_does_not_change_the_old_file(old):
    script = (
        "import os, sys; from fillrank.storage.atomic_write import write_atomically\n"
        "with write_atomically(sys.argv[1]) as temporary:\n"
        "    temporary.write_bytes(b'half'); os._exit(7)"
    )
    command = [sys.executable, "-c", script, old]
    assert subprocess.run(command, check=False, timeout=LIMIT).returncode == 7
    assert old.read_bytes() == OLD


FULL = OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_that_fills_during_the_write(old):
    with pytest.raises(OutputError, match=r"model\.fillrank .* disk is full\. Free some space"):
        replace(old, FULL)
    assert old.read_bytes() == OLD
    assert names_in(old.parent) == [old.name]


def test_a_disk_that_is_full_when_it_is_flushed(old, monkeypatch):
    def full_disk(handle):
        raise FULL

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OutputError, match="disk is full"):
        replace(old)
    assert old.read_bytes() == OLD
    assert names_in(old.parent) == [old.name]


LIMITED = """
import resource, sys
from fillrank.storage.atomic_write import write_atomically
from fillrank.errors import OutputError
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    with write_atomically(sys.argv[1]) as temporary:
        temporary.write_bytes(bytes(100_000))
except OutputError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits are those of Unix")
def test_a_limit_of_the_system(old):
    command = [sys.executable, "-c", LIMITED, old]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT)
    assert "larger than the disk or your limits allow" in run.stdout
    assert old.read_bytes() == OLD
    assert names_in(old.parent) == [old.name]


def test_the_content_is_flushed_before_the_file_is_renamed(old, monkeypatch):
    done = []
    fsync, move = os.fsync, os.replace

    def note_flush(handle):
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def note_move(*arguments):
        done.append("move")
        move(*arguments)

    monkeypatch.setattr(os, "fsync", note_flush)
    monkeypatch.setattr(os, "replace", note_move)
    replace(old)
    assert done == ["file", "move", "folder"]


def test_a_missing_folder(tmp_path):
    with pytest.raises(OutputError, match=r"folder does not exist\. Create the folder first"):
        replace(tmp_path / "none" / "model.fillrank")
    assert names_in(tmp_path) == []


def test_a_file_in_place_of_the_folder(old):
    with pytest.raises(OutputError, match="folder does not exist"):
        replace(old / "model.fillrank")


def test_a_folder_in_place_of_the_file(tmp_path):
    with pytest.raises(OutputError, match=r"is a folder\. Use the path of a file"):
        replace(tmp_path)
    assert names_in(tmp_path) == []


def test_a_pipe_in_place_of_the_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="a device or a pipe"):
        replace(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_an_invalid_path(tmp_path):
    with pytest.raises(OutputError, match="is not a valid path"):
        replace(tmp_path / "a\0b")


def test_a_folder_without_write_permission(tmp_path, monkeypatch):
    # Simulated: permissions do not apply to an administrator, who may be running this.
    def forbidden(*arguments):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", forbidden)
    with pytest.raises(OutputError, match="do not have permission to write there"):
        replace(tmp_path / "model.fillrank")


def test_a_protected_file_is_not_replaced(old, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(OutputError, match="write-protected"):
        replace(old)
    assert old.read_bytes() == OLD


def test_a_new_file_has_the_permissions_of_the_umask(tmp_path, umask):
    replace(tmp_path / "model.fillrank")
    assert permissions(tmp_path / "model.fillrank") == 0o666 & ~umask


@pytest.mark.parametrize("mode", [0o600, 0o666, 0o755])
def test_a_replaced_file_keeps_its_permissions(old, umask, mode):
    old.chmod(mode)
    with write_atomically(old) as temporary:
        assert permissions(temporary) == mode  # from the first byte on
        temporary.write_bytes(NEW)
    assert permissions(old) == mode


def test_permissions_if_the_block_replaces_the_temporary_file(old, umask):
    # As safetensors does, whose temporary files only their owner can access.
    old.chmod(0o664)
    with write_atomically(old) as temporary:
        other = temporary.with_name("other")
        other.write_bytes(NEW)
        other.chmod(0o600)
        other.replace(temporary)
    assert (permissions(old), old.read_bytes()) == (0o664, NEW)


@pytest.mark.parametrize("exists", [True, False])
def test_the_target_of_a_link_is_replaced(tmp_path, exists):
    target, link = tmp_path / "a" / "target", tmp_path / "link"
    target.parent.mkdir()
    if exists:
        target.write_bytes(OLD)
    link.symlink_to(target)
    replace(link)
    assert link.is_symlink()
    assert target.read_bytes() == NEW
    assert (names_in(tmp_path), names_in(target.parent)) == (["a", "link"], ["target"])


def test_a_link_to_itself(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "link")
    with pytest.raises(OutputError, match="cannot be written"):
        replace(tmp_path / "link")
