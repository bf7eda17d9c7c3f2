"""Array files: named arrays and one JSON document, in the safetensors format.

Model files and checkpoints are array files. The format contains data only, nothing that can be
executed. The ``__metadata__`` of a file has the keys

- ``format``: "fillrank"
- ``kind``: "model", "checkpoint", ...
- ``version``: of this layout
- ``about``: the JSON document
- ``halved``: a JSON list of the float32 arrays that are stored as float16 without loss
- ``sha256``: over all of the above and every array's name, type, shape and bytes, sorted by name

Equal contents are written as equal bytes, in every process.

A file may come from anyone: `read` checks every byte of it, and never allocates more than a small
multiple of its size.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import safe_open

from fillrank.errors import FillrankError, InputError, ReadError
from fillrank.storage.atomic_write import write_atomically
from fillrank.storage.strict_json import dump_json, parse_json

_FORMAT, VERSION = "fillrank", 4
_KEYS = {"format", "kind", "version", "about", "halved", "sha256"}
# The supported types of arrays: their names in safetensors and in numpy.
_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
}
_CODES = {name: code for code, name in _DTYPES.items()}
DTYPES = frozenset(_CODES)
# Enough for 25,000 arrays. safetensors needs half a second to reject the worst header of this size.
_LARGEST_HEADER = 4_000_000


class Content(NamedTuple):
    """The content of a file: its kind, a JSON object, arrays by name, and the version of its layout.

    Files are written in the current layout. Those of earlier ones can be read; what differs is known to
    the reader of each kind.
    """

    kind: str
    about: dict[str, Any]
    arrays: dict[str, np.ndarray]
    version: int = VERSION


def write(path: str | os.PathLike[str], content: Content) -> None:
    """Write a file atomically.

    Raises
    ------
    InputError
        ``about`` is not a JSON object, or an array has an unsupported type.
    OutputError
        The file cannot be written.
    """
    arrays = {name: _normalize(name, array) for name, array in content.arrays.items()}
    compressed = {name: _compress(array) for name, array in arrays.items()}
    halved = sorted(name for name, half in compressed.items() if half is not None)
    stored = {name: arrays[name] if half is None else half for name, half in compressed.items()}
    metadata = {
        "format": _FORMAT,
        "kind": content.kind,
        "version": str(VERSION),
        "about": _dump_about(content.about),
        "halved": dump_json(halved),
    }
    metadata["sha256"] = _checksum(metadata, stored)
    with write_atomically(path) as temporary:
        _save(temporary, stored, metadata)


def read(path: str | os.PathLike[str], kind: str) -> Content:
    """Read a file of this kind. The arrays are writable, in C order and in native byte order.

    Raises
    ------
    ReadError
        The file does not exist, has another kind, was written by a newer version or by another
        program, or is damaged.
    """
    path = Path(path)
    with _convert_errors(path):
        raw = _read_header(path)
        with safe_open(path, framework="np") as file:
            header = _parse_header(raw)
            metadata = header.pop("__metadata__", None) or {}
            _check_metadata(path, metadata, kind)
            _check_arrays(header)
            stored = {name: file.get_tensor(name) for name in sorted(header)}
        if _checksum(metadata, stored) != metadata["sha256"]:
            raise ValueError("its checksum does not match its content")
        about = parse_json(metadata["about"])
        if not isinstance(about, dict):
            raise ValueError("its description of the arrays is not a JSON object")
        arrays = _decompress(stored, parse_json(metadata["halved"]))
        return Content(kind, about, arrays, int(metadata["version"]))


def _dump_about(about: dict[str, Any]) -> str:
    try:
        text = dump_json(about)
        is_unchanged = isinstance(about, dict) and parse_json(text) == about
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"about must be a JSON object: {error}.") from error
    if not is_unchanged:
        raise InputError("about must be a JSON object that encoding and decoding does not change.")
    return text


def _normalize(name: str, array: np.ndarray) -> np.ndarray:
    """Return the array in C order and native byte order; raise InputError if it cannot be stored."""
    if array.dtype.name not in DTYPES:
        raise InputError(
            f"arrays must have one of the types {', '.join(sorted(DTYPES))}; {name} has {array.dtype}."
        )
    if name == "__metadata__":
        raise InputError("an array cannot be named __metadata__", advice="Use another name.")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def _compress(array: np.ndarray) -> np.ndarray | None:
    """Convert float32 to float16; return None for other types, or if that would change a bit."""
    # Testing the lowest 13 bits is much faster than rounding, and sufficient for most arrays.
    if array.dtype != np.float32 or np.any(array.view(np.uint32) & 0x1FFF):
        return None
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        half = array.astype(np.float16)
        restored = half.astype(np.float32)
    return half if np.array_equal(restored.view(np.uint32), array.view(np.uint32)) else None


def _checksum(metadata: dict[str, str], stored: dict[str, np.ndarray]) -> str:
    fields = sorted((key, value) for key, value in metadata.items() if key != "sha256")
    arrays = sorted(stored.items())
    shapes = [(name, array.dtype.name, array.shape) for name, array in arrays]
    digest = hashlib.sha256(dump_json([fields, shapes]).encode())
    for _, array in arrays:
        digest.update(_bytes_of(array))
    return digest.hexdigest()


def _bytes_of(array: np.ndarray) -> memoryview:
    """Return the little-endian bytes of an array, without a copy on little-endian machines."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return little.reshape(-1).view(np.uint8).data


def _save(path: Path, stored: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write a safetensors file whose bytes depend on its content only.

    safetensors itself writes the metadata in an order that changes from call to call.
    """
    arrays = sorted(stored.items(), key=lambda pair: (-pair[1].itemsize, pair[0]))
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in arrays:
        start, end = end, end + array.nbytes
        code = _CODES[array.dtype.name]
        header[name] = {"dtype": code, "shape": array.shape, "data_offsets": [start, end]}
    raw = _header_text(header).encode()
    raw += b" " * (-len(raw) % 8)
    if len(raw) > _LARGEST_HEADER:
        raise InputError(
            f"a file can contain about 25,000 arrays; got {len(stored)}, or too long a description "
            "of them",
            advice="Join small arrays into larger ones.",
        )
    with open(path, "wb") as file:
        file.write(len(raw).to_bytes(8, "little"))
        file.write(raw)
        for _, array in arrays:
            file.write(_bytes_of(array))


@contextmanager
def _convert_errors(path: Path) -> Iterator[None]:
    """Raise every error of reading as a ReadError that names the file and what to do."""
    try:
        yield
    except (FillrankError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise ReadError(
            f"there is no file {path}", advice="Check its name and its folder."
        ) from error
    except OSError as error:
        raise ReadError(
            f"{path} cannot be read: {error.strerror or error}",
            advice="Check its permissions and its disk.",
        ) from error
    except Exception as error:  # safetensors and numpy raise many types for a damaged file
        cause = (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise ReadError(
            f"{path} is damaged: {cause}", advice="Restore it from a copy, or create it again."
        ) from error


def _foreign(path: Path, reason: str) -> ReadError:
    return ReadError(f"{path} {reason}", advice="Use a file that was written by fillrank.")


def _read_header(path: Path) -> bytes:
    """Return the bytes of the header; raise before reading it if this cannot be an array file."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise _foreign(path, "is a folder")
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would block
        raise _foreign(path, "is a device or a pipe")
    if status.st_size == 0:
        raise _foreign(path, "is empty")
    with open(path, "rb") as file:
        start = file.read(9)
        if start[8:] != b"{":
            raise _foreign(path, "was not written by fillrank")
        length = int.from_bytes(start[:8], "little")
        if length > min(status.st_size - 8, _LARGEST_HEADER):
            raise ValueError("its header is truncated or too long")
        file.seek(8)
        return file.read(length)


def _parse_header(raw: bytes) -> dict[str, Any]:
    """Parse the header, which must be exactly what safetensors writes.

    safetensors has checked it already, but accepts repeated keys and any white space.
    """
    text = raw.decode()
    header: dict[str, Any] = json.loads(text)
    if _header_text(header) != text.rstrip(" "):
        raise ValueError("its header has been altered")
    return header


def _header_text(header: dict[str, Any]) -> str:
    return json.dumps(header, ensure_ascii=False, separators=(",", ":"))


def _check_metadata(path: Path, metadata: dict[str, str], kind: str) -> None:
    if metadata.get("format") != _FORMAT:
        raise _foreign(path, "contains arrays, but was not written by fillrank")
    version = metadata.get("version", "")
    is_number = re.fullmatch("[1-9][0-9]{0,5}", version, re.ASCII) is not None
    if is_number and int(version) > VERSION:
        raise ReadError(
            f"{path} was written by a newer fillrank (layout {version}; this one reads up to {VERSION})",
            advice="Run: pip install --upgrade fillrank",
        )
    if not is_number or metadata.keys() != _KEYS:
        raise ValueError("its metadata is incomplete")
    if metadata["kind"] != kind:
        found = metadata["kind"][:40]
        raise ReadError(f"{path} is a file of kind {found!r}, but kind {kind!r} is required.")


def _check_arrays(header: dict[str, Any]) -> None:
    for info in header.values():
        if info.keys() != {"dtype", "shape", "data_offsets"}:
            raise ValueError("its header has unknown fields for an array")
        if info["dtype"] not in _DTYPES:
            raise ValueError(
                f"it contains arrays of type {info['dtype']}, which fillrank does not write"
            )


def _decompress(stored: dict[str, np.ndarray], halved: Any) -> dict[str, np.ndarray]:
    """Return the arrays as they were before compression, in a layout for compiled code."""
    arrays = {name: np.require(array, None, ["C", "A", "W"]) for name, array in stored.items()}
    if not isinstance(halved, list):
        raise ValueError("its list of compressed arrays is not a list")
    for name in halved:
        if not isinstance(name, str) or name not in stored or stored[name].dtype != np.float16:
            raise ValueError("its list of compressed arrays does not match its arrays")
        arrays[name] = stored[name].astype(np.float32)
    return arrays
