"""Long tables so large that pyarrow reads them."""

import random
from pathlib import Path

import fillrank as fr
from fillrank.data.fast_text import SMALL
from fuzz.mutations import mutated

SUFFIX = ".csv"


def _large(delimiter: str, header: str) -> bytes:
    lines = [header] if header else []
    for i in range(SMALL // 12):
        lines.append(delimiter.join((str(1000 + i // 50), str(1000 + i % 50), str(1 + i % 5))))
    return "\n".join(lines).encode()


def seeds() -> list[bytes]:
    return [_large(",", "user,item,rating"), _large("::", "")]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """A change near the beginning, where a table is judged."""
    return mutated(rng, data[:400], [data[:400]]) + data[400:]


def attempt(path: Path) -> None:
    fr.read(path, duplicates="last")
