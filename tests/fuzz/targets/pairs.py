"""Pairs of labels for `fillrank predict`."""

from functools import cache
from pathlib import Path

import numpy as np

from fillrank.cli.predict import read_pairs
from fillrank.table.observations import Observations
from fuzz.tables import FOODS, triplets

SUFFIX = ".csv"


@cache
def _known(text: bool) -> Observations:
    rows, columns, values = triplets()
    if not text:
        return Observations.from_triplets(rows, columns, values)
    names = np.array([f"p{i}" for i in rows], dtype=object)
    return Observations.from_triplets(names, np.array(FOODS, dtype=object)[columns], values)


def seeds() -> list[bytes]:
    named = [(f"p{i}", FOODS[i % 5]) for i in range(10)]
    numbered = [(str(i), str(i % 5)) for i in range(10)]
    written = []
    for delimiter in (",", ";", "\t", "::", " "):
        for header, pairs in (("row,column", named), ("", named), ("", numbered)):
            lines = [header.split(",")] if header else []
            lines += pairs
            written.append("".join(f"{delimiter.join(line)}\n" for line in lines).encode())
    return written


def attempt(path: Path) -> None:
    numbered = b"p" not in path.read_bytes()
    data = _known(not numbered)
    pairs = read_pairs(path, data, None, None)
    data.row_positions(pairs.rows)
    data.column_positions(pairs.columns)
