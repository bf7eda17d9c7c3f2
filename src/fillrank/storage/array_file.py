"""Model files and checkpoints: named arrays and a page of JSON about them, in one file.

The file is in the safetensors format, which holds data and nothing that could be run. Its
``__metadata__`` is

- ``format``: "fillrank"
- ``kind``: "model", "checkpoint", ...
- ``version``: of this layout
- ``about``: the JSON text
- ``halved``: a JSON list of the arrays that are float32 but stored as float16, which holds them exactly
- ``sha256``: over all of the above, and every array's name, type, shape and bytes, in order of names

The same content gives the same bytes, in every process.

A file is taken for nothing that it does not prove to be, and never costs more memory than a small
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
from fillrank.storage import strict_json
from fillrank.storage.atomic_write import whole_file

_FORMAT, _VERSION = "fillrank", 1
_KEYS = {"format", "kind", "version", "about", "halved", "sha256"}
# The types that arrays can have, as safetensors and as numpy call them.
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
# Room for 25,000 arrays; safetensors takes half a second to refuse the worst header of this size.
_LARGEST_HEADER = 4_000_000


class Content(NamedTuple):
    """What a file holds: what kind of file it is, JSON, and arrays by name."""

    kind: str
    about: dict[str, Any]
    arrays: dict[str, np.ndarray]


def write(path: str | os.PathLike[str], content: Content) -> None:
    """Write a file, whole or not at all.

    Raises
    ------
    InputError
        ``about`` is not JSON, or an array is of a type that cannot be kept.
    OutputError
        The file cannot be written.
    """
    arrays = {name: _storable(name, array) for name, array in content.arrays.items()}
    halves = {name: _halved(array) for name, array in arrays.items()}
    halved = [name for name, half in halves.items() if half is not None]
    stored = {name: arrays[name] if half is None else half for name, half in halves.items()}
    metadata = {
        "format": _FORMAT,
        "kind": content.kind,
        "version": str(_VERSION),
        "about": _as_json(content.about),
        "halved": strict_json.dump(sorted(halved)),
    }
    metadata["sha256"] = _checksum(metadata, stored)
    with whole_file(path) as temporary:
        _save(temporary, stored, metadata)


def read(path: str | os.PathLike[str], kind: str) -> Content:
    """Read a file of this kind. Its arrays are writable, in C order and in the machine's byte order.

    Raises
    ------
    ReadError
        There is no such file, it is of another kind, made by a newer version, foreign, or damaged.
    """
    path = Path(path)
    with _in_words(path):
        raw = _raw_header(path)
        with safe_open(path, framework="np") as file:
            header = _parsed(raw)
            metadata = header.pop("__metadata__", None) or {}
            _check_metadata(path, metadata, kind)
            _check_arrays(header)
            stored = {name: file.get_tensor(name) for name in sorted(header)}
        if _checksum(metadata, stored) != metadata["sha256"]:
            raise ValueError("its checksum does not fit its content")
        about = strict_json.parse(metadata["about"])
        if not isinstance(about, dict):
            raise ValueError("what it says about its arrays is no JSON object")
        return Content(kind, about, _restored(stored, strict_json.parse(metadata["halved"])))


def _as_json(about: dict[str, Any]) -> str:
    try:
        text = strict_json.dump(about)
        survives = isinstance(about, dict) and strict_json.parse(text) == about
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"about must be JSON; got what is not: {error}.") from error
    if not survives:
        raise InputError("about must be a JSON object that is read as it was written.")
    return text


def _storable(name: str, array: np.ndarray) -> np.ndarray:
    """The array as safetensors can write it: it takes the memory as it lies, whatever the strides."""
    if array.dtype.name not in DTYPES:
        raise InputError(
            f"arrays must be of one of the types {', '.join(sorted(DTYPES))}; {name} is {array.dtype}."
        )
    if name == "__metadata__":
        raise InputError("no array can be named __metadata__; name it otherwise.")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def _halved(array: np.ndarray) -> np.ndarray | None:
    """The same numbers as float16; None if that would lose a bit, or nothing is to be won."""
    # The last 13 bits tell in most cases, and are looked at much faster than numbers are rounded.
    if array.dtype != np.float32 or np.any(array.view(np.uint32) & 0x1FFF):
        return None
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        half = array.astype(np.float16)
        again = half.astype(np.float32)
    return half if np.array_equal(again.view(np.uint32), array.view(np.uint32)) else None


def _checksum(metadata: dict[str, str], stored: dict[str, np.ndarray]) -> str:
    said = sorted((key, value) for key, value in metadata.items() if key != "sha256")
    arrays = sorted(stored.items())
    shapes = [(name, array.dtype.name, array.shape) for name, array in arrays]
    digest = hashlib.sha256(strict_json.dump([said, shapes]).encode())
    for _, array in arrays:
        digest.update(_bytes_of(array))
    return digest.hexdigest()


def _bytes_of(array: np.ndarray) -> memoryview:
    """An array's bytes as they stand in the file; no copy on most machines."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return little.reshape(-1).view(np.uint8).data


def _save(path: Path, stored: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write the file as safetensors does, but the same content always as the same bytes.

    safetensors itself writes the metadata in an order that changes from call to call.
    """
    arrays = sorted(stored.items(), key=lambda pair: (-pair[1].itemsize, pair[0]))
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in arrays:
        begin, end = end, end + array.nbytes
        kind = _CODES[array.dtype.name]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [begin, end]}
    raw = _header_text(header).encode()
    raw += b" " * (-len(raw) % 8)
    if len(raw) > _LARGEST_HEADER:
        raise InputError(
            f"a file can hold about 25,000 arrays; got {len(stored)}, or too much about them. "
            "Join small arrays into larger ones."
        )
    with open(path, "wb") as file:
        file.write(len(raw).to_bytes(8, "little"))
        file.write(raw)
        for _, array in arrays:
            file.write(_bytes_of(array))


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Say of all that fails while reading which file it was, and what to do."""
    try:
        yield
    except (FillrankError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise ReadError(f"there is no file {path}. Look at its name and its folder.") from error
    except OSError as error:
        raise ReadError(
            f"{path} cannot be read: {error.strerror or error}. Look at its permissions and its disk."
        ) from error
    except Exception as error:  # safetensors and numpy have many words for a broken file
        cause = (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise ReadError(
            f"{path} is damaged: {cause}. Restore it from a copy, or make it again."
        ) from error


def _foreign(path: Path, what: str) -> ReadError:
    return ReadError(f"{path} {what}. Name a file that fillrank has made.")


def _raw_header(path: Path) -> bytes:
    """The bytes of the header; refused before it is read if this can be no such file."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise _foreign(path, "is a folder")
    if not stat.S_ISREG(status.st_mode):  # to open a pipe would be to wait
        raise _foreign(path, "is a device or a pipe")
    if status.st_size == 0:
        raise _foreign(path, "is empty")
    with open(path, "rb") as file:
        start = file.read(9)
        if start[8:] != b"{":
            raise _foreign(path, "was not made by fillrank")
        length = int.from_bytes(start[:8], "little")
        if length > min(status.st_size - 8, _LARGEST_HEADER):
            raise ValueError("its header is cut short, or too long")
        file.seek(8)
        return file.read(length)


def _parsed(raw: bytes) -> dict[str, Any]:
    """The header, if it is what safetensors writes, to the byte.

    safetensors has judged it already, but takes the last of equal keys and any white space.
    """
    text = raw.decode()
    header = json.loads(text)
    if _header_text(header) != text.rstrip(" "):
        raise ValueError("its header has been altered")
    return header


def _header_text(header: dict[str, Any]) -> str:
    return json.dumps(header, ensure_ascii=False, separators=(",", ":"))


def _check_metadata(path: Path, metadata: dict[str, str], kind: str) -> None:
    if metadata.get("format") != _FORMAT:
        raise _foreign(path, "holds arrays, but was not made by fillrank")
    version = metadata.get("version", "")
    if re.fullmatch("[1-9][0-9]{0,5}", version, re.ASCII) and int(version) > _VERSION:
        raise ReadError(
            f"{path} was made by a newer fillrank (layout {version}; this one reads {_VERSION}). "
            "Do: pip install --upgrade fillrank"
        )
    if version != str(_VERSION) or metadata.keys() != _KEYS:
        raise ValueError("what it says of itself is incomplete")
    if metadata["kind"] != kind:
        found = metadata["kind"][:40]
        raise ReadError(f"{path} is a file of kind {found!r}, but one of kind {kind!r} is needed.")


def _check_arrays(header: dict[str, Any]) -> None:
    for info in header.values():
        if info.keys() != {"dtype", "shape", "data_offsets"}:
            raise ValueError("its header says more of an array than there is to say")
        if info["dtype"] not in _DTYPES:
            raise ValueError(
                f"it has arrays of type {info['dtype']}, which fillrank does not write"
            )


def _restored(stored: dict[str, np.ndarray], halved: Any) -> dict[str, np.ndarray]:
    """The arrays as they were before some were halved; fit for compiled code."""
    whole = {name: np.require(array, None, ["C", "A", "W"]) for name, array in stored.items()}
    if not isinstance(halved, list):
        raise ValueError("its list of halved arrays is none")
    for name in halved:
        if not isinstance(name, str) or name not in stored or stored[name].dtype != np.float16:
            raise ValueError("its list of halved arrays does not fit")
        whole[name] = stored[name].astype(np.float32)
    return whole
