"""Folders as bytes, so that they can be mutated: each file with its name in front of it."""

import re
from pathlib import Path

_MARK = re.compile(rb"\[\[file ([a-zA-Z0-9._-]{1,60})\]\]")


def packed(files: dict[str, bytes]) -> bytes:
    """The files of a folder, one after the other."""
    return b"".join(b"[[file %s]]%s" % (name.encode(), data) for name, data in files.items())


def unpacked(data: bytes) -> dict[str, bytes]:
    """The files again; what is in front of the first is nobody's."""
    parts = _MARK.split(data)
    return {name.decode(): part for name, part in zip(parts[1::2], parts[2::2], strict=True)}


def read_folder(folder: Path) -> bytes:
    """All files of a folder."""
    return packed({path.name: path.read_bytes() for path in sorted(folder.iterdir())})


def write_folder(folder: Path, data: bytes) -> None:
    """Make a folder of the files."""
    folder.mkdir()
    for name, part in unpacked(data).items():
        if name not in (".", ".."):
            (folder / name).write_bytes(part)
