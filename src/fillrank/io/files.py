"""Contents of paths and open files, within the limits of memory."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from fillrank.errors import FileLocation, FillrankError, InputError, ReadError
from fillrank.runtime.memory import available_memory, check_memory, format_bytes

ZIP_ERRORS = (zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError, OSError)
_GZIP_ERRORS = (gzip.BadGzipFile, EOFError, zlib.error)
# Memory for a text table relative to its size, at least: bytes, text, positions and values. Tables of
# short cells take up to 30 times as much, which is checked once their lines can be counted.
_MEMORY_PER_BYTE = 4
_CHUNK = 2**20
# The limit if the available memory is unknown.
_DEFAULT_LIMIT = 2**32
# First bytes of files that are not text, what they are, and the ending that they should have.
_SIGNATURES = (
    (b"PK\x03\x04", "a zip archive or a spreadsheet", ".xlsx or .zip"),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet", ".xls"),
    (b"\x1f\x8b", "a gzip file", ".csv.gz"),
    (b"PAR1", "a Parquet file", ".parquet"),
)
_WEB_PAGE = (b"<!doctype html", b"<html")
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}  # by their byte order marks
_SPLIT_ADVICE = "Split it, or save it as Parquet; long tables in Parquet are read in batches."


def is_open_file(source: Any) -> bool:
    """Whether ``source`` has the interface of an open file."""
    return hasattr(source, "read")


def read_content(source: Path | IO[Any], name: str, *, is_gzip: bool = False) -> bytes | str:
    """Read a file to its end, decompressed if it is a gzip file.

    Parameters
    ----------
    source : Path or open file
    name : str
        The name of the file in messages.
    is_gzip : bool

    Returns
    -------
    bytes or str
        Text if the file was opened as text.

    Raises
    ------
    InputError
        The file is larger than memory.
    ReadError
        It cannot be read, is not a complete gzip file, or decompresses to more than fits in memory.
    """
    try:
        if isinstance(source, Path):
            if not is_gzip:
                _check_size(source.stat().st_size)
            with source.open("rb") as file:
                return _read(file, name, is_gzip)
        return _read(source, name, is_gzip)
    except OSError as error:
        raise ReadError(
            f"the file cannot be read ({error.strerror or error})", place=name
        ) from error
    except ValueError as error:
        if isinstance(error, FillrankError):
            raise
        raise ReadError(
            f"the file cannot be read ({error})", place=name
        ) from error  # a closed file


def read_bytes(source: Path | IO[Any], name: str, *, is_gzip: bool = False) -> bytes:
    """Read a binary file to its end; raises as `read_content` does."""
    content = read_content(source, name, is_gzip=is_gzip)
    if isinstance(content, str):
        raise InputError("the file must be opened in binary mode", place=name)
    return content


def read_zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> bytes:
    """Decompress a text file in a zip archive; raises as `read_content` does."""
    try:
        with archive.open(member) as file:
            return _read_compressed(file, f"{name} ({member.filename})")
    except ZIP_ERRORS as error:
        raise ReadError(f"not a complete zip file ({error})", place=name) from error


def read_only_member(content: bytes, name: str, endings: tuple[str, ...]) -> tuple[str, bytes]:
    """The path and the content of the only table in a zip file, by its ending.

    It is decompressed within the limits of memory.
    """
    with library_errors(name, "zip"), zipfile.ZipFile(io.BytesIO(content)) as archive:
        tables = [
            member
            for member in archive.infolist()
            if Path(member.filename).suffix.lower() in endings
            and not Path(member.filename).name.startswith(".")
            and not member.filename.startswith("__MACOSX/")
        ]
        if len(tables) != 1:
            found = ", ".join(repr(member.filename) for member in tables[:5]) or "none"
            raise ReadError(
                f"a zip file must have one table, whose name ends in {' '.join(endings)}; this one "
                f"has {found}",
                place=name,
                advice="Extract the table that you want to read.",
            )
        return tables[0].filename, read_zip_member(archive, tables[0], name)


class DecodedText(NamedTuple):
    """A text, with its byte order mark if it has one, and its encoding."""

    text: str
    encoding: str = "utf-8"


def decode(content: bytes | str, name: str) -> str:
    """Decode a text, without a byte order mark; raises as `decode_with_mark` does."""
    return decode_with_mark(content, name).text.removeprefix("\ufeff")


def decode_with_mark(content: bytes | str, name: str) -> DecodedText:
    """Decode UTF-8, or UTF-16 that starts with a byte order mark; raise ReadError for other content."""
    if isinstance(content, str):
        _check_zeros("\0" in content, name)
        return DecodedText(content)
    _check_signature(content, name)
    encoding = _UTF_16.get(content[:2], "utf-8")
    if encoding == "utf-8":
        _check_zeros(b"\0" in content, name)
        return DecodedText(_decode(content, name, encoding))
    text = _decode(content, name, encoding)
    _check_zeros("\0" in text, name)
    return DecodedText(text, encoding)


def _check_zeros(has_zeros: bool, name: str) -> None:
    if has_zeros:
        raise ReadError("not a text file: it contains zero bytes", place=name, kind="encoding")


def _decode(content: bytes, name: str, encoding: str) -> str:
    # A single character outside of ASCII may make all of them take up to four bytes.
    n_bytes = len(content) if content.isascii() else 4 * len(content)
    check_memory(n_bytes, f"a text of {format_bytes(len(content))}", _SPLIT_ADVICE)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ReadError(
            f"not {encoding[:6].upper()} text ({error.reason}, byte {error.start})",
            place=FileLocation(name, line),
            advice="Save the file as UTF-8.",
            kind="encoding",
        ) from error


def _check_signature(content: bytes, name: str) -> None:
    """Raise ReadError for a file that is not text by its first bytes, whatever its ending."""
    for signature, what, ending in _SIGNATURES:
        if content.startswith(signature):
            raise ReadError(
                f"not a text file, but {what}", place=name, advice=f"Rename it to end in {ending}."
            )
    if content[:100].lstrip().lower().startswith(_WEB_PAGE):
        raise ReadError("a web page, not a table", place=name, advice="Download the table itself.")


@contextmanager
def library_errors(name: str, kind: str) -> Iterator[None]:
    """Convert any error of a library that reads a file into a ReadError."""
    try:
        yield
    except (FillrankError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError as error:
        raise ReadError("the file takes more memory than is available", place=name) from error
    except BaseException as error:  # a panic in Rust code, as of polars, is not an Exception
        lines = str(error).strip().splitlines()
        reason = lines[0] if lines else type(error).__name__
        raise ReadError(f"not a complete {kind} file ({reason})", place=name) from error


def _check_size(n_bytes: int) -> None:
    # The bytes and the text decoded from them are in memory together.
    check_memory(2 * n_bytes, "reading a text file of this size", _SPLIT_ADVICE)


def _read(file: IO[Any], name: str, is_gzip: bool) -> bytes | str:
    if not is_gzip:
        available = available_memory()
        limit = (_DEFAULT_LIMIT if available is None else available) // 2
        content = _read_limited(file, limit)
        if content is None:
            raise InputError(
                f"the file is longer than {format_bytes(limit)}, half of the available memory",
                place=name,
                advice=_SPLIT_ADVICE,
            )
        return content
    if isinstance(file.read(0), str):
        raise InputError("the file must be opened in binary mode", place=name)
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            return _read_compressed(unpacked, name)
    except _GZIP_ERRORS as error:
        raise ReadError(f"not a complete gzip file ({error})", place=name) from error


def _read_compressed(file: gzip.GzipFile | IO[bytes], name: str) -> bytes:
    """Read a compressed file in chunks, because its size is not known in advance."""
    available = available_memory()
    limit = (_DEFAULT_LIMIT if available is None else available) // _MEMORY_PER_BYTE
    content = _read_limited(file, limit)
    if content is None:
        raise ReadError(
            f"the file decompresses to more than {format_bytes(limit)}, and a text table takes at "
            f"least {_MEMORY_PER_BYTE} times its size in memory",
            place=name,
            advice="Use a machine with more memory, or save the file as Parquet; long tables in Parquet "
            "are read in batches.",
        )
    assert isinstance(content, bytes)
    return content


def _read_limited(file: Any, limit: int) -> bytes | str | None:
    """Read to the end of a file; None if that is more than ``limit`` bytes or characters."""
    first = file.read(_CHUNK)
    buffer: Any = io.StringIO(newline="") if isinstance(first, str) else io.BytesIO()
    size, chunk = 0, first
    while chunk:
        size += len(chunk)
        if size > limit:
            return None
        buffer.write(chunk)
        chunk = file.read(_CHUNK)
    content: bytes | str = buffer.getvalue()
    return content
