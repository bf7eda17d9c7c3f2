"""Wide tables in Parquet, with columns of many types."""

from datetime import date
from pathlib import Path

import pyarrow as pa

import fillrank as fr
from fuzz.tables import FOODS, ratings
from fuzz.targets import parquet_long

SUFFIX = ".parquet"
mutate = parquet_long.mutate


def seeds() -> list[bytes]:
    cells = ratings()
    plain = {name: pa.array(cells[:, j]) for j, name in enumerate(FOODS)}
    named = {"person": [f"p{i}" for i in range(len(cells))], **plain}
    days = pa.array([date(2020, 1, 1 + i) for i in range(len(cells))])
    mixed = {
        "day": days,
        "small": pa.array([i % 3 for i in range(len(cells))], pa.int8()),
        "truth": pa.array([i % 2 == 0 for i in range(len(cells))]),
        "gaps": pa.array([None if i % 2 else float(i) for i in range(len(cells))], pa.float32()),
    }
    categories = {
        "answer": pa.array(["yes" if i % 3 else "no" for i in range(len(cells))]),
        "limit": pa.array(["<0.5" if i % 2 else f"{i}.5" for i in range(len(cells))]),
        "level": pa.array(["a" if i % 2 else "b" for i in range(len(cells))]).dictionary_encode(),
        "day": pa.array([date(2020, 1, 1 + i % 3) for i in range(len(cells))]),
        **plain,
    }
    return [
        parquet_long.saved(pa.table(content), **options)
        for content in (plain, named, mixed, categories)
        for options in ({}, {"compression": "none"})
    ]


def attempt(path: Path) -> None:
    fr.read(path)
