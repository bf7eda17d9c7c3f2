"""Parquet where polars is not installed."""

from pathlib import Path
from unittest import mock

import fillrank as fr
from fillrank.io import parquet
from fuzz.targets import parquet_long, parquet_wide

SUFFIX = ".parquet"
mutate = parquet_long.mutate


def seeds() -> list[bytes]:
    return [*parquet_long.seeds(), *parquet_wide.seeds()]


def attempt(path: Path) -> None:
    with mock.patch.object(parquet, "find_spec", lambda name: name != "polars"):
        fr.read(path)
