"""Forged array files: their headers and checksums are valid."""

import json
import math
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from fillrank.storage import array_file
from fillrank.storage.array_file import Content
from fuzz.mutations import INTEGERS, mutated
from helpers.forged_files import altered, at, other_arrays, paths, without

_NUMBERS_OF_CHANGES = (1, 1, 1, 2, 3)
_NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e-30, 1e10, 1e20, 1e38, -1e38, 1e154, 1e308)
_TEXTS = (
    "",
    "x",
    "auto",
    "GASR",
    "run.fillrank",
    "../run.fillrank",
    "__class__",
    "\ud800",
    "é" * 300,
)
_STRANGE: tuple[Any, ...] = (
    *(None, True, False, [], {}, [[]], {"array": "x"}),
    *({"float": "nan"}, {"float": "inf"}, {"float": "-inf"}),
    *_NUMBERS,
    *_TEXTS,
    *INTEGERS,
    10**30,
)


def loaded(data: bytes) -> Content:
    """Read an array file of any kind."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(data)
        return array_file.read(path, _metadata_of(data)["kind"])


def forge(rng: random.Random, data: bytes) -> bytes:
    """Change one to three items of the file; sometimes also the text of its metadata."""
    metadata = _metadata_of(data)
    about, arrays = (content := loaded(data)).about, dict(content.arrays)
    for _ in range(rng.choice(_NUMBERS_OF_CHANGES)):
        if rng.random() < 0.5 or not arrays:
            about = _other_about(rng, about)
        else:
            _change_array(rng, arrays)
    metadata |= {"about": json.dumps(about), "halved": "[]"}
    if rng.random() < 0.05:
        key = rng.choice(sorted(metadata))
        metadata[key] = mutated(rng, metadata[key].encode(), [b"{}"]).decode(errors="replace")
    return _saved(metadata, arrays)


def _metadata_of(data: bytes) -> dict[str, str]:
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return dict(header["__metadata__"])


def _saved(metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> bytes:
    stored = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    stored = {name: array.reshape(arrays[name].shape) for name, array in stored.items()}
    metadata = metadata | {"sha256": array_file._checksum(metadata, stored)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        array_file._save(path, stored, metadata)
        return path.read_bytes()


def _other_about(rng: random.Random, about: dict[str, Any]) -> dict[str, Any]:
    """Change or remove one item of the JSON document."""
    path = rng.choice([*paths(about, all_items=True)][1:] or [()])
    if not path:
        return about
    found, action = at(about, path), rng.randrange(8)
    if action == 0:
        return dict(without(about, path))
    if action == 1:
        return dict(altered(about, path, at(about, rng.choice([*paths(about)]))))
    if action == 2 and isinstance(found, dict):
        return dict(altered(about, path, found | {rng.choice(_TEXTS): rng.choice(_STRANGE)}))
    if action == 3 and isinstance(found, list):
        return dict(altered(about, path, found * rng.randint(0, 3)))
    if action >= 4 and isinstance(found, int | float) and not isinstance(found, bool):
        return dict(altered(about, path, _other_number(rng, found)))
    return dict(altered(about, path, rng.choice(_STRANGE)))


def _other_number(rng: random.Random, number: float) -> float:
    """Return another number of the same type, so that it is not refused for its type."""
    if isinstance(number, int):
        return rng.choice((number + 1, number - 1, -number, 2 * number, *INTEGERS))
    factor = rng.choice((-1.0, 2.0, 1e-3, 1e3, 1e-10, 1e10, 1e30, 1e200))
    product = number * factor
    return rng.choice((*_NUMBERS, product if math.isfinite(product) else 1e308))


def _change_array(rng: random.Random, arrays: dict[str, np.ndarray]) -> None:
    name = rng.choice(sorted(arrays))
    array, action = arrays[name], rng.randrange(8)
    if action == 0:
        del arrays[name]
    elif action == 1:
        arrays[name] = arrays[rng.choice(sorted(arrays))]
    elif action == 2:
        arrays[name] = rng.choice([other for _, other in other_arrays(array)])
    else:
        arrays[name] = _other_numbers(rng, array)


def _other_numbers(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Change one, some or all numbers of the array."""
    other = array.copy()
    flat = other.reshape(-1)
    if not flat.size:
        return other
    size = rng.choice((1, 1, 1, 3, flat.size))
    which = [rng.randrange(flat.size) for _ in range(size)] if size < flat.size else slice(None)
    with np.errstate(all="ignore"):
        if array.dtype.kind == "f" and rng.random() < 0.5:
            flat[which] = flat[which] * rng.choice((-1, 0, 2, 1e3, 1e6, 1e10, 1e20, 1e38, 1e-30))
        elif array.dtype.kind == "f":
            flat[which] = np.array(rng.choice((*_NUMBERS, math.nan, math.inf))).astype(array.dtype)
        else:
            flat[which] = np.array(rng.choice((*INTEGERS, 3, 7, 10**6))).astype(array.dtype)
    return other
