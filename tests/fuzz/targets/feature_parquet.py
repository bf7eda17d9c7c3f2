"""Features of rows in Parquet."""

import pyarrow as pa

from fuzz.targets import feature_text, parquet_long

SUFFIX = ".parquet"
mutate = parquet_long.mutate
attempt = feature_text.attempt


def seeds() -> list[bytes]:
    n = 12
    fields = {
        "who": [f"p{i}" for i in range(n)],
        "age": pa.array([None if i % 4 else float(i) for i in range(n)]),
        "sex": pa.array(["F" if i % 2 else "M" for i in range(n)]).dictionary_encode(),
        "truth": pa.array([i % 3 == 0 for i in range(n)]),
    }
    numbers = {"id": list(range(n)), "small": pa.array(range(n), pa.int8()), **fields}
    return [
        parquet_long.saved(pa.table(content), **options)
        for content in (fields, numbers)
        for options in ({}, {"compression": "none"})
    ]
