"""Matrix Market files."""

import io
import random
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

import fillrank as fr
from fuzz.mutations import edit_number
from fuzz.tables import ratings, triplets

SUFFIX = ".mtx"


def seeds() -> list[bytes]:
    rows, columns, values = triplets()
    sparse = sp.coo_array((values, (rows, columns)))
    square = sp.coo_array(np.tril(np.arange(1.0, 17.0).reshape(4, 4)))
    written = []
    for matrix, options in (
        (sparse, {}),
        (sparse.astype(int), {"comment": "of ratings\n"}),
        (np.nan_to_num(ratings()), {"precision": 3}),
        (square + square.T, {"symmetry": "symmetric"}),
    ):
        file = io.BytesIO()
        scipy.io.mmwrite(file, matrix, **options)
        written.append(file.getvalue())
    skew = b"%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 1.5\n3 1 2e-1\n"
    return [*written, skew]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Other numbers, most of all among the first lines, where the sizes are."""
    place = rng.choice((rng.randint(0, len(data)), min(len(data), 120)))
    return edit_number(rng, data[:place]) + data[place:]


def attempt(path: Path) -> None:
    fr.read(path)
