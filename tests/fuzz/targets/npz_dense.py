"""Archives of one array, or of rows, columns and values."""

import io
import random
import zipfile
from pathlib import Path

import numpy as np

import fillrank as fr
from fuzz.mutations import mutated
from fuzz.tables import FOODS, ratings, triplets
from fuzz.targets import npy

SUFFIX = ".npz"


def archive(members: dict[str, bytes]) -> bytes:
    """Return a valid zip file with these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        for name, data in members.items():
            target.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def members(data: bytes) -> dict[str, bytes]:
    """Return the members of a zip file."""
    with zipfile.ZipFile(io.BytesIO(data)) as source:
        return {name: source.read(name) for name in source.namelist()}


def _saved(**arrays: np.ndarray) -> bytes:
    return archive({f"{name}.npy": npy.saved(array) for name, array in arrays.items()})


def seeds() -> list[bytes]:
    rows, columns, values = triplets()
    names = np.array(FOODS)[columns]
    return [
        _saved(cells=ratings()),
        _saved(rows=rows, columns=columns, values=values),
        _saved(rows=rows.astype(np.int8), columns=names, values=values.astype(np.float32)),
    ]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Damage, add or remove a member; the archive stays valid."""
    content = members(data)
    name = rng.choice(sorted(content))
    action = rng.random()
    if action < 0.1:
        del content[name]
    elif action < 0.2:
        content[rng.choice(("more.npy", "rows.npy", "format.npy", "text"))] = content[name]
    elif action < 0.25:
        content[name] += bytes(10_000_000)
    else:
        content[name] = mutated(rng, content[name], list(content.values()))
    return archive(content)


def attempt(path: Path) -> None:
    fr.read(path)
