"""Long tables in Parquet."""

import io
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

import fillrank as fr
from fuzz.mutations import edit_integer, flip, overwrite
from fuzz.tables import FOODS, triplets

SUFFIX = ".parquet"


def saved(table: pa.Table, **options: object) -> bytes:
    """The bytes of a table."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, **options)
    return file.getvalue()


def seeds() -> list[bytes]:
    rows, columns, values = triplets()
    numbers = pa.table({"user": rows, "item": columns, "rating": values})
    names = pa.table({"row": [f"p{i}" for i in rows], "column": [FOODS[j] for j in columns]})
    names = names.append_column("value", pa.array(values, mask=values > 4))
    options: tuple[dict[str, object], ...] = (
        {},
        {"compression": "none", "row_group_size": 10},
        {"compression": "gzip", "use_dictionary": False},
        {"compression": "zstd", "data_page_version": "2.0"},
    )
    return [saved(table, **option) for table in (numbers, names) for option in options]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """A few bytes changed: in the pages, or in the description at the end."""
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    start, stop = rng.choice(((4, footer), (footer, len(data) - 8)))
    part = data[start:stop]
    for _ in range(rng.randint(1, 3)):
        part = rng.choice((flip, overwrite, edit_integer))(rng, part)
    return data[:start] + part + data[stop:]


def attempt(path: Path) -> None:
    fr.read(path)
