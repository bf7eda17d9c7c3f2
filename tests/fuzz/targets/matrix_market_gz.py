"""Compressed Matrix Market files."""

import gzip
import random
from pathlib import Path

import fillrank as fr
from fuzz.mutations import mutated
from fuzz.targets import matrix_market

SUFFIX = ".mtx.gz"


def seeds() -> list[bytes]:
    return [gzip.compress(text, mtime=0) for text in matrix_market.seeds()]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Damage the matrix, then compress it."""
    texts = matrix_market.seeds()
    return gzip.compress(mutated(rng, rng.choice(texts), texts), mtime=0)


def attempt(path: Path) -> None:
    fr.read(path)
