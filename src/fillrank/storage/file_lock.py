"""A lock that one process at a time can hold, by a file that the operating system locks.

The system releases it when the process ends, however it ends: a dead process blocks nobody.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    # Windows also forbids to read what is locked: so a byte behind the text is.
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
        # To close the file would not do: a process that was forked meanwhile has it open too.
        fcntl.flock(handle, fcntl.LOCK_UN)


_MOST_TEXT = 200


class FileLock:
    """A lock on a file, which is made if it is not there and stays there.

    It also excludes other locks of the same process. Some network file systems have no locks; there
    every `acquire` succeeds.

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
        """Take the lock; False if another has it."""
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:  # a disk without room for another file
            return True
        try:
            _try_lock(handle)
        except (BlockingIOError, PermissionError):
            os.close(handle)
            return False
        except OSError:  # a file system without locks
            os.close(handle)
            return True
        with suppress(OSError):  # it only serves messages
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, this_process().encode())
        self._handle = handle
        return True

    def holder(self) -> str:
        """Who holds the lock, in words."""
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                text = file.read(_MOST_TEXT)
        except OSError:
            text = ""
        return text if text.isprintable() and text else "another process"

    def release(self) -> None:
        """Give the lock back, if it was taken."""
        if self._handle is not None:
            with suppress(OSError):
                _unlock(self._handle)
            os.close(self._handle)
            self._handle = None


def this_process() -> str:
    """This process, in words that a user can find it by."""
    return f"process {os.getpid()} on {socket.gethostname()}"
