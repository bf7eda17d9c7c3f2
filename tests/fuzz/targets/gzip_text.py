"""Text tables that are compressed."""

import gzip
import random
from pathlib import Path

import fillrank as fr
from fuzz.mutations import mutated
from fuzz.targets import text_long, text_wide

SUFFIX = ".csv.gz"
_TEXTS = [*text_long.seeds(), *text_wide.seeds()]


def seeds() -> list[bytes]:
    return [gzip.compress(text, mtime=0) for text in _TEXTS]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Damage the table, then compress it; sometimes in two members, or very long."""
    text = mutated(rng, rng.choice(_TEXTS), _TEXTS)
    if rng.random() < 0.02:
        text += rng.choice((b"\n", b"1,1,1\n", b"9")) * 300_000
    packed = gzip.compress(text, compresslevel=1, mtime=0)
    return packed + data if rng.random() < 0.1 else packed


def attempt(path: Path) -> None:
    fr.read(path)
