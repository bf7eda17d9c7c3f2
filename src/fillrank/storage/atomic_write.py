"""Atomic writes: a file is replaced completely or not at all.

The new content goes to a temporary file in the same folder, which replaces the old file only when all
of it is on the disk. If anything fails, the old file is unchanged.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fillrank.errors import OutputError

_OTHER_PATH, _OTHER_DISK = "use another path.", "use a path on another disk."
_FORBIDDEN = (
    "you do not have permission to write there",
    f"Change the permissions, or {_OTHER_PATH}",
)
_NO_FOLDER = "its folder does not exist", f"Create the folder first, or {_OTHER_PATH}"
# The causes that users meet, with advice.
_CAUSES = {
    errno.ENOSPC: ("the disk is full", f"Free some space, or {_OTHER_DISK}"),
    errno.EDQUOT: ("your disk quota is used up", f"Free some space, or {_OTHER_DISK}"),
    errno.EFBIG: ("the file is larger than the disk or your limits allow", "Use another disk."),
    errno.ENOENT: _NO_FOLDER,
    errno.ENOTDIR: _NO_FOLDER,
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.EROFS: ("the disk is read-only", "Use another disk."),
}
# File names have at most 255 bytes on most disks, and a character has up to four.
_MAX_NAME_LENGTH = 50


@contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces ``path`` when the block ends.

    A new file gets the permissions of the umask; a replaced file keeps its permissions. If ``path`` is
    a symbolic link, its target is replaced. If the block raises, KeyboardInterrupt included, the
    temporary file is removed.

    Raises
    ------
    OutputError
        The file cannot be written; also in place of any OSError of the block.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "note.txt"
    >>> with write_atomically(path) as temporary:
    ...     _ = temporary.write_text("complete")
    >>> path.read_text()
    'complete'
    """
    path = Path(path)
    with _convert_errors(path):
        target = _resolve(path)
        # The name shows which file it belonged to, in case the process dies.
        temporary = target.parent / f".{target.name[:_MAX_NAME_LENGTH]}.{secrets.token_hex(8)}"
        try:
            mode = _create(temporary, target)
            yield temporary
            os.chmod(temporary, mode)  # the block may have replaced the temporary file
            _flush(temporary)
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):  # it was never created
                temporary.unlink()
            raise
        if os.name == "posix":
            with suppress(OSError):  # the file is complete; some disks cannot flush a folder
                _flush(target.parent)


@contextmanager
def _convert_errors(path: Path) -> Iterator[None]:
    """Raise every OSError as an OutputError that names the file and what to do."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        other = f"{error.strerror or error}", "Use another path."
        cause, advice = _CAUSES.get(error.errno or 0, other)
        raise OutputError(f"{path} cannot be written: {cause}", advice=advice) from error


def _resolve(path: Path) -> Path:
    """Follow symbolic links to the file to replace; raise OutputError if it cannot be replaced."""
    try:
        target = Path(os.path.realpath(path))
        status = target.stat()
    except FileNotFoundError:
        return target
    except ValueError as error:
        raise OutputError(
            f"{str(path)!r} is not a valid path: {error}", advice="Use another path."
        ) from error
    if stat.S_ISDIR(status.st_mode):
        raise OutputError(f"{path} is a folder", advice="Use the path of a file.")
    if not stat.S_ISREG(status.st_mode):
        raise OutputError(f"{path} is a device or a pipe", advice="Use the path of a file.")
    if not os.access(target, os.W_OK):
        raise OutputError(
            f"{path} is write-protected", advice=f"Change its permissions, or {_OTHER_PATH}"
        )
    return target


def _create(temporary: Path, target: Path) -> int:
    """Create the empty temporary file and return the permissions that the final file must have."""
    # tempfile would give access to the owner only; here the umask decides.
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    with suppress(FileNotFoundError):
        # Before anything is written: the new content may be as confidential as the old.
        os.chmod(temporary, target.stat().st_mode & 0o777)
    return temporary.stat().st_mode & 0o777


def _flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    # Windows flushes only files that are open for writing.
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
