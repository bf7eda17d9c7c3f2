"""Folders of array files: on this machine, or on shared storage that fsspec accesses by URL.

Both have the same interface. Files are written atomically: a file is uploaded under another name and
renamed when it is complete.

One process at a time can write to a folder. A local folder is locked, so a second process gets an
error. Shared storage has no locks: there the last process that claims a folder owns it, and the
previous owner gets an error on its next write.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from fillrank.errors import InputError, NotSupportedError, OutputError, ReadError
from fillrank.storage.array_file import Content, read, write

if sys.platform == "win32":
    import msvcrt

    # Windows does not allow reading a locked range, so a byte after the text is locked.
    _LOCKED_BYTE = 2**20

    def _try_lock(handle: int) -> None:
        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

    def _unlock(handle: int) -> None:
        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _try_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(handle: int) -> None:
        # Closing the file is not enough: a process forked meanwhile has it open too.
        fcntl.flock(handle, fcntl.LOCK_UN)


LOCK = "lock"
_MAX_HOLDER_LENGTH = 200


class Folder(Protocol):
    """A folder of array files."""

    def names(self) -> list[str]:
        """Return the names of all files."""

    def read(self, name: str, kind: str) -> Content:
        """Read a file, which must have this kind."""

    def write(self, name: str, content: Content) -> None:
        """Write a file, replacing an existing one."""

    def remove(self, name: str) -> None:
        """Remove a file; do nothing if that fails."""

    def claim(self) -> None:
        """Claim the folder for this process; raise OutputError if another process has locked it."""

    def check_claim(self) -> None:
        """Raise OutputError if another process has claimed the folder since."""

    def release(self) -> None:
        """End the claim."""


def open_folder(folder: str | os.PathLike[str]) -> Folder:
    """Open the folder at a path, or at a URL such as ``s3://bucket/folder``.

    It is created if it does not exist; OutputError if it is not writable.
    """
    if isinstance(folder, str) and "://" in folder:
        return SharedFolder(folder)
    return LocalFolder(Path(folder))


class LocalFolder:
    """A folder of the local file system."""

    def __init__(self, path: Path):
        self._path = path
        self._lock = FileLock(path / LOCK)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"the checkpoint folder {path} cannot be created: {error.strerror}",
                advice="Use another folder.",
            ) from error
        # Checked here, not after hours of work that would be lost.
        if not os.access(path, os.W_OK | os.X_OK):
            raise OutputError(
                f"you do not have permission to write to the checkpoint folder {path}",
                advice="Use another folder.",
            )

    def __str__(self) -> str:
        return str(self._path)

    def names(self) -> list[str]:
        try:
            return os.listdir(self._path)
        except OSError as error:
            raise OutputError(
                f"the checkpoint folder {self._path} cannot be read: {error.strerror}."
            ) from error

    def read(self, name: str, kind: str) -> Content:
        return read(self._path / name, kind)

    def write(self, name: str, content: Content) -> None:
        write(self._path / name, content)

    def remove(self, name: str) -> None:
        with suppress(OSError):
            (self._path / name).unlink()

    def claim(self) -> None:
        if not self._lock.acquire():
            raise OutputError(
                f"the folder {self._path} is in use: {self._lock.holder()} saves a checkpoint there",
                advice="Wait until it ends, or use another folder.",
            )

    def check_claim(self) -> None:
        """Do nothing: the lock cannot be lost."""

    def release(self) -> None:
        self._lock.release()


class SharedFolder:
    """A folder of a storage that fsspec supports, such as a bucket.

    Files are written and checked in a local temporary folder, then uploaded; reading does the reverse.
    """

    def __init__(self, url: str):
        self._url = url
        try:
            import fsspec  # type: ignore[import-untyped]
        except ImportError as error:
            raise NotSupportedError(
                f"{url} requires fsspec, which is not installed",
                advice='Run: pip install "fillrank[dask]"',
            ) from error
        try:
            self._storage, path = fsspec.core.url_to_fs(url)
        except ImportError as error:
            raise NotSupportedError(f"{url} cannot be accessed: {error}") from error
        except ValueError as error:
            raise InputError(f"{url} is not the URL of a folder: {error}") from error
        self._path = path.rstrip("/")
        self._claim = b""
        with self._convert_errors("created"):
            self._storage.makedirs(self._path, exist_ok=True)
            # Checked here, not after hours of work that would be lost.
            test = f"{self._path}/test-{secrets.token_hex(8)}"
            self._storage.pipe_file(test, b"fillrank")
            self._storage.rm_file(test)

    def __str__(self) -> str:
        return self._url

    def names(self) -> list[str]:
        with self._convert_errors("read"):
            self._storage.invalidate_cache()
            return [Path(name).name for name in self._storage.ls(self._path, detail=False)]

    def read(self, name: str, kind: str) -> Content:
        with TemporaryDirectory() as folder:
            local = Path(folder) / name
            try:
                self._storage.get_file(f"{self._path}/{name}", str(local))
            except Exception as error:  # each storage raises its own types
                raise ReadError(f"{self._url}/{name} cannot be read: {error}.") from error
            return read(local, kind)

    def write(self, name: str, content: Content) -> None:
        with TemporaryDirectory() as folder, self._convert_errors("written to"):
            local = Path(folder) / name
            write(local, content)
            incomplete = f"{self._path}/coming-{secrets.token_hex(8)}"
            self._storage.put_file(str(local), incomplete)
            self._storage.mv(incomplete, f"{self._path}/{name}")

    def remove(self, name: str) -> None:
        with suppress(Exception):
            self._storage.rm_file(f"{self._path}/{name}")

    def claim(self) -> None:
        self._claim = f"{_process_description()}, {secrets.token_hex(8)}".encode()
        with self._convert_errors("written to"):
            self._storage.pipe_file(f"{self._path}/{LOCK}", self._claim)

    def check_claim(self) -> None:
        with self._convert_errors("read"):
            exists = LOCK in self.names()
            path, end = f"{self._path}/{LOCK}", len(self._claim) + 1
            found = self._storage.cat_file(path, start=0, end=end) if exists else b""
        if found != self._claim:
            raise OutputError(
                f"another process has started to save its checkpoint in {self._url}",
                advice="Use another folder for one of the two.",
            )

    def release(self) -> None:
        with suppress(OutputError):
            self.check_claim()
            self.remove(LOCK)

    @contextmanager
    def _convert_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except OutputError:
            raise
        except Exception as error:  # each storage raises its own types
            raise OutputError(
                f"the checkpoint folder {self._url} cannot be {action}: {error}."
            ) from error


class FileLock:
    """A lock that one process at a time can hold: a file that the operating system locks.

    The system releases the lock when the process ends, even if it crashes. The file is created if it
    does not exist, and is not removed. The lock also excludes other locks of the same process. Some
    network file systems do not support locks; there every `acquire` succeeds.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "lock"
    >>> first, second = FileLock(path), FileLock(path)
    >>> first.acquire(), second.acquire()
    (True, False)
    >>> first.release()
    >>> second.acquire()
    True
    >>> second.release()
    """

    def __init__(self, path: Path):
        self._path = path
        self._handle: int | None = None

    def acquire(self) -> bool:
        """Acquire the lock; return False if another holds it."""
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:  # no space for another file
            return True
        try:
            _try_lock(handle)
        except (BlockingIOError, PermissionError):
            os.close(handle)
            return False
        except OSError:  # a file system without locks
            os.close(handle)
            return True
        with suppress(OSError):  # the text is used in messages only
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, _process_description().encode())
        self._handle = handle
        return True

    def holder(self) -> str:
        """Describe the process that holds the lock."""
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                text = file.read(_MAX_HOLDER_LENGTH)
        except OSError:
            text = ""
        return text if text.isprintable() and text else "another process"

    def release(self) -> None:
        """Release the lock if it was acquired."""
        if self._handle is not None:
            with suppress(OSError):
                _unlock(self._handle)
            os.close(self._handle)
            self._handle = None


def _process_description() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"
