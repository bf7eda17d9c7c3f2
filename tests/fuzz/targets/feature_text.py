"""Features of rows as text."""

from pathlib import Path

import numpy as np

from fillrank.features.table import feature_block
from fillrank.io.features import read_features
from fuzz.tables import wide_text

SUFFIX = ".csv"
LABELS = np.array([f"p{i}" for i in range(12)], dtype=object)


def seeds() -> list[bytes]:
    mixed = b"who,age,sex\np1,30,F\np2,,M\np3,41.5,M\np4,25,\n"
    quoted = b'who;age;"job; now"\np1;1,5;"a; b"\np2;NA;"c ""d"""\np3;7;"two\nlines"\n'
    return [mixed, quoted, wide_text(), wide_text("\t", "NA"), mixed.replace(b"\n", b"\r\n")]


def attempt(path: Path) -> None:
    feature_block(read_features(path, LABELS), LABELS, "row")
