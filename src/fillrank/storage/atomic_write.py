"""Files that are written whole or not at all.

What is written goes to a temporary file in the same folder, which takes the place of the old file
only when all of it is on the disk. Whatever fails, the old file stays as it was.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fillrank.errors import OutputError

_FULL = "the disk is full. Make room on it, or name a path on another disk"
_FORBIDDEN = "you have no right to write there. Name another path, or ask for that right"
_NO_FOLDER = "its folder does not exist. Make the folder first, or name another path"
# Four bytes each at most: a disk's longest name has 255.
_MOST_OF_NAME = 50
# What went wrong and what to do about it, for the errors that users meet.
_WORDS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: "your share of the disk is used up. Make room, or name a path on another disk",
    errno.EFBIG: "the file is larger than the disk or your limits allow. Name a path elsewhere",
    errno.ENOENT: _NO_FOLDER,
    errno.ENOTDIR: _NO_FOLDER,
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.EROFS: "the disk can only be read. Name a path on another disk",
}


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file to write to; at the end it takes the place of ``path``.

    A new file gets the rights that the umask leaves, a replaced one keeps its own. A link stays: what
    it points to is replaced. If the block raises, be it KeyboardInterrupt, the temporary file goes.

    Raises
    ------
    OutputError
        The file cannot be written; also in place of any OSError of the block.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "words.txt"
    >>> with whole_file(path) as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> path.read_text()
    'all of it'
    """
    path = Path(path)
    with _in_words(path):
        target = _target(path)
        # Named after the file, so that it can be told whose it was if the process dies.
        temporary = target.parent / f".{target.name[:_MOST_OF_NAME]}.{secrets.token_hex(8)}"
        try:
            mode = _create(temporary, target)
            yield temporary
            os.chmod(temporary, mode)  # the block may have put a file of its own in the place
            _flush(temporary)
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):  # never made
                temporary.unlink()
            raise
        if os.name == "posix":
            with suppress(OSError):  # the file is there; some disks cannot be told to keep its name
                _flush(target.parent)


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Say of errors of the system which file could not be written, and what to do."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        words = _WORDS.get(error.errno or 0, f"{error.strerror or error}. Name another path")
        raise OutputError(f"{path} cannot be written: {words}.") from error


def _target(path: Path) -> Path:
    """The file to replace, links followed; refused if it is there and is no file, or protected."""
    try:
        target = Path(os.path.realpath(path))
        status = target.stat()
    except FileNotFoundError:
        return target
    except ValueError as error:
        raise OutputError(f"{str(path)!r} is no path: {error}. Name another path.") from error
    if stat.S_ISDIR(status.st_mode):
        raise OutputError(f"{path} is a folder. Name a file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise OutputError(f"{path} is a device or a pipe. Name a file.")
    if not os.access(target, os.W_OK):
        raise OutputError(f"{path} is write-protected. Lift that, or name another path.")
    return target


def _create(temporary: Path, target: Path) -> int:
    """Make the empty temporary file, and give the rights that it has to have."""
    # Not by tempfile, whose files are their owner's alone: here the umask decides.
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    with suppress(FileNotFoundError):
        # At once: what is about to be written may be as secret as what was there.
        os.chmod(temporary, target.stat().st_mode & 0o777)
    return temporary.stat().st_mode & 0o777


def _flush(place: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    # Windows flushes only what is open for writing.
    flags = os.O_RDONLY if place.is_dir() else os.O_RDWR
    handle = os.open(place, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
