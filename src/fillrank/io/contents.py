"""The bytes of a file, unpacked if it is compressed: never more of them than memory can hold."""

import gzip
import io
import zipfile
import zlib
from pathlib import Path
from typing import IO

from fillrank.errors import ReadError
from fillrank.runtime.memory import available_memory, check_room, in_bytes

GZIP_ERRORS = (gzip.BadGzipFile, EOFError, zlib.error)
ZIP_ERRORS = (zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError, OSError)
# A text table takes at least so many times its size in memory: bytes, text, positions and values. Tables
# of short cells take up to 30 times as much, which is checked when their lines can be counted.
TIMES_TEXT = 4
_AT_ONCE = 2**20
# Compressed files say nothing reliable about their size; where nobody says how much memory there is,
# so much may come of them.
_MOST_UNKNOWN = 2**32


def file_content(path: Path) -> bytes:
    """Read a file, unpacked if its name ends in .gz.

    Raises
    ------
    InputError
        It is larger than memory.
    ReadError
        It is no whole gzip file, or unpacks to more than fits in memory.
    """
    if path.suffix.lower() != ".gz":
        # The bytes and their text are in memory together, whatever else is.
        check_room(
            2 * path.stat().st_size,
            "reading a text file of this size",
            "Part it; or save it as Parquet, of which a long table is read in batches.",
        )
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return _limited(file, f"{path}")
    except GZIP_ERRORS as error:
        raise ReadError(f"{path} is no whole gzip file: {error}.") from error


def member_content(archive: zipfile.ZipFile, member: zipfile.ZipInfo, source: str) -> bytes:
    """Unpack a text file that is a member of a zip; raises what `file_content` raises."""
    try:
        with archive.open(member) as file:
            return _limited(file, f"{source} ({member.filename})")
    except ZIP_ERRORS as error:
        raise ReadError(f"{source} is no whole zip file: {error}.") from error


def _limited(file: gzip.GzipFile | IO[bytes], source: str) -> bytes:
    """All that can be read of a file, a bit at a time: it ends where memory would."""
    available = available_memory()
    most = (_MOST_UNKNOWN if available is None else available) // TIMES_TEXT
    content = io.BytesIO()
    while part := file.read(_AT_ONCE):
        if content.tell() + len(part) > most:
            raise ReadError(
                f"{source} unpacks to more than {in_bytes(most)}, and a text table takes at "
                f"least {TIMES_TEXT} times its size in memory. If it is meant to be so large, read it "
                "where there is more memory; or save it as Parquet, of which a long table is read in "
                "batches."
            )
        content.write(part)
    return content.getvalue()
