"""Zip files with one table."""

import random
from pathlib import Path

import fillrank as fr
from fuzz.mutations import mutated
from fuzz.tables import wide_text
from fuzz.targets.npz_dense import archive, members

SUFFIX = ".zip"


def seeds() -> list[bytes]:
    return [archive({"t.csv": wide_text()}), archive({"a/t.tsv": wide_text("\t"), "README": b"x"})]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Damage a member; the archive stays valid."""
    content = members(data)
    name = rng.choice(sorted(content))
    content[name] = mutated(rng, content[name], list(content.values()))
    return archive(content)


def attempt(path: Path) -> None:
    fr.read(path)
