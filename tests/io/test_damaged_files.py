"""Files that are damaged, or forged: refused before anything compiled sees them."""

import gzip
import io
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from fillrank import Observations, read
from fillrank.errors import FillrankError, InputError, ReadError
from fillrank.io import datasets, matrix_market
from fillrank.runtime import memory as memory_module
from helpers.same_entries import assert_same

HEADER = "%%MatrixMarket matrix coordinate real general\n"


@pytest.fixture
def little_memory(monkeypatch):
    """A machine on which 40 kB can be had."""
    monkeypatch.setattr(memory_module, "_of_machine", lambda: 40_000)


def read_mtx(text, folder, name="x.mtx", **options):
    path = folder / name
    path.write_text(text)
    return read(path, **options)


def saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def sparse_npz(path, **changes):
    """A sparse matrix as scipy saves it, some of its arrays replaced."""
    matrix = sp.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0]]))
    kind = changes.pop("kind", "csr")
    sp.save_npz(path, matrix.asformat(kind))
    with np.load(path) as arrays:
        np.savez(path, **(dict(arrays) | changes))
    return path


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "2 2 1\n1 1 1e",
            r"x.mtx, line 3: the line must have 3 numbers \(row, column, value\); got '1 1 1e'",
        ),
        ("2 2 2\n1 1 1\n\n2 2\n", r"line 5: .* got '2 2'"),
        ("2 2 1\n1 1 1_0\n", r"line 3: .* got '1 1 1_0'"),
        ("2 2 1\n1 1 5 6\n", r"line 3: .* got '1 1 5 6'"),
        ("2 2 2\n1 1 5\n", "declares 2 entries, and has 1"),
        ("2 2 1\n1 1 5\n2 2 5\n", "declares 1 entries, and has 2"),
        ("2 2 1\n1 3 5\n", "a column must be a whole number from 1 to 2; entry 1 has 3"),
        ("2 2 1\n0 1 5\n", "a row must be a whole number from 1 to 2; entry 1 has 0"),
        ("2 2 1\n1.5 1 5\n", "entry 1 has 1.5"),
        ("2 2 1\nnan 1 5\n", "entry 1 has nan"),
        (
            "2 2\n1 1 5\n",
            r"line 2: the line must have the numbers of rows, columns and entries; got '2 2'",
        ),
        ("2 -2 1\n1 1 5\n", "line 2: the line must have the numbers of rows"),
        (f"2 {'9' * 5000} 1\n1 1 5\n", r"line 2: .*9\.\.\.'\.$"),
        ("% nothing\n\n", "no line with the size"),
    ],
)
def test_a_damaged_matrix_market_file(body, words, tmp_path):
    with pytest.raises(ReadError, match=words):
        read_mtx(HEADER + body, tmp_path)


@pytest.mark.parametrize(
    "first",
    [
        "%%MatrixMarket matrix coordinate real",
        "%MatrixMarket matrix coordinate real general",
        "%%MatrixMarket vector coordinate real general",
        "%%MatrixMarket matrix coordinates real general",
        "%%MatrixMarket matrix coordinate quaternion general",
        "%%MatrixMarket matrix coordinate real antisymmetric",
    ],
)
def test_a_wrong_header_of_matrix_market(first, tmp_path):
    with pytest.raises(ReadError, match=r"x.mtx"):
        read_mtx(f"{first}\n1 1 1\n1 1 5\n", tmp_path)


def test_matrix_market_has_a_square_if_it_is_symmetric(tmp_path):
    header = HEADER.replace("general", "symmetric")
    with pytest.raises(ReadError, match="must be square"):
        read_mtx(header + "2 3 1\n1 1 5\n", tmp_path)
    header = HEADER.replace("general", "skew-symmetric")
    with pytest.raises(ReadError, match="no entries on its diagonal"):
        read_mtx(header + "2 2 1\n1 1 5\n", tmp_path)


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("sparse", [True, False])
def test_matrix_market_as_scipy_reads_it(symmetry, sparse, tmp_path):
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(6, 6))
    if symmetry != "general":
        cells += cells.T if symmetry == "symmetric" else -cells.T
    matrix = sp.coo_array(np.where(cells > 1, 0, cells)) if sparse else cells
    if sparse and symmetry != "general":
        matrix = sp.coo_array(cells * (abs(cells) < 1))
    scipy.io.mmwrite(tmp_path / "x.mtx", matrix, symmetry=symmetry)
    expected = Observations.from_matrix(scipy.io.mmread(tmp_path / "x.mtx"))
    assert_same(read(tmp_path / "x.mtx"), expected)
    (tmp_path / "x.mm").write_bytes((tmp_path / "x.mtx").read_bytes())
    assert_same(read(tmp_path / "x.mm"), expected)


@pytest.mark.parametrize("spaces", [" ", "  ", "\t"])
def test_large_matrix_market_files_are_read_alike_with_and_without_pyarrow(
    spaces, tmp_path, monkeypatch
):
    rng = np.random.default_rng(1)
    lines = [
        spaces.join((str(i + 1), str(j + 1), repr(value)))
        for i, j, value in zip(
            range(500), rng.integers(9, size=500), rng.normal(size=500).tolist(), strict=True
        )
    ]
    text = "\n".join([f"{HEADER}500 9 500", *lines, ""])
    expected = read_mtx(text, tmp_path)
    monkeypatch.setattr(matrix_market, "SMALL", 0)
    assert_same(read_mtx(text, tmp_path), expected)
    with pytest.raises(ReadError, match="line 502: the line must have 3 numbers"):
        read_mtx(text.rstrip().rpartition(spaces)[0], tmp_path)
    with pytest.raises(ReadError, match="line 3: the line must have 3 numbers"):
        read_mtx(text.replace("\n1" + spaces, "\n0x1" + spaces), tmp_path)


@pytest.mark.parametrize(
    "shape", [(2_000_000_000, 2_000_000_000), (10_000_000, 1), (1, 3_000_000_000)]
)
def test_a_shape_too_large_for_its_entries(shape, tmp_path):
    n_rows, n_columns = shape
    with pytest.raises(InputError, match=f"{n_rows:,} x {n_columns:,}|up to 2,147,483,647"):
        read_mtx(f"{HEADER}{n_rows} {n_columns} 1\n1 1 5\n", tmp_path)
    path = sparse_npz(tmp_path / "x.npz", shape=np.array(shape), kind="coo")
    with pytest.raises(InputError, match=f"{n_rows:,} x {n_columns:,}|up to 2,147,483,647"):
        read(path)


def test_many_empty_rows_are_fine(tmp_path):
    assert read_mtx(f"{HEADER}100000 7 1\n1 1 5\n", tmp_path).shape == (100_000, 7)


def test_a_sparse_matrix_of_more_than_fits_in_memory(little_memory):
    with pytest.raises(InputError, match="1,000,000 rows and 1 columns would take about 24 MB"):
        Observations.from_matrix(sp.coo_array(([1.0], ([5], [0])), shape=(1_000_000, 1)))


@pytest.mark.parametrize(
    "pointers", [[0, 1_000_000, -7, 3], [0, 2, 1, 3], [0, 2, 3, 1000], [1, 2, 3, 4], [0, 2, 3]]
)
@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_pointers_of_a_sparse_matrix(pointers, kind, tmp_path):
    path = sparse_npz(tmp_path / "x.npz", indptr=np.array(pointers), kind=kind)
    with pytest.raises(FillrankError, match=r"x.npz"):
        read(path)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_pointers_that_leave_stored_values_out(kind, tmp_path):
    path = sparse_npz(tmp_path / "x.npz", indptr=np.array([0, 1, 2, 2]), kind=kind)
    with pytest.raises(
        ReadError, match=r"x.npz: the file is damaged: .* it is 2, and there are 4 values"
    ):
        read(path)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("csr", {"indices": np.array([0, 1, 1, 3])}),
        ("csr", {"indices": np.array([0, -1, 1, 2])}),
        ("csc", {"indices": np.array([0, 1_000_000, 1, 2])}),
        ("csr", {"indices": np.array([0.0, 1.0, 1.0, 2.0])}),
        ("csr", {"data": np.ones(3)}),
        ("csr", {"data": np.ones(4, dtype=complex)}),
        ("csr", {"indptr": np.array([[0, 2, 3, 4]])}),
        ("csr", {"shape": np.array([3])}),
        ("csr", {"shape": np.array([-3, 3])}),
        ("csr", {"shape": np.array([0, 3])}),
        ("csr", {"shape": np.array([3.0, 3.0])}),
        ("csr", {"format": np.array(b"lil")}),
        ("csr", {"format": np.array(7.5)}),
        ("coo", {"row": np.array([0, 0, 1, 3])}),
        ("coo", {"col": np.array([0, -2, 1, 2])}),
        ("coo", {"format": np.array(b"csr")}),
        ("dia", {"offsets": np.array([0, 0])}),
        ("bsr", {"data": np.ones((4, 0, 0))}),
    ],
)
def test_other_parts_of_a_sparse_matrix(kind, changes, tmp_path):
    path = sparse_npz(tmp_path / "x.npz", kind=kind, **changes)
    with pytest.raises(FillrankError, match=r"x.npz"):
        read(path)


def test_a_sparse_matrix_in_memory_is_checked_too():
    matrix = sp.csr_array(np.eye(3))
    matrix.indptr[:] = [0, 2, 1, 3]
    with pytest.raises(InputError, match="its indptr must ascend from 0"):
        Observations.from_matrix(matrix)
    matrix = sp.csr_array(np.eye(3))
    matrix.indices[0] = 3
    with pytest.raises(InputError, match="its indices must be from 0 to 2; they are from 1 to 3"):
        Observations.from_matrix(matrix)
    matrix = sp.coo_array(np.eye(3))
    matrix.coords[0][0] = 7
    with pytest.raises(InputError, match="each row must be from 0 to 2; they are from 1 to 7"):
        Observations.from_matrix(matrix)


@pytest.mark.parametrize(
    "shape", ["(1000000000, 1000)", "(2, -2)", "(99999999999, 99999999999)", "(3, 2)"]
)
@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_an_array_declared_larger_than_its_file(shape, name, tmp_path):
    data = saved(np.ones((2, 2)))
    header = data[10:128].replace(b"(2, 2)", shape.encode()).rstrip().ljust(117) + b"\n"
    data = data[:10] + header + data[128:]
    if name == "x.npy":
        (tmp_path / name).write_bytes(data)
    else:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("cells.npy", data)
    with pytest.raises(
        ReadError, match=rf"{name}.* is incomplete: an array of shape \({shape[1:4]}"
    ):
        read(tmp_path / name)


def test_an_archive_that_unpacks_to_more_than_fits(little_memory, tmp_path):
    np.savez_compressed(tmp_path / "x.npz", np.ones((100, 100)))
    with pytest.raises(
        InputError, match=r"the decompressed content of the file would take about 80.* kB"
    ):
        read(tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["x.csv.gz", "x.mtx.gz"])
def test_a_compressed_file_that_unpacks_to_more_than_fits(name, little_memory, tmp_path):
    (tmp_path / name).write_bytes(gzip.compress(b"1,2,3\n" * 100_000))
    with pytest.raises(ReadError, match=r"decompresses to more than 10 kB.*more memory"):
        read(tmp_path / name)


def test_a_zip_that_unpacks_to_more_than_fits(little_memory, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ml-100k/u.data", b"1\t2\t3\t4\n" * 100_000)
    with pytest.raises(ReadError, match="decompresses to more than 10 kB"):
        datasets.load("ml-100k", tmp_path / "x.zip")


def test_a_text_file_that_is_larger_than_memory(little_memory, tmp_path):
    (tmp_path / "x.csv").write_bytes(b"1,2,3\n" * 10_000)
    with pytest.raises(
        InputError, match="would take about 120 kB of memory, and 40 kB are available"
    ):
        read(tmp_path / "x.csv")


def test_an_array_of_another_kind_in_an_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("notes.txt", b"hello")
    with pytest.raises(ReadError, match=r"must contain only .npy arrays; it contains 'notes.txt'"):
        read(tmp_path / "x.npz")


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_unsigned_pointers_that_descend(dtype, tmp_path):
    pointers = np.array([0, 2, 1, 3], dtype=dtype)
    for kind in ("csr", "bsr"):
        path = sparse_npz(tmp_path / "x.npz", indptr=pointers, kind=kind)
        with pytest.raises(FillrankError, match=r"x.npz"):
            read(path)


@pytest.mark.parametrize("order", ["<", ">"])
def test_labels_with_invalid_unicode(order, tmp_path):
    names = np.array(["tea", "milk"], dtype=f"{order}U4")
    arrays = {"rows": np.array([1, 2]), "columns": names, "values": np.ones(2)}
    np.savez(tmp_path / "x.npz", **arrays)
    assert read(tmp_path / "x.npz").column_labels.tolist() == ["tea", "milk"]
    names.view(f"{order}u4")[1] = 0x110000
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(ReadError, match="not valid Unicode"):
        read(tmp_path / "x.npz")


def test_record_arrays_are_rejected(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 2), dtype=[("a", float)]))
    with pytest.raises(
        InputError, match=r"x.npy: arrays must contain real numbers or labels; got dtype"
    ):
        read(tmp_path / "x.npy")
