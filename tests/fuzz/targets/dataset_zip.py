"""Published data sets, as zip files."""

import io
import random
import zipfile
from pathlib import Path

import fillrank as fr
from fuzz.mutations import mutated
from fuzz.targets import movielens

SUFFIX = ".zip"


def _zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("ml-1m/README"), "About.")
        archive.writestr(zipfile.ZipInfo("ml-1m/ratings.dat"), data, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def seeds() -> list[bytes]:
    return [_zipped(data) for data in movielens.seeds()]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Damage a file; the archive stays valid."""
    texts = movielens.seeds()
    return _zipped(mutated(rng, rng.choice(texts), texts))


def attempt(path: Path) -> None:
    fr.datasets.load("ml-1m", path)
