"""Folders as bytes, so that they can be mutated: each file is preceded by its name."""

import re
from pathlib import Path

_MARK = re.compile(rb"\[\[file ([a-zA-Z0-9._-]{1,60})\]\]")


def packed(files: dict[str, bytes]) -> bytes:
    """Concatenate the files of a folder."""
    return b"".join(b"[[file %s]]%s" % (name.encode(), data) for name, data in files.items())


def unpacked(data: bytes) -> dict[str, bytes]:
    """Split into files; anything before the first name is ignored."""
    parts = _MARK.split(data)
    return {name.decode(): part for name, part in zip(parts[1::2], parts[2::2], strict=True)}


def read_folder(folder: Path) -> bytes:
    """Return all files of a folder as bytes."""
    return packed({path.name: path.read_bytes() for path in sorted(folder.iterdir())})


def write_folder(folder: Path, data: bytes) -> None:
    """Create a folder with the files."""
    folder.mkdir()
    for name, part in unpacked(data).items():
        if name not in (".", ".."):
            (folder / name).write_bytes(part)
