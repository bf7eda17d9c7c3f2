"""Pairs of labels in Parquet."""

from pathlib import Path

import pyarrow as pa

from fuzz.tables import FOODS
from fuzz.targets import pairs, parquet_long

SUFFIX = ".parquet"
mutate = parquet_long.mutate


def seeds() -> list[bytes]:
    table = pa.table({"row": [f"p{i}" for i in range(10)], "column": FOODS * 2})
    return [parquet_long.saved(table), parquet_long.saved(table, compression="none")]


def attempt(path: Path) -> None:
    pairs.attempt(path)
