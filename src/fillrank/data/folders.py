"""Folders of array files: on this machine, or on shared storage that fsspec reaches by an address.

Both have the same few verbs. A file is whole or not there: it comes up under another name, and takes its
own when it is complete.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from fillrank.data.array_file import Content, read, write
from fillrank.errors import InputError, NotSupportedError, OutputError, ReadError


class Folder(Protocol):
    """A place for array files."""

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""

    def names(self) -> list[str]:
        """The names of all files."""

    def read(self, name: str, kind: str) -> Content:
        """What a file holds, which must be of this kind."""

    def write(self, name: str, content: Content) -> None:
        """Write a file, in place of one that is there."""

    def remove(self, name: str) -> None:
        """Remove a file; one that resists stays."""


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

    def has(self, name: str) -> bool:
        return (self._path / name).exists()

    def names(self) -> list[str]:
        return [path.name for path in self._path.iterdir()]

    def read(self, name: str, kind: str) -> Content:
        return read(self._path / name, kind)

    def write(self, name: str, content: Content) -> None:
        write(self._path / name, content)

    def remove(self, name: str) -> None:
        with suppress(OSError):
            (self._path / name).unlink()


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
        with self._in_words("made"):
            self._storage.makedirs(self._path, exist_ok=True)
            # Told now, and not when hours of work ought to be kept.
            test = f"{self._path}/test-{secrets.token_hex(8)}"
            self._storage.pipe_file(test, b"fillrank")
            self._storage.rm_file(test)

    def __str__(self) -> str:
        return self._address

    def has(self, name: str) -> bool:
        with self._in_words("read"):
            self._storage.invalidate_cache()
            return bool(self._storage.exists(f"{self._path}/{name}"))

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
