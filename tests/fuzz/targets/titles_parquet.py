"""Titles of rows in Parquet."""

import pyarrow as pa

from fuzz.targets import parquet_long, titles_text

SUFFIX = ".parquet"
mutate = parquet_long.mutate
attempt = titles_text.attempt


def seeds() -> list[bytes]:
    n = 12
    titles = [None if i % 5 == 0 else f"film {i}" for i in range(n)]
    numbers = {"id": list(range(n)), "title": titles, "year": pa.array(range(n), pa.int16())}
    texts = {"what": pa.array(titles).dictionary_encode(), "id": [str(i) for i in range(n)]}
    return [
        parquet_long.saved(pa.table(content), **options)
        for content in (numbers, texts)
        for options in ({}, {"compression": "none"})
    ]
