import gzip

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.io
import scipy.sparse as sp

from fillrank import Observations, read
from fillrank.errors import FillrankError, InputError, ReadError, UnknownNameError
from fillrank.io import parquet
from helpers.same_entries import as_dict, assert_same

NAN = np.nan
X = np.array([[1.0, NAN, 0.0], [NAN, NAN, NAN], [NAN, 4.0, 5.5]])
STORED = sp.coo_array(([1.0, 0.0, 4.0, 5.5], ([0, 0, 2, 2], [0, 2, 1, 2])), shape=(3, 3))
EXPECTED = Observations.from_matrix(X)


def save_npy(path):
    np.save(path, X)


def save_npz(path):
    np.savez(path, X)


def save_compressed_npz(path):
    np.savez_compressed(path, ratings=X)


def save_sparse(path):
    sp.save_npz(path, STORED.tocsr())


def save_mtx(path):
    scipy.io.mmwrite(path, STORED)


def save_dense_mtx(path):
    scipy.io.mmwrite(path, X)


def save_wide_csv(path):
    pd.DataFrame(X).to_csv(path)


def save_headless_csv(path):
    np.savetxt(path, np.column_stack([X, X[:, :2]]), delimiter=",")


@pytest.mark.parametrize(
    ("name", "save"),
    [
        ("x.npy", save_npy),
        ("x.npz", save_npz),
        ("x.npz", save_compressed_npz),
        ("x.npz", save_sparse),
        ("x.mtx", save_mtx),
        ("x.mtx", save_dense_mtx),
        ("x.csv", save_wide_csv),
    ],
)
def test_the_same_matrix_from_every_format(tmp_path, name, save):
    save(tmp_path / name)
    assert_same(read(tmp_path / name), EXPECTED)
    assert_same(read(str(tmp_path / name)), EXPECTED)


def test_numpy_text_without_header(tmp_path):
    save_headless_csv(tmp_path / "x.csv")
    assert_same(read(tmp_path / "x.csv"), Observations.of(np.column_stack([X, X[:, :2]])))


def test_mtx_in_gz(tmp_path):
    save_mtx(tmp_path / "x.mtx")
    (tmp_path / "x.mtx.gz").write_bytes(gzip.compress((tmp_path / "x.mtx").read_bytes()))
    assert_same(read(tmp_path / "x.mtx.gz"), EXPECTED)


def test_triplets_in_npz(tmp_path):
    np.savez(tmp_path / "t.npz", rows=np.array(["a", "b"]), columns=np.array([7, 8]), values=[1, 2])
    assert as_dict(read(tmp_path / "t.npz")) == {("a", 7): 1.0, ("b", 8): 2.0}


def test_symmetric_mtx_has_both_halves(tmp_path):
    (tmp_path / "s.mtx").write_text(
        "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 3\n2 1 4\n"
    )
    assert as_dict(read(tmp_path / "s.mtx")) == {(0, 0): 3.0, (0, 1): 4.0, (1, 0): 4.0}


def test_duplicates_in_mtx_are_duplicates(tmp_path):
    path = tmp_path / "d.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 3\n1 1 5\n")
    with pytest.raises(InputError, match=r"d.mtx: each \(row, column\) pair .*\n.*row 0, column 0"):
        read(path)
    assert as_dict(read(path, duplicates="mean")) == {(0, 0): 4.0}


def test_pattern_mtx_is_refused(tmp_path):
    path = tmp_path / "p.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1\n")
    with pytest.raises(ReadError, match=r"p.mtx: the matrix is a pattern: .* Save it with values"):
        read(path)


def test_complex_mtx_is_refused(tmp_path):
    path = tmp_path / "c.mtx"
    path.write_text("%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 3 4\n")
    with pytest.raises(InputError, match=r"c.mtx: a matrix must contain real numbers; .* complex"):
        read(path)


# Parquet


@pytest.mark.parametrize("missing", [(), ("polars",)])
def test_parquet_by_either_library(tmp_path, monkeypatch, missing):
    monkeypatch.setattr(parquet, "find_spec", lambda name: name not in missing)
    long = pl.DataFrame({"user": ["a", "b"], "item": [7, 8], "rating": [1.0, None]})
    long.write_parquet(tmp_path / "long.parquet")
    observations = read(tmp_path / "long.parquet")
    assert as_dict(observations) == {("a", 7): 1.0}
    assert observations.shape == (2, 2)
    wide = pl.DataFrame({"who": ["a", "b"], "x": [1, None], "y": [3, 4]})
    wide.write_parquet(tmp_path / "wide.parquet")
    expected = {("a", "x"): 1.0, ("a", "y"): 3.0, ("b", "y"): 4.0}
    assert as_dict(read(tmp_path / "wide.parquet")) == expected


def test_parquet_without_a_library(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(parquet, "find_spec", lambda name: None)
    with pytest.raises(ReadError, match=r'pip install "fillrank\[tables\]"'):
        read(tmp_path / "t.parquet")


@pytest.mark.parametrize("index", [["a", "b"], [10, 20], pd.Index(["a", "b"], name="who")])
def test_parquet_with_an_index_of_pandas(tmp_path, index):
    frame = pd.DataFrame({"x": [1.0, NAN], "y": [3.0, 4.0]}, index=index)
    frame.to_parquet(tmp_path / "t.parquet")
    assert as_dict(read(tmp_path / "t.parquet")) == as_dict(Observations.of(frame))


def test_parquet_fields_and_layout(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"p": [1, 2], "q": [3, 4], "z": [0.5, 1.5]}).write_parquet(path)
    assert read(path).shape == (2, 3)
    for options in ({"row": "p", "column": "q", "value": "z"}, {"layout": "long"}):
        assert as_dict(read(path, **options)) == {(1, 3): 0.5, (2, 4): 1.5}
    with pytest.raises(UnknownNameError, match="no column 'v'; the columns are 'p', 'q', 'z'"):
        read(path, row="p", column="q", value="v")


# What is not as it should be


@pytest.mark.parametrize(
    ("name", "save"),
    [
        ("x.npy", save_npy),
        ("x.npz", save_npz),
        ("x.npz", save_sparse),
        ("x.mtx", save_mtx),
        ("x.parquet", lambda path: pl.DataFrame({"a": [1]}).write_parquet(path)),
        ("x.csv.gz", lambda path: path.write_bytes(gzip.compress(b"a,b\n1,2\n" * 99))),
        ("x.mtx.gz", lambda path: path.write_bytes(gzip.compress(b"%%Matrix" * 99))),
    ],
)
@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty"])
def test_damaged_files_are_read_errors(tmp_path, name, save, damage):
    path = tmp_path / name
    save(path)
    whole = path.read_bytes()
    garbage = np.random.default_rng(0).bytes(300)
    path.write_bytes(
        {"truncated": whole[: len(whole) * 2 // 3], "garbage": garbage}.get(damage, b"")
    )
    with pytest.raises(ReadError) as caught:
        read(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_pickles_are_never_opened(tmp_path, name):
    path = tmp_path / name
    array = np.array([[{"a": 1}]], dtype=object)
    if name == "x.npy":
        np.save(path, array, allow_pickle=True)
    else:
        np.savez(path, array)
    with pytest.raises(ReadError, match=f"{name}.*contains Python objects, which are not read"):
        read(path)


def test_archives_of_other_arrays(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, train=X, test=X)
    with pytest.raises(ReadError, match=r"one array, or rows, columns, values, .* train, test"):
        read(path)
    (tmp_path / "x.npy").write_bytes(path.read_bytes())
    with pytest.raises(ReadError, match=r"is an archive; rename it to \.npz"):
        read(tmp_path / "x.npy")


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.mtx"])
def test_matrix_files_have_no_fields(tmp_path, name):
    {"x.npy": save_npy, "x.npz": save_npz, "x.mtx": save_mtx}[name](tmp_path / name)
    for options in ({"row": "a", "column": "b", "value": "c"}, {"layout": "long"}):
        with pytest.raises(InputError, match=r"are for tables, not for \.(npy|npz|mtx)"):
            read(tmp_path / name, **options)


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "ratings.csv").write_text("a,b\n1,2\n")
    with pytest.raises(
        ReadError, match=r"rating.csv: the file does not exist. Did you mean ratings.csv\?"
    ):
        read(tmp_path / "rating.csv")
    with pytest.raises(ReadError, match=r"x.csv: the file does not exist\.$"):
        read(tmp_path / "nowhere" / "x.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ReadError, match=r"folder.csv: the path is a folder"):
        read(tmp_path / "folder.csv")


@pytest.mark.parametrize("name", ["x.docx", "x", "x.gz", "x.npy.gz", "x.parquet.gz", "x.pkl"])
def test_other_endings(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ReadError, match=r"kind of the file is unknown.* .csv .tsv .* .parquet"):
        read(tmp_path / name)


def test_errors_of_the_system_are_read_errors(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")

    def refuse(self, *arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(ReadError, match=r"x.csv: the file cannot be read \(Permission denied\)\."):
        read(path)
    assert issubclass(ReadError, FillrankError)
