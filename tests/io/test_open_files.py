"""`read` accepts open files, with the results and the limits of paths."""

import gzip
import io
import zipfile

import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse as sp

import fillrank as fr
from fillrank.errors import FillrankError, InputError, ReadError
from fillrank.runtime import memory
from helpers.same_entries import assert_same

TEXT = "user,item,rating\nAna,tea,5\nBen,tea,3.5\nBen,milk,1\n"
X = np.array([[1.0, np.nan, 0.0], [np.nan, 4.0, 5.5]])
LONG = pl.DataFrame({"user": ["a", "b"], "item": [7, 8], "rating": [1.0, None]})


def save_csv(path):
    path.write_text(TEXT)


def save_gzip(path):
    path.write_bytes(gzip.compress(TEXT.encode()))


FILES = {
    "t.csv": save_csv,
    "t.csv.gz": save_gzip,
    "t.npy": lambda path: np.save(path, X),
    "t.npz": lambda path: np.savez_compressed(path, X),
    "s.npz": lambda path: sp.save_npz(path, sp.csr_array(np.eye(3))),
    "t.mtx": lambda path: scipy.io.mmwrite(path, sp.coo_array(np.eye(3))),
    "t.parquet": lambda path: LONG.write_parquet(path),
}


class Pipe(io.RawIOBase):
    """A stream that cannot seek and returns a few bytes at a time."""

    def __init__(self, content):
        self._file = io.BytesIO(content)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self._file.readinto(memoryview(buffer)[:7])


@pytest.mark.parametrize("name", FILES)
def test_open_files_are_read_as_paths(tmp_path, name):
    path = tmp_path / name
    FILES[name](path)
    expected = fr.read(path)
    content = path.read_bytes()
    with path.open("rb") as file:
        assert_same(fr.read(file), expected)
    assert_same(fr.read(io.BytesIO(content), name=name), expected)
    assert_same(fr.read(Pipe(content), name=name), expected)
    assert_same(fr.read(io.BufferedReader(Pipe(content)), name=name), expected)
    if not name.endswith(".gz"):
        format = name.rpartition(".")[2]
        assert_same(fr.read(io.BytesIO(content), format=format), expected)
        assert_same(fr.read(io.BytesIO(content), format=format, name="standard input"), expected)


def test_text_files(tmp_path):
    save_csv(tmp_path / "t.csv")
    expected = fr.read(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open() as file:
        assert_same(fr.read(file), expected)
    assert_same(fr.read(io.StringIO("\ufeff" + TEXT), format="csv"), expected)
    matrix = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 5\n"
    assert fr.read(io.StringIO(matrix), format="mtx").values.tolist() == [5]


def test_a_file_is_read_from_its_position():
    file = io.StringIO("a title\n" + TEXT)
    file.readline()
    assert fr.read(file, format="csv").n_entries == 3


def test_a_format_replaces_the_ending(tmp_path):
    save_csv(tmp_path / "table")
    assert fr.read(tmp_path / "table", format="csv").n_entries == 3
    save_gzip(tmp_path / "table.gz")
    assert fr.read(tmp_path / "table.gz", format="csv").n_entries == 3
    # The content of an open file is of its format, even if it was decompressed already.
    assert fr.read(io.BytesIO(TEXT.encode()), format="csv", name="t.csv.gz").n_entries == 3


def test_messages_have_the_name():
    with pytest.raises(ReadError, match=r"^new\.csv, line 2, column 'rating' must be a number"):
        fr.read(io.StringIO("user,item,rating\n1,2,x\n3,4,5\n5,6,7\n"), name="new.csv")
    with pytest.raises(ReadError, match=r"^standard input: the file is empty\.$"):
        fr.read(io.BytesIO(), format="csv", name="standard input")
    with pytest.raises(InputError, match=r"^the open file: each \(row, column\) pair"):
        fr.read(io.StringIO(TEXT + "Ana,tea,4\n"), format="csv")


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (io.BytesIO(b"1,2"), {}, "the open file: the kind of the file is unknown"),
        (io.BytesIO(b"1,2"), {"name": "t.docx"}, "t.docx: the kind of the file is unknown"),
        (io.BytesIO(b"1,2"), {"format": "docx"}, "format must be one of 'csv', .*, got 'docx'"),
        (io.StringIO("PAR1"), {"format": "parquet"}, "opened in binary mode"),
        (io.StringIO("x"), {"format": "npy"}, "opened in binary mode"),
        (io.StringIO("x"), {"name": "t.csv.gz"}, "opened in binary mode"),
        (X, {"format": "csv"}, "format, name and skip are for files; got ndarray"),
    ],
)
def test_what_cannot_be_read(source, options, message):
    with pytest.raises(FillrankError, match=message):
        fr.read(source, **options)


def test_a_closed_file():
    file = io.BytesIO(b"1,2\n3,4\n")
    file.close()
    with pytest.raises(ReadError, match=r"the file cannot be read .*closed"):
        fr.read(file, name="t.csv")


def test_errors_of_a_stream_are_read_errors():
    class Broken(io.RawIOBase):
        def read(self, size=-1):
            raise OSError(5, "Input/output error")

    with pytest.raises(ReadError, match=r"t\.csv: the file cannot be read \(Input/output error\)"):
        fr.read(Broken(), name="t.csv")


class Endless(io.RawIOBase):
    """Lines without end."""

    def read(self, size=-1):
        return b"1,2,3\n" * (max(size, 6) // 6)


@pytest.mark.parametrize("name", ["t.csv", "t.mtx", "t.npy", "t.npz", "t.parquet"])
def test_a_stream_without_end_is_refused(monkeypatch, name):
    monkeypatch.setattr(memory, "_of_machine", lambda: 10_000_000)
    with pytest.raises(InputError, match=f"{name}: the file is longer than 5 MB, half"):
        fr.read(Endless(), name=name)


def test_an_open_file_cannot_expand_beyond_memory(monkeypatch):
    monkeypatch.setattr(memory, "_of_machine", lambda: 40_000)
    bomb = gzip.compress(b"1,2,3\n" * 100_000)
    with pytest.raises(ReadError, match=r"t\.csv\.gz: the file decompresses to more than 10 kB"):
        fr.read(io.BytesIO(bomb), name="t.csv.gz")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", bytes(100_000))
    archive.seek(0)
    with pytest.raises(InputError, match="the decompressed content of the file would take"):
        fr.read(archive, name="t.npz")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["truncated", "empty"])
def test_damaged_open_files(tmp_path, name, damage):
    path = tmp_path / name
    FILES[name](path)
    content = path.read_bytes()
    content = content[: len(content) * 2 // 3] if damage == "truncated" else b""
    if name == "t.csv" and content:
        return  # which is a shorter table
    with pytest.raises(ReadError, match=rf"^{name}"):
        fr.read(io.BytesIO(content), name=name)
