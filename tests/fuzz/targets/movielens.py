"""Ratings with `::` between the fields, as MovieLens has them."""

from pathlib import Path

import fillrank as fr
from fuzz.tables import triplets

SUFFIX = ".dat"


def seeds() -> list[bytes]:
    lines = [f"{i + 1}::{j + 1}::{v:g}::97830{i:04d}" for i, j, v in zip(*triplets(), strict=True)]
    return ["\n".join(lines).encode() + b"\n", "\n".join(lines[::-1]).encode()]


def attempt(path: Path) -> None:
    fr.read(path)
