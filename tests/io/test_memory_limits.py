"""A file that does not fit in memory is refused before memory runs out; one that fits is read."""

import gzip
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from fillrank import read
from fillrank.errors import FillrankError
from fillrank.runtime import memory

COORDINATES = "%%MatrixMarket matrix coordinate real general\n"
ARRAY = "%%MatrixMarket matrix array real general\n"


def lines(start, each, n=40_000):
    return start + "".join(each(i) for i in range(n))


TEXTS = {
    "wide.csv": lines("x,y,z\n", lambda i: "1,2,3\n"),
    "fractions.csv": lines("x,y,z\n", lambda i: f"{i}.5,{i + 1}.25,{i}\n", 20_000),
    "labels.csv": lines("name,a,b\n", lambda i: f"n{i},1,2\n"),
    "long.csv": lines("user,item,rating\n", lambda i: f"u{i},i{i},1\n"),
    "array.mtx": lines(f"{ARRAY}40000 2\n", lambda i: "1\n2\n"),
    "coordinates.mtx": lines(f"{COORDINATES}40000 1 40000\n", lambda i: f"{i + 1} 1 0.5\n"),
}
RNG = np.random.default_rng(0)
ARRAYS = {
    "array.npy": RNG.normal(size=(300, 300)),
    "whole.npy": RNG.integers(0, 9, (300, 300)).astype(np.int8),
}
ARCHIVES = {
    "zeros.npz": {"x": np.zeros((300, 300))},
    "triplets.npz": {
        "rows": np.arange(100_000),
        "columns": np.arange(100_000),
        "values": RNG.normal(size=100_000),
    },
}


def write(path):
    if path.name in TEXTS:
        path.write_text(TEXTS[path.name])
    elif path.name in ARRAYS:
        np.save(path, ARRAYS[path.name])
    elif path.name in ARCHIVES:
        np.savez_compressed(path, **ARCHIVES[path.name])
    elif path.name == "sparse.npz":
        sp.save_npz(path, sp.random(400, 500, density=0.4, format="csr", random_state=0))
    else:
        path.write_bytes(gzip.compress(TEXTS[path.name.removesuffix(".gz")].encode()))


@pytest.fixture
def read_within(monkeypatch):
    """Read with so many bytes to be had, of which less are left the more are taken."""

    def reading(path, n_bytes):
        tracemalloc.start()
        try:
            monkeypatch.setattr(
                memory, "_of_machine", lambda: n_bytes - tracemalloc.get_traced_memory()[0]
            )
            data = read(path)
            return data, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return reading


@pytest.mark.parametrize("name", [*TEXTS, *ARRAYS, *ARCHIVES, "sparse.npz", "wide.csv.gz"])
def test_memory_estimates_include_parsed_data(name, read_within, tmp_path):
    path = tmp_path / name
    write(path)
    read(path)  # whatever is imported on the way is in memory now
    _, needed = read_within(path, 10**10)
    with pytest.raises(FillrankError, match=rf"(?s){name}.* of memory, and .* are available\. \w+"):
        read_within(path, int(0.75 * needed))
    data, _ = read_within(path, int(1.6 * needed))
    assert data.n_entries >= 40_000
