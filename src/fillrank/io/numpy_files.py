"""numpy's .npy and .npz files, whose declared sizes are checked against their contents.

Nothing is unpickled: a file can contain data, but no code.
"""

import math
import os
import sys
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.lib import format

from fillrank.errors import InputError, ReadError
from fillrank.io.files import library_errors
from fillrank.runtime.memory import check_memory, format_bytes
from fillrank.table.observations import Observations
from fillrank.table.triplets import Duplicates, check_declared_shape

TRIPLET_ARRAYS = ("rows", "columns", "values")

_HEADERS: dict[tuple[int, int], Callable[[BinaryIO], Any]] = {
    (1, 0): format.read_array_header_1_0,
    (2, 0): format.read_array_header_2_0,
}
# The arrays of each of scipy's sparse formats, in addition to `format`, `shape` and `data`.
_COMPRESSED = ("indices", "indptr")
_SPARSE = {
    "coo": ("row", "col"),
    "csr": _COMPRESSED,
    "csc": _COMPRESSED,
    "bsr": _COMPRESSED,
    "dia": ("offsets",),
}
_ZIP_MAGIC = b"PK"
_KINDS = "biufcSUmM"  # all of numpy's except records and objects


def read_npy(file: BinaryIO, name: str, duplicates: Duplicates) -> Observations:
    """Read an .npy file; ``name`` is for messages."""
    with library_errors(name, ".npy"):
        if file.read(2) == _ZIP_MAGIC:
            raise ReadError("the file is an archive; rename it to .npz", place=name)
        n_bytes = file.seek(0, os.SEEK_END)
        file.seek(0)
        matrix = _read_array(file, n_bytes, name)
    return Observations.from_matrix(matrix, duplicates=duplicates)


def read_npz(file: BinaryIO, name: str, duplicates: Duplicates) -> Observations:
    """Read an .npz file: one array, three arrays of triplets, or a sparse matrix of scipy."""
    with library_errors(name, ".npz"):
        arrays = _read_arrays(file, name)
    if "format" in arrays and "shape" in arrays:  # as `scipy.sparse.save_npz` writes
        with library_errors(name, "sparse .npz"):
            matrix = _sparse_matrix(arrays, name)
        return Observations.from_matrix(matrix, duplicates=duplicates)
    if set(arrays) == set(TRIPLET_ARRAYS):
        return Observations.from_triplets(**arrays, duplicates=duplicates)
    if len(arrays) == 1:
        return Observations.from_matrix(*arrays.values(), duplicates=duplicates)
    raise ReadError(
        f"the file must contain one array, or {', '.join(TRIPLET_ARRAYS)}, or a sparse matrix; it "
        f"contains {', '.join(arrays) or 'nothing'}",
        place=name,
    )


def _read_arrays(file: BinaryIO, name: str) -> dict[str, np.ndarray]:
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        check_memory(
            sum(member.file_size for member in members),
            "the decompressed content of the file",
            "Save fewer or smaller arrays in it.",
        )
        for member in members:
            key = member.filename.removesuffix(".npy")
            if key == member.filename:
                raise ReadError(
                    f"the file must contain only .npy arrays; it contains {key!r}", place=name
                )
            with archive.open(member) as opened:
                arrays[key] = _read_array(opened, member.file_size, f"{name} ({key})")
    return arrays


def _read_array(file: Any, n_bytes: int, name: str) -> np.ndarray:
    """Read an array; raise ReadError if a file of ``n_bytes`` cannot contain the declared one."""
    version = format.read_magic(file)
    if version not in _HEADERS:
        raise ReadError(f"unknown version {version} of .npy", place=name)
    shape, is_fortran, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ReadError(
            "the file contains Python objects, which are not read because they could run code",
            place=name,
            advice="Save numbers.",
        )
    if dtype.kind not in _KINDS:
        raise InputError(f"arrays must contain real numbers or labels; got dtype {dtype}.")
    size = math.prod(shape) * dtype.itemsize
    left = n_bytes - file.tell()
    if min(shape, default=1) < 0 or size > left:
        raise ReadError(
            f"the file is incomplete: an array of shape {shape} and type {dtype} takes "
            f"{format_bytes(size)}, and the file has {format_bytes(left)}",
            place=name,
        )
    check_memory(size, f"an array of shape {shape}", "Save a smaller array.")
    flat = np.frombuffer(file.read(size), dtype=dtype)
    if dtype.kind == "U" and flat.size and flat.view(dtype.byteorder + "u4").max() > sys.maxunicode:
        raise ReadError("the file is damaged: some of its text is not valid Unicode", place=name)
    return flat.reshape(shape[::-1]).T if is_fortran else flat.reshape(shape)


def _sparse_matrix(arrays: dict[str, np.ndarray], name: str) -> Any:
    """The matrix that `scipy.sparse.save_npz` has written.

    Its indices are checked by `Observations.from_matrix`, as those of any sparse matrix.
    """
    kind = arrays["format"].astype("S8").tobytes().rstrip(b"\0").decode("ascii", "replace")
    if kind not in _SPARSE:
        raise ReadError(
            f"the format of a sparse matrix must be one of {', '.join(_SPARSE)}; got {kind!r}",
            place=name,
        )
    absent = [key for key in ("data", *_SPARSE[kind]) if key not in arrays]
    if absent:
        raise ReadError(f"a sparse matrix of format {kind} needs {', '.join(absent)}", place=name)
    index = [arrays[key] for key in _SPARSE[kind]]
    if any(array.dtype.kind not in "iu" or array.ndim != 1 for array in (arrays["shape"], *index)):
        raise ReadError(
            "the shape and the indices of a sparse matrix must be lists of integers", place=name
        )
    shape = tuple(arrays["shape"].tolist())
    data = arrays["data"]
    if len(shape) != 2 or min(shape) < 1:
        raise InputError(f"a matrix must have rows and columns; got shape {shape}.")
    check_declared_shape(shape, data.size)
    if "indptr" in _SPARSE[kind]:
        indices, pointers = index
        last = pointers[-1] if pointers.size else 0
        if not last == len(indices) == len(data):
            raise ReadError(
                "the file is damaged: the last number of indptr must be the number of stored values; it "
                f"is {last}, and there are {len(data)} values and {len(indices)} indices",
                place=name,
            )
    if kind == "coo":
        return sp.coo_array((data, (index[0], index[1])), shape=shape)
    return getattr(sp, f"{kind}_array")((data, *index), shape=shape)
