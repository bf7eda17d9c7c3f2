"""Zip files with one table."""

from pathlib import Path

import fillrank as fr
from fuzz.tables import wide_text
from fuzz.targets.npz_dense import archive

SUFFIX = ".zip"


def seeds() -> list[bytes]:
    return [archive({"t.csv": wide_text()}), archive({"a/t.tsv": wide_text("\t"), "README": b"x"})]


def attempt(path: Path) -> None:
    fr.read(path)
