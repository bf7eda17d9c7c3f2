"""Folders of array files: on this machine, or on shared storage that fsspec reaches by an address.

Both have the same few verbs. A file is whole or not there: it comes up under another name, and takes its
own when it is complete.

One process at a time can write to a folder. A folder of this machine is locked: a second process is
refused. Shared storage has no locks: there the last process that claims a folder has it, and one that
had it before learns of that when it next writes.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from fillrank.errors import InputError, NotSupportedError, OutputError, ReadError
from fillrank.storage.array_file import Content, read, write
from fillrank.storage.file_lock import FileLock, this_process


class Folder(Protocol):
    """A place for array files."""

    def names(self) -> list[str]:
        """The names of all files."""

    def read(self, name: str, kind: str) -> Content:
        """What a file holds, which must be of this kind."""

    def write(self, name: str, content: Content) -> None:
        """Write a file, in place of one that is there."""

    def remove(self, name: str) -> None:
        """Remove a file; one that resists stays."""

    def claim(self) -> None:
        """Have the folder for this process alone; OutputError if another process has it."""

    def check_claim(self) -> None:
        """OutputError if another process has claimed the folder since."""

    def release(self) -> None:
        """Give the folder back."""


LOCK = "lock"


def is_address(place: str | os.PathLike[str]) -> bool:
    """Whether a place is an address such as ``s3://bucket/folder``, and no path.

    Examples
    --------
    >>> is_address("s3://bucket/runs"), is_address("runs/today")
    (True, False)
    """
    return isinstance(place, str) and "://" in place


def open_folder(place: str | os.PathLike[str]) -> Folder:
    """The folder at a path or an address, made if it is not there, if it can be written to."""
    return SharedFolder(str(place)) if is_address(place) else LocalFolder(Path(place))


class LocalFolder:
    """A folder of this machine's file system."""

    def __init__(self, path: Path):
        self._path = path
        self._lock = FileLock(path / LOCK)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"the folder {path} for the checkpoint cannot be made: {error.strerror}. Name another."
            ) from error
        # Told now, and not when hours of work ought to be kept.
        if not os.access(path, os.W_OK | os.X_OK):
            raise OutputError(
                f"you have no right to write to {path}, the folder for the checkpoint. Name another."
            )

    def __str__(self) -> str:
        return str(self._path)

    def names(self) -> list[str]:
        try:
            return os.listdir(self._path)
        except OSError as error:
            raise OutputError(
                f"the folder {self._path} for the checkpoint cannot be read: {error.strerror}."
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
                f"the folder {self._path} is in use: {self._lock.holder()} saves its checkpoint there. "
                "Wait until that ends, or name another folder."
            )

    def check_claim(self) -> None:
        """Nothing to check: the lock is held."""

    def release(self) -> None:
        self._lock.release()


class SharedFolder:
    """A folder of a storage that fsspec knows, such as a bucket.

    Files pass through a temporary one of this machine, where they are written and checked.
    """

    def __init__(self, address: str):
        self._address = address
        try:
            import fsspec  # type: ignore[import-untyped]
        except ImportError as error:
            raise NotSupportedError(
                f"{address} is reached by fsspec, which is not installed. "
                'Do: pip install "fillrank[dask]"'
            ) from error
        try:
            self._storage, path = fsspec.core.url_to_fs(address)
        except ImportError as error:
            raise NotSupportedError(f"{address} cannot be reached: {error}") from error
        except ValueError as error:
            raise InputError(f"{address} is no address of a folder: {error}") from error
        self._path = path.rstrip("/")
        self._claim = b""
        with self._in_words("made"):
            self._storage.makedirs(self._path, exist_ok=True)
            # Told now, and not when hours of work ought to be kept.
            test = f"{self._path}/test-{secrets.token_hex(8)}"
            self._storage.pipe_file(test, b"fillrank")
            self._storage.rm_file(test)

    def __str__(self) -> str:
        return self._address

    def names(self) -> list[str]:
        with self._in_words("read"):
            self._storage.invalidate_cache()
            return [Path(name).name for name in self._storage.ls(self._path, detail=False)]

    def read(self, name: str, kind: str) -> Content:
        with TemporaryDirectory() as here:
            near = Path(here) / name
            try:
                self._storage.get_file(f"{self._path}/{name}", str(near))
            except Exception as error:  # each storage has errors of its own
                raise ReadError(f"{self._address}/{name} cannot be read: {error}.") from error
            return read(near, kind)

    def write(self, name: str, content: Content) -> None:
        with TemporaryDirectory() as here, self._in_words("written to"):
            near = Path(here) / name
            write(near, content)
            coming = f"{self._path}/coming-{secrets.token_hex(8)}"
            self._storage.put_file(str(near), coming)
            self._storage.mv(coming, f"{self._path}/{name}")

    def remove(self, name: str) -> None:
        with suppress(Exception):
            self._storage.rm_file(f"{self._path}/{name}")

    def claim(self) -> None:
        self._claim = f"{this_process()}, {secrets.token_hex(8)}".encode()
        with self._in_words("written to"):
            self._storage.pipe_file(f"{self._path}/{LOCK}", self._claim)

    def check_claim(self) -> None:
        with self._in_words("read"):
            there = LOCK in self.names()
            place, end = f"{self._path}/{LOCK}", len(self._claim) + 1
            found = self._storage.cat_file(place, start=0, end=end) if there else b""
        if found != self._claim:
            raise OutputError(
                f"another process has begun to save its checkpoint in {self._address}. "
                "Name another folder for one of the two."
            )

    def release(self) -> None:
        with suppress(OutputError):
            self.check_claim()
            self.remove(LOCK)

    @contextmanager
    def _in_words(self, what: str) -> Iterator[None]:
        try:
            yield
        except OutputError:
            raise
        except Exception as error:  # each storage has errors of its own
            raise OutputError(
                f"the folder {self._address} for the checkpoint cannot be {what}: {error}."
            ) from error
