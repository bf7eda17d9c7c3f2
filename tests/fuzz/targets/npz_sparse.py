"""Sparse matrices as scipy saves them, in all its formats."""

import io
import random
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import fillrank as fr
from fuzz.mutations import INTEGERS, mutated
from fuzz.tables import triplets
from fuzz.targets import npy
from fuzz.targets.npz_dense import archive, members

SUFFIX = ".npz"
_TYPES = (np.int8, np.uint16, np.int32, np.int64, np.uint64, np.float64, np.complex128, np.bool_)


def seeds() -> list[bytes]:
    rows, columns, values = triplets()
    matrix = sp.coo_array((values, (rows, columns)), shape=(12, 6))
    saved = []
    for kind in ("coo", "csr", "csc", "bsr", "dia"):
        file = io.BytesIO()
        sp.save_npz(file, matrix.asformat(kind))
        saved.append(archive(members(file.getvalue())))
    return saved


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Change the numbers, type or length of one array; the archive stays valid."""
    content = members(data)
    name = rng.choice(sorted(content))
    if rng.random() < 0.2:
        content[name] = mutated(rng, content[name], list(content.values()))
        return archive(content)
    array = np.load(io.BytesIO(content[name]))
    content[name] = npy.saved(_forged(rng, array))
    return archive(content)


def _forged(rng: random.Random, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "S":  # the format
        return np.array(rng.choice((b"csr", b"csc", b"coo", b"bsr", b"dia", b"lil", b"", b"\xff")))
    action = rng.randrange(5)
    if action == 0:
        return array[: rng.randint(0, len(array))] if array.ndim else array.reshape(1)
    if action == 1:
        return np.concatenate((array, array)) if array.ndim else np.array(1.5)
    if action == 2:
        with np.errstate(all="ignore"):
            return array.astype(rng.choice(_TYPES))
    if action == 3:
        return array.reshape(rng.choice(((1, -1), (-1, 1), (1, -1, 1))))
    array = array.copy()
    for _ in range(rng.randint(1, 3)):
        if array.size:
            with np.errstate(all="ignore"):
                value = np.array(rng.choice((*INTEGERS, 3, 7, 1000000))).astype(array.dtype)
            array.flat[rng.randrange(array.size)] = value
    return array


def attempt(path: Path) -> None:
    fr.read(path)
