"""One array in NumPy's format."""

import io
import random
from pathlib import Path

import numpy as np

import fillrank as fr
from fuzz.mutations import edit_number
from fuzz.tables import ratings

SUFFIX = ".npy"
_TYPES = ("<f8", ">f4", "<i8", "|u1", "|b1")
_DESCRIPTIONS = (b"'<c16'", b"'|O'", b"'<U4'", b"'<M8[s]'", b"'|V8'", b"'<f2'", b"[('a', '<f8')]")


def saved(array: np.ndarray) -> bytes:
    """Return the bytes of an array file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def seeds() -> list[bytes]:
    cells = ratings()
    complete = [saved(np.nan_to_num(cells).astype(kind)) for kind in _TYPES]
    return [saved(cells), saved(np.asfortranarray(cells)), *complete]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Change the type or shape in the header."""
    header, rest = data[10:128], data[128:]
    kind = next(f"'{kind}'".encode() for kind in _TYPES if kind.encode() in header)
    if rng.random() < 0.5:
        header = header.replace(kind, rng.choice(_DESCRIPTIONS))
    else:
        start = header.index(b"'shape'")
        header = header[:start] + edit_number(rng, header[start:])
    header = header.rstrip().ljust(117) + b"\n"
    return data[:8] + len(header).to_bytes(2, "little") + header + rest


def attempt(path: Path) -> None:
    fr.read(path)
